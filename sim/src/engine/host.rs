//! A host with one link: connections take turns at their rates, control packets go first, pauses are obeyed.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::{Nanos, Priority};
use npcc_pipeline::wire::bth::RoceClass;

use super::Engine;
use super::event::Event;
use super::flow::of_qpn;
use crate::frame::SimFrame;
use crate::host::Gbps;
use crate::host::np::{self, adaptive_period};
use crate::host::params::Sender;
use crate::host::pause::PauseState;
use crate::host::rc::{Answer, unwrap};
use crate::scenario::Verb;
use crate::wire::{self, Contents, Packet, opcode};

/// A host of the simulation, with its one link.
#[derive(Debug)]
pub(crate) struct Host {
    /// Engine index of its outgoing link.
    pub(crate) link: usize,
    pub(crate) line: Gbps,
    /// Sender parameter set of its card, where it is not the run's.
    pub(crate) sender: Option<Sender>,
    /// Minimum CNP interval for a flow it receives, where it is not the run's.
    pub(crate) cnp_interval: Option<Nanos>,
    /// Connections that can send and when, by priority.
    pub(crate) ready: [BinaryHeap<Reverse<(Nanos, u32)>>; 8],
    pub(crate) control: VecDeque<SimFrame>,
    pub(crate) pause: PauseState,
    /// Pause frames that have arrived and do not have an effect yet.
    pub(crate) pausing: VecDeque<SimFrame>,
    /// Time of its next scheduled [`Host`](super::event::Event::Host).
    pub(crate) wake: Nanos,
    /// Connections that end here as receivers.
    pub(crate) receives: Vec<u32>,
    /// Frames it received.
    pub(crate) received: super::link::Tally,
    pub(crate) cnps_sent: u64,
    pub(crate) cnps_received: u64,
    pub(crate) not_understood: u64,
}

impl Host {
    /// Returns the connection that is the next to send, its priority, and the time: that at which its priority resumes where that is paused.
    fn next_due(&self, now: Nanos) -> Option<(Nanos, u32, usize)> {
        let classes = wire::DATA.map(|class| Priority::new(class.priority));
        let due = classes.into_iter().filter_map(|priority| {
            let Reverse((time, index)) = self.ready[priority.index()].peek().copied()?;
            let resumes = self.pause.until(priority);
            let time = if resumes > now { resumes } else { time };
            Some((time, index, priority.index()))
        });
        due.min()
    }
}

impl Engine {
    /// Sends one frame if the host's link is free and a connection is due.
    pub(crate) fn host_turn(&mut self, host: u32) {
        let now = self.now;
        let at = host as usize;
        let free = self.links[self.hosts[at].link].free_at();
        if free > now {
            self.wake_host(host, free);
            return;
        }
        if let Some(frame) = self.hosts[at].control.pop_front() {
            self.host_send(host, frame);
            return;
        }
        while let Some((time, index, class)) = self.hosts[at].next_due(now) {
            if time > now {
                self.wake_host(host, time);
                return;
            }
            self.hosts[at].ready[class].pop();
            let flow = &mut self.flows[index as usize];
            if !flow.has_earned(now) {
                let look = flow.next_at;
                self.hosts[at].ready[class].push(Reverse((look, index)));
                continue;
            }
            let frame = if flow.can_send() {
                flow.data(now)
            } else {
                None
            };
            let Some(frame) = frame else {
                flow.armed = false;
                continue;
            };
            let next = flow.next_at;
            self.hosts[at].ready[class].push(Reverse((next, index)));
            self.host_send(host, frame);
            return;
        }
    }

    fn host_send(&mut self, host: u32, frame: SimFrame) {
        let link = self.hosts[host as usize].link;
        self.put_on(link, frame);
        let free = self.links[link].free_at();
        self.wake_host(host, free);
    }

    fn wake_host(&mut self, host: u32, time: Nanos) {
        let state = &mut self.hosts[host as usize];
        if state.wake > time || state.wake <= self.now {
            state.wake = time;
            self.queue.at(time, Event::Host(host));
        }
    }

    /// Adds the connection to its host's `ready` heap if it can send and is not yet there.
    pub(crate) fn arm(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if flow.armed || !flow.can_send() {
            return;
        }
        flow.armed = true;
        let (host, time) = (flow.src, flow.resume(now));
        self.hosts[host as usize].ready[flow.priority.index()]
            .push(Reverse((time, crate::num::small(index as u64))));
        self.wake_host(host, time);
    }

    pub(crate) fn host_control(&mut self, host: u32, frame: SimFrame) {
        self.hosts[host as usize].control.push_back(frame);
        self.wake_host(host, self.now);
    }

    /// Handles a frame that reached its host.
    pub(crate) fn host_receive(&mut self, host: u32, frame: &SimFrame) {
        let now = self.now;
        let state = &mut self.hosts[host as usize];
        state.received.add(frame);
        match wire::read(frame.data()) {
            Contents::MacControl => {
                state.pausing.push_back(SimFrame::with(frame.data()));
                let reaction = self.scenario.pfc_reaction;
                if reaction == Nanos::ZERO {
                    self.host_pauses(host);
                } else {
                    self.queue.at(now + reaction, Event::HostPauses(host));
                }
            }
            Contents::Packet(packet) => match of_qpn(packet.dest_qp) {
                Some((index, at_sender)) if index < self.flows.len() => {
                    if at_sender {
                        self.sender_receives(host, index, &packet);
                    } else if packet.class == RoceClass::Data {
                        self.receiver_receives(index, &packet);
                    }
                }
                _ => state.not_understood += 1,
            },
            Contents::Other => state.not_understood += 1,
        }
    }

