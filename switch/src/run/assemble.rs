//! Builds workers, control core and management from a configuration and open ports.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use anyhow::anyhow;
use npcc_config::Config;
use npcc_config::sizing::SpeedFrom;
use npcc_linux::netlink::ahead::Ahead;
use npcc_pipeline::datapath::LosslessConfig;
use npcc_pipeline::handoff::links;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::units::{PortId, WorkerId};

use super::linux::LinuxSide;
use super::routes::routes;
use super::source::{Options, Source};
use super::workers::{Shared, parts, workers};
use crate::apply::desired::{DesiredState, ObservedLink};
use crate::apply::running::RunningState;
use crate::manage::capture::Captures;
use crate::manage::carrier::Carrier;
use crate::manage::ends::names::PeerNames;
use crate::manage::link_state::{DownReason, LinkState, Links};
use crate::manage::management::{Live, Management};
use crate::manage::ready::Readiness;
use crate::manage::targets::Routes as Routing;
use crate::manage::view::{BufferFacts, LinuxFacts, Operators, PortFacts, View};
use crate::report::events::Watch;
use crate::report::journal::Journal;
use crate::report::qos;
use crate::saved::SavedState;
use crate::wiring::assembly::{self, ControlPeers};
use crate::wiring::kernel::Kernel;
use crate::wiring::live_routes::LiveRoutes;
use crate::wiring::pfc::PfcState;
use crate::wiring::speeds::LinkFrom;
use crate::wiring::{self, pools::Pools, ports::OpenPort};
use npcc_engine::clock::Clock;
use npcc_engine::control::ControlLoop;
use npcc_engine::linux_io::LinuxIo;
use npcc_engine::recorder::start::Recorder;
use npcc_engine::sleep::Wakers;
use npcc_engine::worker::Worker;
use npcc_engine::worker::command::WorkerCommands;
use npcc_engine::worker::probe::Probe;
use npcc_engine::worker::receiving::Receiving;
use npcc_engine::worker::telemetry::Telemetry;
use npcc_engine::worker::timings::Timings;

/// Workers, control core, management and the transfer to Linux, ready to start.
pub(super) struct Assembly<P> {
    pub(super) workers: Vec<Worker<P>>,
    pub(super) control: ControlLoop,
    pub(super) management: Management,
    /// Frame transfer between the workers and Linux; `None` where Linux is not integrated.
    pub(super) linux: Option<LinuxIo>,
}

/// Inputs of the assembly.
pub(super) struct Inputs<'a> {
    pub(super) source: &'a Source,
    pub(super) options: &'a Options,
    pub(super) saved: Arc<SavedState>,
    /// Kernel's state read in advance; `None` where Linux is not integrated.
    pub(super) ahead: Option<Ahead>,
    pub(super) ports: Vec<OpenPort>,
    pub(super) pools: &'a Pools,
    pub(super) clock: Clock,
    pub(super) recorder: Option<&'a Recorder>,
}

