//! Sets those contributors apart that cannot be told, at a few loads each: what is known of a flow says so.
//!
//! Law: a flow that cannot be told costs the others nothing, neither an order of the tick nor a place among the few.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::host_response::Standing;
use crate::plan::{Suppressed, UNRESPONSIVE_GAP, Unpaired};
use crate::status::QueueStatus;
use crate::table::Flow;

/// What a flow's pairing was found to be counts for so long where it is not good enough: time alone may make it better.
const UNPAIRED_FOR: Nanos = Nanos::from_millis(1);

/// How contributors were set apart. The others follow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Apart {
    /// So many come first: their own queue pair can be told.
    pub(super) known: usize,
    /// So many come first, with those whose queue pair is not known and for whom something is done all the same.
    pub(super) all: usize,
    /// Bytes of those whose hosts fell back.
    pub(super) vain: u64,
}

impl ControlCore {
    /// Puts contributors that can be told first, and counts why the others cannot.
    pub(super) fn set_apart(
        &self,
        contributors: &mut [(u64, u32)],
        status: &QueueStatus,
        now: Nanos,
    ) -> Apart {
        let mut apart = Apart::default();
        for at in 0..contributors.len() {
            let Some((bytes, index)) = contributors.get(at).copied() else {
                break;
            };
            let fallen_back = self.tracker.standing(index) == Standing::FallenBack;
            if fallen_back {
                apart.vain = apart.vain.saturating_add(bytes);
            }
            let flow = self.tracker.flows.get(index);
            let refused = flow.and_then(|flow| self.refused(flow, now));
            match refused {
                None => {
                    contributors.swap(at, apart.all);
                    contributors.swap(apart.all, apart.known);
                    apart.known += 1;
                    apart.all += 1;
                }
                Some(Suppressed::Unpaired) if self.unpaired != Unpaired::Mark => {
                    contributors.swap(at, apart.all);
                    apart.all += 1;
                }
                Some(reason) => status.suppress(reason),
            }
        }
        apart
    }

    /// Why a flow cannot be told, as far as what is known of it tells.
    pub(super) fn refused(&self, flow: &Flow, now: Nanos) -> Option<Suppressed> {
        if flow.parked > now {
            return Some(flow.parked_for);
        }
        if !flow.trusted {
            return Some(Suppressed::Untrusted);
        }
        if now.since(flow.settled) < UNPAIRED_FOR {
            if flow.cold {
                return Some(Suppressed::Cold);
            }
            if !self.planner.believes(flow.evidence) {
                return Some(Suppressed::Unpaired);
            }
        }
        let resting = flow.cnps > 0 && now.since(flow.last_cnp) < UNRESPONSIVE_GAP;
        (flow.response.is_unresponsive() && resting).then_some(Suppressed::Unresponsive)
    }
}
