//! What the worker alone keeps of a flow: its key, and which of its packets are still shown to the control core.

use npcc_pipeline::parse::Roce;
use npcc_pipeline::wire::bth::{RoceClass, has_aeth};

use super::slot::Slot;
use super::{CNP_GAP, stamp};
use crate::key::is_v4;

/// Details of a flow not yet paired: any packet, and packets with AckReq or AETH only.
const DETAILS_ANY: u8 = 8;
const DETAILS_NOTABLE: u8 = 8;
/// Chosen packets shown after each refresh, while the flow is still not paired.
const AGAIN: u8 = 4;
/// Notable packets between two refreshes, in powers of two, of which all are chosen.
const CHOOSY: u8 = 2;
/// Changes of a flow's UDP source port that are shown at once, of those between two refreshes.
const CHANGES: u8 = 4;

/// One flow: a cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Entry {
    pub(super) key: [u64; 5],
    pub(super) generation: u32,
    refreshed: u32,
    cnp_shown: u32,
    /// UDP source port.
    port: u16,
    any: u8,
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
    pub(super) fn new(key: [u64; 5], generation: u32, now: u32) -> Entry {
        Entry {
            key,
            generation,
            refreshed: now,
            cnp_shown: now,
            port: 0,
            any: DETAILS_ANY,
            notable: DETAILS_NOTABLE,
            again: 0,
            choice: 0,
            notables: 0,
            changes: CHANGES,
            fresh: true,
        }
    }

    /// Whether it is this flow's. The words beyond the second are IPv6's.
    #[inline]
    pub(super) fn is(&self, key: &[u64; 5]) -> bool {
        let ([a, b, ..], [c, d, ..]) = (&self.key, key);
        a == c && b == d && (is_v4(key) || self.key == *key)
    }

    /// Whether a packet that is neither urgent nor notable is surely not shown: the quick answer for almost all.
    #[inline]
    pub(super) fn is_quiet(&self, src_port: u16, now: u32, refresh: u32, shared: &Slot) -> bool {
        self.port == src_port
            && now.wrapping_sub(self.refreshed) < refresh
            && (self.any == 0 || shared.is_paired(self.generation))
    }

    /// Takes a packet's UDP source port; `true` when it is another than before. A CNP has one of its own.
    fn moves(&mut self, port: Option<u16>) -> bool {
        match port {
            Some(port) if port != self.port => std::mem::replace(&mut self.port, port) != 0,
            _ => false,
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
        let moved = self.moves(port);
        self.notables = self.notables.saturating_add(u16::from(notable.is_some()));
        let since = now.wrapping_sub(self.refreshed);
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
        let turn = match (notable, self.notable, self.any, self.again) {
            (Some(_), 1.., ..) => Turn::Notable,
            (_, _, 1.., _) => Turn::Any,
            (Some(psn), _, _, 1..) if self.is_chosen(psn) => Turn::Chosen,
            _ => return None,
        };
        (!shared.is_paired(self.generation)).then_some(turn)
    }

    pub(super) fn shown(&mut self, turn: Turn, now: u32) {
        self.fresh = false;
        self.refreshed = now;
        match turn {
            Turn::Notable => self.notable -= 1,
            Turn::Any => self.any -= 1,
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

const _: () = assert!(size_of::<Entry>() == 64);
