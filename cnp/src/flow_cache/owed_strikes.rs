//! Strikes of the ECN curve that a worker owes to the sender instead of marking the frame: one ring from worker to control core.
//!
//! Law: a strike is owed only while the ring has room and the control word of its flow says so; otherwise the frame is marked. A strike that the
//! control core cannot pay comes back by [`SlotControl::returned`](super::SlotControl::returned), and is written on the flow's next
//! frame that may carry CE.

use npcc_pipeline::frame::{FlowSlot, Meta};
use npcc_pipeline::sync::Ordering;
use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::FlowCache;
use npcc_roce::sample::SlotRef;

/// Capacity of the ring of strikes. A port of 100G sends fewer than 3,000 frames in a tick of 20 us, however short they are.
pub(super) const OWED_STRIKES: usize = 4_096;

/// One owed strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwedStrike {
    /// Slot of the flow.
    pub slot: SlotRef,
    /// Port of the queue that was struck.
    pub egress: PortId,
    /// Priority of the queue that was struck.
    pub priority: Priority,
}

impl FlowCache {
    /// Owes a strike on a frame; see [`FlowTap::owe`](npcc_pipeline::tap::FlowTap::owe).
    pub(super) fn owe_strike(&mut self, meta: &Meta) -> bool {
        let shared = self.shared.slots.get(meta.slot.0 as usize);
        let Some(shared) = shared.filter(|slot| slot.owes()) else {
            return false;
        };
        let slot = SlotRef {
            slot: meta.slot,
            generation: shared.generation(),
        };
        let (egress, priority) = (meta.egress, meta.priority);
        let strike = OwedStrike {
            slot,
            egress,
            priority,
        };
        self.owed_strikes.push(strike).is_ok()
    }

    /// Takes a returned strike; see [`FlowTap::redeem`](npcc_pipeline::tap::FlowTap::redeem).
    pub(super) fn redeem_strike(&mut self, slot: FlowSlot) -> bool {
        let at = slot.0 as usize;
        let (Some(shared), Some(entry)) = (self.shared.slots.get(at), self.entries.get_mut(at))
        else {
            return false;
        };
        let owed = entry.redeemed != shared.returned();
        entry.redeemed = entry.redeemed.wrapping_add(u8::from(owed));
        owed
    }

    /// Returns true if the control word of any slot lets strikes be owed.
    pub(super) fn has_owing(&self) -> bool {
        self.shared.owing.load(Ordering::Relaxed) > 0
    }

    /// Returns true if returned strikes may wait for a frame.
    pub(super) fn expects_returned(&self, now: Nanos) -> bool {
        now.0 < self.shared.returns_until.load(Ordering::Relaxed)
    }
}
