//! Several workers' paths in one process: random traffic across, every order of their turns, rings that fill.
//!
//! Laws: the account closes over all workers together at every step; no lossless frame is dropped, whatever ring is full,
//! as the taking worker stops polling; a group holds what was taken in and not yet sent, wherever it lies; only the owner of
//! a port pauses its peer; frames of a flow keep their order.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "test numbers are small, and a test stops at what it did not expect"
)]

mod rig;

use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::cross::Seating;
use npcc_pipeline::drop::Drop;
use npcc_pipeline::pause::PauseConfig;
use npcc_pipeline::units::{BURST, BitRate, PortId, WorkerId};
use npcc_pipeline::wire::mac_control;
use npcc_pipeline::wire::mac_control::time_of;
use proptest::prelude::*;
use rig::several::Several;
use rig::{GIG, LOSSLESS, Setup, mac, prio, wire};

const PORTS: u8 = 4;
const GRACE: u64 = 60_000;
const LONGEST: usize = 1_500;

fn seating(owners: &[u8], receivers: &[u8], ring: usize) -> Seating {
    Seating {
        workers: owners.iter().max().unwrap() + 1,
        owners: owners.iter().map(|owner| WorkerId(*owner)).collect(),
        receivers: receivers.to_vec(),
        ring,
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// A burst on a receive queue of a port: which of its receivers, destination, priority, length, frames.
    Receive {
        from: u8,
        by: u8,
        to: u8,
        priority: u8,
        len: usize,
        count: usize,
    },
    Turn(u8),
    Refresh(u8),
    Pull(u8),
    Hear {
        port: u8,
        by: u8,
        classes: u8,
        quanta: u16,
    },
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let priority = prop_oneof![1 => Just(0u8), 6 => Just(3), 1 => Just(4), 1 => Just(6)];
    // Often the burst before once more, as only then it may be a train.
    let to = prop_oneof![3 => Just(1), 1 => 0..PORTS];
    prop_oneof![
        8 => (0..PORTS, any::<u8>(), to, priority, 276..LONGEST, 1..=BURST).prop_map(
            |(from, by, to, priority, len, count)| Event::Receive { from, by, to, priority, len, count }),
        4 => any::<u8>().prop_map(Event::Turn),
        4 => any::<u8>().prop_map(Event::Refresh),
        4 => (0..PORTS).prop_map(Event::Pull),
        1 => (0..PORTS, any::<u8>(), any::<u8>(), prop_oneof![Just(0u16), any::<u16>()]).prop_map(
            |(port, by, classes, quanta)| Event::Hear { port, by, classes, quanta }),
        2 => (1u64..400_000).prop_map(Event::Wait),
    ]
}

/// What the outside knows.
struct Model {
    several: Several,
    seating: Seating,
    /// Lossless frames taken in and not yet sent, by ingress port and priority: bytes, frames.
    held: [[(u64, u64); 8]; PORTS as usize],
    /// What each paused sender may still deliver.
    grace: [[u64; 8]; PORTS as usize],
    asserted: [u8; PORTS as usize],
}

impl Model {
    /// The worker of a port's receive queue: its owner, or those after it.
    fn receiver(&self, port: u8, by: u8) -> usize {
        let owner = self.several.owner(port);
        let receivers = usize::from(self.seating.receivers[usize::from(port)]);
        (owner + usize::from(by) % receivers) % usize::from(self.seating.workers)
    }

    fn receive(&mut self, by: u8, what: (u8, u8, u8), len: usize, mut count: usize) {
        let (port, class) = (usize::from(what.0), usize::from(what.2));
        if self.asserted[port] & 1 << class != 0 {
            count = count.min((self.grace[port][class] / wire(len)) as usize);
        }
        // Frames of one flow come by one queue.
        let by = if self.seating.receivers[port] > 1 {
            what.1.wrapping_add(what.2)
        } else {
            by
        };
        let worker = self.receiver(what.0, by);
        let taken = if count == 0 {
            0
        } else {
            self.several.receive(worker, what, len, count)
        };
        if self.asserted[port] & 1 << class != 0 {
            self.grace[port][class] -= taken as u64 * wire(len);
        }
        if LOSSLESS & 1 << class != 0 {
            let held = &mut self.held[port][class];
            *held = (held.0 + taken as u64 * wire(len), held.1 + taken as u64);
        }
    }

    fn turn(&mut self, worker: usize) -> usize {
        let came = self.several.turn(worker);
        for (port, xoff, xon) in std::mem::take(&mut self.several.sent) {
            assert_eq!(
                self.several.owner(port),
                worker,
                "only the owner pauses its peer"
            );
            let asserted = &mut self.asserted[usize::from(port)];
            for n in 0..8 {
                if xoff & !*asserted & 1 << n != 0 {
                    self.grace[usize::from(port)][n] = GRACE;
                }
            }
            *asserted = (*asserted | xoff) & !xon;
        }
        came
    }

    fn pull(&mut self, port: u8) -> usize {
        let sent = self.several.pull(port);
        for frame in &sent {
            let (ingress, class) = (frame.meta.group.port(), frame.meta.priority.index());
            if LOSSLESS & 1 << class != 0 {
                let held = &mut self.held[ingress][class];
                *held = (held.0 - u64::from(frame.meta.wire_len), held.1 - 1);
            }
        }
        sent.len()
    }

    fn check(&mut self) {
        self.several.assert_conserved();
        assert_eq!(self.several.lost(), 0, "lossless loss");
    }

    /// Every worker has looked at the board: groups hold exactly what is on its way.
    fn check_groups(&mut self) {
        for worker in 0..usize::from(self.seating.workers) {
            self.several.refresh(worker);
        }
        for port in 0..PORTS {
            for priority in [3u8, 4] {
                let held = self.held[usize::from(port)][usize::from(priority)];
                assert_eq!(
                    self.several.held(port, priority),
                    held,
                    "port {port} priority {priority}"
                );
            }
        }
    }
}

fn setup(workers: u64, receivers: u64) -> Setup {
    // A burst of each receiver is in hand when pause is asked for, one more that it reads of too late, and the grace.
    let headroom = (2 * receivers + workers) * BURST as u64 * wire(LONGEST) + GRACE;
    let groups = 2 * u64::from(PORTS);
    let pool = groups * headroom + 300_000;
    Setup {
        ports: PORTS,
        pool,
        frames: pool.div_ceil(300),
        min_frame: 300,
        group: GroupConfig {
            lossless: true,
            reserved: 0,
            headroom,
            xon: 0,
            xon_offset: 2 * wire(LONGEST),
        },
        rate: Some(BitRate(10 * GIG)),
        ..Setup::default()
    }
}

fn drive(events: Vec<Event>, seating: &Seating) {
    let workers = seating.workers;
    let receivers = seating.receivers.iter().max().copied().unwrap();
    let mut model = Model {
        several: Several::new(&setup(workers.into(), receivers.into()), seating.clone()),
        seating: seating.clone(),
        held: Default::default(),
        grace: Default::default(),
        asserted: Default::default(),
    };
    for event in events {
        match event {
            Event::Receive {
                from,
                by,
                to,
                priority,
                len,
                count,
            } => {
                let worker = model.receiver(
                    from,
                    if receivers > 1 {
                        to.wrapping_add(priority)
                    } else {
                        by
                    },
                );
                model.several.refresh(worker);
                model.receive(by, (from, to, priority), len, count);
                model.turn(worker);
                // The owner looks once a turn as well, and its turns are no longer than others'.
                let owner = model.several.owner(from);
                if owner != worker {
                    model.several.refresh(owner);
                    model.turn(owner);
                }
            }
            Event::Turn(worker) => {
                model.turn(usize::from(worker % workers));
            }
            Event::Refresh(worker) => model.several.refresh(usize::from(worker % workers)),
            Event::Pull(port) => {
                model.pull(port);
            }
            Event::Hear {
                port,
                by,
                classes,
                quanta,
            } => {
                let worker = model.receiver(port, by);
                if model.several.paths[worker].may_receive(PortId(port)) {
                    let frame = mac_control::build(mac(99), classes, [quanta; 8]);
                    model.several.hear(worker, port, &frame);
                }
            }
            Event::Wait(time) => model.several.now += time,
        }
        model.check();
    }
    model.check_groups();
    // The peers' pauses run out, everything drains, and every pause of ours ends.
    for round in 0..100_000 {
        model.several.now += if round == 0 {
            time_of(u16::MAX, BitRate(10 * GIG)).0
        } else {
            10_000
        };
        let mut moved = 0;
        for worker in 0..usize::from(workers) {
            model.several.refresh(worker);
            for port in 0..PORTS {
                let _ = model.several.paths[worker].may_receive(PortId(port));
            }
            moved += model.turn(worker);
        }
        moved += (0..PORTS).map(|port| model.pull(port)).sum::<usize>();
        let idle = |path: &rig::Path| {
            path.handed_over() && (0..PORTS).all(|port| path.waiting(PortId(port)) == 0)
        };
        if moved == 0 && round > 1 && model.several.paths.iter().all(idle) {
            break;
        }
    }
    for worker in 0..usize::from(workers) {
        model.several.refresh(worker);
        model.turn(worker);
    }
    model.check();
    model.check_groups();
    assert_eq!(model.held, <[[(u64, u64); 8]; PORTS as usize]>::default());
    assert_eq!(model.asserted, [0; PORTS as usize], "every pause ends");
    for path in &model.several.paths {
        assert_eq!(
            (path.buffer().used().frames, path.buffer().used().bytes),
            (0, 0)
        );
        assert!(path.buffer().in_headroom().is_zero());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Two workers, one queue a port, rings from a few frames to plenty.
    #[test]
    fn two_workers_keep_their_books(events in prop::collection::vec(event(), 1..250), ring in prop_oneof![Just(5usize), Just(40), Just(BURST), Just(1024)]) {
        drive(events, &seating(&[0, 1, 0, 1], &[1; 4], ring));
    }

    /// Three workers, and ports that two or all of them receive from.
    #[test]
    fn workers_that_share_ports_keep_their_books(events in prop::collection::vec(event(), 1..250), ring in prop_oneof![Just(7usize), Just(BURST), Just(1024)]) {
        drive(events, &seating(&[0, 1, 2, 0], &[3, 1, 2, 1], ring));
    }
}

const LEN: usize = 1000;
const MARGIN: usize = 2;

/// Frames after which `workers` workers' ports, filled a burst each in turn, have their first pause.
fn first_xoff(owners: &[u8]) -> usize {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, seating(owners, &[1; 4], 1024));
    let mut frames = 0;
    while several.sent.is_empty() {
        // Everything leaves by port 3, whoever owns it.
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

/// PFCtest of SONiC's `sai_qos_tests.py` over two workers: the same point, margin two packets plus a burst.
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
    // What each worker may have in its hand when the pause is asked for.
    setup.group.headroom = 2 * BURST as u64 * wire(LEN);
    let shared = setup.pool - 2 * 4 * setup.group.headroom;
    let mut several = Several::new(&setup, seating(&[0, 1, 0, 1], &[1; 4], 1024));
    let mut frames = 0u64;
    while several.sent.len() < 2 {
        for from in [0u8, 1] {
            let worker = several.owner(from);
            several.refresh(worker);
            frames += several.receive(worker, (from, 2, 3), LEN, BURST) as u64;
            several.turn(worker);
        }
    }
    // Two groups at alpha 1: each holds what is left free, a third of the pool.
    let wanted = 2 * shared / 3;
    let slack = (MARGIN as u64 + 2 * BURST as u64) * wire(LEN);
    assert!(
        (frames * wire(LEN)).abs_diff(wanted) <= slack,
        "{frames} frames for {wanted} bytes"
    );
    assert_eq!(several.lost(), 0);
}

/// A ring that nobody empties: lossless frames wait and the queue is not polled, lossy ones are dropped by name.
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
    let mut several = Several::new(&setup, seating(&[0, 1, 0, 1], &[1; 4], BURST));
    for what in ["frames", "a train", "a train that waits"] {
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
    assert_eq!(several.dropped(Drop::XringFull), BURST as u64);
    assert_eq!(
        several.paths[0].counters().port(1).unwrap().queues[0]
            .dropped
            .get(),
        BURST as u64
    );
    assert_eq!((several.lost(), several.stalls()), (0, 3));
    several.assert_conserved();
    assert_eq!(several.turn(1), BURST, "what comes next");
    assert!(!several.paths[0].may_receive(PortId(0)), "trains wait yet");
    assert_eq!(several.turn(1), BURST);
    assert!(several.paths[0].may_receive(PortId(0)));
    assert_eq!(several.turn(1), BURST);
    let mut left = 0;
    while left < 3 * BURST {
        several.now += 1_000_000;
        left += several.pull(1).len();
    }
    several.assert_conserved();
}

/// A pause heard by any queue of a port stops the egress side of its owner.
#[test]
fn a_pause_goes_to_the_owner() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    let mut several = Several::new(&setup, seating(&[0, 1, 0, 1], &[2, 1, 1, 1], 1024));
    several.receive(1, (1, 0, 3), LEN, 4);
    several.turn(0);
    several.hear(1, 0, &mac_control::build(mac(99), 1 << 3, [u16::MAX; 8]));
    several.turn(0);
    assert_eq!(several.pull(0).len(), 0, "paused");
    let heard = several.paths[1].counters().port(0).unwrap();
    assert_eq!(
        (heard.pfc_rx[3].get(), heard.consumed.packets.get()),
        (1, 1)
    );
    let obeyed = several.paths[0].counters().port(0).unwrap();
    assert_eq!(obeyed.flow.priorities[3].rx_pauses.get(), 1);
    several.assert_conserved();
    several.hear(1, 0, &mac_control::build(mac(99), 1 << 3, [0; 8]));
    several.turn(0);
    assert_eq!(several.pull(0).len(), 4);
}

/// What crosses at the stop is accounted for: frames and trains, in rings and before them.
#[test]
fn a_stop_leaves_nothing_in_the_rings() {
    let setup = Setup {
        ports: 4,
        ..Setup::default()
    };
    for (ring, bursts) in [(16, [10, 10, BURST]), (BURST, [10, BURST, BURST])] {
        let mut several = Several::new(&setup, seating(&[0, 1, 0, 1], &[1; 4], ring));
        for frames in bursts {
            assert_eq!(several.receive(0, (0, 1, 3), LEN, frames), frames);
        }
        assert!(!several.paths[0].may_receive(PortId(0)), "some wait");
        for path in &mut several.paths {
            path.shut_down();
        }
        several.paths[1].shut_down();
        let all = bursts.iter().sum::<usize>() as u64;
        assert_eq!(several.dropped(Drop::Shutdown), all);
        several.assert_conserved();
        let held: u64 = several.paths.iter().fold(0, |sum, path| {
            sum.wrapping_add(path.counters().held.packets.get())
        });
        assert_eq!(held, 0);
        assert_eq!(several.paths[1].depth(PortId(1), prio(3)), 0);
    }
}
