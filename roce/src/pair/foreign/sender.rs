//! Evidence `foreign`: an end that a peer reported, and that own packets confirm.
//!
//! A packet to an endpoint confirms a peer's end if its UDP source port is that end's too, and the hash of both queue pairs
//! ([`port_hash`]). As there, the formula is believed per address pair where it holds, own ends and reported ones counted together: of the
//! endpoints that share their port with a reported end of the other direction, more than 99 % must have one partner that fits, or most, where the two are
//! alone on their port. Fourteen bits are no proof against a peer that lies and computes the hash: it can choose among the queue pairs of a host
//! which of them gets the flow's CNPs, and no more than one for each `earned` bytes.
//!
//! The report of a host's agent names both queue pairs. A packet confirms the report if it carries the receiver's queue pair and the UDP source port.
//! A report without the partner's address names it by number only, so a port that is no hash (one for all connections) proves nothing by itself:
//! there packets to the sender's queue pair, from the same host and with the same port, must be seen as well.
//!
//! It counts only where own evidence pairs nobody. A peer's end does not count for a queue pair that packets here name too; an agent's does, unless
//! those packets contradict it: by their port, their transport, or a partner of their own. Where an own end fits the hash and too many
//! of the others' answers are missing here for it to be believed, the reported ends make up for those.

use npcc_pipeline::units::Nanos;

use super::super::calibrate::CROWD;
use super::super::pair_state::Verdict;
use super::super::port_hash::{self, port_of};
use super::super::{port as sole_port, psn};
use super::ForeignEnd;
use crate::fixed_map::NONE;
use crate::key::{FlowKey, Qpn};
use crate::pair::endpoints::{Endpoint, Endpoints};
use crate::pair::port_key::PortKey;
use crate::pair::transport::Transport;

/// Maximum number of leases with one UDP source port between two addresses that are compared.
const LEASES: u32 = 64;

/// Ends of either origin that share an endpoint's port, in the other direction.
#[derive(Debug, Clone, Copy, Default)]
struct Candidates {
    count: u32,
    /// Number of those that were reported.
    reported: u32,
    /// Number of those that fit the hash.
    fitting: u32,
    /// Queue pair of the last one that fits.
    sender: Option<Qpn>,
}

impl Candidates {
    const fn verdict(self) -> Verdict {
        match (self.count, self.fitting) {
            (0, _) => Verdict::Silent,
            (_, 0) => Verdict::Disagree,
            (_, 1) => Verdict::Agree,
            (_, _) => Verdict::Ambiguous,
        }
    }
}

impl Endpoints {
    /// Candidates for an endpoint, own and reported; none where there are too many to compare.
    fn candidates(&self, end: u32, now: Nanos) -> Candidates {
        let none = Candidates::default();
        let (Some(state), Some(key)) = (self.endpoint(end), self.key(end)) else {
            return none;
        };
        let Some(port) = self.port(end).filter(|_| !state.labelled) else {
            return none;
        };
        let own = self.opposite_index(state.group).unwrap_or(NONE);
        let size = |group: u32| self.group(group).map_or(0, |group| group.endpoints.len);
        let (reported, head) = self
            .foreign
            .group(&PortKey::of(&key, port, false).reversed());
        if size(state.group).max(size(own)).max(reported) > CROWD {
            return none;
        }
        let fits = |sender: Qpn| port_of(sender, key.dest_qp()) == port;
        let own = self.members(own).map(|(_, key)| (key, 0));
        let believed = |(_, end): &(FlowKey, &ForeignEnd)| end.partner.is_none();
        let reported = self.foreign.members(head, now).filter(believed);
        // A queue pair that packets here name is judged by them.
        let reported = reported.filter(|(key, _)| self.find(key).is_none());
        let all = own.chain(reported.map(|(key, _)| (key, 1)));
        all.fold(none, |mut found, (key, reported)| {
            found.count += 1;
            found.reported += reported;
            if fits(key.dest_qp()) {
                found.fitting += 1;
                found.sender = Some(key.dest_qp());
            }
            found
        })
    }

    /// Renews the verdict on an endpoint by own and reported ends together, and its address pair's score.
    pub(in crate::pair) fn update_shared(&mut self, end: u32, now: Nanos) {
        let is_rc = self
            .endpoint(end)
            .is_some_and(|state| state.transport == Transport::Rc);
        if is_rc {
            let found = self.candidates(end, now);
            // The other direction may not be seen at all where no end was reported.
            let judged = found.reported > 0;
            let verdict = if judged {
                found.verdict()
            } else {
                Verdict::Silent
            };
            self.set_shared(end, verdict);
        }
    }

    /// Sets the verdict by own and reported ends together.
    pub(in crate::pair) fn set_shared(&mut self, end: u32, verdict: Verdict) {
        let Some(state) = self.endpoint_mut(end) else {
            return;
        };
        let old = std::mem::replace(&mut state.shared, verdict);
        let pair = state.pair;
        if old != verdict
            && let Some(pair) = self.pair_mut(pair)
        {
            pair.shared.count(old, verdict);
        }
    }

    /// Renews the verdicts on the endpoints that a reported end with this port may belong to.
    pub(super) fn update_shared_of(&mut self, key: &FlowKey, port: u16, now: Nanos) {
        let group = self.find_group(&PortKey::of(key, port, false).reversed());
        let Some(group) = group else {
            return;
        };
        let members = self.group(group).map_or((0, NONE), |group| {
            (group.endpoints.len, group.endpoints.head)
        });
        let (len, mut at) = members;
        if len > CROWD {
            return;
        }
        while let Some(next) = self.next_in_group(at) {
            self.update_shared(at, now);
            at = next;
        }
    }

