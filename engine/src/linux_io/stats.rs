//! Counters of the housekeeping thread.

use npcc_pipeline::counters;
use npcc_pipeline::counters::{Counter, Gauge};
use npcc_pipeline::punt::PuntClass;

counters! {
    /// Counters of a class of punted frames on the way to Linux. The report adds them to the workers' counters.
    pub struct DeliveredCounters => DeliveredCount {
        /// Frames that Linux took.
        delivered: Counter => no_metric(),
        /// Frames that Linux refused: its interface is down, or its queue is full.
        refused: Counter => no_metric(),
        /// Bytes that wait in the workers' queues.
        waiting: Gauge => no_metric(),
    }
}

counters! {
    /// Counters of the housekeeping thread.
    pub struct LinuxStats => LinuxCount {
        /// Counters of each class, in the order of [`PuntClass::ALL`].
        #[serde(skip)] classes: [DeliveredCounters; PuntClass::COUNT] => nested(),
        /// Frames of ports or VLANs that have no interface in Linux.
        no_interface: Counter => metric("npcc_linux_lost_frames").tag("cause", "no_interface"),
        /// Frames that Linux sent, of BFD, routing protocols, ARP, neighbour discovery and LLDP.
        sent_control: Counter => metric("npcc_linux_receive_frames").tag("kind", "control")
            .help("Frames that Linux sent: of BFD, routing protocols, ARP, neighbour discovery and LLDP (control), and others."),
        /// Other frames that Linux sent.
        sent: Counter => metric("npcc_linux_receive_frames").tag("kind", "other"),
        /// Frames of Linux that may not leave: cut short, MAC control, or with a tag.
        sent_odd: Counter => metric("npcc_linux_lost_frames").tag("cause", "odd"),
        /// Frames of Linux that the ring to their worker had no room for.
        sent_full: Counter => metric("npcc_linux_lost_frames").tag("cause", "ring_full"),
        /// Errors of Linux's interfaces on reading.
        host_errors: Counter => metric("npcc_linux_interface_errors"),
        /// Turns of the thread.
        turns: Counter => no_metric(),
    }
}
