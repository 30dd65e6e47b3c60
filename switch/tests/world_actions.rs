//! A dry run, by the world's clock: with `action: observe` at any level CNPs are decided and none is sent, and reloads begin and end that.
//! docs/npcc.md ("Dry run").

use npcc_pipeline::units::PortId;

use crate::world::{MS, Traffic, US, World, config, laws, seeds};

/// Time of a phase: several hundred decisions.
const PHASE: u64 = 2 * MS;

/// The levels of `action: observe`: what a configuration has, and what it has instead.
const LEVELS: [(&str, &str, &str); 4] = [
    ("switch", "npcc: { flows", "npcc: { action: observe, flows"),
    (
        "port",
        "{ queues: [3] }",
        "{ queues: [3], action: observe }",
    ),
    (
        "queue",
        "{ queues: [3] }",
        "{ queues: [3], queue_actions: { 3: observe } }",
    ),
    (
        "host",
        "npcc: { flows",
        "npcc: { hosts: { observe: [10.0.1.0/24, 10.0.2.0/24] }, flows",
    ),
];

/// CNPs that hosts got, and those that would have been sent.
fn cnps(world: &World) -> (usize, u64) {
    let got = world.flows.iter().map(|flow| flow.cnps.len()).sum();
    (got, world.control.core.status().would_send())
}

/// Frames of the watched queue that were marked.
fn marked(world: &World) -> u64 {
    let workers = world.workers.iter();
    workers
        .map(|worker| {
            let port = worker.path.counters().of(PortId(2));
            port.queues[3].ecn_marked.get()
        })
        .sum()
}

/// Two new connections congest port 2 for a phase; returns the CNPs that came meanwhile, and those that would have.
fn phase(world: &mut World) -> (usize, u64) {
    let until = world.now + PHASE;
    // What is on the way comes.
    world.run_to(world.now + 20 * US);
    let before = cnps(world);
    for from in [0, 1] {
        let gap = 900 + world.chance(100);
        world.connect(Traffic {
            from,
            to: 2,
            gap,
            until,
            ..Traffic::default()
        });
    }
    world.run_to(until);
    laws::always(world);
    let after = cnps(world);
    (after.0 - before.0, after.1 - before.1)
}

/// Guards `action` at each level: each alone holds CNPs back, from the start and by reload.
#[test]
fn no_cnp_is_sent_while_any_level_observes() {
    for seed in seeds::first(8) {
        for (level, from, to) in LEVELS {
            let sends = config::usual("");
            let observes = sends.replace(from, to);
            assert_ne!(observes, sends, "{level}");
            let mut world = World::new(&observes, seed);
            let mut outcomes = vec![phase(&mut world)];
            for text in [&sends, &observes] {
                world.rest(20 * MS);
                world.reload(text).unwrap();
                outcomes.push(phase(&mut world));
            }
            println!("seed {seed}, {level}: {outcomes:?}");
            let holds: Vec<_> = outcomes
                .iter()
                .map(|(sent, would)| (*sent > 0, *would > 0))
                .collect();
            assert_eq!(
                holds,
                [(false, true), (true, false), (false, true)],
                "{level}: (sent, would send) {outcomes:?}\n{}",
                world.replay()
            );
        }
    }
}

/// Guards `enable: false`: nothing is decided for the port, until a reload enables it again.
#[test]
fn nothing_is_decided_for_a_port_that_is_disabled() {
    for seed in seeds::first(4) {
        let sends = config::usual("");
        let disabled = sends.replace("{ queues: [3] }", "{ queues: [3], enable: false }");
        let mut world = World::new(&sends, seed);
        let mut outcomes = Vec::new();
        for text in [&sends, &disabled, &sends] {
            world.rest(20 * MS);
            world.reload(text).unwrap();
            let (sent, would) = phase(&mut world);
            outcomes.push((sent > 0, would > 0));
        }
        assert_eq!(
            outcomes,
            [(true, false), (false, false), (true, false)],
            "(sent, would send)\n{}",
            world.replay()
        );
    }
}

/// Guards ECN as a fallback: with `ecn: off` CNPs are the senders' only signal, so a queue whose CNPs do not leave is marked.
#[test]
fn a_queue_without_marks_has_them_while_nothing_is_sent() {
    for seed in seeds::first(8) {
        let sends = config::usual("ecn: off, ");
        let (_, from, to) = LEVELS[(seed % 3) as usize];
        let observes = sends.replace(from, to);
        let mut world = World::new(&sends, seed);
        let mut outcomes = Vec::new();
        for text in [&sends, &observes, &sends] {
            world.rest(20 * MS);
            world.reload(text).unwrap();
            let before = marked(&world);
            let (sent, _) = phase(&mut world);
            outcomes.push((sent > 0, marked(&world) > before));
        }
        assert_eq!(
            outcomes,
            [(true, false), (false, true), (true, false)],
            "(CNPs, marks)\n{}",
            world.replay()
        );
    }
}
