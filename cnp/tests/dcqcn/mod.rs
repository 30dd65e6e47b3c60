//! Four senders, a queue, a switch's control core, and a length of wire between them.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a model of senders in a test: rates are floating point, and a mistake may panic"
)]

use std::collections::VecDeque;
use std::ops::Range;

use npcc_cnp::control::config::Settings;
use npcc_cnp::control::queue_state::QueueState;
use npcc_cnp::host_rules::HostRules;
use npcc_cnp::policy::PolicyKind;
use npcc_pipeline::craft::Craft;
use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::{BitRate, Nanos};
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;
use npcc_testkit::npcc::{self, World};

const SENDERS: u32 = 4;
const LINE: f64 = 100e9;
const PAYLOAD: usize = 4_096;

/// Figures of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// Maximum depth of the queue, in wire bytes.
    pub(crate) peak: u64,
    /// Share of the link's time in which it sent.
    pub(crate) utilisation: f64,
    /// Number of CNPs.
    pub(crate) cnps: usize,
    /// Slowest and fastest sender's share of the bytes.
    pub(crate) shares: (f64, f64),
    /// Mean waiting time of frames in the second half of the run, in us.
    pub(crate) wait: f64,
}

/// A DCQCN reaction point.
struct Sender {
    rate: f64,
    target: f64,
    alpha: f64,
    signalled: bool,
    cnp_for_alpha: bool,
    cnp_for_decrease: bool,
    next_alpha: u64,
    next_decrease: u64,
    next_increase: u64,
    stage: u32,
    next_frame: u64,
    bytes: u64,
    /// True if a rate back at the line frees the limiter, so that the next CNP is a first one.
    resets: bool,
}

impl Sender {
    fn new(number: u32) -> Sender {
        Sender {
            rate: LINE,
            target: LINE,
            alpha: 1.0,
            signalled: false,
            cnp_for_alpha: false,
            cnp_for_decrease: false,
            next_alpha: u64::MAX,
            next_decrease: u64::MAX,
            next_increase: u64::MAX,
            stage: 0,
            next_frame: u64::from(number) * 80,
            bytes: 0,
            resets: false,
        }
    }

    fn cnp(&mut self, now: u64) {
        if self.signalled {
            (self.cnp_for_alpha, self.cnp_for_decrease) = (true, true);
            return;
        }
        self.signalled = true;
        self.alpha = 1.0;
        self.next_alpha = now + 1_000;
        self.decrease(now);
    }

    fn decrease(&mut self, now: u64) {
        self.target = self.rate;
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(1e6);
        self.stage = 0;
        (self.next_decrease, self.next_increase) = (now + 4_000, now + 300_000);
        self.cnp_for_decrease = false;
    }

    fn time(&mut self, now: u64) {
        const G: f64 = 5.0 / 1024.0;
        if now >= self.next_alpha {
            self.alpha *= 1.0 - G;
            if std::mem::take(&mut self.cnp_for_alpha) {
                self.alpha += G;
            }
            self.next_alpha += 1_000;
        }
        if now >= self.next_decrease {
            if self.cnp_for_decrease {
                self.decrease(now);
            } else {
                self.next_decrease = now + 4_000;
            }
        }
        if now >= self.next_increase {
            self.target += match self.stage {
                0 => 0.0,
                1 => 20e6,
                _ => 200e6,
            };
            self.target = self.target.min(LINE);
            self.rate = (self.rate + self.target) / 2.0;
            self.stage += 1;
            self.next_increase = now + 300_000;
            if self.resets && self.rate >= LINE * 127.0 / 128.0 {
                let next_frame = self.next_frame;
                (self.rate, self.target, self.signalled) = (LINE, LINE, false);
                (self.next_alpha, self.next_decrease, self.next_increase) =
                    (u64::MAX, u64::MAX, u64::MAX);
                self.next_frame = next_frame;
            }
        }
    }
}

