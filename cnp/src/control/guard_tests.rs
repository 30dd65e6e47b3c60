use npcc_pipeline::frame::{FlowSlot, FrameBuf};
use npcc_pipeline::units::Nanos;
use proptest::prelude::*;

use crate::action::{Action, HostSet};
use crate::admission::Suppressed;
use crate::control::config::{ControlConfig, EcnMode, Gate, Settings};
use crate::control::queue_state::QueueState;
use crate::control::tests::{back, data, warm};
use crate::flow_cache::BUSY;
use crate::host_rules::HostRules;
use crate::traffic_tests::rig::{DC, Packet, Rig, WAN, with};
use npcc_roce::pair::Evidence;

const LOOK: Nanos = Nanos::from_micros(4);
const QPS: (u32, u32) = (0x1_0018, 0x11);

/// Configuration in which nothing is known of any host, and the policy sends nothing: the queue is idle.
fn strangers() -> ControlConfig {
    with(Nanos::from_micros(20), |settings| {
        settings.hosts = HostRules::default();
    })
}

/// Strikes on the only queue, by outcome.
fn ledger(rig: &Rig) -> [u64; 4] {
    let status = rig.core.status();
    let queue = &status.queues()[0];
    [
        queue.marks_paid.get(),
        queue.marks_merged.get(),
        queue.marks_returned.get(),
        queue.marks_forgotten.get(),
    ]
}

proptest! {
    /// Law: whatever the outlet, the caps, the settings and the flows do, each strike that was owed is paid, merged, returned or forgotten once,
    /// and each that is returned is written on a frame; no CNP leaves that the settings of that moment forbid.
    #[test]
    fn marks_are_conserved(
        script in prop::collection::vec((0u8..8, 0u8..4, any::<bool>()), 1..300),
        caps in prop::sample::select(vec![40u64, 1_000_000]),
        earned in prop::sample::select(vec![0u64, 3_000]),
    ) {
        let mut setup = strangers();
        setup.settings.cap_per_second = caps;
        setup.settings.earned = earned;
        let mut rig = warm(4, &setup);
        let (mut owed, mut redeemed) = (0, 0);
        let (mut sends, mut admits, mut unwanted) = (true, true, 0);
        for (what, flow, ok) in script {
            let packet = data(QPS.0 + u32::from(flow), QPS.1 + u32::from(flow));
            let slot = rig.out(&packet);
            match what {
                0 => {
                    let action = if ok { Action::Send } else { Action::Observe };
                    rig.configure(|settings| settings.action = action).unwrap();
                    sends = ok;
                }
                1 => {
                    let host = HostSet::new([(packet.src.into(), 32)]);
                    let denied = if ok { HostSet::default() } else { host };
                    rig.configure(|settings| settings.hosts.deny = denied).unwrap();
                    admits = ok;
                }
                2 | 3 => {
                    rig.now += LOOK;
                    let refuse = || if ok { Ok(()) } else { Err(Suppressed::NoNeighbor) };
                    rig.core.run_call(rig.now, |_, _| 0u64, &mut |_| {
                        unwanted += u64::from(!sends || !admits);
                        refuse()
                    });
                }
                _ => owed += u64::from(rig.owes(slot)),
            }
            redeemed += u64::from(rig.redeems(slot));
        }
        for _ in 0..4 {
            let sent = rig.tick(LOOK, 0) as u64;
            unwanted += if sends && admits { 0 } else { sent };
        }
        for flow in 0..4 {
            let slot = rig.out(&data(QPS.0 + flow, QPS.1 + flow));
            redeemed += std::iter::repeat_with(|| u64::from(rig.redeems(slot))).take_while(|more| *more > 0).sum::<u64>();
        }
        let [paid, merged, returned, forgotten] = ledger(&rig);
        prop_assert_eq!(owed, paid + merged + returned + forgotten);
        prop_assert_eq!(returned, redeemed);
        prop_assert_eq!(unwanted, 0, "CNPs while nothing may be sent");
    }

    /// Law: with nothing known and no policy at work, a sender gets the CNPs that a receiver at the switch would send for the same marks: the
    /// first mark at once, then at most one in the interval of the receiver's card.
    #[test]
    fn an_unknown_sender_gets_the_cnp_train_of_a_receiver_at_the_switch(
        // Shorter than it takes to find out that this sender does not slow down.
        marks in prop::collection::vec(any::<bool>(), 1..16),
        interval in prop::sample::select(vec![4u64, 12, 30]),
    ) {
        let mut setup = strangers();
        setup.settings.cnp_interval = Nanos::from_micros(interval);
        let mut rig = warm(1, &setup);
        let mut last: Option<Nanos> = None;
        for marked in marks {
            let slot = rig.out(&data(QPS.0, QPS.1));
            if marked {
                prop_assert!(rig.owes(slot));
            }
            let sent = rig.tick(LOOK, 0);
            let receiver = marked && last.is_none_or(|at| rig.now.since(at) >= Nanos::from_micros(interval));
            if receiver {
                last = Some(rig.now);
            }
            prop_assert_eq!(sent, usize::from(receiver));
        }
    }
}

