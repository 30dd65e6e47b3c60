//! Evidence `only`: one queue pair in each direction between these addresses, for a second.
//!
//! Weaker than the default floor: a second connection whose first packet is still to come would make it wrong.

use npcc_pipeline::units::Nanos;

use super::ends::Endpoints;

/// How long no other may have been seen.
pub(crate) const ALONE: Nanos = Nanos(1_000_000_000);

pub(super) fn partner(ends: &Endpoints, end: u32, now: Nanos) -> Option<u32> {
    let state = ends.end(end)?;
    let (other, since) = ends.pair(state.pair)?.sole_partner(end)?;
    let alike = ends.end(other)?.transport == state.transport;
    (alike && now.since(since) >= ALONE).then_some(other)
}
