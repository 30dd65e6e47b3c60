//! A switch that is killed and begins again, by the world's clock: a pair from before is signalled again once packets confirm it, and no
//! CNP goes to a queue pair that does not send. docs/restart.md ("Pairs", "Pause storms").

use npcc_pipeline::units::PortId;

use crate::world::config::Switch;
use crate::world::{MS, Traffic, US, World, laws, seeds};

/// Time for which a connection fills the queue, and the queue drains.
const PHASE: u64 = 3 * MS;
const DRAINED: u64 = 60 * MS;

fn world(seed: u64) -> World {
    let switch = Switch {
        workers: 1 + (seed % 2) as u8,
        far: ", speed: 1G",
        npcc: "cnp: { earned: 0B }, ",
        ..Switch::default()
    };
    World::new(&switch.text(), seed)
}

/// Makes a connection with a flow label, so that only its messages name its queue pairs.
fn connection(world: &mut World) -> usize {
    world.connect(Traffic {
        from: 0,
        to: 2,
        until: world.now + PHASE,
        managed: true,
        ..Traffic::default()
    })
}

/// Lets a connection fill the queue; returns the CNPs that its sender got for it.
fn congest(world: &mut World, flow: usize) -> usize {
    let (before, until) = (world.flows[flow].cnps.len(), world.now + PHASE);
    world.go_on(flow, US, until);
    world.run_to(until);
    world.rest(DRAINED);
    laws::always(world);
    world.flows[flow].cnps.len() - before
}

/// Kills the switch after a while, saved or not, and lets it begin after another.
fn restart(world: &mut World, saves: bool) {
    let (wait, away) = (world.chance(5 * MS), 20 * US + world.chance(5 * MS));
    world.run_to(world.now + wait);
    if saves {
        world.save();
    }
    world.restart(away);
}

/// Docs: each pair continues once packets confirm it, which takes a data packet and usually one of its reply. Two restarts in a row lose nothing,
/// and without what was saved the connection is not known.
#[test]
fn a_pair_from_before_a_restart_is_signalled_again() {
    for seed in seeds::first(8) {
        let mut world = world(seed);
        let flow = connection(&mut world);
        world.run_to(world.now + PHASE);
        world.rest(DRAINED);
        let saves = seed % 4 != 3;
        let mut cnps = vec![world.flows[flow].cnps.len()];
        for _ in 0..1 + seed % 3 {
            restart(&mut world, saves);
        }
        cnps.push(congest(&mut world, flow));
        println!("seed {seed}: {cnps:?} CNPs");
        assert!(
            cnps[0] > 0 && (cnps[1] > 0) == saves,
            "saved {saves}: {cnps:?} CNPs\n{}",
            world.replay()
        );
    }
}

/// Guards against belief in a pair from before: while the switch was away, the connection's receiver became another sender's. A CNP to the
/// old one, which sends nothing any more, ends the world.
#[test]
fn a_pair_that_ended_while_the_switch_was_away_gets_no_cnp() {
    for seed in seeds::first(8) {
        let mut world = world(seed);
        let flow = connection(&mut world);
        world.run_to(world.now + PHASE);
        world.rest(DRAINED);
        assert!(!world.flows[flow].cnps.is_empty(), "{}", world.replay());
        let other = 0x3_0000 + u32::try_from(world.chance(0x1000)).unwrap();
        let id = 0x200 + u32::try_from(world.chance(0x100)).unwrap();
        world.save();
        let ended = &mut world.flows[flow];
        (ended.sender, ended.id) = (other, Some(id));
        restart(&mut world, false);
        congest(&mut world, flow);
    }
}

/// Docs: a storm continues from the first frame, and is over once the peer sends no pause for `restore`, 200 ms.
#[test]
fn a_storm_from_before_a_restart_goes_on_until_the_peer_is_quiet() {
    for seed in seeds::first(4) {
        let mut world = world(seed);
        world.pace(20 * US);
        for to in [2, 3] {
            world.connect(Traffic {
                from: 0,
                to,
                gap: 50 * US,
                until: u64::MAX,
                answers: false,
                ..Traffic::default()
            });
        }
        let time = 700 * MS + world.chance(100 * MS);
        let until = world.now + time;
        world.pause(2, 1 << 3, time);
        world.run_to(world.now + 450 * MS);
        let flow = |world: &World| -> [u64; 3] {
            let of = |worker: &npcc_engine::worker::Worker<(), crate::world::devices::Memory>| {
                let flow = &worker.path.counters().of(PortId(2)).flow;
                let pause = &flow.priorities[3];
                [
                    flow.storm.get(),
                    pause.storms.get(),
                    pause.storms_ended.get(),
                ]
            };
            let all = world.workers.iter().map(of);
            all.fold([0; 3], |sum, one| std::array::from_fn(|n| sum[n] + one[n]))
        };
        assert_eq!(flow(&world), [1 << 3, 1, 0], "{}", world.replay());
        restart(&mut world, true);
        assert_eq!(flow(&world), [1 << 3, 0, 0], "{}", world.replay());
        let before = world.flows[1].received;
        let from = world.now;
        world.run_to(from + 100 * MS);
        let bystander = u64::from(world.flows[1].received - before) * 50 * US;
        assert!(bystander >= 99 * MS, "{bystander}\n{}", world.replay());
        let over = from.max(until) + 200 * MS;
        world.run_to(over);
        assert_eq!(flow(&world)[0], 1 << 3, "{}", world.replay());
        world.run_to(over + 120 * MS);
        assert_eq!(flow(&world), [0, 0, 1], "{}", world.replay());
        laws::always(&mut world);
    }
}
