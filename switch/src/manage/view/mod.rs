//! What there is to see: a snapshot put together from what workers, control core and devices publish. Never makes any of them wait.

mod flows;
mod linux;
mod npcc;
mod ports;
mod workers;

use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use npcc_cnp::flow_cache::CacheShared;
use npcc_cnp::host_rules::HostRules;
use npcc_cnp::status::NpccStatus;
use npcc_cnp::table::FlowView;
use npcc_linux::netlink::handle::Handle;
use npcc_pipeline::capture::CaptureStats;
use npcc_pipeline::counters::{self, Counters, Gauge, Path, PortCount};
use npcc_pipeline::punt::PuntRates;
use npcc_pipeline::units::{Mac, Nanos, PortId};

use super::link_state::Links;
use super::pending::Pending;
use crate::apply::wanted::Wanted;
use crate::clock::Clock;
use crate::control::ControlStats;
use crate::keep::Keep;
use crate::linux_io::LinuxStats;
use crate::report::events::{Event, Kind, Watch};
use crate::report::journal::Journal;
use crate::report::lossless::Buffer;
use crate::report::model::{Conservation, DeviceDrops, Snapshot, Traffic};
use crate::report::punt::Punt;
use crate::report::qos::Qos;
use crate::wiring;
use crate::wiring::live_routes::{SharedTable, Table};
use crate::worker::stats::WorkerStats;
use crate::worker::timings::{Timings, What};

/// What does not change about a port.
#[derive(Debug)]
pub struct PortFacts {
    /// Its name.
    pub name: String,
    /// Its device as configured.
    pub device: String,
    /// Its address.
    pub mac: Mac,
    /// The device.
    pub port: Arc<npcc_dpdk::Port>,
    /// Cores of the workers that receive from it, its owner first.
    pub workers: Vec<usize>,
}

/// Sizes of the buffer, which do not change.
#[derive(Debug, Clone, Copy, Default)]
pub struct BufferFacts {
    /// Size in wire bytes.
    pub pool: u64,
    /// Shared by all.
    pub shared: u64,
    /// Share of what is free of it that a group may hold, in 1/256.
    pub alpha_256: u32,
    /// Headroom.
    pub headroom: u64,
    /// Longest turn of a worker's loop that headroom covers.
    pub turn: Nanos,
}

/// What a port's counters said at one moment, over all workers, and its device's.
#[derive(Debug, Clone, Default)]
pub struct PortReading {
    counts: PortCount,
    device: DeviceDrops,
}

impl PortReading {
    /// Takes off what had been counted `then`.
    fn since(&mut self, then: &PortReading) {
        let PortReading { counts, device } = self;
        counts.since(&then.counts);
        device.since(&then.device);
    }
}

/// What is to be seen of Linux, where it is integrated.
#[derive(Debug)]
pub struct LinuxFacts {
    /// What Linux may be given.
    pub rates: PuntRates,
    /// What the thread between it and the workers counts.
    pub stats: Arc<LinuxStats>,
    /// Who follows the kernel.
    pub kernel: Handle,
    /// The name of the network namespace; none where it is that of whoever started the switch.
    pub namespace: Option<String>,
}

/// Everything there is to see.
#[derive(Debug)]
pub struct View {
    /// Version of the program.
    pub version: String,
    /// When forwarding started.
    pub started: Instant,
    /// Ports, in the order of the configuration.
    pub ports: Vec<PortFacts>,
    /// Their links, in the same order.
    pub links: Links,
    /// Each worker's core.
    pub cores: Vec<usize>,
    /// Each worker's counters of all ports.
    pub counters: Vec<Arc<Counters>>,
    /// What each worker tells of captures.
    pub captures: Vec<Arc<CaptureStats>>,
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
    /// Sizes of the buffer.
    pub buffer: BufferFacts,
    /// Linux; none where it is not integrated.
    pub linux: Option<LinuxFacts>,
    /// The routes of the file, where they are not Linux's.
    pub file_routes: Option<SharedTable>,
    /// Effective queues and maps.
    pub qos: Mutex<Qos>,
    /// Finds what happens to lossless queues. Locked before the journal.
    pub events: Mutex<Watch>,
    /// Events and changes.
    pub journal: Mutex<Journal>,
    /// The workers' time.
    pub clock: Clock,
    /// What each port's counters said at the last `clear counters`; empty before the first.
    pub cleared: Mutex<Vec<PortReading>>,
    /// What took how long.
    pub timings: Mutex<Timings>,
    /// What operators did.
    pub operators: Operators,
    /// What outlives the process: what the ones before counted is shown too.
    pub keep: Arc<Keep>,
}

