//! Tracker of flows: processes records, reads byte counts, keeps flows, endpoints and pairing together.

mod active;
mod cnp_effects;
mod contributions;
mod export;
mod flows;
mod foreign;
mod intake;
mod prefetch;
mod strikes;
mod xoffs;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use arrayvec::ArrayVec;
use npcc_pipeline::units::{MAX_PORTS, Nanos, PRIORITIES, PortId, Priority};

use crate::control::config::ControlConfig;
use crate::control::settings::Settings;
use crate::dcqcn::Measure;
use crate::flow_cache::CacheReader;
use crate::host_rtt::HostRtt;
use crate::hosts::Hosts;
use crate::responsiveness::HostVerdicts;
use crate::status::NpccStatus;
use crate::table::{FlowTable, QueueList};
use crate::uncounted::UncountedSlots;
use npcc_roce::fixed_map::NONE;
use npcc_roce::holdings::Holdings;
use npcc_roce::key::{FlowKey, Qpn, QueueFlow};
use npcc_roce::pair::Evidence;
use npcc_roce::pair::connections::ConnectionTable;
use npcc_roce::source_check::{Routes, SourceCheck};
use npcc_roce::source_limit::SourceLimit;
use xoffs::Xoffs;

/// Maximum number of workers.
pub(crate) const MAX_READERS: usize = 32;
/// Interval at which flows of quiet queues are read.
const SLOW: Nanos = Nanos::from_millis(10);
/// Number of flows of each quiet queue that are read in a tick in any case, however late it is and however many records it has
/// processed.
const LEAST_READS: usize = 64;
/// Index that stands for no watched queue.
const UNWATCHED: u8 = u8::MAX;

/// Number of endpoints that a core's own cache holds.
const PREFETCH_ABOVE: usize = 1_024;

#[derive(Debug)]
pub(crate) struct FlowTracker {
    /// Settings in force, also for the other parts of the control core.
    pub(crate) settings: Settings,
    pub(crate) flows: FlowTable,
    pub(crate) connections: ConnectionTable,
    readers: ArrayVec<CacheReader, MAX_READERS>,
    /// Flow of each slot, by reader.
    slot_flows: ArrayVec<Box<[u32]>, MAX_READERS>,
    /// Limits on new endpoints (`new_ends`), and on messages that begin connections (`new_connections`).
    new_ends: SourceLimit,
    new_connections: SourceLimit,
    check: SourceCheck,
    /// Holdings of flows without evidence.
    unproven: Holdings,
    uncounted_slots: UncountedSlots,
    pub(crate) hosts: Hosts,
    pub(crate) verdicts: HostVerdicts,
    /// Flow whose host is due for a trial.
    pub(crate) due_trial: Option<u32>,
    host_rtt: HostRtt,
    xoffs: Xoffs,
    pub(crate) status: Arc<NpccStatus>,
    lists: Box<[QueueList]>,
    /// Watched queues of which next to nothing goes to far receivers, as far as is known: flows with near ones are left to ECN there.
    near_only: Box<[bool]>,
    /// Index of the watched queue by port and priority.
    queue_of: [[u8; PRIORITIES]; MAX_PORTS],
    paired: [u64; Evidence::COUNT],
    window: Nanos,
    pub(crate) measure: Measure,
    tick: Nanos,
    records_per_tick: usize,
    reads_per_tick: usize,
    /// Maximum number of reads of a quiet queue in a tick, adapted so that ticks are on time.
    quiet_reads: usize,
    /// Number of flows to be read once more as fast as possible: some of them send, and it is not known which.
    overdue: usize,
    /// Index of the worker whose records were processed first in the last tick.
    first_reader: usize,
    /// Number of records processed by this tick.
    drained: usize,
    /// Ports with a watched queue.
    watched: u32,
    /// Peer whose number of ends is published next.
    shown_peer: u8,
}

