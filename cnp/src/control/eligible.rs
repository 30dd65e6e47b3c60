//! Filters out contributors that must not get a CNP of a policy, mostly by fields of the flow entry (a few loads each); the worker's slot is read
//! where bytes not read yet may earn the CNP.
//!
//! Laws: a flow that is refused costs the others nothing, neither a CNP of the round's budget nor a place among the few. The flows of an
//! unresponsive host get the CNPs of its trials alone, by which it can show otherwise.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::admission::Suppressed;
use crate::status::QueueStatus;

/// Time after which an insufficient pairing is looked up again, as time alone may make it better.
const UNPAIRED_FOR: Nanos = Nanos::from_millis(1);

/// Part of a queue's bytes (1/16) below which flows with far receivers do not matter: the others are then left to ECN. Where both share a queue,
/// flows that nobody signals would take what the others give up: one to 1 km had 97 % of the link beside one to 101 km.
const FAR_PART: u64 = 16;

/// Partition of the contributors.
#[derive(Debug)]
pub(super) struct Eligible<'a> {
    /// Eligible contributors whose evidence was enough when last looked up, or whose last look-up is at least [`UNPAIRED_FOR`] ago; it is looked up
    /// again before a CNP.
    pub(super) maybe_paired: &'a mut [(u64, u32)],
    pub(super) ineligible: &'a [(u64, u32)],
}

impl ControlCore {
    /// Partitions the contributors, and counts the reason for each that is ineligible.
    pub(super) fn eligible<'a>(
        &mut self,
        queue: usize,
        contributors: &'a mut [(u64, u32)],
        status: &QueueStatus,
        now: Nanos,
    ) -> Eligible<'a> {
        self.find_far_part(queue, contributors);
        let mut known = 0;
        for at in 0..contributors.len() {
            let Some((bytes, index)) = contributors.get(at).copied() else {
                break;
            };
            let host = self.tracker.remember_host(index);
            self.tracker.verdicts.add(host, bytes, now);
            match self.refused(index, now) {
                None => {
                    contributors.swap(at, known);
                    known += 1;
                }
                Some(reason) => {
                    if reason == Suppressed::Unresponsive {
                        self.tracker.note_signalled(index, now);
                    }
                    status.suppress(reason);
                }
            }
        }
        let (maybe_paired, ineligible) = contributors.split_at_mut(known);
        Eligible {
            maybe_paired,
            ineligible,
        }
    }

    /// Finds out if flows with far receivers matter in a queue.
    pub(super) fn find_far_part(&mut self, queue: usize, contributors: &[(u64, u32)]) {
        let (mut total, mut far) = (0u64, 0u64);
        for (bytes, index) in contributors {
            total = total.saturating_add(*bytes);
            if !self
                .tracker
                .flows
                .get(*index)
                .is_some_and(|flow| flow.gated)
            {
                far = far.saturating_add(*bytes);
            }
        }
        self.tracker.set_near_only(queue, far < total / FAR_PART);
    }

    /// Returns the reason why a flow may get no CNP, as far as the flow's entry and byte count tell.
    pub(super) fn refused(&self, index: u32, now: Nanos) -> Option<Suppressed> {
        let flow = self.tracker.flows.get(index)?;
        if flow.backoff_until > now {
            return Some(flow.backoff_reason);
        }
        if !flow.trusted {
            return Some(Suppressed::Untrusted);
        }
        if now.since(flow.pairing_checked) < UNPAIRED_FOR {
            if flow.cold {
                return Some(Suppressed::Cold);
            }
            if !self.tracker.settings.believes(flow.evidence) {
                return Some(Suppressed::Unpaired);
            }
        }
        if self.tracker.is_left_to_ecn(index) {
            return Some(Suppressed::Gated);
        }
        if self.tracker.responsiveness(index).is_unresponsive() {
            return Some(Suppressed::Unresponsive);
        }
        (!self.tracker.has_earned(index)).then_some(Suppressed::Unearned)
    }
}
