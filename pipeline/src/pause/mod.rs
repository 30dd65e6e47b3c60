//! Priority flow control of one port (IEEE 802.1Qbb): asking the peer to pause, obeying its pauses, and the watchdog.
//!
//! Law: a priority nobody asked to pause is never held back; every pause we asked for ends once the group has drained; a
//! pause we obey ends with its quanta, at the latest. 802.3x pause is ignored: it would stop what must not stop. Does not
//! know the buffer: which priorities should pause is handed in.

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
use crate::wire::mac_control::{self, Control};

/// One port's flow control.
#[derive(Debug, Clone)]
pub struct PauseConfig {
    /// Bit n: the peer is asked to pause priority n.
    pub send: u8,
    /// Bit n: the peer's pauses of priority n are obeyed.
    pub honour: u8,
    /// Speed of the link, by which quanta are reckoned.
    pub rate: BitRate,
    /// Full receive bursts in a row from which the peer is paused because the worker falls behind; 0: never, or by what the
    /// driver tells.
    pub pressure: u16,
    /// What is done about a pause without end.
    pub watchdog: Option<WatchdogConfig>,
}

impl PauseConfig {
    /// Neither sends nor obeys.
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

/// What a PFC frame asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// The priorities it names, as a mask.
    pub classes: u8,
    /// How long each is to pause; 0 lets it go on.
    pub quanta: [u16; PRIORITIES],
}

