//! Builds an engine from a scenario and a case: hosts, links, switches, routes and the first events.

use std::collections::VecDeque;
use std::net::IpAddr;

use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::{MAX_PORTS, Nanos, Priority};
use npcc_roce::pair::port_hash::port_of;

use super::event::{Event, EventQueue, Mark};
use super::flow::{Flow, receiver_qpn, sender_qpn};
use super::imperfect::Chance;
use super::record::{POINTS, Record, address};
use super::{CONTROL, Engine};
use crate::host::np::NotificationPoint;
use crate::host::params::Sender;
use crate::host::rc::{RcReceiver, RcSender};
use crate::num::small;
use crate::rng::Rng;
use crate::scenario::{Case, FlowGroup, Scenario, Start};
use crate::wire::{self, Direction, OVERHEAD};

mod applications;
mod longest;
mod routes;
pub(crate) mod topology;
mod wiring;

use self::longest::Delays;
use self::topology::{Topology, host_mac, port_mac};

/// Time between the last warm-up answer and the start of the traffic.
const SETTLE: Nanos = Nanos::from_millis(1);

/// Reason why a scenario cannot be built into a simulation.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A switch needs more ports than [`MAX_PORTS`].
    #[error(
        "switch `{0}` has {1} ports, more than {MAX_PORTS}; spread the hosts over more switches"
    )]
    Ports(String, usize),
    /// A process in real time has one priority of data.
    #[error("with --live all flows have priority 3: the process has one priority of data")]
    OnePriority,
    /// A switch has no path to the hosts of another.
    #[error("switch `{0}` has no path to the hosts of `{1}`; add a link")]
    Unreachable(String, String),
    /// An application has no graph.
    #[error("application `{0}`: {1}")]
    Application(String, String),
    /// The switch's route table refused a route.
    #[error("cannot install the host routes")]
    Routes(#[from] npcc_pipeline::route::writer::RouteError),
}

impl Engine {
    pub(super) fn build(scenario: &Scenario, case: &Case) -> Result<Engine, BuildError> {
        let topology = Topology::of(scenario, case);
        for (name, ports) in scenario.switches.iter().zip(&topology.ports) {
            if ports.len() > MAX_PORTS {
                return Err(BuildError::Ports(name.clone(), ports.len()));
            }
        }
        let watch = topology.queue(scenario, &scenario.watch);
        let npcc: Vec<(u32, u8)> = scenario
            .npcc_queues()
            .map(|name| topology.queue(scenario, name))
            .collect();
        let delays = Delays::of(&topology);
        let mut switches = Vec::new();
        for (ports, index) in topology.ports.iter().zip(0u32..) {
            let round_trips: Vec<Nanos> = (0u8..)
                .zip(ports)
                .map(|(port, _)| delays.round_trip(index, port))
                .collect();
            let ports = (ports.as_slice(), round_trips.as_slice());
            switches.push(wiring::switch(scenario, case, index, ports, &npcc));
        }
        let far = topology
            .ports
            .iter()
            .flatten()
            .map(|port| port.delay.0)
            .max()
            .unwrap_or(0);
        let round_trip = Nanos(2 * far * scenario.links.len().max(1) as u64 + 20_000);
        let start = if case.start == Start::Warm {
            SETTLE + round_trip + round_trip
        } else {
            SETTLE
        };
        let end = start + scenario.duration;
        let watch_port = topology.ports[watch.0 as usize][usize::from(watch.1)];
        let drain = watch_port.rate;
        let frame = OVERHEAD + 16 + usize::from(scenario.mtu);
        let mut engine = Engine {
            now: Nanos::ZERO,
            queue: EventQueue::default(),
            groups: scenario.flows.iter().map(group_name).collect(),
            record: Record {
                kmin: scenario.thresholds.kmin.bytes_floored(drain, scenario.mtu),
                bursts: vec![Vec::new(); scenario.flows.len()],
                ideals: vec![None; scenario.flows.len()],
                ..Record::default()
            },
            sender: case.sender,
            recovery: scenario.recovery,
            within: case.np,
            // A network card's 4 ms or more, and always longer than a round trip plus a deep queue.
            patience: Nanos(4_000_000 + 4 * round_trip.0),
            watch,
            watch_priority: Priority::new(scenario.watch_priority),
            watch_rate: drain.0 as f64 / 1e9,
            frame_wire: wire_len(frame),
            start,
            end,
            step: Nanos((scenario.duration.0 / POINTS).max(1_000)),
            flows: Vec::new(),
            applications: Vec::new(),
            scenario: scenario.clone(),
            links: topology.links,
            hosts: topology.hosts,
            switches,
            trunks: topology.trunks,
            chance: Chance::new(scenario.seed, &scenario.imperfections),
            outside: None,
            leaving: VecDeque::new(),
            reported: VecDeque::new(),
        };
        engine.add_flows(case, &topology.members, &topology.homes);
        engine.add_applications(case, &topology.members, &topology.homes)?;
        engine.install_routes(&topology.homes, &topology.ports)?;
        engine.find_crossing(&topology.homes);
        engine.find_rooflines(&topology.homes);
        engine.first_events(case);
        Ok(engine)
    }

