use proptest::prelude::*;

use super::*;
use crate::burst::Run;
use crate::craft::Craft;
use crate::egress::ecn::CERTAIN;
use crate::frame::{FlowSlot, HeapFrame};
use crate::units::{PortId, Priority};

const RED: Red = Red {
    kmin: 10_000,
    kmax: 40_000,
    pmax: CERTAIN / 2,
};

/// Tap that owes some strikes and has some returned, as its script says.
#[derive(Debug, Default)]
struct Scripted {
    owes: bool,
    returned: u32,
    owed: u64,
    redeemed: u64,
}

impl FlowTap for Scripted {
    fn enqueued<B: FrameBuf>(&mut self, _: &mut Run<B>, _: Nanos) {}

    fn owe(&mut self, _: &Meta) -> bool {
        self.owed += u64::from(self.owes);
        self.owes
    }

    fn may_owe(&self) -> bool {
        self.owes
    }

    fn redeem(&mut self, _: FlowSlot) -> bool {
        let any = self.returned > 0;
        self.returned -= u32::from(any);
        self.redeemed += u64::from(any);
        any
    }

    fn has_returned(&self, _: Nanos) -> bool {
        self.returned > 0
    }

    fn ports(&self) -> u32 {
        0
    }
}

fn frame(ecn: u8) -> (HeapFrame, Meta) {
    let mut craft = Craft::roce([10, 0, 1, 3].into(), [10, 0, 2, 2].into(), 0x0a, 7, 64);
    craft.tos = ecn;
    let buf = HeapFrame::new(&craft.frame());
    let mut meta = Meta::of(64, PortId(0), PortId(1), Priority::new(3));
    meta.flags = MetaFlags::of_ecn(ecn);
    (buf, meta)
}

fn ecn_of(buf: &HeapFrame) -> u8 {
    buf.data().get(15).map_or(0, |tos| tos & 3)
}

proptest! {
    /// Every strike and every mark of an earlier switch is on a frame or owed, whatever the tap answers; ECN off changes
    /// nothing.
    #[test]
    fn no_strike_is_lost_and_none_is_added(
        mode in prop::sample::select(EcnMode::ALL.to_vec()),
        upstream_ce in prop::sample::select(UpstreamCe::ALL.to_vec()),
        seed: u64,
        script in prop::collection::vec((0u8..4, 0u64..80_000, any::<bool>(), 0u32..3), 1..200),
    ) {
        let counters = QueueCounters::default();
        let (mut tap, mut rng) = (Scripted::default(), Xorshift::new(seed | 1));
        let config = EcnConfig { mode, upstream_ce };
        let (mut came_marked, mut left_marked, mut markable) = (0, 0, 0);
        for (ecn, depth, owes, returned) in script {
            tap.owes = owes;
            tap.returned += returned;
            let (mut buf, meta) = frame(ecn);
            let mut marking = Marking { config, tap: &mut tap, now: Nanos(1) };
            let scope = marking.scope(Some(&RED));
            let depth = i64::try_from(depth).unwrap();
            if scope.concerns_any(depth) && scope.concerns(depth, meta.flags) {
                marking.apply(scope, &mut buf, &meta, depth, &mut rng, &counters);
            }
            came_marked += u64::from(ecn == 3);
            left_marked += u64::from(ecn_of(&buf) == 3);
            markable += u64::from(matches!(ecn, 1 | 2));
            prop_assert_eq!(ecn == 0, ecn_of(&buf) == 0, "not-ECT stays so");
            prop_assert!(mode != EcnMode::Off || ecn_of(&buf) == ecn);
        }
        let count = |counter: &crate::counters::Counter| counter.get();
        let (struck, diverted) = (count(&counters.ecn_struck), count(&counters.ecn_diverted));
        let (ce, redeemed) = (count(&counters.ce_diverted), count(&counters.ecn_redeemed));
        let marked = count(&counters.ecn_marked);
        prop_assert_eq!(struck + ce + redeemed, marked + diverted);
        prop_assert_eq!(left_marked, came_marked - ce + marked);
        prop_assert_eq!((tap.owed, tap.redeemed), (diverted, redeemed));
        prop_assert!(struck <= markable && ce <= came_marked);
        if mode != EcnMode::Divert {
            prop_assert_eq!((diverted, ce, redeemed), (0, 0, 0));
        }
        if upstream_ce == UpstreamCe::Leave {
            prop_assert_eq!(ce, 0);
        }
    }
}
