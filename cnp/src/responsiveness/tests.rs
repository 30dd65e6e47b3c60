use super::trial::{SPACING, Step, Trial};
use super::*;
use proptest::prelude::*;

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Host that was signalled until `now`, every 50 ms.
fn signalled(state: &mut HostState, from: u64, until: u64) -> Option<u64> {
    (from..until)
        .step_by(50)
        .find(|at| state.note_signalled(Times::DEFAULT, ms(*at)))
}

/// Law: the first trial comes after 500 ms of CNPs no more than 100 ms apart; none at a host that the operator lists.
#[test]
fn a_host_is_put_to_a_trial_once_it_was_signalled_for_half_a_second() {
    assert_eq!(signalled(&mut HostState::default(), 0, 2_000), Some(500));
    let mut paused = HostState::default();
    assert_eq!(signalled(&mut paused, 0, 450), None);
    assert_eq!(signalled(&mut paused, 550, 2_000), Some(1_050));
    let mut listed = HostState {
        is_listed: true,
        ..HostState::default()
    };
    assert_eq!(signalled(&mut listed, 0, 2_000), None);
    assert_eq!(listed.responsiveness(), Responsiveness::Responsive);
}

/// Law: five failures in a row are a verdict, and one passed trial takes it back; a trial without a result moves nothing.
#[test]
fn five_failures_in_a_row_are_a_verdict_and_one_passed_trial_ends_it() {
    let mut state = HostState::default();
    let unmeasured = Outcome::Unmeasured(Unmeasured::Paused);
    for outcome in [Outcome::Failed, unmeasured, Outcome::Failed, unmeasured] {
        state.learn(outcome, Times::DEFAULT, ms(1));
    }
    state.learn(Outcome::Failed, Times::DEFAULT, ms(2));
    state.learn(Outcome::Failed, Times::DEFAULT, ms(3));
    assert_eq!(state.responsiveness(), Responsiveness::Unknown);
    state.learn(Outcome::Failed, Times::DEFAULT, ms(4));
    assert_eq!(state.responsiveness(), Responsiveness::Unresponsive);
    state.learn(unmeasured, Times::DEFAULT, ms(5));
    assert_eq!(state.responsiveness(), Responsiveness::Unresponsive);
    assert_eq!(state.failing_since, ms(1));
    state.learn(Outcome::Passed, Times::DEFAULT, ms(6));
    assert_eq!(state.responsiveness(), Responsiveness::Responsive);
    state.learn(Outcome::Failed, Times::DEFAULT, ms(7));
    assert_eq!(state.responsiveness(), Responsiveness::Unknown);
    assert_eq!((state.passed, state.ineffective), (1, 6));
    assert_eq!(state.unmeasured.iter().sum::<u32>(), 3);
}

/// Law: trust doubles from ten seconds to an hour; ten seconds after the first failure trials become rare.
#[test]
fn trials_become_rare_where_they_tell_nothing_new() {
    let mut state = HostState::default();
    let mut pauses = Vec::new();
    for _ in 0..11 {
        let now = state.next;
        state.learn(Outcome::Passed, Times::DEFAULT, now);
        pauses.push(state.next.since(now).0 / 1_000_000_000);
    }
    assert_eq!(
        pauses,
        [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600]
    );
    let began = state.next;
    state.learn(Outcome::Failed, Times::DEFAULT, began);
    assert_eq!(state.next.since(began), AGAIN);
    for _ in 0..3 {
        state.learn(Outcome::Failed, Times::DEFAULT, began);
    }
    state.learn(Outcome::Failed, Times::DEFAULT, began + CERTAIN);
    assert_eq!(state.next.since(began + CERTAIN), TRUST.0);
}

/// Card with NVIDIA's defaults, or the published one, of a host whose application sends at `rate`.
struct Card {
    published: bool,
    /// Limit as a share of the line, its target, alpha, and the times of the latest CNP and increase.
    limit: f64,
    target: f64,
    alpha: f64,
    cut_at: f64,
    increased: u32,
}