    fn add_flows(&mut self, case: &Case, members: &[Vec<u32>], homes: &[(u32, u8)]) {
        let scenario = self.scenario.clone();
        let hosts = |name: &str| {
            let group = scenario.hosts.iter().position(|group| group.name == name);
            group.map_or(&[][..], |group| &members[group])
        };
        for (number, group) in scenario.flows.iter().enumerate() {
            let (from, to) = (hosts(&group.from), hosts(&group.to));
            for pair in 0..from.len().max(to.len()) {
                let (src, dst) = (from[pair % from.len()], to[pair % to.len()]);
                for _ in 0..case.qps.unwrap_or(group.qps) {
                    self.add_flow(number, group, src, dst, homes);
                }
            }
        }
    }

    fn add_flow(
        &mut self,
        number: usize,
        group: &FlowGroup,
        src: u32,
        dst: u32,
        homes: &[(u32, u8)],
    ) {
        let index = small(self.flows.len() as u64);
        let (at_src, at_dst) = (sender_qpn(index), receiver_qpn(index));
        let port = port_of(at_src, at_dst);
        let sender = self.hosts[src as usize].sender.unwrap_or(self.sender);
        let direction = |src: u32, dst: u32, dest_qp| Direction {
            src_mac: host_mac(src),
            dst_mac: port_mac(homes[src as usize].0, usize::from(homes[src as usize].1)),
            src: address(src),
            dst: address(dst),
            port,
            dest_qp,
        };
        self.hosts[dst as usize].receives.push(index);
        self.flows.push(Flow {
            src,
            dst,
            group: number,
            verb: group.verb,
            priority: group.priority(),
            tos: wire::data_tos(group.priority(), group.ect),
            tx: RcSender::default(),
            rx: RcReceiver::default(),
            rate: sender.start(self.hosts[src as usize].line),
            np: NotificationPoint::default(),
            cnp_interval: self.hosts[dst as usize]
                .cnp_interval
                .or(self.scenario.cnp_interval)
                .unwrap_or_else(|| sender.cnp_interval()),
            adaptive: sender == Sender::DcqcnPlus,
            forward: direction(src, dst, at_dst),
            back: direction(dst, src, at_src),
            message: group
                .message
                .0
                .div_ceil(u64::from(self.scenario.mtu))
                .max(1),
            base: 0,
            mtu: usize::from(self.scenario.mtu),
            window: group
                .window
                .unwrap_or(self.scenario.window)
                .packets(self.scenario.mtu),
            reads: self.scenario.outstanding_reads.into(),
            armed: false,
            next_at: Nanos::ZERO,
            debt: 0.0,
            limiter: self.scenario.limiter_burst.0,
            burst: 0,
            burst_from: Nanos::ZERO,
            reacting: VecDeque::new(),
            timed: VecDeque::new(),
            ack_requested: Nanos::ZERO,
            crosses: false,
            bursts: VecDeque::new(),
            carries: VecDeque::new(),
            arrived: 0,
            short: 0,
            short_before: 0,
            requested: 0,
            progress: Nanos::ZERO,
            wanted: 0,
            delivered_before: 0,
            signalled: None,
        });
    }

    fn first_events(&mut self, case: &Case) {
        let mut rng = Rng::new(self.scenario.seed);
        let start = self.start;
        let at = |time| start + time;
        let mut counts = vec![0u64; self.groups.len()];
        let mut sizes = vec![0u64; self.groups.len()];
        for flow in &self.flows {
            sizes[flow.group] += 1;
        }
        for index in 0..self.flows.len() {
            let flow = small(index as u64);
            let number = self.flows[index].group;
            let group = self.scenario.flows.get(number);
            if case.start == Start::Warm {
                self.queue
                    .at(Nanos(rng.below(SETTLE.0 / 2)), Event::Warm(flow));
            }
            let spread = group.map_or(0, |group| group.spread.0);
            let place = counts[number] * spread / sizes[number].max(1);
            counts[number] += 1;
            let late = rng.below(self.scenario.start_jitter.map_or(200, |time| time.0));
            let begins = group.map_or_else(|| self.application_start(number), |group| group.start);
            let begins = at(begins) + Nanos(place + late);
            if let Start::Reported(delay) = case.start {
                self.queue.at(begins + delay, Event::Lease(flow));
            }
            if group.is_some() {
                self.queue.at(begins, Event::Offer(flow));
                self.record.joined = self.record.joined.max(begins);
            }
        }
        self.join_applications(&mut rng);
        self.queue.at(start, Event::Mark(Mark::Start));
        self.first_window();
        let window = self.scenario.utilisation_over.min(self.scenario.duration);
        self.queue.at(at(window), Event::Mark(Mark::Utilisation));
        let from = self
            .scenario
            .goodput_from
            .0
            .min(self.scenario.duration.0 / 2);
        self.queue
            .at(start + Nanos(from), Event::Mark(Mark::Goodput));
        self.queue.at(start, Event::Expire);
        for switch in 0..small(self.switches.len() as u64) {
            if self.switches[switch as usize].core.is_some() {
                self.queue
                    .at(Nanos(rng.below(20_000)), Event::Control(switch));
            }
            if self.scenario.pauses() {
                self.queue.at(Nanos(rng.below(2_000)), Event::Turn(switch));
            }
        }
        self.first_pauses();
        for (failure, index) in self.scenario.failures.iter().zip(0u32..) {
            let when = at(failure.at);
            self.queue.at(when, Event::Fail(index));
            self.queue
                .at(when + failure.rerouted_after, Event::Reroute(index));
        }
    }
}

fn group_name(group: &FlowGroup) -> String {
    let default = || format!("{}-{}", group.from, group.to);
    group.name.clone().unwrap_or_else(default)
}

const _: () = assert!(CONTROL < 8);
