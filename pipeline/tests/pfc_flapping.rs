//! Tests of pauses that flap: the peer resumes for moments, so that no pause lasts for `detect`, and lets next to nothing
//! through.

use crate::rig::{GIG, Rig, Setup, wire};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::pause::{StormAction, WatchdogConfig};
use npcc_pipeline::units::{BitRate, Nanos};

const LEN: usize = 4000;
const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const DETECT: u64 = 200 * MS;
const RESTORE: u64 = 200 * MS;
const POLL: u64 = 100 * MS;
/// Interval of the loop.
const STEP: u64 = 100 * US;
/// Priority that is paused.
const PAUSED: u8 = 3;

fn setup(share: u8, action: StormAction) -> Setup {
    let mut setup = Setup {
        rate: Some(BitRate(GIG)),
        ..Setup::default()
    };
    setup.pause.rate = BitRate(GIG);
    setup.pause.watchdog = Some(WatchdogConfig {
        detect: Nanos(DETECT),
        share,
        restore: Nanos(RESTORE),
        poll: Nanos(POLL),
        action,
    });
    setup
}

/// Peer that pauses for `off` and then resumes for `on`, again and again.
#[derive(Debug, Clone, Copy)]
struct Flaps {
    off: u64,
    on: u64,
}

impl Flaps {
    const fn new(off: u64, on: u64) -> Flaps {
        Flaps { off, on }
    }

    /// Returns a peer that pauses for `duty` percent of the time.
    fn of(off: u64, duty: u64) -> Flaps {
        Flaps::new(off, off * (100 - duty) / duty)
    }

    /// Runs port 1 from `from` for `time`; `each` is called at every step.
    fn run(self, rig: &mut Rig, from: u64, time: u64, mut each: impl FnMut(&mut Rig, u64)) -> u64 {
        let mut now = from;
        while now < from + time {
            let is_paused = (now - from) % (self.off + self.on) < self.off;
            rig.hear(1, 1 << PAUSED, if is_paused { 0xffff } else { 0 }, now);
            for port in 0..3 {
                rig.control(port, now);
            }
            each(rig, now);
            now += STEP;
        }
        now
    }
}

/// Returns the numbers of storms, of their ends, and of warnings.
fn found(rig: &Rig) -> [u64; 3] {
    let pause = &rig.counters(1).flow.priorities[usize::from(PAUSED)];
    [&pause.storms, &pause.storms_ended, &pause.storm_warnings].map(|count| count.get())
}

fn is_warned(rig: &Rig) -> bool {
    rig.counters(1).flow.storm_warning.get() == 1 << PAUSED
}

/// Keeps a few frames waiting, and adds another soon after they have gone: whenever the peer resumes, the queue runs empty.
fn trickle(rig: &mut Rig, now: u64) {
    rig.pull_all(1, now);
    if rig.depth(1, PAUSED) < 2 * wire(LEN) {
        rig.push(0, 1, PAUSED, LEN, 1, now);
    }
}

/// A flapping pause is detected within 500 ms, whatever the rhythm and the phase of the poll, though the queue is empty
/// between two pauses.
#[test]
fn a_pause_that_flaps_is_a_storm_by_half_a_second() {
    let rhythms = [
        Flaps::new(150 * MS, 300 * US),
        Flaps::new(190 * MS, MS),
        Flaps::new(50 * MS, 4 * MS),
        Flaps::new(19 * MS, MS),
        Flaps::new(5 * MS, 300 * US),
        Flaps::new(3 * MS, 200 * US),
    ];
    for flaps in rhythms {
        for phase in [0, 1, 37, 50, 99] {
            let mut rig = setup(90, StormAction::Drop).build();
            let start = Flaps::new(0, MS).run(&mut rig, 0, 1_000 * MS + phase * MS, |_, _| {});
            let mut took = None;
            let end = flaps.run(&mut rig, start, 5_000 * MS, |rig, now| {
                trickle(rig, now);
                if found(rig)[0] > 0 {
                    took.get_or_insert(now - start);
                }
            });
            let took = took.unwrap();
            assert!(took <= 500 * MS, "{flaps:?}, phase {phase}: {took}");
            assert!(took >= DETECT, "{flaps:?}, phase {phase}: {took}");
            // It continues as long as the peer flaps, and no longer.
            assert_eq!(found(&rig)[..2], [1, 0], "{flaps:?}, phase {phase}");
            Flaps::new(0, MS).run(&mut rig, end, 500 * MS, trickle);
            assert_eq!(found(&rig)[..2], [1, 1], "{flaps:?}, phase {phase}");
        }
    }
}

#[test]
fn a_pause_that_lets_a_fifth_through_is_a_warning_and_no_storm() {
    for flaps in [
        Flaps::new(8 * MS, 2 * MS),
        Flaps::new(40 * MS, 10 * MS),
        Flaps::new(100 * MS, 25 * MS),
    ] {
        let mut rig = setup(90, StormAction::Drop).build();
        let mut warned = None;
        let end = flaps.run(&mut rig, 0, 5_000 * MS, |rig, now| {
            trickle(rig, now);
            if is_warned(rig) {
                warned.get_or_insert(now);
            }
        });
        assert!(warned.unwrap() <= 500 * MS, "{flaps:?}: {warned:?}");
        assert_eq!(found(&rig), [0, 0, 1], "{flaps:?}");
        assert!(is_warned(&rig), "{flaps:?}");
        assert_eq!(rig.all_drops(), 0);
        Flaps::new(0, MS).run(&mut rig, end, 600 * MS, trickle);
        assert!(!is_warned(&rig), "{flaps:?}");
        assert_eq!(found(&rig), [0, 0, 1], "{flaps:?}");
    }
}