impl Asked {
    /// This, and then `later`.
    #[must_use]
    pub fn then(mut self, later: &Asked) -> Asked {
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

/// One port's flow control at work.
#[derive(Debug)]
pub struct PortPause {
    mac: Mac,
    heard: PauseReceiver,
    sender: PauseSender,
    pressure: Pressure,
    watchdog: Option<Watchdog>,
    /// When a priority that is not yet paused was first wanted to be.
    wanted_since: [Nanos; PRIORITIES],
    wanted: u8,
    /// Priorities whose transmit queue the device does not empty.
    stuck: u8,
}

impl PortPause {
    /// Nothing paused, either way.
    #[must_use]
    pub fn new(config: &PauseConfig, mac: Mac) -> PortPause {
        PortPause {
            mac,
            heard: PauseReceiver::new(config.honour, config.rate),
            sender: PauseSender::new(config.send, config.rate, mac),
            pressure: Pressure::new(config.pressure),
            watchdog: config.watchdog.clone().map(Watchdog::new),
            wanted_since: [Nanos::ZERO; PRIORITIES],
            wanted: 0,
            stuck: 0,
        }
    }

    /// Quanta are reckoned by another speed from now on; a pause that lasts ends when it would have.
    pub fn set_speed(&mut self, link: BitRate) {
        self.heard.set_rate(link);
        self.sender.set_rate(link);
    }

    /// The link went down: what either side has paused is forgotten, a storm too.
    pub fn forget(&mut self, now: Nanos, counters: &FlowCounters) {
        self.heard.forget(now, counters);
        self.sender.forget(now, counters);
        self.pressure.forget();
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.forget(now, counters);
        }
        self.wanted = 0;
        self.stuck = 0;
    }

    /// Takes a MAC control frame in. `waiting` tells since when a priority's queue is not empty.
    #[cold]
    pub fn receive(
        &mut self,
        frame: &[u8],
        now: Nanos,
        waiting: impl Fn(Priority) -> Option<Nanos>,
        counters: &PortCounters,
    ) {
        if let Some(heard) = self.listen(frame, counters) {
            self.hear(&heard, now, waiting, counters);
        }
    }

    /// Obeys a pause that came in here or by another worker's queue. `waiting` as for [`PortPause::receive`].
    #[cold]
    pub fn hear(
        &mut self,
        asked: &Asked,
        now: Nanos,
        waiting: impl Fn(Priority) -> Option<Nanos>,
        counters: &PortCounters,
    ) {
        let classes = (asked.classes, &asked.quanta);
        self.heard.take(classes, now, waiting, &counters.flow);
    }

    /// Reads and counts a MAC control frame; what it asks, if it is PFC.
    #[cold]
    #[must_use]
    pub fn listen(&self, frame: &[u8], counters: &PortCounters) -> Option<Asked> {
        match mac_control::read(frame, self.mac) {
            Control::Pfc { classes, quanta } => {
                for (priority, count) in Priority::all().zip(&counters.pfc.rx) {
                    if classes & priority.bit() != 0 {
                        count.add(1);
                    }
                }
                return Some(Asked { classes, quanta });
            }
            Control::Pause => counters.flow.global_pause.add(1),
            Control::Invalid => counters.flow.invalid.add(1),
        }
        None
    }

    /// The peer has paused nothing.
    #[inline]
    #[must_use]
    pub const fn is_quiet(&self) -> bool {
        self.heard.is_quiet()
    }

    /// Priorities that may not send now. `waiting` as for [`PortPause::receive`].
    #[inline]
    pub fn held_back(
        &mut self,
        now: Nanos,
        waiting: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> u8 {
        if self.heard.is_quiet() {
            return self.stuck;
        }
        let paused = self.heard.paused(now, waiting, counters);
        self.stuck | paused & !self.watchdog.as_ref().map_or(0, Watchdog::overrides)
    }

    /// The priorities of which the device takes no more until told otherwise: it obeys the peer's pauses by itself.
    pub const fn set_stuck(&mut self, priorities: u8) {
        self.stuck = priorities;
    }

    /// Priorities whose frames are dropped because of a storm.
    #[inline]
    #[must_use]
    pub fn dropping(&self) -> u8 {
        self.watchdog.as_ref().map_or(0, Watchdog::drops)
    }

    /// A storm goes on that a process before this one found at `began`; not where pauses of the priority are not obeyed any more, or
    /// nobody watches. Whether it does.
    pub fn resume(&mut self, priority: Priority, began: Nanos, counters: &FlowCounters) -> bool {
        match &mut self.watchdog {
            Some(watchdog) if self.heard.honours(priority) => {
                watchdog.resume(priority, began, counters);
                true
            }
            _ => false,
        }
    }

    /// Priorities whose senders can be paused.
    #[inline]
    #[must_use]
    pub const fn classes(&self) -> u8 {
        self.sender.classes()
    }

    /// Priorities the peer is paused in now.
    #[inline]
    #[must_use]
    pub const fn asserted(&self) -> u8 {
        self.sender.asserted()
    }

    /// A burst of `frames` was received; `full` is what a burst holds.
    #[inline]
    pub fn burst(&mut self, frames: usize, full: usize) {
        self.pressure.burst(frames >= full, frames * 2 < full);
    }

    /// The driver told, after a full burst, whether the receive ring is over half full.
    #[inline]
    pub const fn ring(&mut self, over_half: bool) {
        self.pressure.told(over_half);
    }

    /// Nothing can be received this turn, here or by another worker that receives from the port.
    #[cold]
    pub fn stall(&mut self) {
        self.pressure.stall();
    }

    /// Once a turn, by a worker that receives from another's port: whether it falls behind.
    pub fn pressed(&mut self) -> bool {
        self.pressure.turn()
    }

    /// The frame to send now, ahead of everything, if any. `by_buffer` are the priorities whose groups want a pause.
    /// Without [`PortPause::sent`] the same frame is due again.
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

    /// The device took `frame`.
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

    /// Lets the watchdog look, when it is its time. `waiting` as for [`PortPause::receive`].
    #[inline]
    pub fn watch(
        &mut self,
        now: Nanos,
        waiting: impl Fn(Priority) -> Option<Nanos>,
        counters: &FlowCounters,
    ) -> Option<Change> {
        let watchdog = self.watchdog.as_mut()?;
        if !watchdog.is_due(now) {
            return None;
        }
        self.heard.paused(now, &waiting, counters);
        watchdog.poll(now, &self.heard, waiting, counters)
    }
}
