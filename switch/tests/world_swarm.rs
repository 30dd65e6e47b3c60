//! Runs of the world with faults that each seed draws. `NPCC_SEED=n` runs seed n alone.
#![allow(
    clippy::print_stdout,
    clippy::panic,
    reason = "a law says what is wrong by panicking"
)]

use npcc_pipeline::drop::DropReason;

use crate::world::config::Switch;
use crate::world::plan::{OVER, Plan};
use crate::world::{MS, Traffic, US, World, config, laws, seeds, sometimes};

/// Number of seeds of every run of the tests.
const SEEDS: u64 = 64;
/// Longest time from the last fault to a switch that holds nothing and pauses nobody: the pool at the speed of one link, and as much again.
const RECOVERY: u64 = 30 * MS;

/// States that at least one seed must have seen.
const SOMETIMES: [&str; 10] = [
    "a device was stuck with frames queued",
    "a host was paused",
    "a link went down with frames queued",
    "a receive ring or the pool was full",
    "a reload while frames were queued",
    "a restart while frames were queued",
    "a sender got a CNP",
    "all kinds of faults but a few in one run",
    "forged frames",
    "the switch was paused",
];

/// Runs a seed's plan to its end; the world is at rest then, and all its laws held.
pub(crate) fn run(seed: u64, keeps: bool) -> World {
    let switch = Switch {
        workers: if seed % 4 == 3 { 1 } else { 2 },
        ..Switch::default()
    };
    let mut world = World::new(&switch.text(), seed);
    world.trace.keeps = keeps;
    let plan = Plan::draw(&mut world);
    if plan.kinds.len() > 5 {
        sometimes::seen("all kinds of faults but a few in one run");
    }
    println!(
        "seed {seed}: {:?}, {} connections",
        plan.names(),
        plan.traffic.len()
    );
    world.carry_out(&plan);
    let begin = world.now;
    while world.now < begin + OVER {
        world.run_to(world.now + MS / 20);
        laws::always(&mut world);
    }
    if plan.gentle {
        laws::lossless(&world);
    }
    world.rest(RECOVERY);
    laws::always(&mut world);
    recovers(&mut world);
    world
}

/// After the faults, a new connection is paired by its messages alone, and its sender is signalled.
fn recovers(world: &mut World) {
    let until = world.now + 2 * MS;
    let traffic = |from, managed| Traffic {
        from,
        to: 2,
        until,
        managed,
        answers: !managed,
        ..Traffic::default()
    };
    let managed = world.connect(traffic(0, true));
    world.connect(traffic(1, false));
    world.run_to(until);
    let flow = &world.flows[managed];
    assert!(
        flow.connected && !flow.cnps.is_empty(),
        "after the faults a connection was set up: {}, and got {} CNPs for {} packets\n{}",
        flow.connected,
        flow.cnps.len(),
        flow.sent,
        world.replay()
    );
    world.rest(RECOVERY);
    laws::always(world);
}

/// Has two senders fill the queue of a far port; nobody answers them, so NPCC cannot know them.
fn fill(world: &mut World, until: u64) {
    for from in [0, 1] {
        world.connect(Traffic {
            from,
            to: 2,
            until,
            answers: false,
            ..Traffic::default()
        });
    }
}

/// Two senders that NPCC cannot know, as nobody answers them, fill the buffer: they are paused, and no frame is lost.
#[test]
fn senders_that_are_not_known_are_paused_and_lose_nothing() {
    let mut world = World::new(&config::usual(""), 1);
    let until = world.now + 4 * MS;
    fill(&mut world, until);
    world.run_to(until);
    let heard: Vec<_> = world.hosts.iter().map(|host| host.heard).collect();
    assert!(heard[0].0 > 0 && heard[1].0 > 0, "XOFF and XON: {heard:?}");
    world.rest(RECOVERY);
    laws::all(&mut world);
    for flow in &world.flows {
        assert_eq!(flow.sent, flow.received);
    }
}

/// A stop while queues are full: what the link does not carry in time, or the device does not take, is dropped as `shutdown`.
#[test]
fn a_switch_that_stops_under_load_accounts_for_every_frame() {
    for (seed, rate, stuck) in [
        (1, 10_000_000_000, false),
        (2, 1_000_000_000, false),
        (3, 10_000_000, false),
        (4, 10_000_000_000, true),
    ] {
        let mut world = World::new(&config::usual(""), seed);
        let until = world.now + MS;
        fill(&mut world, until);
        world.run_to(until - US * 100);
        world.cards[2].borrow_mut().stuck = stuck;
        world.run_to(until);
        assert!(world.held() > 100, "{} frames held", world.held());
        world.cards[2].borrow_mut().rate = rate;
        world.stop();
        let shutdown = world.dropped(DropReason::Shutdown);
        assert_eq!(
            shutdown > 0,
            stuck || rate < 100_000_000,
            "{shutdown} dropped"
        );
        assert_eq!(world.held(), 0);
        laws::conservation(&mut world);
    }
}

#[test]
fn laws_hold_in_a_swarm_of_faults_and_the_switch_recovers() {
    let seeds = seeds::first(SEEDS);
    for seed in &seeds {
        run(*seed, false);
    }
    let seen = sometimes::all();
    println!("{seen:#?}");
    if seeds.len() > 1 {
        let missing: Vec<_> = SOMETIMES
            .iter()
            .filter(|state| !seen.contains_key(*state))
            .collect();
        assert!(missing.is_empty(), "no seed saw {missing:?}");
    }
}
