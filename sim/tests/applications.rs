//! Closed-loop applications over the simulated network: times computed by hand, what a step cannot beat, and what it waits for.

use std::path::Path;

use npcc_config::units::Nanos;
use npcc_sim::app::{ApplicationOutcome, interference};
use npcc_sim::engine::{self, Outcome};
use npcc_sim::report;
use npcc_sim::scenario::Scenario;
use npcc_sim::sweep;

/// Frame of 4,096 bytes on the wire, the header that the first of a message has besides, and an acknowledgement.
const FRAME: u64 = 4_096 + 58 + 24;
const RETH: u64 = 16;
const ACK: u64 = 58 + 4 + 24;

/// Scenario of one switch, where each host has 200 m of fibre (1 us) and 100 Gb/s (80 ps per byte); `rest` is its flows and applications.
fn star(hosts: u32, more: u32, rest: &str) -> Scenario {
    let text = format!(
        "version: 1
name: star
duration: 10ms
goodput_from: 1ms
start_jitter: 1ns
switches: [a]
hosts:
  - {{ name: ranks, count: {hosts}, switch: a, cable: 200m }}
  - {{ name: more, count: {more}, switch: a, cable: 200m }}
watch: more
vary: {{ scheme: [pfc], sender: [uncontrolled] }}
{rest}
"
    );
    Scenario::parse("star.yaml", &text).unwrap()
}

fn run(scenario: &Scenario) -> Outcome {
    let case = scenario.cases().remove(0);
    let outcome = engine::run(scenario, &case).unwrap();
    assert_eq!(outcome.audit.missing(), 0, "{:?}", outcome.audit);
    assert_eq!(outcome.audit.not_understood, 0);
    outcome
}

fn first(outcome: &Outcome) -> &ApplicationOutcome {
    &outcome.applications[0]
}

/// Law: one message takes the serialisation of its frames, one frame more at the switch, the propagation there and back, and the
/// acknowledgement; the roofline is the same.
#[test]
fn a_step_of_one_message_takes_what_the_hand_computes() {
    for (bytes, packets, last) in [(4_096, 1, FRAME), (40_960, 10, FRAME), (8_292, 3, 82 + 100)] {
        let write = format!(
            "applications: [{{ name: write, kind: checkpoint, ranks: [ranks], to: [more], size: {bytes}, gap: 10us }}]"
        );
        let outcome = run(&star(1, 1, &write));
        let total = (packets - 1) * FRAME + last + RETH;
        let at_switch = if packets == 1 { last + RETH } else { FRAME };
        let serial = |bytes: u64| bytes * 80 / 1_000;
        let step = 10_000 + serial(total) + serial(at_switch) + 2_000 + 2 * serial(ACK) + 2_000;
        let measured = first(&outcome).quantile(500).unwrap();
        assert!(
            measured.0.abs_diff(step) <= 6,
            "{bytes} bytes: {measured:?}, by hand {step}"
        );
        // It takes the shortest frame for that of the switch.
        let roofline = first(&outcome).roofline.0;
        let slack = serial(at_switch - last.min(at_switch)) + 6;
        assert!(
            roofline <= measured.0 + 1 && roofline + slack >= step,
            "{roofline}, by hand {step}"
        );
        assert!(first(&outcome).steps.len() > 100, "one after the other");
    }
}

/// Law: nothing is faster than the roofline, and on ideal links a collective with large chunks in flight comes within 5 % of it.
#[test]
fn on_ideal_links_a_collective_reaches_its_roofline() {
    for (kind, ratio) in [
        ("ring-allreduce", 1.05),
        ("halving-doubling", 1.05),
        ("all-to-all", 1.05),
    ] {
        let application = format!(
            "applications: [{{ name: one, kind: {kind}, ranks: [ranks], size: 8MB, chunk: 256KB, steps: 3 }}]"
        );
        let outcome = run(&star(4, 4, &application));
        let one = first(&outcome);
        let jct = one.jct_ratio().unwrap();
        assert_eq!((one.steps.len(), one.unfinished.len()), (3, 0), "{kind}");
        assert!((1.0..=ratio).contains(&jct), "{kind}: {jct}");
        // Bus bandwidth is at most the link's 12.5 GB/s, less headers.
        let busbw = one.busbw().unwrap();
        assert!((11.0..12.4).contains(&busbw), "{kind}: {busbw}");
    }
}

