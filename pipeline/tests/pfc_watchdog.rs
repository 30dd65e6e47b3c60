//! Tests of the PFC watchdog, after those of SONiC's pfcwd (sonic-mgmt tests/pfcwd and docs/testplan/pfcwd).

use crate::rig::{Rig, Setup};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::pause::{StormAction, WatchdogConfig};
use npcc_pipeline::units::Nanos;

const LEN: usize = 1000;
const MS: u64 = 1_000_000;
const DETECT: u64 = 200 * MS;
const RESTORE: u64 = 200 * MS;
const POLL: u64 = 100 * MS;
/// Interval of the loop, and of the peer's repeated pauses (65535 quanta are 3.36 ms at 10G).
const STEP: u64 = MS;

fn watchdog(action: StormAction) -> WatchdogConfig {
    WatchdogConfig {
        detect: Nanos(DETECT),
        share: 90,
        restore: Nanos(RESTORE),
        poll: Nanos(POLL),
        action,
    }
}

fn rig_with(action: StormAction) -> Rig {
    let mut setup = Setup::default();
    setup.pause.honour = 0xff;
    setup.pause.watchdog = Some(watchdog(action));
    setup.build()
}

/// Runs from `from` for `time` with a pause of `classes` refreshed every step; `each` is called at every step.
fn storm(
    rig: &mut Rig,
    classes: u8,
    from: u64,
    time: u64,
    mut each: impl FnMut(&mut Rig, u64),
) -> u64 {
    let end = from + time;
    let mut now = from;
    while now < end {
        if classes != 0 {
            rig.hear(1, classes, 0xffff, now);
        }
        rig.control(0, now);
        rig.control(1, now);
        each(rig, now);
        now += STEP;
    }
    now
}

fn storms(rig: &Rig) -> (u64, u64) {
    let all = &rig.counters(1).flow.priorities;
    (
        all.iter().map(|pause| pause.storms.get()).sum(),
        all.iter().map(|pause| pause.storms_ended.get()).sum(),
    )
}

/// Timer accuracy: detect < t < detect + poll, whatever the phase of the poll; the same for restore.
#[test]
fn a_storm_is_found_and_left_in_time() {
    for phase in [0, 1, 37, 50, 99] {
        let mut rig = rig_with(StormAction::Drop);
        let start = storm(&mut rig, 0, 0, phase * MS, |_, _| {});
        rig.push(0, 1, 3, LEN, 10, start);
        let mut found = None;
        let end = storm(&mut rig, 1 << 3, start, 400 * MS, |rig, now| {
            if found.is_none() && rig.counters(1).flow.storm.get() != 0 {
                found = Some(now);
            }
        });
        let took = found.unwrap() - start;
        assert!(
            (DETECT..=DETECT + POLL).contains(&took),
            "phase {phase}: {took}"
        );
        // The last pause expires 3.36 ms after it was received.
        let mut left = None;
        storm(&mut rig, 0, end, 400 * MS, |rig, now| {
            if left.is_none() && rig.counters(1).flow.storm.get() == 0 {
                left = Some(now);
            }
        });
        let took = left.unwrap() - end;
        assert!(
            (RESTORE..=RESTORE + POLL + 4 * MS).contains(&took),
            "phase {phase}: {took}"
        );
        assert_eq!(storms(&rig), (1, 1));
    }
}

/// A storm that the process before this one detected and counted continues from the first frame, and is over once the peer is
/// quiet for `restore`.
#[test]
fn a_storm_from_before_the_start_goes_on_at_once_and_ends_in_time() {
    for quiet_after in [0, 1_000 * MS] {
        let mut rig = rig_with(StormAction::Drop);
        // Forwarding begins long after the path was made.
        let (port, start) = (npcc_pipeline::units::PortId(1), 5_000 * MS);
        assert!(
            rig.path
                .resume_storm(port, crate::rig::prio(3), Nanos(4_000 * MS))
        );
        rig.push(0, 1, 3, LEN, 10, start);
        rig.push(0, 1, 5, LEN, 10, start);
        assert_eq!(rig.dropped(DropReason::PfcStorm), 10);
        assert_eq!(rig.pull_all(1, start), 10, "others are forwarded");
        let mut came_back = 0;
        let end = storm(&mut rig, 1 << 3, start, quiet_after, |rig, _| {
            assert_eq!(rig.counters(1).flow.storm.get(), 1 << 3);
        });
        let mut left = None;
        storm(&mut rig, 0, end, 400 * MS, |rig, now| {
            if rig.counters(1).flow.storm.get() == 0 {
                left.get_or_insert(now);
                rig.push(0, 1, 3, LEN, 1, now);
                came_back += rig.pull_all(1, now);
            }
        });
        let took = left.unwrap() - end;
        let heard = if quiet_after == 0 { 0 } else { 4 * MS };
        assert!(
            (RESTORE..=RESTORE + POLL + heard).contains(&took),
            "{quiet_after}: {took}"
        );
        assert!(came_back > 0);
        assert_eq!(storms(&rig), (0, 1), "it was counted when it was found");
        assert_eq!(
            rig.counters(1).flow.priorities[3].storm_at.get(),
            4_000 * MS
        );
    }
}