#[test]
fn a_pause_that_lets_most_through_is_neither() {
    let mut rig = setup(90, StormAction::Drop).build();
    Flaps::new(4 * MS, 6 * MS).run(&mut rig, 0, 5_000 * MS, trickle);
    assert_eq!(found(&rig), [0, 0, 0]);
}

/// A warning is below the storm: it ends when the storm begins, and returns only if pauses after the storm justify it.
#[test]
fn a_warning_gives_way_to_the_storm() {
    let mut rig = setup(90, StormAction::Forward).build();
    let now = Flaps::new(8 * MS, 4 * MS).run(&mut rig, 0, 2_000 * MS, trickle);
    assert!(is_warned(&rig));
    let now = Flaps::new(150 * MS, 300 * US).run(&mut rig, now, 2_000 * MS, |rig, now| {
        trickle(rig, now);
        assert!(found(rig)[0] == 0 || !is_warned(rig));
    });
    assert_eq!(found(&rig), [1, 0, 1]);
    Flaps::new(0, MS).run(&mut rig, now, 2_000 * MS, trickle);
    assert_eq!(found(&rig), [1, 1, 1]);
    assert!(!is_warned(&rig));
}

/// A flapping pause of a queue in which nothing waits, or only during a part of the pauses, is no storm.
#[test]
fn a_pause_that_flaps_behind_which_little_waits_is_no_storm() {
    let flaps = Flaps::new(9_800 * US, 200 * US);
    let mut rig = setup(90, StormAction::Drop).build();
    flaps.run(&mut rig, 0, 5_000 * MS, |_, _| {});
    assert_eq!(found(&rig), [0, 0, 0]);
    // A frame arrives when 6 of 10 ms are over.
    flaps.run(&mut rig, 6_000 * MS, 5_000 * MS, |rig, now| {
        rig.pull_all(1, now);
        if now % (10 * MS) == 6 * MS {
            rig.push(0, 1, PAUSED, LEN, 1, now);
        }
    });
    assert_eq!(found(&rig), [0, 0, 0]);
    assert_eq!(rig.all_drops(), 0);
}

#[test]
fn where_the_share_is_the_whole_only_a_pause_without_a_break_is_a_storm() {
    let mut rig = setup(100, StormAction::Drop).build();
    let flaps = Flaps::new(190 * MS, 300 * US);
    let now = flaps.run(&mut rig, 0, 5_000 * MS, trickle);
    assert_eq!(found(&rig), [0, 0, 1]);
    Flaps::new(MS, 0).run(&mut rig, now, 400 * MS, trickle);
    assert_eq!(found(&rig)[0], 1);
}

/// Runs a host on port 0 that sends a quarter of a link of 1 Gb/s to the flapping peer and as much to a bystander,
/// alternately, and obeys pauses: its backlog meanwhile follows at the link's rate. Returns the share of its own traffic that
/// the bystander gets, after a second.
fn bystander_keeps(flaps: Flaps, pool: u64) -> f64 {
    let mut config = setup(90, StormAction::Drop);
    config.pool = pool;
    let mut rig = config.build();
    let link = BitRate(GIG);
    let (mut owed, mut due, mut sent, mut got) = (0, 0, 0u64, 0u64);
    flaps.run(&mut rig, 0, 11_000 * MS, |rig, now| {
        owed += link.bytes_in(Nanos(STEP)) / 2;
        let last = rig.sent.iter().rev().find(|sent| sent.0 == 0);
        let is_paused = last.is_some_and(|sent| sent.2 & 1 << PAUSED != 0);
        due = if is_paused {
            0
        } else {
            due + link.bytes_in(Nanos(STEP))
        };
        while due.min(owed) >= wire(LEN) {
            (due, owed, sent) = (due - wire(LEN), owed - wire(LEN), sent + 1);
            rig.push(0, if sent % 2 == 0 { 1 } else { 2 }, PAUSED, LEN, 1, now);
        }
        rig.pull_all(1, now);
        let through = rig.pull_all(2, now) as u64 * wire(LEN);
        if now >= 1_000 * MS {
            got += through;
        }
    });
    assert_eq!(rig.lost(), 0);
    let storms = rig.dropped(DropReason::PfcStorm);
    assert_eq!(storms > 0, found(&rig)[0] > 0);
    got as f64 / (link.bytes_in(Nanos(10_000 * MS)) / 4) as f64
}

/// A bystander keeps the share that docs/lossless.md states: from 90 % on, all of it. One pool of each row, or with `NPCC_CELLS=all`, as in
/// `scripts/test-long histories`, all three.
#[test]
fn what_bystanders_keep_by_duty_and_pool() {
    let pools = [1 << 20, 4 << 20, 16 << 20];
    let rows = [
        (50, [1.00, 1.00, 1.00]),
        (70, [0.66, 0.90, 1.00]),
        (80, [0.46, 0.73, 0.80]),
        (85, [0.37, 0.60, 0.60]),
        (92, [1.00, 1.00, 1.00]),
        (99, [1.00, 1.00, 1.00]),
    ];
    let mut wrong = Vec::new();
    let all = std::env::var("NPCC_CELLS").is_ok_and(|cells| cells == "all");
    for (row, (duty, expected)) in rows.into_iter().enumerate() {
        for (column, (pool, expected)) in pools.into_iter().zip(expected).enumerate() {
            if !all && column != row % pools.len() {
                continue;
            }
            let keeps = bystander_keeps(Flaps::of(150 * MS, duty), pool);
            if f64::abs(keeps - expected) >= 0.02 {
                wrong.push(format!("{duty} %, {pool} B: {keeps:.2}, not {expected:.2}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