    /// Queue pair that sends to an endpoint, as a peer or a host's agent reported and its packets confirm.
    pub(in crate::pair) fn reported_sender(&self, end: u32, now: Nanos) -> Option<Qpn> {
        if self.foreign.is_empty() {
            return None;
        }
        let state = self.endpoint(end)?;
        if state.transport != Transport::Rc || state.verdict == Verdict::Ambiguous {
            return None;
        }
        let by_hash = self.fitting(end, now);
        match (self.leased(end, now), by_hash) {
            (Some(Err(Disputed)), _) => None,
            (Some(Ok(leased)), Some(fits)) if leased != fits => None,
            (Some(Ok(leased)), _) => Some(leased),
            (None, fits) => fits,
        }
    }

    /// The only queue pair, own or reported, that fits the hash, seen from both sides, where the formula is believed.
    fn fitting(&self, end: u32, now: Nanos) -> Option<Qpn> {
        let state = self.endpoint(end)?;
        let found = self.candidates(end, now);
        let sender = found.sender.filter(|_| found.verdict() == Verdict::Agree)?;
        let port = self.port(end)?;
        let group = self.group(state.group)?;
        let of_others = self.members(state.group).filter(|(other, _)| *other != end);
        let fits_another = of_others
            .into_iter()
            .any(|(_, key)| port_of(sender, key.dest_qp()) == port);
        let score = self.pair(state.pair)?.shared;
        let alone = group.endpoints.len == 1 && found.count == 1;
        let believed = score.holds() || score.is_usual() && alone;
        (believed && !fits_another).then_some(sender)
    }

    /// Queue pair that a host's agent says sends to this endpoint's.
    fn leased(&self, end: u32, now: Nanos) -> Option<Result<Qpn, Disputed>> {
        let (key, port) = (self.key(end)?, self.port(end)?);
        let to_sender = key.reversed(key.dest_qp());
        let ways = [
            Some(to_sender),
            (self.foreign.sourceless > 0).then(|| to_sender.sourceless()),
        ];
        let (mut silent, mut by_number) = (None, None);
        for way in ways.into_iter().flatten() {
            let (len, head) = self.foreign.group(&PortKey::of(&way, port, false));
            if len > LEASES {
                continue;
            }
            let named = |end: &ForeignEnd| end.partner == Some(key.dest_qp());
            let members = self.foreign.members(head, now);
            for (reported, _) in members.filter(|(_, end)| named(end)) {
                let sender = reported.dest_qp();
                if self.find(&key.reversed(sender)).is_some() {
                    continue;
                }
                let fits = way == to_sender || port_of(sender, key.dest_qp()) == port;
                let found = if fits { &mut silent } else { &mut by_number };
                *found = one_more(*found, sender);
            }
        }
        let undisputed =
            |silent: &Result<Qpn, Disputed>| by_number.is_none_or(|other| other == *silent);
        let silent = silent.map(|silent| Some(silent).filter(undisputed).unwrap_or(Err(Disputed)));
        self.answered(end, key, port, now).or(silent)
    }

    /// Queue pair that a host's agent says sends to this endpoint's, and to which packets with the same UDP source port come back. A lease that
    /// names no port (its port is the hash) counts for any that both directions have.
    fn answered(
        &self,
        end: u32,
        key: FlowKey,
        port: u16,
        now: Nanos,
    ) -> Option<Result<Qpn, Disputed>> {
        let opposite = self.opposite_index(self.endpoint(end)?.group)?;
        if self.group(opposite)?.endpoints.len > LEASES {
            return None;
        }
        let mut found = None;
        for (answers, to_sender) in self.members(opposite) {
            let sender = to_sender.dest_qp();
            let ports = [port, port_of(sender, key.dest_qp())];
            let says = |lease: &ForeignEnd| {
                lease.partner == Some(key.dest_qp()) && ports.contains(&lease.port)
            };
            let leased = [to_sender, to_sender.sourceless()]
                .iter()
                .any(|lease| self.foreign.believed(lease, now).is_some_and(says));
            if leased && self.agrees(answers, end, now) {
                found = one_more(found, sender);
            }
        }
        found
    }

    /// Returns true if packets to the sender's queue pair do not contradict that `end` is its partner.
    fn agrees(&self, answers: u32, end: u32, now: Nanos) -> bool {
        let partner = port_hash::partner(self, answers)
            .or_else(|| psn::partner(self, answers))
            .or_else(|| sole_port::partner(self, answers, now));
        let state = self.endpoint(answers);
        let fits_other = |state: &Endpoint| state.verdict == Verdict::Agree && state.fits != end;
        state.is_some_and(|state| state.transport == Transport::Rc && !fits_other(state))
            && partner.is_none_or(|partner| partner == end)
    }
}

/// Outcome with one queue pair more that is said to send.
fn one_more(found: Option<Result<Qpn, Disputed>>, sender: Qpn) -> Option<Result<Qpn, Disputed>> {
    match found {
        Some(before) if before != Ok(sender) => Some(Err(Disputed)),
        _ => Some(Ok(sender)),
    }
}

/// Error: two queue pairs are said to send to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Disputed;