/// A flow that owes one strike at this moment.
fn owing(setup: &ControlConfig) -> (Rig, FlowSlot) {
    let mut rig = warm(1, setup);
    let slot = rig.out(&data(QPS.0, QPS.1));
    assert!(rig.owes(slot));
    (rig, slot)
}

/// Asserts that the strike of [`owing`] was returned in the last call, for this reason, and comes as CE on the flow's next frame.
#[track_caller]
fn assert_returned(rig: &mut Rig, slot: FlowSlot, reason: Suppressed) {
    assert_eq!(ledger(rig), [0, 0, 1, 0]);
    assert_eq!(rig.core.status().cnps_suppressed(reason), 1);
    assert!(rig.redeems(slot) && !rig.redeems(slot));
}

/// Law: settings that stop CNPs stop those too for which strikes are owed already.
#[test]
fn a_strike_owed_before_cnps_are_stopped_is_returned() {
    type Change = fn(&mut Settings);
    let stops: [(&str, Change); 6] = [
        ("switch", |settings| settings.action = Action::Observe),
        ("off", |settings| settings.action = Action::Off),
        ("queue", |settings| {
            settings.queues[0].action = Action::Observe
        }),
        ("host", |settings| {
            settings.hosts.observe = HostSet::new([([10, 0, 1, 3].into(), 32)])
        }),
        ("denied", |settings| {
            settings.hosts.deny = HostSet::new([([10, 0, 1, 3].into(), 32)])
        }),
        ("not allowed", |settings| {
            settings.hosts.allow = HostSet::new([([10, 9, 9, 9].into(), 32)])
        }),
    ];
    assert_eq!(data(QPS.0, QPS.1).src, [10, 0, 1, 3]);
    for (what, stop) in stops {
        let (mut rig, slot) = owing(&strangers());
        rig.configure(stop).unwrap();
        assert_eq!(rig.tick(LOOK, 0), 0, "{what}");
        assert_returned(&mut rig, slot, Suppressed::HostDenied);
    }
    let (mut rig, _) = owing(&strangers());
    assert_eq!((rig.tick(LOOK, 0), ledger(&rig)), (1, [1, 0, 0, 0]));
}

/// Law: a strike is never paid for the flow that has its slot by the time at which it is looked at.
#[test]
fn a_strike_whose_flow_lost_its_slot_is_forgotten() {
    let mut rig = Rig::of_slots(8, &strangers());
    let pass = |rig: &mut Rig, n| rig.out(&data(QPS.0 + n, QPS.1 + n));
    rig.back(&back(QPS.0, QPS.1, 0x11));
    pass(&mut rig, 0);
    rig.tick(LOOK, 0);
    let slot = pass(&mut rig, 0);
    assert!(rig.owes(slot));
    rig.now += Nanos(2 * BUSY.0);
    let others: Vec<_> = (1..=8).map(|n| pass(&mut rig, n)).collect();
    assert!(others.contains(&slot));
    assert_eq!((rig.tick(LOOK, 0), ledger(&rig)), (0, [0, 0, 0, 1]));
}

/// Law: strikes on a flow of a port that is not trusted any more stay CE.
#[test]
fn a_flow_of_an_untrusted_port_owes_no_strike() {
    for trusted in [DC, WAN] {
        let (mut rig, _) = owing(&strangers());
        rig.configure(|settings| settings.trusted_ports = trusted.bit())
            .unwrap();
        for _ in 0..3 {
            rig.out(&data(QPS.0, QPS.1));
            rig.tick(Nanos::from_millis(20), 0);
        }
        let slot = rig.out(&data(QPS.0, QPS.1));
        let flow = rig.core.flows().flows().next().unwrap();
        assert_eq!(flow.evidence, Evidence::PortHash);
        assert_eq!(rig.owes(slot), trusted == DC);
    }
}

/// The policy's CNP takes the bytes that had earned the mark's. Without an interval between CNPs nothing but the bytes holds the second one back.
#[test]
fn a_strike_on_a_flow_that_has_spent_its_bytes_is_returned() {
    let mut setup = strangers();
    setup.settings.hosts = HostRules::all_answer();
    setup.settings.earned = 1_000;
    setup.settings.cnp_interval = Nanos::ZERO;
    // The effect of the policy's CNP is due at once: the strike is not of what it answered.
    setup.settings.feedback = Nanos::ZERO;
    let (mut rig, slot) = owing(&setup);
    assert_eq!(rig.tick(Nanos::from_micros(20), 900_000), 1);
    assert_returned(&mut rig, slot, Suppressed::Unearned);
}

