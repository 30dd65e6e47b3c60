//! Price of a CNP by a flow's share, flows left to ECN by what else is in their queue, and strikes that a CNP on its way answers.

use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::Nanos;

use crate::control::tests::{data, warm};
use crate::host_rules::HostRules;
use crate::policy::PolicyName;
use crate::traffic_tests::rig::{Rig, with};

const LOOK: Nanos = Nanos::from_micros(4);
const STEPS: u64 = 30;

/// A queue of 100G whose hosts all answer; policy `model` holds it at 500,000 bytes.
fn rig(policy: PolicyName) -> Rig {
    let setup = with(Nanos::from_micros(20), |settings| {
        settings.hosts = HostRules::all_answer();
        settings.earned = 16 << 10;
        settings.queues[0].policy = policy.defaults();
    });
    warm(2, &setup)
}

/// Price of a flow that put so many frames into the queue in each look, for 60 looks.
fn price(frames: usize) -> u64 {
    let mut rig = rig(PolicyName::Npcc);
    for _ in 0..60 {
        (0..frames).for_each(|_| {
            rig.out(&data(0x1_0018, 0x11));
        });
        rig.tick(LOOK, 0);
    }
    rig.core.tracker.earned(0)
}

/// Law: a CNP costs a flow with all of the drain rate `earned`, others their share of it, and none less than 2 KiB.
#[test]
fn a_cnp_costs_a_flow_its_share_of_the_drain_rate() {
    let frame = data(0x1_0018, 0x11).frame().data().len() as u64 + 24;
    // 4 us of 100 Gb/s are 50,000 bytes.
    let whole = 50_000u64.div_ceil(frame);
    assert_eq!(price(usize::try_from(whole).unwrap()), 16 << 10);
    let half = price(usize::try_from(whole / 2).unwrap());
    let expected = (16 << 10) * (whole / 2 * frame) / 50_000;
    assert!(
        half.abs_diff(expected) <= expected / 20,
        "{half} {expected}"
    );
    assert_eq!(price(1), 2 << 10, "2 % of the rate");
    assert_eq!(price(0), 2 << 10);
}

/// Law: flows with near receivers are left to ECN while those with far ones have less than a sixteenth of the queue's bytes.
#[test]
fn flows_with_near_receivers_are_left_to_ecn_where_hardly_any_has_a_far_one() {
    let mut rig = rig(PolicyName::Npcc);
    rig.core.tracker.flows.get_mut(0).unwrap().gated = true;
    assert!(rig.core.tracker.is_left_to_ecn(0), "until more is known");
    for (far, left) in [(99, true), (100, false), (1_600, false), (0, true)] {
        let total = 1_600;
        rig.core.find_far_part(0, &[(total - far, 0), (far, 1)]);
        assert_eq!(rig.core.tracker.is_left_to_ecn(0), left, "{far} of {total}");
        assert!(!rig.core.tracker.is_left_to_ecn(1), "its receiver is far");
    }
}

/// Strikes paid and merged, and CNPs in all, of [`STEPS`] strikes at this depth.
fn struck(policy: PolicyName, depth: u64) -> (u64, u64, usize) {
    let mut rig = rig(policy);
    rig.tick(Nanos::from_micros(20), depth);
    let (mut owed, mut sent) = (0, 0);
    for _ in 0..STEPS {
        // Enough for the least price.
        rig.out(&data(0x1_0018, 0x11));
        let slot = rig.out(&data(0x1_0018, 0x11));
        owed += u64::from(rig.owes(slot));
        sent += rig.tick(LOOK, depth);
    }
    let status = rig.core.status();
    let queue = &status.queues()[0];
    let [paid, merged] = [queue.marks_paid.get(), queue.marks_merged.get()];
    assert_eq!(paid + merged, owed, "{policy:?} {depth}");
    (paid, merged, sent)
}

/// Law: while the queue is above idle, a strike before the effect of the sender's last CNP is due (20 us) is merged with it; in an idle one, whose
/// strikes are of another switch's queue, strikes are paid at the receiver's interval (4 us).
#[test]
fn a_strike_is_merged_while_a_cnp_is_on_its_way() {
    let (paid, merged, _) = struck(PolicyName::Npcc, 0);
    assert!(paid >= 2 * merged && paid > STEPS / 2, "{paid} {merged}");
    let (_, merged, sent) = struck(PolicyName::Npcc, 400_000);
    // 120 us.
    assert!((2..=7).contains(&sent), "{sent} CNPs");
    assert!(merged > 0);
}

/// Law: strikes at a depth that the policy wants are merged.
#[test]
fn a_strike_below_the_set_point_is_no_congestion() {
    let (paid, merged, sent) = struck(PolicyName::Model, 499_999);
    assert!(
        paid == 0 && merged > 0 && sent == 0,
        "{paid} {merged} {sent}"
    );
    let (paid, _, _) = struck(PolicyName::Model, 500_001);
    assert!(paid > 0);
}
