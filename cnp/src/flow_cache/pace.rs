//! Pace at which each flow's packets are shown to the control core. The more flows send, the less often each is shown, so that a worker shows at most
//! a quarter of a million packets a second, and the control core has time for its queues. Each packet shown costs the worker as much as ten that are
//! only counted. (With more than 183,000 flows it is more, up to 1.3 million with a million flows not paired: see [`LONGEST`]. The first packets of a
//! flow, CNPs and changes of port are shown whatever the pace is, within the [budget](super::budget).)
//!
//! A fast flow is also shown between its refreshes: see [`is_round`].

use npcc_pipeline::units::Nanos;

use super::stamp;
use npcc_roce::pair::endpoints::LIVE;

/// Interval at which a packet of every flow is shown, so that contradictions are still seen.
const REFRESH: Nanos = Nanos::from_millis(10);
/// Number of flows above which they count as many.
const MANY: u32 = 10_000;
/// Age units (1,024 ns) per refresh with many flows: one of them is refreshed every 8 units.
const EACH: u32 = 8;
/// Longest time between two refreshes of a flow: the control core takes an endpoint without records for [`LIVE`] to be gone, and a refresh may
/// wait half as long again for a packet worth showing.
const LONGEST: Nanos = Nanos(LIVE.0 / 2);
/// Number of packets of a flow of which one is shown: half a bucket of the control core's sequence numbers (`pair/endpoints/psns.rs`), so that no endpoint
/// wraps its own unseen.
const ROUND: u32 = 1 << 16;

/// Returns true if a flow's packet is shown because of its count: one in every [`ROUND`].
#[inline]
pub(super) const fn is_round(packets: u32) -> bool {
    packets.is_multiple_of(ROUND)
}

/// Pace of a worker: see the module's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    /// Time from one refresh of a flow to the next, as a [`stamp`].
    pub(super) refresh: u32,
    /// Log2 of the packets shown between two refreshes of a flow not yet paired. A refresh is of a chosen packet where it
    /// can be, so one more is the least by which both directions may show the same.
    pub(super) more: u8,
    /// Number of flows that began or were refreshed since `since`.
    flows: u32,
    /// Time at which the count began, as a [`stamp`].
    since: u32,
    /// True if a packet could not be shown since then.
    lost: bool,
}

impl Pace {
    /// Pace for this number of flows.
    fn of(flows: u32) -> Pace {
        let many = flows > MANY;
        Pace {
            refresh: if many {
                flows.saturating_mul(EACH).min(stamp(LONGEST))
            } else {
                stamp(REFRESH)
            },
            more: if many { 0 } else { 2 },
            flows: 0,
            since: 0,
            lost: false,
        }
    }

    /// Pace of an empty cache.
    pub(super) fn new() -> Pace {
        Pace::of(0)
    }

    /// Counts a flow that began or was refreshed: those are the flows that send, however many once did. More of them slow the pace down at
    /// once, and fewer quicken it when the time of a refresh is over.
    pub(super) fn note(&mut self, now: u32) {
        self.flows += 1;
        let over = now.wrapping_sub(self.since) >= self.refresh;
        let next = Pace::of(self.flows);
        if next.refresh > self.refresh || over && !self.lost {
            (self.refresh, self.more) = (next.refresh, next.more);
        }
        if over {
            (self.flows, self.since, self.lost) = (0, now, false);
        }
    }

    /// Notes that a packet could not be shown: there may be more flows than were counted.
    pub(super) fn lose(&mut self) {
        self.lost = true;
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::super::AGE_SHIFT;
    use super::*;

    /// Packets shown per second, for this number of flows that are not paired.
    fn shown_a_second(flows: u32) -> u64 {
        let pace = Pace::of(flows);
        let between = u64::from(pace.refresh) << AGE_SHIFT;
        (u64::from(flows) * 1_000_000_000 / between) * (1 + (1 << pace.more))
    }

    #[test]
    fn of_many_flows_no_more_than_a_quarter_of_a_million_are_shown_a_second() {
        for flows in [MANY + 1, 65_536, 183_000] {
            assert!(shown_a_second(flows) <= 250_000, "{flows} flows");
        }
        assert!(shown_a_second(1 << 20) <= 1_400_000);
    }

    #[test]
    fn no_flow_is_taken_for_gone() {
        let longest = u64::from(Pace::of(u32::MAX).refresh) << AGE_SHIFT;
        assert!(longest + longest / 2 < LIVE.0);
    }

    #[test]
    fn the_pace_is_that_of_the_flows_that_send() {
        let (mut pace, quick) = (Pace::new(), stamp(REFRESH));
        let note = |pace: &mut Pace, flows, now| {
            (0..flows).for_each(|_| pace.note(now));
            (pace.refresh, pace.more)
        };
        assert_eq!(note(&mut pace, MANY, 1), (quick, 2));
        assert_eq!(
            note(&mut pace, 1, 1),
            ((MANY + 1) * EACH, 0),
            "more, at once"
        );
        let turn = (MANY + 11) * EACH;
        assert_eq!(note(&mut pace, 10, 2).0, turn);
        assert_eq!(note(&mut pace, 1, turn).0, turn + EACH, "the turn ends");
        pace.lose();
        let again = turn + turn + EACH;
        assert_eq!(note(&mut pace, 1, again).0, turn + EACH, "few were shown");
        assert_eq!(note(&mut pace, 1, 2 * again), (quick, 2), "few are left");
    }
}
