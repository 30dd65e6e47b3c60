//! Slot of one flow in a worker's cache: its key, its counts, and whether its next packet may have to be shown, in one line of 64 bytes;
//! every word has one writer. The control core reads the counts and writes the control word.
//!
//! The generation is the sequence of a seqlock ([`crate::seqlock`]): odd while the slot changes hands, so that counts of
//! two flows are never mixed. The control word names the generation it is meant for, so that one written late is ignored.

use npcc_pipeline::burst::{QueueKey, Record};
use npcc_pipeline::units::Nanos;

use super::allowance::Allowance;
use npcc_pipeline::sync::{AtomicU32, AtomicU64, Ordering, fence};
use npcc_roce::key::low32;

/// Bit 0 of the control word ([`SlotControl::paired`]): paired, send no details.
const PAIRED: u64 = 1;
/// Bits 1..=11 of the control word: the low bits of the generation the word is meant for.
const GENERATION_SHIFT: u32 = 1;
const GENERATION_MASK: u64 = 0x7ff;
/// Bit 12 of the control word: [`SlotControl::owes`].
const OWES: u64 = 1 << 12;
/// Bits 14..=21 of the control word: [`SlotControl::returned`].
const RETURNED_SHIFT: u32 = 14;
/// Bits 22.. of the control word: [`SlotControl::owes_from`] in units of 64 bytes.
const FROM_SHIFT: u32 = 22;
const FROM_UNIT: u32 = 6;
/// Half of the range of that field: a difference above it is negative.
const HALF: u64 = 1 << (u64::BITS - FROM_SHIFT - 1);

/// Control word of a flow, written by the control core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotControl {
    /// True if no more details of the flow's packets are wanted.
    pub paired: bool,
    /// True if strikes on the flow become near CNPs.
    pub owes: bool,
    /// Number of strikes returned so far, modulo 256.
    pub returned: u8,
    /// Byte count of the slot from which the next strike can be owed.
    pub owes_from: u64,
}

impl SlotControl {
    /// Control word of a flow that is paired or not, strikes on which stay CE.
    #[cfg(test)]
    pub(super) fn paired(paired: bool) -> SlotControl {
        SlotControl {
            paired,
            ..SlotControl::default()
        }
    }

    const fn to_word(self, generation: u32) -> u64 {
        let owes = if self.owes { OWES } else { 0 };
        self.owes_from.div_ceil(1 << FROM_UNIT) << FROM_SHIFT
            | (self.returned as u64) << RETURNED_SHIFT
            | owes
            | tag_of(generation) << GENERATION_SHIFT
            | self.paired as u64
    }
}

/// Counts of a slot, all read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotReading {
    /// Wire bytes of data enqueued since the slot became this flow's.
    pub bytes: u64,
    /// Number of packets of any class, modulo 2^32.
    pub packets: u32,
    /// Sequence number of the latest request (SEND, WRITE, READ REQUEST, ATOMIC of RC).
    pub request: Option<u32>,
    /// Time at which the latest packet was counted.
    pub last_seen: Nanos,
}

/// Flag that a request was seen; its sequence number is in the bits below.
const REQUESTED: u32 = 1 << 24;
const PSN: u32 = REQUESTED - 1;

/// Mask of the UDP source port in [`Slot::sign`].
const PORT: u64 = 0xffff;
/// Shift of the number of packets of any kind that are still shown, in 8 bits.
const ANY_SHIFT: u32 = 16;
const ANY: u64 = 0xff << ANY_SHIFT;
/// Shift of the queue, a [`QueueKey`].
const QUEUE_SHIFT: u32 = 24;
/// Shift of the time at which a packet was last shown, as a [`stamp`](super::stamp).
const REFRESHED_SHIFT: u32 = 32;

/// Values that the [`Slot::sign`] of a quiet flow is compared with: the same for all packets of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet {
    /// The sign of a packet of this queue, with no source port, that is shown now.
    now: u64,
    /// Age from which a packet is shown again, as a [`stamp`](super::stamp).
    refresh: u64,
    /// Age from which it need not be a chosen one: see [`patience`].
    patience: u64,
}

/// Age from which any packet of a flow with notable packets is shown again; from `refresh` on a chosen one is, whose answer the other direction shows.
#[inline]
pub(super) const fn patience(refresh: u32) -> u32 {
    refresh + refresh / 2
}

