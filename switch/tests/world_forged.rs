//! Forged traffic on the world: whatever is forged, no CNP goes to a queue pair that did not send, and evidence comes back in the time that
//! docs/pairing.md states. A CNP to a queue pair that sends nothing ends every world at once ([`World`]'s hosts assert it).
//!
//! `NPCC_SEED=n` runs seed n alone.
#![allow(
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a law says what is wrong by panicking"
)]

use npcc_cnp::admission::Suppressed;
use npcc_pipeline::frame::wire_len;

use crate::world::config::Switch;
use crate::world::packets::{self, Way};
use crate::world::{MS, Traffic, US, World, laws, seeds};

/// Number of seeds of every run of the tests.
const SEEDS: u64 = 8;
/// Queue pair of the near host that has no part in any connection.
const BYSTANDER: u32 = 0x999;
/// Ports of the near host and the far one.
const NEAR: usize = 0;
const FAR: usize = 2;
/// Time between two packets of a connection that fills the queue, and of one that lives on without load.
const FULL: u64 = US;
const SLOW: u64 = 10 * MS;
const READ_RESPONSE_MIDDLE: u8 = 0x0e;

/// Makes a world whose far port has a tenth of the links' speed: with one worker or two, by the seed.
fn world(seed: u64, npcc: &'static str) -> World {
    let switch = Switch {
        workers: 1 + (seed % 2) as u8,
        far: ", speed: 1G",
        npcc,
        ..Switch::default()
    };
    World::new(&switch.text(), seed)
}

/// Way of a packet from the near host to the far one, and back.
fn ways(world: &World) -> [Way; 2] {
    let [near, far] = [NEAR, FAR].map(|port| &world.hosts[port]);
    [near.way(far.address), far.way(near.address)]
}

/// Makes connections from the near host to the far one that are silent yet.
fn connections(world: &mut World, number: usize) -> Vec<usize> {
    let traffic = Traffic {
        from: NEAR,
        to: FAR,
        until: 0,
        ..Traffic::default()
    };
    let flows: Vec<usize> = (0..number).map(|_| world.connect(traffic)).collect();
    for flow in &flows {
        world.flows[*flow].next = None;
    }
    flows
}

/// Lets connections fill the queue for 3 ms, and it drain; returns the number of CNPs to each.
fn congest(world: &mut World, flows: &[usize]) -> Vec<usize> {
    let until = world.now + 3 * MS;
    let count = |world: &World| -> Vec<usize> {
        let cnps = |flow: &usize| world.flows[*flow].cnps.len();
        flows.iter().map(cnps).collect()
    };
    let before = count(world);
    for flow in flows {
        world.go_on(*flow, FULL, until);
    }
    world.run_to(until);
    world.rest(60 * MS);
    laws::always(world);
    let after = count(world);
    after
        .iter()
        .zip(before)
        .map(|(all, old)| all - old)
        .collect()
}

/// Runs for up to `most`.
fn wait(world: &mut World, most: u64) {
    let time = world.chance(most);
    world.run_to(world.now + time);
}

/// Runs to a time, while the connections send a packet now and then.
fn live_on(world: &mut World, flows: &[usize], gap: u64, until: u64) {
    world.pace(20 * US);
    for flow in flows {
        world.go_on(*flow, gap, until);
    }
    world.run_to(until);
    world.pace(US);
}

/// Sends REQ and REP of a connection, which names these queue pairs.
fn set_up(world: &mut World, id: u32, (sender, receiver): (u32, u32), most: u64) {
    let [there, back] = ways(world);
    world.send(NEAR, packets::req(there, id, sender));
    world.run_to(world.now + 20 * US);
    wait(world, most);
    world.send(FAR, packets::rep(back, id, receiver));
    world.run_to(world.now + 20 * US);
    wait(world, most);
}

/// Guards against messages of the connection manager that turn a living connection into another, or silence it.
#[test]
fn a_forged_connection_over_a_living_one_moves_no_cnp() {
    for seed in seeds::first(SEEDS) {
        let mut world = world(seed, "cnp: { earned: 0B }, ");
        let flows = connections(&mut world, 1);
        let (sender, receiver) = (world.flows[0].sender, world.flows[0].receiver);
        set_up(&mut world, 7, (sender, receiver), MS);
        assert!(congest(&mut world, &flows)[0] > 0, "{}", world.replay());
        for id in [8, 9, 10] {
            // Some come while the connection sends, others while it pauses.
            if world.chance(2) == 0 {
                let until = world.now + MS;
                world.go_on(flows[0], FULL, until);
            }
            set_up(&mut world, id, (BYSTANDER, receiver), MS);
        }
        // The messages have a flow label, so its port must prove it: by 64 packets in 50 ms.
        let until = world.now + 80 * MS;
        live_on(&mut world, &flows, MS / 2, until);
        let cnps = congest(&mut world, &flows);
        assert!(cnps[0] > 0, "silenced: {cnps:?}\n{}", world.replay());
    }
}

