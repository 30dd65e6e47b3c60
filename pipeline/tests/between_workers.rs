//! Interaction between workers: sharing of the pool, pauses, and what a full ring and a stop leave. The laws for any order of
//! iterations are in `several_workers.rs`.

use crate::rig::several::{Several, assignment};
use crate::rig::{LOSSLESS, Setup, mac, prio, wire};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::pause::PauseConfig;
use npcc_pipeline::units::{BURST, PortId};
use npcc_pipeline::wire::mac_control;

const LEN: usize = 1000;
const MARGIN: usize = 2;

/// Returns the number of frames after which `workers` workers' ports, filled a burst each in turn, have their first pause.
fn first_xoff(owners: &[u8]) -> usize {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, assignment(owners, &[1; 4], 1024));
    let mut frames = 0;
    while several.sent.is_empty() {
        // All frames leave by port 3, whichever worker owns it.
        let worker = several.owner(0);
        several.refresh(worker);
        frames += several.receive(worker, (0, 3, 3), LEN, 1);
        several.turn(worker);
        let owner = several.owner(3);
        several.refresh(owner);
        several.turn(owner);
    }
    assert_eq!(several.sent, [(0, 1 << 3, 0)]);
    assert_eq!(several.lost(), 0);
    frames
}

/// PFCtest of SONiC's `sai_qos_tests.py` over two workers: the same XOFF point, margin two packets plus a burst.
#[test]
fn xoff_point_does_not_depend_on_who_owns_the_queue() {
    let headroom = 2 * 4 * Setup::default().group.headroom;
    let point =
        usize::try_from(((Setup::default().pool - headroom) / 2).div_ceil(wire(LEN))).unwrap();
    for owners in [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0]] {
        let frames = first_xoff(&owners);
        let workers = usize::from(*owners.iter().max().unwrap()) + 1;
        assert!(
            frames.abs_diff(point) <= MARGIN + BURST * (workers - 1),
            "{frames} of {point}"
        );
    }
}

/// Two ports of two workers fill one pool: each sees the other's part, and neither overshoots by more than a burst.
#[test]
fn workers_share_one_pool() {
    let mut setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    // Frames each worker may have in hand when the pause is requested.
    setup.group.headroom = 2 * BURST as u64 * wire(LEN);
    let shared = setup.pool - 2 * 4 * setup.group.headroom;
    let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[1; 4], 1024));
    let mut frames = 0u64;
    while several.sent.len() < 2 {
        for from in [0u8, 1] {
            let worker = several.owner(from);
            several.refresh(worker);
            frames += several.receive(worker, (from, 2, 3), LEN, BURST) as u64;
            several.turn(worker);
        }
    }
    // Two groups at alpha 1: each holds as much as is left free, a third of the pool.
    let wanted = 2 * shared / 3;
    let slack = (MARGIN as u64 + 2 * BURST as u64) * wire(LEN);
    assert!(
        (frames * wire(LEN)).abs_diff(wanted) <= slack,
        "{frames} frames for {wanted} bytes"
    );
    assert_eq!(several.lost(), 0);
}

/// A ring that is not emptied: lossless frames wait and the queue is not polled, lossy ones are dropped by name.
#[test]
fn a_full_ring_holds_lossless_and_drops_lossy() {
    let pause = PauseConfig {
        pressure: 4,
        ..Setup::default().pause
    };
    let setup = Setup {
        ports: 4,
        pause,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[1; 4], BURST));
    for what in ["a run", "a run that waits"] {
        assert_eq!(several.receive(0, (0, 1, 3), LEN, BURST), BURST, "{what}");
    }
    for _ in 0..3 {
        several.refresh(0);
        assert_eq!(several.receive(0, (0, 1, 3), LEN, BURST), 0, "not polled");
        several.turn(0);
    }
    assert_eq!(
        several.sent,
        [(0, LOSSLESS, 0)],
        "the peer pauses, as nobody empties the device's ring"
    );
    assert_eq!(
        several.paths[0]
            .counters()
            .port(0)
            .unwrap()
            .flow
            .xoff_cpu
            .get(),
        2
    );
    assert_eq!(
        several.receive(0, (2, 1, 0), LEN, BURST),
        BURST,
        "another port's queue is polled"
    );
    assert_eq!(several.dropped(DropReason::XringFull), BURST as u64);
    assert_eq!(
        several.paths[0].counters().port(1).unwrap().queues[0]
            .dropped
            .get(),
        BURST as u64
    );
    assert_eq!((several.lost(), several.stalls()), (0, 3));
    several.assert_conserved();
    assert!(!several.paths[0].may_receive(PortId(0)), "a run waits yet");
    assert_eq!(several.turn(1), BURST, "what comes next");
    assert!(several.paths[0].may_receive(PortId(0)));
    assert_eq!(several.turn(1), BURST);
    let mut left = 0;
    while left < 2 * BURST {
        several.now += 1_000_000;
        left += several.pull(1).len();
    }
    several.assert_conserved();
}

