use super::*;

use crate::key::Qpn;

/// As many as there is room for.
const ALL: u32 = 4_096;
const GAP: Nanos = Nanos::from_millis(10);

fn flow(last: u8) -> FlowKey {
    FlowKey::new([10, 0, 1, last].into(), [10, 0, 2, 2].into(), Qpn::new(7))
}

const fn measured(worked: bool, seen: u32, gap: Option<Nanos>) -> Measured {
    Measured {
        worked,
        expected: 1 << 15,
        seen,
        after: match gap {
            Some(gap) => Some((gap, 1)),
            None => None,
        },
    }
}

const WORKED: Measured = measured(true, 1 << 15, None);
const VAINLY: Measured = measured(false, 0, None);

/// A host of which this was measured.
fn after(all: &[Measured]) -> (HostResponses, HostResponseView, u32) {
    let (mut hosts, view) = (HostResponses::new(1), HostResponseView::default());
    let place = hosts.remember(&flow(3), u32::MAX, || false, &view);
    for (at, measured) in (0..).zip(all) {
        let now = Nanos(APART.0 * at);
        hosts.learn(&flow(3), place, measured, now, &view);
    }
    (hosts, view, place)
}

fn standing(all: &[Measured]) -> Standing {
    let (hosts, _, place) = after(all);
    hosts.standing(&flow(3), place)
}

#[test]
fn a_host_falls_back_after_three_in_vain_and_comes_back_by_two_effects() {
    assert_eq!(standing(&[]), Standing::Unknown);
    assert_eq!(standing(&[WORKED]), Standing::Answers);
    assert_eq!(standing(&[VAINLY; 2]), Standing::Doubted);
    assert_eq!(standing(&[VAINLY; 3]), Standing::FallenBack);
    let mut history = vec![VAINLY; 3];
    history.push(WORKED);
    assert_eq!(standing(&history), Standing::FallenBack);
    history.push(WORKED);
    assert_eq!(standing(&history), Standing::Answers);
}

/// Where three in ten are misread, as at a path that changes, a card that answers is never doubted; one that shows an effect in ten by
/// chance is.
#[test]
fn what_is_misread_now_and_then_doubts_nobody_who_answers() {
    for (worked, ever) in [(7, false), (1, true)] {
        let history: Vec<Measured> = (0..1_000)
            .map(|at| if at * 7 % 10 < worked { WORKED } else { VAINLY })
            .collect();
        let doubted = (1..history.len()).any(|len| {
            matches!(
                standing(&history[..len]),
                Standing::Doubted | Standing::FallenBack
            )
        });
        assert_eq!(doubted, ever);
    }
}

/// A CNP that is lost on its way counts as told and is measured in vain: a card that answers outweighs one in ten.
#[test]
fn lost_cnps_do_not_take_a_host_its_standing() {
    let (mut hosts, view, place) = after(&[WORKED; 3]);
    for turn in 3..10_000 {
        // One in ten, and now and then two one after the other.
        let is_lost = turn % 10 == 9 || turn % 90 == 10;
        let measured = if is_lost { &VAINLY } else { &WORKED };
        let now = Nanos(APART.0 * turn);
        hosts.learn(&flow(3), place, measured, now, &view);
        assert_eq!(hosts.standing(&flow(3), place), Standing::Answers, "{turn}");
    }
}

#[test]
fn flows_that_saw_the_same_count_once() {
    let (mut hosts, view, place) = after(&[VAINLY]);
    for _ in 0..8 {
        hosts.learn(&flow(3), place, &VAINLY, Nanos(APART.0 - 1), &view);
    }
    assert_eq!(hosts.standing(&flow(3), place), Standing::Doubted);
}

#[test]
fn what_was_measured_long_ago_is_outweighed() {
    let mut history = vec![WORKED; 1_000];
    history.extend([VAINLY; 9]);
    assert_eq!(standing(&history), Standing::FallenBack);
}

