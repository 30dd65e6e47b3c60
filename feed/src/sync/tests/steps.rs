//! The steps of an exchange, one after the other.

use std::time::Duration;

use npcc_api::ends::EndRow;

use super::harness::{Pair, cm, end, name};

#[test]
fn ends_arrive_in_the_next_step_and_go_likewise() {
    let mut pair = Pair::new(1);
    pair.boxes[0].say(EndRow::End(end(1, 1)));
    pair.boxes[1].say(EndRow::End(end(2, 1)));
    pair.step();
    assert!(pair.is_equal());
    pair.boxes[0].say(EndRow::Gone(end(1, 1).key()));
    pair.step();
    assert!(pair.is_equal() && pair.boxes[1].copy().is_empty());
}

/// A switch takes no messages of the connection manager: they have numbers like any row, and are not suggested.
#[test]
fn a_message_of_the_connection_manager_is_not_suggested() {
    let mut pair = Pair::new(2);
    pair.boxes[0].machine.row(cm(7));
    pair.boxes[0].say(EndRow::End(end(1, 1)));
    let out = pair.boxes[0].machine.publish(Duration::ZERO).unwrap();
    let machine = &mut pair.boxes[1].machine;
    machine.receive(Duration::ZERO, &name("a"), &out.bytes);
    let (_, state) = machine.peers().next().unwrap();
    assert_eq!(state.counts.rows, 2);
    let (_, rows) = machine.suggestions(9).unwrap();
    assert_eq!(rows, [EndRow::End(end(1, 1))]);
    assert!(machine.suggestions(9).is_none());
}

/// A change that follows at once goes with the first: the switch may note an end many times a second.
#[test]
fn changes_of_one_end_are_one_row() {
    let mut pair = Pair::new(3);
    for version in 0..1000 {
        pair.boxes[0].say(EndRow::End(end(1, version)));
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
        seen.first_seen += second % 3;
        seen.last_seen += second * 1_000_000;
        seen.packets += second;
        pair.boxes[0].machine.row(EndRow::End(seen));
        pair.run(Duration::from_millis(50));
    }
    let (_, state) = pair.boxes[1].machine.peers().next().unwrap();
    assert_eq!(state.counts.rows, 6);
}

/// A feed that restarts has the same ends: the peer's switch sees none of them go.
#[test]
fn a_restart_of_the_feed_changes_nothing_at_the_peer() {
    let mut pair = Pair::new(4);
    pair.boxes[0].sees(0..500, 1);
    pair.run(Duration::from_secs(1));
    let limits = pair.limits;
    pair.boxes[0].restart(99, &limits);
    for _ in 0..200 {
        pair.step();
        assert_eq!(pair.boxes[1].copy().len(), 500);
    }
    assert!(pair.is_equal());
}

/// A feed that crashes at its start is started again at once: the last start counts.
#[test]
fn three_restarts_within_a_second_are_followed() {
    let mut pair = Pair::new(8);
    let limits = pair.limits;
    pair.boxes[0].say(EndRow::End(end(1, 1)));
    pair.run(Duration::from_secs(5));
    for epoch in 90..93 {
        pair.boxes[0].restart(epoch, &limits);
        pair.boxes[0].say(EndRow::End(end(epoch, 1)));
        pair.run(Duration::from_millis(300));
        assert!(pair.is_equal(), "{epoch}");
    }
}

/// A switch that starts anew gets the ends of peers that live, and none of a box that is gone.
#[test]
fn ends_are_suggested_again_for_60_s_after_a_peer_was_heard() {
    let mut pair = Pair::new(9);
    // At the last frame of these ends, by the box's clock: long ago, and just now.
    for (number, version) in [(1, 1), (2, 100), (3, 103), (4, 106)] {
        pair.boxes[0].say(EndRow::End(end(number, version)));
    }
    pair.run(Duration::from_secs(1));
    pair.faults.cut = true;
    let mut again = |silent| {
        pair.run(Duration::from_secs(silent));
        let machine = &mut pair.boxes[1].machine;
        machine.repeat_suggestions(pair.now);
        let rows = machine.suggestions(9);
        rows.map_or(0, |(_, rows)| rows.len())
    };
    assert_eq!(again(1), 2);
    assert_eq!(again(57), 2);
    assert_eq!(again(3), 0);
    // Once the peer is heard again, its ends count again.
    pair.faults.cut = false;
    pair.boxes[1].suggested.clear();
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.boxes[1].suggested.len(), 2);
}

/// Ends that the switch refused are suggested again in slices, each time that it refused some.
#[test]
fn refused_ends_are_suggested_again_in_slices() {
    let mut pair = Pair::new(10);
    pair.boxes[0].sees(0..25, 1);
    pair.run(Duration::from_secs(1));
    let now = pair.now;
    let machine = &mut pair.boxes[1].machine;
    let mut again = |refused| {
        machine.repeat_refused(now, &name("a"), 10, refused);
        let rows = machine.suggestions(99);
        rows.map_or(0, |(_, rows)| rows.len())
    };
    assert_eq!(again(false), 0);
    assert_eq!([true, false, false].map(&mut again), [10, 10, 5]);
    assert_eq!([false, true].map(&mut again), [0, 10]);
    // What is refused meanwhile is not forgotten.
    assert_eq!([true, false].map(&mut again), [10, 5]);
    assert_eq!([false; 4].map(&mut again), [10, 10, 5, 0]);
}

#[test]
fn nothing_is_requested_of_a_silent_peer() {
    let mut pair = Pair::new(5);
    pair.boxes[0].say(EndRow::End(end(1, 1)));
    pair.step();
    pair.faults.cut = true;
    pair.boxes[0].say(EndRow::End(end(2, 1)));
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
    pair.boxes[0].sees(0..10, 1);
    pair.step();
    pair.boxes[0].table.retain(|key, _| key.queue_pair < 5);
    pair.boxes[0].snapshot();
    pair.step();
    assert!(pair.is_equal() && pair.boxes[1].copy().len() == 5);
}
