//! Random traffic, pauses both ways and reconfiguration against a model that only adds and subtracts.
//!
//! Laws: the account closes in frames and bytes; every group holds the frames accepted and not yet sent; no lossless frame is
//! lost while senders stop within the grace for which headroom was computed; a paused queue sends nothing; every pause ends.

use crate::rig::{GIG, LOSSLESS, Rig, Setup, frame_with, prio, wire};
use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::egress::ecn::{CERTAIN, Red};
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::units::{BURST, BitRate, PortId};
use npcc_pipeline::wire::mac_control::time_of;
use proptest::prelude::*;

const PORTS: u8 = 3;
/// Bytes a sender still delivers after our XOFF.
const GRACE: u64 = 60_000;
/// Longest frame of this test.
const LONGEST: usize = 1_500;

#[derive(Debug, Clone)]
enum Event {
    Push {
        from: u8,
        to: u8,
        priority: u8,
        len: usize,
        count: usize,
        /// ECN field: Not-ECT frames of a lossy queue can be dropped early.
        ecn: u8,
    },
    Pull(u8),
    Hear {
        port: u8,
        classes: u8,
        quanta: u16,
    },
    Wait(u64),
    Weight {
        port: u8,
        priority: u8,
        weight: u8,
    },
    Curves {
        port: u8,
        priority: u8,
        ecn: Option<Red>,
        wred: Option<Red>,
    },
}

/// Generates RED curves from never to always.
fn red() -> impl Strategy<Value = Option<Red>> {
    let curve = (0u64..60_000, 0u64..60_000, 0..=CERTAIN);
    prop::option::of(curve.prop_map(|(kmin, span, pmax)| Red {
        kmin,
        kmax: kmin + span,
        pmax,
    }))
}

fn event() -> impl Strategy<Value = Event> {
    let priority = prop_oneof![Just(0u8), Just(3), Just(3), Just(4), Just(6)];
    prop_oneof![
        6 => (0..PORTS, 0..PORTS, priority.clone(), 276..LONGEST, 1..=BURST, prop_oneof![Just(0u8), Just(2)]).prop_map(
            |(from, to, priority, len, count, ecn)| Event::Push { from, to, priority, len, count, ecn }),
        3 => (0..PORTS).prop_map(Event::Pull),
        1 => (0..PORTS, any::<u8>(), prop_oneof![Just(0u16), any::<u16>()]).prop_map(
            |(port, classes, quanta)| Event::Hear { port, classes, quanta }),
        2 => (1u64..400_000).prop_map(Event::Wait),
        1 => (0..PORTS, priority.clone(), red(), red()).prop_map(
            |(port, priority, ecn, wred)| Event::Curves { port, priority, ecn, wred }),
        1 => (0..PORTS, priority, 1u8..=100).prop_map(
            |(port, priority, weight)| Event::Weight { port, priority, weight }),
    ]
}

/// Model of the switch, as seen from outside.
#[derive(Default)]
struct Model {
    now: u64,
    /// Bytes and frames accepted and not yet sent, by ingress port and priority.
    held: [[(u64, u64); 8]; PORTS as usize],
    /// Bytes that each paused sender may still deliver.
    grace: [[u64; 8]; PORTS as usize],
    asserted: [u8; PORTS as usize],
    /// Time until which each port's peer has paused us.
    until: [[u64; 8]; PORTS as usize],
}

impl Model {
    fn reported(&mut self, rig: &mut Rig) {
        for (port, _, xoff, xon) in std::mem::take(&mut rig.sent) {
            let asserted = &mut self.asserted[usize::from(port)];
            for n in 0..8 {
                if xoff & !*asserted & 1 << n != 0 {
                    self.grace[usize::from(port)][n] = GRACE;
                }
            }
            *asserted = (*asserted | xoff) & !xon;
        }
    }

    fn push(&mut self, rig: &mut Rig, event: (u8, u8, u8, usize, usize), ecn: u8) {
        let (from, to, priority, len, mut count) = event;
        let (port, class) = (usize::from(from), usize::from(priority));
        if self.asserted[port] & 1 << priority != 0 {
            let grace = &mut self.grace[port][class];
            count = count.min((*grace / wire(len)) as usize);
            *grace -= count as u64 * wire(len);
        }
        if count == 0 {
            return;
        }
        let before = rig.counters(to).queues[class].enqueued.packets.get();
        let frame = frame_with(from, to, priority << 5 | ecn, len);
        rig.push_copies(from, &frame, count, self.now);
        let accepted = rig.counters(to).queues[class].enqueued.packets.get() - before;
        if LOSSLESS & 1 << priority != 0 {
            assert_eq!(accepted, count as u64, "a lossless frame was not taken in");
        }
        let held = &mut self.held[port][class];
        *held = (held.0 + accepted * wire(len), held.1 + accepted);
    }

