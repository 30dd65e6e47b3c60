//! Compares the UDP source port of endpoints with the hash of both queue pairs, anew whenever an endpoint with the port comes or goes. For each
//! address pair it counts the endpoints that follow the hash and those that do not.

use npcc_pipeline::units::Nanos;

use super::endpoints::Endpoints;
use super::pair_state::Verdict;
use super::port_hash::port_of;
use crate::fixed_map::NONE;

/// Number of endpoints on one port above which they are not compared: whoever puts them there does not follow the hash.
pub(super) const CROWD: u32 = 8;

impl Endpoints {
    /// Renews the verdicts of a group and of its opposite, and starts their count of steady packets anew.
    pub(super) fn update_verdicts(&mut self, group: u32, now: Nanos) {
        let opposite = self.opposite_index(group);
        let size = |index: Option<u32>| {
            index
                .and_then(|index| self.group(index))
                .map_or(0, |group| group.endpoints.len)
        };
        let (own, other) = (size(Some(group)), size(opposite));
        // Beyond the crowd limit all verdicts are silent already.
        if own > CROWD + 1 || other > CROWD + 1 {
            return;
        }
        let crowded = own > CROWD || other > CROWD;
        for group in [Some(group), opposite].into_iter().flatten() {
            let mut at = self.group(group).map_or(NONE, |group| group.endpoints.head);
            while let Some(next) = self.next_in_group(at) {
                let (verdict, fits) = if crowded {
                    (Verdict::Silent, NONE)
                } else {
                    self.verdict_of(at)
                };
                self.set_verdict(at, verdict);
                if let Some(state) = self.endpoint_mut(at) {
                    state.fits = fits;
                    state.packets_at_change = state.packets;
                }
                if self.has_foreign() {
                    self.update_shared(at, now);
                }
                at = next;
            }
        }
    }

    /// Sets a verdict and its address pair's score. UC has no score: it need not have a partner.
    pub(super) fn set_verdict(&mut self, endpoint: u32, verdict: Verdict) {
        let Some(state) = self.endpoint_mut(endpoint) else {
            return;
        };
        let old = std::mem::replace(&mut state.verdict, verdict);
        let (pair, transport) = (state.pair, state.transport);
        if transport.is_uc() {
            return;
        }
        if let Some(pair) = self.pair_mut(pair) {
            pair.own.count(old, verdict);
        }
    }

    /// Verdict of the hash on an endpoint, and the endpoint that fits it if exactly one does.
    fn verdict_of(&self, endpoint: u32) -> (Verdict, u32) {
        if self.endpoint(endpoint).is_none_or(|state| state.labelled) {
            return (Verdict::Silent, NONE);
        }
        let candidates = self
            .opposite(endpoint)
            .map_or(0, |group| group.endpoints.len);
        let mut fitting = self.all_fitting(endpoint);
        match (candidates, fitting.next(), fitting.next()) {
            (0, ..) => (Verdict::Silent, NONE),
            (_, None, _) => (Verdict::Disagree, NONE),
            (_, Some(fits), None) => (Verdict::Agree, fits),
            (_, Some(_), Some(_)) => (Verdict::Ambiguous, NONE),
        }
    }

    /// Endpoints with this one's port in the other direction whose queue pair gives that port by the hash.
    fn all_fitting(&self, endpoint: u32) -> impl Iterator<Item = u32> + '_ {
        let own = self.key(endpoint).map(|key| key.dest_qp());
        let port = self.port(endpoint);
        let group = self
            .endpoint(endpoint)
            .and_then(|state| self.opposite_index(state.group));
        let members = self.members(group.unwrap_or(NONE));
        members.filter_map(move |(index, key)| {
            let fits = own.is_some_and(|own| port == Some(port_of(own, key.dest_qp())));
            fits.then_some(index)
        })
    }
}
