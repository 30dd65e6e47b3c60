use super::*;

use proptest::prelude::*;

use crate::key::Qpn;

/// Number of hosts the table has room for.
const ALL: u32 = 4_096;

fn flow(last: u8) -> FlowKey {
    FlowKey::new([10, 0, 1, last].into(), [10, 0, 2, 2].into(), Qpn::new(7))
}

fn worked() -> Outcome {
    Outcome::of_half(true)
}

fn vainly() -> Outcome {
    Outcome::of_half(false)
}

/// A host after these measurements, `separate` from each other.
fn after_each(all: &[Outcome], separate: Nanos) -> (HostResponses, HostResponseView, u32) {
    let (mut hosts, view) = (HostResponses::new(1), HostResponseView::default());
    let place = hosts.remember(&flow(3), u32::MAX, || 1, &view);
    for (at, outcome) in (0..).zip(all) {
        hosts.learn(&flow(3), place, outcome, Nanos(separate.0 * at), &view);
    }
    (hosts, view, place)
}

fn after(all: &[Outcome]) -> (HostResponses, HostResponseView, u32) {
    after_each(all, SPACING)
}

fn odds(all: &[Outcome], separate: Nanos) -> MilliNats {
    let (hosts, _, place) = after_each(all, separate);
    hosts.known(&flow(3), place).unwrap().odds()
}

fn responsiveness(all: &[Outcome]) -> Responsiveness {
    let (hosts, _, place) = after(all);
    hosts.responsiveness(&flow(3), place)
}

/// Misses that take a host to the floor, and keep it there for longer than [`SURE`].
fn ineffective() -> Vec<Outcome> {
    vec![vainly(); 80]
}

/// Law: no host is doubted before its odds were at the floor for [`SURE`], and one response ends that.
#[test]
fn a_host_is_doubted_once_it_was_at_the_floor_for_long_and_responses_bring_it_back() {
    assert_eq!(responsiveness(&[]), Responsiveness::Unknown);
    assert_eq!(responsiveness(&[worked()]), Responsiveness::Responsive);
    assert_eq!(responsiveness(&[vainly()]), Responsiveness::Unknown);
    let mut history = ineffective();
    assert_eq!(responsiveness(&history[..50]), Responsiveness::Unknown);
    assert_eq!(responsiveness(&history), Responsiveness::Unresponsive);
    history.extend([worked(); 2]);
    assert_eq!(responsiveness(&history), Responsiveness::Unknown);
    history.extend([worked(); 30]);
    assert_eq!(responsiveness(&history), Responsiveness::Responsive);
    // It takes as long the second time.
    history.extend([vainly(); 50]);
    assert_eq!(responsiveness(&history), Responsiveness::Unknown);
    // A host that has shown a lot is not doubted for one miss.
    let mut known = vec![worked(); 9];
    known.push(vainly());
    assert_eq!(responsiveness(&known), Responsiveness::Responsive);
}

/// Law: strikes on flows of a doubted host stay CE, unless it slowed down after a CNP at least once.
#[test]
fn a_doubted_host_that_answered_once_is_owed_strikes() {
    let never = ineffective();
    let once = [vec![worked()], ineffective()].concat();
    for (history, owed) in [(never, false), (once, true)] {
        assert_eq!(responsiveness(&history), Responsiveness::Unresponsive);
        let (hosts, _, place) = after(&history);
        assert_eq!(hosts.may_be_owed(&flow(3), place), owed);
    }
}

#[test]
fn flows_that_saw_the_same_count_once() {
    let once = odds(&[vainly()], SPACING);
    assert_eq!(odds(&[vainly(); 9], Nanos(SPACING.0 / 9)), once);
    assert!(odds(&[worked(); 2], SPACING) > odds(&[worked(); 2], Nanos(1)));
}