/// What operators did.
#[derive(Debug)]
pub struct Operators {
    /// A reload that waits for its commit.
    pending: Mutex<Option<Pending>>,
    /// Rules about hosts that hold now.
    hosts: Mutex<HostRules>,
    /// The configuration that runs, and what `set` has changed of it.
    config: Mutex<Wanted>,
    /// The configuration file.
    path: PathBuf,
    /// Held by a reload while it reads the file and goes by it.
    reading: Mutex<()>,
}

impl Operators {
    /// Nobody did anything yet.
    #[must_use]
    pub fn new(started: Wanted, path: PathBuf) -> Operators {
        let hosts = wiring::control::host_rules(&started.config.npcc.hosts);
        Operators {
            pending: Mutex::default(),
            hosts: Mutex::new(hosts),
            config: Mutex::new(started),
            path,
            reading: Mutex::default(),
        }
    }
}

/// A look at what one thread at a time may look at. A panic of another one left it as usable as it was.
fn look<T>(at: &Mutex<T>) -> MutexGuard<'_, T> {
    at.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    /// Everything but flows, now, as it was counted since the first start.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_since(&[])
    }

    /// Everything but flows, now, as it was counted since the last `clear counters`.
    #[must_use]
    pub fn shown(&self) -> Snapshot {
        let cleared = look(&self.cleared).clone();
        self.snapshot_since(&cleared)
    }

    /// Ports' counters are shown from here on. Counters themselves never go back, so the account of all frames stays whole;
    /// depths, peaks and NPCC stay too.
    pub fn clear_counters(&self) {
        let now = (0..self.ports.len()).map(|index| self.reading(index));
        let now = now.collect();
        *look(&self.cleared) = now;
    }

    /// Effective queues and maps.
    pub(super) fn qos(&self) -> MutexGuard<'_, Qos> {
        look(&self.qos)
    }

    /// What took how long.
    pub(super) fn timings(&self) -> MutexGuard<'_, Timings> {
        look(&self.timings)
    }

    /// A reload that waits for its commit.
    pub(super) fn pending(&self) -> MutexGuard<'_, Option<Pending>> {
        look(&self.operators.pending)
    }

    /// Rules about hosts that hold now.
    pub(super) fn hosts(&self) -> MutexGuard<'_, HostRules> {
        look(&self.operators.hosts)
    }

    /// What a reload holds while it reads the file and goes by it.
    pub(super) const fn reload(&self) -> &Mutex<()> {
        &self.operators.reading
    }

    /// The configuration file.
    pub(super) fn path(&self) -> &FilePath {
        &self.operators.path
    }

    /// The configuration that runs, and what `set` has changed of it.
    pub(super) fn config(&self) -> MutexGuard<'_, Wanted> {
        look(&self.operators.config)
    }

    /// The routes of the file; none where they are Linux's.
    fn file_routes(&self) -> Arc<Table> {
        let table = self.file_routes.as_ref();
        table.map_or_else(Arc::default, |table| Arc::clone(&look(table)))
    }

    /// Events and changes.
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        look(&self.journal)
    }

    fn snapshot_since(&self, cleared: &[PortReading]) -> Snapshot {
        let readings: Vec<PortReading> = (0..self.ports.len())
            .map(|index| self.reading(index))
            .collect();
        let share = self.share(&readings);
        let ports = self.ports.iter().enumerate().zip(readings);
        let ports = ports.map(|((index, facts), mut reading)| {
            if let Some(then) = cleared.get(index) {
                reading.since(then);
            }
            self.port((index, facts), reading, share)
        });
        Snapshot {
            version: self.version.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            ports: ports.collect(),
            npcc: self.npcc(),
            workers: (0..self.workers.len())
                .filter_map(|index| self.worker(index))
                .collect(),
            conservation: self.conservation(),
            buffer: self.buffer(),
            punt: self.punt(),
            events: self.events(),
            latency_us: self.times(What::Latency),
            qos: self.qos().clone(),
        }
    }

    /// Looks whether anything happened to lossless queues, and takes in what workers timed; to be called every few milliseconds.
    pub fn watch(&self) {
        self.timings().take_in();
        let (mut watch, mut journal) = (look(&self.events), self.journal());
        let now = self.clock.now();
        for (index, facts) in self.ports.iter().enumerate() {
            let found = watch.port((index, &facts.name), self.counts(index), now);
            found.for_each(|event| journal.event(event));
        }
        let slow = watch.turn(Nanos(self.longest_turn()), self.buffer.turn, now);
        slow.into_iter().for_each(|event| journal.event(event));
    }

    /// Takes down that the link of a port changed; `mbps` is its speed.
    pub fn link_event(&self, index: usize, kind: Kind, mbps: u64) {
        if let Some(facts) = self.ports.get(index) {
            let event = Event::link(&facts.name, kind, mbps, self.clock.now());
            self.journal().event(event);
        }
    }

    /// What happened to ports and lossless queues, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.watch();
        self.journal().events()
    }

    fn port_name(&self, port: PortId) -> String {
        self.ports
            .get(port.index())
            .map_or_else(|| format!("port {}", port.0), |facts| facts.name.clone())
    }

    /// What a port's counters say, over all workers.
    fn counts(&self, index: usize) -> PortCount {
        let ports = self.counters.iter();
        counters::sum(ports.filter_map(|counters| counters.port(index)))
    }

    /// What a group may hold of the shared pool at this moment, in wire bytes.
    fn share(&self, readings: &[PortReading]) -> u64 {
        let held = readings.iter().enumerate().map(|(index, reading)| {
            let reserved = self.links.get(index).map_or(0, |link| link.flow.reserved);
            let groups = reading.counts.groups.iter();
            let of_shared = groups.map(|group| {
                let ordinary = group.held.saturating_sub(group.headroom);
                ordinary.saturating_sub(reserved)
            });
            of_shared.sum::<u64>()
        });
        let free = self.buffer.shared.saturating_sub(held.sum());
        let share = u128::from(free) * u128::from(self.buffer.alpha_256) / 256;
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    fn longest_turn(&self) -> u64 {
        let turns = self.workers.iter().map(|stats| stats.longest_ns.get());
        turns.max().unwrap_or_default()
    }

    /// The buffer, over all workers.
    fn buffer(&self) -> Buffer {
        let gauges = || self.counters.iter().map(|counters| &counters.buffer);
        let most = |of: fn(&counters::BufferGauges) -> &Gauge| {
            // Peaks are of the whole, as each worker saw it.
            gauges().map(|own| of(own).get()).max().unwrap_or_default()
        };
        Buffer {
            pool: self.buffer.pool,
            shared: self.buffer.shared,
            headroom_size: self.buffer.headroom,
            used: Gauge::total(gauges().map(|own| &own.used)),
            used_peak: most(|own| &own.used_peak),
            headroom: gauges().map(|own| own.headroom.get()).sum(),
            headroom_peak: most(|own| &own.headroom_peak),
            frames: Gauge::total(gauges().map(|own| &own.frames)),
            turn_ns: self.longest_turn(),
            turn_covered_ns: self.buffer.turn.0,
        }
    }

    /// To and from Linux, over all workers.
    fn punt(&self) -> Punt {
        let mut workers = counters::sum(self.counters.iter().map(|counters| &*counters.punt));
        let host = self.linux.as_ref();
        let rates = host.map(|linux| &linux.rates);
        let mut host = counters::sum(host.iter().map(|linux| &*linux.stats));
        workers.each(Path::ROOT.then("punt"), &mut self.settles());
        host.each(Path::ROOT.then("host"), &mut self.settles());
        Punt::of(rates, workers, host)
    }

    /// For how long the switch's traffic has been taken away; `None` when it is not.
    #[must_use]
    pub fn draining(&self) -> Option<Duration> {
        let begun = UNIX_EPOCH + Duration::from_secs(self.keep.facts().draining?);
        // A clock that was set back says nothing of the time, but it is being drained.
        Some(SystemTime::now().duration_since(begun).unwrap_or_default())
    }

    /// Makes of what this process counted what is shown, with what the ones before did.
    pub(super) fn settles(&self) -> impl FnMut(Path, &mut u64) {
        |path, count| self.keep.ledger.settle(path, count)
    }

    /// The account of this process's frames: those that another one held are gone.
    fn conservation(&self) -> Conservation {
        let mut account = Conservation::default();
        let held = || self.counters.iter().map(|counters| &counters.held);
        account.held.packets = Gauge::total(held().map(|held| &held.packets));
        account.held.bytes = Gauge::total(held().map(|held| &held.bytes));
        for port in (0..self.ports.len()).map(|index| self.counts(index)) {
            add(&mut account.rx, port.rx);
            add(&mut account.tx, port.tx);
            add(&mut account.originated, port.originated);
            add(&mut account.consumed, port.consumed);
            add(&mut account.punted, port.punted);
            account.drops.packets += port.drops.iter().sum::<u64>();
            account.drops.bytes += port.drop_bytes;
            account.tags_added += port.tag_bytes_added;
            account.tags_removed += port.tag_bytes_removed;
            account.trimmed += port.trimmed_bytes;
        }
        account
    }
}

const fn add(total: &mut Traffic, more: Traffic) {
    total.packets += more.packets;
    total.bytes += more.bytes;
}
