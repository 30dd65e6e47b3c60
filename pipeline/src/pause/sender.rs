//! Pauses that we request of the peer: XOFF, refreshed after half its duration, and XON.

use crate::counters::{FlowCounters, PortCounters};
use crate::units::{BitRate, Mac, Nanos, PRIORITIES, Priority};
use crate::wire::mac_control::{self, FRAME_LEN, time_of};

/// Quanta of an XOFF: the maximum.
const QUANTA: u16 = u16::MAX;

/// A PFC frame to be sent ahead of everything.
#[derive(Debug, Clone, Copy)]
pub struct PfcFrame {
    /// Bytes of the frame, without FCS.
    pub bytes: [u8; FRAME_LEN],
    xoff: u8,
    xon: u8,
    by_buffer: u8,
}

impl PfcFrame {
    /// Returns the priorities it pauses.
    #[must_use]
    pub const fn xoff(&self) -> u8 {
        self.xoff
    }

    /// Returns the priorities it resumes.
    #[must_use]
    pub const fn xon(&self) -> u8 {
        self.xon
    }
}

/// State of the pauses sent to the peer.
#[derive(Debug)]
pub struct PauseSender {
    mac: Mac,
    classes: u8,
    asserted: u8,
    /// Duration of an XOFF at the peer.
    lasts: Nanos,
    sent_at: Nanos,
    since: [Nanos; PRIORITIES],
}

impl PauseSender {
    /// Returns a sender that may pause `classes` of a peer on a link of `rate`.
    #[must_use]
    pub fn new(classes: u8, rate: BitRate, mac: Mac) -> PauseSender {
        PauseSender {
            mac,
            classes,
            asserted: 0,
            lasts: time_of(QUANTA, rate),
            sent_at: Nanos::ZERO,
            since: [Nanos::ZERO; PRIORITIES],
        }
    }

    /// Changes the link rate by which the duration of an XOFF is computed.
    pub fn set_rate(&mut self, rate: BitRate) {
        self.lasts = time_of(QUANTA, rate);
    }

    /// Ends all pauses: the peer has forgotten them.
    pub fn forget(&mut self, now: Nanos, counters: &FlowCounters) {
        for priority in Priority::all_of(self.asserted) {
            self.end(priority, now, counters);
        }
        self.asserted = 0;
        counters.asserted.set(0);
    }

    fn end(&self, priority: Priority, now: Nanos, counters: &FlowCounters) {
        let since = self.since.get(priority.index()).copied();
        let lasted = now.since(since.unwrap_or(now)).0;
        if let Some(pauses) = counters.priorities.get(priority.index()) {
            pauses.tx_paused_ns.add(lasted);
            pauses.tx_last_ns.set(lasted);
            pauses.tx_longest_ns.raise(lasted);
        }
    }

    /// Returns the priorities that may be paused.
    #[inline]
    #[must_use]
    pub const fn classes(&self) -> u8 {
        self.classes
    }

    /// Returns the priorities that are paused.
    #[inline]
    #[must_use]
    pub const fn asserted(&self) -> u8 {
        self.asserted
    }

    /// Returns the frame that brings the peer to `wanted`, or refreshes it there; `None` if no frame is due.
    #[inline]
    #[must_use]
    pub fn due(&self, wanted: u8, by_buffer: u8, now: Nanos) -> Option<PfcFrame> {
        if wanted == self.asserted && (wanted == 0 || now.since(self.sent_at).0 < self.lasts.0 / 2)
        {
            return None;
        }
        Some(self.frame(wanted, by_buffer))
    }

    #[cold]
    fn frame(&self, wanted: u8, by_buffer: u8) -> PfcFrame {
        let xon = self.asserted & !wanted;
        let mut quanta = [0; PRIORITIES];
        for (priority, quanta) in Priority::all().zip(&mut quanta) {
            if wanted & priority.bit() != 0 {
                *quanta = QUANTA;
            }
        }
        PfcFrame {
            bytes: mac_control::build(self.mac, wanted | xon, quanta),
            xoff: wanted,
            xon,
            by_buffer,
        }
    }

    /// Accounts for `frame`, which was sent.
    pub fn sent(&mut self, frame: &PfcFrame, now: Nanos, counters: &PortCounters) {
        let flow = &counters.flow;
        let begun = frame.xoff & !self.asserted;
        if self.asserted & frame.xoff != 0 && now.since(self.sent_at) > self.lasts {
            flow.late.add(1);
        }
        for priority in Priority::all() {
            let bit = priority.bit();
            if (frame.xoff | frame.xon) & bit != 0
                && let Some(count) = counters.pfc.tx.get(priority.index())
            {
                count.add(1);
            }
            let (Some(since), Some(pauses)) = (
                self.since.get_mut(priority.index()),
                flow.priorities.get(priority.index()),
            ) else {
                continue;
            };
            if begun & bit != 0 {
                *since = now;
                pauses.tx_pauses.add(1);
                pauses.tx_began.set(now.0);
                if frame.by_buffer & bit != 0 {
                    flow.xoff_buffer.add(1);
                } else {
                    flow.xoff_cpu.add(1);
                }
            }
        }
        for priority in Priority::all_of(frame.xon) {
            self.end(priority, now, flow);
        }
        self.asserted = frame.xoff;
        self.sent_at = now;
        flow.asserted.set(u64::from(self.asserted));
    }
}