/// Frames of a port that wait in its receive queue while a run of it is held are counted: the burst of the iteration in which the hold ends, and
/// those after it until one is not full.
#[test]
fn frames_behind_a_held_run_are_counted() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[1; 4], 2 * BURST));
    let held_back = |several: &Several| several.paths[0].counters().handoff.held_back.get();
    let burst = |several: &mut Several, priority, count| {
        several.refresh(0);
        several.receive(0, (0, 1, priority), LEN, count)
    };
    for _ in 0..2 {
        for _ in 0..2 {
            assert_eq!(burst(&mut several, 3, BURST), BURST);
        }
        for _ in 0..3 {
            assert_eq!(burst(&mut several, 0, 5), 0, "a run is held");
            let other = several.receive(0, (2, 1, 6), LEN, 1);
            assert_eq!(other, 1, "another port is polled");
        }
        let before = held_back(&several);
        while several.turn(1) > 0 {}
        while !several.pull(1).is_empty() {}
        // A lossy class that waited, in three bursts; then one that did not wait.
        for (count, counted) in [(BURST, BURST), (BURST, BURST), (9, 9), (9, 0), (BURST, 0)] {
            let before = held_back(&several);
            assert_eq!(burst(&mut several, 6, count), count);
            assert_eq!(held_back(&several) - before, counted as u64);
            // Another port of the same iteration.
            assert_eq!(several.receive(0, (2, 1, 6), LEN, 1), 1);
            several.turn(1);
            several.pull(1);
        }
        assert_eq!(held_back(&several) - before, 2 * BURST as u64 + 9);
        while several.turn(1) > 0 {}
        while !several.pull(1).is_empty() {}
    }
    several.assert_conserved();
}

/// A pause received on any queue of a port stops the egress side of its owner.
#[test]
fn a_pause_goes_to_the_owner() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[2, 1, 1, 1], 1024));
    several.receive(1, (1, 0, 3), LEN, 4);
    several.turn(0);
    several.hear(1, 0, &mac_control::build(mac(99), 1 << 3, [u16::MAX; 8]));
    several.turn(0);
    assert_eq!(several.pull(0).len(), 0, "paused");
    let heard = several.paths[1].counters().port(0).unwrap();
    assert_eq!(
        (heard.pfc.rx[3].get(), heard.consumed.packets.get()),
        (1, 1)
    );
    let obeyed = several.paths[0].counters().port(0).unwrap();
    assert_eq!(obeyed.flow.priorities[3].rx_pauses.get(), 1);
    several.assert_conserved();
    several.hear(1, 0, &mac_control::build(mac(99), 1 << 3, [0; 8]));
    several.turn(0);
    assert_eq!(several.pull(0).len(), 4);
}

/// Pauses of one priority that come by another worker's queue before the owner's next iteration: the last one counts, and
/// priorities that it does not name keep theirs.
#[test]
fn the_later_of_pauses_that_are_combined_counts() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    let pause = |classes, quanta| mac_control::build(mac(99), classes, [quanta; 8]);
    // A channel has room for 64 pauses; those behind them are combined to one.
    for before in [0, 62, 63, 64, 100] {
        for (first, last, leave) in [(u16::MAX, 0, (4, 0)), (0, u16::MAX, (0, 4))] {
            let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[2, 1, 1, 1], 1024));
            several.receive(1, (1, 0, 3), LEN, 4);
            several.receive(1, (1, 0, 4), LEN, 4);
            several.turn(0);
            for _ in 0..before {
                several.hear(1, 0, &pause(1, 0));
            }
            several.hear(1, 0, &pause(LOSSLESS, first));
            several.hear(1, 0, &pause(1 << 3, last));
            // The owner reads, the other worker sends the one that waited, the owner reads it.
            for worker in [0, 1, 0] {
                several.turn(worker);
            }
            let left = several.pull(0);
            let of = |priority| {
                let of = left.iter().map(|frame| frame.meta.priority);
                of.filter(|of| *of == prio(priority)).count()
            };
            assert_eq!((of(3), of(4)), leave, "behind {before}");
        }
    }
}

/// Frames that cross at the stop are accounted for: runs in rings, before them, and half way.
#[test]
fn a_stop_leaves_nothing_in_the_rings() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    for (ring, bursts) in [(16, [10, BURST]), (BURST, [10, BURST])] {
        let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[1; 4], ring));
        for frames in bursts {
            assert_eq!(several.receive(0, (0, 1, 3), LEN, frames), frames);
        }
        assert!(!several.paths[0].may_receive(PortId(0)), "some wait");
        for path in &mut several.paths {
            path.shut_down();
        }
        several.paths[1].shut_down();
        let all = bursts.iter().sum::<usize>() as u64;
        assert_eq!(several.dropped(DropReason::Shutdown), all);
        several.assert_conserved();
        let held: u64 = several.paths.iter().fold(0, |sum, path| {
            sum.wrapping_add(path.counters().held.packets.get())
        });
        assert_eq!(held, 0);
        assert_eq!(several.paths[1].depth(PortId(1), prio(3)), 0);
    }
}

/// Every receive queue that fills pauses the peer. Earlier defect: only the owner's queue reported how full its ring
/// was; with RSS the other rings overflowed without a pause.
#[test]
fn every_receive_queue_that_fills_pauses_the_peer() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    for behind in [0, 1] {
        let mut several = Several::new(&setup, assignment(&[0, 1, 0, 1], &[2, 1, 1, 1], 1024));
        let mut turn = |over_half: bool, count: usize| {
            several.now += 1_000;
            several.receive(behind, (0, 1, 3), LEN, count);
            several.paths[behind].ring(PortId(0), over_half);
            for worker in [1, 0] {
                several.refresh(worker);
                several.turn(worker);
            }
            several.pull(1);
            std::mem::take(&mut several.sent)
        };
        assert_eq!(turn(false, BURST), [], "a full burst of a ring that is not");
        assert_eq!(turn(true, BURST), [(0, LOSSLESS, 0)], "queue {behind}");
        assert_eq!(turn(false, 1), [(0, 0, LOSSLESS)], "queue {behind}");
    }
}
