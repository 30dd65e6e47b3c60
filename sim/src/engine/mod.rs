//! The discrete-event engine: one thread, one clock, one seed.
//!
//! Before the traffic starts, warm connections are used once: one packet and its answer. Time 0 of reports is the start of the
//! traffic.

mod application;
mod build;
mod converge;
mod event;
mod flow;
mod host;
mod imperfect;
mod lease;
mod link;
mod live;
mod outcome;
mod record;
mod switch;

use std::collections::VecDeque;

use npcc_pipeline::frame::{FrameBuf, wire_len};
use npcc_pipeline::units::{Nanos, Priority};
use npcc_roce::pair::foreign::ReportedEnd;

use crate::frame::SimFrame;
use crate::host::np::WithinInterval;
use crate::host::params::Sender;
use crate::host::rc::Recovery;
use crate::scenario::{Case, Scenario, Verb};
pub use build::BuildError;
use event::{Event, EventQueue, Mark};
use flow::{Burst, Flow};
use host::Host;
pub use link::Tally;
use link::{End, Link};
pub use live::{Attachment, Live, Seen};
pub use outcome::{Audit, GroupOutcome, Outcome};
use record::Record;
pub use record::Sample;
use switch::Switch;

/// Priority of acknowledgements and CNPs.
const CONTROL: u8 = npcc_cnp::defaults::CNP_PRIORITY;
/// Interval at which retransmission timeouts are checked.
const EXPIRE: Nanos = Nanos::from_millis(1);

/// A running simulation.
#[derive(Debug)]
pub struct Engine {
    now: Nanos,
    queue: EventQueue,
    links: Vec<Link>,
    hosts: Vec<Host>,
    switches: Vec<Switch>,
    flows: Vec<Flow>,
    applications: Vec<application::Placed>,
    groups: Vec<String>,
    record: Record,
    scenario: Scenario,
    sender: Sender,
    recovery: Recovery,
    /// Effect of marks within the CNP interval.
    within: WithinInterval,
    patience: Nanos,
    /// The reported queue, as (switch, port) and priority; `watch_rate` is its rate in Gb/s.
    watch: (u32, u8),
    watch_priority: Priority,
    watch_rate: f64,
    /// Wire bytes of the longest data packet.
    frame_wire: u16,
    start: Nanos,
    end: Nanos,
    /// Time between two points of the curves.
    step: Nanos,
    /// Links between switches, by scenario index: both directions and their attachment points.
    trunks: Vec<build::topology::Trunk>,
    /// Random imperfections and their generator.
    chance: imperfect::Chance,
    /// The switch that is an external process; `leaving`: frames on their way to it, with the port they go into.
    outside: Option<u32>,
    leaving: VecDeque<(u8, SimFrame)>,
    /// Ends that hosts report to that process.
    reported: VecDeque<ReportedEnd>,
}

/// Runs one case of a scenario.
///
/// # Errors
/// When the topology does not fit the switch (ports), or a host cannot be reached.
pub fn run(scenario: &Scenario, case: &Case) -> Result<Outcome, BuildError> {
    let mut engine = Engine::build(scenario, case)?;
    engine.go();
    Ok(engine.outcome())
}

