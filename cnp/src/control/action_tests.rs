//! Dry run: what is decided without being sent, for the switch, a queue and a host.

use super::command::{ControlCommand, Refused};
use super::config::{ControlConfig, Settings};
use crate::action::{Action, HostSet};
use crate::admission::Suppressed;
use crate::log::Outcome;
use crate::policy::{PolicyName, Reason};
use crate::response::Response;
use crate::table::FlowSnapshot;
use crate::traffic_tests::rig::{Packet, QUEUE, Rig, WAN, config, queue, with};
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_roce::key::{FlowKey, Qpn};

const TICK: Nanos = Nanos::from_micros(20);
const DATA: Packet = Packet {
    src: [10, 0, 1, 3],
    dst: [10, 0, 2, 2],
    port: 50_000,
    opcode: 0x2a,
    qpn: 0x11,
    psn: 0,
    payload: 1024,
};
/// A packet of another host.
const OTHER: Packet = Packet {
    src: [10, 0, 1, 4],
    qpn: 0x12,
    ..DATA
};

/// A switch that knows the senders of both flows.
fn rig(config: &ControlConfig) -> Rig {
    let mut rig = Rig::new(config);
    for packet in [DATA, OTHER] {
        let address = |octets: [u8; 4]| std::net::IpAddr::from(octets);
        let flow = FlowKey::new(
            address(packet.src),
            address(packet.dst),
            Qpn::new(packet.qpn),
        );
        let sender = Qpn::new(packet.qpn + 7);
        let add = ControlCommand::AddPair { flow, sender };
        rig.core.execute(&add, rig.now).unwrap();
    }
    rig
}

/// Fills the queue from both flows, above `hard`, for `ticks` ticks; returns the number of CNPs that left.
fn fill(rig: &mut Rig, ticks: u64) -> usize {
    let mut sent = 0;
    for tick in 0..ticks {
        rig.out(&DATA);
        rig.out(&OTHER);
        sent += rig.tick(TICK, 900_000 + tick * 50_000);
    }
    sent
}

fn act(rig: &mut Rig, queue: Option<(PortId, Priority)>, action: Action) {
    let change = |settings: &mut Settings| match queue {
        None => settings.action = action,
        Some(place) => {
            let mut queues = settings.queues.iter_mut();
            queues.find(|queue| queue.place() == place).unwrap().action = action;
        }
    };
    assert_eq!(rig.configure(change), Ok(()));
}

/// Stops CNPs to these hosts from now on.
fn observe(rig: &mut Rig, hosts: HostSet) -> Result<(), Refused> {
    rig.configure(|settings| settings.hosts.observe = hosts)
}

/// Number of CNPs that left and of those that would have, by the queue's status.
fn counted(rig: &Rig) -> (u64, u64) {
    let status = rig.core.status();
    let queue = &status.queues()[0];
    (queue.cnps.get(), queue.would_send.get())
}

fn shown(rig: &Rig, packet: &Packet) -> FlowSnapshot {
    let view = rig.core.flows();
    let mut flows = view.flows();
    let found = flows.find(|flow| flow.flow.key.dest_qp().get() == packet.qpn);
    found.unwrap()
}

fn last_outcomes(rig: &Rig, last: usize) -> Vec<Outcome> {
    let status = rig.core.status();
    status.log.last(last).map(|entry| entry.outcome).collect()
}

fn observing() -> ControlConfig {
    with(TICK, |settings| settings.action = Action::Observe)
}

#[test]
fn observe_decides_counts_and_logs_and_sends_nothing() {
    let mut rig = rig(&observing());
    assert_eq!(fill(&mut rig, 50), 0);
    let (sent, dry_run) = counted(&rig);
    assert_eq!(sent, 0);
    assert!(dry_run > 50, "both flows, about once a tick: {dry_run}");
    let status = rig.core.status();
    let reasons = &status.queues()[0];
    assert!(reasons.reason(Reason::Overfull).get() > 0);
    let flows: u64 = [DATA, OTHER]
        .iter()
        .map(|packet| shown(&rig, packet).would_send)
        .sum();
    assert_eq!(flows, dry_run, "by flow");
    assert_eq!(status.log.noted(), dry_run, "each in the log");
    let entry = status.log.last(1).next().unwrap();
    assert_eq!(entry.outcome, Outcome::WouldSend);
    let text = entry.text("wan0");
    assert!(text.contains("would have got CNP"), "{text}");
}

