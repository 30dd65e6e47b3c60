//! Settings of one switch, as `npcc-switch run` derives them from its configuration with the profile `roce-lossless`.

use std::collections::VecDeque;
use std::sync::Arc;

use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::{ControlConfig, Gate, Settings, WatchedQueueConfig as Watched};
use npcc_cnp::defaults;
use npcc_cnp::detector::DetectorConfig;
use npcc_cnp::flow_cache::FlowCache;
use npcc_cnp::host_rules::{HostRules, Unresponsive};
use npcc_pipeline::buffer::{BufferConfig, ControlReserve, GroupConfig, PoolConfig};
use npcc_pipeline::classify::{Classifier, Trust};
use npcc_pipeline::datapath::{Datapath, LosslessConfig, PortConfig};
use npcc_pipeline::egress::port::{
    EcnConfig, EcnMode, EgressConfig, EgressQueueConfig, UpstreamCe,
};
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::frame::{Meta, Queued, wire_len};
use npcc_pipeline::pause::PauseConfig;
use npcc_pipeline::route::writer::{RouteCapacity, RouteWriter};
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{BURST, BitRate, Nanos, PortId, Priority};

use super::topology::{PortPlan, port_mac};
use crate::engine::CONTROL;
use crate::engine::lease::Anywhere;
use crate::engine::switch::{Port, Switch};
use crate::frame::SimFrame;
use crate::scenario::{Case, Place, Scenario, Start};
use crate::wire::{self, OVERHEAD};

/// Frame capacity of an unlimited buffer.
const UNLIMITED_FRAMES: u64 = 1 << 20;
const UNLIMITED_BYTES: u64 = 1 << 40;
/// Bytes a peer may still send after it received a pause: as SONiC's headroom, two full frames and 3,840 quanta-free bytes.
const RESPONSE: u64 = 20_000;

pub(super) fn switch(
    scenario: &Scenario,
    case: &Case,
    index: u32,
    (ports, round_trips): (&[PortPlan], &[Nanos]),
    npcc: &[(u32, u8)],
) -> Switch {
    let watched = npcc.iter().filter(|(at, _)| *at == index);
    let watched = watched.fold(0, |set, (_, port)| set | PortId(*port).bit());
    let pool = pool(scenario);
    let capacity = RouteCapacity {
        ipv4_routes: 4_096,
        ipv6_routes: 16,
        adjacencies: 4_096,
        groups: 4_096,
    };
    let (routes, mut readers) = RouteWriter::new(capacity, 2);
    // `RouteWriter::new` was called for two readers.
    let (Some(fib), Some(forwarding)) = (readers.pop(), readers.pop()) else {
        unreachable!("the writer made fewer readers than it was asked for");
    };
    let seed = scenario.seed ^ u64::from(index) << 32;
    let eyes = case.scheme.policy.is_some() && watched != 0;
    let (cache, core) = if eyes {
        let (cache, reader) = FlowCache::new(16_384, watched, 65_536, seed);
        let mut core = ControlCore::new(&control(scenario, case, ports, watched, seed));
        core.attach(reader);
        if scenario.imperfections.trials_at_once {
            core.try_hosts_at_once();
        }
        if matches!(case.start, Start::Reported(_)) {
            core.know_routes(Box::new(Anywhere));
        }
        (Some(cache), Some(core))
    } else {
        (None, None)
    };
    let plans = ports.iter().zip(round_trips).enumerate();
    let configs = plans.map(|(port, (plan, round_trip))| {
        let here = watched & 1 << port != 0;
        let place = Place {
            rate: plan.rate,
            round_trip: *round_trip,
            pool: scenario.pool,
            mtu: scenario.mtu,
        };
        port_config(scenario, case, (index, port), place, here)
    });
    let mut path = Datapath::new(configs.collect(), pool, forwarding, cache, seed);
    if let Some(core) = &core {
        path = path.with_moved_hosts(Arc::clone(core.moved_hosts()));
    }
    if scenario.pauses() {
        path = path.with_lossless(lossless(scenario, ports, pool));
    }
    Switch {
        path,
        core,
        fib,
        routes,
        ports: ports
            .iter()
            .map(|plan| Port {
                link: plan.link,
                wake: Nanos(u64::MAX),
                marked: 0,
                published: [0; 8],
                unpublished: 0,
            })
            .collect(),
        themis: if case.scheme.themis { watched } else { 0 },
        pfc: scenario.pfc,
        out: (1..BURST).map(|_| filler()).collect(),
        making: VecDeque::new(),
        cnps: 0,
    }
}