/// Law: `size` bytes a step are what receivers get: goodput counts messages by their own length.
#[test]
fn goodput_is_what_the_messages_carry() {
    // Messages of 1,000 bytes: a quarter of a packet.
    let write = "applications: [{ name: write, kind: checkpoint, ranks: [ranks], to: [more], size: 100000, chunk: 1000, in_flight: 64 }]";
    let outcome = run(&star(1, 1, write));
    let median = first(&outcome).quantile(500).unwrap();
    let carried = 100.0 * (1_000.0 + 82.0) * 8.0 / median.0 as f64;
    assert!(
        (outcome.goodput * 100.0 / carried - 1.0).abs() < 0.02,
        "{} of {carried}",
        outcome.goodput * 100.0
    );
}

/// Law: a longer gap makes a longer step, by no more than the gap.
#[test]
fn steps_grow_with_the_gap() {
    let step = |gap: u64| {
        let ring = format!(
            "applications: [{{ name: ring, kind: ring-allreduce, ranks: [ranks], size: 1MB, gap: {gap}us, chunk: 64KB }}]"
        );
        first(&run(&star(4, 4, &ring))).quantile(500).unwrap().0
    };
    let times = [1, 50, 200, 400].map(step);
    for ((before, after), gap) in times.iter().zip(&times[1..]).zip([49, 150, 200]) {
        assert!(
            before < after && after - before <= gap * 1_000 + 1_000,
            "{times:?}"
        );
    }
}

/// Law: one seed gives one outcome, whatever the application; frames are conserved; warm and cold connections work alike.
#[test]
fn applications_are_deterministic_and_conserve_frames() {
    let all = "vary: { scheme: [ecn], sender: [hpcc-vendor], warm: [true, false] }
applications:
  - { name: ring, kind: ring-allreduce, ranks: [ranks, more], interleaved: true, size: 1MB }
  - { name: requests, kind: request-response, ranks: [ranks], to: [more], size: 64KB, queue_pairs: 1 }
flows: [{ from: ranks, to: more }]";
    let scenario = {
        let base = "version: 1
name: both
duration: 3ms
switches: [a]
hosts: [{ name: ranks, count: 4, switch: a }, { name: more, count: 4, switch: a }]
watch: more
";
        Scenario::parse("both.yaml", &format!("{base}{all}")).unwrap()
    };
    for case in scenario.cases() {
        let once = engine::run(&scenario, &case).unwrap();
        assert_eq!(once, engine::run(&scenario, &case).unwrap(), "{case}");
        assert_eq!(
            (once.audit.missing(), once.audit.not_understood),
            (0, 0),
            "{case}"
        );
        for one in &once.applications {
            assert!(one.steps.len() > 2, "{case}: {}", one.name);
            assert!(one.jct_ratio().unwrap() >= 1.0, "{case}: {}", one.name);
        }
    }
    let mut other = scenario.clone();
    other.seed += 1;
    let case = scenario.cases().remove(0);
    assert_ne!(
        engine::run(&scenario, &case).unwrap(),
        engine::run(&other, &case).unwrap()
    );
}

/// Law: what is lost comes again, and a step waits for it: a buffer of 300 KB without pauses drops, and every step that ends has all its
/// bytes.
#[test]
fn a_step_waits_for_what_was_lost() {
    let write = "pool: 300KB
applications: [{ name: write, kind: checkpoint, ranks: [ranks], to: [more], size: 1MB, steps: 1 }]";
    let scenario = Scenario {
        duration: Nanos::from_millis(60),
        ..star(2, 1, write)
    };
    let outcome = run(&scenario);
    assert!(outcome.dropped > 0 && outcome.repeated > 0);
    let one = first(&outcome);
    assert_eq!((one.steps.len(), one.unfinished.len()), (1, 0));
    assert!(one.jct_ratio().unwrap() > 1.0, "loss costs time");
}