    /// Lets the first pause frame that waits have its effect.
    pub(crate) fn host_pauses(&mut self, host: u32) {
        let now = self.now;
        let state = &mut self.hosts[host as usize];
        if let Some(frame) = state.pausing.pop_front() {
            let payload = frame.data().get(14..).unwrap_or_default();
            state.pause.apply(payload, state.line, now);
            self.wake_host(host, now);
        }
    }

    /// Lets the first CNP of a connection that waits have its effect.
    pub(crate) fn react(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if let Some(period) = flow.reacting.pop_front() {
            flow.rate.cnp(period, now);
        }
    }

    fn sender_receives(&mut self, host: u32, index: usize, packet: &Packet) {
        let now = self.now;
        let recovery = self.recovery;
        let flow = &mut self.flows[index];
        match packet.class {
            RoceClass::Cnp => {
                if self.chance.loses_cnp(&self.scenario.imperfections) {
                    return;
                }
                self.hosts[host as usize].cnps_received += 1;
                let period = (packet.extra > 0).then_some(Nanos(packet.extra));
                let reaction = self.scenario.reaction;
                if reaction == Nanos::ZERO {
                    flow.rate.cnp(period, now);
                } else {
                    flow.reacting.push_back(period);
                    let flow = crate::num::small(index as u64);
                    self.queue.at(now + reaction, Event::React(flow));
                }
            }
            RoceClass::Ack => {
                let number = unwrap(packet.psn, flow.tx.acked());
                if packet.extra >> 24 & 0x60 == 0x60 {
                    let seen = unwrap(crate::num::small(packet.extra & 0xff_ffff), number);
                    flow.tx.nak(number, seen, recovery, now);
                } else {
                    flow.tx.ack(number, now);
                    while let Some((timed, sent)) = flow.timed.front().copied() {
                        if timed > number {
                            break;
                        }
                        flow.timed.pop_front();
                        if timed == number {
                            flow.rate.rtt(now.since(sent), now);
                        }
                    }
                }
            }
            RoceClass::ReadRequest => {
                let first = unwrap(packet.psn, flow.tx.limit());
                let packets = packet.extra.div_ceil(flow.mtu.max(1) as u64);
                flow.tx.request(first, packets, now);
            }
            _ => {}
        }
        self.carried_is_acknowledged(index);
        self.arm(index);
    }

    fn receiver_receives(&mut self, index: usize, packet: &Packet) {
        let now = self.now;
        let host = self.flows[index].dst;
        if packet.ce {
            self.marked(index);
        }
        let flow = &mut self.flows[index];
        let before = flow.rx.expected();
        let number = unwrap(packet.psn, before);
        let answer = flow.rx.receive(number, packet.ack, self.recovery);
        let expected = flow.rx.expected();
        if expected > before {
            flow.progress = now;
            let carries = !flow.carries.is_empty();
            while let Some(burst) = flow.bursts.front().copied() {
                if burst.end > expected {
                    break;
                }
                flow.bursts.pop_front();
                self.record.completed(flow.group, now.since(burst.begun));
            }
            if carries {
                self.carried_arrives(index);
            }
        }
        let flow = &self.flows[index];
        match (flow.verb, answer) {
            (Verb::Write, Some(answer)) => {
                let (number, bytes) = match answer {
                    Answer::Ack(number) => (number, wire::aeth(false, 0)),
                    Answer::Nak(missing, seen) => (missing, wire::aeth(true, seen)),
                };
                let tos = wire::CONTROL_TOS;
                let frame = wire::packet(&flow.back, tos, opcode::ACK, number, false, &bytes, 0);
                self.host_control(host, frame);
            }
            (Verb::Read, Some(Answer::Nak(missing, _))) => {
                let frame = flow.request_for(missing, flow.requested - missing);
                self.host_control(host, frame);
            }
            (Verb::Read, _) => self.request_more(index),
            (Verb::Write, None) => {}
        }
    }

    /// READ: sends requests until [`Flow::request`](super::flow::Flow::request) has enough outstanding.
    pub(crate) fn request_more(&mut self, index: usize) {
        while let Some(frame) = self.flows[index].request() {
            let host = self.flows[index].dst;
            self.host_control(host, frame);
        }
    }

    /// Handles a marked packet at a flow's notification point.
    fn marked(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        match flow.np.marked(flow.cnp_interval, self.within, self.now) {
            np::Answer::Now => self.notify(index),
            np::Answer::At(end) => {
                let flow = crate::num::small(index as u64);
                self.queue.at(end, Event::CnpDue(flow));
            }
            np::Answer::Nothing => {}
        }
    }

    /// Sends the CNP that a flow's receiver owes, if it does.
    pub(crate) fn cnp_due(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.np.is_due(flow.cnp_interval, self.now) {
            self.notify(index);
        }
    }

    /// Sends a CNP to a flow's sender.
    fn notify(&mut self, index: usize) {
        let now = self.now;
        let flow = &self.flows[index];
        let (host, interval, back) = (flow.dst, flow.cnp_interval, flow.back);
        let period = flow.adaptive.then(|| {
            let receives = &self.hosts[host as usize].receives;
            let recent = |flow: &&u32| self.flows[**flow as usize].np.is_recent(now);
            adaptive_period(interval, receives.iter().filter(recent).count())
        });
        let frame = wire::cnp(&back, period);
        self.hosts[host as usize].cnps_sent += 1;
        self.host_control(host, frame);
    }
}
