//! A world in memory: the whole switch between hosts, stepped by one thread on a clock of its own.
//!
//! Workers and control core are the appliance's, made from a configuration by the functions that the appliance uses, and run by
//! `Worker::iterate` and `ControlLoop::iterate`, which its threads call too. Around them are cards, wires and hosts in memory ([`devices`],
//! [`host`]). The world's events have an order, by time and then by number, and all chance comes from one stream ([`World::chance`]): the
//! same configuration, seed and calls give the same bytes at the same times.
//!
//! A law on the world:
//!
//! ```ignore
//! let mut world = World::new(&config::usual(""), 7);              // configuration, seed
//! let until = world.now + 2 * MS;
//! let flow = world.connect(Traffic { from: 0, to: 2, until, ..Traffic::default() });
//! world.stall_control(300 * US);                                  // `settings`: paces of threads, delays of links
//! world.pause(2, 1 << 3, 200 * US);                               // the far host pauses the switch
//! world.run_to(until);
//! assert!(!world.flows[flow].cnps.is_empty());
//! world.set_link(1, false);                                       // `change`: links, and `reload` of another configuration
//! world.restart(300 * US);                                        // `restart`: killed, and another begins after so long
//! world.rest(10 * MS);                                            // sources end; until nothing is on its way
//! laws::all(&mut world);                                          // conservation, CNPs, lossless; order is always checked
//! ```
//!
//! Workers, control core, cards, hosts and flows are public: a law reads `world.workers[0].path.counters()`, `world.control.core.status()`,
//! `world.hosts[2].heard`, `world.cards[0].borrow().missed`. [`plan`] draws faults from the seed, `world_swarm.rs` runs many.
//!
//! Real are: receive and transmit of a worker, the packet path, handoff between workers, the control core, routes, the change of a
//! configuration from its text to the workers. Not covered: DPDK and its drivers, management (its threads, sockets and reports), Linux and
//! the kernel's routes, sleeping threads, ports that obey pauses by themselves, and what two threads do at one time: the world takes turns.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::or_fun_call,
    clippy::too_many_lines,
    unreachable_pub,
    reason = "each law uses its part of the world, and stops at what it did not expect"
)]

mod build;
mod change;
pub mod config;
pub mod devices;
pub mod host;
pub mod laws;
pub mod packets;
pub mod plan;
mod restart;
pub mod seeds;
pub mod settings;
pub mod sometimes;
mod spread;
pub mod trace;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use npcc_appliance::apply::desired::ObservedLink;
use npcc_appliance::apply::running::RunningState;
use npcc_appliance::wiring::live_routes::LiveRoutes;
use npcc_engine::control::commands::ControlCommands;
use npcc_engine::control::{ControlLoop, Turn};
use npcc_engine::worker::Worker;
use npcc_engine::worker::command::WorkerCommands;
use npcc_pipeline::egress::rng::Xorshift;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::units::{Mac, Nanos};
use npcc_pipeline::wire::mac_control;

use self::devices::{Buffers, Clock, Memory, Shared};
pub use self::host::Traffic;
use self::host::{Flood, Flow, Forge, Host};
use self::packets::Read;
use self::restart::Saved;
use self::settings::Settings;
use self::trace::Trace;

/// A microsecond and a millisecond in ns, the world's unit.
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// Time between two looks of the control core at its alarms, while no call is due.
const LOOK: u64 = 2_000;

/// Something that happens at a time.
#[derive(Debug)]
enum Event {
    Worker(usize),
    Control,
    /// A frame reaches a port of the switch, or the host at its other end, unless the link went down since.
    ToSwitch(usize, Vec<u8>, u32),
    ToHost(usize, Vec<u8>, u32),
    Host(usize),
    Fault(plan::Fault),
}

