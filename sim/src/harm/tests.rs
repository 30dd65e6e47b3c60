use super::*;
use crate::figures::Class;

fn run(peak: u64, pauses: u64, goodput: f64, flows: &[f64]) -> Figures {
    Figures {
        peak,
        pauses,
        goodput,
        flows: flows.to_vec(),
        ..Figures::default()
    }
}

fn found(ecn: &[Figures], with: &[Figures]) -> Vec<String> {
    let harms = of(ecn, with, 100);
    harms.iter().map(|harm| harm.figure.to_string()).collect()
}

#[test]
fn each_bound_is_kept_to_the_last_digit_and_no_further() {
    let ecn = [run(1_000, 100, 0.9, &[0.3, 0.3, 0.3])];
    let at = |peak, pauses, goodput, slowest| {
        found(&ecn, &[run(peak, pauses, goodput, &[0.3, 0.3, slowest])])
    };
    assert!(
        at(1_150, 100, 0.891, 0.285).is_empty(),
        "all at their bounds"
    );
    assert_eq!(at(1_151, 100, 0.9, 0.3), ["peak"]);
    assert_eq!(at(1_000, 101, 0.9, 0.3), ["pauses"]);
    assert_eq!(at(1_000, 0, 0.8909, 0.3), ["goodput"]);
    assert_eq!(at(1_000, 0, 0.9, 0.2849), ["fairness"]);
    let none = [run(0, 0, 1.0, &[])];
    assert_eq!(found(&none, &[run(0, 1, 1.0, &[])]), ["pauses"]);
    assert!(found(&[], &[]).is_empty());
}

#[test]
fn more_for_everybody_is_never_less_fair() {
    // Jain's index falls from 1 to 0.9 here.
    let ecn = [run(0, 0, 0.03, &[0.01, 0.01, 0.01])];
    assert!(found(&ecn, &[run(0, 0, 0.9, &[0.15, 0.25, 0.5])]).is_empty());
    // The slowest has what it had, but the two slowest have not.
    let ecn = [run(0, 0, 1.0, &[0.1, 0.4, 0.5])];
    assert_eq!(
        found(&ecn, &[run(0, 0, 1.0, &[0.1, 0.2, 0.7])]),
        ["fairness"]
    );
}

#[test]
fn short_flows_and_classes_are_judged_by_themselves() {
    let with = |slowdown, local, fair| Figures {
        slowdown: Some(slowdown),
        classes: vec![Class {
            name: "local".to_owned(),
            goodput: local,
            fair,
        }],
        ..run(0, 0, 1.0, &[0.5, 0.5])
    };
    let ecn = [with([2.0, 10.0], 0.7, 0.5)];
    assert!(found(&ecn, &[with([2.1, 10.5], 0.7, 0.7)]).is_empty());
    assert_eq!(
        found(&ecn, &[with([2.2, 10.6], 0.7, 0.7)]),
        ["slowdown p50", "slowdown p99"]
    );
    // ECN gives it more than its part of an equal division: that part is all that is due.
    assert!(found(&ecn, &[with([2.0, 10.0], 0.495, 0.7)]).is_empty());
    assert_eq!(
        found(&ecn, &[with([2.0, 10.0], 0.49, 0.7)]),
        ["class local"]
    );
    let ecn = [with([2.0, 10.0], 0.7, 0.7)];
    assert_eq!(found(&ecn, &[with([2.0, 10.0], 0.6, 0.7)]), ["class local"]);
    let none_arrived = [Figures {
        slowdown: None,
        ..ecn[0].clone()
    }];
    assert_eq!(found(&ecn, &none_arrived), ["slowdown p50", "slowdown p99"]);
}

#[test]
fn a_difference_that_ecn_has_with_itself_is_none() {
    let runs = |peaks: [u64; 8]| peaks.map(|peak| run(peak, 0, 0.9, &[0.9]));
    let ecn = runs([5_000, 9_000, 6_000, 8_000, 7_000, 5_500, 8_500, 7_500]);
    let twice = runs([9_500, 9_900, 9_700, 9_200, 9_100, 9_600, 9_300, 9_400]);
    assert_eq!(found(&ecn, &twice), ["peak"]);
    // Deeper by a fifth in the median, as chance would have it one time in eight.
    let more = runs([8_900, 5_200, 9_500, 8_300, 6_500, 8_800, 9_200, 8_100]);
    assert!(found(&ecn, &more).is_empty());
    // Three of eight are no median, however deep.
    let some = runs([5_000, 9_000, 6_000, 8_000, 7_000, 50_000, 50_000, 50_000]);
    assert!(found(&ecn, &some).is_empty());
    // A difference that is always there but too small to matter is not harm.
    let little = ecn.clone().map(|mut run| {
        run.peak += 200;
        run
    });
    assert!(found(&ecn, &little).is_empty());
}