impl Card {
    fn new(published: bool) -> Card {
        Card {
            published,
            limit: 1.0,
            target: 1.0,
            alpha: if published { 1.0 } else { 5.0 / 1_024.0 },
            cut_at: 0.0,
            increased: 0,
        }
    }

    /// Advances to a time in us.
    fn advance(&mut self, us: f64) {
        let (timer, rise) = if self.published {
            (55.0, 1.0 / 2_048.0)
        } else {
            (300.0, 1.0 / 1_024.0)
        };
        while us - self.cut_at >= timer * f64::from(self.increased + 1) {
            self.increased += 1;
            if self.increased > if self.published { 5 } else { 1 } {
                self.target = (self.target + rise).min(1.0);
            }
            self.limit = f64::midpoint(self.limit, self.target);
        }
    }

    fn signal(&mut self, us: f64) {
        let passed = us - self.cut_at;
        self.alpha *= match self.published {
            true => (255.0f64 / 256.0).powf((passed / 55.0).floor()),
            false => (1_019.0f64 / 1_024.0).powf(passed),
        };
        let gain = if self.published {
            1.0 / 256.0
        } else {
            5.0 / 1_024.0
        };
        self.alpha += gain * (1.0 - self.alpha);
        if self.increased > 0 || self.published {
            self.target = self.limit;
        }
        self.limit = (self.limit * (1.0 - self.alpha / 2.0)).max(0.001);
        (self.cut_at, self.increased) = (us, 0);
    }
}

/// Outcome of a trial of a flow that uses `share` of its card's rate, at `rate` in bytes a millisecond, which loses CNPs by `lost` of 256 and has them
/// after `delay` us; of a deaf one if there is no card.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "bytes and times of less than a second"
)]
fn trial(
    card: Option<bool>,
    (share, rate): (f64, f64),
    lost: u8,
    delay: u64,
    seed: u64,
) -> (Outcome, u64) {
    let mut card = card.map(Card::new);
    let mut trial = Trial::new(0, Nanos(0), 0);
    let (mut sent, mut last, mut random) = (0.0, Nanos(0), seed | 1);
    let mut on_their_way = std::collections::VecDeque::new();
    for tick in 1..20_000u64 {
        let now = Nanos::from_micros(tick * 20);
        let us = (tick * 20) as f64;
        while on_their_way.front().is_some_and(|at| *at <= tick * 20) {
            on_their_way.pop_front();
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if let Some(card) = &mut card
                && random.to_be_bytes()[0] >= lost
            {
                card.advance(us);
                card.signal(us);
            }
        }
        let limit = card.as_mut().map_or(1.0, |card| {
            card.advance(us);
            (card.limit / share).min(1.0)
        });
        sent += rate * limit / 50.0;
        match trial.step(
            now,
            sent as u64 / 1_082 * 1_082,
            Nanos::from_micros(delay),
            Nanos::ZERO,
        ) {
            Step::Signal if now.since(last) >= SPACING => {
                trial.cnps += 1;
                last = now;
                on_their_way.push_back(tick * 20 + delay);
            }
            Step::End(outcome) => return (outcome, trial.cnps),
            _ => {}
        }
    }
    panic!("no end");
}

/// Law: a sender that ignores CNPs fails at any rate from 2 Mb/s on; one of 15 Mb/s pays for a trial in 1.4 s, at 2 KiB a CNP.
#[test]
fn a_deaf_sender_fails_its_trial_at_any_rate_from_two_megabits_on() {
    for rate in [250.0, 1_875.0, 125_000.0, 12_500_000.0] {
        let (outcome, cnps) = trial(None, (1.0, rate), 0, 20, 1);
        assert_eq!(outcome, Outcome::Failed, "{rate}");
        assert!(
            cnps <= if rate < 1_000.0 { 4_300 } else { 1_251 },
            "{rate}: {cnps}"
        );
    }
    assert_eq!(
        trial(None, (1.0, 100.0), 0, 20, 1).0,
        Outcome::Unmeasured(Unmeasured::TooSlow)
    );
}

