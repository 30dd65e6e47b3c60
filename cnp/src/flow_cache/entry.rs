//! Decides whether and why a packet is shown to the control core, and keeps the worker's private state of a flow beside its [`Slot`].

use npcc_pipeline::burst::Record;
use npcc_pipeline::wire::bth::{RoceClass, Traits};

use super::count::{ACK_REQ, PSN_MASK};
use super::slot::{Slot, patience};
use super::stamp;
use crate::dcqcn::NIC_MIN_CNP_INTERVAL;

/// Number of packets of any kind that are shown of a flow not yet paired.
pub(super) const DETAILS_ANY: u8 = 8;

/// Private state of a flow: see the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// Stamp of the latest CNP or NAK of the flow that was shown. Network cards ignore closer ones than [`NIC_MIN_CNP_INTERVAL`]. Both kinds share
    /// this timer, so that either hides the other. Stamps count 1.024 us, so that 3.1 us are always enough and 2.1 us may be.
    cnp_shown: u32,
    /// Number of returned strikes that were written on a frame, modulo 256.
    pub(super) redeemed: u8,
}

/// Properties of a packet that decide whether it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sign {
    /// UDP source port of the packet's connection; `None` for a CNP.
    pub(super) port: Option<u16>,
    /// Sequence number of the packet, if it has AckReq or AETH.
    pub(super) notable: Option<u32>,
    /// True for a CNP or a NAK.
    pub(super) urgent: bool,
    /// True if the packet's number in its flow is one that is always shown: see [`is_round`](super::pace::is_round).
    pub(super) round: bool,
}

impl Sign {
    /// Properties of a packet; `round`: see [`Sign::round`].
    pub(super) fn of(known: &Record, round: bool) -> Sign {
        let (traits, ack_psn) = (known.traits, known.ack_psn);
        let is_cnp = traits.any(RoceClass::Cnp.bit());
        let notable = traits.any(Traits::AETH) || ack_psn & ACK_REQ != 0;
        Sign {
            port: (!is_cnp).then_some(known.src_port),
            notable: notable.then_some(ack_psn & PSN_MASK),
            urgent: is_cnp || traits.any(Traits::NEGATIVE),
            round,
        }
    }
}

/// Reason for showing a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Notable,
    Any,
    Chosen,
    Refresh,
    Moved,
    Cnp,
}

impl Entry {
    /// State of a flow whose first packet comes `now`: its first CNP is due at once.
    pub(super) const fn new(now: u32) -> Entry {
        Entry {
            cnp_shown: now.wrapping_sub(stamp(NIC_MIN_CNP_INTERVAL)),
            redeemed: 0,
        }
    }

    /// Returns the reason for showing a packet, if it is shown. Called for every packet that may be.
    #[inline(never)]
    pub(super) fn turn(&self, sign: Sign, now: u32, refresh: u32, shared: &Slot) -> Option<Turn> {
        let Sign {
            port,
            notable,
            urgent,
            round,
        } = sign;
        let moved = shared.moves(port);
        let mut allowance = shared.allowance();
        if notable.is_some() {
            allowance = allowance.one_more();
            shared.set_allowance(allowance);
        }
        let since = now.wrapping_sub(shared.refreshed());
        if urgent {
            let due = now.wrapping_sub(self.cnp_shown) >= stamp(NIC_MIN_CNP_INTERVAL);
            return due.then_some(Turn::Cnp);
        }
        if round {
            return Some(Turn::Refresh);
        }
        if since >= refresh {
            let chosen = notable.is_some_and(|psn| allowance.is_chosen(psn));
            // Wait a while for a packet whose answer the other direction shows.
            if chosen || allowance.seen == 0 || since >= patience(refresh) {
                return Some(Turn::Refresh);
            }
        }
        // A changed port may mean that the queue pair's number is another connection's now, with another sender.
        if moved && allowance.shows_changes() {
            return Some(Turn::Moved);
        }
        let turn = match (notable, shared.any()) {
            (Some(_), _) if allowance.shows_first() => Turn::Notable,
            (_, 1..) => Turn::Any,
            (Some(psn), _) if allowance.shows_again(psn) => Turn::Chosen,
            _ => return None,
        };
        (!shared.is_paired()).then_some(turn)
    }

