//! How each host's network card answers CNPs: the odds that it responds, and as which kind of card.
//!
//! A card is one for all queue pairs of its host, so that what one flow showed counts for the others. What is kept is, for each kind of card that
//! responds ([`crate::cards`]), the logarithm of how much likelier it makes what was measured than a sender that does not respond
//! ([`crate::likelihood`]); the host's odds are the prior's and those of the kind that fits best. They stay within [`MOST`] and drift back to the prior, as
//! cards, paths and applications change.
//!
//! Laws: what flows of a host show within [`APART`] counts once, in whatever order it comes. What could not be measured moves nothing. One
//! host's measurements move no other's odds.

mod view;

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

use crate::cards::KINDS;
use crate::fixed_map::FixedMap;
use crate::key::{Bits, FlowKey};
use crate::likelihood::{MilliNats, odds};
use crate::response::{Measured, Outcome, Unmeasured};
pub use view::{HostResponse, HostResponseView};

/// Hosts remembered; the one not told for longest is forgotten for another.
const HOSTS: usize = 4_096;
/// The most that is remembered for a host or against it: e^6 is 400 to 1.
const MOST: MilliNats = 6_000;
/// Flows of a host that are measured closer together than this saw the same, and count once.
const APART: Nanos = Nanos::from_micros(200);
/// What is remembered fades to a third in this time, ...
const FADES: Nanos = Nanos::from_millis(1_000);
/// ... in steps of so long.
const FADE_STEP: Nanos = Nanos::from_millis(10);
/// Prior odds of a host of which the operator says that it responds, to one.
pub(crate) const ANSWERING: u16 = 1_000;
/// Odds from which a host is said to answer.
const ANSWERS: MilliNats = 100;
/// Odds this far below even are below even, and not what rounding left.
const BELOW: MilliNats = -50;
/// Another kind of card fits clearly better: one clear hit more does.
const CLEARLY: MilliNats = 500;
/// Most that a flow may be allowed to send, in 65,536ths of what it sends.
const MOST_HEADROOM: u32 = 256 << 16;

named! {
    /// What is believed of a host, by its odds.
    #[derive(Default)]
    pub enum Standing {
        /// Even odds, or little more: nothing was measured, or as much for it as against it.
        #[default]
        Unknown = "unknown",
        /// Below even odds: its flows get the CNPs of marks alone.
        Doubted = "doubted",
        /// Its flows slow down when signalled, and stay slow.
        Answers = "answers",
    }
}

impl Standing {
    /// Below even odds.
    pub(crate) const fn is_doubted(self) -> bool {
        matches!(self, Standing::Doubted)
    }
}

/// Log-likelihood ratio of each kind of card against a sender that does not respond.
type OfKinds = [MilliNats; KINDS];

/// What is known of one host.
#[derive(Debug, Clone, Copy, Default)]
struct HostState {
    prior: MilliNats,
    /// Of the times before the latest measurements that count once.
    before: OfKinds,
    /// Sum of those, and how many they are.
    latest: (OfKinds, i32),
    /// When the first of them was taken.
    since: Option<Nanos>,
    /// Until when odds have faded.
    faded: Nanos,
    /// Measurements that spoke for it, and against it.
    worked: u32,
    vain: u32,
    /// What could not be measured, by reason.
    unmeasured: [u32; Unmeasured::COUNT],
    /// What its contributors put into watched queues in a window, as added up in the call of this time.
    sum: (Nanos, u64),
}

impl HostState {
    fn kinds(&self) -> OfKinds {
        let mut kinds = self.before;
        for (kind, sum) in kinds.iter_mut().zip(self.latest.0) {
            *kind = (*kind + sum / self.latest.1.max(1)).clamp(-MOST - self.prior, MOST);
        }
        kinds
    }

    /// The logarithm of its odds of responding.
    fn odds(&self) -> MilliNats {
        let best = self.kinds().into_iter().max();
        self.prior + best.unwrap_or(0)
    }

    fn standing(&self) -> Standing {
        match self.odds() {
            odds if odds >= ANSWERS => Standing::Answers,
            odds if odds >= BELOW => Standing::Unknown,
            _ => Standing::Doubted,
        }
    }

    /// What was remembered drifts back to the prior.
    fn fade(&mut self, now: Nanos) {
        let passed = now.since(self.faded);
        if passed < FADE_STEP {
            return;
        }
        self.faded = now;
        let lost = MilliNats::try_from(passed.min(FADES).0 / 1_000_000).unwrap_or(1_000);
        (self.before, self.latest) = (self.kinds(), ([0; KINDS], 0));
        for kind in &mut self.before {
            *kind -= *kind * lost / 1_000;
        }
    }