/// Guards against messages forged from the far side only: over a connection that is known by its ports, and for one that does not exist yet.
#[test]
fn a_forged_connection_from_the_far_side_is_ignored() {
    for seed in seeds::first(SEEDS) {
        let mut world = world(seed, "cnp: { earned: 0B }, ");
        let flows = connections(&mut world, 2);
        assert!(
            congest(&mut world, &flows[..1])[0] > 0,
            "{}",
            world.replay()
        );
        let [there, back] = ways(&world);
        let forged = Way {
            link: back.link,
            ..there
        };
        let first = world.chance(2) as usize;
        for flow in [first, 1 - first] {
            let (id, receiver) = (8 + flow as u32, world.flows[flow].receiver);
            world.send(FAR, packets::req(forged, id, BYSTANDER));
            wait(&mut world, MS);
            world.send(FAR, packets::rep(back, id, receiver));
            wait(&mut world, MS);
        }
        world.run_to(world.now + MS);
        for flow in 0..2 {
            let cnps = congest(&mut world, &flows[flow..=flow]);
            assert!(cnps[0] > 0, "connection {flow}\n{}", world.replay());
        }
        let refused = world.control.core.status().counts.wrong_port.get();
        assert!(refused >= 2, "{refused} refused\n{}", world.replay());
    }
}

/// Docs: a number that two kinds of queue pairs used within 3 s is trusted for neither for 3 s, and no longer.
#[test]
fn datagrams_before_a_connection_begins_move_no_cnp() {
    for seed in seeds::first(4) {
        let mut world = world(seed, "cnp: { earned: 0B }, ");
        let flows = connections(&mut world, 1);
        let receiver = world.flows[0].receiver;
        let [there, back] = ways(&world);
        for _ in 0..40 {
            world.send(NEAR, packets::datagram(there, receiver, BYSTANDER));
            world.send(FAR, packets::datagram(back, BYSTANDER, receiver));
            wait(&mut world, 2 * MS);
        }
        let begin = world.now;
        assert_eq!(congest(&mut world, &flows), [0], "{}", world.replay());
        live_on(&mut world, &flows, SLOW, begin + 2_900 * MS);
        assert_eq!(congest(&mut world, &flows), [0], "{}", world.replay());
        live_on(&mut world, &flows, SLOW, begin + 3_100 * MS);
        let cnps = congest(&mut world, &flows);
        assert!(cnps[0] > 0, "after 3.1 s\n{}", world.replay());
    }
}

/// Guards against pairing strangers by their sequence numbers: of two connections in lock step, one's data and the other's answers pass here, and
/// the numbers began long before the switch did; in half of the runs the switch is killed in between and begins again with what it saved. A CNP to
/// anybody ends the world: it has no connection.
#[test]
fn numbers_that_fit_pair_no_strangers() {
    const PAIR: (u32, u32) = (0x18, 0x11);
    const OTHER: (u32, u32) = (0x31, 0x44);
    for seed in seeds::first(SEEDS) {
        let mut world = world(seed, "cnp: { earned: 0B }, ");
        let [there, back] = ways(&world);
        let mut psn = 0x40_0000 + world.chance(0x10_0000) as u32;
        let shift = 5 * US + world.chance(500 * US);
        // For a while one by one, then faster than the port sends.
        for (per_second, number) in [(1_000, 200_u32), (400_000, 1_200)] {
            let time = u64::from(number) * 1_000 * MS / per_second;
            let data = move |n: u64| {
                packets::data(
                    there,
                    (PAIR.1, packets::port(PAIR.0, PAIR.1)),
                    psn + n as u32,
                    1_024,
                )
            };
            let answer = move |n: u64| {
                packets::ack(
                    back,
                    (OTHER.0, packets::port(OTHER.0, OTHER.1)),
                    psn + n as u32,
                )
            };
            let begin = world.now;
            world.flood(NEAR, per_second, begin + time, Box::new(data));
            world.run_to(begin + shift.min(time / 2));
            let until = world.now + time;
            world.flood(FAR, per_second, until, Box::new(answer));
            world.run_to(until);
            psn += number;
            if seed / 2 % 2 == 1 && per_second == 1_000 {
                world.save();
                let away = 20 * US + world.chance(MS);
                world.restart(away);
            }
        }
        let status = world.control.core.status();
        let refused =
            [Suppressed::Cold, Suppressed::Unpaired].map(|why| status.cnps_suppressed(why));
        assert_eq!(status.cnps_sent(), 0, "{}", world.replay());
        assert!(
            refused[0] + refused[1] > 0,
            "the queue was deep\n{}",
            world.replay()
        );
        world.rest(60 * MS);
        laws::always(&mut world);
    }
}

