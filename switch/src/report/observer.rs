//! Puts a snapshot together from what workers, control core and devices publish. Never makes any of them wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use npcc_cnp::flow_cache::CacheShared;
use npcc_cnp::pair::Evidence;
use npcc_cnp::response::Response;
use npcc_cnp::status::NpccStatus;
use npcc_cnp::table::{FlowSnapshot, FlowView};
use npcc_pipeline::counters::{self, Counter, Counters, Gauge, PortCounters};
use npcc_pipeline::drop::Drop;
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::units::{BitRate, Mac, Nanos, PortId, Priority};

use super::events::{Event, Events};
use super::lossless::{self, BufferFacts};
use super::model::{
    Conservation, DeviceDrops, Flow, Host, Pfc, Port, Queue, Roce, Snapshot, Traffic, Worker,
};
use super::qos::Qos;
use crate::clock::Clock;
use crate::control::ControlStats;
use crate::control::orders::{NpccOrder, NpccOrders, OrderError};
use crate::manage::apply::Live;
use crate::wiring::pfc::PortFlow;
use crate::worker::command::{Command, Orders};
use crate::worker::stats::WorkerStats;
use crate::worker::timings::{Timings, What};

/// CNPs that `show log` tells of.
const SHOWN: usize = 100;

/// What does not change about a port.
#[derive(Debug)]
pub struct PortFacts {
    /// Its name.
    pub name: String,
    /// Its device as configured.
    pub device: String,
    /// Its address.
    pub mac: Mac,
    /// The rate its egress side is shaped to.
    pub rate: Option<BitRate>,
    /// The device.
    pub port: Arc<npcc_dpdk::Port>,
    /// Its flow control.
    pub flow: PortFlow,
    /// Cores of the workers that receive from it, its owner first.
    pub workers: Vec<usize>,
}

/// Everything there is to see.
#[derive(Debug)]
pub struct Observer {
    /// Version of the program.
    pub version: String,
    /// When forwarding started.
    pub started: Instant,
    /// Ports, in the order of the configuration.
    pub ports: Vec<PortFacts>,
    /// Each worker's core.
    pub cores: Vec<usize>,
    /// Each worker's counters of all ports.
    pub counters: Vec<Arc<Counters>>,
    /// What each worker tells about itself.
    pub workers: Vec<Arc<WorkerStats>>,
    /// Each worker's flow cache.
    pub caches: Vec<Arc<CacheShared>>,
    /// NPCC.
    pub npcc: Arc<NpccStatus>,
    /// The flow table.
    pub flows: Arc<FlowView>,
    /// The control loop.
    pub control: Arc<ControlStats>,
    /// Orders to the control core.
    pub npcc_orders: NpccOrders,
    /// Sizes of the buffer.
    pub buffer: BufferFacts,
    /// Effective queues and maps.
    pub qos: Mutex<Qos>,
    /// Each worker's orders.
    pub orders: Vec<Orders>,
    /// What happened to lossless queues.
    pub events: Mutex<Events>,
    /// The workers' time.
    pub clock: Clock,
    /// What `clear counters` found.
    pub cleared: Mutex<Option<Box<Snapshot>>>,
    /// What took how long.
    pub timings: Mutex<Timings>,
    /// What runs, and where it came from.
    pub live: Mutex<Live>,
}

impl Observer {
    /// Has the control core obey an order.
    ///
    /// # Errors
    /// What is wrong with it, or that nobody listens.
    pub fn npcc_order(&self, order: &NpccOrder) -> Result<(), OrderError> {
        let port = |name: &str| {
            let mut ids = self.ports.iter().zip(0u8..);
            ids.find(|(port, _)| port.name == name)
                .map(|(_, id)| PortId(id))
        };
        self.npcc_orders.give(order.command(port)?)?;
        if let Some(key) = order.key() {
            self.overridden(key);
        }
        Ok(())
    }

