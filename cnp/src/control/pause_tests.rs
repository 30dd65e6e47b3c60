//! Queues that their peer pauses: a pause is no overload.

use super::queue_state::QueueState;
use super::*;
use crate::control::tests::{data, warm};
use crate::policy::{PolicyKind, PolicyName};
use crate::traffic_tests::rig::config;

const STEP: Nanos = Nanos::from_micros(10);
/// Bytes that 100G carry in a step.
const CARRIED: u64 = 125_000;

/// Number of CNPs to a sender while the queue grows by `grows` bytes a step, for 30 steps in which the link is paused or not, and stands for 30 more.
fn signalled(policy: PolicyKind, grows: u64, is_paused: bool) -> usize {
    let mut config = config(STEP);
    config.settings.queues[0].policy = policy;
    let mut rig = warm(1, &config);
    let mut level = QueueState::default();
    let mut sent = 0;
    for step in 0..60 {
        rig.out(&data(0x1_0018, 0x11));
        if step < 30 {
            level.depth += grows;
            level.paused += if is_paused { STEP } else { Nanos::ZERO };
        }
        sent += rig.tick_at(STEP, level);
    }
    sent
}

/// Regression: during a downstream XOFF of 300 us `model` took all that came in for too much, `npcc` signalled everybody five times a tick, and
/// the link stood idle for milliseconds when it ended.
#[test]
fn a_paused_queue_is_not_an_overloaded_one() {
    for policy in [PolicyName::Npcc.defaults(), PolicyName::Model.defaults()] {
        assert!(signalled(policy, CARRIED, false) > 0, "{policy:?}");
        assert_eq!(signalled(policy, CARRIED, true), 0, "{policy:?}");
        assert!(
            signalled(policy, 2 * CARRIED, true) > 0,
            "{policy:?} beyond it"
        );
    }
}
