//! Construction of a world: by the appliance's functions wherever no device is needed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use npcc_appliance::apply::desired::{DesiredState, ObservedLink};
use npcc_appliance::apply::running::RunningState;
use npcc_appliance::wiring::assembly::{self, ControlPeers, WorkerParts};
use npcc_appliance::wiring::backend::{Backend, BackendChoice};
use npcc_appliance::wiring::live_routes::LiveRoutes;
use npcc_appliance::wiring::pfc::{self, PfcState};
use npcc_appliance::wiring::speeds;
use npcc_appliance::wiring::{routes, workers};
use npcc_config::resolved::Port;
use npcc_config::{Config, Loaded};
use npcc_engine::control::ControlLoop;
use npcc_engine::control::commands::ControlCommands;
use npcc_engine::worker::Worker;
use npcc_engine::worker::command::WorkerCommands;
use npcc_engine::worker::frame::Datapath;
use npcc_engine::worker::ports::{PortQueues, RemoteQueue, RxPoller};
use npcc_engine::worker::receiving::Receiving;
use npcc_engine::worker::transmit::{Transmit, TransmitQueue};
use npcc_pipeline::egress::rng::Xorshift;
use npcc_pipeline::handoff::links as links_of;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::units::{BitRate, Mac, PortId};

use super::devices::{Buf, Buffers, Card, Clock, Memory, RxQueue, Shared, TxQueue};
use super::host::{self, Host};
use super::restart::{Saved, Storm};
use super::settings::Settings;
use super::trace::Trace;
use super::{Event, World};

/// Time at which a world begins: the appliance's clock is never at 0 either.
const BEGIN: u64 = 1_000_000;
/// Buffers of the pool beside those of the packet buffer.
const BUFFERS: usize = 40_000;

/// Switch over the devices of a world.
pub(super) struct Made {
    pub workers: Vec<Worker<(), Memory>>,
    pub control: ControlLoop<Clock>,
    pub commands: Arc<WorkerCommands>,
    pub npcc: Arc<ControlCommands>,
    pub routes: LiveRoutes,
    pub down: Arc<DownPorts>,
    pub running: RunningState,
    pub links: Vec<ObservedLink>,
}

/// Devices of a world as a switch finds them when it starts.
pub(super) struct Found<'a> {
    pub cards: &'a [Shared],
    pub pool: &'a Buffers,
    pub clock: Clock,
    /// Pause storms that the switch before left.
    pub storms: &'a [Storm],
    pub seed: u64,
}

impl Made {
    /// Makes the switch of a configuration.
    pub(super) fn of(loaded: &Loaded, found: &Found<'_>) -> Made {
        let config = &loaded.config;
        let count = config.cores.workers.len();
        let macs = macs(config);
        let rates = rates(config);
        let mut states: Vec<PfcState> = config
            .ports
            .iter()
            .map(|port| flow_control(config, port, count))
            .collect();
        let lossless = pfc::lossless(config, &rates, &mut states);
        let up = |card: &Shared| card.borrow().up;
        let links: Vec<ObservedLink> = macs
            .iter()
            .zip(&states)
            .zip(found.cards)
            .map(|((mac, pfc), card)| ObservedLink {
                mac: *mac,
                up: up(card),
                admin_up: true,
                mbps: None,
                pfc: pfc.clone(),
            })
            .collect();
        let derived = DesiredState::new(config, &links);
        let readers = routes::readers(config, &macs).unwrap();
        let down = readers.writer.down_ports();
        let ids = found.cards.iter().zip((0..).map(PortId));
        let are_down: Vec<PortId> = ids
            .filter(|(card, _)| !up(card))
            .map(|(_, id)| id)
            .collect();
        for port in &are_down {
            down.set(*port, true);
        }
        let routes = routes::by_file(readers.writer, config, &macs, &[]).unwrap();
        let logs = Default::default();
        let mut core = assembly::control_core(
            config,
            derived.control.clone(),
            (readers.sources, logs),
            found.seed,
        );
        let plan = workers::assignment(config, config.ports.iter().map(|_| count));
        let owners: Vec<usize> = plan.owners.iter().map(|owner| owner.index()).collect();
        let shared = assembly::Shared {
            config,
            down: are_down,
            settings: derived.paths(),
            lossless,
            clock: found.clock.clone(),
            receiving: Arc::new(Receiving::new(count)),
        };
        let mut made = Vec::new();
        let (mut commands, mut injections, mut counters) = (Vec::new(), Vec::new(), Vec::new());
        let parts = readers.workers.into_iter().zip(links_of(plan)).enumerate();
        for (me, (fib, links)) in parts {
            let (own, remotes) = queues(config, (me, count), found.cards, &derived);
            let parts = WorkerParts::<Memory> {
                fib,
                links,
                own,
                remotes,
                pool: found.pool.clone(),
                sleeper: None,
                stats: Arc::default(),
                seed: found.seed + me as u64,
            };
            let attach = |path: &mut Datapath<Buf>| {
                for (port, priority, began) in found.storms {
                    path.resume_storm(*port, *priority, *began);
                }
                None
            };
            let (worker, peer) =
                assembly::worker(&shared, parts, &mut core, |_| (), attach).unwrap();
            made.push(worker);
            commands.push(peer.commands);
            injections.push(peer.injections);
            counters.push(peer.counters);
        }
        let peers = ControlPeers {
            counters,
            injections,
            owners,
        };
        let clock = found.clock.clone();
        let (control, npcc) =
            assembly::control(config, core, peers, (readers.control, clock), None);
        Made {
            workers: made,
            control,
            commands: Arc::new(WorkerCommands::new(commands)),
            npcc: Arc::new(npcc),
            routes,
            down,
            running: RunningState::new(PathBuf::from("world.yaml"), loaded, derived),
            links,
        }
    }
}

