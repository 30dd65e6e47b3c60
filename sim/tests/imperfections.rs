//! Each imperfection has its documented effect, and a run without them is unaffected by their existence.

use npcc_sim::engine::{self, Outcome};
use npcc_sim::scenario::{Scenario, Scheme};

/// Senders into a link of 100G over 1 km for 3 ms, with `more` lines. NPCC acts at this distance only with its gate off (`npcc+near`).
fn scenario(senders: u32, scheme: &str, more: &str) -> Scenario {
    let text = format!(
        "
version: 1
name: imperfect
duration: 3ms
utilisation_over: 3ms
goodput_from: 1ms
switches: [edge, far]
hosts:
  - {{ name: from, count: {senders}, switch: edge, rate: 60G }}
  - {{ name: to, count: {senders}, switch: far, rate: 100G }}
links: [{{ name: dci, from: edge, to: far, rate: 100G, length: 1km }}]
flows: [{{ from: from, to: to }}]
watch: dci
vary: {{ scheme: [{scheme}] }}
{more}
"
    );
    Scenario::parse("imperfect", &text).unwrap()
}

fn run(scenario: &Scenario) -> Outcome {
    let outcome = engine::run(scenario, &scenario.cases()[0]).unwrap();
    assert_eq!(outcome.audit.missing(), 0, "{:?}", outcome.audit);
    outcome
}

#[test]
fn the_share_of_cnps_that_is_lost_is_the_one_asked_for() {
    for scheme in ["ecn", "npcc+near"] {
        let all = run(&scenario(4, scheme, ""));
        let half = run(&scenario(4, scheme, "imperfections: { cnp_loss: 50% }"));
        let share = |outcome: &Outcome| {
            let sent = outcome.cnps_switch + outcome.cnps_host;
            assert!(sent >= 50, "{scheme}: {sent}");
            outcome.cnps_received as f64 / sent as f64
        };
        assert!(share(&all) > 0.9, "{scheme}: but for those on their way");
        assert!(
            (share(&half) - 0.5).abs() < 0.12,
            "{scheme}: {}",
            share(&half)
        );
    }
}

#[test]
fn late_ticks_let_the_queue_grow() {
    let in_time = run(&scenario(4, "npcc+near", ""));
    let late = "imperfections: { tick_late: 100%, tick_late_by: 1ms }";
    let late = run(&scenario(4, "npcc+near", late));
    assert!(
        2 * late.peak > 3 * in_time.peak,
        "{} against {}",
        late.peak,
        in_time.peak
    );
}

#[test]
fn a_depth_published_once_a_burst_is_seen_later() {
    let exact = run(&scenario(4, "npcc+near", ""));
    let published = |every| {
        run(&scenario(
            4,
            "npcc+near",
            &format!("imperfections: {{ depth_every: {every} }}"),
        ))
    };
    assert_eq!(exact, published(1), "as it is");
    assert_ne!(exact, published(32));
    // 2,000 frames come and go before the control core sees a new depth.
    assert!(published(2_000).peak > exact.peak, "{}", exact.peak);
}

/// Guards `pauses` for one sender of 60G: the queue holds what came in while the link was paused for 300 us, and nothing is lost.
#[test]
fn a_paused_link_stands_still_for_so_long() {
    let free = run(&scenario(1, "ecn", ""));
    let paused = "imperfections: { pauses: [{ link: dci, time: 300us, every: 1ms }] }";
    let paused = run(&scenario(1, "ecn", paused));
    let came_in = 60e9 / 8.0 * 300e-6;
    let share = paused.peak as f64 / came_in;
    assert!((0.95..1.1).contains(&share), "{share} of {came_in}");
    assert!(free.peak < 100_000 && paused.dropped == 0, "{}", free.peak);
}

/// Guards `first`: a pause during the start's overload adds what the link could have carried, for every seed; one after the end adds
/// nothing.
#[test]
fn the_first_pause_comes_when_the_scenario_says() {
    let with = |first: &str| {
        let pause = format!("{{ link: dci, time: 300us, every: 40ms, first: {first} }}");
        scenario(2, "ecn", &format!("imperfections: {{ pauses: [{pause}] }}"))
    };
    let (early, never) = (with("100us"), with("30ms"));
    for seed in 0..3 {
        let (early, never) = (run(&early.with_seed(seed)), run(&never.with_seed(seed)));
        assert!(
            early.peak > never.peak + 2_000_000,
            "{seed}: {} and {}",
            early.peak,
            never.peak
        );
    }
}

/// Guards `cnp_interval` of a host group: with 200 us the receivers send less than a quarter of the CNPs that they send with 4 us.
#[test]
fn a_host_group_has_a_cnp_interval_of_its_own() {
    let cnps = |interval: &str| {
        let mut scenario = scenario(4, "ecn", "");
        for group in &mut scenario.hosts {
            group.cnp_interval = Some(interval.parse().unwrap());
        }
        run(&scenario).cnps_host
    };
    let (often, seldom) = (cnps("4us"), cnps("200us"));
    assert!(seldom * 4 < often, "{seldom} and {often}");
    assert!(seldom > 10);
}

#[test]
fn a_seed_decides_about_chance_too() {
    let all = "start_jitter: 20us\nimperfections: { tick_jitter: 10us, tick_late: 5%, tick_late_by: 200us, cnp_loss: 5%, depth_every: 32 }";
    let scenario = scenario(4, "npcc+near", all);
    assert_eq!(run(&scenario), run(&scenario));
    assert_ne!(run(&scenario), run(&scenario.with_seed(1)));
}

#[test]
fn a_pause_of_a_link_that_is_not_there_is_named() {
    for wrong in [
        "{ link: dcj, time: 1us, every: 2us }",
        "{ link: dci, time: 2us, every: 2us }",
    ] {
        let text = format!("{{ imperfections: {{ pauses: [{wrong}] }} }}");
        let base = include_str!("scenarios/small.yaml");
        let text = format!("{base}\n{}\n", &text[2..text.len() - 2]);
        let error = Scenario::parse("small", &text).unwrap_err().to_string();
        assert!(error.contains("imperfections.pauses"), "{error}");
    }
}

/// Guards `sender` of a host group: beside hosts with the run's card stands one that ignores CNPs.
#[test]
fn a_fleet_has_cards_of_several_kinds() {
    let mut scenario = scenario(2, "ecn", "");
    let text = "{ name: deaf, count: 1, switch: edge, rate: 60G, sender: uncontrolled }";
    scenario.hosts.push(serde_yaml::from_str(text).unwrap());
    let text = "{ from: deaf, to: to, name: deaf }";
    scenario.flows.push(serde_yaml::from_str(text).unwrap());
    assert_eq!(scenario.cases()[0].scheme, Scheme::ECN);
    let outcome = run(&scenario);
    let [listening, deaf] = outcome.groups.as_slice() else {
        unreachable!("two groups");
    };
    assert!(deaf.goodput > 30.0, "{}", deaf.goodput);
    assert!(
        deaf.goodput > 1.5 * listening.goodput / 2.0,
        "{} and {}",
        deaf.goodput,
        listening.goodput
    );
}
