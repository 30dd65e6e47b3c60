//! Pauses that flap, by the world's clock: a peer that pauses a lossless class nearly always, and releases it for moments, is a storm, and
//! costs others nothing from then on. docs/lossless.md ("The watchdog") has the bounds; `pipeline/tests/pfc_flapping.rs` has the rhythms
//! and phases in one worker.

use crate::world::config::Switch;
use crate::world::{MS, Traffic, US, World, laws, seeds};
use npcc_pipeline::counters::PauseCounters;
use npcc_pipeline::units::PortId;

/// Port whose peer pauses, and the priority.
const PAUSED: (u8, usize) = (2, 3);
/// Detection time; time in which a storm is found, which is 500 ms where each poll is on time, and a poll more where a worker is late for
/// one; and time in which its end is found.
const DETECT: u64 = 200 * MS;
const FOUND: u64 = 600 * MS;
const LEFT: u64 = 300 * MS;
/// Interval of a peer's repeated pause frame: pauses last for multiples of it.
const REPEATED: u64 = 100 * US;

/// Peer that pauses for `off` and then resumes for `on`, again and again.
#[derive(Debug, Clone, Copy)]
struct Flaps {
    off: u64,
    on: u64,
}

impl Flaps {
    /// Goes on until a time, or until a storm is found; returns the time at which the last pause began.
    fn play(self, world: &mut World, until: u64) -> u64 {
        let mut last = world.now;
        while world.now < until {
            last = world.now;
            world.pause(usize::from(PAUSED.0), 1 << PAUSED.1, self.off);
            world.run_to(last + self.off);
            world.run_to(last + self.off.next_multiple_of(REPEATED) + self.on);
            laws::always(world);
        }
        last
    }
}

/// Counters of the paused priority at its port, in the worker that owns it.
fn paused<T>(world: &World, read: impl Fn(&PauseCounters) -> T) -> T {
    let owner = usize::from(PAUSED.0) % world.workers.len();
    let ports = world.workers[owner].path.counters();
    read(&ports.of(PortId(PAUSED.0)).flow.priorities[PAUSED.1])
}

/// Storms, their ends, and warnings.
fn found(world: &World) -> [u64; 3] {
    paused(world, |pause| {
        [
            pause.storms.get(),
            pause.storms_ended.get(),
            pause.storm_warnings.get(),
        ]
    })
}

/// A world in which the host at port 0 sends to the peer and to a bystander, both at the same pace, until a time.
fn world(seed: u64, until: u64) -> World {
    let switch = Switch {
        workers: if seed % 4 == 3 { 1 } else { 2 },
        npcc: "action: observe, ",
        ..Switch::default()
    };
    let mut world = World::new(&switch.text(), seed);
    for pace in &mut world.settings.workers {
        pace.turn = 5 * US;
    }
    for to in [usize::from(PAUSED.0), 3] {
        world.connect(Traffic {
            from: 0,
            to,
            gap: GAP,
            until,
            answers: false,
            ..Traffic::default()
        });
    }
    world
}

/// Time between two frames of a connection.
const GAP: u64 = 25 * US;

/// Guards storm detection against flapping: with 150 ms of XOFF and a moment of XON, repeated, the watchdog, which required 200 ms without
/// a break, never fired, and bystanders were blocked for as long as that went on.
#[test]
fn pauses_released_for_a_moment_only_are_a_storm_and_bystanders_go_on() {
    for seed in seeds::first(8) {
        let mut world = world(seed, 1_500 * MS);
        let flaps = Flaps {
            off: 20 * MS + world.chance(170 * MS),
            on: 50 * US + world.chance(250 * US),
        };
        let begin = world.now + world.chance(100) * MS;
        world.run_to(begin);
        flaps.play(&mut world, begin + FOUND + 10 * MS);
        let took = paused(&world, |pause| pause.storm_at.get()).saturating_sub(begin);
        println!("seed {seed}: {flaps:?}, a storm after {} ms", took / MS);
        assert_eq!(found(&world)[..2], [1, 0], "{flaps:?}\n{}", world.replay());
        assert!(
            (DETECT..=FOUND).contains(&took),
            "{flaps:?}: {took}\n{}",
            world.replay()
        );
        // The sender was paused with all that it sends, and is not any more.
        let before = (world.flows[1].received, world.hosts[0].heard.0);
        assert!(before.1 > 0, "{flaps:?}\n{}", world.replay());
        let from = world.now;
        let last = flaps.play(&mut world, from + 200 * MS);
        let got = u64::from(world.flows[1].received - before.0);
        let sent = (world.now - from) / GAP;
        assert!(
            got * 100 >= sent * 99,
            "{flaps:?}: a bystander got {got} of {sent}\n{}",
            world.replay()
        );
        assert_eq!(world.hosts[0].heard.0, before.1, "{}", world.replay());
        // It lasts for as long as the peer flaps, and no longer.
        assert_eq!(found(&world)[..2], [1, 0], "{flaps:?}\n{}", world.replay());
        let over = last + flaps.off.next_multiple_of(REPEATED);
        world.rest(LEFT + 10 * MS);
        let ended = paused(&world, |pause| pause.storm_ended_at.get());
        assert!(
            found(&world)[1] == 1 && ended - over <= LEFT + 20 * US,
            "{flaps:?}: over after {} ms\n{}",
            (ended - over) / MS,
            world.replay()
        );
        laws::always(&mut world);
        assert_eq!(world.flows[1].sent, world.flows[1].received);
    }
}

/// A peer that lets a fifth through is applied to the letter, and one that pauses now and then is not worth a warning: nothing is lost.
#[test]
fn pauses_short_of_a_storm_cost_no_frame() {
    for seed in seeds::first(6) {
        let mut world = world(seed, 900 * MS);
        let warned = seed % 2 == 0;
        let off = 4 * MS + world.chance(60 * MS).next_multiple_of(REPEATED);
        let flaps = Flaps {
            off,
            on: if warned { off / 4 } else { off * 3 / 2 } + REPEATED,
        };
        let begin = world.now;
        flaps.play(&mut world, begin + 900 * MS);
        println!("seed {seed}: {flaps:?}, {:?}", found(&world));
        assert_eq!(
            found(&world),
            [0, 0, u64::from(warned)],
            "{flaps:?}\n{}",
            world.replay()
        );
        world.rest(100 * MS);
        laws::all(&mut world);
        for flow in &world.flows {
            assert_eq!(flow.sent, flow.received, "{flaps:?}\n{}", world.replay());
        }
    }
}