/// The switch and all around it.
pub struct World {
    pub now: u64,
    pub seed: u64,
    pub settings: Settings,
    pub workers: Vec<Worker<(), Memory>>,
    pub control: ControlLoop<Clock>,
    pub cards: Vec<Shared>,
    pub hosts: Vec<Host>,
    pub flows: Vec<Flow>,
    pub pool: Buffers,
    pub trace: Trace,
    /// Number of buffers of the pool that are in use while nothing is on its way: spare ones.
    pub spare: usize,
    time: Rc<Cell<u64>>,
    events: BTreeMap<(u64, u64), Event>,
    number: u64,
    chance: Xorshift,
    /// Configuration file, and memory that outlives the switch; see `restart`.
    text: String,
    saved: Saved,
    // Ends of what changes the configuration; see `change`.
    commands: Arc<WorkerCommands>,
    npcc: Arc<ControlCommands>,
    routes: Option<LiveRoutes>,
    down: Arc<DownPorts>,
    running: Option<RunningState>,
    /// Faults that came while a change was under way, in their order.
    deferred: Vec<plan::Fault>,
    links: Vec<ObservedLink>,
    macs: Vec<Mac>,
    /// Time of the latest CNP to each queue pair, and decisions of the control core that were read.
    signalled: BTreeMap<(IpAddr, u32), u64>,
    decided: u64,
}

impl World {
    /// Returns a number below `bound` from the one stream of chance.
    pub fn chance(&mut self, bound: u64) -> u64 {
        (u64::from(self.chance.next_u32()) * bound) >> 32
    }

    fn plan(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.events.insert((at.max(self.now), self.number), event);
    }

    /// Runs until a time.
    pub fn run_to(&mut self, until: u64) {
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= until
        {
            let ((at, _), event) = entry.remove_entry();
            self.now = at;
            self.time.set(at);
            self.happen(event);
        }
        // A change of the configuration may have taken longer.
        self.now = self.now.max(until);
        self.time.set(self.now);
    }

    /// Ends all sources, and runs until nothing is on its way and no port is paused.
    ///
    /// # Panics
    /// It takes longer than `bound`.
    pub fn rest(&mut self, bound: u64) {
        for flow in &mut self.flows {
            flow.next = None;
        }
        for host in &mut self.hosts {
            host.floods.clear();
        }
        let from = self.now;
        while !self.is_at_rest() {
            assert!(
                self.now - from < bound,
                "not at rest {} us after the last source ended: {}\n{}",
                bound / US,
                self.state(),
                self.replay()
            );
            self.run_to(self.now + 10 * US);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Worker(index) => self.worker_turn(index),
            Event::Control => self.control_turn(),
            Event::ToSwitch(port, frame, flaps) => self.receive(port, &frame, flaps),
            Event::ToHost(port, frame, flaps) => self.deliver(port, &frame, flaps),
            Event::Host(port) => {
                if self.hosts[port].planned == Some(self.now) {
                    self.hosts[port].planned = None;
                    self.host_turn(port);
                }
            }
            Event::Fault(fault) => self.strike(fault),
        }
    }

    fn worker_turn(&mut self, index: usize) {
        let pace = self.settings.workers[index];
        let away = pace.away_until > self.now;
        let mut next = pace.away_until;
        if !away {
            let moved = self.workers[index].iterate(Nanos(self.now));
            next =
                self.now + pace.turn + moved as u64 * pace.frame + self.chance(pace.turn / 4 + 1);
            self.take_sent();
        }
        self.plan(next, Event::Worker(index));
    }

    /// Puts what the cards have sent on their wires.
    fn take_sent(&mut self) {
        for port in 0..self.cards.len() {
            let sent = std::mem::take(&mut self.cards[port].borrow_mut().out);
            for frame in sent {
                self.trace.frame(frame.at, port, &frame.bytes);
                let arrives = self.settings.links[port].arrival(0, frame.at);
                self.plan(arrives, Event::ToHost(port, frame.bytes, frame.flaps));
            }
        }
    }

