//! Reaction time: from the enqueue that crosses a threshold to the time at which the CNP that answers it is offered to the device.
//!
//! The worker publishes when a queue's depth last rose to `shallow` and to `hard`; the first CNP after each crossing carries that time to
//! the worker that sends it, which records the time elapsed ([`crate::worker::timings`]).

use npcc_cnp::admission::CnpRequest;
use npcc_pipeline::units::{MAX_PORTS, Nanos, PRIORITIES};

use crate::worker::timings::TimingKind;

/// Crossing of a threshold that a CNP answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThresholdCrossing {
    /// Threshold that was crossed, [`TimingKind::Shallow`] or [`TimingKind::Hard`].
    pub threshold: TimingKind,
    /// Time of the crossing.
    pub at: Nanos,
}

/// Record of answered crossings, which finds the first CNP after each. Control core only.
#[derive(Debug)]
pub struct AnsweredCrossings {
    /// Times of the crossings answered last: shallow, hard, of each queue.
    answered: Box<[[[Nanos; 2]; PRIORITIES]]>,
}

impl Default for AnsweredCrossings {
    fn default() -> AnsweredCrossings {
        AnsweredCrossings {
            answered: vec![[[Nanos::ZERO; 2]; PRIORITIES]; MAX_PORTS].into_boxed_slice(),
        }
    }
}

impl AnsweredCrossings {
    /// Returns the crossing that this CNP would be the first to answer, if any; `crossed` are the times from the queue's gauges.
    #[must_use]
    pub fn crossing_answered_by(
        &self,
        request: &CnpRequest,
        crossed: [Nanos; 2],
    ) -> Option<ThresholdCrossing> {
        let [answered_shallow, answered_hard] = self
            .answered
            .get(request.egress.index())?
            .get(request.priority.index())?;
        let [shallow, hard] = crossed;
        if hard > *answered_hard {
            return Some(ThresholdCrossing {
                threshold: TimingKind::Hard,
                at: hard,
            });
        }
        (shallow > *answered_shallow).then_some(ThresholdCrossing {
            threshold: TimingKind::Shallow,
            at: shallow,
        })
    }

    /// Marks the crossings in `crossed` as answered by this CNP, which has been handed over.
    pub fn set_answered(&mut self, request: &CnpRequest, crossed: [Nanos; 2]) {
        let port = self.answered.get_mut(request.egress.index());
        if let Some(answered) = port.and_then(|port| port.get_mut(request.priority.index())) {
            *answered = crossed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::units::{PortId, Priority};
    use npcc_roce::key::{FlowKey, Qpn};
    use npcc_roce::pair::Evidence;
    use std::net::IpAddr;

    #[test]
    fn only_the_first_cnp_after_a_crossing_that_leaves_answers_it() {
        let request = CnpRequest {
            flow: FlowKey::new(
                IpAddr::from([10, 0, 1, 3]),
                IpAddr::from([10, 0, 2, 2]),
                Qpn::new(1),
            ),
            sender_qpn: Qpn::new(2),
            evidence: Evidence::PortHash,
            ingress: PortId(0),
            egress: PortId(1),
            priority: Priority::new(3),
        };
        let mut crossings = AnsweredCrossings::default();
        let times = |shallow, hard| [Nanos(shallow), Nanos(hard)];
        let mut send = |request: &CnpRequest, crossed| {
            let answers = crossings.crossing_answered_by(request, crossed);
            assert_eq!(
                crossings.crossing_answered_by(request, crossed),
                answers,
                "refused"
            );
            crossings.set_answered(request, crossed);
            answers
        };
        assert_eq!(send(&request, times(0, 0)), None, "never crossed");
        assert_eq!(
            send(&request, times(10, 0)),
            Some(ThresholdCrossing {
                threshold: TimingKind::Shallow,
                at: Nanos(10)
            })
        );
        assert_eq!(send(&request, times(10, 0)), None);
        assert_eq!(
            send(&request, times(20, 25)),
            Some(ThresholdCrossing {
                threshold: TimingKind::Hard,
                at: Nanos(25)
            })
        );
        assert_eq!(
            send(&request, times(20, 25)),
            None,
            "the hard crossing answered both"
        );
        let other = CnpRequest {
            priority: Priority::new(4),
            ..request
        };
        assert!(
            send(&other, times(20, 0)).is_some(),
            "each queue for itself"
        );
    }
}