pub(crate) struct Bed {
    senders: Vec<Sender>,
    frames: Vec<Vec<u8>>,
    world: World,
    phase: u64,
    /// Delay of the wire between the senders and the switch, one way, in ns.
    near: u64,
    /// Time in which the far end pauses the link, in ns after the first frame.
    pause: Range<u64>,
    /// Part of the link that neighbours leave to the queue, and whether the core gets departures.
    served: (f64, bool),
    /// Frames on their way to the queue.
    coming: VecDeque<(u64, usize)>,
    /// CNPs on their way to their sender.
    going: VecDeque<(u64, usize)>,
}

fn thresholds(drain: BitRate) -> [u64; 3] {
    [30, 120, 240].map(|us| drain.bytes_in(Nanos::from_micros(us)))
}

impl Bed {
    /// Makes a bed with 5 us of wire each way; `phase` is the time from the first frame to the first look at the queue.
    pub(crate) fn new(policy: PolicyKind, phase: u64) -> Bed {
        Bed::with(policy, phase, (5_000, None), HostRules::all_answer())
    }

    /// Makes a bed in which nothing is known of the senders.
    pub(crate) fn of_strangers(policy: PolicyKind, phase: u64) -> Bed {
        Bed::with(policy, phase, (5_000, None), HostRules::default())
    }

    /// Makes a bed with `near` ns of wire to the senders; `replies` is the time in which they, or an attacker in their names, answered
    /// READs of the far side before.
    pub(crate) fn with_near(
        policy: PolicyKind,
        phase: u64,
        near: u64,
        replies: Option<u64>,
    ) -> Bed {
        Bed::with(policy, phase, (near, replies), HostRules::all_answer())
    }

    fn with(
        policy: PolicyKind,
        phase: u64,
        (near, replies): (u64, Option<u64>),
        signalled: HostRules,
    ) -> Bed {
        let drain = BitRate(100_000_000_000);
        let settings = Settings {
            hosts: signalled,
            ..npcc::settings(thresholds(drain), drain, policy)
        };
        let mut world = World::new(settings, 1_024);
        let frames: Vec<_> = (0..SENDERS).map(|n| frame(n, 0x0a, PAYLOAD)).collect();
        // Warm: each has sent once and been answered, a millisecond ago.
        for (n, data) in (0..SENDERS).zip(&frames) {
            world.pass(data, true);
            world.pass(&frame(n, 0x11, 0), false);
        }
        world.tick(0, |_| {});
        if let Some(replies) = replies {
            read(&mut world, replies);
        }
        Bed {
            senders: (0..SENDERS).map(Sender::new).collect(),
            frames,
            world,
            phase,
            near,
            pause: 0..0,
            served: (1.0, true),
            coming: VecDeque::new(),
            going: VecDeque::new(),
        }
    }

    /// Makes the senders' alpha start anew once their rate is back at the line.
    pub(crate) fn with_resets(mut self) -> Bed {
        for sender in &mut self.senders {
            sender.resets = true;
        }
        self
    }

    /// Makes the far end pause the link at this time, for this long.
    pub(crate) fn with_pause(mut self, at_us: u64, us: u64) -> Bed {
        self.pause = at_us * 1_000..(at_us + us) * 1_000;
        self
    }

    /// Makes neighbours leave the queue this part of the link; the core gets departures if `is_signalled`.
    pub(crate) fn beside_others(mut self, part: f64, is_signalled: bool) -> Bed {
        self.served = (part, is_signalled);
        self
    }