#[test]
fn a_storm_from_before_the_start_is_of_no_meaning_where_nobody_watches_for_it() {
    let (port, began) = (npcc_pipeline::units::PortId(1), Nanos(MS));
    let mut setup = Setup::default();
    setup.pause.watchdog = None;
    let mut none = setup.build();
    assert!(!none.path.resume_storm(port, crate::rig::prio(3), began));
    let mut setup = Setup::default();
    setup.pause.watchdog = Some(watchdog(StormAction::Drop));
    let mut lossy = setup.build();
    assert!(!lossy.path.resume_storm(port, crate::rig::prio(0), began));
    for rig in [&mut none, &mut lossy] {
        rig.push(0, 1, 0, LEN, 10, 0);
        rig.push(0, 1, 3, LEN, 10, 0);
        assert_eq!((rig.pull_all(1, 0), rig.all_drops()), (20, 0));
    }
}

/// A storm shorter than detect loses nothing.
#[test]
fn a_short_storm_loses_nothing() {
    let mut rig = rig_with(StormAction::Drop);
    rig.push(0, 1, 3, LEN, 100, 0);
    let end = storm(&mut rig, 1 << 3, 0, DETECT - 5 * MS, |rig, now| {
        assert!(rig.pull(1, now).is_empty())
    });
    storm(&mut rig, 0, end, 400 * MS, |_, _| {});
    assert_eq!(rig.pull_all(1, end + 10 * MS), 100);
    assert_eq!((storms(&rig), rig.all_drops()), ((0, 0), 0));
}

/// test_pfcwd_no_traffic: a pause behind which nothing waits is no storm.
#[test]
fn a_pause_without_traffic_is_no_storm() {
    let mut rig = rig_with(StormAction::Drop);
    storm(&mut rig, 1 << 3, 0, 1_000 * MS, |_, _| {});
    assert_eq!(storms(&rig), (0, 0));
}

/// Frames that come late in a long pause: time before the first of them waited is no part of `detect`.
#[test]
fn a_pause_without_traffic_counts_from_the_first_frame() {
    for phase in [0, 1, 50, 99] {
        let mut rig = rig_with(StormAction::Drop);
        let first = storm(&mut rig, 1 << 3, 0, 10 * DETECT + phase * MS, |_, _| {});
        rig.push(0, 1, 3, LEN, 10, first);
        let mut found = None;
        storm(&mut rig, 1 << 3, first, 2 * DETECT, |rig, now| {
            if found.is_none() && rig.counters(1).flow.storm.get() != 0 {
                found = Some(now);
            }
        });
        let took = found.unwrap() - first;
        assert!(
            (DETECT..=DETECT + POLL).contains(&took),
            "phase {phase}: {took}"
        );
    }
}

/// A group under a storm is dropped, not paused, for whatever reason a pause is due: its headroom is in use, or the worker falls
/// behind. A pause in force when the storm is detected ends.
#[test]
fn no_pause_is_sent_for_a_group_under_a_storm() {
    let mut setup = Setup::default();
    setup.pause.watchdog = Some(watchdog(StormAction::Drop));
    setup.pause.pressure = 1;
    let mut rig = setup.build();
    // Frames from the port that will be under a storm wait at another, in headroom.
    rig.push(1, 2, 3, LEN, 400, 0);
    assert!(rig.counters(1).groups[3].headroom.get() > 0);
    rig.push(0, 1, 3, LEN, 10, 0);
    let now = storm(&mut rig, 1 << 3, 0, DETECT - MS, |_, _| {});
    let asserted = |rig: &Rig| rig.counters(1).flow.asserted.get();
    assert_eq!((storms(&rig), asserted(&rig)), ((0, 0), 1 << 3));
    let now = storm(&mut rig, 1 << 3, now, POLL + 2 * MS, |_, _| {});
    assert_eq!(storms(&rig), (1, 0));
    assert!(rig.counters(1).groups[3].headroom.get() > 0);
    assert_eq!(asserted(&rig), 0, "the pause ended as the storm began");
    rig.sent.clear();
    // Full bursts: the worker falls behind, and the other lossless priority pauses.
    rig.push(1, 2, 4, LEN, 64, now);
    let paused = rig.sent.iter().filter(|sent| sent.0 == 1);
    let paused = paused.fold(0, |all, sent| all | sent.2);
    assert_eq!(paused, 1 << 4);
}