    fn pull(&mut self, rig: &mut Rig, port: u8) -> usize {
        let sent = rig.pull(port, self.now);
        for frame in &sent {
            let (ingress, class) = (frame.meta.group.port(), frame.meta.priority.index());
            let held = &mut self.held[ingress][class];
            *held = (held.0 - u64::from(frame.meta.wire_len()), held.1 - 1);
            assert!(
                LOSSLESS & 1 << class == 0 || self.until[usize::from(port)][class] <= self.now,
                "a paused queue sent"
            );
        }
        sent.len()
    }

    fn check(&mut self, rig: &mut Rig) {
        for port in 0..PORTS {
            rig.control(port, self.now);
        }
        self.reported(rig);
        for port in 0..PORTS {
            for priority in 0..8 {
                let held = self.held[usize::from(port)][usize::from(priority)];
                assert_eq!(
                    rig.held(port, priority),
                    held,
                    "port {port} priority {priority}"
                );
            }
        }
        let bytes: u64 = self.held.iter().flatten().map(|held| held.0).sum();
        assert_eq!(rig.path.buffer().used().bytes, bytes);
        assert_eq!(rig.lost(), 0, "lossless loss");
        rig.assert_conserved();
    }
}

fn setup(reserved: u64, xon: u64, alpha_256: u32) -> Setup {
    // One burst is in hand when the pause is requested, and the sender's grace follows.
    let headroom = BURST as u64 * wire(LONGEST) + GRACE;
    let groups = 2 * u64::from(PORTS);
    let pool = groups * (headroom + reserved) + 200_000;
    let mut setup = Setup {
        ports: PORTS,
        pool,
        frames: pool.div_ceil(300),
        alpha_256,
        min_frame: 300,
        group: GroupConfig {
            lossless: true,
            reserved,
            headroom,
            xon,
            xon_offset: 2 * wire(LONGEST),
        },
        rate: Some(BitRate(10 * GIG)),
        ..Setup::default()
    };
    setup.queues[6].discipline = Discipline::Strict;
    setup
}

proptest! {
    #![proptest_config(crate::rig::cases::cases(200))]

    #[test]
    fn the_switch_keeps_its_books(
        events in prop::collection::vec(event(), 1..300),
        reserved in prop_oneof![Just(0u64), 0u64..20_000],
        xon in prop_oneof![Just(0u64), 0u64..10_000],
        alpha_256 in prop_oneof![Just(16u32), Just(256), Just(2048)],
    ) {
        let setup = setup(reserved, xon, alpha_256);
        let mut queues = vec![setup.queues.clone(); usize::from(setup.ports)];
        let mut rig = setup.build();
        let mut model = Model::default();
        for event in events {
            match event {
                Event::Push { from, to, priority, len, count, ecn } => {
                    model.push(&mut rig, (from, to, priority, len, count), ecn);
                }
                Event::Curves { port, priority, ecn, wred } => {
                    let queue = &mut queues[usize::from(port)][usize::from(priority)];
                    (queue.ecn, queue.wred) = (ecn, wred);
                    rig.path.reconfigure_queue(PortId(port), prio(priority), queue);
                }
                Event::Pull(port) => { model.pull(&mut rig, port); }
                Event::Hear { port, classes, quanta } => {
                    rig.hear(port, classes, quanta, model.now);
                    let until = model.now + time_of(quanta, BitRate(10 * GIG)).0;
                    for n in 0..8 {
                        if classes & 1 << n != 0 {
                            model.until[usize::from(port)][n] = until;
                        }
                    }
                }
                Event::Wait(time) => model.now += time,
                Event::Weight { port, priority, weight } => {
                    let queue = &mut queues[usize::from(port)][usize::from(priority)];
                    queue.discipline = Discipline::Dwrr(weight);
                    rig.path.reconfigure_queue(PortId(port), prio(priority), queue);
                }
            }
            model.check(&mut rig);
        }
        // The peers' pauses expire, everything drains, and every pause of ours ends.
        model.now += time_of(u16::MAX, BitRate(10 * GIG)).0;
        for _ in 0..100_000 {
            let sent: usize = (0..PORTS).map(|port| model.pull(&mut rig, port)).sum();
            if sent == 0 && (0..PORTS).all(|port| rig.path.frames_queued(PortId(port)) == 0) {
                break;
            }
            model.now += 10_000;
        }
        model.check(&mut rig);
        prop_assert_eq!(rig.path.buffer().used().frames, 0);
        prop_assert!(rig.path.buffer().in_headroom().is_zero());
        prop_assert_eq!(model.asserted, [0; PORTS as usize]);
        for port in 0..PORTS {
            prop_assert_eq!(rig.counters(port).flow.asserted.get(), 0);
            prop_assert_eq!(rig.counters(port).flow.paused.get(), 0);
        }
    }
}
