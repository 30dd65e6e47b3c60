//! Tests of the account of a transmit ring, against models of drivers and links with a clock of their own.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Speed of a link that sends next to nothing between two updates.
const SLOW: BitRate = BitRate(1_000_000);

/// Turns of 50 us at 100 Gb/s: the link is busy 99 % of the time. With turns of a microsecond no more than the bound waits.
#[test]
fn the_link_is_kept_busy_by_a_worker_that_is_away_for_a_turn() {
    const FRAME: u64 = 1_106;
    let rate = BitRate(100_000_000_000);
    for (turn, most) in [(50_000, 700_000), (1_000, 25_000)] {
        let mut outstanding = Outstanding::new(25_000, rate, 1_024);
        let (mut waiting, mut sent, mut now, mut credit) = (VecDeque::new(), 0, 0, 0);
        let turns = 20_000_000 / turn;
        for _ in 0..turns {
            now += turn;
            // The link sends what it can in this turn, as far as frames wait.
            credit += rate.bytes_in(Nanos(turn));
            while let Some(length) = waiting.front().copied().filter(|length| *length <= credit) {
                waiting.pop_front();
                credit -= length;
                sent += length;
            }
            if waiting.is_empty() {
                credit = 0;
            }
            let held = waiting.len();
            outstanding.poll(Nanos(now), |frames| Some(held >= usize::from(frames)));
            let admitted = outstanding.admits(std::iter::repeat_n(FRAME, 1_024), Nanos(now));
            for _ in 0..admitted {
                outstanding.add_sent(FRAME, Nanos(now));
                waiting.push_back(FRAME);
            }
            assert!(waiting.iter().sum::<u64>() <= most);
        }
        let share = sent * 100 / rate.bytes_in(Nanos((turns - 1) * turn));
        assert!(share >= 99, "{share} % with turns of {turn} ns");
    }
}

proptest! {
    /// Against a ring that sends at random times: never past the bound but for a lone frame, and never stuck.
    #[test]
    fn the_ring_stays_within_its_bound(
        bound in 1_500u64..40_000,
        steps in prop::collection::vec((prop::collection::vec(84u64..9_200, 0..32), 0usize..40), 1..200),
    ) {
        let mut ring: VecDeque<u64> = VecDeque::new();
        let mut outstanding = Outstanding::new(bound, BitRate(1_000_000_000), 128);
        for (turn, (hand, leave)) in (1u64..).zip(steps) {
            let now = Nanos(turn * 1_000);
            for _ in 0..leave.min(ring.len()) {
                ring.pop_front();
            }
            let waiting = ring.len();
            outstanding.poll(now, |frames| Some(waiting >= usize::from(frames)));
            prop_assert_eq!(outstanding.bytes(), ring.iter().sum::<u64>());
            // No frame has moved for a millisecond: a burst may pass the bound, which is tested below.
            if now.since(outstanding.moved) > PATIENCE {
                continue;
            }
            let admitted = outstanding.admits(hand.iter().copied(), now);
            for length in &hand[..admitted] {
                outstanding.add_sent(*length, now);
                ring.push_back(*length);
            }
            let bytes: u64 = ring.iter().sum();
            prop_assert!(bytes <= bound || ring.len() == 1, "{bytes} of {bound}");
            if let Some(next) = hand.get(admitted) {
                prop_assert!(bytes + next > bound, "{bytes} + {next} would have fitted {bound}");
            }
        }
    }
}

#[test]
fn a_driver_that_confirms_nothing_is_not_waited_for_without_end() {
    let mut outstanding = Outstanding::new(3_000, SLOW, 64);
    let burst = || std::iter::repeat_n(1_500, 32);
    outstanding.poll(Nanos(0), |_| Some(true));
    assert_eq!(outstanding.admits(burst(), Nanos(0)), 2);
    outstanding.add_sent(1_500, Nanos(0));
    outstanding.add_sent(1_500, Nanos(0));
    outstanding.poll(Nanos(500_000), |_| Some(true));
    assert_eq!(outstanding.admits(burst(), Nanos(500_000)), 0);
    assert!(outstanding.admits(burst(), Nanos(1_000_001)) >= 32);
}