/// Builds everything that runs. `probe` makes each worker's probe, which the appliance supplies.
pub(super) fn assemble<P: Probe>(
    inputs: Inputs<'_>,
    mut probe: impl FnMut(Telemetry) -> P,
) -> anyhow::Result<Assembly<P>> {
    let (source, clock) = (inputs.source, inputs.clock);
    let (mut ports, saved, recorder) = (inputs.ports, inputs.saved, inputs.recorder);
    let (config, seed) = (&source.loaded.config, unforeseen());
    let (linux, integration) = LinuxSide::of(config, &ports, &saved, inputs.ahead)?.unzip();
    let routes = routes(config, &ports, integration, &inputs.options.prefixes)?;
    let (lossless, buffer, link_states) = flow_control(config, &ports)?;
    let derived = derived(config, &ports, &link_states);
    let logs = recorder.map(Recorder::decisions).unwrap_or_default();
    let settings = derived.control.clone();
    let mut core = assembly::control_core(config, settings, (routes.sources, logs), seed);
    core.touch_memory();
    let facts = port_facts(config, &mut ports);
    let receivers = ports.iter().map(|port| 1 + port.more_rx.len());
    let plan = wiring::workers::assignment(config, receivers);
    let owners: Vec<usize> = plan.owners.iter().map(|owner| owner.index()).collect();

    let shared = Shared {
        all: assembly::Shared {
            config,
            down: down_at_start(&ports, &routes.down),
            settings: derived.paths(),
            lossless,
            clock,
            receiving: Arc::new(Receiving::new(config.cores.workers.len())),
        },
        storms: saved.facts().storms,
    };
    let ends = (routes.workers, links(plan));
    let (parts, sleepers) = parts(config, ends, (ports, inputs.pools), seed)?;
    let (mut workers, peers) = workers(&shared, parts, linux, (&mut core, &mut probe))?;
    record(recorder, &mut workers, &clock);
    let kernel = routes.kernel.as_ref();
    let linux = linux_io(peers.linux, kernel, (&owners, sleepers.wakers))?;

    let running = RunningState::new(source.path.clone(), &source.loaded, derived);
    let control_peers = ControlPeers {
        counters: peers.published.counters.clone(),
        injections: peers.injections,
        owners,
    };
    let by = (routes.control, clock);
    let (control, npcc) = assembly::control(config, core, control_peers, by, sleepers.control);
    let view = View {
        version: format!("{}, DPDK {}", source.version, npcc_dpdk::DPDK_VERSION),
        started: Instant::now(),
        ports: facts,
        links: link_states,
        workers: peers.published,
        npcc: control.core.status(),
        flows: control.core.flows(),
        ends: control.core.feed(),
        peers: PeerNames::default(),
        ready: Readiness::default(),
        control: Arc::clone(&control.stats),
        buffer,
        linux: seen(config, linux.as_ref(), kernel),
        file_routes: routes.by_file.as_ref().map(LiveRoutes::shared),
        qos: Mutex::new(qos::effective(config, &running.current().paths())),
        events: Mutex::new(Watch::default()),
        journal: Mutex::new(Journal::kept(&saved)),
        clock,
        baselines: Mutex::default(),
        peaks: Mutex::default(),
        neighbor_events: Mutex::default(),
        timings: Mutex::new(Timings::new(peers.times)?),
        operators: Operators::new(running.in_force().clone(), source.path.clone()),
        saved,
    };
    Ok(Assembly {
        workers,
        control,
        linux,
        management: Management {
            view,
            workers: WorkerCommands::new(peers.commands),
            npcc,
            live: Mutex::new(live(running, routes.by_file, inputs.options)),
            down: routes.down,
            kernel: routes.kernel,
            captures: Mutex::new(Captures::new(peers.captures)),
        },
    })
}

/// Makes the thread's side of the frame transfer between the workers and Linux; `None` where Linux is not integrated.
fn linux_io(
    side: Option<LinuxSide>,
    kernel: Option<&Kernel>,
    (owners, wakers): (&[usize], Option<Arc<Wakers>>),
) -> anyhow::Result<Option<LinuxIo>> {
    let linux = side.zip(kernel);
    let io = linux.map(|(side, kernel)| side.io(owners, kernel, wakers));
    io.transpose()
}

/// Returns the running configuration and its routes, as started.
fn live(running: RunningState, table: Option<LiveRoutes>, options: &Options) -> Live {
    let prefixes = options.prefixes.clone();
    Live {
        running,
        routes: Routing { table, prefixes },
    }
}

/// Gives each worker's datapath its part of the recorder, which keeps malformed frames.
fn record<P: Probe>(recorder: Option<&Recorder>, workers: &mut [Worker<P>], clock: &Clock) {
    let Some(recorder) = recorder else {
        return;
    };
    recorder.tell_time(clock);
    for (worker, id) in workers.iter_mut().zip((0..).map(WorkerId)) {
        if let Some(standing) = recorder.malformed(id) {
            worker.path.keep_malformed(standing);
        }
    }
}

/// Collects the facts about Linux that reports show.
fn seen(config: &Config, io: Option<&LinuxIo>, kernel: Option<&Kernel>) -> Option<LinuxFacts> {
    let io = io?;
    Some(LinuxFacts {
        rates: wiring::punt::rates(config),
        stats: io.stats(),
        claims: io.claims(),
        kernel: kernel?.handle().clone(),
        namespace: config.linux.namespace().map(str::to_owned),
    })
}

/// Returns the desired state at the start.
fn derived(config: &Config, ports: &[OpenPort], links: &Links) -> DesiredState {
    let macs = ports.iter().map(|port| port.mac);
    let links: Vec<ObservedLink> = macs
        .zip(links.all())
        .map(|(mac, state)| state.link(mac))
        .collect();
    DesiredState::new(config, &links)
}

