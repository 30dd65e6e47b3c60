//! Cards as they are: windows, READ requests, queue pairs, priorities, Not-ECT, distances, reaction times. Each key of a scenario has its
//! documented effect.

use npcc_sim::engine::{self, GroupOutcome, Outcome};
use npcc_sim::scenario::Scenario;

/// A scenario of these hosts, links and flows for 6 ms, with `more` lines; what is watched is `dci`.
fn scenario(body: &str, more: &str) -> Scenario {
    let text = format!(
        "
version: 1
name: cards
duration: 6ms
utilisation_over: 6ms
goodput_from: 3ms
{body}
watch: dci
{more}
"
    );
    Scenario::parse("cards", &text).unwrap()
}

/// Hosts on both sides of a link of 100G; `from` and `to` are the flows' ends.
fn sites(count: u32, length: &str, flows: &str, more: &str) -> Scenario {
    let body = format!(
        "switches: [edge, far]
hosts:
  - {{ name: from, count: {count}, switch: edge }}
  - {{ name: to, count: {count}, switch: far }}
links: [{{ name: dci, from: edge, to: far, rate: 100G, length: {length} }}]
flows: {flows}"
    );
    scenario(&body, more)
}

fn runs(scenario: &Scenario) -> Vec<Outcome> {
    let run = |case| {
        let outcome = engine::run(scenario, case).unwrap();
        let (audit, name) = (outcome.audit, &scenario.name);
        assert_eq!(
            (audit.missing(), audit.not_understood),
            (0, 0),
            "{name} {audit:?}"
        );
        outcome
    };
    scenario.cases().iter().map(run).collect()
}

fn run(scenario: &Scenario) -> Outcome {
    runs(scenario).remove(0)
}

fn group<'a>(outcome: &'a Outcome, name: &str) -> &'a GroupOutcome {
    let group = outcome.groups.iter().find(|group| group.name == name);
    group.unwrap()
}

/// Guards `window` as the baseline without any congestion control: the queue holds the windows less what the link holds.
#[test]
fn without_congestion_control_the_queue_is_bounded_by_the_windows() {
    let peak = |window: &str| {
        let more = format!("window: {window}\nvary: {{ scheme: [pfc] }}");
        let outcome = run(&sites(4, "10km", "[{ from: from, to: to }]", &more));
        assert!(outcome.goodput > 0.99, "{}", outcome.goodput);
        outcome.peak as f64 / 1e6
    };
    // 1.25 MB are on a link of 10 km and back.
    let (one, four) = (peak("1MB"), peak("4MB"));
    assert!((2.7..3.2).contains(&one), "{one}");
    assert!((14.5..15.4).contains(&four), "{four}");
    assert!(peak("unlimited") > 100.0);
}

/// Guards against a stall: a window that is full of packets of which some were lost was never repaired, as nothing fitted into it.
#[test]
fn a_full_window_is_repaired_after_a_loss() {
    for recovery in ["go-back-n", "selective"] {
        let more =
            format!("window: 200KB\npool: 300KB\nrecovery: {recovery}\nvary: {{ scheme: [pfc] }}");
        let flows = "[{ from: from, to: to, burst: 400KB, every: 20ms }]";
        let mut scenario = sites(4, "1km", flows, &more);
        scenario.duration = npcc_config::units::Nanos::from_millis(60);
        let outcome = run(&scenario);
        assert!(outcome.dropped > 0, "{recovery}");
        assert_eq!(outcome.groups[0].bursts.len(), 12, "{recovery}: all arrive");
    }
}

/// Guards `outstanding_reads`: so many messages a round trip.
#[test]
fn reads_have_so_many_messages_outstanding() {
    let goodput = |more: &str| {
        let flows = "[{ from: from, to: to, verb: read, message: 64KiB }]";
        run(&sites(1, "100km", flows, more)).groups[0].goodput
    };
    // 16 messages of 64 KiB in a round trip of 1 ms are 8.4 Gb/s, and 8.6 on the wire.
    let (default, four) = (goodput(""), goodput("outstanding_reads: 4"));
    assert!((8.0..8.7).contains(&default), "{default}");
    assert!((default / four - 4.0).abs() < 0.2, "{default} and {four}");
}