/// Returns a placeholder that fills one slot of a burst; it is never sent.
fn filler() -> Queued<SimFrame> {
    Queued {
        buf: SimFrame::of_len(0),
        meta: Meta::of(0, PortId(0), PortId(0), Priority::new(0)),
    }
}

fn pool(scenario: &Scenario) -> PoolConfig {
    match scenario.pool {
        Some(bytes) => PoolConfig {
            bytes: bytes.0,
            // One frame per 1,024 bytes: acknowledgements are short, data frames are not.
            frames: bytes.0.div_ceil(1_024).min(UNLIMITED_FRAMES),
            alpha_256: 256,
        },
        None => PoolConfig {
            bytes: UNLIMITED_BYTES,
            frames: UNLIMITED_FRAMES,
            alpha_256: 256,
        },
    }
}

/// Builds the lossless groups: the priorities of data on every port, with headroom for what is on the wire and in the peer when a pause is sent.
fn lossless(scenario: &Scenario, ports: &[PortPlan], pool: PoolConfig) -> LosslessConfig {
    let frame = wire_len(OVERHEAD + 16 + usize::from(scenario.mtu));
    let data = || scenario.priorities();
    let all = data().fold(0, |set, priority| set | priority.bit());
    let groups = ports.iter().map(|plan| {
        let mut groups = [GroupConfig::default(); 8];
        if !scenario.pfc {
            return groups;
        }
        let flying = plan
            .rate
            .bytes_in(Nanos(2 * plan.delay.0 + scenario.pfc_reaction.0));
        for priority in data() {
            groups[priority.index()] = GroupConfig {
                lossless: true,
                reserved: 2 * u64::from(frame),
                headroom: flying + RESPONSE + 4 * u64::from(frame),
                xon: 2 * u64::from(frame),
                xon_offset: 4 * u64::from(frame),
            };
        }
        groups
    });
    let groups: Vec<_> = groups.collect();
    let ports = ports.iter().zip(&groups).map(|(plan, groups)| {
        // No pause is sent on a link whose headroom would take a quarter of the pool or more: no card has that memory.
        let fits = groups.iter().all(|group| group.headroom < pool.bytes / 4);
        let set = if fits { all } else { 0 };
        PauseConfig {
            // A switch that sends no pauses still honours them where the scenario has far-end pauses.
            send: if scenario.pfc { set } else { 0 },
            // Honouring a pause needs no headroom here, whatever the link's length.
            honour: if scenario.imperfections.pauses.is_empty() {
                set
            } else {
                all
            },
            rate: plan.rate,
            ..PauseConfig::off()
        }
    });
    LosslessConfig {
        ports: ports.collect(),
        buffer: BufferConfig {
            control: ControlReserve::default(),
            pool,
            min_frame: 1_048,
            shared_headroom: None,
            groups,
        },
    }
}