    /// Everything but flows, now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            version: self.version.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            ports: (0..self.ports.len())
                .map(|index| self.port(index))
                .collect(),
            npcc: self.npcc(),
            workers: (0..self.workers.len())
                .filter_map(|index| self.worker(index))
                .collect(),
            conservation: self.conservation(),
            buffer: lossless::buffer(
                self.buffer,
                self.longest_turn(),
                self.counters.iter().map(|own| &**own),
            ),
            events: self.events(),
            latency_us: self.times(What::Latency),
            qos: self.qos.lock().map(|qos| qos.clone()).unwrap_or_default(),
        }
    }

    /// Looks whether anything happened to lossless queues, and takes in what workers timed; to be called every few milliseconds.
    pub fn watch(&self) {
        if let Ok(mut timings) = self.timings.lock() {
            timings.take_in();
        }
        let Ok(mut events) = self.events.lock() else {
            return;
        };
        let now = self.clock.now();
        for (index, facts) in self.ports.iter().enumerate() {
            events.look((index, &facts.name), self.of_port(index), now);
        }
        events.turn(Nanos(self.longest_turn()), self.buffer.turn, now);
    }

    /// What happened to lossless queues, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.watch();
        let events = self.events.lock();
        events.map(|events| events.all()).unwrap_or_default()
    }

    /// The snapshot since the last `clear counters`.
    #[must_use]
    pub fn shown(&self) -> Snapshot {
        let mut now = self.snapshot();
        if let Ok(cleared) = self.cleared.lock()
            && let Some(then) = cleared.as_deref()
        {
            super::since::since(&mut now, then);
        }
        now
    }

    /// Counters are shown from here on.
    pub fn clear_counters(&self) {
        let now = self.snapshot();
        if let Ok(mut cleared) = self.cleared.lock() {
            *cleared = Some(Box::new(now));
        }
    }

    /// Gives an order to every worker; `false` when one of them does not listen.
    pub fn order(&self, command: &Command) -> bool {
        self.orders
            .iter()
            .all(|orders| orders.give(command.clone()))
    }

    /// The same, and waits up to a second for a worker whose ring is full.
    pub fn order_patiently(&self, command: &Command) -> bool {
        let deadline = Instant::now() + Duration::from_secs(1);
        self.orders.iter().all(|orders| {
            while !orders.give(command.clone()) {
                if Instant::now() >= deadline {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            true
        })
    }

    /// All flows, heaviest first.
    #[must_use]
    pub fn flows(&self) -> Vec<Flow> {
        let mut flows: Vec<Flow> = self.flows.flows().map(|flow| self.flow(&flow)).collect();
        flows.sort_by(|a, b| {
            b.bytes
                .cmp(&a.bytes)
                .then_with(|| (&a.src, a.dest_qp).cmp(&(&b.src, b.dest_qp)))
        });
        flows
    }

    /// Gives a DWRR queue of every port another weight, 1 to 100.
    ///
    /// # Errors
    /// Why not.
    pub fn set_weight(&self, priority: u8, weight: u8) -> Result<(), String> {
        let deaf = || "a worker does not listen".to_owned();
        let mut qos = self.qos.lock().map_err(|_| deaf())?;
        let queue = qos.priorities.get_mut(usize::from(priority));
        let queue =
            queue.ok_or_else(|| format!("there is no priority {priority}: write 0 to 7"))?;
        if !(1..=100).contains(&weight) {
            return Err(format!("{weight} is no weight: write 1 to 100"));
        }
        if queue.weight.is_none() {
            return Err(format!(
                "priority {priority} is served strictly: it has no weight"
            ));
        }
        queue.weight = Some(weight);
        drop(qos);
        self.overridden(format!("qos.priorities.{priority}.weight"));
        let given = (0u8..).zip(&self.ports).all(|(port, _)| {
            self.order_patiently(&Command::Discipline {
                port: PortId(port),
                priority: Priority::new(priority),
                discipline: Discipline::Dwrr(weight),
            })
        });
        given.then_some(()).ok_or_else(deaf)
    }

    /// Hosts with CNPs, NAKs or CE, most CNPs first.
    #[must_use]
    pub fn hosts(&self) -> Vec<Host> {
        let mut hosts: Vec<Host> = self
            .npcc
            .hosts
            .hosts()
            .map(|(address, counts)| Host {
                address: address.to_string(),
                cnps_sent: counts.cnps_sent,
                cnps_passed: counts.cnps_passed,
                naks: counts.naks,
                rnr_naks: counts.rnr_naks,
                ce: counts.ce,
            })
            .collect();
        hosts.sort_by(|a, b| {
            b.cnps_sent
                .cmp(&a.cnps_sent)
                .then_with(|| a.address.cmp(&b.address))
        });
        hosts
    }

    /// The latest CNPs, each with its reason, and what happened to lossless queues, oldest first.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        let cnps = self.npcc.log.last(SHOWN);
        let cnps = cnps.map(|entry| (entry.time.0 / 1_000, entry.to_string()));
        let events = self.events().into_iter();
        let events = events.map(|event| (event.time_us, event.to_string()));
        let mut lines: Vec<(u64, String)> = cnps.chain(events).collect();
        lines.sort_by_key(|(time, _)| *time);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    pub(super) fn port_name(&self, port: PortId) -> String {
        self.ports
            .get(port.index())
            .map_or_else(|| format!("port {}", port.0), |facts| facts.name.clone())
    }

    /// A port's counters of every worker.
    fn of_port(&self, index: usize) -> impl Iterator<Item = &PortCounters> + Clone {
        self.counters
            .iter()
            .filter_map(move |counters| counters.port(index))
    }

    fn port(&self, index: usize) -> Port {
        let Some(facts) = self.ports.get(index) else {
            return Port::default();
        };
        let sum = |field: fn(&PortCounters) -> &Counter| {
            self.of_port(index)
                .map(|port| field(port).get())
                .sum::<u64>()
        };
        let traffic = |field: fn(&PortCounters) -> &counters::Traffic| {
            self.of_port(index)
                .fold(Traffic::default(), |total, port| add(total, field(port)))
        };
        // A device that cannot tell has lost nothing it knows of.
        let device = facts.port.stats().unwrap_or_default();
        let link = facts.port.link().ok();
        Port {
            name: facts.name.clone(),
            device: facts.device.clone(),
            driver: facts.port.driver_name().to_owned(),
            mac: facts.mac.to_string(),
            up: link.is_some_and(|link| link.up),
            rate: facts.rate.map(|rate| rate.0),
            workers: facts.workers.clone(),
            rx: self.rx_ok(index),
            tx: traffic(|port| &port.tx),
            originated: traffic(|port| &port.originated),
            consumed: traffic(|port| &port.consumed),
            punted: traffic(|port| &port.punted),
            drops: self.drops(index),
            device_drops: DeviceDrops {
                rx_missed: device.rx_missed,
                rx_nombuf: device.rx_no_mbuf,
                rx_errors: device.rx_errors,
                tx_errors: device.tx_errors,
            },
            pfc: Pfc {
                rx: self.per_priority(index, |port| &port.pfc_rx),
                tx: self.per_priority(index, |port| &port.pfc_tx),
            },
            flow: lossless::flow(
                &facts.flow,
                self.longest_turn(),
                self.buffer.turn,
                &self.clock,
                self.of_port(index),
            ),
            groups: lossless::groups(&facts.flow, self.of_port(index)),
            lossless_lost: sum(|port| &port.lossless_lost)
                + if facts.flow.send == 0 {
                    0
                } else {
                    device.rx_missed + device.rx_no_mbuf
                },
            roce: Roce {
                ce: sum(|port| &port.ce_in),
                cnp: sum(|port| &port.cnp_in),
                cnp_out: sum(|port| &port.cnp_out),
                nak: sum(|port| &port.nak_in),
                rnr: sum(|port| &port.rnr_in),
                unsupported: sum(|port| &port.roce_unsupported),
            },
            queues: (0..8).map(|priority| self.queue(index, priority)).collect(),
        }
    }

    fn drops(&self, index: usize) -> BTreeMap<String, u64> {
        let mut drops = BTreeMap::new();
        for reason in Drop::ALL {
            let count: u64 = self
                .of_port(index)
                .filter_map(|port| port.drops.get(reason.index()))
                .map(Counter::get)
                .sum();
            if count > 0 {
                drops.insert(reason.name().to_owned(), count);
            }
        }
        drops
    }

    fn rx_ok(&self, index: usize) -> Traffic {
        let mut total = Traffic::default();
        for (packets, bytes) in self.of_port(index).map(PortCounters::rx_ok) {
            total.packets += packets;
            total.bytes += bytes;
        }
        total
    }

    fn longest_turn(&self) -> u64 {
        let turns = self.workers.iter().map(|stats| stats.longest_ns.get());
        turns.max().unwrap_or_default()
    }

    fn per_priority(&self, index: usize, of: fn(&PortCounters) -> &[Counter; 8]) -> [u64; 8] {
        let mut total = [0; 8];
        for port in self.of_port(index) {
            for (sum, count) in total.iter_mut().zip(of(port)) {
                *sum += count.get();
            }
        }
        total
    }

    fn queue(&self, index: usize, priority: u8) -> Queue {
        let mut total = Queue {
            priority,
            ..Queue::default()
        };
        for queue in self
            .of_port(index)
            .filter_map(|port| port.queues.get(usize::from(priority)))
        {
            total.depth += queue.level.depth.get();
            total.peak += queue.peak.get();
            total.peak_ever += queue.peak.get().max(queue.peak_before.get());
            total.wred_dropped += queue.wred_dropped.get();
            total.enqueued += queue.enqueued.packets.get();
            total.enqueued_bytes += queue.enqueued.bytes.get();
            total.dropped += queue.dropped.get();
            total.ecn_marked += queue.ecn_marked.get();
        }
        total
    }

    fn flow(&self, flow: &FlowSnapshot) -> Flow {
        let key = &flow.flow.key;
        Flow {
            src: key.src().to_string(),
            dst: key.dst().to_string(),
            dest_qp: key.dest_qp().get(),
            sender_qp: (flow.evidence != Evidence::None).then(|| flow.sender_qpn.get()),
            evidence: flow.evidence.name().to_owned(),
            port: self.port_name(flow.flow.egress),
            priority: flow.flow.priority.get(),
            bytes: flow.bytes,
            cnps: flow.cnps,
            response: (flow.response != Response::Unknown).then(|| flow.response.name().to_owned()),
        }
    }

    fn worker(&self, index: usize) -> Option<Worker> {
        let (stats, core) = (self.workers.get(index)?, *self.cores.get(index)?);
        let crossing = &self.counters.get(index)?.crossing;
        let names = |mine: &dyn Fn(&PortFacts) -> bool| {
            let ports = self.ports.iter().filter(|facts| mine(facts));
            ports.map(|facts| facts.name.clone()).collect()
        };
        Some(Worker {
            core,
            owns: names(&|facts| facts.workers.first() == Some(&core)),
            receives: names(&|facts| facts.workers.contains(&core)),
            handed_over: crossing.handed_over.get(),
            taken_over: crossing.taken_over.get(),
            stalls: crossing.stalls.get(),
            ..super::workers::alone(stats)
        })
    }

    fn conservation(&self) -> Conservation {
        let mut account = Conservation::default();
        let held = || self.counters.iter().map(|counters| &counters.held);
        account.held.packets = Gauge::total(held().map(|held| &held.packets));
        account.held.bytes = Gauge::total(held().map(|held| &held.bytes));
        for counters in &self.counters {
            for port in counters.ports() {
                account.rx = add(account.rx, &port.rx);
                account.tx = add(account.tx, &port.tx);
                account.originated = add(account.originated, &port.originated);
                account.consumed = add(account.consumed, &port.consumed);
                account.punted = add(account.punted, &port.punted);
                account.drops.packets += port.drops.iter().map(Counter::get).sum::<u64>();
                account.drops.bytes += port.drop_bytes.get();
                account.tags_added += port.tag_bytes_added.get();
                account.tags_removed += port.tag_bytes_removed.get();
            }
        }
        account
    }
}

fn add(total: Traffic, more: &counters::Traffic) -> Traffic {
    Traffic {
        packets: total.packets + more.packets.get(),
        bytes: total.bytes + more.bytes.get(),
    }
}
