//! View of the running switch: a snapshot built from what workers, control core and devices publish. Never makes any of them wait.

mod baselines;
mod facts;
mod flows;
mod limit;
mod linux;
mod npcc;
mod peaks;
mod ports;
mod ready;
mod workers;

use std::net::IpAddr;
use std::path::Path as FilePath;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use npcc_api::events::{Event, Kind};
use npcc_api::lossless::Buffer;
use npcc_api::model::{Conservation, Snapshot, Traffic};
use npcc_api::punt::Punt;
use npcc_api::qos::Qos;
use npcc_cnp::host_rules::HostRules;
use npcc_cnp::status::NpccStatus;
use npcc_cnp::table::FlowView;
use npcc_pipeline::counters::{self, ControlStats, DeviceDrops, Gauge, Path, PortCount};
use npcc_pipeline::units::{BitRate, Mac, Nanos, PortId};
use npcc_roce::pair::export::EndFeed;

pub use self::baselines::Baselines;
pub use self::facts::{BufferFacts, LinuxFacts, Operators, PortFacts, Published};
pub use self::limit::Limit;
pub use self::peaks::Peaks;
use super::ends::names::PeerNames;
use super::link_state::Links;
use super::pending::Pending;
use super::ready::Readiness;
use crate::apply::in_force::ConfigInForce;
use crate::report::events::{self, Watch};
use crate::report::journal::Journal;
use crate::saved::SavedState;
use crate::wiring::live_routes::{SharedTable, Table};
use npcc_engine::clock::Clock;
use npcc_engine::worker::timings::{TimingKind, Timings};

/// Port's counters at one moment, over all workers, and its device's drops.
#[derive(Debug, Clone, Default)]
pub struct PortReading {
    counts: PortCount,
    device: DeviceDrops,
}

impl PortReading {
    /// Subtracts the counts of an earlier reading.
    fn since(&mut self, then: &PortReading) {
        let PortReading { counts, device } = self;
        counts.since(&then.counts);
        device.since(&then.device);
    }
}

/// Sources of all that is shown.
#[derive(Debug)]
pub struct View {
    /// Version of the program.
    pub version: String,
    /// Time when forwarding started.
    pub started: Instant,
    /// Ports, in the order of the configuration.
    pub ports: Vec<PortFacts>,
    /// Link states of the ports, in the same order.
    pub links: Links,
    /// Counters and statistics that the workers publish.
    pub workers: Published,
    /// Status of NPCC.
    pub npcc: Arc<NpccStatus>,
    /// Flow table.
    pub flows: Arc<FlowView>,
    /// Export of ends.
    pub ends: Arc<EndFeed>,
    /// Names of the peers that report ends.
    pub peers: PeerNames,
    /// Readiness of routes and pairs.
    pub ready: Readiness,
    /// Statistics of the control loop.
    pub control: Arc<ControlStats>,
    /// Sizes of the buffer.
    pub buffer: BufferFacts,
    /// Facts about Linux; `None` where it is not integrated.
    pub linux: Option<LinuxFacts>,
    /// Routes of the file; `None` where they are Linux's.
    pub file_routes: Option<SharedTable>,
    /// Effective queues and maps.
    pub qos: Mutex<Qos>,
    /// Detector of events of lossless queues. Locked before the journal.
    pub events: Mutex<Watch>,
    /// Journal of events and changes.
    pub journal: Mutex<Journal>,
    /// Clock of the workers.
    pub clock: Clock,
    /// Readings and time from which the shown counters and peaks count.
    pub baselines: Mutex<Baselines>,
    /// Delays of the queues' peaks.
    pub peaks: Mutex<Peaks>,
    /// Limit of the events of neighbours, which hosts cause.
    pub neighbor_events: Mutex<Limit>,
    /// Distributions of the workers' timings.
    pub timings: Mutex<Timings>,
    /// State set by operators.
    pub operators: Operators,
    /// State that outlives the process: counts of the previous processes are shown too.
    pub saved: Arc<SavedState>,
}