/// Guards against forged frames that earn CNPs: small frames to a bystander's peer, as any process at the bystander's host can send them while
/// honest connections fill the queue. With a wrong ICRC the peer's card drops them unseen.
#[test]
fn forged_frames_in_the_name_of_a_bystander_earn_one_cnp_in_2_kib_at_most() {
    // The least price: a forger has next to nothing of the drain rate.
    const EARNED: u64 = 2 << 10;
    for seed in seeds::first(SEEDS) {
        let mut world = world(seed / 2, "cnp: { earned: 16KiB }, ");
        world.seed = seed;
        let is_icrc_right = seed % 2 == 0;
        let bystander = world.connect(Traffic {
            from: NEAR,
            to: FAR,
            len: 64,
            gap: 10 * US,
            until: world.now + 800 * US,
            ..Traffic::default()
        });
        world.run_to(world.now + MS);
        let honest = u64::from(world.flows[bystander].sent)
            * u64::from(wire_len(14 + 20 + 8 + 12 + 16 + 64 + 4));
        let until = world.now + 4 * MS;
        let flows: Vec<usize> = (0..4)
            .map(|n| {
                world.connect(Traffic {
                    from: n % 2,
                    to: FAR,
                    until,
                    ..Traffic::default()
                })
            })
            .collect();
        let way = ways(&world)[0];
        let to = (
            READ_RESPONSE_MIDDLE,
            world.flows[bystander].receiver,
            world.flows[bystander].port(),
        );
        let forge = move |n: u64| packets::any(way, to, 0x90_0000 + n as u32, vec![0; 8]);
        let length = u64::from(wire_len(forge(0).len()));
        let (per_second, begin) = (200_000 + world.chance(200_000), world.now);
        let spoil = move |n: u64| {
            let frame = forge(n);
            if is_icrc_right {
                frame
            } else {
                packets::spoiled(frame)
            }
        };
        world.flood(NEAR, per_second, until, Box::new(spoil));
        world.run_to(until);
        let bytes = honest + per_second * (until - begin) / (1_000 * MS) * length;
        world.rest(60 * MS);
        laws::always(&mut world);
        let most = (bytes / EARNED) as usize + 1;
        let earned = world.flows[bystander].cnps.len();
        assert!(
            earned <= most,
            "{earned} CNPs, {most} at most\n{}",
            world.replay()
        );
        let others: Vec<usize> = flows
            .iter()
            .map(|flow| world.flows[*flow].cnps.len())
            .collect();
        assert!(
            others.iter().sum::<usize>() > 5,
            "{others:?}\n{}",
            world.replay()
        );
    }
}

/// Frames of five of the eleven forgeries of `cnp/src/doubt_tests.rs` against a connection, and the ports that they come in by.
fn forgery(
    kind: usize,
    [there, back]: [Way; 2],
    (sender, receiver): (u32, u32),
) -> Vec<(usize, Vec<u8>)> {
    let port = packets::port(sender, receiver);
    let psn = 0x70_0000;
    let ports = (1..=4).map(|n| port ^ n);
    match kind {
        0 => ports
            .map(|port| (NEAR, packets::data(there, (receiver, port), psn, 1_024)))
            .collect(),
        1 => ports
            .map(|port| (FAR, packets::ack(back, (sender, port), psn)))
            .collect(),
        2 => vec![(FAR, packets::ack(back, (BYSTANDER, port), psn))],
        3 => vec![(FAR, packets::datagram(back, sender, BYSTANDER))],
        _ => vec![(NEAR, packets::data(there, (BYSTANDER, port), psn, 1_024))],
    }
}

/// Docs: a forger removes evidence while the forgery lasts and for less than 4 s after it. With a wrong ICRC it removes none.
#[test]
fn a_connection_is_signalled_again_four_seconds_after_the_last_forged_frame() {
    for seed in seeds::first(4) {
        // Settings by half of the seed: each layout with right and wrong ICRCs.
        let mut world = world(
            seed / 2,
            "cnp: { earned: 0B }, hosts: { answering: [10.0.1.0/24] }, ",
        );
        world.seed = seed;
        let is_icrc_right = seed % 2 == 0;
        let flows = connections(&mut world, 5);
        let all = |cnps: &[usize]| cnps.iter().all(|cnps| *cnps > 0);
        let before = congest(&mut world, &flows);
        assert!(all(&before), "as it is: {before:?}\n{}", world.replay());
        let ways = ways(&world);
        let first = world.chance(5) as usize;
        for kind in (0..5).map(|n| (first + n) % 5) {
            let pair = (world.flows[kind].sender, world.flows[kind].receiver);
            for (port, frame) in forgery(kind, ways, pair) {
                let frame = if is_icrc_right {
                    frame
                } else {
                    packets::spoiled(frame)
                };
                world.send(port, frame);
                wait(&mut world, 100 * US);
            }
        }
        let forged = world.now;
        let during = congest(&mut world, &flows);
        if !is_icrc_right {
            assert!(
                all(&during),
                "no card takes them: {during:?}\n{}",
                world.replay()
            );
            continue;
        }
        live_on(&mut world, &flows, SLOW, forged + 4_000 * MS);
        let after = congest(&mut world, &flows);
        assert!(all(&after), "4 s later: {after:?}\n{}", world.replay());
    }
}