/// Returns a configuration.
///
/// # Panics
/// It is wrong.
pub(super) fn loaded(text: &str) -> Loaded {
    npcc_config::parse("world.yaml", text).unwrap_or_else(|why| panic!("{why}"))
}

impl World {
    /// Makes the world of a configuration; all chance in it follows from `seed`.
    ///
    /// # Panics
    /// The configuration is wrong.
    pub fn new(text: &str, seed: u64) -> World {
        let loaded = loaded(text);
        let config = &loaded.config;
        let mut chance = Xorshift::new(seed);
        let mut word = || u64::from(chance.next_u32());
        let switch_seed = word() << 32 | word();
        let time = Rc::new(Cell::new(BEGIN));
        let count = config.cores.workers.len();
        let (macs, rates) = (macs(config), rates(config));
        let pool = Buffers::new(BUFFERS);
        let card = |(port, rate): (usize, &BitRate)| {
            let card = Card::new(port, rate.0, count, Rc::clone(&time));
            Rc::new(RefCell::new(card))
        };
        let cards: Vec<Shared> = rates.iter().enumerate().map(card).collect();
        let made = Made::of(
            &loaded,
            &Found {
                cards: &cards,
                pool: &pool,
                clock: Clock {
                    time: Rc::clone(&time),
                    cost: 0,
                },
                storms: &[],
                seed: switch_seed,
            },
        );
        let hosts = hosts(config, &macs, &rates);
        let mut world = World {
            now: BEGIN,
            seed,
            settings: Settings::new(count, config.ports.len()),
            workers: made.workers,
            control: made.control,
            cards,
            hosts,
            flows: Vec::new(),
            pool,
            trace: Trace::default(),
            spare: 0,
            time,
            events: BTreeMap::new(),
            number: 0,
            chance,
            text: text.to_owned(),
            saved: Saved::default(),
            commands: made.commands,
            npcc: made.npcc,
            routes: Some(made.routes),
            down: made.down,
            running: Some(made.running),
            deferred: Vec::new(),
            links: made.links,
            macs,
            signalled: BTreeMap::new(),
            decided: 0,
        };
        world.begin();
        world
    }

    /// Lets the switch begin.
    pub(super) fn begin(&mut self) {
        for worker in &mut self.workers {
            worker.begin();
        }
        self.spare = self.pool.in_use() - self.in_rings();
        self.control.next = npcc_pipeline::units::Nanos(self.now);
        for worker in 0..self.workers.len() {
            self.plan(self.now, Event::Worker(worker));
        }
        self.plan(self.now, Event::Control);
    }
}

fn macs(config: &Config) -> Vec<Mac> {
    config.ports.iter().zip(1..).map(mac).collect()
}

/// Speeds of the links.
fn rates(config: &Config) -> Vec<BitRate> {
    let speed = |port| speeds::of(port, None).link;
    config.ports.iter().map(speed).collect()
}

fn mac((port, number): (&Port, u8)) -> Mac {
    port.mac.unwrap_or(Mac([2, 0, 0, 0, number, 1]))
}

/// Flow control of a port that sends and obeys pauses by the switch's software.
fn flow_control(config: &Config, port: &Port, workers: usize) -> PfcState {
    let software = BackendChoice::of(Backend::Software, "as every card of the world");
    let masks = pfc::masks(config, port, Backend::Software);
    PfcState {
        receivers: workers as u64,
        outstanding: Some(0),
        tx_answers: true,
        tells_fill: true,
        ..PfcState::of(software, masks)
    }
}

/// Queues of a worker: those of its own ports, and a receive queue of each other port.
fn queues(
    config: &Config,
    (me, workers): (usize, usize),
    cards: &[Shared],
    derived: &DesiredState,
) -> (Vec<PortQueues<Memory>>, Vec<RemoteQueue<Memory>>) {
    let (mut own, mut remotes) = (Vec::new(), Vec::new());
    for ((port, card), id) in config.ports.iter().zip(cards).zip((0..).map(PortId)) {
        let queue = (me + workers - port.worker) % workers;
        let rx = RxPoller::new(RxQueue(Rc::clone(card), queue), false, false);
        if queue > 0 {
            remotes.push(RemoteQueue { id, rx });
            continue;
        }
        let bound = derived.pfc[id.index()].outstanding.unwrap_or(u64::MAX);
        let rate = derived.ports[id.index()].speeds.link;
        let tx = TransmitQueue::new(TxQueue(Rc::clone(card)), Some((bound, rate)));
        own.push(PortQueues::new(id, rx, Transmit::Single(tx)));
    }
    (own, remotes)
}

/// A host at each port: the first neighbour of the configuration there.
fn hosts(config: &Config, macs: &[Mac], rates: &[BitRate]) -> Vec<Host> {
    let address = |port: usize| {
        let mut neighbors = config.neighbors.iter();
        match neighbors
            .find(|neighbor| neighbor.port == port)
            .map(|neighbor| neighbor.address)
        {
            Some(IpAddr::V4(address)) => address,
            _ => Ipv4Addr::new(10, 0, u8::try_from(port).unwrap_or(0), 3),
        }
    };
    let host = |(port, (mac, rate)): (usize, (&Mac, &BitRate))| {
        Host::new(port, address(port), host::link(port, *mac), rate.0)
    };
    macs.iter().zip(rates).enumerate().map(host).collect()
}
