//! The configuration as NPCC's settings.

use npcc_cnp::build::CnpStyle;
use npcc_cnp::control::ControlCore;
use npcc_cnp::control::config::{ControlConfig, QueueConfig};
use npcc_cnp::detector::DetectorConfig;
use npcc_cnp::pair::Evidence;
use npcc_cnp::policy::PolicyKind;
use npcc_cnp::policy::model::ModelConfig;
use npcc_cnp::policy::npcc::{CLOSEST, NpccConfig};
use npcc_cnp::policy::pi::PiConfig;
use npcc_config::plan::PortNpcc;
use npcc_config::units::{Rate, Time};
use npcc_config::{Config, model};
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

/// Records a worker may have on the way to the control core: more than it takes in during 100 ticks.
pub const RING: usize = 65_536;
/// What an unlimited port counts as when CNPs' share of it is reckoned.
const UNLIMITED: BitRate = BitRate(100_000_000_000);
/// Ethernet, two tags and the wire overhead of a full frame.
const FRAME: u64 = 22 + 24;

/// The set of ports NPCC watches.
#[must_use]
pub fn ports(config: &Config) -> u32 {
    watched(config).fold(0, |set, (id, _, _)| set | id.bit())
}

/// Time between two looks of the policy `model`: a fifth of a tick.
fn look(tick: Nanos) -> Nanos {
    Nanos(tick.0 / 5).max(CLOSEST)
}

/// How CNPs look, and the queue they enter.
#[must_use]
pub fn style(config: &Config) -> (CnpStyle, Priority) {
    let cnp = &config.npcc.cnp;
    let style = CnpStyle {
        ttl: cnp.ttl.byte(),
        udp_source_port: cnp.udp_source_port.short(),
        ..CnpStyle::with_dscp(cnp.dscp.byte())
    };
    (style, Priority::new(cnp.priority.byte()))
}

/// The control core's settings; `rates` are what the ports' egress sides are shaped to.
#[must_use]
pub fn plan(config: &Config, rates: &[Option<BitRate>], hash_seed: u64) -> ControlConfig {
    // All keys and all settings are named, so that one that is forgotten does not compile.
    let model::Npcc {
        tick,
        flows,
        evidence,
        unpaired,
        ecn,
        min_cnp_interval,
        feedback,
        cnp,
        // Resolved by the configuration: thresholds of each port, and the ports' numbers.
        shallow: _,
        deep: _,
        hard: _,
        trusted_ports: _,
        // The detectors' and the policies'.
        hysteresis: _,
        filter: _,
        recovery: _,
    } = &config.npcc;
    let ControlConfig {
        cap_per_second,
        verify_cm,
        new_flows,
        new_flows_burst,
        records_per_tick,
        reads_per_tick,
        orders_per_tick,
        ..
    } = ControlConfig::default();
    let rate = |id: PortId| rates.get(id.index()).copied().flatten();
    let queues = watched(config).flat_map(|(id, port, watch)| {
        // The configuration asks for the speed of a watched port, or its link has one.
        let drain = rate(id).unwrap_or(UNLIMITED);
        watch.priorities().map(move |priority| QueueConfig {
            port: id,
            priority: Priority::new(priority),
            detector: detector(config, watch, port.mtu, drain),
            policy: policy(config, watch, watch.policy, port.mtu, drain),
        })
    });
    ControlConfig {
        tick: nanos(*tick),
        queues: queues.collect(),
        port_rates: rates.iter().map(|rate| rate.unwrap_or(UNLIMITED)).collect(),
        cap: cnp.cap.basis_points() / 10,
        cap_per_second,
        flows: flows.size(),
        ends: flows.size().saturating_mul(2),
        evidence: self::evidence(*evidence),
        unpaired: *unpaired,
        ecn: *ecn,
        feedback: nanos(*feedback),
        notified: nanos(*min_cnp_interval),
        trusted_ports: trusted(config),
        verify_cm,
        new_flows,
        new_flows_burst,
        records_per_tick,
        reads_per_tick,
        orders_per_tick,
        hash_seed,
    }
}

/// Makes every policy available to every watched queue, for `set` while running.
pub fn offer(core: &mut ControlCore, config: &Config, rates: &[Option<BitRate>]) {
    for (port, priority, kind) in offers(config, rates) {
        core.offer(port, priority, kind);
    }
}