#[test]
fn how_deep_a_cut_is_is_learned_by_the_time_since_the_one_before() {
    let soon = Nanos::from_micros(50);
    let (hosts, view, place) = after(&[
        measured(true, 1 << 15, Some(GAP)),
        measured(true, 1 << 12, Some(soon)),
        measured(false, 0, Some(soon)),
    ]);
    assert_eq!(hosts.cut(&flow(3), place, GAP), Some(1 << 15));
    assert_eq!(hosts.cut(&flow(3), place, soon), Some(1 << 12));
    assert_eq!(hosts.cut(&flow(3), place, Nanos::from_millis(2)), None);
    let shown: Vec<_> = view.hosts().collect();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].address, flow(3).src());
    assert_eq!((shown[0].worked, shown[0].vain), (2, 1));
    assert_eq!(shown[0].cuts, [Some(62), None, None, None, Some(500)]);
}

/// Each of eight queue pairs at the line rate of their host sends an eighth of what its limiter allows: of each an eighth is seen, and all
/// of the host's link may be allowed.
#[test]
fn queue_pairs_of_a_host_have_each_others_bytes_as_headroom() {
    let (mut hosts, _, place) = after(&[]);
    let view = HostResponseView::default();
    let other = hosts.remember(&flow(4), u32::MAX, || false, &view);
    let now = Nanos(7);
    for _ in 0..8 {
        hosts.add(place, 1_000, now);
    }
    hosts.add(other, 500, now);
    assert_eq!(hosts.headroom(place, 1_000, now), 8 << 16);
    assert_eq!(hosts.headroom(place, 4_000, now), 2 << 16);
    assert_eq!(
        hosts.headroom(other, 500, now),
        1 << 16,
        "a host of one flow"
    );
    // What was added up in another call says nothing, nor does a host that is not known.
    assert_eq!(hosts.headroom(place, 1_000, Nanos(8)), 1 << 16);
    hosts.add(place, 3_000, Nanos(8));
    assert_eq!(hosts.headroom(place, 1_000, Nanos(8)), 3 << 16);
    assert_eq!(hosts.headroom(u32::MAX, 1_000, now), 1 << 16);
    // Of a flow that sends next to nothing no more is allowed for than can be.
    assert_eq!(hosts.headroom(place, 1, Nanos(8)), MOST_HEADROOM);
}

#[test]
fn another_host_in_its_place_is_not_it() {
    let (hosts, _, place) = after(&[VAINLY; 3]);
    assert_eq!(hosts.standing(&flow(4), place), Standing::Unknown);
    assert_eq!(hosts.cut(&flow(4), place, GAP), None);
}

#[test]
fn who_is_said_to_answer_is_shown_so_before_anything_was_measured() {
    let (mut hosts, view) = (HostResponses::new(1), HostResponseView::default());
    hosts.remember(&flow(3), u32::MAX, || true, &view);
    hosts.remember(&flow(4), u32::MAX, || false, &view);
    let shown: Vec<_> = view.hosts().collect();
    assert_eq!(shown.len(), 1);
    let HostResponse {
        address,
        standing,
        worked,
        ..
    } = shown[0];
    let said = (flow(3).src(), Standing::Answers, 0);
    assert_eq!((address, standing, worked), said);
}

#[test]
fn a_full_table_forgets_the_host_not_told_for_longest() {
    let (mut hosts, view, first) = after(&[VAINLY; 3]);
    let address = |n: u32| {
        let [_, _, high, low] = n.to_be_bytes();
        FlowKey::new([10, 1, high, low].into(), [10, 0, 2, 2].into(), Qpn::new(7))
    };
    for n in 0..ALL - 1 {
        hosts.remember(&address(n), u32::MAX, || false, &view);
    }
    assert_eq!(hosts.standing(&flow(3), first), Standing::FallenBack);
    hosts.remember(&flow(3), first, || false, &view);
    hosts.remember(&address(70_000), u32::MAX, || false, &view);
    assert_eq!(hosts.standing(&flow(3), first), Standing::FallenBack);
    for n in 0..ALL {
        hosts.remember(&address(n), u32::MAX, || false, &view);
    }
    assert_eq!(hosts.standing(&flow(3), first), Standing::Unknown);
    assert_eq!(view.hosts().count(), 0);
}
