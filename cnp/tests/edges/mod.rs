//! Two boxes between two hosts: each sees a part of the packets and reports ends to the other, over a bus that loses rows or is cut.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::ControlConfig;
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::units::{BitRate, Nanos, PortId};
use npcc_roce::pair::Evidence;
use npcc_roce::pair::export::{EndReader, Row};
use npcc_roce::pair::foreign::view::{PeerCounters, Reports};
use npcc_roce::pair::foreign::{HOLDS, PeerId, Report, ReportedEnd};
use npcc_roce::source_check::Routes;
use npcc_testkit::npcc::{self, DC, WAN};

use crate::traffic::{Manner, numbers, packet, scatter};

/// The other box, as each names it.
pub(crate) const PEER: PeerId = PeerId(0);

/// Port with other hosts.
pub(crate) const OTHER: PortId = PortId(2);

/// Routes of both boxes: the sender's subnet behind the first port, the receiver's behind the congested one.
#[derive(Debug)]
struct Subnets;

impl Routes for Subnets {
    fn refresh(&mut self) -> u64 {
        0
    }

    fn ports_toward(&self, host: IpAddr) -> u32 {
        match host {
            IpAddr::V4(host) if host.octets().starts_with(&[10, 0, 1]) => DC.bit(),
            IpAddr::V4(host) if host.octets().starts_with(&[10, 0, 2]) => WAN.bit(),
            IpAddr::V4(host) if host.octets().starts_with(&[10, 0, 4]) => OTHER.bit(),
            _ => 0,
        }
    }
}

/// A box, and the CNPs that it sent.
pub(crate) struct Edge {
    side: npcc::World,
    reader: EndReader,
    /// CNPs by the receiver's queue pair, and those of them that named another queue pair than the sender's.
    pub(crate) cnps: BTreeMap<u32, u32>,
    pub(crate) wrong: u32,
}

impl Edge {
    pub(crate) fn new() -> Edge {
        let depths = [375_000, 1_500_000, 3_000_000];
        let rate = BitRate(100_000_000_000);
        let mut settings = npcc::settings(depths, rate, PolicyName::Npcc.defaults());
        settings.evidence = Evidence::Foreign;
        let mut side = npcc::World::new(settings, ControlConfig::default().flows);
        side.core.know_routes(Box::new(Subnets));
        let reader = side.core.feed().read();
        Edge {
            side,
            reader,
            cnps: BTreeMap::new(),
            wrong: 0,
        }
    }

    pub(crate) const fn core(&mut self) -> &mut ControlCore {
        &mut self.side.core
    }

    /// Passes a frame out by the port that congests, or back in by it.
    pub(crate) fn pass(&mut self, frame: &[u8], out: bool, now: Nanos) {
        self.side.now = now;
        self.side.pass(frame, out);
    }

    /// Runs a tick over a queue that is deep and rises; `truth` has the sender of each receiver's queue pair.
    pub(crate) fn tick(&mut self, now: Nanos, truth: &HashMap<u32, u32>) {
        self.side.now = now;
        let depth = 1_600_000 + now.0 / 10_000;
        let (cnps, wrong) = (&mut self.cnps, &mut self.wrong);
        self.side.tick(depth, |order| {
            let qpn = order.flow.dest_qp().get();
            *cnps.entry(qpn).or_default() += 1;
            *wrong += u32::from(truth.get(&qpn) != Some(&order.sender_qpn.get()));
        });
    }

    pub(crate) fn take(&mut self, reports: Vec<Report>, now: Nanos) {
        let reports = Reports::new(PEER, reports.into());
        (0..).find(|at| !self.side.core.take_report(&reports, *at, now));
    }

    /// Queue pairs of receivers whose flows' sender is known here.
    pub(crate) fn paired(&self, truth: &HashMap<u32, u32>) -> HashSet<u32> {
        let flows = self.side.core.flows();
        let known = flows.flows().filter(|flow| flow.evidence != Evidence::None);
        let known = known.map(|flow| (flow.flow.key.dest_qp().get(), flow.sender_qpn.get()));
        let known: HashMap<u32, u32> = known.collect();
        assert!(known.iter().all(|(qpn, sender)| truth[qpn] == *sender));
        known.into_keys().collect()
    }

    /// Counters that this box keeps of the other.
    pub(crate) fn of_peer<T>(&self, count: impl Fn(&PeerCounters) -> T) -> T {
        count(self.side.core.status().peers.of(PEER))
    }
}