/// Law: an application beside others is slower than alone; the factor is 2 where two share a link that one could fill.
#[test]
fn interference_is_what_others_cost() {
    let two = "applications:
  - { name: one, kind: checkpoint, ranks: [ranks], to: [more], size: 4MB, in_flight: 16 }
flows: [{ from: ranks, to: more, qps: 4 }]";
    let scenario = star(1, 1, two);
    let (beside, alone) = (run(&scenario), run(&scenario.alone(0)));
    let factor = interference(first(&beside), first(&alone)).unwrap();
    assert!((1.8..2.3).contains(&factor), "{factor}");
}

/// Law: flows that join and take equal turns are at their fair share in the first window; an uncontrolled one beside a slow one never is.
#[test]
fn joiners_reach_their_fair_share() {
    let joins = "flows: [{ from: ranks, to: more }, { from: ranks, to: more, start: 2ms }]";
    let outcome = run(&star(1, 1, joins));
    assert_eq!(outcome.converged, Some(Nanos::from_millis(1)));
    let unfair = "flows: [{ from: ranks, to: more }, { from: ranks, to: more, qps: 3, burst: 1MB, every: 1ms }]";
    assert_eq!(
        run(&star(1, 1, unfair)).converged,
        None,
        "bursts do not join"
    );
}

#[test]
fn mistakes_are_named() {
    let base = "version: 1
name: wrong
duration: 1ms
switches: [a]
hosts: [{ name: ranks, count: 6, switch: a }, { name: more, count: 1, switch: a }]
watch: more
applications: [{ name: it, ";
    for (rest, said) in [
        (
            "kind: halving-doubling, ranks: [ranks]",
            "power of two of ranks, not 6",
        ),
        (
            "kind: ring-allreduce, ranks: [there]",
            "`there` is not in hosts",
        ),
        ("kind: ring-allreduce, ranks: [more]", "two ranks"),
        ("kind: ring-allreduce, ranks: [ranks, ranks]", "twice"),
        ("kind: checkpoint, ranks: [ranks]", "`to`"),
        ("kind: goal, ranks: [ranks]", "needs a file"),
        (
            "kind: goal, goal: none.goal, ranks: [ranks]",
            "cannot read none.goal",
        ),
        (
            "kind: all-to-all, ranks: [ranks], queue_pairs: 0",
            "above 0",
        ),
        (
            "kind: all-to-all, ranks: [ranks], in_flight: 0",
            "in_flight",
        ),
        ("kind: gossip, ranks: [ranks]", "ring-allreduce"),
    ] {
        let error = Scenario::parse("wrong.yaml", &format!("{base}{rest} }}]\n")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(said), "{error}");
    }
    let none = "version: 1
name: none
duration: 1ms
switches: [a]
hosts: [{ name: ranks, count: 1, switch: a }]
watch: ranks
";
    let error = Scenario::parse("none.yaml", none).unwrap_err().to_string();
    assert!(error.contains("flows or applications"), "{error}");
}

/// Law: a GOAL file runs: the hand-made training step computes for 12.4 ms, and is not faster than that.
#[test]
fn a_goal_file_runs() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/scenarios/review/llama-7b.yaml");
    let mut scenario = Scenario::load(&path).unwrap();
    scenario.duration = Nanos::from_millis(40);
    scenario.vary.scheme.truncate(1);
    let outcome = run(&scenario);
    let one = first(&outcome);
    assert!(
        one.roofline.0 >= 8 * (516_000 + 1_032_000),
        "{:?}",
        one.roofline
    );
    assert!(!one.steps.is_empty() && one.jct_ratio().unwrap() >= 1.0);
}

#[test]
fn reports_have_the_figures() {
    let ring =
        "applications: [{ name: ring, kind: ring-allreduce, ranks: [ranks], size: 1MB, steps: 2 }]";
    let scenario = star(4, 4, ring);
    let runs = sweep::all(&scenario, 1, &|_, _| {}).unwrap();
    let (table, page) = (
        report::table(&scenario, &runs),
        report::html(&scenario, &runs),
    );
    for text in [&table, &page] {
        assert!(text.contains("JCT ratio") && text.contains("busbw GB/s"));
    }
    let csv = report::csv(&scenario, &[runs]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(",repeated,groups,converged_ns,applications"));
    assert!(lines[1].contains("\"ring steps=2 p50="), "{}", lines[1]);
}
