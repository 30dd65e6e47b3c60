//! Responsiveness of each host's network card to CNPs: the odds that it responds, and the kind of card it most likely is.
//!
//! A card is one for all queue pairs of its host, so that a measurement of one flow counts for the others. The state of a host is, for each kind of
//! card that responds ([`crate::reaction_point`]), the logarithm of how much likelier it makes the measurements than a sender that does not respond
//! ([`crate::likelihood`]); the host's odds are the prior's times those of the kind that fits best. They stay within [`MOST`] and drift back to the
//! prior, as cards, paths and applications change.
//!
//! Laws: measurements of a host's flows within [`SPACING`] count once, in whatever order they come. A measurement that failed moves nothing. One
//! host's measurements move no other's odds.

mod view;

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

use crate::fixed_map::FixedMap;
use crate::key::{Bits, FlowKey};
use crate::likelihood::{MilliNats, odds};
use crate::reaction_point::KINDS;
use crate::response::{Measured, Outcome, Unmeasured};
pub use view::{HostResponse, HostResponseView};

/// Capacity of the table of hosts; the one not signalled for longest is replaced.
const HOSTS: usize = 4_096;
/// Limit of the log-odds kept for or against a host: e^6 is 400 to 1.
const MOST: MilliNats = 6_000;
/// Time within which measurements of a host's flows saw the same event, and count once.
const SPACING: Nanos = Nanos::from_micros(200);
/// Time constant with which a host's log-odds return to the prior: after it, about a third (1/e) of their distance is left.
const FADES: Nanos = Nanos::from_millis(1_000);
/// Shortest time between two steps of that return.
const FADE_STEP: Nanos = Nanos::from_millis(10);
/// Prior odds, to one, of a host that the operator lists as responding.
pub(crate) const ANSWERING: u16 = 1_000;
/// Log-odds from which a host is said to answer.
const ANSWERS: MilliNats = 100;
/// Log-odds that a host must have had for [`SURE`] to be doubted: nearly those of [`MOST`]. With -2,000 goodput beside a byte counter was 0.80, not 0.97.
const FLOOR: MilliNats = -5_500;
/// Time for which a host's odds must have been at the floor before it is doubted. With odds below even and no such time, hosts that obey were
/// doubted where several queue pairs share a host's link or CNPs are lost; goodput of a failover was 0.76.
const SURE: Nanos = Nanos::from_millis(10);
/// Difference at which another kind of card fits clearly better: that of one clear hit.
const CLEARLY: MilliNats = 500;
/// Maximum that a flow may be allowed to send, in 65,536ths of the bytes it sends.
const MAX_HIDDEN_RATIO: u32 = 256 << 16;

named! {
    /// Responsiveness class of a host, by its odds.
    #[derive(Default)]
    pub enum Responsiveness {
        /// Unknown: nothing was measured, or too little or not for long enough to say.
        #[default]
        Unknown = "unknown",
        /// Doubted: at the floor for long; its flows get the CNPs of marks alone.
        Unresponsive = "doubted",
        /// Answers: its flows slow down when signalled, and stay slow.
        Responsive = "answers",
    }
}

impl Responsiveness {
    /// Returns true if the host is doubted.
    pub(crate) const fn is_unresponsive(self) -> bool {
        matches!(self, Responsiveness::Unresponsive)
    }
}

/// Log-likelihood ratio of each kind of card against a sender that does not respond.
type OfKinds = [MilliNats; KINDS];

/// Responsiveness state of one host.
#[derive(Debug, Clone, Copy, Default)]
struct HostState {
    prior: MilliNats,
    /// Log-odds by kind from the time before `latest`.
    before: OfKinds,
    /// Sum and number of the latest measurements, which together count once.
    latest: (OfKinds, i32),
    /// Time at which the first of `latest` was taken.
    since: Option<Nanos>,
    /// Time up to which fading was applied.
    faded: Nanos,
    /// Number of measurements that spoke for the host (`worked`), and against it (`ineffective`).
    worked: u32,
    ineffective: u32,
    /// Number of failed measurements by reason.
    unmeasured: [u32; Unmeasured::COUNT],
    /// Time since which its odds have been at the floor, and time of the latest measurement.
    floored: Option<Nanos>,
    measured: Nanos,
    /// Bytes that its contributors put into watched queues in a window, added up in the call of this time.
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