    /// Runs for `us` microseconds from the first frame in the queue.
    pub(crate) fn run(mut self, us: u64) -> Figures {
        let begin = 10_000_000;
        let (step, end) = (40, begin + us * 1_000);
        let near = self.near;
        let (mut depth, mut peak, mut sent, mut cnps) = (0.0f64, 0u64, 0.0f64, 0);
        let (mut paused, mut next_look) = (0, begin + self.phase);
        let (part, is_signalled) = self.served;
        let (mut entered, mut waits, mut steps) = (0.0f64, 0.0, 0.0f64);
        for sender in &mut self.senders {
            sender.next_frame += begin - near;
        }
        let mut now = begin - near;
        while now < end {
            now += step;
            while self.going.front().is_some_and(|(at, _)| *at <= now) {
                let (_, sender) = self.going.pop_front().unwrap();
                self.senders[sender].cnp(now);
            }
            for (number, sender) in self.senders.iter_mut().enumerate() {
                sender.time(now);
                let wire = f64::from(wire_len(self.frames[number].len()));
                while sender.next_frame <= now {
                    self.coming.push_back((sender.next_frame + near, number));
                    sender.next_frame += (wire * 8e9 / sender.rate) as u64;
                }
            }
            while self.coming.front().is_some_and(|(at, _)| *at <= now) {
                let (_, number) = self.coming.pop_front().unwrap();
                let data = &self.frames[number];
                let wire = u64::from(wire_len(data.len()));
                self.world.now = Nanos(now);
                self.world.pass(data, true);
                self.senders[number].bytes += wire;
                depth += wire as f64;
                entered += wire as f64;
            }
            peak = peak.max(depth as u64);
            let is_paused = self.pause.contains(&now.saturating_sub(begin));
            paused += if is_paused { step } else { 0 };
            if now >= begin && !is_paused {
                let out = depth.min(LINE * part * step as f64 / 8e9);
                depth -= out;
                sent += out;
            }
            if now >= begin + us * 500 {
                waits += depth * 8e6 / (LINE * part);
                steps += 1.0;
            }
            if now >= next_look {
                let going = &mut self.going;
                let level = QueueState {
                    depth: depth as u64,
                    paused: Nanos(paused),
                    entered: is_signalled.then_some(entered as u64),
                    ..QueueState::default()
                };
                self.world.now = Nanos(now);
                self.world.tick(level, |order| {
                    let sender = order.flow.dest_qp().get() - 0x11;
                    assert_eq!(order.sender_qpn.get(), 0x1_0018 + sender);
                    going.push_back((now + near, sender as usize));
                    cnps += 1;
                });
                next_look += self.world.core.period().0;
            }
        }
        let total: u64 = self.senders.iter().map(|sender| sender.bytes).sum();
        let share = |sender: &Sender| sender.bytes as f64 / total as f64;
        let shares = self.senders.iter().map(share);
        Figures {
            peak,
            wait: waits / steps.max(1.0),
            utilisation: sent / (LINE * part * us as f64 / 8e6),
            cnps,
            shares: shares.fold((1.0, 0.0), |(low, high), share| {
                (share.min(low), share.max(high))
            }),
        }
    }
}

/// Replays READs of the far side over four connections of each sender.
fn read(world: &mut World, replies: u64) {
    let connections = 0..SENDERS * 4;
    let mut packets: Vec<_> = connections
        .flat_map(|n| {
            let numbers = (0x2_0100 + n, 0x100 + n);
            let request = frame_of(n % SENDERS, numbers, 0x0c, 16);
            let reply = frame_of(n % SENDERS, numbers, 0x10, PAYLOAD);
            let requested = 2_000_000 + u64::from(n) * 100_000;
            [
                (requested, false, request),
                (requested + replies, true, reply),
            ]
        })
        .collect();
    packets.sort_by_key(|(at, ..)| *at);
    for (at, out, packet) in packets {
        world.now = Nanos(at);
        world.pass(&packet, out);
        world.tick(0, |_| {});
    }
}

/// Frame of a sender's data, or of the ACK that comes back to it.
fn frame(number: u32, opcode: u8, payload: usize) -> Vec<u8> {
    frame_of(number, (0x1_0018 + number, 0x11 + number), opcode, payload)
}

fn frame_of(number: u32, (near, far): (u32, u32), opcode: u8, payload: usize) -> Vec<u8> {
    let sender = [10, 0, 1, 3 + u8::try_from(number).unwrap()].into();
    let receiver = [10, 0, 2, 2].into();
    let mut craft = if matches!(opcode, 0x11 | 0x0c) {
        Craft::roce(receiver, sender, opcode, near, payload)
    } else {
        Craft::roce(sender, receiver, opcode, far, payload)
    };
    craft.src_port = port_of(Qpn::new(near), Qpn::new(far));
    craft.frame()
}