/// Drop action: frames queued, frames for the queue and frames received on the port with that priority are dropped, and no PFC
/// is sent for that group; the other priorities are not affected.
#[test]
fn the_drop_action_drops_both_ways_and_sends_no_pfc() {
    let mut rig = rig_with(StormAction::Drop);
    rig.push(0, 1, 3, LEN, 10, 0);
    let now = storm(&mut rig, 1 << 3, 0, 350 * MS, |_, _| {});
    assert_eq!(rig.dropped(DropReason::PfcStorm), 10, "queued");
    assert_eq!(rig.held(0, 3), (0, 0), "their room is given back");
    rig.push(0, 1, 3, LEN, 5, now);
    assert_eq!(rig.dropped(DropReason::PfcStorm), 15, "new");
    let pause = &rig.counters(1).flow.priorities[3];
    assert_eq!(pause.storm_tx_dropped.get(), 15);
    rig.push(1, 2, 3, LEN, 2_000, now);
    assert_eq!(
        rig.counters(1).flow.priorities[3].storm_rx_dropped.get(),
        2_000,
        "same group, ingress"
    );
    assert!(rig.sent.iter().all(|sent| sent.0 != 1), "no PFC of ours");
    rig.push(0, 1, 4, LEN, 3, now);
    assert_eq!(rig.pull_all(1, now), 3);
    assert_eq!(
        rig.lost(),
        0,
        "a storm's drops are wanted, not lossless loss"
    );
    rig.assert_conserved();
}

/// Forward action: PFC is ignored while the storm lasts.
#[test]
fn the_forward_action_sends_in_spite_of_the_pause() {
    let mut rig = rig_with(StormAction::Forward);
    rig.push(0, 1, 3, LEN, 10, 0);
    let now = storm(&mut rig, 1 << 3, 0, 350 * MS, |_, _| {});
    assert_eq!(rig.pull_all(1, now), 10);
    assert_eq!(rig.all_drops(), 0);
    let now = storm(&mut rig, 0, now, 400 * MS, |_, _| {});
    rig.hear(1, 1 << 3, 0xffff, now);
    rig.push(0, 1, 3, LEN, 1, now);
    assert!(rig.pull(1, now).is_empty(), "obeyed again after the storm");
}

/// Alert action: a storm is detected and reported, nothing else changes.
#[test]
fn the_alert_action_only_reports() {
    let mut rig = rig_with(StormAction::Alert);
    rig.push(0, 1, 3, LEN, 10, 0);
    let now = storm(&mut rig, 1 << 3, 0, 350 * MS, |_, _| {});
    assert_eq!((storms(&rig), rig.all_drops()), ((1, 0), 0));
    assert!(rig.pull(1, now - 1).is_empty());
}

/// With all priorities under a storm there is no flapping. sonic-buildimage #29203: SONiC went in and out of it 170 times in
/// 20 minutes.
#[test]
fn all_priorities_under_a_storm_do_not_flap() {
    for action in [StormAction::Drop, StormAction::Forward] {
        let mut rig = rig_with(action);
        for priority in 0..8 {
            rig.push(0, 1, priority, LEN, 2, 0);
        }
        let end = storm(&mut rig, 0xff, 0, 20_000 * MS, |rig, now| {
            if now % (50 * MS) == 0 {
                rig.push(0, 1, (now / (50 * MS) % 8) as u8, LEN, 1, now);
            }
            rig.pull(1, now);
        });
        assert_eq!(storms(&rig), (8, 0), "{action:?}");
        storm(&mut rig, 0, end, 400 * MS, |_, _| {});
        assert_eq!(storms(&rig), (8, 8), "{action:?}");
    }
}
