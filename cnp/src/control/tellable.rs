//! Sets those contributors apart that cannot be told, at a few loads each: what is known of a flow says so.
//!
//! Law: a flow that cannot be told costs the others nothing, neither an order of the tick nor a place among the few.
//!
//! How often a flow may be told goes by its host's standing: one that answers as often as the policy wants; one that is not known yet once
//! it is known how fast it sends, not while a CNP's effect is measured, and no more than once in `min_cnp_interval`; one that is doubted or
//! fell back once in [`SILENCE`]. Where such hosts send a quarter of what comes in the queue is *given up*: telling the others would take
//! from them what these send more, so everybody is left to ECN.

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use crate::host_response::{SILENCE, Standing};
use crate::plan::{Suppressed, UNRESPONSIVE_GAP, Unpaired};
use crate::status::QueueStatus;
use crate::table::Flow;

/// What a flow's pairing was found to be counts for so long where it is not good enough: time alone may make it better.
const UNPAIRED_FOR: Nanos = Nanos::from_millis(1);

/// A flow that has sent for less than this has no rate: sooner, the order of packets is all there is.
pub(super) const BEGUN: Nanos = Nanos::from_micros(10);

/// How contributors were set apart. The others follow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Apart {
    /// So many come first: their own queue pair can be told.
    pub(super) known: usize,
    /// So many come first, with those whose queue pair is not known and for whom something is done all the same.
    pub(super) all: usize,
    /// Bytes of those whose hosts are doubted or fell back.
    pub(super) vain: u64,
}

impl ControlCore {
    /// Puts contributors that can be told first, and counts why the others cannot.
    pub(super) fn set_apart(
        &mut self,
        contributors: &mut [(u64, u32)],
        status: &QueueStatus,
        given_up: bool,
        now: Nanos,
    ) -> Apart {
        let mut apart = Apart::default();
        for at in 0..contributors.len() {
            let Some((bytes, index)) = contributors.get(at).copied() else {
                break;
            };
            let standing = self.tracker.add_to_host(index, bytes, now);
            if matches!(standing, Standing::Doubted | Standing::FallenBack) {
                apart.vain = apart.vain.saturating_add(bytes);
            }
            let flow = self.tracker.flows.get(index);
            let refused = flow.and_then(|flow| self.refused(flow, (standing, given_up), now));
            match refused {
                None => {
                    contributors.swap(at, apart.all);
                    contributors.swap(apart.all, apart.known);
                    apart.known += 1;
                    apart.all += 1;
                }
                Some(Suppressed::Unpaired) if self.tracker.settings.unpaired != Unpaired::Mark => {
                    contributors.swap(at, apart.all);
                    apart.all += 1;
                }
                Some(reason) => status.suppress(reason),
            }
        }
        apart
    }

    /// Shortest time between two CNPs to a flow whose host is believed to be so, in a queue that is given up or not.
    const fn pace(&self, standing: Standing, given_up: bool) -> Nanos {
        match standing {
            Standing::Doubted | Standing::FallenBack => SILENCE,
            Standing::Unknown | Standing::Answers if given_up => SILENCE,
            Standing::Unknown => self.tracker.settings.min_cnp_interval,
            Standing::Answers => Nanos::ZERO,
        }
    }

    /// Why a flow of such a host, in a queue that is given up or not, cannot be told, as far as what is known of it tells.
    pub(super) fn refused(
        &self,
        flow: &Flow,
        (standing, given_up): (Standing, bool),
        now: Nanos,
    ) -> Option<Suppressed> {
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
            if !self.tracker.settings.believes(flow.evidence) {
                return Some(Suppressed::Unpaired);
            }
        }
        if flow.gated {
            return Some(Suppressed::Gated);
        }
        if !flow.earned(self.tracker.settings.earned) {
            return Some(Suppressed::Unearned);
        }
        if standing == Standing::Unknown
            && (now.since(flow.resumed.0) < BEGUN || flow.response.is_measured())
        {
            return Some(Suppressed::Spacing);
        }
        let pace = self.pace(standing, given_up);
        let unresponsive = flow.response.is_unresponsive();
        let gap = if unresponsive {
            pace.max(UNRESPONSIVE_GAP)
        } else {
            pace
        };
        let resting = flow.cnps > 0 && now.since(flow.last_cnp) < gap;
        resting.then_some(if unresponsive || gap >= SILENCE {
            Suppressed::Unresponsive
        } else {
            Suppressed::Spacing
        })
    }
}