#[test]
fn nothing_believes_in_cnps_that_were_not_sent() {
    let mut rig = rig(&observing());
    fill(&mut rig, 50);
    for packet in [DATA, OTHER] {
        let flow = shown(&rig, &packet);
        assert_eq!((flow.cnps, flow.last_cnp), (0, Nanos::ZERO));
        assert_eq!(flow.response, Response::Unknown);
    }
    // Alpha is what it was before anybody was signalled: the first CNP still counts in full.
    let alphas = rig.core.tracker.flows.view();
    assert_eq!(alphas.flows().count(), 2);
    for index in 0..2 {
        let flow = rig.core.tracker.flows.get(index).unwrap();
        assert!(!flow.dcqcn.was_signalled());
    }
}

#[test]
fn the_pace_is_that_of_sending() {
    // `model` signals once the depth moved by 200 KB, which takes four ticks more.
    for (kind, ticks) in [(queue(TICK).policy, 3), (PolicyName::Model.defaults(), 7)] {
        let mut both = [Action::Send, Action::Observe].map(|action| {
            let mut set_up = config(TICK);
            set_up.settings.action = action;
            set_up.settings.queues[0].policy = kind;
            rig(&set_up)
        });
        // The queue does not depend on who is signalled, so both see the same.
        let [sending, observing] = &mut both;
        assert!(fill(sending, ticks) > 0, "{kind:?}");
        assert_eq!(fill(observing, ticks), 0);
        let ((sent, _), (_, dry_run)) = (counted(sending), counted(observing));
        // Those two count with rates and alphas, which differ where nobody is signalled.
        let least = if kind.which() == PolicyName::Npcc {
            sent
        } else {
            1
        };
        assert!(
            (least..=sent).contains(&dry_run),
            "{dry_run} for {sent}: {kind:?}"
        );
    }
}

#[test]
fn sending_begins_and_ends_at_run_time() {
    let mut rig = rig(&observing());
    assert_eq!(fill(&mut rig, 10), 0);
    act(&mut rig, None, Action::Send);
    let sent = fill(&mut rig, 10);
    assert!(sent > 0);
    assert_eq!(counted(&rig).0, sent as u64);
    assert_eq!(last_outcomes(&rig, 1), [Outcome::Sent]);
    act(&mut rig, None, Action::Observe);
    let (_, dry_run) = counted(&rig);
    assert_eq!(fill(&mut rig, 10), 0);
    assert!(counted(&rig).1 > dry_run);
    assert_eq!(last_outcomes(&rig, 1), [Outcome::WouldSend]);
}

#[test]
fn off_decides_nothing_and_still_evaluates() {
    let mut rig = rig(&config(TICK));
    act(&mut rig, Some((WAN, QUEUE)), Action::Off);
    assert_eq!(fill(&mut rig, 10), 0);
    assert_eq!(counted(&rig), (0, 0));
    let status = rig.core.status();
    let queue = &status.queues()[0];
    assert_eq!(queue.reason(Reason::Off).get(), 10);
    assert!(queue.depth.get() > 900_000);
    assert_eq!(queue.action.get(), Action::Off);
    assert_eq!(status.action.get(), Action::Send);
}

#[test]
fn a_queue_alone_is_observed_and_no_level_makes_another_send() {
    let mut set_up = config(TICK);
    set_up.settings.queues[0].action = Action::Observe;
    let mut rig = rig(&set_up);
    assert_eq!(fill(&mut rig, 10), 0);
    act(&mut rig, None, Action::Send);
    assert_eq!(fill(&mut rig, 10), 0, "the queue still says observe");
    act(&mut rig, Some((WAN, QUEUE)), Action::Send);
    assert!(fill(&mut rig, 10) > 0);
    act(&mut rig, None, Action::Observe);
    assert_eq!(fill(&mut rig, 10), 0, "whatever the queue says");
    let elsewhere = |settings: &mut Settings| settings.queues[0].port = PortId(7);
    assert_eq!(rig.configure(elsewhere), Err(Refused::UnknownQueue));
}

#[test]
fn one_observed_host_gets_no_cnp_and_its_neighbours_do() {
    let mut rig = rig(&config(TICK));
    let host = HostSet::new([(DATA.src.into(), 32)]);
    assert_eq!(observe(&mut rig, host), Ok(()));
    let sent = fill(&mut rig, 20);
    assert!(sent > 0);
    assert!(
        rig.sent
            .iter()
            .all(|order| order.flow.src() != std::net::IpAddr::from(DATA.src))
    );
    let (watched, other) = (shown(&rig, &DATA), shown(&rig, &OTHER));
    assert_eq!(watched.cnps, 0);
    assert!(watched.would_send > 0);
    assert_eq!((other.cnps, other.would_send), (sent as u64, 0));
    assert_eq!(observe(&mut rig, HostSet::default()), Ok(()));
    rig.sent.clear();
    fill(&mut rig, 20);
    assert!(
        rig.sent
            .iter()
            .any(|order| order.flow.src() == std::net::IpAddr::from(DATA.src))
    );
}

