//! Counting the frames of a run: most packets of most flows are only counted, and those need a dozen words.
//!
//! Law: counts, records and slots are as if every packet had been looked at closely, within the quota of the run (a property in `run_tests.rs`).

use npcc_pipeline::buffer::Amount;
use npcc_pipeline::burst::{QueueKey, Record, RunHead};
use npcc_pipeline::frame::{FrameBuf, wire_len};
use npcc_pipeline::units::{Nanos, PortId, WIRE_OVERHEAD};
use npcc_pipeline::wire::bth::{RoceClass, Traits};

use super::cache_key::addresses_as_sent;
use super::pace::is_round;
use super::slot::Quiet;
use super::woken::PAUSE;
use super::{FlowCache, stamp};
use npcc_roce::key::{low32, queue_bits};

/// AckReq bit in the last word of the BTH, above the packet sequence number.
pub(super) const ACK_REQ: u32 = 1 << 31;
pub(super) const PSN_MASK: u32 = 0x00ff_ffff;

/// Classes that the fast loop counts; the others are rare.
const OFTEN: u16 = RoceClass::Data.bit() | RoceClass::Datagram.bit() | RoceClass::Ack.bit();

/// Parameters for counting the packets of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watch {
    /// Classes that are counted, as a set.
    pub(super) wanted: u16,
    pub(super) queue: u64,
    /// Sign of packets of flows of the queue that are only counted.
    quiet: Quiet,
    /// True if no packet is so short that Ethernet pads it.
    unpadded: bool,
    /// True if packets name their slots: there are many flows.
    pub(super) many: bool,
    /// Properties that the run's packets have in common.
    pub(super) common: Common,
    /// The time `now` as a [`stamp`].
    pub(super) age: u32,
    pub(super) now: Nanos,
    /// Time before which a flow's last packet means that it has paused.
    pub(super) asleep: Nanos,
}

/// Properties that all packets of a run have in common: traits that all have, that any has, and the last BTH words of all, combined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Common {
    all: u16,
    any: u16,
    words: u32,
}

impl Common {
    /// Properties of no packet.
    pub(super) const NONE: Common = Common {
        all: u16::MAX,
        any: 0,
        words: 0,
    };

    /// Returns the properties that a packet more has in common with these.
    #[inline(always)]
    pub(super) const fn and(self, record: &Record) -> Common {
        Common {
            all: self.all & record.traits.bits(),
            any: self.any | record.traits.bits(),
            words: self.words | record.ack_psn,
        }
    }

    /// Returns the form of the loop that counts the packets, if none is padded.
    #[inline]
    const fn form(self) -> u8 {
        const NEEDED: u16 = Traits::ROCE | RoceClass::Data.bit() | Traits::REQUEST | Traits::PLAIN;
        const USUAL: u16 = NEEDED | OFTEN | Traits::AETH | Traits::V6;
        let of_one_family = (self.any ^ self.all) & (Traits::ROCE | Traits::V6) == 0;
        if !of_one_family || self.all & Traits::ROCE == 0 || self.any & !USUAL != 0 {
            FORM_ANY
        } else if self.all & NEEDED == NEEDED
            && self.any & !(NEEDED | Traits::V6) == 0
            && self.words & ACK_REQ == 0
        {
            FORM_PLAIN
        } else {
            FORM_USUAL
        }
    }
}

/// Form of the loop for packets of any kind.
const FORM_ANY: u8 = 0;
/// Form for RoCEv2 packets of the classes that come [often](OFTEN) and over one IP version, without a NAK, of which none is padded: no
/// class is tested.
const FORM_USUAL: u8 = 1;
/// Form for such packets that are all requests with data, of which none asks for an ACK or acknowledges: nothing notable is tested either.
const FORM_PLAIN: u8 = 2;

impl FlowCache {
    /// Classes counted between two ports, as a set.
    #[inline]
    pub(super) fn wanted(&self, ingress: PortId, egress: PortId) -> u16 {
        // An ACK that comes in by an NPCC port names the near sender's queue pair; one that leaves by it is a near host's, and shows the round trip
        // to it.
        const ENTERING: u16 =
            OFTEN | RoceClass::ReadRequest.bit() | RoceClass::Atomic.bit() | RoceClass::Cnp.bit();
        if self.ports & ingress.bit() != 0 {
            ENTERING
        } else if self.ports & egress.bit() != 0 {
            OFTEN
        } else {
            0
        }
    }

    /// Makes the parameters for counting the packets of a run.
    #[inline]
    pub(super) fn watch(&self, run: &RunHead, now: Nanos) -> Watch {
        Watch {
            wanted: self.wanted(run.group.ingress(), run.egress),
            queue: queue_bits(run.egress, run.priority),
            quiet: Quiet::new(
                QueueKey::new(run.egress, run.priority),
                stamp(now),
                self.pace.refresh,
            ),
            unpadded: run.amount == Amount::of_unpadded(run.bytes, run.amount.frames),
            many: self.has_many(),
            common: Common::NONE,
            age: stamp(now),
            now,
            asleep: asleep(now),
        }
    }

    /// Reports that a flow sends again after a pause, its packet before being at `before`, if the present packet contributes. A new flow is shown.
    #[cold]
    pub(super) fn wake(&self, slot: usize, before: Nanos, bytes: u64) {
        if bytes > 0 && before > Nanos::ZERO {
            self.shared.woken.note(low32(slot as u64));
        }
    }

