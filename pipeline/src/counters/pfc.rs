//! Counters of priority flow control (IEEE 802.1Qbb): pauses, storms and PFC frames.

use super::json::{micros, priorities};
use super::{BY_PRIORITY, Counter, Gauge, Highest, Mask};
use crate::units::{Nanos, PRIORITIES, Priority};

counters! {
    /// Pauses of one priority of one port, both ways. Times are in ns of the worker's clock; a pause counts when it ends.
    pub struct PauseCounters => PauseCount {
        /// Pauses that the peer began.
        rx_pauses: Counter => metric("npcc_pfc_receive_pauses"),
        /// Time for which the peer had this switch paused.
        #[serde(rename = "rx_paused_us", with = "micros")] #[schemars(with = "f64")] rx_paused_ns: Counter => metric("npcc_pfc_receive_paused_seconds").seconds(),
        /// Length of the peer's last pause that ended.
        #[serde(rename = "rx_last_us", with = "micros")] #[schemars(with = "f64")] rx_last_ns: Gauge => no_metric(),
        /// Length of the peer's longest pause that ended.
        #[serde(rename = "rx_longest_us", with = "micros")] #[schemars(with = "f64")] rx_longest_ns: Highest => no_metric(),
        /// Start of the peer's last pause.
        #[serde(skip)] rx_began: Highest => no_metric(),
        /// Pauses that this switch began.
        tx_pauses: Counter => metric("npcc_pfc_transmit_pauses"),
        /// Time for which this switch had the peer paused.
        #[serde(rename = "tx_paused_us", with = "micros")] #[schemars(with = "f64")] tx_paused_ns: Counter => metric("npcc_pfc_transmit_paused_seconds").seconds(),
        /// Length of this switch's last pause that ended.
        #[serde(rename = "tx_last_us", with = "micros")] #[schemars(with = "f64")] tx_last_ns: Gauge => no_metric(),
        /// Length of this switch's longest pause that ended.
        #[serde(rename = "tx_longest_us", with = "micros")] #[schemars(with = "f64")] tx_longest_ns: Highest => no_metric(),
        /// Start of this switch's last pause.
        #[serde(skip)] tx_began: Highest => no_metric(),
        /// Pause storms that the watchdog found.
        storms: Counter => metric("npcc_pfc_storms").column("STORM DETECTED"),
        /// Pause storms that ended.
        storms_ended: Counter => no_metric().column("RESTORED"),
        /// Time at which the last storm was detected.
        #[serde(skip)] storm_at: Highest => no_metric(),
        /// Time at which the last storm was found to be over.
        #[serde(skip)] storm_ended_at: Highest => no_metric(),
        /// Times at which the peer had this switch paused for half of two detection periods with frames waiting: short of a storm.
        storm_warnings: Counter => metric("npcc_pfc_storm_warnings").column("WARNED"),
        /// Start of the last storm warning.
        #[serde(skip)] storm_warned_at: Highest => no_metric(),
        /// Frames dropped because of a storm on their way out.
        storm_tx_dropped: Counter => metric("npcc_pfc_storm_drops").tag("direction", "tx").column("TX DROP")
            .help("Frames dropped because of a storm: on their way out (tx), and on the port they came in by (rx)."),
        /// Frames dropped because of a storm on the port they came in by.
        storm_rx_dropped: Counter => metric("npcc_pfc_storm_drops").tag("direction", "rx").column("RX DROP"),
    }
}