fn port_config(
    scenario: &Scenario,
    case: &Case,
    (switch, port): (u32, usize),
    place: Place,
    watched: bool,
) -> PortConfig {
    let thresholds = &scenario.thresholds;
    let bytes = |threshold: npcc_config::units::Threshold| {
        threshold.bytes_floored(place.rate, scenario.mtu)
    };
    let red = case.scheme.curve.red(thresholds, place);
    let marks = case.scheme.ecn != EcnMode::Off;
    let mut queues: [EgressQueueConfig; 8] = std::array::from_fn(|_| EgressQueueConfig::default());
    for priority in scenario.priorities() {
        let queue = &mut queues[priority.index()];
        *queue = EgressQueueConfig {
            discipline: Discipline::Dwrr(50),
            ecn: marks.then_some(red),
            lossless: true,
            ..EgressQueueConfig::default()
        };
        if watched {
            queue.watched_depths = [thresholds.shallow, thresholds.hard].map(bytes);
        }
    }
    queues[usize::from(CONTROL)].discipline = Discipline::Strict;
    if let Some(queue) = moved(scenario) {
        queues[queue.index()].ecn = marks.then_some(red);
    }
    let mut dscp = [Priority::new(0); 64];
    for class in wire::DATA {
        dscp[usize::from(class.dscp)] = Priority::new(class.priority);
    }
    dscp[usize::from(defaults::CNP_DSCP)] = Priority::new(CONTROL);
    let mtu = u16::try_from(OVERHEAD + 16 - 14).unwrap_or(u16::MAX) + scenario.mtu;
    PortConfig {
        intake: IngressConfig {
            mac: port_mac(switch, port),
            mtu,
            vlans: Box::default(),
            classifier: Classifier {
                trust: Trust::Dscp,
                default: Priority::new(0),
                dscp,
                pcp: [Priority::new(0); 8],
            },
        },
        egress: EgressConfig {
            rate: None,
            max_frame: mtu + 14,
            max_absence: Nanos::ZERO,
            queues,
        },
        ecn: match case.scheme.ecn {
            EcnMode::Divert if watched => EcnConfig {
                mode: EcnMode::Divert,
                upstream_ce: if case.scheme.leave {
                    UpstreamCe::Leave
                } else {
                    UpstreamCe::Answer
                },
            },
            EcnMode::Off => EcnConfig::OFF,
            EcnMode::Mark | EcnMode::Divert => EcnConfig::MARK,
        },
    }
}

/// Returns the priority of hosts that do not respond, if they are moved.
fn moved(scenario: &Scenario) -> Option<Priority> {
    let queue = scenario.unresponsive.queue();
    queue.map(|queue| Priority::new(queue.byte()))
}

fn control(
    scenario: &Scenario,
    case: &Case,
    ports: &[PortPlan],
    watched: u32,
    seed: u64,
) -> ControlConfig {
    let thresholds = &scenario.thresholds;
    let queue = |plan: &PortPlan, place: (PortId, Priority)| {
        let rate: BitRate = plan.rate;
        let bytes =
            |threshold: npcc_config::units::Threshold| threshold.bytes_floored(rate, scenario.mtu);
        let policy = case.scheme.policy_kind(scenario.pool.map(|pool| pool.0))?;
        let detector = DetectorConfig {
            shallow: bytes(thresholds.shallow),
            deep: bytes(thresholds.deep),
            hard: bytes(thresholds.hard),
            filter: defaults::FILTER,
            tick: defaults::TICK,
            drain: rate,
            mtu: u64::from(wire_len(OVERHEAD + 16 + usize::from(scenario.mtu))),
        };
        Some(Watched::new(place, detector, policy))
    };
    let mut queues = Vec::new();
    for (plan, port) in ports.iter().zip((0u8..).map(PortId)) {
        if watched & port.bit() != 0 {
            let places = scenario.priorities().map(|priority| (port, priority));
            queues.extend(places.filter_map(|place| queue(plan, place)));
        }
    }
    ControlConfig {
        settings: Settings {
            queues,
            port_rates: ports.iter().map(|plan| plan.rate).collect(),
            hosts: HostRules {
                unresponsive: moved(scenario).map_or(Unresponsive::Mark, Unresponsive::Queue),
                ..HostRules::default()
            },
            ecn: case.scheme.ecn,
            evidence: case.start.evidence(),
            gate: if case.scheme.near {
                Gate::Off
            } else {
                Gate::Auto
            },
            ..Settings::default()
        },
        flows: 8_192,
        ends: 16_384,
        hash_seed: seed,
        ..ControlConfig::default()
    }
}
