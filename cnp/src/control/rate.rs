//! Rates of contributors as measured, the rate to which a round cuts them, and the expected cut by a CNP.

use npcc_pipeline::units::{BitRate, Nanos};

use super::ControlCore;
use super::heaviest::Heaviest;
use super::round::RoundRequest;
use crate::dcqcn::cut_of;
use crate::policy::Choice;
use crate::table::Flow;
use crate::window::mul_div;

/// Number of heaviest contributors from which the fair rate is computed. If more are above it, the result is too low, as these are taken to give up
/// the whole excess among them; the round still ends once the sum of the cuts is reached.
const FAIR_AMONG: usize = 256;
/// Sending time below which a flow has no rate: sooner, the order of packets is all there is.
const BEGUN: Nanos = Nanos::from_micros(10);
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

    /// Bytes that a flow puts into its queue in a window, at its present rate; 0 if it has just begun and that is not known.
    fn bytes_before(&self, index: u32, bytes: u64, now: Nanos) -> u64 {
        let window = self.tracker.window();
        let Some(flow) = self.tracker.flows.get(index) else {
            return 0;
        };
        let (since, before) = flow.resumed;
        let sent_for = now.since(since);
        if flow.lately > 0 {
            flow.lately
        } else if sent_for >= window {
            bytes
        } else if sent_for < BEGUN {
            0
        } else {
            mul_div(flow.bytes.saturating_sub(before), window.0, sent_for.0)
        }
    }

    /// Expected cut by a CNP to a flow that sends at this rate.
    pub(super) fn cut(&self, index: u32, rate: u64, now: Nanos) -> BitRate {
        cut_of(rate, self.tracker.cut_share(index, now))
    }

    /// Records a CNP to a sender in its model; returns the time until its effect shows.
    pub(super) fn record_cnp_sent(&mut self, index: u32, rate: u64, now: Nanos) -> Nanos {
        let share = self.tracker.cut_share(index, now);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.dcqcn.record_cnp_sent(rate, share, now);
        }
        self.tracker.feedback(index)
    }

    /// Opens a measurement of the response of a flow just signalled with `cnps` CNPs, and starts counting the bytes that earn its next CNP.
    pub(super) fn open_measurement(&mut self, (index, cnps): (u32, usize), bytes: u64, now: Nanos) {
        let before = self.bytes_before(index, bytes, now);
        let hidden_ratio = self.tracker.hidden_ratio(index, bytes, now);
        self.tracker.remember_host(index);
        let config = self.tracker.response_config(index);
        if let Some(flow) = self.tracker.flows.get_mut(index) {
            flow.cnps += cnps as u64;
            flow.last_cnp = now;
            flow.refused = None;
            let points = &flow.dcqcn.points;
            flow.response
                .record_cnp_sent(now, before, points, hidden_ratio, &config);
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