/// Every policy for every watched queue.
#[must_use]
pub fn offers(config: &Config, rates: &[Option<BitRate>]) -> Vec<(PortId, Priority, PolicyKind)> {
    let mut offers = Vec::new();
    for (id, port, watch) in watched(config) {
        let drain = rates
            .get(id.index())
            .copied()
            .flatten()
            .unwrap_or(UNLIMITED);
        for priority in watch.priorities() {
            for which in [model::Policy::Npcc, model::Policy::Model, model::Policy::Pi] {
                let kind = policy(config, watch, which, port.mtu, drain);
                offers.push((id, Priority::new(priority), kind));
            }
        }
    }
    offers
}

/// The set of ports that are believed: all, when none is named.
fn trusted(config: &Config) -> u32 {
    let named = config
        .trusted_ports
        .iter()
        .filter_map(|index| u8::try_from(*index).ok());
    match named.fold(0, |set, index| set | PortId(index).bit()) {
        0 => u32::MAX,
        set => set,
    }
}

/// Ports with NPCC, with their ids.
fn watched(config: &Config) -> impl Iterator<Item = (PortId, &npcc_config::plan::Port, &PortNpcc)> {
    let ports = config.ports.iter().zip(0u8..);
    ports.filter_map(|(port, id)| port.npcc.as_ref().map(|watch| (PortId(id), port, watch)))
}

fn detector(config: &Config, watch: &PortNpcc, mtu: u16, drain: BitRate) -> DetectorConfig {
    let [shallow, deep, hard] = thresholds(watch, mtu, drain);
    DetectorConfig {
        shallow,
        deep,
        hard,
        hysteresis: u8::try_from(config.npcc.hysteresis.basis_points() / 100)
            .unwrap_or(99)
            .min(99),
        filter: config.npcc.filter.get(),
        tick: nanos(config.npcc.tick),
        drain,
        mtu: u64::from(mtu) + FRAME,
    }
}

/// Depths from which a watched queue is shallow, deep and hard, in bytes, as the port's mode uses them.
#[must_use]
pub fn thresholds(watch: &PortNpcc, mtu: u16, drain: BitRate) -> [u64; 3] {
    let [shallow, deep, hard] = watch.thresholds.bytes(Rate(drain.0), mtu);
    let (shallow, deep) = watch.mode.thresholds(shallow, deep);
    [shallow, deep, hard]
}

fn policy(
    config: &Config,
    watch: &PortNpcc,
    which: model::Policy,
    mtu: u16,
    drain: BitRate,
) -> PolicyKind {
    let npcc = &config.npcc;
    let table = NpccConfig {
        mode: watch.mode,
        tick: nanos(npcc.tick),
        recovery: nanos(npcc.recovery),
        min_interval: nanos(npcc.min_cnp_interval),
        feedback: nanos(npcc.feedback),
    };
    let [shallow, _, _] = thresholds(watch, mtu, drain);
    match which {
        model::Policy::Npcc => PolicyKind::Npcc(table),
        model::Policy::Model => PolicyKind::Model(ModelConfig {
            look: look(nanos(npcc.tick)),
            set_point: time_of(shallow / 2, drain),
            horizon: nanos(npcc.recovery),
            fallback: table,
            ..ModelConfig::default()
        }),
        model::Policy::Pi => PolicyKind::Pi(PiConfig {
            period: Nanos(npcc.tick.nanos().saturating_mul(2)),
            set_point: time_of(shallow / 5 * 4, drain),
            min_interval: nanos(npcc.min_cnp_interval),
            ..PiConfig::default()
        }),
    }
}

/// How long a queue takes to drain so many bytes.
fn time_of(bytes: u64, drain: BitRate) -> Nanos {
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(drain.0.max(1));
    Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The least evidence as the pairing compares it; it knows two more degrees, of which none can be asked for.
const fn evidence(least: model::Evidence) -> Evidence {
    match least {
        model::Evidence::Cm => Evidence::Cm,
        model::Evidence::PortHash => Evidence::PortHash,
        model::Evidence::Psn => Evidence::Psn,
        model::Evidence::Port => Evidence::Port,
        model::Evidence::Only => Evidence::Only,
    }
}

const fn nanos(time: Time) -> Nanos {
    Nanos(time.nanos())
}