    fn control_turn(&mut self) {
        let away = self.settings.control.away_until;
        if away > self.now {
            return self.plan(away, Event::Control);
        }
        let turn = self.control.iterate(Nanos(self.now));
        if self.control.core.status().log.noted() - self.decided > 1_024 {
            laws::cnp_intervals(self);
        }
        // The clock has moved by what the call took.
        let done = self.time.get();
        let next = match turn {
            Turn::Waits(next) => next
                .0
                .min(self.now + self.settings.control.look)
                .max(self.now + 1),
            Turn::Called => done.max(self.now + 500),
        };
        self.time.set(self.now);
        self.plan(next, Event::Control);
    }

    fn receive(&mut self, port: usize, frame: &[u8], flaps: u32) {
        let mut card = self.cards[port].borrow_mut();
        if !card.up || card.flaps != flaps {
            self.trace.lost += 1;
            return;
        }
        let queues = card.rx.len();
        let before = card.missed;
        card.receive(spread::queue(frame, queues), frame, &self.pool);
        if card.missed > before {
            sometimes::seen("a receive ring or the pool was full");
        }
    }

    fn deliver(&mut self, port: usize, frame: &[u8], flaps: u32) {
        {
            let card = self.cards[port].borrow();
            if !card.up || card.flaps != flaps {
                self.trace.lost += 1;
                return;
            }
        }
        self.trace.delivered += 1;
        match packets::read(frame) {
            Read::Pfc(quanta) => {
                self.hosts[port].hear(quanta, self.now);
                if quanta.iter().flatten().any(|quanta| *quanta > 0) {
                    sometimes::seen("a host was paused");
                }
            }
            Read::Data { qpn, psn, from, to } => self.take_data(port, (qpn, psn), (from, to)),
            Read::Cnp { qpn, to } => {
                let mut flows = self.flows.iter_mut();
                let flow = flows.find(|flow| flow.sender == qpn && flow.from == port);
                let known = flow.map(|flow| flow.slow_down(self.now)).is_some();
                sometimes::seen("a sender got a CNP");
                assert!(
                    known && self.hosts[port].address == to,
                    "a CNP to queue pair {qpn:#x} of {to} at port {port}, which sends nothing\n{}",
                    self.replay()
                );
            }
            Read::Req { id } => {
                let flow = self
                    .flows
                    .iter()
                    .find(|flow| flow.id == Some(id) && flow.to == port);
                if let Some(flow) = flow {
                    let (to, receiver) = (self.hosts[flow.from].address, flow.receiver);
                    let answer = packets::rep(self.hosts[port].way(to), id, receiver);
                    self.hosts[port].answers.push_back(answer);
                }
            }
            Read::Rep { id } => {
                let now = self.now;
                let flow = self
                    .flows
                    .iter_mut()
                    .find(|flow| flow.id == Some(id) && flow.from == port);
                if let Some(flow) = flow {
                    (flow.connected, flow.next) = (true, Some(now));
                }
            }
            Read::Ack { .. } | Read::Other => {}
        }
        self.wake(port);
    }

    fn take_data(&mut self, port: usize, (qpn, psn): (u32, u32), (from, to): (Ipv4Addr, Ipv4Addr)) {
        let flow = self
            .flows
            .iter_mut()
            .find(|flow| flow.receiver == qpn && flow.to == port);
        // A number that the sender never sent is forged, and a card takes no such packet.
        let sent = |flow: &&mut Flow| psn < flow.sent;
        let Some(flow) = flow.filter(|_| self.hosts[port].address == to).filter(sent) else {
            return;
        };
        if psn < flow.expected {
            let last = flow.expected - 1;
            let replay = self.replay();
            panic!(
                "packet {psn} of queue pair {qpn:#x} came after {last}: order is lost\n{replay}"
            );
        }
        flow.expected = psn + 1;
        flow.received += 1;
        flow.first_at.get_or_insert(self.now);
        if flow.answers && psn.is_multiple_of(4) {
            let answer = packets::ack(self.hosts[port].way(from), (flow.sender, flow.port()), psn);
            self.hosts[port].answers.push_back(answer);
        }
    }

    /// Lets a host look whether it has something to send.
    pub fn wake(&mut self, port: usize) {
        let now = self.now;
        if self.hosts[port].planned.is_none_or(|at| at > now) {
            self.hosts[port].planned = Some(now);
            self.plan(now, Event::Host(port));
        }
    }