/// Returns an unpredictable 64-bit number: the standard library takes the keys of its maps from the system. An attacker who knew the seed
/// could aim at one chain of a table.
fn unforeseen() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn buffer_facts(config: &Config, lossless: &LosslessConfig) -> anyhow::Result<BufferFacts> {
    let facts = BufferFacts {
        pool: lossless.buffer.pool.bytes,
        shared: lossless.buffer.shared().bytes,
        alpha_256: lossless.buffer.pool.alpha_256,
        headroom: lossless.buffer.headroom().bytes,
        turn: config.buffer.loop_time,
    };
    if lossless.buffer.shared().is_zero() {
        return Err(anyhow!(
            "at the links' speeds headroom takes the whole pool: raise buffer.pool above {} B",
            facts.headroom
        ));
    }
    Ok(facts)
}

/// Derives pause thresholds, the division of the buffer, and the initial link states. Refuses a queue that would be marked only after its
/// senders are paused, at the speeds the links have now.
fn flow_control(
    config: &Config,
    ports: &[OpenPort],
) -> anyhow::Result<(LosslessConfig, BufferFacts, Links)> {
    let links: Vec<_> = ports.iter().map(|port| port.speeds.link).collect();
    let mut ports_pfc = wiring::pfc::states(config, ports);
    let lossless = wiring::pfc::lossless(config, &links, &mut ports_pfc);
    let buffer = buffer_facts(config, &lossless)?;
    // An assumed speed is checked once the link is up and reports its real one.
    let known = |port: &OpenPort| port.speeds.from != LinkFrom::Configured(SpeedFrom::Assumed);
    let shapers: Vec<_> = ports
        .iter()
        .map(|port| port.speeds.shaper.filter(|_| known(port)))
        .collect();
    wiring::pfc::marks_in_time(config, &links, &shapers, &ports_pfc).map_err(|why| anyhow!(why))?;
    for port in ports.iter().filter(|port| !port.port.is_vdev()) {
        // Losses of the device before the start are not counted as ours. A driver that cannot reset its counters is taken as it is.
        let _ = port.port.reset_stats();
    }
    Ok((lossless, buffer, links_of(ports, ports_pfc)))
}

/// Marks the ports that are down at the start in the route table; returns them.
fn down_at_start(ports: &[OpenPort], down: &DownPorts) -> Vec<PortId> {
    let is_down = |(port, id): (&OpenPort, u8)| (!port.up).then_some(PortId(id));
    let ids: Vec<PortId> = ports.iter().zip(0..).filter_map(is_down).collect();
    for port in &ids {
        down.set(*port, true);
    }
    ids
}

/// Returns the initial link states.
fn links_of(ports: &[OpenPort], ports_pfc: Vec<PfcState>) -> Links {
    let state = |(port, pfc): (&OpenPort, PfcState)| LinkState {
        up: port.up,
        admin_up: true,
        receives: true,
        has_interface: true,
        speeds: port.speeds,
        pfc,
        since: SystemTime::now(),
        flaps: 0,
        reason: if port.up {
            DownReason::None
        } else {
            DownReason::Link
        },
    };
    Links::new(ports.iter().zip(ports_pfc).map(state).collect())
}

fn port_facts(config: &Config, ports: &mut [OpenPort]) -> Vec<PortFacts> {
    let ports = config.ports.iter().zip(ports);
    ports
        .map(|(resolved, port)| PortFacts {
            name: resolved.name.clone(),
            device: resolved.device.to_string(),
            mac: port.mac,
            port: Arc::clone(&port.port),
            carrier: port
                .port
                .interface()
                .or_else(|| port.port.interface_under())
                .map(|index| Mutex::new(Carrier::of(index))),
            interface: port.interface.take().map(Mutex::new),
            workers: wiring::workers::receivers(config, resolved, port),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed was once taken from the time since the process began: some 20 bits, the same at every start.
    #[test]
    fn the_seed_of_a_start_is_not_that_of_another() {
        let seeds: std::collections::BTreeSet<u64> = (0..64).map(|_| unforeseen()).collect();
        assert_eq!(seeds.len(), 64);
        let bits = seeds
            .iter()
            .fold((0, u64::MAX), |(any, all), seed| (any | seed, all & seed));
        assert_eq!(bits, (u64::MAX, 0), "every bit changes");
    }
}