/// Guards `qps` as an axis: each queue pair has a window of its own, and two thousand run.
#[test]
fn queue_pairs_are_an_axis_and_each_has_a_window() {
    let more = "window: 100KB\nvary: { scheme: [pfc], qps: [1, 64, 2000] }";
    let outcomes = runs(&sites(1, "100km", "[{ from: from, to: to }]", more));
    let [one, many, most] = outcomes.as_slice() else {
        unreachable!("three cases");
    };
    let times = many.goodput / one.goodput;
    assert!((times - 64.0).abs() < 6.0, "{times}");
    assert!(most.goodput > 0.98, "{}", most.goodput);
    let windows = 2_000 * 100_000;
    assert!(most.peak < windows, "{}", most.peak);
    // The same in the form that a flow group gives it, with NPCC's tables.
    let flows = "[{ from: from, to: to, qps: 125 }]";
    let mut scenario = sites(15, "100km", flows, "vary: { scheme: [model] }");
    scenario.duration = npcc_config::units::Nanos::from_millis(1);
    assert_eq!(run(&scenario).flows.len(), 1_875);
}

const TWO: &str = "[{ name: three, from: from, to: to, qps: 3 }, { name: four, from: from, to: to, priority: 4 }]";

/// Guards `priority`: the scheduler gives both half of the link, whatever their number of connections, and each has a queue.
#[test]
fn two_priorities_share_the_link_by_weight_and_have_queues_of_their_own() {
    let with = |more: &str| {
        run(&sites(
            4,
            "10km",
            TWO,
            &format!("{more}\nvary: {{ scheme: [pfc] }}"),
        ))
    };
    let three = with("window: 1MB");
    for name in ["three", "four"] {
        let group = group(&three, name);
        assert!((group.goodput - 50.0).abs() < 1.0, "{group:?}");
        assert!((group.fair - 50.0).abs() < 1e-9, "{}", group.fair);
    }
    assert!(three.jain > 0.99 && three.goodput > 0.98, "{}", three.jain);
    // 12 windows and 4, less half of what the link holds each.
    let four = with("window: 1MB\nwatch_priority: 4");
    let peaks = [three.peak, four.peak].map(|peak| peak as f64 / 1e6);
    assert!((11.0..12.2).contains(&peaks[0]), "{peaks:?}");
    assert!((3.0..4.0).contains(&peaks[1]), "{peaks:?}");
}

/// Guards NPCC on both queues of a port: whichever is watched is far shallower than with ECN, and has CNPs of its own.
#[test]
fn npcc_acts_on_the_queues_of_both_priorities() {
    let flows = "[{ from: from, to: to }, { from: from, to: to, priority: 4 }]";
    for watched in [3, 4] {
        let more = format!(
            "watch_priority: {watched}\nwindow: unlimited\nvary: {{ scheme: [ecn, npcc, model] }}"
        );
        let outcomes = runs(&sites(4, "100km", flows, &more));
        let [ecn, others @ ..] = outcomes.as_slice() else {
            unreachable!("three cases");
        };
        assert!(ecn.marked > 1_000, "{watched}: {}", ecn.marked);
        for outcome in others {
            assert!(
                outcome.peak * 3 < ecn.peak,
                "{watched}: {} and {}",
                outcome.peak,
                ecn.peak
            );
        }
    }
}

/// Guards pauses by priority: a host whose flow in one priority is paused goes on sending in the other.
#[test]
fn a_pause_stops_one_priority_of_a_host() {
    let goodput = |priority: u32| {
        let body = format!(
            "switches: [edge]
hosts:
  - {{ name: from, count: 4, switch: edge }}
  - {{ name: dci, count: 1, switch: edge }}
  - {{ name: neighbours, count: 4, switch: edge }}
flows:
  - {{ name: crowd, from: from, to: dci }}
  - {{ name: victim, from: from, to: neighbours, priority: {priority} }}"
        );
        let more = "pool: 4MB\npfc: true\nvary: { scheme: [pfc] }";
        let outcome = run(&scenario(&body, more));
        assert!(
            outcome.pauses > 0 && outcome.dropped == 0,
            "{}",
            outcome.dropped
        );
        group(&outcome, "victim").goodput / 4.0
    };
    let (same, other) = (goodput(3), goodput(4));
    // The crowd has 25 of a host's 100 Gb/s; a victim in its priority waits with it.
    assert!(same < 30.0, "{same}");
    assert!(other > 48.0, "{other}");
}