proptest! {
    /// Law: a card that obeys passes, with half of its CNPs lost, a tenth of its rate in use, and a feedback delay of up to 5 ms.
    #[test]
    fn an_obedient_card_passes(
        published: bool,
        share in 0.1f64..1.0,
        rate in prop::sample::select(vec![1_875.0, 25_000.0, 1_250_000.0]),
        lost in 0u8..=128,
        delay in 10u64..5_000,
        seed: u64,
    ) {
        let (outcome, _) = trial(Some(published), (share, rate), lost, delay, seed);
        prop_assert_eq!(outcome, Outcome::Passed);
    }
}

#[test]
fn a_pause_and_a_late_control_core_spoil_a_trial() {
    let step = |trial: &mut Trial, us: u64, bytes, paused| {
        trial.step(
            Nanos::from_micros(us),
            bytes,
            Nanos::ZERO,
            Nanos::from_micros(paused),
        )
    };
    let driven = || {
        let mut trial = Trial::new(0, Nanos(0), 0);
        assert_eq!(step(&mut trial, 10_000, 20_000, 0), Step::Wait);
        trial
    };
    assert_eq!(
        step(&mut driven(), 10_251, 20_000, 0),
        Step::End(Outcome::Unmeasured(Unmeasured::Late))
    );
    for (paused, sent, outcome) in [
        (9_999, 100, Outcome::Passed),
        (12_000, 100, Outcome::Unmeasured(Unmeasured::Paused)),
        (9_999, 9_999, Outcome::Passed),
        (9_999, 10_001, Outcome::Unmeasured(Unmeasured::Weak)),
        (9_999, 14_999, Outcome::Unmeasured(Unmeasured::Weak)),
        (12_000, 15_001, Outcome::Failed),
    ] {
        let mut trial = driven();
        let mut last = Step::Wait;
        for us in (10_020..=40_000).step_by(20) {
            let bytes = 20_000 + if us > 25_100 { sent } else { 0 };
            last = step(&mut trial, us, bytes, paused);
            if matches!(last, Step::End(_)) {
                break;
            }
        }
        assert_eq!(last, Step::End(outcome), "{paused} {sent}");
    }
}

/// Law: a host is moved once all its trials failed for ten seconds, and back after a minute, two, and so on; it then has to fail for ten seconds
/// again. A change of the queue moves all back.
#[test]
fn a_host_that_fails_for_ten_seconds_is_moved_for_a_minute_and_then_for_two() {
    let flow = FlowKey::new(
        "10.0.1.3".parse().unwrap(),
        "10.0.2.2".parse().unwrap(),
        npcc_roce::key::Qpn::new(7),
    );
    let (mut table, view) = (HostVerdicts::new(1), HostVerdictView::default());
    let moved = MovedHosts::new(npcc_pipeline::units::Priority::new(5));
    let place = table.remember(&flow, u32::MAX, || false, &view);
    let class = |view: &HostVerdictView| view.hosts().next().unwrap().responsiveness;
    let mut now = ms(0);
    for (minutes, changes) in [(1, 2), (2, 4), (4, 6)] {
        let began = now;
        while moved.hosts().is_empty() {
            now += ms(200);
            table.learn(&flow, Outcome::Failed, now, &view);
            table.move_certain(&flow, &moved, now, &view);
        }
        let passed = now.since(began);
        assert!((ms(10_000)..ms(10_600)).contains(&passed), "{passed:?}");
        assert_eq!(class(&view), Responsiveness::Moved);
        assert_eq!(view.changes(), changes);
        now += ms(60_000 * minutes - 1);
        table.move_back(&moved, now, &view);
        assert_eq!(moved.hosts().len(), 1);
        now += ms(1);
        table.move_back(&moved, now, &view);
        assert!(moved.hosts().is_empty());
        assert_eq!(class(&view), Responsiveness::Unresponsive);
        assert!(table.responsiveness(&flow, place).is_unresponsive());
    }
    now += ms(10_000);
    table.learn(&flow, Outcome::Failed, now, &view);
    table.move_certain(&flow, &moved, now, &view);
    assert_eq!(class(&view), Responsiveness::Moved);
    table.move_all_back(&moved, now, &view);
    assert!(moved.hosts().is_empty());
    assert_eq!(class(&view), Responsiveness::Unresponsive);
}
