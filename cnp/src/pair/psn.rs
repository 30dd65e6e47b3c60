//! Evidence `psn`: replies carry the sequence numbers of the requests they answer.
//!
//! ```text
//!   request to end Y with PSN q, AckReq set or ending a message   (SEND, WRITE, READ REQUEST, ATOMIC)
//!   reply   to end X with PSN q                                   (ACK, READ RESPONSE FIRST or ONLY, ATOMIC ACK)
//!   => X and Y are the two ends of one connection, three times over
//! ```
//! A reply supports a match only if its number is, to the bit, one that was seen to ask for a reply, and no other end of that
//! direction can have sent it ([`super::senders`]): where connections move in lock step numbers say nothing, and nothing is
//! concluded. A reply far from where its partner is, or that fits another end, or two ends that claim the same one, undo the
//! match. Numbers are 24 bits and wrap.
//!
//! What is not seen cannot be compared, so two things more are asked for. Numbers must be random: an end whose first number is
//! below [`SMALL`] may have begun at 0, as all of NCCL's do, and one such connection of which only the data are seen and one of
//! which only the answers are seen would fit to the bit. And few replies may fit nobody: each is of a connection whose
//! data take another path, and by chance its number is one that another was seen to ask for, once in 2^22 for each of the
//! others. Where the two together come to more than 1 in 2^14, no match between these addresses is believed.

use super::ends::numbers::{NEAR, distance};
use super::ends::psn_state::{MARKS, PsnState};
use super::ends::{End, Endpoints};
use super::port_hash;
use super::senders::Senders;
use crate::links::NONE;
use crate::sample::{Record, SlotRef};
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::bth::{RoceClass, is_request};

/// Replies that must fit.
const SUPPORTS: u8 = 3;
/// A first number below this may be a count from 0.
const SMALL: u32 = 1 << 16;
/// Ends without a sender times ends of a direction, above which chance is too likely: four marks each, of 2^24 numbers.
const CHANCE: u64 = 1 << 8;

/// Whether a request with this opcode is answered even without AckReq, or is the last of a message.
const fn ends_message(opcode: u8) -> bool {
    matches!(opcode, 0x02..=0x05 | 0x08..=0x0c | 0x13 | 0x14 | 0x16 | 0x17)
}

/// Replies whose number is one of a request's: ACK, READ RESPONSE FIRST and ONLY, ATOMIC ACK.
const fn is_reply(opcode: u8) -> bool {
    matches!(opcode, 0x0d | 0x10..=0x12)
}

/// ACK and no NAK: a NAK's number is one not received.
const ACK_MASK: u8 = 0b0110_0000;

/// Whether a record is of a request that is answered with its own number, if with any.
pub(crate) const fn asks(record: &Record) -> bool {
    is_request(record.opcode) && (record.asks_for_reply() || ends_message(record.opcode))
}

/// Whether a record is of a reply that has its request's number.
pub(crate) fn is_answer(record: &Record) -> bool {
    let positive = |syndrome| syndrome & ACK_MASK == 0;
    is_reply(record.opcode)
        && record.class != RoceClass::Cnp
        && record.syndrome.is_none_or(positive)
}

impl Endpoints {
    /// Takes in the number of a packet to `end`; `live` says the present number of requests in a slot. `named` ends are
    /// known by better evidence.
    pub(super) fn see_psn(
        &mut self,
        end: u32,
        record: &Record,
        reader: usize,
        named: bool,
        live: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) {
        if is_request(record.opcode) {
            self.see_number(end, record, reader);
            if asks(record)
                && let Some(state) = self.end_mut(end)
            {
                if let Some(mark) = state.psn.marks.get_mut(usize::from(state.psn.at)) {
                    *mark = record.psn;
                }
                state.psn.at = (state.psn.at + 1) % MARKS;
            }
        } else if is_answer(record) {
            self.weigh_port(end, record.psn, live);
            if !named && port_hash::partner(self, end).is_none() {
                self.reply(end, record.psn, record.time, live);
            }
        }
    }