#[test]
fn odds_drift_back_to_the_prior_within_seconds() {
    let (mut hosts, view, place) = after(&[vainly()]);
    let odds_at = |hosts: &mut HostResponses, millis| {
        hosts.add(place, 1, Nanos::from_millis(millis));
        hosts.known(&flow(3), place).unwrap().odds()
    };
    let before = odds_at(&mut hosts, 0);
    for tick in 1..1_000 {
        odds_at(&mut hosts, tick);
    }
    let third = odds_at(&mut hosts, 1_000);
    assert!(
        (before * 4 / 10..=before * 3 / 10).contains(&third),
        "{before} to {third}"
    );
    assert_eq!(odds_at(&mut hosts, 3_000), 0);
    hosts.learn(&flow(3), place, &vainly(), Nanos::from_millis(3_000), &view);
    assert!(odds_at(&mut hosts, 3_000) < 0);
}

/// Law: kinds that are refuted do not speak against the one that fits.
#[test]
fn the_kind_that_fits_best_counts() {
    let published = [Outcome::of_published(); 4];
    let (hosts, _, place) = after(&published);
    assert_eq!(hosts.kind(&flow(3), place), 2);
    assert_eq!(
        hosts.responsiveness(&flow(3), place),
        Responsiveness::Responsive
    );
    assert_eq!(hosts.kind(&flow(4), place), 0, "another host");
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let share = || 0.02f64..1.4;
    let measured = (share(), [share(), share(), share()])
        .prop_map(|(seen, expected)| Outcome::of(seen, expected));
    let reason = proptest::sample::select(&Unmeasured::ALL[..]).prop_map(Outcome::Unmeasured);
    prop_oneof![3 => measured, 1 => reason]
}

proptest! {
    /// Law: within the time in which samples count once, their order does not matter.
    #[test]
    fn the_order_within_a_window_does_not_matter(
        (before, mut window, other) in (proptest::collection::vec(outcome(), 0..8), proptest::collection::vec(outcome(), 1..12))
            .prop_flat_map(|(before, window)| (Just(before), Just(window.clone()), Just(window).prop_shuffle())),
    ) {
        let of = |window: &[Outcome]| {
            let (mut hosts, view, place) = after(&before);
            for (at, outcome) in (0..).zip(window) {
                let now = Nanos(SPACING.0 * 20 + at);
                hosts.learn(&flow(3), place, outcome, now, &view);
            }
            *hosts.known(&flow(3), place).unwrap()
        };
        window.retain(|outcome| matches!(outcome, Outcome::Measured(_)));
        let other: Vec<Outcome> = other.into_iter().filter(|outcome| matches!(outcome, Outcome::Measured(_))).collect();
        prop_assert_eq!(of(&window).kinds(), of(&other).kinds());
    }

    /// Law: odds are bounded whatever is measured, failed measurements move nothing, and no other host's odds move.
    #[test]
    fn odds_are_bounded_and_a_hosts_own(all in proptest::collection::vec((outcome(), 0u64..400_000), 0..200)) {
        let (mut hosts, view, place) = after(&[]);
        let other = hosts.remember(&flow(4), u32::MAX, || 1, &view);
        let mut now = Nanos::ZERO;
        for (outcome, passed) in all {
            now += Nanos(passed);
            let before = hosts.known(&flow(3), place).unwrap().kinds();
            hosts.learn(&flow(3), place, &outcome, now, &view);
            let state = hosts.known(&flow(3), place).unwrap();
            prop_assert!(state.odds().abs() <= MOST);
            if matches!(outcome, Outcome::Unmeasured(_)) {
                prop_assert_eq!(state.kinds(), before);
            }
            prop_assert_eq!(hosts.known(&flow(4), other).unwrap().odds(), 0);
        }
    }
}

#[test]
fn what_is_shown_of_a_host() {
    let late = Outcome::Unmeasured(Unmeasured::Late);
    let (hosts, view, place) = after(&[worked(), vainly(), late, late, worked()]);
    let shown: Vec<_> = view.hosts().collect();
    assert_eq!(shown.len(), 1);
    let host = shown[0];
    assert_eq!(host.address, flow(3).src());
    assert_eq!((host.worked, host.ineffective), (2, 1));
    assert_eq!(host.unmeasured[Unmeasured::Late.index()], 2);
    assert_eq!(host.odds, hosts.known(&flow(3), place).unwrap().odds());
    assert_eq!(host.responsiveness, Responsiveness::Unknown);
}