impl Quiet {
    #[inline]
    pub(super) const fn new(queue: QueueKey, age: u32, refresh: u32) -> Quiet {
        Quiet {
            now: (age as u64) << REFRESHED_SHIFT | (queue.0 as u64) << QUEUE_SHIFT,
            refresh: refresh as u64,
            patience: patience(refresh) as u64,
        }
    }
}

/// Slot of one flow. The worker writes all words but `control`.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    /// The [pair](npcc_roce::key::pair_of) of the flow's key. Only the worker reads it.
    key: [AtomicU64; 2],
    bytes: AtomicU64,
    /// Time of the latest packet in ns.
    last_seen: AtomicU64,
    control: AtomicU64,
    generation: AtomicU32,
    packets: AtomicU32,
    /// Source port, packets of any kind still to be shown, queue, and time at which a packet was last shown: all that is tested of a quiet flow's
    /// packet, as one word. Only the worker reads it.
    sign: AtomicU64,
    /// Sequence number of the latest request, with [`REQUESTED`].
    request: AtomicU32,
    /// Packets that may still be shown, as an [`Allowance`]. Only the worker reads it.
    allowance: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 64);

/// Tag of a generation in the control word. Generations of live slots are even: their lowest bit carries nothing.
const fn tag_of(generation: u32) -> u64 {
    (generation as u64 >> 1) & GENERATION_MASK
}

/// Adds to a word that only this thread writes.
#[inline]
fn bump(word: &AtomicU64, n: u64) {
    let value = word.load(Ordering::Relaxed).wrapping_add(n);
    word.store(value, Ordering::Relaxed);
}