/// Locks shared state. A panic of another thread left it usable, so poisoning is ignored.
fn lock<T>(at: &Mutex<T>) -> MutexGuard<'_, T> {
    at.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    /// Returns a snapshot of everything but flows, counted since the first start.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot_since(&[])
    }

    /// Returns a snapshot of everything but flows, with ports' counters since the user's last `clear counters`, if it is for a user.
    #[must_use]
    pub fn shown_to(&self, user: Option<u32>) -> Snapshot {
        let baselines = user.map(|user| lock(&self.baselines).of(user));
        self.snapshot_since(&baselines.unwrap_or_default())
    }

    /// Shows the counters of one port, or of all, to a user relative to now. The counters themselves never go back, so the account of all frames
    /// stays whole, and other users, metrics and the page see no change; depths, peaks and NPCC stay too.
    pub fn clear_counters(&self, user: u32, port: Option<PortId>) {
        let ports = 0..self.ports.len();
        let cleared = ports.filter(|index| port.is_none_or(|port| port.index() == *index));
        let readings: Vec<_> = cleared.map(|index| (index, self.reading(index))).collect();
        lock(&self.baselines).set(user, readings);
    }

    /// Locks the effective queues and maps.
    pub(super) fn qos(&self) -> MutexGuard<'_, Qos> {
        lock(&self.qos)
    }

    /// Records that the user watermarks count from now on, and restarts the timings.
    pub(super) fn restart_watermarks(&self) {
        lock(&self.baselines).watermarks_since = SystemTime::now();
        self.timings().clear();
    }

    /// Locks the timings.
    pub(super) fn timings(&self) -> MutexGuard<'_, Timings> {
        lock(&self.timings)
    }

    /// Locks the place for the reload that waits for its commit, with its deadline; `None` if no reload waits.
    pub(super) fn pending_reload(&self) -> MutexGuard<'_, Option<Pending>> {
        lock(&self.operators.pending)
    }

    /// Locks the rules about hosts that are in force.
    pub(super) fn hosts(&self) -> MutexGuard<'_, HostRules> {
        lock(&self.operators.hosts)
    }

    /// Returns the number of the latest capture that a client ended.
    pub(super) const fn ended_capture(&self) -> &AtomicU32 {
        &self.operators.ended_capture
    }

    /// Returns the lock that a reload holds while it reads the file and applies it.
    pub(super) const fn reload_lock(&self) -> &Mutex<()> {
        &self.operators.reading
    }

    /// Returns the path of the configuration file.
    pub(super) fn path(&self) -> &FilePath {
        &self.operators.path
    }

    /// Locks the running configuration, and the values that `set` has changed.
    pub(super) fn config(&self) -> MutexGuard<'_, ConfigInForce> {
        lock(&self.operators.config)
    }

    /// Returns the routes of the file; empty where they are Linux's.
    fn file_routes(&self) -> Arc<Table> {
        let table = self.file_routes.as_ref();
        table.map_or_else(Arc::default, |table| Arc::clone(&lock(table)))
    }

    /// Locks the journal of events and changes.
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        lock(&self.journal)
    }

    fn snapshot_since(&self, baselines: &[Option<PortReading>]) -> Snapshot {
        let readings: Vec<PortReading> = (0..self.ports.len())
            .map(|index| self.reading(index))
            .collect();
        let share = self.share(&readings);
        let ports = self.ports.iter().enumerate().zip(readings);
        let ports = ports.map(|((index, facts), mut reading)| {
            if let Some(Some(then)) = baselines.get(index) {
                reading.since(then);
            }
            self.port((index, facts), reading, share)
        });
        Snapshot {
            version: self.version.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            watermarks_since: humantime::format_rfc3339_millis(
                lock(&self.baselines).watermarks_since,
            )
            .to_string(),
            ports: ports.collect(),
            npcc: self.npcc(),
            workers: (0..self.workers.stats.len())
                .filter_map(|index| self.worker(index))
                .collect(),
            conservation: self.conservation(),
            buffer: self.buffer(),
            punt: self.punt(),
            events: self.events(),
            latency_us: self.times(TimingKind::Latency),
            qos: self.qos().clone(),
        }
    }

    /// Detects events of lossless queues, and takes in the workers' timings; to be called every few milliseconds.
    pub fn watch(&self) {
        self.timings().take_in();
        let (mut watch, mut journal) = (lock(&self.events), self.journal());
        let now = self.clock.now();
        let mut new = Vec::new();
        let rates = self.links.rates();
        for (index, facts) in self.ports.iter().enumerate() {
            let counts = self.counts(index);
            let rate = rates.get(index).copied().unwrap_or(BitRate(0));
            let peaks = counts.queues.iter().map(|queue| queue.peak);
            lock(&self.peaks).take_in(index, rate, peaks);
            let found = watch.port((index, &facts.name), counts, now);
            new.extend(found.filter_map(|event| journal.event(event)));
        }
        new.extend(journal.due(now));
        let covered = (self.buffer.headroom > 0).then_some(self.buffer.turn);
        let slow = watch.turn(Nanos(self.longest_turn()), covered, now);
        new.extend(slow.and_then(|event| journal.event(event)));
        let verdicts = &self.npcc.verdicts;
        let hosts = watch.hosts(verdicts.changes(), verdicts.hosts(), now);
        new.extend(hosts.into_iter().filter_map(|event| journal.event(event)));
        drop((watch, journal));
        new.iter().for_each(events::log);
    }

    /// Records an event of a neighbour of a port, with its MAC addresses before and now: some a minute, as hosts cause them at will.
    pub fn neighbor_event(&self, index: usize, kind: Kind, host: IpAddr, macs: [Mac; 2]) {
        let now = self.clock.now();
        let Some(facts) = self.ports.get(index) else {
            return;
        };
        if lock(&self.neighbor_events).admits(now) {
            self.note(Event::neighbor(&facts.name, kind, host, macs));
        }
    }

    /// Records a link event of a port; `mbps` is its speed.
    pub fn link_event(&self, index: usize, kind: Kind, mbps: u64) {
        if let Some(facts) = self.ports.get(index) {
            self.note(Event::link(&facts.name, kind, mbps));
        }
    }

    /// Records an event that happens now.
    pub fn note(&self, event: Event) {
        let event = Event {
            time_us: self.clock.now().0 / 1_000,
            ..event
        };
        let new = self.journal().event(event);
        new.iter().for_each(events::log);
    }

    /// Returns the events of ports and lossless queues, oldest first.
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

    /// Returns a port's counts, summed over all workers.
    fn counts(&self, index: usize) -> PortCount {
        let ports = self.workers.counters.iter();
        counters::sum(ports.filter_map(|counters| counters.port(index)))
    }

    /// Returns the most that a group may hold of the shared pool at this moment, in wire bytes.
    fn share(&self, readings: &[PortReading]) -> u64 {
        let held = readings.iter().enumerate().map(|(index, reading)| {
            let reserved = self.links.get(index).map_or(0, |link| link.pfc.reserved);
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
        let turns = self
            .workers
            .stats
            .iter()
            .map(|stats| stats.longest_ns.get());
        turns.max().unwrap_or_default()
    }

    /// Returns the state of the buffer, over all workers.
    fn buffer(&self) -> Buffer {
        let gauges = || {
            self.workers
                .counters
                .iter()
                .map(|counters| &counters.buffer)
        };
        let most = |of: fn(&counters::BufferGauges) -> &Gauge| {
            // Peaks are of the whole buffer, as each worker saw it.
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

    /// Returns the counts of frames to and from Linux, over all workers.
    fn punt(&self) -> Punt {
        let mut workers =
            counters::sum(self.workers.counters.iter().map(|counters| &*counters.punt));
        let host = self.linux.as_ref();
        let rates = host.map(|linux| &linux.rates);
        let mut host = counters::sum(host.iter().map(|linux| &*linux.stats));
        workers.each(Path::ROOT.then("punt"), &mut self.settles());
        host.each(Path::ROOT.then("host"), &mut self.settles());
        Punt::of(rates, workers, host)
    }

    /// Returns the time for which the switch's traffic has been drained; `None` if it is not.
    #[must_use]
    pub fn draining(&self) -> Option<Duration> {
        self.saved.facts().drained_for(SystemTime::now())
    }

    /// Returns the function that adds the previous processes' count to a count of this one.
    pub(super) fn settles(&self) -> impl FnMut(Path, &mut u64) {
        |path, count| self.saved.ledger.settle(path, count)
    }

    /// Returns the account of this process's frames: frames that a previous process held are gone.
    fn conservation(&self) -> Conservation {
        let mut account = Conservation::default();
        let held = || self.workers.counters.iter().map(|counters| &counters.held);
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