/// Earlier defect: the bound was off for good once no frame had moved for a millisecond, and a ring of 1,024 filled.
#[test]
fn a_link_that_holds_is_given_a_burst_a_millisecond() {
    let mut outstanding = Outstanding::new(3_000, SLOW, 1_024);
    let mut given = 0;
    for us in 0..10_000 {
        let now = Nanos(us * 1_000);
        outstanding.poll(now, |_| Some(true));
        let admitted = outstanding.admits(std::iter::repeat_n(1_500, 1_024), now);
        for _ in 0..admitted {
            outstanding.add_sent(1_500, now);
        }
        given += admitted;
    }
    assert!((2 + 8 * BURST..=2 + 10 * BURST).contains(&given), "{given}");
}

#[test]
fn a_driver_that_cannot_tell_has_sent_everything() {
    let mut outstanding = Outstanding::new(3_000, SLOW, 64);
    outstanding.add_sent(1_500, Nanos(0));
    outstanding.add_sent(1_500, Nanos(0));
    outstanding.poll(Nanos(1), |_| None);
    assert_eq!(outstanding.bytes(), 0);
}

/// Transmit ring as DPDK's e1000, ixgbe, i40e, ice and iavf drive it: every 32nd descriptor requests a report, the one before a multiple of
/// 32, and a query is rounded up to the next multiple of 32. The device sends what it is given at once.
struct RoundingRing {
    done: Vec<bool>,
    tail: usize,
}

impl RoundingRing {
    const REPORTS: usize = 32;

    fn new(descriptors: usize) -> RoundingRing {
        RoundingRing {
            done: vec![true; descriptors],
            tail: 0,
        }
    }

    fn give(&mut self) {
        let reports = self.tail % Self::REPORTS == Self::REPORTS - 1;
        self.done[self.tail] = reports;
        self.tail = (self.tail + 1) % self.done.len();
    }

    fn holds(&self, frames: u16) -> Option<bool> {
        let requested = self.tail + self.done.len() - usize::from(frames);
        let rounded = requested.next_multiple_of(Self::REPORTS) % self.done.len();
        Some(!self.done[rounded])
    }
}

/// Earlier defect: the port sent one ring of frames and stopped for good.
#[test]
fn a_driver_whose_answers_are_rounded_sends_on_and_loses_its_bound() {
    for (descriptors, rate) in [(1_024u16, 1_000_000_000), (2_048, 100_000_000_000)] {
        let mut ring = RoundingRing::new(usize::from(descriptors));
        let mut outstanding = Outstanding::new(25_000, BitRate(rate), descriptors);
        let (mut given, mut lost) = (0, None);
        for us in 0..100_000 {
            let now = Nanos(us * 1_000);
            outstanding.poll(now, |frames| ring.holds(frames));
            let admitted = outstanding.admits(std::iter::repeat_n(1_524, BURST), now);
            for _ in 0..admitted {
                outstanding.add_sent(1_524, now);
                ring.give();
            }
            given += admitted;
            if outstanding.is_disproved() {
                lost.get_or_insert(us);
            }
        }
        let lost = lost.expect("three frames disproved the driver");
        // A burst a millisecond until the account is full, and three more.
        let most = u64::from(descriptors) / 64 + 5;
        assert!(lost < most * 1_000, "{lost} us");
        assert!(given > 3 * usize::from(descriptors), "{given}");
        let now = Nanos(100_000_000);
        assert_eq!(outstanding.credit(now), i64::MAX);
        assert_eq!(outstanding.bytes(), 0);
    }
}

/// A link that holds, as one that is paused: the driver answers truly that its ring is full, and takes nothing.
#[test]
fn a_ring_that_refuses_frames_for_ten_seconds_keeps_its_bound() {
    const RING: usize = 256;
    let mut outstanding = Outstanding::new(3_000, SLOW, 256);
    let (mut held, mut offered) = (0, 0);
    for us in 0..10_000_000 {
        let now = Nanos(us * 1_000);
        outstanding.poll(now, |frames| Some(held >= usize::from(frames)));
        let admitted = outstanding.admits(std::iter::repeat_n(1_500, BURST), now);
        let taken = admitted.min(RING - held);
        offered += admitted - taken;
        for _ in 0..taken {
            outstanding.add_sent(1_500, now);
        }
        held += taken;
    }
    assert_eq!(held, RING);
    assert!(offered > 0, "a full ring is offered frames");
    assert!(!outstanding.is_disproved());
    // The link resumes: the bound is there.
    let now = Nanos(10_000_000_000);
    outstanding.poll(now, |_| Some(false));
    assert_eq!(
        outstanding.admits(std::iter::repeat_n(1_500, BURST), now),
        2
    );
}