/// Operations of the worker.
impl Slot {
    /// Gives the slot to another flow, in this queue, of which `any` packets of any kind are to be shown.
    pub(super) fn renew(&self, pair: [u64; 2], queue: QueueKey, now: u32, any: u8) {
        let generation = self.generation.load(Ordering::Relaxed);
        self.generation
            .store(generation.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.key.iter().zip(pair) {
            word.store(value, Ordering::Relaxed);
        }
        for word in [&self.bytes, &self.last_seen] {
            word.store(0, Ordering::Relaxed);
        }
        self.packets.store(0, Ordering::Relaxed);
        self.request.store(0, Ordering::Relaxed);
        let sign = Quiet::new(queue, now, 0).now | u64::from(any) << ANY_SHIFT;
        self.sign.store(sign, Ordering::Relaxed);
        self.set_allowance(Allowance::NEW);
        self.generation
            .store(generation.wrapping_add(2), Ordering::Release);
    }

    /// Returns true if the slot belongs to the flow with this key, as far as its pair tells.
    #[inline]
    pub(super) fn is(&self, [first, second]: &[u64; 2]) -> bool {
        let [a, b] = &self.key;
        a.load(Ordering::Relaxed) == *first && b.load(Ordering::Relaxed) == *second
    }

    /// Generation of the slot: even while it belongs to one flow.
    #[inline]
    pub(super) fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Returns true if the slot belongs to the flow of this packet, as far as its pair tells, and if its queue is right: that
    /// [is tested](Slot::quiet_age) with the port.
    #[inline]
    pub(super) fn is_in_its_queue(&self, known: &Record) -> bool {
        let [a, b] = &self.key;
        low32(a.load(Ordering::Relaxed)) == known.qp && b.load(Ordering::Relaxed) == known.addresses
    }

    /// Age of the last packet shown, if a packet with this UDP source port is surely not shown, if it is neither urgent nor notable, and the flow's queue
    /// is that of `quiet`; `details` is true if packets of any kind still to be shown are shown now. Almost every packet passes this quick check.
    #[inline]
    pub(super) fn quiet_age(&self, src_port: u16, quiet: Quiet, details: bool) -> Option<u64> {
        let sign = self.sign.load(Ordering::Relaxed);
        // Age in the low half, and in the high one 0 if port and queue are the same and nothing is still to be shown.
        let age = |sign: u64| {
            (quiet.now | u64::from(src_port))
                .wrapping_sub(sign)
                .rotate_left(32)
        };
        // A choice without a branch: flows are between the two ages up to a third of the time, each at its own.
        let limit = match self.allowance.load(Ordering::Relaxed) & Allowance::SEEN {
            0 => quiet.refresh,
            _ => quiet.patience,
        };
        let exact = age(sign);
        if exact < limit {
            return Some(exact);
        }
        let exact = age(sign & !ANY);
        (exact < limit && (!details || self.is_paired())).then_some(exact)
    }

    /// Returns true if a packet of a flow with this [age](Slot::quiet_age) is surely not shown even if `notable`, which is all ones or 0, and then counts
    /// it if it is. Otherwise changes nothing: [`Entry::turn`](super::entry::Entry::turn) decides and counts.
    #[inline]
    pub(super) fn lets_pass(&self, notable: u32, psn: u32, age: u64, quiet: Quiet) -> bool {
        let word = self.allowance.load(Ordering::Relaxed);
        let overdue = age >= quiet.refresh;
        // The branch predictor guesses badly if a packet is notable, and well if anything is left to be shown. One compare: of `notable & left != 0` the
        // compiler makes two branches.
        if (u32::from(overdue) | Allowance::left(word)) > !notable
            && self.is_due(Allowance::from_word(word), psn, overdue)
        {
            return false;
        }
        let word = Allowance::one_more_if(word, notable);
        self.allowance.store(word, Ordering::Relaxed);
        true
    }

    /// Returns true if a notable packet with this sequence number is shown; `overdue`: the flow's refresh is due.
    #[inline]
    fn is_due(&self, allowance: Allowance, psn: u32, overdue: bool) -> bool {
        let again = allowance.shows_first() || allowance.shows_again(psn);
        overdue && allowance.is_chosen(psn) || again && !self.is_paired()
    }

    /// Packets that may still be shown.
    #[inline]
    pub(super) fn allowance(&self) -> Allowance {
        Allowance::from_word(self.allowance.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn set_allowance(&self, allowance: Allowance) {
        self.allowance.store(allowance.to_word(), Ordering::Relaxed);
    }

    /// Time at which a packet was last shown, as a [`stamp`](super::stamp).
    #[inline]
    pub(super) fn refreshed(&self) -> u32 {
        low32(self.sign.load(Ordering::Relaxed) >> REFRESHED_SHIFT)
    }

    /// Records that a packet was shown.
    pub(super) fn refresh(&self, now: u32) {
        self.set_sign(
            u64::from(u32::MAX) << REFRESHED_SHIFT,
            u64::from(now) << REFRESHED_SHIFT,
        );
    }

    /// Sets the bits of `mask` in the sign.
    fn set_sign(&self, mask: u64, bits: u64) {
        let sign = self.sign.load(Ordering::Relaxed);
        self.sign.store(sign & !mask | bits, Ordering::Relaxed);
    }

    /// Number of packets of any kind still to be shown.
    pub(super) fn any(&self) -> u8 {
        let [_, _, any, ..] = self.sign.load(Ordering::Relaxed).to_le_bytes();
        any
    }

    /// Takes one from the packets of any kind still to be shown.
    pub(super) fn take_any(&self) {
        let left = self.any().saturating_sub(1);
        self.set_sign(ANY, u64::from(left) << ANY_SHIFT);
    }

    /// Returns true if a packet's UDP source port differs from that of the last packet shown, or else of the first. `None`, for a CNP, whose port is its
    /// own, never differs. The port keeps differing until a packet with it is shown, however full the ring is meanwhile.
    pub(super) fn moves(&self, port: Option<u16>) -> bool {
        let known = self.sign.load(Ordering::Relaxed) & PORT;
        let Some(port) = port else {
            return false;
        };
        if known == 0 {
            self.set_port(port);
        }
        known != 0 && known != u64::from(port)
    }

    /// Records that a packet with this UDP source port was shown.
    pub(super) fn set_port(&self, port: u16) {
        self.set_sign(PORT, port.into());
    }

    /// Counts a packet; returns the time at which the one before was counted.
    #[inline]
    pub(super) fn count(&self, now: Nanos) -> Nanos {
        let before = self.last_seen();
        let packets = self.packets.load(Ordering::Relaxed);
        self.packets
            .store(packets.wrapping_add(1), Ordering::Relaxed);
        self.last_seen.store(now.0, Ordering::Relaxed);
        before
    }

    /// Stores the sequence number of a packet, in the low 24 bits, if it is a request; without a branch.
    #[inline]
    pub(super) fn note_request_if(&self, is_request: bool, ack_psn: u32) {
        let before = self.request.load(Ordering::Relaxed);
        let latest = if is_request {
            REQUESTED | ack_psn
        } else {
            before
        };
        self.request.store(latest, Ordering::Relaxed);
    }

    /// Stores the sequence number of a request, in the low 24 bits. Readers mask those above.
    #[inline]
    pub(super) fn note_request(&self, ack_psn: u32) {
        self.request.store(REQUESTED | ack_psn, Ordering::Relaxed);
    }

    /// Adds the wire bytes of a packet that contributes to congestion.
    #[inline]
    pub(super) fn contribute(&self, wire_bytes: u64) {
        bump(&self.bytes, wire_bytes);
    }

    /// Time at which a packet was last counted.
    #[inline]
    pub(super) fn last_seen(&self) -> Nanos {
        Nanos(self.last_seen.load(Ordering::Relaxed))
    }

    /// Number of packets so far, modulo 2^32.
    pub(super) fn packets(&self) -> u32 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Returns true if the control core has this flow paired.
    #[inline]
    pub(super) fn is_paired(&self) -> bool {
        self.control_for(self.generation()) & PAIRED != 0
    }

    /// Returns true if a strike on the present flow can be owed to its sender.
    pub(super) fn owes(&self) -> bool {
        let word = self.control_for(self.generation());
        let bytes = self.bytes.load(Ordering::Relaxed) >> FROM_UNIT;
        let since = bytes.wrapping_sub(word >> FROM_SHIFT) & (2 * HALF - 1);
        word & OWES != 0 && since < HALF
    }

    /// Number of strikes on the present flow that were returned so far, modulo 256.
    pub(super) fn returned(&self) -> u8 {
        let [returned, ..] = (self.control_for(self.generation()) >> RETURNED_SHIFT).to_le_bytes();
        returned
    }

    fn control_for(&self, generation: u32) -> u64 {
        let word = self.control.load(Ordering::Relaxed);
        let meant = (word >> GENERATION_SHIFT) & GENERATION_MASK == tag_of(generation);
        if meant { word } else { 0 }
    }
}

/// Operations of the control core.
impl Slot {
    /// Reads the counts; `None` if the slot belongs to another flow. Any thread.
    pub(super) fn read(&self, generation: u32) -> Option<SlotReading> {
        let before = self.generation.load(Ordering::Acquire);
        let packets = self.packets.load(Ordering::Relaxed);
        let request = self.request.load(Ordering::Relaxed);
        let reading = SlotReading {
            bytes: self.bytes.load(Ordering::Relaxed),
            packets,
            request: (request & REQUESTED != 0).then_some(request & PSN),
            last_seen: Nanos(self.last_seen.load(Ordering::Relaxed)),
        };
        fence(Ordering::Acquire);
        let after = self.generation.load(Ordering::Relaxed);
        (before == after && before == generation).then_some(reading)
    }

    /// Writes the control word; returns true if the previous one let strikes be owed. Control core only.
    pub(super) fn set_control(&self, generation: u32, control: SlotControl) -> bool {
        let before = self.control.load(Ordering::Relaxed);
        self.control
            .store(control.to_word(generation), Ordering::Relaxed);
        before & OWES != 0
    }
}

#[cfg(test)]
#[cfg(loom)]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    /// Law: a control word meant for a flow that has gone does not apply to the flow that came.
    #[test]
    fn a_word_written_late_is_ignored() {
        loom::model(|| {
            let slot = Arc::new(Slot::default());
            slot.renew([1, 2], QueueKey(0), 0, 0);
            let first = slot.generation();
            let worker = Arc::clone(&slot);
            let thread = loom::thread::spawn(move || {
                let early = worker.is_paired();
                worker.renew([3, 4], QueueKey(0), 0, 0);
                assert!(!worker.is_paired() && !worker.owes());
                (early, worker.generation())
            });
            let control = SlotControl {
                paired: true,
                owes: true,
                ..SlotControl::default()
            };
            slot.set_control(first, control);
            let (_, second) = thread.join().unwrap();
            assert!(!slot.is_paired() && !slot.owes());
            slot.set_control(second, control);
            assert!(slot.is_paired() && slot.owes());
        });
    }

    #[test]
    fn counts_of_two_flows_are_never_mixed() {
        loom::model(|| {
            let slot = Arc::new(Slot::default());
            slot.renew([1, 2], QueueKey(0), 0, 0);
            let first = slot.generation();
            slot.contribute(10);
            slot.count(Nanos(1));
            let worker = Arc::clone(&slot);
            let thread = loom::thread::spawn(move || {
                worker.renew([3, 4], QueueKey(0), 0, 0);
                let second = worker.generation();
                worker.contribute(7);
                worker.count(Nanos(2));
                second
            });
            if let Some(reading) = slot.read(first) {
                assert_eq!(
                    (reading.bytes, reading.packets, reading.last_seen),
                    (10, 1, Nanos(1))
                );
            }
            let second = thread.join().unwrap();
            assert_eq!(slot.read(first), None);
            assert_eq!(slot.read(second).map(|reading| reading.bytes), Some(7));
        });
    }
}
