//! Priority flow control of one port (IEEE 802.1Qbb): pausing the peer, obeying its pauses, and the watchdog.
//!
//! Law: a priority the peer did not pause is never held back; every pause of ours ends once the group has drained; a pause we
//! obey ends with its quanta, at the latest. 802.3x pause is ignored: it would stop what must not stop. This module does not
//! know the buffer: the caller passes the priorities that should pause.

mod duty;
mod pressure;
mod receiver;
mod sender;
mod watchdog;

pub use pressure::Pressure;
pub use receiver::PauseReceiver;
pub use sender::{PauseSender, PfcFrame};
pub use watchdog::{Change, StormAction, Watchdog, WatchdogConfig};

use crate::counters::{FlowCounters, PortCounters};
use crate::units::{BitRate, Mac, Nanos, PRIORITIES, Priority};
use crate::wire::mac_control::{self, MacControl};

/// Flow-control configuration of one port.
#[derive(Debug, Clone)]
pub struct PauseConfig {
    /// Set of priorities in which the peer may be paused; bit n is priority n.
    pub send: u8,
    /// Set of priorities in which the peer's pauses are obeyed; bit n is priority n.
    pub honour: u8,
    /// Speed of the link, which determines the duration of quanta.
    pub rate: BitRate,
    /// Number of consecutive full receive bursts from which the peer is paused because the worker falls behind; 0: never, or
    /// by the fill level that the driver reports.
    pub pressure: u16,
    /// Watchdog for pause storms; `None` if off.
    pub watchdog: Option<WatchdogConfig>,
}

impl PauseConfig {
    /// Returns a configuration that neither sends nor obeys pauses.
    #[must_use]
    pub const fn off() -> PauseConfig {
        PauseConfig {
            send: 0,
            honour: 0,
            rate: BitRate(10_000_000_000),
            pressure: 0,
            watchdog: None,
        }
    }
}

/// Pause request of a PFC frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseRequest {
    /// Priorities it names, as a mask.
    pub classes: u8,
    /// Pause duration of each priority in quanta; 0 resumes it.
    pub quanta: [u16; PRIORITIES],
}

impl PauseRequest {
    /// Returns the request that combines this one with a `later` one.
    #[must_use]
    pub fn then(mut self, later: &PauseRequest) -> PauseRequest {
        self.classes |= later.classes;
        for (priority, (quanta, later_quanta)) in
            Priority::all().zip(self.quanta.iter_mut().zip(later.quanta))
        {
            if later.classes & priority.bit() != 0 {
                *quanta = later_quanta;
            }
        }
        self
    }
}

/// Flow-control state of one port.
#[derive(Debug)]
pub struct PortPause {
    mac: Mac,
    receiver: PauseReceiver,
    sender: PauseSender,
    pressure: Pressure,
    watchdog: Option<Watchdog>,
    /// Time at which a pause of each priority, not yet sent, was first wanted.
    wanted_since: [Nanos; PRIORITIES],
    wanted: u8,
    /// Priorities whose transmit queue takes no more frames: the device does not empty it, or it is filled up to the
    /// worker's bound.
    tx_blocked: u8,
}

impl PortPause {
    /// Returns a state in which nothing is paused, either way.
    #[must_use]
    pub fn new(config: &PauseConfig, mac: Mac) -> PortPause {
        PortPause {
            mac,
            receiver: PauseReceiver::new(config.honour, config.rate),
            sender: PauseSender::new(config.send, config.rate, mac),
            pressure: Pressure::new(config.pressure),
            watchdog: config.watchdog.clone().map(Watchdog::new),
            wanted_since: [Nanos::ZERO; PRIORITIES],
            wanted: 0,
            tx_blocked: 0,
        }
    }

    /// Changes the speed by which quanta are converted; the end of a pause in force stays the same.
    pub fn set_speed(&mut self, link: BitRate) {
        self.receiver.set_rate(link);
        self.sender.set_rate(link);
    }

