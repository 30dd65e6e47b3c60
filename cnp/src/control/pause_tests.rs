//! Queues that their peer pauses, and senders that we pause: neither is an overload, nor an answer to a CNP.

use super::queue_state::QueueState;
use super::*;
use crate::control::tests::{data, warm};
use crate::host_response::Responsiveness;
use crate::host_rules::HostRules;
use crate::policy::{PolicyKind, PolicyName};
use crate::traffic_tests::rig::{DC, config};

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

/// Class of a stranger that is signalled once and sends a fifth from then on, while we pause these ports.
fn standing_after(xoff_asserted: u32) -> Responsiveness {
    let mut set_up = config(STEP);
    set_up.settings.hosts = HostRules::default();
    let mut rig = warm(1, &set_up);
    let (mut sent, mut since) = (0, 0);
    for step in 0..200u64 {
        since += usize::from(sent > 0);
        if since == 25 {
            break;
        }
        if sent == 0 || step % 5 == 0 {
            rig.out(&data(0x1_0018, 0x11));
        }
        let level = QueueState {
            depth: if step < 30 { 0 } else { 500_000 },
            paused: Nanos::ZERO,
            xoff_asserted: if sent > 0 { xoff_asserted } else { 0 },
            entered: None,
        };
        sent += rig.tick_at(STEP, level);
    }
    assert_eq!(since, 25);
    rig.core.tracker.responsiveness(0)
}

#[test]
fn nothing_is_learned_from_senders_that_we_pause() {
    assert_eq!(standing_after(0), Responsiveness::Responsive);
    assert_eq!(standing_after(WAN_ONLY), Responsiveness::Responsive);
    assert_eq!(standing_after(DC.bit()), Responsiveness::Unknown);
}

/// Ports other than the sender's ingress.
const WAN_ONLY: u32 = !DC.bit();
