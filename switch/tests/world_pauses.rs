//! Pauses through the switch, by the world's clock: a pause of the far host travels back to the near ones, costs no frame of its class and
//! nothing of others, and every XOFF is refreshed before it runs out. docs/lossless.md; the points of XOFF and XON are laws of
//! `pipeline/tests/buffer_limits.rs`.

use crate::world::config::Switch;
use crate::world::{MS, Traffic, US, World, laws, seeds};

/// Time after an XOFF in which a host may still send: what is on its wire.
const GRACE: u64 = 2 * US;

fn world(seed: u64) -> World {
    let switch = Switch {
        workers: 1 + (seed % 2) as u8,
        npcc: "action: observe, ",
        ..Switch::default()
    };
    let mut world = World::new(&switch.text(), seed);
    let gap = 2_000 + world.chance(500);
    for (from, to) in [(0, 2), (1, 2), (0, 3)] {
        world.connect(Traffic {
            from,
            to,
            gap,
            until: u64::MAX,
            answers: false,
            ..Traffic::default()
        });
    }
    world
}

fn received(world: &World) -> Vec<u32> {
    world.flows.iter().map(|flow| flow.received).collect()
}

/// Guards SONiC's docs/testplan/pfc, PAUSE_LOSSLESS: while the far host pauses priority 3, nothing of it arrives there; the switch pauses the
/// senders, whichever worker owns their ports; after XON everything that was ever sent arrives.
#[test]
fn a_pause_travels_back_to_the_senders_and_loses_nothing() {
    for seed in seeds::first(16) {
        let mut world = world(seed);
        let wait = world.chance(MS);
        world.run_to(world.now + wait);
        // Less than a storm takes.
        let time = 20 * MS + world.chance(100 * MS);
        world.pause(2, 1 << 3, time);
        // A burst is in the card already.
        world.run_to(world.now + MS);
        let before = received(&world);
        world.run_to(world.now + time - 2 * MS);
        let during = received(&world);
        assert_eq!(during[..2], before[..2], "{}", world.replay());
        let heard: Vec<_> = world.hosts.iter().map(|host| host.heard).collect();
        assert!(
            heard[0].0 > 0 && heard[1].0 > 0 && heard[3].0 == 0,
            "XOFF and XON: {heard:?}\n{}",
            world.replay()
        );
        let late = world.hosts.iter().map(|host| host.under_xoff).max();
        assert!(
            late <= Some(GRACE),
            "a frame left {late:?} ns after an XOFF\n{}",
            world.replay()
        );
        laws::always(&mut world);
        world.run_to(world.now + 20 * MS);
        world.rest(50 * MS);
        laws::all(&mut world);
        let heard: Vec<_> = world.hosts.iter().map(|host| host.heard).collect();
        assert!(
            heard[0].1 > 0 && heard[1].1 > 0,
            "XOFF and XON: {heard:?}\n{}",
            world.replay()
        );
        for flow in &world.flows {
            assert_eq!(flow.sent, flow.received, "{}", world.replay());
        }
    }
}

/// Guards XOFF, refresh and XON without a far pause: a port slower than its senders pauses them for many times the longest pause, which is
/// 3.4 ms at 10 Gb/s.
#[test]
fn a_slow_port_pauses_its_senders_and_lets_them_go() {
    for seed in seeds::first(8) {
        let switch = Switch {
            workers: 1 + (seed % 2) as u8,
            far: ", speed: 200M",
            npcc: "action: observe, ",
            ..Switch::default()
        };
        let mut world = World::new(&switch.text(), seed);
        let until = world.now + 60 * MS;
        for from in [0, 1] {
            let gap = 5 * US + world.chance(US);
            world.connect(Traffic {
                from,
                to: 2,
                gap,
                until,
                answers: false,
                ..Traffic::default()
            });
        }
        world.run_to(until);
        laws::always(&mut world);
        let hosts = &world.hosts[..2];
        let heard: Vec<_> = hosts
            .iter()
            .map(|host| (host.heard, host.under_xoff))
            .collect();
        println!("seed {seed}: {heard:?}");
        assert!(
            heard
                .iter()
                .all(|((xoffs, _), late)| *xoffs > 10 && *late <= GRACE),
            "{heard:?}\n{}",
            world.replay()
        );
        world.pace(5 * US);
        world.rest(1_000 * MS);
        laws::all(&mut world);
        assert!(world.hosts[..2].iter().all(|host| host.heard.1 > 0));
        for flow in &world.flows {
            assert_eq!(flow.sent, flow.received, "{}", world.replay());
        }
    }
}