    /// Forgets the pauses of either side, and storms: the link went down.
    pub fn forget(&mut self, now: Nanos, counters: &FlowCounters) {
        self.receiver.forget(now, counters);
        self.sender.forget(now, counters);
        self.pressure.forget();
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.forget(now, counters);
        }
        self.wanted = 0;
        self.tx_blocked = 0;
    }

    /// Receives a MAC control frame. `nonempty_since` returns the time since which a priority's queue is not empty.
    #[cold]
    pub fn on_mac_control(
        &mut self,
        frame: &[u8],
        now: Nanos,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &PortCounters,
    ) {
        if let Some(request) = self.parse_pfc(frame, counters) {
            self.apply_pause(&request, now, nonempty_since, counters);
        }
    }

    /// Applies a pause that was received here or on another worker's queue. `nonempty_since` as for [`PortPause::on_mac_control`].
    #[cold]
    pub fn apply_pause(
        &mut self,
        request: &PauseRequest,
        now: Nanos,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &PortCounters,
    ) {
        let classes = (request.classes, &request.quanta);
        self.receiver
            .take(classes, now, nonempty_since, &counters.flow);
    }

    /// Parses and counts a MAC control frame; returns its request if it is PFC.
    #[cold]
    #[must_use]
    pub fn parse_pfc(&self, frame: &[u8], counters: &PortCounters) -> Option<PauseRequest> {
        match mac_control::read(frame, self.mac) {
            MacControl::Pfc { classes, quanta } => {
                for (priority, count) in Priority::all().zip(&counters.pfc.rx) {
                    if classes & priority.bit() != 0 {
                        count.add(1);
                    }
                }
                return Some(PauseRequest { classes, quanta });
            }
            MacControl::Pause => counters.flow.global_pause.add(1),
            MacControl::Invalid => counters.flow.invalid.add(1),
        }
        None
    }

    /// Returns true if the peer has paused nothing.
    #[inline]
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.receiver.is_quiet()
    }

    /// Returns the priorities that may not send now. `nonempty_since` as for [`PortPause::on_mac_control`].
    #[inline]
    pub fn blocked(
        &mut self,
        now: Nanos,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> u8 {
        if self.receiver.is_quiet() {
            return self.tx_blocked;
        }
        let paused = self.receiver.paused(now, nonempty_since, counters);
        self.tx_blocked | paused & !self.watchdog.as_ref().map_or(0, Watchdog::overrides)
    }

    /// Sets the priorities whose transmit queue takes no more frames: the device does not empty it, perhaps as it obeys the
    /// peer's pauses by itself, or it is filled up to the worker's bound.
    pub const fn set_tx_blocked(&mut self, priorities: u8) {
        self.tx_blocked = priorities;
    }

    /// Returns the priorities whose frames are dropped because of a storm.
    #[inline]
    #[must_use]
    pub fn dropping(&self) -> u8 {
        self.watchdog.as_ref().map_or(0, Watchdog::drops)
    }

    /// Continues a storm that the process before this one detected at `began`. Returns true if it is continued: not if pauses
    /// of the priority are no longer obeyed, or there is no watchdog.
    pub fn resume(&mut self, priority: Priority, began: Nanos, counters: &FlowCounters) -> bool {
        match &mut self.watchdog {
            Some(watchdog) if self.receiver.honours(priority) => {
                watchdog.resume(priority, began, counters);
                true
            }
            _ => false,
        }
    }

    /// Returns the priorities whose senders can be paused.
    #[inline]
    #[must_use]
    pub const fn classes(&self) -> u8 {
        self.sender.classes()
    }

    /// Returns the priorities in which the peer is paused now.
    #[inline]
    #[must_use]
    pub const fn asserted(&self) -> u8 {
        self.sender.asserted()
    }

    /// Reports a received burst of `frames`; `full` is the capacity of a burst.
    #[inline]
    pub fn burst(&mut self, frames: usize, full: usize) {
        self.pressure.burst(frames >= full, frames * 2 < full);
    }

    /// Reports the driver's answer, after a full burst, whether the receive ring is over half full.
    #[inline]
    pub const fn ring(&mut self, over_half: bool) {
        self.pressure.reported(over_half);
    }

    /// Reports that nothing can be received in this iteration, here or by another worker that receives from the port.
    #[cold]
    pub fn stall(&mut self) {
        self.pressure.stall();
    }

    /// Returns true if this worker falls behind; called once an iteration by a worker that receives from another's port.
    pub fn pressed(&mut self) -> bool {
        self.pressure.turn()
    }

    /// Returns the PFC frame to send now, ahead of everything, if any. `by_buffer` are the priorities whose groups want a
    /// pause. The same frame is due again until [`PortPause::sent`] is called.
    #[inline]
    pub fn due(&mut self, by_buffer: u8, now: Nanos) -> Option<PfcFrame> {
        let classes = self.sender.classes();
        if classes == 0 {
            return None;
        }
        let by_cpu = self.pressure.turn();
        // A group under a storm is dropped, not paused: pausing would pass the storm on.
        let wanted = (by_buffer | if by_cpu { classes } else { 0 }) & classes & !self.dropping();
        let fresh = wanted & !self.wanted;
        if fresh != 0 {
            for priority in Priority::all_of(fresh) {
                if let Some(since) = self.wanted_since.get_mut(priority.index()) {
                    *since = now;
                }
            }
        }
        self.wanted = wanted;
        self.sender.due(wanted, by_buffer, now)
    }

    /// Reports that the device took `frame`.
    #[cold]
    pub fn sent(&mut self, frame: &PfcFrame, now: Nanos, counters: &PortCounters) {
        let began = frame.xoff() & !self.sender.asserted();
        for priority in Priority::all_of(began) {
            if let Some(since) = self.wanted_since.get(priority.index()) {
                counters.flow.response_ns.raise(now.since(*since).0);
            }
        }
        self.sender.sent(frame, now, counters);
    }

    /// Polls the watchdog if it is due. `nonempty_since` as for [`PortPause::on_mac_control`].
    #[inline]
    pub fn watch(
        &mut self,
        now: Nanos,
        nonempty_since: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> Option<Change> {
        let watchdog = self.watchdog.as_mut()?;
        if !watchdog.is_due(now) {
            return None;
        }
        self.receiver.paused(now, &nonempty_since, counters);
        watchdog.poll(now, &self.receiver, nonempty_since, counters)
    }
}
