//! Metrics of the control plane: what Linux is given, what is made in its stead, and what it sends. All is 0 where it is not integrated.

use std::fmt;

use super::family::{Samples, families};
use super::scrape::Scrape;
use crate::report::punt::Class;

/// A counter of each class.
fn classes(all: &Scrape, to: &mut Samples<'_>, of: fn(&Class) -> u64) -> fmt::Result {
    let mut classes = all.snapshot.punt.classes.iter();
    classes.try_for_each(|class| to.count(&[("class", &class.name)], of(class)))
}

/// Counters that are told apart by a label.
fn kinds<const N: usize>(
    to: &mut Samples<'_>,
    label: &'static str,
    all: [(&'static str, u64); N],
) -> fmt::Result {
    let mut all = all.into_iter();
    all.try_for_each(|(kind, count)| to.count(&[(label, kind)], count))
}

families! {
    "npcc_punt_frames" Counter "Frames of the class given to Linux; of unresolved the questions asked, of icmp_errors the errors made." |all, to|
        classes(all, to, |class| class.punted);
    "npcc_punt_bytes" Counter "Bytes of the class given to Linux." |all, to|
        classes(all, to, |class| class.bytes);
    "npcc_punt_drops" Counter "Frames of the class dropped: it was past its rate (over_rate), or its queue was full." |all, to| {
        for class in &all.snapshot.punt.classes {
            to.count(&[("class", &class.name), ("cause", "over_rate")], class.over_rate)?;
            to.count(&[("class", &class.name), ("cause", "full")], class.full)?;
        }
        Ok(())
    };
    "npcc_punt_delivered_frames" Counter "Frames of the class that Linux took." |all, to|
        classes(all, to, |class| class.delivered);
    "npcc_punt_refused_frames" Counter "Frames of the class that Linux refused." |all, to|
        classes(all, to, |class| class.refused);
    "npcc_punt_waiting_bytes" Gauge "Bytes of the class that wait for Linux." |all, to| {
        let mut classes = all.snapshot.punt.classes.iter();
        classes.try_for_each(|class| to.gauge(&[("class", &class.name)], class.waiting))
    };
    "npcc_icmp_errors" Counter "ICMP errors made by kind." |all, to| {
        let made = &all.snapshot.punt.workers;
        kinds(to, "kind", [
            ("time_exceeded", made.time_exceeded),
            ("unreachable", made.unreachable),
            ("too_big", made.too_big),
        ])
    };
    "npcc_icmp_errors_withheld" Counter "ICMP errors not made: too many were (over_rate), or nothing may be sent about the packet (unfit)." |all, to| {
        let made = &all.snapshot.punt.workers;
        kinds(to, "cause", [("over_rate", made.icmp_over_rate), ("unfit", made.icmp_unfit)])
    };
    "npcc_linux_receive_frames" Counter "Frames that Linux sent: of BFD, routing protocols, ARP, neighbour discovery and LLDP (control), and others." |all, to| {
        let host = &all.snapshot.punt.host;
        kinds(to, "kind", [("control", host.sent_control), ("other", host.sent)])
    };
    "npcc_linux_lost_frames" Counter "Frames to or from Linux that were lost: no_interface, odd (may not leave), ring_full, no_room (no buffer, room or link)." |all, to| {
        let (workers, host) = (&all.snapshot.punt.workers, &all.snapshot.punt.host);
        kinds(to, "cause", [
            ("no_interface", host.no_interface),
            ("odd", host.sent_odd),
            ("ring_full", host.sent_full),
            ("no_room", workers.inject_lost),
        ])
    };
    "npcc_linux_interface_errors" Counter "Errors of Linux's interfaces on reading." |all, to|
        to.count(&[], all.snapshot.punt.host.host_errors);
}