    /// Records that a packet was shown, of this UDP source port if it is no CNP; `more`: see [`Pace`](super::pace::Pace).
    pub(super) fn shown(
        &mut self,
        turn: Turn,
        (now, more): (u32, u8),
        port: Option<u16>,
        shared: &Slot,
    ) {
        shared.refresh(now);
        if let Some(port) = port {
            shared.set_port(port);
        }
        let allowance = shared.allowance();
        match turn {
            Turn::Notable => shared.set_allowance(allowance.first_shown()),
            Turn::Any => shared.take_any(),
            Turn::Chosen => shared.set_allowance(allowance.chosen_shown()),
            Turn::Refresh => shared.set_allowance(allowance.refreshed(more)),
            Turn::Moved => shared.set_allowance(allowance.change_shown()),
            Turn::Cnp => self.cnp_shown = now,
        }
    }
}

const _: () = assert!(size_of::<Entry>() == 8);

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use npcc_pipeline::burst::QueueKey;
    use npcc_pipeline::units::Nanos;
    use proptest::prelude::*;

    use super::super::SlotControl;
    use super::super::allowance::Allowance;
    use super::super::slot::Quiet;
    use super::*;

    proptest! {
        /// Law, for a quiet flow: a packet that passes has no reason to be shown.
        #[test]
        fn what_passes_has_no_turn(
            choice in 0u32..256,
            seen in prop_oneof![Just(0u32), 0u32..1 << 16],
            left in prop_oneof![Just(0u32), Just(1), 0u32..128],
            paired: bool,
            any in 0u8..3,
            psn in 0u32..1 << 24,
            age in 0u32..20_000,
            notable: bool,
        ) {
            const PORT: u16 = 50_000;
            const QUEUE: QueueKey = QueueKey(0xfb);
            let (now, refresh) = (stamp(Nanos::from_millis(100)), stamp(Nanos::from_millis(10)));
            let allowance = Allowance::from_word(seen | choice << 16 | left << 24);
            let slot = || {
                let slot = Slot::default();
                slot.renew([1, 2], QUEUE, now - age, any);
                slot.moves(Some(PORT));
                slot.set_control(slot.generation(), SlotControl::paired(paired));
                slot.set_allowance(allowance);
                slot
            };
            let (quick, slow, entry) = (slot(), slot(), Entry::new(0));
            let quiet = Quiet::new(QUEUE, now, refresh);
            let age = quick.quiet_age(PORT, quiet, true);
            prop_assume!(age.is_some());
            let passes = quick.lets_pass(u32::from(notable).wrapping_neg(), psn, age.unwrap_or(0), quiet);
            let sign = Sign { port: Some(PORT), notable: notable.then_some(psn), urgent: false, round: false };
            prop_assert_eq!(passes, entry.turn(sign, now, refresh, &slow).is_none());
            if passes {
                prop_assert_eq!(format!("{quick:?}"), format!("{slow:?}"));
            } else {
                prop_assert_eq!(quick.allowance(), allowance);
            }
        }
    }

    /// A flow whose refresh waits for a chosen packet is counted the fast way until then, or until patience is over.
    #[test]
    fn a_flow_that_waits_is_quiet() {
        let (port, queue) = (50_000, QueueKey(0xfb));
        let (now, refresh) = (
            stamp(Nanos::from_millis(100)),
            stamp(Nanos::from_millis(10)),
        );
        let seen = (0..1_000)
            .fold(Allowance::NEW, |seen, _| seen.one_more())
            .refreshed(0);
        for (age, waits) in [
            (refresh - 1, true),
            (refresh, true),
            (patience(refresh) - 1, true),
            (patience(refresh), false),
        ] {
            let slot = Slot::default();
            slot.renew([1, 2], queue, now - age, 0);
            slot.moves(Some(port));
            slot.set_control(slot.generation(), SlotControl::paired(true));
            let quiet = Quiet::new(queue, now, refresh);
            // Without a packet that could be chosen nothing is waited for.
            slot.set_allowance(seen);
            assert_eq!(slot.quiet_age(port, quiet, true).is_some(), age < refresh);
            slot.set_allowance(seen.one_more());
            let found = slot.quiet_age(port, quiet, true);
            assert_eq!(found, waits.then_some(age.into()));
            let Some(age) = found else { continue };
            let passes = |psn| slot.lets_pass(u32::MAX, psn, age, quiet);
            assert!(seen.is_chosen(0) && !seen.is_chosen(1));
            assert!(passes(1));
            assert_eq!(passes(0), age < refresh.into());
        }
    }
}