/// A link that resumes between the answer and the frame looks like a disproof once: a frame that is confirmed later takes it back.
#[test]
fn a_link_that_resumes_after_the_answer_disproves_nothing() {
    let mut outstanding = Outstanding::new(3_000, SLOW, 64);
    let mut now = Nanos(0);
    for _ in 0..10 {
        // Held until the account is full; then the link resumes, and all frames leave.
        while outstanding.frames < 64 {
            now += Nanos(10_000);
            outstanding.poll(now, |_| Some(true));
            for _ in 0..outstanding.admits(std::iter::repeat_n(1_500, 64), now) {
                outstanding.add_sent(1_500, now);
            }
        }
        now = now + PATIENCE + Nanos(1);
        outstanding.poll(now, |_| Some(true));
        assert_eq!(
            outstanding.admits(std::iter::repeat_n(1_500, 64), now),
            BURST
        );
        outstanding.add_sent(1_500, now);
        now += Nanos(1_000);
        outstanding.poll(now, |_| Some(false));
    }
    assert!(!outstanding.is_disproved());
}

/// Pause frames bypass the account: many in one millisecond are one disproof.
#[test]
fn frames_of_one_millisecond_disprove_once() {
    let mut outstanding = Outstanding::new(3_000, SLOW, 8);
    for _ in 0..8 {
        outstanding.add_sent(84, Nanos(0));
    }
    let mut at = |us: u64| {
        let now = Nanos(us * 1_000);
        outstanding.poll(now, |_| Some(true));
        outstanding.add_sent(84, now);
        outstanding.is_disproved()
    };
    assert!((1..1_000).all(|us| !at(us)));
    assert!(!at(1_500));
    assert!(!at(2_400));
    assert!(at(2_500));
}

proptest! {
    /// Any sequence of answers, many of them "full" for ever, from a device that takes some of what it is given, or nothing: within two
    /// milliseconds a frame is confirmed or a burst is offered, and the scheduler's budget agrees.
    #[test]
    fn no_sequence_of_answers_locks_the_ring(
        descriptors in 1u16..300,
        answers in prop::collection::vec(prop_oneof![
            4 => Just(Some(true)), 1 => Just(Some(false)), 1 => Just(None),
        ], 1..64),
        takes in prop::collection::vec(0usize..=BURST, 1..16),
        turns in prop::collection::vec(1_000u64..600_000, 1..16),
    ) {
        let mut outstanding = Outstanding::new(3_000, SLOW, descriptors);
        let requested = std::cell::Cell::new(0);
        let (mut now, mut offered) = (Nanos(0), Nanos(0));
        for turn in 0..400 {
            now += Nanos(turns[turn % turns.len()]);
            let before = outstanding.frames;
            outstanding.poll(now, |_| {
                requested.set(requested.get() + 1);
                answers[requested.get() % answers.len()]
            });
            let admitted = outstanding.admits(std::iter::repeat_n(1_500, BURST), now);
            let credit = outstanding.credit(now);
            prop_assert_eq!(admitted > 0, credit > 0 && (credit >= 1_500 || outstanding.frames == 0));
            if admitted > 0 || outstanding.frames < before {
                offered = now;
            }
            prop_assert!(now.since(offered) <= Nanos::from_millis(2), "nothing was offered for {:?}", now.since(offered));
            for _ in 0..admitted.min(takes[turn % takes.len()]) {
                outstanding.add_sent(1_500, now);
            }
            prop_assert!(outstanding.frames <= usize::from(descriptors));
        }
    }

    /// Drivers that answer truly, over links that hold and resume at any time between two turns, are never disproved.
    #[test]
    fn a_driver_that_answers_truly_keeps_its_bound(
        descriptors in 1u16..200,
        steps in prop::collection::vec((1_000u64..3_000_000, prop_oneof![3 => Just(0usize), 1 => 0usize..300]), 1..400),
    ) {
        let mut outstanding = Outstanding::new(3_000, SLOW, descriptors);
        let (mut held, mut now) = (0, Nanos(0));
        for (turn, leave) in steps {
            now += Nanos(turn);
            held -= leave.min(held);
            outstanding.poll(now, |frames| Some(held >= usize::from(frames)));
            prop_assert_eq!(outstanding.frames, held);
            let admitted = outstanding.admits(std::iter::repeat_n(1_500, BURST), now);
            for _ in 0..admitted.min(usize::from(descriptors) - held) {
                outstanding.add_sent(1_500, now);
                held += 1;
            }
            prop_assert!(!outstanding.is_disproved());
        }
    }
}
