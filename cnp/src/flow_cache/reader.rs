//! The control core's half of a worker's flow cache: takes records, reads counts, writes control words.

use std::sync::Arc;

use arrayvec::ArrayVec;
use npcc_pipeline::counters;
use npcc_pipeline::counters::Counter;
use npcc_pipeline::sync::{AtomicU64, Ordering};
use npcc_pipeline::units::{MAX_PORTS, Nanos, PortId};
use rtrb::Consumer;

use super::owed_strikes::OwedStrike;
use super::rings::{Quotas, Waiting};
use super::slot::{Slot, SlotControl, SlotReading};
use super::woken::Woken;
use npcc_roce::cm::copy::CmCopy;
use npcc_roce::sample::{PacketSample, SlotRef};

counters! {
    /// Counters of packets other than data in a worker's flow cache.
    pub struct SeenCounters => SeenCount {
        /// QP1 packets given to the control core.
        messages: Counter => no_metric(),
        /// QP1 packets lost because the ring of their port was full or the budget of their source was used up.
        message_drops: Counter => metric("npcc_cm_packets").tag("kind", "dropped"),
        /// Packets of XRC, RD and vendors' own transports: forwarded, never signalled.
        unsupported: Counter => no_metric(),
    }
}

counters! {
    /// Counters of samples in a worker's flow cache. The worker writes.
    pub struct CacheCounters => CacheCount {
        /// Detailed records of packets given to the control core.
        samples: Counter => metric("npcc_samples"),
        /// Detailed records of packets for which there was no room, or no budget, on the way to the control core.
        sample_drops: Counter => metric("npcc_sample_drops"),
        /// Counters of packets other than data.
        seen: SeenCounters => nested(),
        /// Frames not counted because every way of their set was busy, or their sender began more flows than it may; the report adds them to the samples that found no room.
        #[serde(skip)] cache_full: Counter => no_metric(),
        /// Idle flows that made room for others.
        #[serde(skip)] replaced: Counter => no_metric(),
    }
}

/// Shared half of one worker's flow cache, visible to worker and control core.
#[derive(Debug)]
pub struct CacheShared {
    pub(super) slots: Box<[Slot]>,
    pub(super) woken: Woken,
    /// Time in ns until which returned strikes may wait for a frame. The control core writes.
    pub(super) returns_until: AtomicU64,
    /// Number of slots whose control word lets strikes be owed. The control core writes.
    pub(super) owing: AtomicU64,
    /// Counters of the worker.
    pub counters: CacheCounters,
    pub(super) damaged: [Counter; MAX_PORTS],
    pub(super) lost_messages: [Counter; MAX_PORTS],
}

impl CacheShared {
    /// Number of packets that came in by this port and were not shown to the control core because their ICRC was wrong. Only packets
    /// about to be shown are checked.
    #[must_use]
    pub fn damaged_by(&self, port: PortId) -> u64 {
        self.damaged.get(port.index()).map_or(0, Counter::get)
    }

    /// Number of QP1 packets that came in by this port and were lost on the way to the control core.
    #[must_use]
    pub fn messages_lost_by(&self, port: PortId) -> u64 {
        self.lost_messages.get(port.index()).map_or(0, Counter::get)
    }
}

/// The control core's side of a worker's flow cache.
#[derive(Debug)]
pub struct CacheReader {
    pub(super) waiting: Waiting<PacketSample>,
    pub(super) messages: Waiting<CmCopy>,
    pub(super) owed_strikes: Consumer<OwedStrike>,
    /// Number of entries taken from the ring of flows that send again, modulo 2^32.
    pub(super) woken: u32,
    pub(super) shared: Arc<CacheShared>,
}

impl CacheReader {
    /// Takes the next record.
    pub fn pop(&mut self) -> Option<PacketSample> {
        self.pop_together::<1>(1, &[1; MAX_PORTS]).pop()
    }

    /// Number of ports with waiting records.
    pub(crate) fn ports_waiting(&self) -> usize {
        self.waiting.ports()
    }

    /// Takes the next records in the order of time, up to `most` of them and `N`, and of each port up to its quota.
    pub(crate) fn pop_together<const N: usize>(
        &mut self,
        most: usize,
        quotas: &Quotas,
    ) -> ArrayVec<PacketSample, N> {
        self.waiting.pop_together(most, quotas)
    }

    /// Takes the next QP1 packets of all ports in the order of time, up to `N` of them.
    pub(crate) fn pop_messages<const N: usize>(&mut self) -> ArrayVec<CmCopy, N> {
        self.messages.pop_together(N, &[N; MAX_PORTS])
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.shared.slots.len()
    }

    /// Takes the next slot whose flow sends again after a pause of its data. `lost` counts entries that were overwritten before they were taken: their
    /// flows are found when they are next read.
    pub(crate) fn pop_woken(&mut self, lost: &mut u64) -> Option<u32> {
        self.shared.woken.take(&mut self.woken, lost)
    }

    /// Reads the counts of a slot; `None` if it belongs to another flow by now.
    #[must_use]
    pub fn read(&self, slot: SlotRef) -> Option<SlotReading> {
        self.shared
            .slots
            .get(slot.slot.0 as usize)?
            .read(slot.generation)
    }

    /// Takes the next strike that is owed to a sender as a near CNP.
    #[inline]
    pub fn pop_owed(&mut self) -> Option<OwedStrike> {
        self.owed_strikes.pop().ok()
    }

    /// Writes the control word. A word for a slot that has changed hands is ignored by the worker.
    pub fn set_control(&self, slot: SlotRef, control: SlotControl) {
        if let Some(shared) = self.shared.slots.get(slot.slot.0 as usize) {
            let owed = shared.set_control(slot.generation, control);
            let owing = self.shared.owing.load(Ordering::Relaxed);
            let owing = owing + u64::from(control.owes) - u64::from(owed);
            self.shared.owing.store(owing, Ordering::Relaxed);
        }
    }

    /// Makes the worker look, until then, for frames that can carry returned strikes.
    pub fn expect_returned(&self, until: Nanos) {
        self.shared.returns_until.store(until.0, Ordering::Relaxed);
    }

    /// The worker's counters.
    #[must_use]
    pub fn counters(&self) -> &CacheCounters {
        &self.shared.counters
    }

    /// The shared half, for readers of counters on other threads.
    #[must_use]
    pub fn shared(&self) -> Arc<CacheShared> {
        Arc::clone(&self.shared)
    }
}