/// Law: where only the heaviest are signalled, an observed host does not take their place.
#[test]
fn an_observed_host_takes_no_place_among_the_few() {
    let mut rig = rig(&config(TICK));
    let host = HostSet::new([(DATA.src.into(), 32)]);
    observe(&mut rig, host).unwrap();
    // A jump would be hard, where all are signalled.
    rig.tick(Nanos::from_millis(1), 90_000);
    for tick in 0..10 {
        for packet in [DATA, DATA, DATA, OTHER] {
            rig.out(&packet);
        }
        let sent = rig.tick(TICK, 110_000 + tick * 10_000);
        if shown(&rig, &DATA).would_send > 0 {
            assert_eq!(
                sent, 1,
                "in the very round in which it would have been told"
            );
            break;
        }
        assert_eq!(sent, 0);
    }
    let overfull = rig.core.status().queues()[0].reason(Reason::Overfull).get();
    assert_eq!(overfull, 0, "only the few are told");
    let other = std::net::IpAddr::from(OTHER.src);
    assert!(!rig.sent.is_empty());
    assert!(rig.sent.iter().all(|order| order.flow.src() == other));
    assert!(shown(&rig, &DATA).would_send > 0);
}

/// Law: nor does it while it is too soon to decide on it again.
#[test]
fn an_observed_host_decided_of_just_now_takes_no_place_either() {
    let mut rig = rig(&config(TICK));
    let host = HostSet::new([(DATA.src.into(), 32)]);
    observe(&mut rig, host).unwrap();
    rig.tick(Nanos::from_millis(1), 90_000);
    let tick = |rig: &mut Rig, packets: &[Packet], depth| {
        packets.iter().for_each(|packet| {
            rig.out(packet);
        });
        rig.tick(TICK, depth)
    };
    let mut depth = 110_000;
    loop {
        assert_eq!(tick(&mut rig, &[DATA, DATA, DATA], depth), 0);
        depth += 10_000;
        assert!(depth < 400_000);
        if shown(&rig, &DATA).would_send > 0 {
            break;
        }
    }
    let sent = tick(&mut rig, &[DATA, DATA, DATA, OTHER], depth);
    assert_eq!((sent, rig.sent.len()), (1, 1), "{:?}", rig.sent);
    assert_eq!(rig.sent[0].flow.src(), std::net::IpAddr::from(OTHER.src));
}

#[test]
fn would_be_cnps_take_nothing_from_the_caps_of_those_that_leave() {
    // Its burst: 32 CNPs.
    let mut rig = rig(&with(TICK, |settings| settings.cap_per_second = 1));
    let host = HostSet::new([(DATA.src.into(), 32)]);
    observe(&mut rig, host).unwrap();
    // A sender that does not slow down is signalled once a millisecond.
    assert_eq!(fill(&mut rig, 4_000), 32);
    assert_eq!(counted(&rig), (32, 32));
}

#[test]
fn refusals_are_logged_once_a_flow_and_reason_and_shown_with_the_flow() {
    let mut rig = rig(&config(TICK));
    let unknown = Packet { qpn: 0x55, ..DATA };
    let ticks = |rig: &mut Rig, ticks: u64| {
        for tick in 0..ticks {
            rig.out(&unknown);
            rig.tick(TICK, 900_000 + tick * 50_000);
        }
    };
    ticks(&mut rig, 100);
    let status = rig.core.status();
    let counts = Suppressed::ALL.map(|one| (one, status.queues()[0].suppressed(one).get()));
    assert!(
        status.queues()[0].suppressed(Suppressed::Cold).get() > 90,
        "{counts:?}"
    );
    let logged: Vec<_> = status.refusals.last(10).collect();
    assert_eq!(logged.len(), 1, "in 2 ms: {logged:?}");
    assert_eq!(logged[0].outcome, Outcome::Refused(Suppressed::Cold));
    let text = logged[0].text("wan0");
    assert!(
        text.contains("QP ? of 10.0.1.3 got no CNP (cold)"),
        "{text}"
    );
    let flow = shown(&rig, &unknown);
    assert_eq!((flow.refused, flow.cold), (Some(Suppressed::Cold), true));
    ticks(&mut rig, 500);
    assert_eq!(status.refusals.noted(), 2, "again after 10 ms");
    assert_eq!(status.log.noted(), 0, "CNPs are not pushed out by refusals");
}