/// Law: while the backlog of a pause waits, a sender gets the CNPs of marks at `min_cnp_interval`, else at the interval of the receiver's card.
#[test]
fn the_backlog_of_a_pause_spaces_the_cnps_of_marks() {
    const STEPS: usize = 30;
    for (pause, expected) in [(LOOK, 2), (Nanos::ZERO, STEPS)] {
        let mut setup = strangers();
        setup.settings.hosts = HostRules::all_answer();
        assert_eq!(setup.settings.min_cnp_interval, Nanos::from_micros(60));
        assert_eq!(setup.settings.cnp_interval, LOOK);
        let mut rig = warm(1, &setup);
        // What comes in waits, as far as the peer pauses the queue.
        let mut level = QueueState {
            depth: if pause > Nanos::ZERO { 50_000 } else { 0 },
            paused: pause,
            ..QueueState::default()
        };
        rig.tick_at(Nanos::from_micros(20), level);
        let mut sent = 0;
        for _ in 0..STEPS {
            level.paused += pause;
            let slot = rig.out(&data(QPS.0, QPS.1));
            assert!(rig.owes(slot));
            sent += rig.tick_at(LOOK, level);
        }
        assert_eq!(sent, expected, "{pause:?}");
        let [paid, merged, returned, forgotten] = ledger(&rig);
        assert_eq!((paid + merged, returned + forgotten), (STEPS as u64, 0));
    }
}

/// Law: a flow gets no more CNPs than its bytes earn, by marks and by a policy together. Regression: an attacker's small datagrams aimed 14,246
/// CNPs at a bystander.
#[test]
fn no_flow_gets_a_cnp_it_has_not_earned() {
    for depth in [0, 900_000] {
        let mut setup = strangers();
        setup.settings.earned = 16 << 10;
        setup.settings.hosts = HostRules::all_answer();
        let mut rig = warm(1, &setup);
        let wire = data(QPS.0, QPS.1).frame().data().len() as u64 + 24;
        let (mut bytes, mut sent) = (0u64, 0);
        for _ in 0..20_000 {
            let slot = rig.out(&data(QPS.0, QPS.1));
            bytes += wire;
            rig.owes(slot);
            sent += rig.tick(LOOK, depth) as u64;
        }
        assert!(
            // A flow with next to nothing of the drain rate pays the least.
            sent > 0 && sent <= bytes / (2 << 10),
            "{sent} CNPs for {bytes} bytes"
        );
    }
}

/// A flow whose round trip to the receiver takes this many microseconds: a request and its reply show it.
fn with_round_trips(setup: &ControlConfig, far: u64) -> Rig {
    let mut rig = warm(1, setup);
    for psn in 0..20 {
        rig.out(&Packet {
            psn,
            opcode: 0x0c,
            payload: 0,
            ..data(QPS.0, QPS.1)
        });
        rig.tick(Nanos::from_micros(far), 0);
        rig.back(&Packet {
            psn,
            ..back(QPS.0, QPS.1, 0x10)
        });
        rig.tick(Nanos::from_micros(20), 0);
    }
    (0..3).for_each(|_| {
        rig.tick(Nanos::from_millis(11), 0);
        rig.out(&data(QPS.0, QPS.1));
    });
    rig
}

/// Law: a flow that is left to ECN by the time at which its strike is looked at gets CE.
#[test]
fn a_strike_owed_before_a_flow_is_gated_is_returned() {
    for (gate, gated) in [(Gate::Auto, true), (Gate::Off, false)] {
        let mut setup = strangers();
        setup.settings.gate = Gate::Off;
        let mut rig = with_round_trips(&setup, 40);
        let slot = rig.out(&data(QPS.0, QPS.1));
        assert!(rig.owes(slot));
        rig.configure(|settings| settings.gate = gate).unwrap();
        assert_eq!(rig.tick(LOOK, 0), usize::from(!gated));
        if gated {
            assert_returned(&mut rig, slot, Suppressed::Gated);
        }
    }
}

#[test]
fn a_flow_whose_receiver_is_near_is_left_to_ecn_unless_the_gate_is_off() {
    for (gate, ecn, far, gated) in [
        (Gate::Auto, EcnMode::Divert, 40, true),
        (Gate::Auto, EcnMode::Divert, 1_000, false),
        (Gate::Off, EcnMode::Divert, 40, false),
        // Nothing marks, so that the gate would leave the flow to nobody.
        (Gate::Auto, EcnMode::Off, 40, false),
    ] {
        let owes = !gated && ecn == EcnMode::Divert;
        let mut setup = strangers();
        (setup.settings.gate, setup.settings.ecn) = (gate, ecn);
        let mut rig = with_round_trips(&setup, far);
        let slot = rig.out(&data(QPS.0, QPS.1));
        let flow = rig.core.flows().flows().next().unwrap();
        assert!(
            flow.far
                .is_some_and(|known| known.0.abs_diff(far * 1_000) <= 20_000),
            "{:?}",
            flow.far
        );
        assert_eq!(rig.owes(slot), owes, "{gate:?} {far} us: {flow:?}");
        assert_eq!(flow.gated, gated);
        rig.tick(LOOK, 0);
        assert_eq!(rig.sent.len(), usize::from(owes));
        // The policy's own, unless gated.
        let signalled = rig.tick(Nanos::from_micros(20), 900_000);
        assert_eq!(signalled, usize::from(!gated));
        let suppressed = rig.core.status().cnps_suppressed(Suppressed::Gated);
        assert_eq!(suppressed > 0, gated);
    }
}