    fn host_turn(&mut self, port: usize) {
        let addresses: Vec<Ipv4Addr> = self.hosts.iter().map(|host| host.address).collect();
        let (sent, next) = self.hosts[port].turn(&mut self.flows, &addresses, self.now);
        if let Some((at, frame)) = sent {
            self.trace.offered += 1;
            let (up, flaps) = {
                let card = self.cards[port].borrow();
                (card.up, card.flaps)
            };
            if up {
                let arrives = self.settings.links[port].arrival(1, at);
                self.plan(arrives, Event::ToSwitch(port, frame, flaps));
            } else {
                self.trace.lost += 1;
            }
        }
        if let Some(next) = next {
            self.hosts[port].planned = Some(next);
            self.plan(next, Event::Host(port));
        }
    }

    /// Begins a connection now; returns its index in [`World::flows`].
    pub fn connect(&mut self, traffic: Traffic) -> usize {
        let index = self.flows.len();
        let number = u32::try_from(index).unwrap();
        let id = traffic.managed.then_some(0x100 + number);
        let mut flow = Flow {
            from: traffic.from,
            to: traffic.to,
            sender: 0x1_0000 + 0x35 * number,
            receiver: 0x2_0000 + 0x17 * number,
            id,
            connected: id.is_none(),
            priority: traffic.priority,
            len: traffic.len,
            gap: traffic.gap,
            now_gap: traffic.gap,
            next: id.is_none().then_some(self.now),
            until: traffic.until,
            answers: traffic.answers,
            sent: 0,
            expected: 0,
            received: 0,
            first_at: None,
            cnps: Vec::new(),
        };
        if let Some(by) = traffic.by {
            self.steer(&mut flow, by);
        }
        if let Some(id) = id {
            let to = self.hosts[flow.to].address;
            let host = &mut self.hosts[flow.from];
            let req = packets::req(host.way(to), id, flow.sender);
            host.answers.push_back(req);
        }
        self.flows.push(flow);
        self.wake(traffic.from);
        index
    }

    /// Lets the host at a port send `per_second` frames of `forge` from now to `until`, whatever comes back.
    pub fn flood(&mut self, port: usize, per_second: u64, until: u64, forge: Forge) {
        let now = self.now * 1_000;
        self.hosts[port].floods.push(Flood {
            forge,
            gap: 1_000_000_000_000 / per_second.max(1),
            next: now,
            until: until * 1_000,
            number: 0,
        });
        self.wake(port);
    }

    /// Lets the host at a port pause the switch's priorities in `classes` for a time.
    pub fn pause(&mut self, port: usize, classes: u8, time: u64) {
        let (now, until) = (self.now, self.now + time);
        self.hosts[port].pause(classes, now, until);
        self.wake(port);
    }

    /// Stops the workers, as the end of the process does. Nothing happens afterwards.
    pub fn stop(&mut self) {
        self.events
            .retain(|_, event| !matches!(event, Event::Worker(_)));
        let mut stopping: Vec<_> = self
            .workers
            .iter()
            .map(|worker| Some(worker.stop()))
            .collect();
        while stopping.iter().any(Option::is_some) {
            for (worker, state) in self.workers.iter_mut().zip(&mut stopping) {
                if let Some(progress) = state
                    && worker.finish(progress, Nanos(self.now))
                {
                    *state = None;
                }
            }
            self.take_sent();
            self.run_to(self.now + US);
        }
        for worker in &mut self.workers {
            worker.end();
        }
    }

    /// The command that runs this world again.
    pub fn replay(&self) -> String {
        let name = std::thread::current().name().unwrap_or("world").to_owned();
        format!(
            "replay: NPCC_SEED={} cargo nextest run -p npcc-appliance --test laws {name}",
            self.seed
        )
    }
}

/// Builds a PFC frame that names `classes`, all with the same quanta.
fn pfc(host: Mac, classes: u8, quanta: u16) -> Vec<u8> {
    mac_control::build(host, classes, [quanta; 8]).to_vec()
}
