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
