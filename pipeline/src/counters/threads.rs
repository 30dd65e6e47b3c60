//! Counters of the threads around the packet path: a worker's loop, the control loop, the housekeeping thread, and of the devices.

use super::{Counter, Gauge};
use crate::named::Named;
use crate::punt::PuntClass;

crate::named! {
    /// Stage of a turn, in the order of a packet's way.
    pub enum Stage {
        /// Taking a burst from the driver, and work just before it: new routes, the other workers' buffer accounts, PFC and watchdog of the
        /// port polled before.
        Receive = "receive",
        /// Headers, classification, route, rewriting; sorting into runs; and the decision about frames that are not forwarded.
        Parse = "parse",
        /// WRED, buffer admission, NPCC, into the queues.
        Enqueue = "enqueue",
        /// Out of the queues: pause, scheduler, marking.
        Schedule = "schedule",
        /// Handing frames to the driver.
        Transmit = "transmit",
        /// All other work: commands, CNPs, frames from Linux and from other workers, accounts.
        Other = "other",
    }
}

counters! {
    /// Totals of the timed turns.
    pub struct StageCounters => StageCount {
        /// Cycles of the turns that were timed, by stage; divided by the timed frames, what a frame costs.
        cycles: [Counter; Stage::COUNT] => metric("npcc_worker_timed_cycles").by(&[("stage", Stage::NAMES)]),
        /// Frames received in turns that were timed: one busy turn in 64.
        frames: Counter => metric("npcc_worker_timed_frames"),
    }
}

counters! {
    /// Statistics that a worker publishes.
    pub struct WorkerStats => WorkerCount {
        /// Turns of the worker's loop.
        loops: Counter => metric("npcc_worker_turns"),
        /// Turns of the worker's loop in which a frame moved.
        busy: Counter => metric("npcc_worker_busy_turns"),
        /// Longest turn of the worker's loop since watermarks were cleared.
        longest_ns: Gauge => metric("npcc_worker_turn_longest_seconds").seconds(),
        /// Longest turn in ns before that.
        #[serde(skip)] longest_before_ns: Gauge => no_metric(),
        /// CNPs that the worker could not queue: packet buffers, shared buffer or queue store exhausted, or the link down.
        cnp_lost: Counter => metric("npcc_worker_lost_cnps").column("CNP LOST"),
        /// Times the worker slept.
        naps: Counter => metric("npcc_worker_naps"),
        /// Times something woke the worker: a frame, or another thread with work for it.
        woken: Counter => metric("npcc_worker_wakes"),
        /// Time the worker slept.
        #[serde(skip)] slept_ns: Counter => metric("npcc_worker_slept_seconds").seconds(),
        /// Cycles by stage of the timed turns.
        #[serde(skip)] stages: StageCounters => nested(),
    }
}

counters! {
    /// Statistics of the loop.
    pub struct ControlStats => ControlCount {
        /// Calls of the control core that came late by more than half of the time between two calls.
        #[serde(rename = "ticks_late")] late: Counter => metric("npcc_late_ticks").kept("ticks_late"),
        /// Calls of the control core that came early because a queue had just risen to hard.
        #[serde(rename = "ticks_early")] early: Counter => metric("npcc_early_ticks").kept("ticks_early"),
        /// CNPs given to a worker because an operator requested them (`npcc-switch cnp send`). NPCC's own counts, caps and flows know nothing of them.
        #[serde(rename = "cnps_ordered")] ordered: Counter => metric("npcc_ordered_cnps").kept("cnps_ordered"),
    }
}

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

counters! {
    /// Counters that the device keeps itself: only the `DeviceDrops` they read as are used.
    pub struct DeviceCounters => DeviceDrops {
        /// The receive ring was full.
        rx_missed: Counter => metric("npcc_port_device_drops").tag("kind", "rx_missed").column("rx_missed")
            .help("Frames the device itself lost: rx_missed (ring full), rx_nombuf (no buffer), rx_errors, tx_errors."),
        /// No buffer was free.
        rx_nombuf: Counter => metric("npcc_port_device_drops").tag("kind", "rx_nombuf").column("rx_nombuf"),
        /// Received damaged.
        rx_errors: Counter => metric("npcc_port_device_drops").tag("kind", "rx_errors").column("rx_errors"),
        /// Not sent.
        tx_errors: Counter => metric("npcc_port_device_drops").tag("kind", "tx_errors").column("tx_errors"),
    }
}