/// Index of the watched queue by port and priority. Flows of moved hosts are listed with the first watched queue of their port: they share its
/// weight, and came from it, or from the next.
fn queue_of(settings: &Settings) -> [[u8; PRIORITIES]; MAX_PORTS] {
    let mut all = [[UNWATCHED; PRIORITIES]; MAX_PORTS];
    let mut set = |port: PortId, priority: Priority, index: u8| {
        let port = all.get_mut(port.index());
        let slot = port.and_then(|port| port.get_mut(priority.index()));
        if let Some(slot) = slot.filter(|slot| **slot == UNWATCHED) {
            *slot = index;
        }
    };
    let queues = || (0..UNWATCHED).zip(&settings.queues);
    for (index, queue) in queues() {
        set(queue.port, queue.priority, index);
    }
    if let Some(moved) = settings.hosts.unresponsive.priority() {
        for (index, queue) in queues() {
            set(queue.port, moved, index);
        }
    }
    all
}

impl FlowTracker {
    pub(crate) fn new(
        config: &ControlConfig,
        period: Nanos,
        status: Arc<NpccStatus>,
    ) -> FlowTracker {
        let settings = config.settings.clone();
        FlowTracker {
            flows: FlowTable::new(config.flows, config.hash_seed),
            connections: ConnectionTable::new(config.ends, config.hash_seed),
            readers: ArrayVec::new(),
            slot_flows: ArrayVec::new(),
            new_ends: SourceLimit::new(config.new_flows, config.new_flows_burst, config.hash_seed),
            new_connections: SourceLimit::new(
                config.new_connections,
                config.new_connections_burst,
                config.hash_seed,
            ),
            check: SourceCheck::new(settings.source_sides, config.hash_seed),
            unproven: Holdings::new(config.hash_seed),
            uncounted_slots: UncountedSlots::new(),
            hosts: Hosts::new(config.hash_seed),
            verdicts: HostVerdicts::new(config.hash_seed),
            due_trial: None,
            host_rtt: HostRtt::new(config.hash_seed),
            xoffs: Xoffs::new(),
            status,
            lists: vec![QueueList::EMPTY; settings.queues.len()].into_boxed_slice(),
            near_only: vec![true; settings.queues.len()].into_boxed_slice(),
            queue_of: queue_of(&settings),
            paired: [0; Evidence::COUNT],
            window: config.window(),
            measure: Measure::new(settings.feedback, period),
            tick: config.tick,
            records_per_tick: config.records_per_tick,
            reads_per_tick: config.reads_per_tick.max(1),
            quiet_reads: config.reads_per_tick.max(1),
            overdue: 0,
            first_reader: 0,
            drained: 0,
            watched: settings.watched_ports(),
            shown_peer: 0,
            settings,
        }
    }

    /// Replaces the settings; learned state stays.
    pub(crate) fn reconfigure(&mut self, settings: Settings, period: Nanos) {
        self.check.reconfigure(settings.source_sides);
        self.measure = Measure::new(settings.feedback, period);
        self.watched = settings.watched_ports();
        if self.settings.hosts.unresponsive != settings.hosts.unresponsive {
            self.unlist_moved();
            self.queue_of = queue_of(&settings);
        }
        self.settings = settings;
    }

    /// Sets the routes that say where sources lie from now on.
    pub(crate) fn know_routes(&mut self, routes: Box<dyn Routes>) {
        self.check.know_routes(routes);
    }

    /// Records that the senders behind these ports are paused in this priority now: nothing is learned from their flows' response.
    pub(crate) fn record_xoff(&mut self, ports: u32, priority: Priority, now: Nanos) {
        self.xoffs.note(ports, priority, now);
    }

    /// Time at which the senders behind this port were last paused in this priority.
    pub(crate) fn paused(&self, port: PortId, priority: Priority) -> Nanos {
        self.xoffs.of(port, priority)
    }

    /// Attaches a worker's cache; returns `false` if there are too many.
    pub(crate) fn attach(&mut self, reader: CacheReader) -> bool {
        let flows = vec![NONE; reader.slots()].into_boxed_slice();
        self.slot_flows.try_push(flows).is_ok() && self.readers.try_push(reader).is_ok()
    }

    /// Touches all memory there will ever be, so that no tick takes a page fault.
    pub(crate) fn touch_memory(&mut self) {
        let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let key = FlowKey::new(address, address, Qpn::default());
        self.connections.touch_memory(key);
        self.flows.touch_memory(QueueFlow {
            key,
            egress: PortId(0),
            priority: Priority::new(0),
        });
    }
}
