//! Metrics of egress queues and of ingress groups, by port and priority.

use std::fmt;

use super::family::{Label, Samples, families};
use super::scrape::Scrape;
use crate::report::lossless::Group;
use crate::report::model::{Port, Queue};

/// Digits of the priorities, as labels have them.
const DIGITS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// A priority as a label.
pub(super) fn digit(priority: u8) -> &'static str {
    DIGITS.get(usize::from(priority)).copied().unwrap_or("?")
}

/// Does something for each of what every port has by priority, with its labels.
fn each_of<T>(
    all: &Scrape,
    of: impl Fn(&Port) -> &[T],
    priority: impl Fn(&T) -> u8,
    mut each: impl FnMut(&[Label<'_>], &T) -> fmt::Result,
) -> fmt::Result {
    for port in &all.snapshot.ports {
        for one in of(port) {
            each(
                &[("port", &port.name), ("priority", digit(priority(one)))],
                one,
            )?;
        }
    }
    Ok(())
}

/// Does something for each queue of each port, with its labels.
fn each_queue(all: &Scrape, each: impl FnMut(&[Label<'_>], &Queue) -> fmt::Result) -> fmt::Result {
    each_of(all, |port| &port.queues, |queue| queue.priority, each)
}

/// Does something for each ingress group of each port, with its labels.
fn each_group(all: &Scrape, each: impl FnMut(&[Label<'_>], &Group) -> fmt::Result) -> fmt::Result {
    each_of(all, |port| &port.groups, |group| group.priority, each)
}

/// What only lossless groups have.
fn of_lossless(all: &Scrape, to: &mut Samples<'_>, of: fn(&Group) -> Option<u64>) -> fmt::Result {
    each_group(all, |labels, group| {
        of(group).map_or(Ok(()), |bytes| to.gauge(labels, bytes))
    })
}

/// Both ends of a curve of marking or early drop, of each queue that has one.
fn curves(all: &Scrape, to: &mut Samples<'_>, wred: bool) -> fmt::Result {
    let names = if wred {
        ["min", "max"]
    } else {
        ["kmin", "kmax"]
    };
    for queue in &all.snapshot.qos.priorities {
        let curves = if wred { &queue.wred } else { &queue.ecn };
        for (port, curve) in curves {
            for (name, bytes) in names.into_iter().zip(curve) {
                let place = [("port", port.as_str()), ("priority", digit(queue.priority))];
                let [port, priority] = place;
                to.gauge(&[port, priority, ("threshold", name)], *bytes)?;
            }
        }
    }
    Ok(())
}

families! {
    "npcc_queue_depth_bytes" Gauge "Wire bytes that wait in the egress queue." |all, to|
        each_queue(all, |labels, queue| to.gauge(labels, queue.depth));
    "npcc_queue_peak_bytes" Gauge "Most wire bytes that waited in the egress queue since watermarks were cleared." |all, to|
        each_queue(all, |labels, queue| to.gauge(labels, queue.peak));
    "npcc_queue_enqueued_frames" Counter "Frames that the egress queue took." |all, to|
        each_queue(all, |labels, queue| to.count(labels, queue.enqueued));
    "npcc_queue_enqueued_bytes" Counter "Bytes that the egress queue took." |all, to|
        each_queue(all, |labels, queue| to.count(labels, queue.enqueued_bytes));
    "npcc_queue_drops" Counter "Frames that the egress queue refused or dropped early." |all, to|
        each_queue(all, |labels, queue| to.count(labels, queue.dropped));
    "npcc_queue_wred_drops" Counter "Of the frames an egress queue dropped, those that WRED dropped early." |all, to|
        each_queue(all, |labels, queue| to.count(labels, queue.wred_dropped));
    "npcc_queue_ecn_marked_frames" Counter "Frames whose ECN codepoint was changed to CE here." |all, to|
        each_queue(all, |labels, queue| to.count(labels, queue.ecn_marked));
    "npcc_queue_ecn_threshold_bytes" Gauge "Depths from which frames are marked (kmin) and all of them are (kmax); no sample where none is." |all, to|
        curves(all, to, false);
    "npcc_queue_wred_threshold_bytes" Gauge "Depths from which frames are dropped early (min) and all of them are (max); no sample where none is." |all, to|
        curves(all, to, true);
    "npcc_group_held_bytes" Gauge "Wire bytes that came in by the port with the priority and are still held." |all, to|
        each_group(all, |labels, group| to.gauge(labels, group.held));
    "npcc_group_held_peak_bytes" Gauge "Most wire bytes of the ingress group held since watermarks were cleared." |all, to|
        each_group(all, |labels, group| to.gauge(labels, group.held_peak));
    "npcc_group_headroom_used_bytes" Gauge "Wire bytes of the ingress group that lie in headroom: its sender did not stop yet." |all, to|
        each_group(all, |labels, group| to.gauge(labels, group.headroom));
    "npcc_group_headroom_size_bytes" Gauge "Size of the ingress group's headroom; no sample where its sender is not paused." |all, to|
        of_lossless(all, to, |group| group.lossless.then_some(group.headroom_size));
    "npcc_group_xoff_bytes" Gauge "What the ingress group may hold at this moment before its sender is paused; no sample where it is not." |all, to|
        of_lossless(all, to, |group| group.xoff);
    "npcc_group_xon_bytes" Gauge "What the ingress group holds at most when its paused sender goes on; no sample where it is not paused." |all, to|
        of_lossless(all, to, |group| group.xon);
    "npcc_group_drops" Counter "Frames of the ingress group that the buffer had no room for." |all, to|
        each_group(all, |labels, group| to.count(labels, group.dropped));
}
