//! The steps of an exchange, one after the other.

use std::time::Duration;

use super::harness::{Pair, cm, end};
use crate::row::Row;

#[test]
fn ends_arrive_in_the_next_step_and_go_likewise() {
    let mut pair = Pair::new(1);
    pair.boxes[0].say(Row::End(end(1, 1)));
    pair.boxes[1].say(Row::End(end(2, 1)));
    pair.step();
    assert!(pair.is_equal());
    pair.boxes[0].say(Row::Gone(end(1, 1).key()));
    pair.step();
    assert!(pair.is_equal() && pair.boxes[1].copy().is_empty());
}

#[test]
fn a_message_of_the_connection_manager_arrives_once() {
    let mut pair = Pair::new(2);
    pair.faults.repeated = 100;
    pair.boxes[0].machine.row(cm(7));
    let out = pair.boxes[0].machine.publish(Duration::ZERO).unwrap();
    for _ in 0..3 {
        pair.boxes[1]
            .machine
            .receive(Duration::ZERO, &"a".parse().unwrap(), &out.bytes);
    }
    let (_, rows) = pair.boxes[1].machine.suggestions(9).unwrap();
    assert_eq!(rows, [cm(7)]);
    assert!(pair.boxes[1].machine.suggestions(9).is_none());
}

/// A change that follows at once goes with the first: the switch may note an end many times a second.
#[test]
fn changes_of_one_end_are_one_row() {
    let mut pair = Pair::new(3);
    for version in 0..1000 {
        pair.boxes[0].say(Row::End(end(1, version)));
    }
    pair.step();
    assert!(pair.is_equal());
    let (_, state) = pair.boxes[1].machine.peers().next().unwrap();
    assert_eq!(state.counts.rows, 1);
}

/// The switch notes every second that an end is in use: that goes on every 10 s.
#[test]
fn a_refresh_is_passed_on_every_10_s() {
    let mut pair = Pair::new(7);
    for second in 0..60 {
        let mut seen = end(1, 1);
        seen.last_seen += second * 1_000_000;
        seen.packets += second;
        pair.boxes[0].machine.row(Row::End(seen));
        pair.run(Duration::from_millis(50));
    }
    let (_, state) = pair.boxes[1].machine.peers().next().unwrap();
    assert_eq!(state.counts.rows, 6);
}

/// A feed that restarts has the same ends: the peer's switch sees none of them go.
#[test]
fn a_restart_of_the_feed_changes_nothing_at_the_peer() {
    let mut pair = Pair::new(4);
    for number in 0..500 {
        pair.boxes[0].say(Row::End(end(number, 1)));
    }
    pair.run(Duration::from_secs(1));
    let limits = pair.limits;
    pair.boxes[0].restart(99, &limits);
    for _ in 0..200 {
        pair.step();
        assert_eq!(pair.boxes[1].copy().len(), 500);
    }
    assert!(pair.is_equal());
}

#[test]
fn nothing_is_requested_of_a_silent_peer() {
    let mut pair = Pair::new(5);
    pair.boxes[0].say(Row::End(end(1, 1)));
    pair.step();
    pair.faults.cut = true;
    pair.boxes[0].say(Row::End(end(2, 1)));
    pair.run(Duration::from_secs(60));
    let (_, state) = pair.boxes[1].machine.peers().next().unwrap();
    assert!(state.counts.requests <= 8, "{:?}", state.counts);
    pair.faults.cut = false;
    pair.run(Duration::from_secs(1));
    assert!(pair.is_equal());
    let (_, state) = pair.boxes[1].machine.peers().next().unwrap();
    assert_eq!(state.counts.missing, 1);
}

/// The switch's rows that were overwritten are taken from a snapshot; ends that it no longer has are gone.
#[test]
fn a_snapshot_of_the_switch_replaces_the_table() {
    let mut pair = Pair::new(6);
    for number in 0..10 {
        pair.boxes[0].say(Row::End(end(number, 1)));
    }
    pair.step();
    pair.boxes[0].table.retain(|key, _| key.queue_pair < 5);
    pair.boxes[0].snapshot();
    pair.step();
    assert!(pair.is_equal() && pair.boxes[1].copy().len() == 5);
}
