//! A peer that lies: its copy is bounded, nobody else's changes, and once it is honest again its copy is right.

use std::time::Duration;

use npcc_api::ends::{End, EndRow};
use proptest::prelude::*;
use serde_json::json;

use super::super::{Limits, Machine, RejectReason};
use super::harness::{Pair, end, name};

/// Returns a message of box `a` in its own epoch or another, with made-up numbers.
fn lie() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0..20u64, any::<u64>(), Just(1 << 53), Just((1 << 53) + 1)];
    let rows = prop::collection::vec(0..400u64, 0..40).prop_map(|numbers| {
        numbers
            .iter()
            .map(|n| EndRow::End(end(*n, n * 3)))
            .collect::<Vec<_>>()
    });
    let ends = prop::collection::vec((0..1100u16, prop::collection::vec(0..400u64, 0..9)), 0..5);
    let body = prop_oneof![
        (number.clone(), rows).prop_map(|(first, rows)| json!({"delta": {"first": first, "rows": rows}})),
        (number.clone(), any::<u64>()).prop_map(|(sequence, hash)| json!({"heartbeat": {"sequence": sequence, "hash": hash}})),
        (number.clone(), prop::collection::vec(any::<u64>(), 1023..1025)).prop_map(|(sequence, hashes)| json!({"digest": {"sequence": sequence, "hashes": hashes}})),
        prop::collection::vec(0..1100u16, 0..2000).prop_map(|parts| json!({"request": {"parts": parts}})),
        (number, ends).prop_map(|(sequence, parts)| {
            let part = |(part, numbers): &(u16, Vec<u64>)| {
                let rows: Vec<End> = numbers.iter().map(|n| end(*n, 1)).collect();
                json!({"part": part, "rows": rows})
            };
            json!({"parts": {"sequence": sequence, "parts": parts.iter().map(part).collect::<Vec<_>>()}})
        }),
    ];
    let epoch = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    (body, epoch, 1..3u8).prop_map(|(body, epoch, v)| {
        let message = json!({"v": v, "box": "a", "epoch": epoch.unwrap_or(OWN), "body": body});
        serde_json::to_vec(&message).unwrap()
    })
}

/// Epoch of box `a` in these tests.
const OWN: u64 = 77;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn after_lies_an_honest_peer_is_believed_again(
        seed in any::<u64>(),
        lies in prop::collection::vec((lie(), 0..100u8), 1..40),
    ) {
        let mut pair = Pair::new(seed);
        let limits = pair.limits;
        pair.boxes[0].restart(OWN, &limits);
        pair.boxes[0].sees(0..100, 1);
        for (lie, steps) in lies {
            pair.inject(0, lie);
            for _ in 0..steps {
                pair.step();
            }
            pair.check_bounds(&pair.boxes[1]);
        }
        // The time of the bound on requests is a liar's own loss.
        pair.run(Duration::from_secs(15));
        prop_assert!(pair.is_equal());
    }

    #[test]
    fn no_bytes_panic_or_change_a_copy(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,100}") {
        let mut machine = Machine::new(name("b"), 1, &[name("a")], &Limits::default());
        machine.receive(Duration::ZERO, &name("a"), &bytes);
        machine.receive(Duration::ZERO, &name("a"), text.as_bytes());
        machine.receive(Duration::ZERO, &name("x"), &bytes);
        prop_assert_eq!(machine.ends_of(&name("a")).count(), 0);
        prop_assert_eq!(machine.refused(&name("a"), RejectReason::Malformed), 2);
    }
}

fn delta(first: u64, numbers: std::ops::Range<u64>, sender: &str) -> Vec<u8> {
    let rows: Vec<EndRow> = numbers.map(|n| EndRow::End(end(n, 1))).collect();
    let body = json!({"delta": {"first": first, "rows": rows}});
    serde_json::to_vec(&json!({"v": 1, "box": sender, "epoch": 5, "body": body})).unwrap()
}

#[test]
fn a_flood_is_bounded_by_rows_and_ends_and_takes_nothing_from_another_peer() {
    let limits = Limits {
        ends: 1000,
        rows_per_second: 5000,
    };
    let (liar, honest) = (name("liar"), name("other"));
    let mut machine = Machine::new(name("b"), 1, &[liar.clone(), honest.clone()], &limits);
    let now = Duration::from_secs(1);
    for batch in 0..1000u64 {
        let first = batch * 100 + 1;
        machine.receive(now, &liar, &delta(first, first..first + 100, "liar"));
    }
    machine.receive(now, &honest, &delta(1, 0..100, "other"));
    assert_eq!(machine.ends_of(&liar).count(), 1000);
    assert_eq!(machine.ends_of(&honest).count(), 100);
    assert_eq!(machine.refused(&liar, RejectReason::Full), 9000);
    assert_eq!(machine.refused(&liar, RejectReason::Rate), 900);
    assert_eq!(machine.refused(&honest, RejectReason::Rate), 0);
    // The switch is given both peers' rows in turn.
    let (first, _) = machine.suggestions(10).unwrap();
    let (second, _) = machine.suggestions(10).unwrap();
    assert_ne!(first, second);
}

#[test]
fn a_box_speaks_for_itself_only() {
    let mut machine = Machine::new(name("b"), 1, &[name("a"), name("c")], &Limits::default());
    machine.receive(Duration::ZERO, &name("c"), &delta(1, 0..10, "a"));
    assert_eq!(machine.refused(&name("c"), RejectReason::Imposter), 1);
    assert_eq!(
        machine.ends_of(&name("a")).count() + machine.ends_of(&name("c")).count(),
        0
    );
}

/// A heartbeat of another epoch divides the table anew, which may have 65,536 ends: such messages are short, so rows a second do not bound them.
#[test]
fn epochs_are_taken_at_a_bounded_rate() {
    let peer = name("a");
    let mut machine = Machine::new(
        name("b"),
        1,
        std::slice::from_ref(&peer),
        &Limits::default(),
    );
    for round in 0..10_000u64 {
        let body = json!({"heartbeat": {"sequence": 0, "hash": 0}});
        let message = json!({"v": 1, "box": "a", "epoch": round, "body": body});
        let now = Duration::from_millis(round);
        machine.receive(now, &peer, &serde_json::to_vec(&message).unwrap());
    }
    let taken = 10_000 - machine.refused(&peer, RejectReason::Rate);
    assert!((10..=13).contains(&taken), "{taken} in 10 s");
}

/// A peer whose digests never fit is answered, and requested of, at a bounded rate.
#[test]
fn a_peer_that_never_agrees_costs_a_bounded_number_of_requests() {
    let mut pair = Pair::new(4);
    let limits = pair.limits;
    pair.boxes[0].restart(OWN, &limits);
    pair.boxes[0].say(EndRow::End(end(1, 1)));
    for round in 0..6000u64 {
        let body = json!({"digest": {"sequence": 1, "hashes": vec![round + 1; 1024]}});
        let message = json!({"v": 1, "box": "a", "epoch": OWN, "body": body});
        pair.inject(0, serde_json::to_vec(&message).unwrap());
        pair.step();
    }
    let (_, state) = pair.boxes[1].machine.peers().next().unwrap();
    // In a minute: four times all parts, and 12 times more.
    assert!(state.counts.requests <= 240, "{:?}", state.counts);
    assert!(state.counts.parts <= 17 * 1024, "{:?}", state.counts);
}
