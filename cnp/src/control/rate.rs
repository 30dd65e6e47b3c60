//! Rates of contributors as measured, the rate to which a round cuts them, and the expected cut by a CNP.

use npcc_pipeline::units::{BitRate, Nanos};

use super::ControlCore;
use super::heaviest::Heaviest;
use super::round::RoundRequest;
use crate::dcqcn::cut_of;
use crate::policy::Choice;
use crate::table::Flow;

/// Number of heaviest contributors from which the fair rate is computed. If more are above it, the result is too low, as these are taken to give up
/// the whole excess among them; the round still ends once the sum of the cuts is reached.
const FAIR_AMONG: usize = 256;
/// Time after a CNP for which its effect may be pending.
const CNP_PENDING: Nanos = Nanos::from_millis(1);

impl ControlCore {
    /// Rate that a flow is predicted to have once the CNPs on their way have taken effect, from its measured rate. That may still include the silence
    /// before a start; so for a flow without a CNP in the last millisecond, the result is at least its share of the arrival rate.
    pub(super) fn rate(&self, index: u32, bytes: u64, request: &RoundRequest<'_>) -> u64 {
        let flow = self.tracker.flows.get(index);
        let now = request.now;
        let known = flow.map_or(0, |flow| flow.dcqcn.predicted());
        let pending = |flow: &Flow| flow.cnps > 0 && now.since(flow.last_cnp) <= CNP_PENDING;
        if flow.is_some_and(pending) && known > 0 {
            return known;
        }
        let share = u128::from(request.context.arrival.0) * u128::from(bytes)
            / u128::from(request.total.max(1));
        u64::try_from(share).unwrap_or(u64::MAX).max(known)
    }

    /// Max-min fair rate of the contributors that a decision of this round may signal; 0 if the decision names no cut.
    pub(super) fn fair_rate(
        &self,
        contributors: &mut Heaviest<'_>,
        request: &RoundRequest<'_>,
    ) -> BitRate {
        let Choice::Cut(excess) = request.decision.choice else {
            return BitRate(0);
        };
        let heaviest = (0..FAIR_AMONG).map_while(|place| contributors.at(place));
        let rates = heaviest.map(|(bytes, flow)| self.rate(flow, bytes, request));
        BitRate(max_min_rate(rates, excess.0))
    }

    /// Expected cut by a CNP to a flow that sends at this rate.
    pub(super) fn cut(&self, index: u32, rate: u64, now: Nanos) -> BitRate {
        let flow = self.tracker.flows.get(index);
        cut_of(rate, flow.map_or(0, |flow| flow.dcqcn.cut_share(now)))
    }

    /// Records a CNP to a sender in its model; returns the time until its effect shows.
    pub(super) fn record_cnp_sent(&mut self, index: u32, rate: u64, now: Nanos) -> Nanos {
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.dcqcn.record_cnp_sent(rate, now);
        }
        self.tracker.feedback(index)
    }

    /// Records that a flow was signalled with a CNP, and starts counting the bytes that earn its next.
    pub(super) fn note_cnp(&mut self, index: u32, now: Nanos) {
        self.tracker.note_signalled(index, now);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.cnps += 1;
            flow.last_cnp = now;
            flow.refused = None;
        }
        self.tracker.spend_earned(index);
        self.tracker.flows.publish(index);
    }
}

/// Returns the max-min fair rate in bit/s: the level to which all faster senders are cut so that they give up `excess` together. For the
/// `k` faster senders it is (sum of their rates - `excess`) / k. Rates come in the order of bytes, so about fastest first. Each counts if it
/// is above the result for those before it, even if one of them was slower.
pub(super) fn max_min_rate(rates: impl Iterator<Item = u64>, excess: u64) -> u64 {
    let (mut sum, mut above, mut fair) = (0u64, 0, 0);
    for rate in rates.filter(|rate| *rate > 0) {
        if rate > fair {
            above += 1;
            sum = sum.saturating_add(rate);
            fair = sum.saturating_sub(excess) / above;
        }
    }
    fair
}
