//! What the worker alone keeps of a flow: which of its notable packets are still shown to the control core.

use npcc_pipeline::parse::Roce;
use npcc_pipeline::wire::bth::{RoceClass, has_aeth};

use super::slot::Slot;
use super::{CNP_GAP, stamp};

/// Details of a flow not yet paired: any packet, and packets with AckReq or AETH only.
pub(super) const DETAILS_ANY: u8 = 8;
const DETAILS_NOTABLE: u8 = 8;
/// Chosen packets shown after each refresh, while the flow is still not paired.
const AGAIN: u8 = 4;
/// Notable packets between two refreshes, in powers of two, of which all are chosen.
const CHOOSY: u8 = 2;
/// Changes of a flow's UDP source port that are shown at once, of those between two refreshes.
const CHANGES: u8 = 4;

/// What is asked of a flow's notable packets only; the rest is in its [`Slot`].
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(16))]
pub(super) struct Entry {
    pub(super) cnp_shown: u32,
    notable: u8,
    /// Chosen packets still shown, until the next refresh.
    again: u8,
    /// One notable packet in two to the power of this is chosen.
    choice: u8,
    /// Notable packets since the last refresh.
    notables: u16,
    /// Changes of the port still shown, until the next refresh.
    changes: u8,
    fresh: bool,
}

/// What of a packet decides whether it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sign {
    /// UDP source port of its connection: not a CNP's.
    pub(super) port: Option<u16>,
    /// Its sequence number, when it has AckReq or AETH.
    pub(super) notable: Option<u32>,
    /// A CNP or a NAK.
    pub(super) urgent: bool,
}

impl Sign {
    pub(super) fn of(roce: &Roce, urgent: bool) -> Sign {
        Sign {
            port: (roce.class != RoceClass::Cnp).then_some(roce.src_port),
            notable: is_notable(roce).then(|| roce.psn()),
            urgent,
        }
    }
}

/// Why a packet is shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    Notable,
    Any,
    Chosen,
    Refresh,
    Moved,
    Cnp,
}

impl Entry {
    /// Of a flow whose first packet comes `now`.
    pub(super) const fn new(now: u32) -> Entry {
        Entry {
            cnp_shown: now,
            notable: DETAILS_NOTABLE,
            again: 0,
            choice: 0,
            notables: 0,
            changes: CHANGES,
            fresh: true,
        }
    }

    /// Whether a packet with this number is one of the few that are shown: a request and its reply have the same number, so
    /// that both directions show the same few.
    fn is_chosen(&self, psn: u32) -> bool {
        psn.wrapping_mul(0x9e37_79b1).leading_zeros() >= u32::from(self.choice)
    }

    /// Whether a packet is shown, and why. Called for every notable packet.
    #[inline(never)]
    pub(super) fn turn(
        &mut self,
        sign: Sign,
        now: u32,
        refresh: u32,
        shared: &Slot,
    ) -> Option<Turn> {
        let Sign {
            port,
            notable,
            urgent,
        } = sign;
        let moved = shared.moves(port);
        self.notables = self.notables.saturating_add(u16::from(notable.is_some()));
        let since = now.wrapping_sub(shared.refreshed());
        if urgent {
            let due = self.fresh || now.wrapping_sub(self.cnp_shown) >= stamp(CNP_GAP);
            return due.then_some(Turn::Cnp);
        }
        if since >= refresh {
            let chosen = notable.is_some_and(|psn| self.is_chosen(psn));
            // It waits a while for a packet that the other direction shows the answer of.
            if chosen || self.notables == 0 || since >= refresh + refresh / 2 {
                return Some(Turn::Refresh);
            }
        }
        // Another connection may have taken the queue pair's number: its sender is another.
        if moved && self.changes > 0 {
            return Some(Turn::Moved);
        }
        let turn = match (notable, self.notable, shared.any(), self.again) {
            (Some(_), 1.., ..) => Turn::Notable,
            (_, _, 1.., _) => Turn::Any,
            (Some(psn), _, _, 1..) if self.is_chosen(psn) => Turn::Chosen,
            _ => return None,
        };
        (!shared.is_paired()).then_some(turn)
    }

    /// A packet was shown.
    pub(super) fn shown(&mut self, turn: Turn, now: u32, shared: &Slot) {
        self.fresh = false;
        shared.refresh(now);
        match turn {
            Turn::Notable => self.notable -= 1,
            Turn::Any => shared.take_any(),
            Turn::Chosen => self.again -= 1,
            Turn::Refresh => {
                self.changes = CHANGES;
                self.again = AGAIN;
                let power = self.notables.checked_ilog2().unwrap_or(0);
                self.choice = u8::try_from(power).unwrap_or(0).saturating_sub(CHOOSY);
                self.notables = 0;
            }
            Turn::Moved => self.changes -= 1,
            Turn::Cnp => self.cnp_shown = now,
        }
    }
}

/// With AckReq or AETH.
#[inline]
const fn is_notable(roce: &Roce) -> bool {
    roce.ack_req() || has_aeth(roce.opcode)
}

const _: () = assert!(size_of::<Entry>() == 16);