counters! {
    /// Flow-control state and counters of one port.
    pub struct FlowCounters => FlowCount {
        /// Pauses by priority, 0 first.
        #[serde(skip)] priorities: [PauseCounters; PRIORITIES] => nested().by(BY_PRIORITY),
        /// 1 while the peer has this switch paused.
        #[serde(with = "priorities")] #[schemars(with = "Vec<u8>")] paused: Mask => metric("npcc_pfc_paused").by(BY_PRIORITY),
        /// 1 while this switch has the peer paused.
        #[serde(with = "priorities")] #[schemars(with = "Vec<u8>")] asserted: Mask => metric("npcc_pfc_asserted").by(BY_PRIORITY),
        /// 1 while the watchdog finds a pause storm.
        #[serde(with = "priorities")] #[schemars(with = "Vec<u8>")] storm: Mask => metric("npcc_pfc_storm").by(BY_PRIORITY),
        /// 1 while the peer pauses for half of the time with frames waiting, short of a storm.
        #[serde(with = "priorities")] #[schemars(with = "Vec<u8>")] storm_warning: Mask => metric("npcc_pfc_storm_warning").by(BY_PRIORITY),
        /// Pauses begun because the buffer filled.
        xoff_buffer: Counter => metric("npcc_pfc_xoff").tag("cause", "buffer").column("BY BUFFER")
            .help("Pauses begun by cause: the buffer filled, or the worker (cpu) fell behind the receive ring."),
        /// Pauses begun because the worker fell behind the receive ring.
        xoff_cpu: Counter => metric("npcc_pfc_xoff").tag("cause", "cpu").column("BY CPU"),
        /// Refreshes that went out after the peer's pause had run out.
        #[serde(rename = "late_refreshes")] late: Counter => metric("npcc_pfc_late_refreshes"),
        /// Pause frames that were due and found no buffer, or no room in the device.
        #[serde(rename = "failed_pauses")] failed: Counter => metric("npcc_pfc_failed_frames"),
        /// Longest time from a wanted XOFF to the frame in the device.
        #[serde(rename = "xoff_us", with = "micros")] #[schemars(with = "f64")] response_ns: Highest => metric("npcc_pfc_xoff_longest_seconds").seconds(),
        /// Transmit queues whose driver's answers say what the device's ring holds; the others are accounted by time alone, and may fill while the link holds.
        tx_answers: Gauge => metric("npcc_port_answering_transmit_queues"),
        /// Times of 1 ms in which a device's transmit ring kept what it had, each with up to 64 frames given past the bound.
        tx_held: Counter => metric("npcc_port_transmit_held_periods"),
        /// Times of 10 ms in which frames waited and the device took none, though its link was up and no PFC paused it. A peer that pauses the whole link (802.3x) has that effect, too.
        tx_stalled: Counter => metric("npcc_port_transmit_stalled_periods"),
        /// 802.3x pause frames received, which are ignored.
        global_pause: Counter => metric("npcc_pfc_global_pause_frames"),
        /// MAC control frames received that are neither pause nor PFC, or are malformed.
        invalid: Counter => metric("npcc_pfc_invalid_frames"),
    }
}

impl FlowCounters {
    /// Returns the total time until `now` for which the peer had `priority` paused. A pause still in force counts, unless it
    /// is a storm: the watchdog empties the queue then.
    #[must_use]
    pub fn paused_time(&self, priority: Priority, now: Nanos) -> Nanos {
        let lasts = (self.paused.get() & !self.storm.get()) & u64::from(priority.bit()) != 0;
        let of = self.priorities.get(priority.index());
        of.map_or(Nanos::ZERO, |of| {
            let begun = if lasts { of.rx_began.get() } else { now.0 };
            Nanos(of.rx_paused_ns.get()) + now.since(Nanos(begun))
        })
    }
}

counters! {
    /// PFC frames by the priorities they name, XON included.
    pub struct PfcCounters => PfcCount {
        /// PFC frames received that name the priority, XON included.
        rx: [Counter; PRIORITIES] => metric("npcc_pfc_receive_frames").by(BY_PRIORITY).kept("pfc_rx"),
        /// PFC frames sent that name the priority, XON included.
        tx: [Counter; PRIORITIES] => metric("npcc_pfc_transmit_frames").by(BY_PRIORITY).kept("pfc_tx"),
    }
}