/// Report of a row; `None` for one that reports no end.
pub(crate) fn report(row: Row) -> Option<Report> {
    match row {
        Row::End(end) => Some(Report::Seen(ReportedEnd {
            key: end.key,
            udp_port: end.udp_port,
            partner: None,
            holds: HOLDS,
        })),
        Row::Gone(key, port) => Some(Report::Gone(key, port)),
        Row::Cm(..) | Row::Walked(_) => None,
    }
}

/// Bus between the boxes.
#[derive(Clone, Copy)]
pub(crate) struct Bus {
    /// Percentage of rows lost.
    pub(crate) loss: u32,
    /// Time in which all rows are lost.
    pub(crate) cut: (Nanos, Nanos),
}

impl Bus {
    pub(crate) const GOOD: Bus = Bus {
        loss: 0,
        cut: (Nanos::ZERO, Nanos::ZERO),
    };
}

/// Two boxes and connections between two hosts.
pub(crate) struct World {
    pub(crate) boxes: [Edge; 2],
    manner: Manner,
    count: u32,
    pub(crate) truth: HashMap<u32, u32>,
    pub(crate) now: Nanos,
    bus: Bus,
    /// Number of the last row that the bus decided on.
    rows: u32,
    /// Rows of each box were lost since it was last asked for all.
    gap: [bool; 2],
}

/// Time between two packets of a connection, and of a step.
const ROUND: u64 = 50;
const STEP: Nanos = Nanos::from_millis(1);
/// Time between two requests for all ends after a loss.
const RESYNC: u64 = 500;

impl World {
    pub(crate) fn new(manner: Manner, count: u32, bus: Bus) -> World {
        let pair = |n| {
            let (a, b) = numbers(n);
            (b, a)
        };
        World {
            boxes: [Edge::new(), Edge::new()],
            manner,
            count,
            truth: (0..count).map(pair).collect(),
            now: STEP,
            bus,
            rows: 0,
            gap: [false; 2],
        }
    }

    /// Runs for a time; `paths` returns by which boxes the data and the answers of a connection pass, if by any.
    pub(crate) fn run(&mut self, time: u64, paths: impl Fn(u32) -> [Option<usize>; 2]) {
        let end = self.now + Nanos::from_millis(time);
        while self.now < end {
            let step = self.now.0 / STEP.0;
            let mine = (0..self.count).filter(|n| u64::from(*n) % ROUND == step % ROUND);
            for n in mine {
                self.exchange(n, u32::try_from(step / ROUND).unwrap(), paths(n));
            }
            self.now += STEP;
            for edge in &mut self.boxes {
                edge.tick(self.now, &self.truth);
            }
            self.share(0, 1, step);
            self.share(1, 0, step);
        }
    }

    /// Passes one packet of data and its answer.
    fn exchange(&mut self, n: u32, round: u32, [data, answer]: [Option<usize>; 2]) {
        let (a, b) = numbers(n);
        let (forth, back) = self.manner.ports(a, b);
        let first = if matches!(self.manner, Manner::RandomPsnAsymmetric) {
            scatter(n)
        } else {
            0
        };
        if let Some(data) = data {
            let frame = packet(true, forth, 0x0a, b, first + round);
            self.boxes[data].pass(&frame, true, self.now);
        }
        if let Some(answer) = answer {
            let frame = packet(false, back, 0x11, a, first + round);
            self.boxes[answer].pass(&frame, false, self.now);
        }
    }

    /// Brings what one box reports to the other, as far as the bus lets it through.
    fn share(&mut self, from: usize, to: usize, step: u64) {
        let cut = (self.bus.cut.0..self.bus.cut.1).contains(&self.now);
        if self.gap[from] && !cut && step.is_multiple_of(RESYNC) {
            self.gap[from] = false;
            let _ = self.boxes[from].reader.walk();
        }
        let mut through = Vec::new();
        while let Some(row) = self.boxes[from].reader.take() {
            self.rows += 1;
            if cut || scatter(self.rows) % 100 < self.bus.loss {
                self.gap[from] = true;
            } else {
                through.extend(report(row));
            }
        }
        self.boxes[to].take(through, self.now);
    }

    /// Number of connections whose sender is known where their data pass, and of CNPs that went wrong.
    pub(crate) fn result(&self) -> (usize, u32) {
        let [one, other] = &self.boxes;
        let paired = one.paired(&self.truth).len() + other.paired(&self.truth).len();
        (paired, one.wrong + other.wrong)
    }
}
