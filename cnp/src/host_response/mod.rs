//! How each host's network card answers CNPs: whether its flows slow down and stay slow, and how deep a cut is.
//!
//! A card is one for all queue pairs of its host, so that what one flow showed counts for the others. A host is believed to answer when
//! measurements ([`crate::response`]) found an effect that lasted, where one with an effect counts as two in vain. One that is doubted, because there were more in vain, is left
//! to its ECN marks as if there were no NPCC, but for one CNP a flow in [`SILENCE`] by which it comes back when it answers after all; three more
//! in vain and it has *fallen back*. CNPs that do not hold a sender are not merely useless: with every one of them alpha starts to fade, and
//! what its receiver's CNPs could still have held is held by nobody.
//! How deep a cut is, is learned by the time since the CNP before it: DCQCN's alpha fades quickly on some cards, slowly as
//! published, and starts anew on others once the flow was back at its line rate.

mod cuts;
mod view;

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

use crate::fixed_map::FixedMap;
use crate::key::{Bits, FlowKey};
use crate::response::Measured;
use cuts::Cuts;
pub use cuts::{CutDepth, GAP_NAMES, GAPS};
pub use view::{HostResponse, HostResponseView};

/// Hosts remembered; the one not told for longest is forgotten for another.
const HOSTS: usize = 4_096;
/// What a measurement with an effect counts against one in vain. A card that answers is misread now and then, as its own recovery, a
/// changed path or another queue's CNPs fall into the measurement: three in ten were. One that does not answer hardly ever shows an effect.
/// The logarithms of how likely each is with either card (Wald's sequential test) are two to one.
const WORKED: i8 = 2;
/// Measurements in vain, less [`WORKED`] times those with an effect, by which a host falls back.
const VAIN: i8 = -3;
/// Flows of a host that are measured closer together than this saw the same, and count once.
const APART: Nanos = Nanos::from_micros(200);
/// Where a host begins of which the operator says that it answers: so many measurements must be in vain before it is not believed to.
const BELIEVED: i8 = 3;
/// Shortest time between two CNPs to a flow of a host that is doubted or has fallen back.
pub(crate) const SILENCE: Nanos = Nanos::from_millis(100);
/// Most that a flow may be allowed to send, in 65,536ths of what it sends.
const MOST_HEADROOM: u32 = 256 << 16;
/// No more than these are remembered, either way.
const MOST: i8 = 6;

named! {
    /// What is believed of a host.
    #[derive(Default)]
    pub enum Standing {
        /// Nothing was measured, or as much for as against it.
        #[default]
        Unknown = "unknown",
        /// More was measured in vain than not, but not enough to fall back: its flows are marked as without NPCC until they show more.
        Doubted = "doubted",
        /// Its flows slow down when told, and stay slow.
        Answers = "answers",
        /// Telling it does not help: its flows are marked as without NPCC.
        FallenBack = "fallen-back",
    }
}

/// What is known of one host.
#[derive(Debug, Clone, Copy, Default)]
struct HostState {
    score: i8,
    /// When the score was last changed.
    scored: Option<Nanos>,
    fallen_back: bool,
    /// Measurements with an effect that lasted, and without.
    worked: u32,
    vain: u32,
    cuts: Cuts,
    /// What its contributors put into watched queues in a window, as added up in the call of this time.
    sum: (Nanos, u64),
}

impl HostState {
    const fn standing(&self) -> Standing {
        if self.fallen_back {
            Standing::FallenBack
        } else if self.score > 0 {
            Standing::Answers
        } else if self.score < 0 {
            Standing::Doubted
        } else {
            Standing::Unknown
        }
    }

    fn learn(&mut self, measured: &Measured, now: Nanos) {
        let counts = self.scored.is_none_or(|at| now.since(at) >= APART);
        let step = if measured.worked { WORKED } else { -1 };
        if measured.worked {
            self.worked = self.worked.saturating_add(1);
        } else {
            self.vain = self.vain.saturating_add(1);
        }
        if counts {
            self.score = (self.score + step).clamp(-MOST, MOST);
            self.scored = Some(now);
        }
        self.fallen_back = if self.fallen_back {
            self.score < 0
        } else {
            self.score <= VAIN
        };
        self.cuts.learn(measured);
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

    /// Whether strikes on flows of this sender may become CNPs: a host that is doubted and never slowed down after one keeps its CE.
    pub(crate) fn may_be_owed(&self, flow: &FlowKey, place: u32) -> bool {
        let doubted = |state: &HostState| state.score < 0 && state.worked == 0;
        !self.known(flow, place).is_some_and(doubted)
    }

    /// Share of the rate that a CNP so long after the one before costs flows of this host, in 65,536ths, where that was learned.
    pub(crate) fn cut(&self, flow: &FlowKey, place: u32, gap: Nanos) -> Option<u32> {
        self.known(flow, place)?.cuts.at(gap)
    }

    /// The sender of `flow` is to be remembered: says where. `answers` is what is believed of it when it is not known yet.
    pub(crate) fn remember(
        &mut self,
        flow: &FlowKey,
        place: u32,
        answers: impl Fn() -> bool,
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
            score: if answers() { BELIEVED } else { 0 },
            ..HostState::default()
        };
        let Some(place) = self.map.insert(host, state) else {
            return u32::MAX;
        };
        if state.score > 0 {
            view.show(place, host, &state);
        }
        place
    }

    /// A contributor whose host is remembered at `place` put so many bytes into a watched queue in a window. Says what is believed of the host.
    pub(crate) fn add(&mut self, place: u32, bytes: u64, now: Nanos) -> Standing {
        let Some(state) = self.map.get_mut(place) else {
            return Standing::Unknown;
        };
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

    /// Takes what was measured of a flow.
    pub(crate) fn learn(
        &mut self,
        flow: &FlowKey,
        place: u32,
        measured: &Measured,
        now: Nanos,
        view: &HostResponseView,
    ) {
        let host = (flow.src, flow.is_ipv6());
        if self.map.key(place) != Some(host) {
            return;
        }
        if let Some(state) = self.map.get_mut(place) {
            state.learn(measured, now);
            view.show(place, host, state);
        }
    }
}

#[cfg(test)]
mod tests;