    /// Logarithm of the host's odds of responding.
    fn odds(&self) -> MilliNats {
        let best = self.kinds().into_iter().max();
        self.prior + best.unwrap_or(0)
    }

    fn is_doubted(&self) -> bool {
        self.floored
            .is_some_and(|since| self.measured.since(since) >= SURE)
    }

    fn responsiveness(&self) -> Responsiveness {
        match self.odds() {
            odds if odds >= ANSWERS => Responsiveness::Responsive,
            _ if self.is_doubted() => Responsiveness::Unresponsive,
            _ => Responsiveness::Unknown,
        }
    }

    /// Fades the log-odds toward the prior.
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
        self.note_floor(now);
    }

    fn note_floor(&mut self, now: Nanos) {
        if self.odds() > FLOOR {
            self.floored = None;
        } else {
            self.floored.get_or_insert(now);
        }
    }

    fn learn(&mut self, measured: &Measured, now: Nanos) {
        self.fade(now);
        if self.since.is_none_or(|since| now.since(since) >= SPACING) {
            (self.before, self.latest) = (self.kinds(), ([0; KINDS], 0));
            self.since = Some(now);
        }
        let odds = self.odds();
        self.latest.1 += 1;
        for (sum, expected) in self.latest.0.iter_mut().zip(measured.expected) {
            *sum += measured.seen.weigh(expected);
        }
        self.measured = now;
        self.note_floor(now);
        let counts = self.odds().cmp(&odds);
        self.worked = self.worked.saturating_add(u32::from(counts.is_gt()));
        self.ineffective = self.ineffective.saturating_add(u32::from(counts.is_lt()));
    }

    fn note(&mut self, reason: Unmeasured) {
        if let Some(count) = self.unmeasured.get_mut(reason.index()) {
            *count = count.saturating_add(1);
        }
    }
}

/// Table of hosts' responsiveness: the control core's side.
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

    /// Responsiveness class of the sender of `flow`; `place` is the last result of [`HostResponses::remember`].
    pub(crate) fn responsiveness(&self, flow: &FlowKey, place: u32) -> Responsiveness {
        self.known(flow, place)
            .map_or(Responsiveness::Unknown, HostState::responsiveness)
    }

    /// Returns true if strikes on flows of this sender may become CNPs: unless it is doubted and never slowed down after one.
    pub(crate) fn may_be_owed(&self, flow: &FlowKey, place: u32) -> bool {
        let never_fell =
            |state: &HostState| state.responsiveness().is_unresponsive() && state.worked == 0;
        !self.known(flow, place).is_some_and(never_fell)
    }

    /// Index of the kind of card that the sender of `flow` most likely has, if it responds: the first, unless it fits clearly worse.
    pub(crate) fn kind(&self, flow: &FlowKey, place: u32) -> usize {
        let kinds = self.known(flow, place).map_or([0; KINDS], HostState::kinds);
        let best = kinds.into_iter().max().unwrap_or(0);
        let fits = |kind: &MilliNats| *kind >= best - CLEARLY;
        kinds.iter().position(fits).unwrap_or(0)
    }

    /// Makes or keeps an entry for the sender of `flow`; returns its place. `prior` is the odds, to one, that it responds, as long as nothing was measured.
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

    /// Adds the bytes that a contributor of the host at `place` put into a watched queue in a window. Returns the host's class.
    pub(crate) fn add(&mut self, place: u32, bytes: u64, now: Nanos) -> Responsiveness {
        let Some(state) = self.map.get_mut(place) else {
            return Responsiveness::Unknown;
        };
        state.fade(now);
        if state.sum.0 != now {
            state.sum = (now, 0);
        }
        state.sum.1 = state.sum.1.saturating_add(bytes);
        state.responsiveness()
    }

    /// Bytes that the host's contributors send together, in 65,536ths of these bytes of one of them, as added up in this call: one of them alone
    /// may be allowed to send as much.
    pub(crate) fn hidden_ratio(&self, place: u32, bytes: u64, now: Nanos) -> u32 {
        let state = self.map.get(place).filter(|state| state.sum.0 == now);
        let sum = u128::from(state.map_or(0, |state| state.sum.1));
        let hidden_ratio = (sum << 16) / u128::from(bytes.max(1));
        u32::try_from(hidden_ratio)
            .unwrap_or(u32::MAX)
            .clamp(1 << 16, MAX_HIDDEN_RATIO)
    }

    /// Takes the outcome of a flow's measurement, failed ones included.
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
