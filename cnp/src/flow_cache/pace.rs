//! How often packets of a flow are shown to the control core: of many flows the less often, the more there are, so that a worker
//! shows a quarter of a million packets a second and no more, and the control core has time for its queues. Each costs the worker as
//! much as ten that are only counted.

use npcc_pipeline::units::Nanos;

use super::{low32, stamp};
use crate::pair::ends::LIVE;

/// One packet of every flow is shown this often, so that contradictions are still seen.
pub const REFRESH: Nanos = Nanos::from_millis(10);
/// Flows are many when they are more than this.
const MANY: usize = 10_000;
/// One of many flows is refreshed in so many units of age (1,024 ns).
const EACH: u32 = 8;
/// But no flow less often than this: the control core takes an end that it hears nothing of for [`LIVE`] for gone, and a refresh
/// may wait half as long again for a packet worth showing.
const LONGEST: Nanos = Nanos(LIVE.0 / 2);

/// See the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Time from one refresh of a flow to the next, as a [`stamp`].
    pub(super) refresh: u32,
    /// Packets shown between two refreshes of a flow not yet paired, in powers of two. A refresh is of a chosen packet where it
    /// can be, so one more is the least by which both directions may show the same.
    pub(super) more: u8,
}

impl Pace {
    /// Of a cache with so many flows.
    pub(super) fn of(flows: usize) -> Pace {
        if flows <= MANY {
            return Pace {
                refresh: stamp(REFRESH),
                more: 2,
            };
        }
        Pace {
            refresh: low32(flows as u64).saturating_mul(EACH).min(stamp(LONGEST)),
            more: 0,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::super::AGE_SHIFT;
    use super::*;

    /// Of flows that are not paired.
    #[test]
    fn no_more_than_a_quarter_of_a_million_are_shown_a_second() {
        for flows in [10_001, 65_536, 100_000, 180_000] {
            let pace = Pace::of(flows);
            let between = u64::from(pace.refresh) << AGE_SHIFT;
            let shown = (flows as u64 * 1_000_000_000 / between) * (1 + (1 << pace.more));
            assert!(shown <= 250_000, "{flows} flows: {shown}");
        }
    }

    #[test]
    fn no_flow_is_taken_for_gone() {
        let longest = u64::from(Pace::of(1 << 24).refresh) << AGE_SHIFT;
        assert!(longest + longest / 2 < LIVE.0);
    }
}