impl Engine {
    fn go(&mut self) {
        while let Some((time, event)) = self.queue.pop() {
            if time > self.end {
                break;
            }
            self.now = time;
            self.happen(event);
        }
        self.now = self.end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(link) => self.arrive(link),
            Event::Host(host) => {
                if self.hosts[host as usize].wake == self.now {
                    self.hosts[host as usize].wake = Nanos(u64::MAX);
                    self.host_turn(host);
                }
            }
            Event::Port(switch, port) => {
                let wake = &mut self.switches[switch as usize].ports[usize::from(port)].wake;
                if *wake == self.now {
                    *wake = Nanos(u64::MAX);
                    self.port_turn(switch, port);
                }
            }
            Event::Control(switch) => self.control(switch),
            Event::CnpMade(switch) => self.cnps_made(switch, 1),
            Event::Turn(switch) => self.turn(switch),
            Event::Offer(flow) => self.offer(flow as usize),
            Event::Warm(flow) => self.warm(flow as usize),
            Event::React(flow) => self.react(flow as usize),
            Event::HostPauses(host) => self.host_pauses(host),
            Event::Lease(flow) => self.lease(flow as usize),
            Event::CnpDue(flow) => self.cnp_due(flow as usize),
            Event::Application(application, moment) => self.goes_on(application, moment),
            Event::Expire => self.expire(),
            Event::Mark(mark) => self.mark(mark),
            Event::Fail(index) => self.fail(index as usize),
            Event::Reroute(index) => self.reroute(index as usize),
            Event::FarPause(index) => self.far_pause(index as usize),
        }
    }

    fn arrive(&mut self, index: u32) {
        let link = &mut self.links[index as usize];
        let to = link.to;
        let (frame, next) = link.arrive(self.now);
        if let Some(next) = next {
            self.queue.at(next, Event::Arrive(index));
        }
        match (frame, to) {
            (Some(frame), End::Host(host)) => self.host_receive(host, &frame),
            (Some(frame), End::Switch(switch, port)) if self.outside == Some(switch) => {
                self.leave(port, frame);
            }
            (Some(frame), End::Switch(switch, port)) => self.switch_receive(switch, port, frame),
            (None, _) => {}
        }
    }

    /// Puts a frame on a link.
    fn put_on(&mut self, link: usize, frame: SimFrame) {
        debug_assert!(wire_len(frame.data().len()) <= self.frame_wire);
        if let Some(arrives) = self.links[link].send(frame, self.now) {
            let index = crate::num::small(link as u64);
            self.queue.at(arrives, Event::Arrive(index));
        }
    }

    /// Sends one packet and gets its answer, so that the switch can learn the connection.
    fn warm(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.base = 1;
        self.wants(index, 1);
    }

    /// Gives the connection `packets` more packets to move.
    fn wants(&mut self, index: usize, packets: u64) {
        let flow = &mut self.flows[index];
        match flow.verb {
            Verb::Write => {
                flow.tx.offer(packets);
                self.arm(index);
            }
            Verb::Read => {
                flow.wanted = flow.wanted.saturating_add(packets);
                flow.progress = self.now;
                self.request_more(index);
            }
        }
    }

    fn offer(&mut self, index: usize) {
        // An application offers its own messages.
        let Some(group) = self.scenario.flows.get(self.flows[index].group) else {
            return;
        };
        let since = self.now.since(self.start);
        if group.stop.is_some_and(|stop| since >= stop) {
            return;
        }
        let mtu = u64::from(self.scenario.mtu);
        match (group.burst, group.every) {
            (Some(burst), Some(every)) => {
                let packets = burst.0.div_ceil(mtu).max(1);
                self.queue.at(
                    self.now + every.max(Nanos(1)),
                    Event::Offer(crate::num::small(index as u64)),
                );
                self.wants(index, packets);
                let flow = &mut self.flows[index];
                let end = match flow.verb {
                    Verb::Write => flow.tx.limit(),
                    Verb::Read => flow.wanted,
                };
                flow.bursts.push_back(Burst {
                    begun: self.now,
                    end,
                });
            }
            _ => self.wants(index, u64::MAX / 4),
        }
    }

    fn expire(&mut self) {
        let (now, patience) = (self.now, self.patience);
        for index in 0..self.flows.len() {
            let flow = &mut self.flows[index];
            match flow.verb {
                Verb::Write => {
                    if flow.tx.expire(patience, now) {
                        self.arm(index);
                    }
                }
                Verb::Read => {
                    let missing = flow.requested - flow.rx.expected();
                    if missing > 0 && now.since(flow.progress) >= patience {
                        flow.progress = now;
                        let (frame, host) =
                            (flow.request_for(flow.rx.expected(), missing), flow.dst);
                        self.host_control(host, frame);
                    }
                }
            }
        }
        self.queue.at(now + EXPIRE, Event::Expire);
    }

    fn mark(&mut self, mark: Mark) {
        let link = self.switches[self.watch.0 as usize].ports[usize::from(self.watch.1)].link;
        let now = self.now;
        let link = &self.links[link];
        // A simulated switch waits for its link. One outside may be ahead of it: its shaper saves up credit while it is idle.
        let through = match self.outside {
            Some(_) => link.carried(now),
            None => link.sent.bytes,
        };
        match mark {
            Mark::Start => {
                self.record.start(through, now);
                self.queue.at(now + self.step, Event::Mark(Mark::Sample));
            }
            Mark::Utilisation => {
                let bits = (through - self.record.through_at_start) as f64 * 8.0;
                let time = now.since(self.start).0.max(1) as f64;
                self.record.utilisation = Some(bits / time / self.watch_rate);
            }
            Mark::Goodput => {
                self.record.goodput_since = now;
                for flow in &mut self.flows {
                    flow.delivered_before = flow.rx.expected();
                    flow.short_before = flow.short;
                }
            }
            Mark::Window => self.window_ends(),
            Mark::Sample => {
                let bits = (through - self.record.through_before) as f64 * 8.0;
                let sample = Sample {
                    at: now.since(self.start),
                    depth: self.record.take_high(),
                    offered: self.offered(),
                    through: bits / self.step.0.max(1) as f64,
                    paused: Nanos(self.hosts.iter().map(|host| host.pause.total.0).sum()),
                    cnps: self.hosts.iter().map(|host| host.cnps_received).sum(),
                };
                self.record.through_before = through;
                self.record.samples.push(sample);
                self.queue.at(now + self.step, Event::Mark(Mark::Sample));
            }
        }
    }

    fn fail(&mut self, index: usize) {
        let name = self.scenario.failures[index].link.clone();
        if let Some(trunk) = self.trunks.iter().find(|trunk| trunk.name == name) {
            for link in trunk.links {
                self.links[link].fail();
            }
        }
    }
}

#[cfg(test)]
mod card_tests;
#[cfg(test)]
mod moved_tests;