#[test]
fn frames_that_are_not_ect_are_never_marked() {
    let with = |ect: bool| {
        let flows = format!("[{{ from: from, to: to, ect: {ect} }}]");
        let outcome = run(&sites(
            4,
            "10km",
            &flows,
            "window: unlimited\nvary: { scheme: [ecn] }",
        ));
        (outcome.marked, outcome.cnps_host, outcome.peak)
    };
    let (marked, cnps, peak) = with(true);
    assert!(marked > 100 && cnps > 50);
    let (unmarked, none, higher) = with(false);
    assert_eq!((unmarked, none), (0, 0));
    assert!(higher > 5 * peak, "{higher} and {peak}");
    // NPCC signals their senders, whose queue pairs it knows from the answers.
    let flows = "[{ from: from, to: to, ect: false }]";
    let npcc = run(&sites(
        4,
        "100km",
        flows,
        "window: unlimited\nvary: { scheme: [model] }",
    ));
    assert!(
        npcc.cnps_switch > 20 && npcc.marked == 0,
        "{}",
        npcc.cnps_switch
    );
}

/// Guards distances: near and far senders and receivers through one queue, each with the time of its own way.
#[test]
fn senders_and_receivers_at_several_distances_share_a_queue() {
    let body = "switches: [edge, mid, far]
hosts:
  - { name: near, count: 1, switch: edge }
  - { name: remote, count: 1, switch: edge, cable: 40km }
  - { name: at-mid, count: 2, switch: mid }
  - { name: at-far, count: 2, switch: far }
links:
  - { name: dci, from: edge, to: mid, rate: 100G, length: 1km }
  - { name: on, from: mid, to: far, rate: 400G, length: 100km }
flows:
  - { name: nn, from: near, to: at-mid, burst: 4KB, every: 5ms }
  - { name: rn, from: remote, to: at-mid, burst: 4KB, every: 5ms, start: 100us }
  - { name: nf, from: near, to: at-far, burst: 4KB, every: 5ms, start: 200us }
  - { name: rf, from: remote, to: at-far, burst: 4KB, every: 5ms, start: 300us }";
    let outcome = run(&scenario(body, "vary: { scheme: [ecn] }"));
    for (name, way) in [("nn", 5), ("rn", 205), ("nf", 505), ("rf", 705)] {
        let group = group(&outcome, name);
        assert!(group.fair > 0.0 && group.bursts.len() >= 2, "{group:?}");
        let took = group.bursts[0].0;
        assert!(
            (way * 1_000..way * 1_000 + 3_000).contains(&took),
            "{name}: {took}"
        );
    }
    assert_eq!(outcome.flows.len(), 8, "all cross the queue");
}

/// Guards `reaction`: the queue grows for so much longer before the senders slow down.
#[test]
fn a_slow_reaction_point_lets_the_queue_grow() {
    let peak = |more: &str| {
        let more = format!("window: unlimited\n{more}\nvary: {{ scheme: [model] }}");
        run(&sites(4, "100km", "[{ from: from, to: to }]", &more)).peak
    };
    let (at_once, late) = (peak(""), peak("reaction: 50us"));
    // 300 Gb/s too much for 50 us are 1.9 MB.
    assert!(late > at_once + 1_500_000, "{at_once} and {late}");
}

/// Guards `pfc_reaction`: lossless stays lossless, as the headroom has room for what comes meanwhile.
#[test]
fn with_slow_pauses_nothing_is_lost() {
    let base = include_str!("scenarios/small.yaml");
    let with = |more: &str| {
        let mut scenario = Scenario::parse("small", &format!("{base}\n{more}\n")).unwrap();
        scenario.vary.scheme.truncate(1);
        scenario.vary.warm.truncate(1);
        let outcome = run(&scenario);
        assert!(outcome.pauses > 0);
        assert_eq!((outcome.dropped, outcome.repeated), (0, 0), "{more}");
        outcome.peak
    };
    assert_ne!(with(""), with("pfc_reaction: 10us"));
}

/// Guards the time of a call: a control core that needs 100 us for each lets the queue grow.
#[test]
fn a_slow_control_core_lets_the_queue_grow() {
    let peak = |cost: &str| {
        let more = format!("window: unlimited\n{cost}\nvary: {{ scheme: [model] }}");
        run(&sites(4, "100km", "[{ from: from, to: to }]", &more)).peak
    };
    let none = peak("control_cost: { call: 0us, record: 0us, flow: 0us, cnp: 0us }");
    let slow = peak("control_cost: { call: 100us }");
    assert!(slow > none + 1_000_000, "{none} and {slow}");
}
