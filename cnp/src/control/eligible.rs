//! Filters out contributors that must not get a CNP of a policy, mostly by fields of the flow entry (a few loads each); the worker's slot is read
//! where bytes not read yet may earn the CNP. Adds each contributor's bytes to those of its host.
//!
//! Laws: a flow that is refused costs the others nothing, neither a CNP of the tick's budget nor a place among the few. A host is believed to
//! respond until its odds fall below even; from then on its flows get the CNPs of marks alone, by which it can show otherwise.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::host_response::Standing;
use crate::plan::{Suppressed, Unpaired};
use crate::status::QueueStatus;

/// Time after which an insufficient pairing is looked up again, as time alone may make it better.
const UNPAIRED_FOR: Nanos = Nanos::from_millis(1);

/// Partition of the contributors: eligible ones first, those taken to have a known queue pair of their own before the others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Eligible {
    /// Number of eligible contributors that were not judged to lack a known queue pair of their own within [`UNPAIRED_FOR`]; they are judged again
    /// before a CNP.
    pub(super) known: usize,
    /// Number of eligible contributors: `known`, and those without a known queue pair that are signalled all the same (`unpaired: all-qps`).
    pub(super) all: usize,
    /// Bytes of flows whose hosts' odds of responding are below even.
    pub(super) doubted: u64,
}

impl ControlCore {
    /// Moves eligible contributors to the front, and counts the reason for each of the others.
    pub(super) fn eligible(
        &mut self,
        contributors: &mut [(u64, u32)],
        status: &QueueStatus,
        now: Nanos,
    ) -> Eligible {
        let mut eligible = Eligible::default();
        for at in 0..contributors.len() {
            let Some((bytes, index)) = contributors.get(at).copied() else {
                break;
            };
            let standing = self.tracker.add_to_host(index, bytes, now);
            if standing.is_doubted() {
                eligible.doubted = eligible.doubted.saturating_add(bytes);
            }
            match self.refused(index, standing, now) {
                None => {
                    contributors.swap(at, eligible.all);
                    contributors.swap(eligible.all, eligible.known);
                    eligible.known += 1;
                    eligible.all += 1;
                }
                Some(Suppressed::Unpaired) if self.tracker.settings.unpaired != Unpaired::Mark => {
                    contributors.swap(at, eligible.all);
                    eligible.all += 1;
                }
                Some(reason) => status.suppress(reason),
            }
        }
        eligible
    }

    /// Returns the reason why a flow of a host with this standing may get no CNP, as far as the flow's entry and byte count tell.
    pub(super) fn refused(&self, index: u32, standing: Standing, now: Nanos) -> Option<Suppressed> {
        let flow = self.tracker.flows.get(index)?;
        if flow.backoff_until > now {
            return Some(flow.parked_for);
        }
        if !flow.trusted {
            return Some(Suppressed::Untrusted);
        }
        if now.since(flow.settled) < UNPAIRED_FOR {
            if flow.cold {
                return Some(Suppressed::Cold);
            }
            if !self.tracker.settings.believes(flow.evidence) {
                return Some(Suppressed::Unpaired);
            }
        }
        if flow.gated {
            return Some(Suppressed::Gated);
        }
        if standing.is_doubted() {
            return Some(Suppressed::Unresponsive);
        }
        (!self.tracker.has_earned(index)).then_some(Suppressed::Unearned)
    }
}
