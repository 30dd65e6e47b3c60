//! Floods into a full channel between workers, by the world's clock: a lossless class waits, a lossy one is dropped, and the account closes.
//! That no two threads get in each other's way is tested in `pipeline/src/handoff/channel_tests.rs`.

use npcc_pipeline::drop::DropReason;

use crate::world::config::Switch;
use crate::world::{MS, Traffic, US, World, laws, seeds};

/// Frames handed over, taken over, and turns in which a receive queue waited, over all workers.
fn crossed(world: &World) -> [u64; 3] {
    let workers = world.workers.iter();
    let counts = workers.map(|worker| {
        let handoff = &worker.path.counters().handoff;
        [&handoff.handed_over, &handoff.taken_over, &handoff.stalls].map(|count| count.get())
    });
    counts.fold([0; 3], |sum, one| std::array::from_fn(|n| sum[n] + one[n]))
}

/// A flood of short frames by ports 0 and 1 to a port whose worker gets no turns for a while, again and again.
fn flooded(seed: u64, lossless: bool) -> World {
    let switch = Switch {
        npcc: "action: observe, ",
        ..Switch::default()
    };
    let text = switch.text();
    let profile = if lossless { "roce-lossless" } else { "lossy" };
    let mut world = World::new(&text.replace("roce-lossless", profile), seed);
    let to = 2 + (seed % 2) as usize;
    let until = world.now + 4 * MS;
    for n in 0..16 {
        let gap = 1_500 + world.chance(200);
        world.connect(Traffic {
            from: n % 2,
            to,
            len: 2,
            gap,
            until,
            managed: false,
            answers: false,
            ..Traffic::default()
        });
    }
    for _ in 0..6 {
        let time = 300 * US + world.chance(200 * US);
        world.stall_worker(to % 2, time);
        world.run_to(world.now + 650 * US);
        laws::always(&mut world);
    }
    world.run_to(until);
    world
}

/// Guards the channel's end: a worker that finds it full goes on, and what it had is sent, or counted as dropped.
#[test]
fn a_flood_into_a_full_channel_is_held_or_counted() {
    for seed in seeds::first(16) {
        for lossless in [false, true] {
            let mut world = flooded(seed, lossless);
            world.rest(10 * MS);
            laws::always(&mut world);
            let [handed, taken, stalls] = crossed(&world);
            let lost = world.dropped(DropReason::XringFull);
            let (missed, drops) = (world.missed(), world.drops());
            println!(
                "seed {seed}, lossless {lossless}: {handed} handed over, {stalls} stalls, {lost} found no room, {missed} missed by cards"
            );
            let replay = world.replay();
            assert_eq!(handed, taken, "lossless {lossless}\n{replay}");
            assert_eq!(stalls > 0, lossless, "{stalls} stalls\n{replay}");
            assert_eq!(lost > 0, !lossless, "{lost} found no room\n{replay}");
            // Each frame is where it was sent to, or counted.
            let count = |one: fn(&crate::world::host::Flow) -> u32| -> u64 {
                world.flows.iter().map(|flow| u64::from(one(flow))).sum()
            };
            let (sent, received) = (count(|flow| flow.sent), count(|flow| flow.received));
            assert_eq!(sent, received + missed + drops, "{replay}");
            // Afterwards a connection loses nothing.
            let until = world.now + MS;
            let flow = world.connect(Traffic {
                until,
                to: 2,
                ..Traffic::default()
            });
            world.run_to(until);
            world.rest(10 * MS);
            assert!(world.flows[flow].sent > 500);
            assert_eq!(world.flows[flow].sent, world.flows[flow].received);
        }
    }
}

