//! What the housekeeping thread counts.

use npcc_pipeline::counters;
use npcc_pipeline::counters::{Counter, Gauge};
use npcc_pipeline::punt::PuntClass;

counters! {
    /// A class of punted frames on the way to Linux.
    pub struct DeliveredCounters => DeliveredCount {
        /// Frames that Linux took.
        delivered: Counter,
        /// Frames that Linux refused: its interface is down, or its queue is full.
        refused: Counter,
        /// Bytes that wait in the workers' queues.
        waiting: Gauge,
    }
}

counters! {
    /// The housekeeping thread.
    pub struct LinuxStats => LinuxCount {
        /// In the order of [`PuntClass::ALL`].
        classes: [DeliveredCounters; PuntClass::COUNT] => (skip),
        /// Frames of ports or VLANs that have no interface in Linux.
        no_interface: Counter,
        /// Frames that Linux sent, of BFD, routing protocols, ARP, neighbour discovery and LLDP.
        sent_control: Counter,
        /// Other frames that Linux sent.
        sent: Counter,
        /// Frames of Linux that may not leave: cut short, MAC control, or with a tag.
        sent_odd: Counter,
        /// Frames of Linux that the ring to their worker had no room for.
        sent_full: Counter,
        /// Errors of Linux's interfaces on reading.
        host_errors: Counter,
        /// Turns of the thread.
        turns: Counter,
    }
}