    fn reply(
        &mut self,
        end: u32,
        number: u32,
        now: Nanos,
        live: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) {
        let candidate = self.end(end).map_or(NONE, |state| state.psn.candidate);
        if let Some(present) = self.number(candidate, live) {
            if distance(present, number) > NEAR {
                // Where its partner is not, or no longer is.
                self.part(end);
            } else if partner(self, end) == Some(candidate) {
                return;
            }
        }
        match self.senders(end, number, now, live) {
            Senders::One(fits) => {
                self.set_orphan(end, false);
                let marked =
                    |state: &End| state.sent.first >= SMALL && state.psn.marks.contains(&number);
                if self.end(fits).is_some_and(marked) {
                    self.support(end, fits, number);
                }
            }
            Senders::Nobody => self.set_orphan(end, true),
            Senders::Unknown => {}
        }
    }

    fn set_orphan(&mut self, end: u32, orphan: bool) {
        let Some(state) = self.end_mut(end) else {
            return;
        };
        let (before, pair) = (std::mem::replace(&mut state.psn.orphan, orphan), state.pair);
        if let Some(pair) = self.pair_mut(pair) {
            let step = i32::from(orphan) - i32::from(before);
            pair.orphans = pair.orphans.saturating_add_signed(step);
        }
    }

    fn support(&mut self, end: u32, fits: u32, number: u32) {
        let Some(state) = self.end(end) else {
            return;
        };
        let (candidate, again) = (state.psn.candidate, state.psn.supported == number);
        if candidate != NONE && candidate != fits {
            self.part(end);
            return;
        }
        if again {
            return;
        }
        let Some(state) = self.end_mut(end) else {
            return;
        };
        state.psn.candidate = fits;
        state.psn.supports = state.psn.supports.saturating_add(1);
        state.psn.supported = number;
        if state.psn.supports < SUPPORTS {
            return;
        }
        let claimed = self.end(fits).map_or(NONE, |state| state.psn.claimed);
        if claimed == NONE {
            if let Some(other) = self.end_mut(fits) {
                other.psn.claimed = end;
            }
        } else if claimed != end {
            self.part(end);
            self.part(claimed);
        }
    }

    /// Undoes what replies to this end seemed to fit.
    fn part(&mut self, end: u32) {
        let Some(state) = self.end_mut(end) else {
            return;
        };
        let candidate = std::mem::replace(&mut state.psn.candidate, NONE);
        (state.psn.supports, state.psn.supported) = (0, NONE);
        if let Some(other) = self.end_mut(candidate)
            && other.psn.claimed == end
        {
            other.psn.claimed = NONE;
        }
    }

    /// Forgets all numbers of an end: another connection begins, or none is left.
    pub(super) fn forget_psn(&mut self, end: u32) {
        let claimed = self.end(end).map_or(NONE, |state| state.psn.claimed);
        self.part(claimed);
        self.part(end);
        self.set_orphan(end, false);
        self.forget_numbers(end);
        if let Some(state) = self.end_mut(end) {
            state.psn = PsnState::new();
        }
    }

    /// Whether a reply fits the only end opposite with the same UDP source port.
    fn weigh_port(&mut self, end: u32, number: u32, live: &impl Fn(usize, SlotRef) -> Option<u32>) {
        let sole = self.opposite(end).filter(|group| group.ends.len == 1);
        let Some(other) = sole.map(|group| group.ends.head) else {
            return;
        };
        let Some(present) = self.number(other, live) else {
            return;
        };
        if distance(present, number) > NEAR {
            for end in [end, other] {
                if let Some(state) = self.end_mut(end) {
                    state.psn.refutes_port = true;
                }
            }
        }
    }
}

/// The end that replies fit, from either side, if both sides do not differ.
pub(super) fn partner(ends: &Endpoints, end: u32) -> Option<u32> {
    let state = ends.end(end)?;
    if ends.pair(state.pair)?.chance() > CHANCE {
        return None;
    }
    let psn = &state.psn;
    let own = (psn.supports >= SUPPORTS).then_some(psn.candidate);
    let own = own.filter(|other| {
        ends.end(*other)
            .is_some_and(|other| other.psn.claimed == end)
    });
    let others = (psn.claimed != NONE).then_some(psn.claimed);
    match (own, others) {
        (Some(own), Some(others)) if own != others => None,
        (own, others) => own.or(others),
    }
}