    fn learn(&mut self, measured: &Measured, now: Nanos) {
        self.fade(now);
        if self.since.is_none_or(|since| now.since(since) >= APART) {
            (self.before, self.latest) = (self.kinds(), ([0; KINDS], 0));
            self.since = Some(now);
        }
        let odds = self.odds();
        self.latest.1 += 1;
        for (sum, expected) in self.latest.0.iter_mut().zip(measured.expected) {
            *sum += measured.seen.weigh(expected);
        }
        let counts = self.odds().cmp(&odds);
        self.worked = self.worked.saturating_add(u32::from(counts.is_gt()));
        self.vain = self.vain.saturating_add(u32::from(counts.is_lt()));
    }

    fn note(&mut self, reason: Unmeasured) {
        if let Some(count) = self.unmeasured.get_mut(reason.index()) {
            *count = count.saturating_add(1);
        }
    }
}

/// The control core's side.
#[derive(Debug)]
pub(crate) struct HostResponses {
    map: FixedMap<(Bits, bool), HostState>,
}

impl HostResponses {
    pub(crate) fn new(seed: u64) -> HostResponses {
        HostResponses {
            map: FixedMap::new(HOSTS, seed),
        }
    }

    fn known(&self, flow: &FlowKey, place: u32) -> Option<&HostState> {
        let host = (flow.src, flow.is_ipv6());
        self.map
            .get(place)
            .filter(|_| self.map.key(place) == Some(host))
    }

    /// What is believed of the sender of `flow`; `place` is what [`HostResponses::remember`] said last.
    pub(crate) fn standing(&self, flow: &FlowKey, place: u32) -> Standing {
        self.known(flow, place)
            .map_or(Standing::Unknown, HostState::standing)
    }

    /// Strikes on flows of this sender may become CNPs unless it is below even odds and never slowed down after one.
    pub(crate) fn may_be_owed(&self, flow: &FlowKey, place: u32) -> bool {
        let never_fell = |state: &HostState| state.standing().is_doubted() && state.worked == 0;
        !self.known(flow, place).is_some_and(never_fell)
    }

    /// The kind of card that the sender of `flow` most likely has, if it responds: the first, unless it fits clearly worse.
    pub(crate) fn kind(&self, flow: &FlowKey, place: u32) -> usize {
        let kinds = self.known(flow, place).map_or([0; KINDS], HostState::kinds);
        let best = kinds.into_iter().max().unwrap_or(0);
        let fits = |kind: &MilliNats| *kind >= best - CLEARLY;
        kinds.iter().position(fits).unwrap_or(0)
    }

    /// The sender of `flow` is to be remembered: says where. `prior` is the odds, to one, that it responds, as long as nothing was measured.
    pub(crate) fn remember(
        &mut self,
        flow: &FlowKey,
        place: u32,
        prior: impl Fn() -> u16,
        view: &HostResponseView,
    ) -> u32 {
        if self.known(flow, place).is_some() {
            self.map.touch(place);
            return place;
        }
        let host = (flow.src, flow.is_ipv6());
        if let Some(found) = self.map.find(&host) {
            self.map.touch(found);
            return found;
        }
        if self.map.is_full()
            && let Some(oldest) = self.map.oldest(0)
        {
            self.map.remove(oldest);
            view.forget(oldest);
        }
        let state = HostState {
            prior: odds(prior()),
            ..HostState::default()
        };
        let Some(place) = self.map.insert(host, state) else {
            return u32::MAX;
        };
        if state.prior > 0 {
            view.show(place, host, &state);
        }
        place
    }

    /// A contributor whose host is remembered at `place` put so many bytes into a watched queue in a window. Says what is believed of the host.
    pub(crate) fn add(&mut self, place: u32, bytes: u64, now: Nanos) -> Standing {
        let Some(state) = self.map.get_mut(place) else {
            return Standing::Unknown;
        };
        state.fade(now);
        if state.sum.0 != now {
            state.sum = (now, 0);
        }
        state.sum.1 = state.sum.1.saturating_add(bytes);
        state.standing()
    }

    /// What the host's contributors send together, in 65,536ths of these bytes of one of them, as added up in this call: one of them alone
    /// may be allowed to send as much.
    pub(crate) fn headroom(&self, place: u32, bytes: u64, now: Nanos) -> u32 {
        let state = self.map.get(place).filter(|state| state.sum.0 == now);
        let sum = u128::from(state.map_or(0, |state| state.sum.1));
        let headroom = (sum << 16) / u128::from(bytes.max(1));
        u32::try_from(headroom)
            .unwrap_or(u32::MAX)
            .clamp(1 << 16, MOST_HEADROOM)
    }

    /// Takes what was measured of a flow, or that nothing could be.
    pub(crate) fn learn(
        &mut self,
        flow: &FlowKey,
        place: u32,
        outcome: &Outcome,
        now: Nanos,
        view: &HostResponseView,
    ) {
        let host = (flow.src, flow.is_ipv6());
        if self.map.key(place) != Some(host) {
            return;
        }
        if let Some(state) = self.map.get_mut(place) {
            match outcome {
                Outcome::Measured(measured) => state.learn(measured, now),
                Outcome::Unmeasured(reason) => state.note(*reason),
            }
            view.show(place, host, state);
        }
    }
}

#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod tests;