/// Bystanders of a flood that crosses from worker 0 to worker 1, from port 0 to port 1: ports of sender and receiver, priority, worker that
/// receives them, and ns from one frame to the next.
const BYSTANDERS: [(usize, usize, u8, usize, u64); 8] = [
    // Through the same channel, from another port.
    (2, 1, 1, 0, 8_000),
    (2, 3, 1, 0, 8_000),
    (2, 3, 3, 0, 8_000),
    // Through the same channel, from the same port in another class.
    (0, 3, 2, 0, 8_000),
    // Received by the flooded worker.
    (3, 0, 1, 1, 2_500),
    (1, 2, 3, 1, 8_000),
    // By another way than the channel.
    (2, 0, 1, 0, 8_000),
    (2, 0, 3, 0, 8_000),
];

/// Flood of short frames from port 0 to port 1: its priority, and whether its host obeys pauses.
#[derive(Debug, Clone, Copy)]
struct Flood {
    priority: u8,
    obeys: bool,
}

/// Frames of each bystander that arrived in 14 ms beside a flood that worker 0 can read and worker 1, which is slow, cannot; from 2 ms after
/// its begin on, when the channel is full: what waits in it is a delay and no loss of rate.
fn beside(seed: u64, flood: Option<Flood>) -> (Vec<u32>, World) {
    let switch = Switch {
        npcc: "action: observe, ",
        ..Switch::default()
    };
    let classes = "dscp_to_priority: { 8: 1, 16: 2 }";
    let text = switch.text();
    let text = text.replace(
        "profile: roce-lossless",
        &format!("profile: roce-lossless, {classes}"),
    );
    let mut world = World::new(&text, seed);
    world.settings.workers[1].frame = 200 + world.chance(100);
    let until = world.now + 16 * MS;
    let traffic = |(from, to, priority, by, gap)| Traffic {
        from,
        to,
        len: 64,
        gap,
        until,
        managed: false,
        answers: false,
        priority,
        by: Some(by),
    };
    for bystander in BYSTANDERS {
        world.connect(traffic(bystander));
    }
    let gap = 240 + world.chance(60);
    if let Some(Flood { priority, obeys }) = flood {
        world.hosts[0].obeys = obeys;
        world.connect(traffic((0, 1, priority, 0, gap)));
    }
    let received = |world: &World| -> Vec<u32> {
        let flows = world.flows.iter().take(BYSTANDERS.len());
        flows.map(|flow| flow.received).collect()
    };
    world.run_to(world.now + 2 * MS);
    let before = received(&world);
    world.run_to(until);
    let counts = received(&world).into_iter().zip(before);
    let counts = counts.map(|(after, before)| after - before).collect();
    world.rest(20 * MS);
    laws::always(&mut world);
    (counts, world)
}

/// Guards those that share a channel with a flood: flows received on other ports, and lossy classes of the flood's port, keep 0.95 of what they
/// get without it. Only a host that ignores pauses takes something from the other classes of its own port: its frames fill the card's ring.
#[test]
fn bystanders_of_a_flood_through_a_full_channel_keep_their_rate() {
    let floods = [(0, true), (3, true), (3, false)];
    for seed in seeds::first(6) {
        let (alone, _) = beside(seed, None);
        for (priority, obeys) in floods {
            let flood = Flood { priority, obeys };
            let (with, world) = beside(seed, Some(flood));
            let kept = |n: usize| f64::from(with[n]) / f64::from(alone[n]);
            let kept: Vec<f64> = (0..with.len()).map(kept).collect();
            println!(
                "seed {seed}, {flood:?}: kept {kept:.2?}; {:?} frames crossed, {} without room, {} missed by cards",
                crossed(&world),
                world.dropped(DropReason::XringFull),
                world.missed()
            );
            let [_, _, stalls] = crossed(&world);
            let lost = world.dropped(DropReason::XringFull);
            assert!(stalls + lost > 0, "the channel was not full");
            for (bystander, kept) in BYSTANDERS.iter().zip(kept) {
                let ignores = bystander.0 == 0 && !obeys;
                let replay = world.replay();
                assert!(
                    ignores || kept >= 0.95,
                    "{bystander:?} beside {flood:?} kept {kept}\n{replay}"
                );
            }
        }
    }
}
