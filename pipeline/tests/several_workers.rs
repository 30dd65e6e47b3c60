//! Several workers' paths in one process: random traffic between them, every order of their iterations, rings that fill.
//!
//! Laws: the account closes over all workers together at every step; no lossless frame is dropped, whatever ring is full,
//! because the receiving worker stops polling; a group holds the frames received and not yet sent, wherever they are; only the
//! owner of a port pauses its peer; frames of a flow keep their order.

use crate::rig::several::{Several, assignment};
use crate::rig::{GIG, LOSSLESS, Setup, mac, wire};
use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::handoff::WorkerPlan;
use npcc_pipeline::units::{BURST, BitRate, PortId};
use npcc_pipeline::wire::mac_control;
use npcc_pipeline::wire::mac_control::time_of;
use proptest::prelude::*;

const PORTS: u8 = 4;
const GRACE: u64 = 60_000;
const LONGEST: usize = 1_500;

#[derive(Debug, Clone)]
enum Event {
    /// Burst on a receive queue of a port: receiver, destination, priority, length, frames.
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
    // Often the previous burst once more, because only then it may be a train.
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

/// Model of the switch, as seen from outside.
struct Model {
    several: Several,
    assignment: WorkerPlan,
    /// Bytes and frames of lossless frames received and not yet sent, by ingress port and priority.
    held: [[(u64, u64); 8]; PORTS as usize],
    /// Bytes that each paused sender may still deliver.
    grace: [[u64; 8]; PORTS as usize],
    asserted: [u8; PORTS as usize],
}

impl Model {
    /// Returns the worker of a port's receive queue: its owner, or one of those after it.
    fn receiver(&self, port: u8, by: u8) -> usize {
        let owner = self.several.owner(port);
        let receivers = usize::from(self.assignment.receivers[usize::from(port)]);
        (owner + usize::from(by) % receivers) % usize::from(self.assignment.workers)
    }

    fn receive(&mut self, by: u8, what: (u8, u8, u8), len: usize, mut count: usize) {
        let (port, class) = (usize::from(what.0), usize::from(what.2));
        if self.asserted[port] & 1 << class != 0 {
            count = count.min((self.grace[port][class] / wire(len)) as usize);
        }
        // Frames of one flow arrive on one queue.
        let by = if self.assignment.receivers[port] > 1 {
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
                *held = (held.0 - u64::from(frame.meta.wire_len()), held.1 - 1);
            }
        }
        sent.len()
    }

    fn check(&mut self) {
        self.several.assert_conserved();
        assert_eq!(self.several.lost(), 0, "lossless loss");
    }

    /// Asserts, after every worker has read the ledger, that groups hold exactly the frames under way.
    fn check_groups(&mut self) {
        for worker in 0..usize::from(self.assignment.workers) {
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
    // A burst of each receiver is in hand when the pause is requested, one more whose charge it reads too late, and the grace.
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

#[expect(
    clippy::too_many_lines,
    reason = "one match over all events, each a few lines"
)]
fn drive(events: Vec<Event>, assignment: &WorkerPlan) {
    let workers = assignment.workers;
    let receivers = assignment.receivers.iter().max().copied().unwrap();
    let mut model = Model {
        several: Several::new(&setup(workers.into(), receivers.into()), assignment.clone()),
        assignment: assignment.clone(),
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
                // The owner polls once an iteration as well, and its iterations are no longer than others'.
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
    // The peers' pauses expire, everything drains, and every pause of ours ends.
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
        let idle = |path: &crate::rig::Path| {
            path.handed_over() && (0..PORTS).all(|port| path.frames_queued(PortId(port)) == 0)
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
    #![proptest_config(crate::rig::cases::cases(400))]

    /// Two workers, one queue a port, rings from a few frames to plenty: the accounts close.
    #[test]
    fn two_workers_keep_their_books(events in prop::collection::vec(event(), 1..250), ring in prop_oneof![Just(5usize), Just(40), Just(BURST), Just(1024)]) {
        drive(events, &assignment(&[0, 1, 0, 1], &[1; 4], ring));
    }

    /// Three workers, and ports that two or all of them receive from: the accounts close.
    #[test]
    fn workers_that_share_ports_keep_their_books(events in prop::collection::vec(event(), 1..250), ring in prop_oneof![Just(7usize), Just(BURST), Just(1024)]) {
        drive(events, &assignment(&[0, 1, 2, 0], &[3, 1, 2, 1], ring));
    }
}