/// Each of eight queue pairs at the line rate of their host sends an eighth of the rate that its limiter allows: an eighth is seen of each, and all
/// of the host's link may be allowed.
#[test]
fn queue_pairs_of_a_host_count_in_each_others_hidden_ratio() {
    let (mut hosts, _, place) = after(&[]);
    let view = HostResponseView::default();
    let other = hosts.remember(&flow(4), u32::MAX, || 1, &view);
    let now = Nanos(7);
    for _ in 0..8 {
        hosts.add(place, 1_000, now);
    }
    hosts.add(other, 500, now);
    assert_eq!(hosts.hidden_ratio(place, 1_000, now), 8 << 16);
    assert_eq!(hosts.hidden_ratio(place, 4_000, now), 2 << 16);
    assert_eq!(
        hosts.hidden_ratio(other, 500, now),
        1 << 16,
        "a host of one flow"
    );
    // A sum of another call says nothing, nor does a host that is not known.
    assert_eq!(hosts.hidden_ratio(place, 1_000, Nanos(8)), 1 << 16);
    hosts.add(place, 3_000, Nanos(8));
    assert_eq!(hosts.hidden_ratio(place, 1_000, Nanos(8)), 3 << 16);
    assert_eq!(hosts.hidden_ratio(u32::MAX, 1_000, now), 1 << 16);
    // For a flow that sends next to nothing, no more is allowed for than is possible.
    assert_eq!(hosts.hidden_ratio(place, 1, Nanos(8)), MAX_HIDDEN_RATIO);
}

#[test]
fn another_host_in_its_place_is_not_it() {
    let (hosts, _, place) = after(&ineffective());
    assert_eq!(
        hosts.responsiveness(&flow(4), place),
        Responsiveness::Unknown
    );
}

#[test]
fn a_host_declared_responsive_is_shown_so_before_any_measurement() {
    let (mut hosts, view) = (HostResponses::new(1), HostResponseView::default());
    let place = hosts.remember(&flow(3), u32::MAX, || ANSWERING, &view);
    hosts.remember(&flow(4), u32::MAX, || 1, &view);
    let shown: Vec<_> = view.hosts().collect();
    assert_eq!(shown.len(), 1);
    let host = shown[0];
    let said = (flow(3).src(), Responsiveness::Responsive, 0);
    assert_eq!((host.address, host.responsiveness, host.worked), said);
    // One miss does not take that away.
    hosts.learn(&flow(3), place, &vainly(), Nanos(1), &view);
    assert_eq!(
        hosts.responsiveness(&flow(3), place),
        Responsiveness::Responsive
    );
}

#[test]
fn a_full_table_forgets_the_host_not_signalled_for_longest() {
    let (mut hosts, view, first) = after(&ineffective());
    let address = |n: u32| {
        let [_, _, high, low] = n.to_be_bytes();
        FlowKey::new([10, 1, high, low].into(), [10, 0, 2, 2].into(), Qpn::new(7))
    };
    for n in 0..ALL - 1 {
        hosts.remember(&address(n), u32::MAX, || 1, &view);
    }
    assert_eq!(
        hosts.responsiveness(&flow(3), first),
        Responsiveness::Unresponsive
    );
    hosts.remember(&flow(3), first, || 1, &view);
    hosts.remember(&address(70_000), u32::MAX, || 1, &view);
    assert_eq!(
        hosts.responsiveness(&flow(3), first),
        Responsiveness::Unresponsive
    );
    for n in 0..ALL {
        hosts.remember(&address(n), u32::MAX, || 1, &view);
    }
    assert_eq!(
        hosts.responsiveness(&flow(3), first),
        Responsiveness::Unknown
    );
    assert_eq!(view.hosts().count(), 0);
}
