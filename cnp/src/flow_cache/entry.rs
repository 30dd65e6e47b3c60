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
    #[inline]
    fn is_chosen(&self, psn: u32) -> bool {
        psn.wrapping_mul(0x9e37_79b1).leading_zeros() >= u32::from(self.choice)
    }

    /// Whether a notable packet of a flow [at rest](Slot::is_quiet) is surely not shown, and counts it if so: what
    /// [`Entry::turn`] would say and do, without a record in sight. Else nothing is done.
    #[inline]
    pub(super) fn passes(&mut self, psn: u32, shared: &Slot) -> bool {
        let due = self.notable > 0 || self.again > 0 && self.is_chosen(psn);
        if due && !shared.is_paired() {
            return false;
        }
        self.notables = self.notables.saturating_add(1);
        true
    }

    /// Whether a packet is shown, and why. Called for every packet that may be.
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use npcc_pipeline::units::Nanos;
    use proptest::prelude::*;

    use super::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let few = prop_oneof![2 => Just(0u8), 1 => 1u8..9];
        (few.clone(), few, 0u8..12, any::<u16>(), 0u8..5).prop_map(
            |(notable, again, choice, notables, changes)| Entry {
                notable,
                again,
                choice,
                notables,
                changes,
                fresh: false,
                ..Entry::new(0)
            },
        )
    }

    proptest! {
        /// Of a quiet flow.
        #[test]
        fn what_passes_has_no_turn(
            entry in entry(),
            paired: bool,
            any in 0u8..3,
            psn in 0u32..1 << 24,
        ) {
            const PORT: u16 = 50_000;
            let (now, refresh) = (stamp(Nanos::from_millis(100)), stamp(Nanos::from_millis(10)));
            let slot = Slot::default();
            slot.renew(&[1, 2, 0, 0, 0], now, any);
            slot.moves(Some(PORT));
            slot.tell(slot.generation(), Nanos(0), paired);
            prop_assume!(slot.is_quiet(PORT, now, refresh));
            let (mut quick, mut slow) = (entry, entry);
            let passes = quick.passes(psn, &slot);
            let sign = Sign { port: Some(PORT), notable: Some(psn), urgent: false };
            prop_assert_eq!(passes, slow.turn(sign, now, refresh, &slot).is_none());
            if passes {
                prop_assert_eq!(format!("{quick:?}"), format!("{slow:?}"));
            } else {
                prop_assert_eq!(format!("{quick:?}"), format!("{entry:?}"));
            }
        }
    }
}