    /// Counts packets up to the first that needs more than counting; returns their number. Once [`FlowCache::quota`] is used up, a packet that would be
    /// shown as one of its flow's first is counted and leaves that to the next.
    #[inline]
    pub(super) fn count<B: FrameBuf>(
        &self,
        frames: &[B],
        records: &[Record],
        watch: &Watch,
    ) -> usize {
        let is_v6 = records
            .first()
            .is_some_and(|record| record.traits.any(Traits::V6));
        let all = (frames, records);
        match (is_v6, watch.many) {
            (false, false) => self.count_in_form::<false, false, B>(all, watch),
            (false, true) => self.count_in_form::<false, true, B>(all, watch),
            (true, false) => self.count_in_form::<true, false, B>(all, watch),
            (true, true) => self.count_in_form::<true, true, B>(all, watch),
        }
    }

    #[inline(always)]
    fn count_in_form<const V6: bool, const MANY: bool, B: FrameBuf>(
        &self,
        all: (&[B], &[Record]),
        watch: &Watch,
    ) -> usize {
        let counts_all = watch.wanted & OFTEN == OFTEN && watch.unpadded;
        match watch.common.form() {
            FORM_PLAIN if counts_all => self.count_stretch::<V6, MANY, FORM_PLAIN, B>(all, watch),
            FORM_USUAL if counts_all => self.count_stretch::<V6, MANY, FORM_USUAL, B>(all, watch),
            _ => self.count_stretch::<V6, MANY, FORM_ANY, B>(all, watch),
        }
    }

    /// Counts packets of one IP version, whose records name the slot to look at first. `MANY`: there are many flows. `FORM`: see
    /// [`FORM_ANY`] and those below it.
    #[inline(never)]
    fn count_stretch<const V6: bool, const MANY: bool, const FORM: u8, B: FrameBuf>(
        &self,
        (frames, records): (&[B], &[Record]),
        watch: &Watch,
    ) -> usize {
        let (slots, quiet, now) = (&*self.shared.slots, watch.quiet, watch.now);
        let details = self.quota > 0;
        let classes = watch.wanted & OFTEN | Traits::NEGATIVE | if V6 { 0 } else { Traits::V6 };
        let mut counted = 0;
        for (buf, record) in frames.iter().zip(records) {
            let traits = record.traits;
            if FORM == FORM_ANY && (!traits.one_class_of(classes) || V6 && !traits.any(Traits::V6))
            {
                break;
            }
            let guess = record.slot.0 as usize;
            let Some(shared) = slots.get(guess) else {
                break;
            };
            if !shared.is_in_its_queue(record)
                || V6 && addresses_as_sent(buf.data(), record.flags) != self.wide.get(guess)
            {
                break;
            }
            let Some(age) = shared.quiet_age(record.src_port, quiet, details) else {
                break;
            };
            if MANY && is_round(shared.packets().wrapping_add(1)) {
                break;
            }
            let ack_psn = record.ack_psn;
            if FORM != FORM_PLAIN
                && !shared.lets_pass(notable(traits, ack_psn), ack_psn & PSN_MASK, age, quiet)
            {
                break;
            }
            let before = shared.count(now);
            let wire = u64::from(record.len) + u64::from(WIRE_OVERHEAD);
            let bytes = match FORM {
                FORM_PLAIN => wire,
                FORM_USUAL => unless_ack(traits, wire),
                _ => contribution(traits, record.len),
            };
            shared.contribute(bytes);
            if before < watch.asleep {
                self.wake(guess, before, bytes);
            }
            if FORM == FORM_PLAIN {
                shared.note_request(ack_psn);
            } else {
                shared.note_request_if(traits.any(Traits::REQUEST), ack_psn);
            }
            counted += 1;
        }
        counted
    }
}

/// Time before which a flow's last packet means that it has paused.
#[inline]
pub(super) const fn asleep(now: Nanos) -> Nanos {
    Nanos(now.0.saturating_sub(PAUSE.0))
}

/// Returns all ones for a packet with AckReq or AETH, otherwise 0: two flags in the highest bit, which a shift spreads, so that no branch
/// depends on what the predictor cannot guess.
#[inline(always)]
const fn notable(traits: Traits, ack_psn: u32) -> u32 {
    let aeth = (traits.bits() as u32) << (u32::BITS - 1 - Traits::AETH.trailing_zeros());
    ((aeth | ack_psn).cast_signed() >> (i32::BITS - 1)).cast_unsigned()
}

/// Returns the wire bytes of a packet of a class that comes [often](OFTEN), or 0 for an ACK, which alone contributes nothing; without a branch.
#[inline(always)]
const fn unless_ack(traits: Traits, wire: u64) -> u64 {
    let ack = traits.bits() & RoceClass::Ack.bit();
    // 32 for an ACK: more bits than a length has.
    wire >> (ack * (32 / RoceClass::Ack.bit()))
}

/// Wire bytes by which a packet contributes to congestion: 0 unless it is data or a datagram.
#[inline]
pub(super) fn contribution(traits: Traits, len: u16) -> u64 {
    let contributes = traits.any(RoceClass::Data.bit() | RoceClass::Datagram.bit());
    u64::from(wire_len(len.into())) * u64::from(contributes)
}
