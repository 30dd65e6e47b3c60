//! Counters of frames to and from Linux.

use super::{Counter, Traffic};
use crate::punt::PuntClass;

counters! {
    /// Counters of one class of frames for Linux.
    pub struct PuntClassCounters => PuntClassCount {
        /// Frames given to Linux.
        punted: Traffic => no_metric(),
        /// Frames dropped because the class was over its rate.
        over_rate: Counter => no_metric(),
        /// Frames dropped because the class's queue was full.
        full: Counter => no_metric(),
    }
}

counters! {
    /// Counters of punt and inject, as one worker sees them. The report joins the counters of a class with what Linux took of
    /// it.
    pub struct PuntCounters => PuntCount {
        /// Counters of each class, in the order of [`PuntClass::ALL`].
        #[serde(skip)] classes: [PuntClassCounters; PuntClass::COUNT] => nested(),
        /// Requests to Linux for the MAC addresses of next hops.
        asked: Counter => no_metric(),
        /// Requests suppressed because the same one was made a moment ago.
        asked_lately: Counter => no_metric(),
        /// Requests suppressed because the rate limit was reached.
        ask_over_rate: Counter => no_metric(),
        /// Requests suppressed because too many were queued.
        ask_full: Counter => no_metric(),
        /// ICMP errors made: time exceeded.
        time_exceeded: Counter => metric("npcc_icmp_errors").tag("kind", "time_exceeded").help("ICMP errors made by kind."),
        /// ICMP errors made: unreachable, of any kind.
        unreachable: Counter => metric("npcc_icmp_errors").tag("kind", "unreachable"),
        /// ICMP errors made: fragmentation needed, packet too big.
        too_big: Counter => metric("npcc_icmp_errors").tag("kind", "too_big"),
        /// ICMP errors not made, as too many were.
        icmp_over_rate: Counter => metric("npcc_icmp_errors_withheld").tag("cause", "over_rate")
            .help("ICMP errors not made: too many were (over_rate), or nothing may be sent about the packet (unfit)."),
        /// ICMP errors not made, as nothing may be sent about the packet, or there is no way to its sender.
        icmp_unfit: Counter => metric("npcc_icmp_errors_withheld").tag("cause", "unfit"),
        /// Frames of BFD and routing protocols from Linux that were queued.
        injected_control: Traffic => no_metric(),
        /// Other frames from Linux that were queued.
        injected: Traffic => no_metric(),
        /// Frames of Linux for which there was no buffer, no room or no link.
        inject_lost: Counter => metric("npcc_linux_lost_frames").tag("cause", "no_room")
            .help("Frames to or from Linux that were lost: no_interface, odd (may not leave), ring_full, no_room (no buffer, room or link)."),
    }
}
