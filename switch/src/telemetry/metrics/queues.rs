//! Metrics of egress queues and of ingress groups that no counter has, by port and priority.

use std::fmt;

use npcc_api::lossless::Group;

use super::family::{Samples, families};
use super::scrape::Scrape;

/// Digits of the priorities, as label values.
const DIGITS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

/// Returns a priority as a label.
pub(super) fn digit(priority: u8) -> &'static str {
    DIGITS.get(usize::from(priority)).copied().unwrap_or("?")
}

/// Writes a value that only lossless groups have.
fn of_lossless(all: &Scrape, to: &mut Samples<'_>, of: fn(&Group) -> Option<u64>) -> fmt::Result {
    for port in &all.snapshot.ports {
        for (group, bytes) in port.groups.iter().filter_map(|one| Some((one, of(one)?))) {
            let labels = [
                ("port", port.name.as_str()),
                ("priority", digit(group.priority)),
            ];
            to.gauge(&labels, bytes)?;
        }
    }
    Ok(())
}

/// Writes both ends of the curve of marking or early drop, for each queue that has one.
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
    "npcc_queue_ecn_threshold_bytes" Gauge "Depths from which frames are marked (kmin) and all of them are (kmax); no sample where none is." |all, to|
        curves(all, to, false);
    "npcc_queue_wred_threshold_bytes" Gauge "Depths from which frames are dropped early (min) and all of them are (max); no sample where none is." |all, to|
        curves(all, to, true);
    "npcc_group_headroom_size_bytes" Gauge "Size of the ingress group's headroom; no sample where its sender is not paused." |all, to|
        of_lossless(all, to, |group| group.lossless.then_some(group.headroom_size));
    "npcc_group_xoff_bytes" Gauge "What the ingress group may hold at this moment before its sender is paused; no sample where it is not." |all, to|
        of_lossless(all, to, |group| group.xoff);
    "npcc_group_xon_bytes" Gauge "What the ingress group holds at most when its paused sender goes on; no sample where it is not paused." |all, to|
        of_lossless(all, to, |group| group.xon);
}
