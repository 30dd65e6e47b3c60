//! Evidence `psn`: replies carry the sequence numbers of the requests they answer.
//!
//! ```text
//!   request to end Y with PSN q, AckReq set or ending a message   (SEND, WRITE, READ REQUEST, ATOMIC)
//!   reply   to end X with PSN q                                   (ACK, READ RESPONSE FIRST or ONLY, ATOMIC ACK)
//!   => X and Y are the two ends of one connection, three times over
//! ```
//! A reply supports a match only if its number is, to the bit, one that was seen to ask for a reply, at one end only, and no
//! other end of that direction is within 65,536 numbers of it at this moment: where connections move in lock step (NCCL
//! begins them all at 0) numbers say nothing, and nothing is concluded. The present number of every end comes from the
//! worker's flow cache, which has it of every packet, not from samples. A reply far from where its partner is, or that fits
//! another end, or two ends that claim the same one, undo the match. Numbers are 24 bits and wrap.
//!
//! With more than [`MOST`] queue pairs in a direction it is not tried: by chance alone some would be near.

use super::ends::Ends;
use crate::fixed_map::NONE;
use crate::sample::{Record, SlotRef};
use npcc_pipeline::wire::bth::RoceClass;

/// Replies that must fit.
const SUPPORTS: u8 = 3;
/// Ends of one direction that are compared, at most.
const MOST: u32 = 64;
/// How far apart two ends' numbers are for one not to be taken for the other: more than any queue pair has in flight.
const NEAR: u32 = 1 << 16;
const MASK: u32 = (1 << 24) - 1;

/// What is known of an end's numbers, and whose they fit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PsnState {
    /// Numbers of requests to this end that ask for a reply; [`NONE`] for none.
    marks: [u32; 4],
    at: usize,
    /// The last request seen.
    last: u32,
    /// Where the worker has the present number.
    slot: Option<(usize, SlotRef)>,
    /// The end that replies to this end fit, how often, and the last of them.
    candidate: u32,
    supports: u8,
    supported: u32,
    /// The end whose replies fit this one.
    claimed: u32,
    /// Replies do not fit the only end with the same UDP source port.
    pub(super) refutes_port: bool,
}

impl PsnState {
    pub(crate) const fn new() -> PsnState {
        PsnState {
            marks: [NONE; 4],
            at: 0,
            last: NONE,
            slot: None,
            candidate: NONE,
            supports: 0,
            supported: NONE,
            claimed: NONE,
            refutes_port: false,
        }
    }
}

/// Whether a packet of this opcode carries a number of the requester's own choosing.
pub(crate) const fn is_request(opcode: u8) -> bool {
    matches!(opcode, 0x00..=0x0c | 0x13 | 0x14 | 0x16 | 0x17)
}

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

const fn distance(a: u32, b: u32) -> u32 {
    let forth = a.wrapping_sub(b) & MASK;
    let back = b.wrapping_sub(a) & MASK;
    if forth < back { forth } else { back }
}

impl Ends {
    /// Takes in the number of a packet to `end`; `live` says the present number of requests in a slot.
    pub(super) fn see_psn(
        &mut self,
        end: u32,
        record: &Record,
        reader: usize,
        live: &impl Fn(usize, SlotRef) -> Option<u32>,
    ) {
        if is_request(record.opcode) {
            let marks = record.asks_for_reply() || ends_message(record.opcode);
            if let Some(state) = self.end_mut(end) {
                state.psn.last = record.psn;
                state.psn.slot = Some((reader, record.slot));
                if marks && let Some(mark) = state.psn.marks.get_mut(state.psn.at) {
                    *mark = record.psn;
                    state.psn.at = (state.psn.at + 1) % state.psn.marks.len();
                }
            }
        } else if is_reply(record.opcode)
            && record
                .syndrome
                .is_none_or(|syndrome| syndrome & ACK_MASK == 0)
            && record.class != RoceClass::Cnp
        {
            self.reply(end, record.psn, live);
        }
    }

    /// The present number of requests to an end.
    fn number(&self, end: u32, live: &impl Fn(usize, SlotRef) -> Option<u32>) -> Option<u32> {
        let psn = &self.end(end)?.psn;
        let (reader, slot) = psn.slot?;
        Some(live(reader, slot).unwrap_or(psn.last))
    }

    fn reply(&mut self, end: u32, number: u32, live: &impl Fn(usize, SlotRef) -> Option<u32>) {
        self.weigh_port(end, number, live);
        if self.opposite_side(end).is_none_or(|side| side.ends > MOST) {
            return;
        }
        let head = self.opposite_side(end).map_or(NONE, |side| side.head);
        let (mut at, mut near, mut exact) = (head, 0, None);
        while let Some(state) = self.end(at) {
            if self
                .number(at, live)
                .is_some_and(|present| distance(present, number) <= NEAR)
            {
                near += 1;
                if state.psn.marks.contains(&number) {
                    exact = Some(at);
                }
            }
            at = state.side_next;
        }
        let candidate = self.end(end).map_or(NONE, |state| state.psn.candidate);
        match (exact, near) {
            (Some(fits), 1) => self.support(end, fits, number),
            // Where its partner is not, or no longer is.
            (_, 0) if candidate != NONE => self.part(end),
            _ => {}
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
        if let Some(state) = self.end_mut(end) {
            state.psn = PsnState::new();
        }
    }

    /// Whether a reply fits the only end opposite with the same UDP source port.
    fn weigh_port(&mut self, end: u32, number: u32, live: &impl Fn(usize, SlotRef) -> Option<u32>) {
        let sole = self.opposite(end).filter(|group| group.len == 1);
        let Some(other) = sole.map(|group| group.head) else {
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
pub(super) fn partner(ends: &Ends, end: u32) -> Option<u32> {
    let psn = &ends.end(end)?.psn;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_wraps() {
        assert_eq!(distance(5, MASK), 6);
        assert_eq!(distance(MASK, 5), 6);
        assert_eq!(distance(0, 1 << 23), 1 << 23);
    }
}
