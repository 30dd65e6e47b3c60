//! Builds workers, control core and management from a configuration and open ports.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use anyhow::{Context, anyhow};
use npcc_cnp::control::ControlCore;
use npcc_config::Config;
use npcc_config::ipnet::IpNet;
use npcc_config::sizing::SpeedFrom;
use npcc_linux::Integration;
use npcc_linux::netlink::ahead::Ahead;
use npcc_pipeline::datapath::LosslessConfig;
use npcc_pipeline::handoff::{WorkerPlan, links};
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::route::fib::FibReader;
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::{Mac, PortId, WorkerId};
use rtrb::Producer;

use super::linux::LinuxSide;
use super::source::{Options, Source};
use super::workers::{Shared, parts, workers};
use crate::apply::desired::{Desired, Link};
use crate::apply::running::Running;
use crate::clock::Clock;
use crate::control::inject::{Injection, Injector};
use crate::control::reaction::FirstAnswer;
use crate::control::sources::SourceRoutes;
use crate::control::{Alarms, Control, ControlStats, orders};
use crate::keep::Keep;
use crate::linux_io::LinuxIo;
use crate::manage::capture::Captures;
use crate::manage::link_state::{DownReason, LinkState, Links};
use crate::manage::orders::{Live, Management};
use crate::manage::targets::Routes as Routing;
use crate::manage::view::{BufferFacts, LinuxFacts, Operators, PortFacts, View};
use crate::recorder::start::Recorder;
use crate::report::events::Watch;
use crate::report::journal::{self, Journal};
use crate::report::qos;
use crate::sleep::Wakers;
use crate::wiring::kernel::Kernel;
use crate::wiring::live_routes::LiveRoutes;
use crate::wiring::pfc::PortFlow;
use crate::wiring::speeds::LinkFrom;
use crate::wiring::{self, pools::Pools, ports::OpenPort};
use crate::worker::Worker;
use crate::worker::command::WorkerOrders;
use crate::worker::probe::Probe;
use crate::worker::receiving::Receiving;
use crate::worker::telemetry::Telemetry;
use crate::worker::timings::Timings;

/// Workers, control core, management and the transfer to Linux, ready to start.
pub(super) struct Assembly<P> {
    pub(super) workers: Vec<Worker<P>>,
    pub(super) control: Control,
    pub(super) management: Management,
    /// Frame transfer between the workers and Linux; `None` where Linux is not integrated.
    pub(super) linux: Option<LinuxIo>,
}

/// Builds everything that runs. `probe` makes each worker's probe, which the appliance supplies.
pub(super) fn assemble<P: Probe>(
    source: &Source,
    (options, keep, ahead): (&Options, Arc<Keep>, Option<Ahead>),
    ports: Vec<OpenPort>,
    pools: &Pools,
    clock: Clock,
    (recorder, mut probe): (Option<&Recorder>, impl FnMut(Telemetry) -> P),
) -> anyhow::Result<Assembly<P>> {
    let config = &source.loaded.config;
    let seed = unforeseen();
    let (linux, integration) = LinuxSide::of(config, &ports, &keep, ahead)?.unzip();
    let routes = routes(config, &ports, integration, &options.prefixes)?;
    let (lossless, buffer, link_states) = flow_control(config, &ports)?;
    let desired = desired(config, &ports, &link_states);
    let mut core = control_core(config, &desired, (routes.sources, recorder), seed);
    let facts = port_facts(config, &ports);
    let (plan, owners) = seats(config, &ports);

    let shared = Shared {
        config,
        down: down_at_start(&ports, &routes.down),
        storms: keep.facts().storms,
        settings: desired.paths(),
        lossless,
        pools,
        clock,
        receiving: Arc::new(Receiving::new(config.cores.workers.len())),
    };
    let queues = wiring::workers::queues(config, ports);
    let (parts, sleepers) = parts(config, (routes.workers, links(plan)), queues, seed)?;
    let (mut workers, ends) = workers(&shared, parts, linux, (&mut core, &mut probe))?;
    record(recorder, &mut workers, &clock);
    let (kernel, wakers) = (routes.kernel.as_ref(), sleepers.wakers);
    let linux = linux_io(ends.linux, kernel, (&owners, wakers))?;

    let live = live((source, options), desired, routes.by_file);
    let control_stats = Arc::new(ControlStats::default());
    let (npcc, inbox) = orders::ring();
    let view = View {
        version: format!("{}, DPDK {}", source.version, npcc_dpdk::DPDK_VERSION),
        started: Instant::now(),
        ports: facts,
        links: link_states,
        cores: config.cores.workers.clone(),
        counters: ends.counters.clone(),
        captures: Captures::reported(&ends.captures),
        workers: ends.stats,
        caches: ends.caches,
        npcc: core.status(),
        flows: core.flows(),
        control: Arc::clone(&control_stats),
        buffer,
        linux: seen(config, linux.as_ref(), kernel),
        file_routes: live.routes.table.as_ref().map(LiveRoutes::shared),
        qos: Mutex::new(qos::effective(config, &live.running.now().paths())),
        events: Mutex::new(Watch::default()),
        journal: Mutex::new(journal(&keep)),
        clock,
        cleared: Mutex::default(),
        timings: Mutex::new(Timings::new(ends.times)?),
        operators: Operators::new(live.running.wanted().clone(), source.path.clone()),
        keep,
    };
    let management = Management {
        view,
        workers: WorkerOrders::new(ends.orders),
        npcc,
        live: Mutex::new(live),
        down: routes.down,
        kernel: routes.kernel,
        captures: Mutex::new(Captures::new(ends.captures)),
    };
    let control = Control {
        core,
        injector: injector(config, routes.control, ends.injections, owners),
        first: FirstAnswer::default(),
        alarms: Alarms::new(&ends.counters, wiring::control::ports(config)),
        counters: ends.counters,
        inbox,
        clock,
        stats: control_stats,
        yields: wiring::eal::shares(config).then_some(config.time_scale),
        sleeper: sleepers.control,
    };
    Ok(Assembly {
        workers,
        control,
        management,
        linux,
    })
}

/// Returns the journal, with the changes that the previous process left.
fn journal(keep: &Keep) -> Journal {
    let (name, layout) = ("audit", "JSON of a change and zeros");
    Journal::new(keep.ring((name, layout), (journal::KEPT, journal::WORDS)))
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

/// Assigns ports to workers; returns the plan and the index of each port's owner.
fn seats(config: &Config, ports: &[OpenPort]) -> (WorkerPlan, Vec<usize>) {
    let plan = wiring::workers::assignment(config, ports);
    let owners = plan.owners.iter().map(|owner| owner.index()).collect();
    (plan, owners)
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

/// Makes the builder of CNPs, of the configured style.
fn injector(
    config: &Config,
    fib: FibReader,
    rings: Vec<Producer<Injection>>,
    owners: Vec<usize>,
) -> Injector {
    let (style, priority) = wiring::control::style(config);
    Injector::new(fib, style, priority, rings, owners)
}

/// Collects the facts about Linux that reports show.
fn seen(config: &Config, io: Option<&LinuxIo>, kernel: Option<&Kernel>) -> Option<LinuxFacts> {
    Some(LinuxFacts {
        rates: wiring::punt::rates(config),
        stats: io?.stats(),
        kernel: kernel?.handle().clone(),
        namespace: config.linux.namespace().map(str::to_owned),
    })
}

/// Owner of the route table (file or kernel), and the table's readers: the workers, and the control core for its CNPs and to locate
/// sources.
struct Routes {
    /// Routes of the configuration file; `None` where Linux is integrated.
    by_file: Option<LiveRoutes>,
    /// Routes of the kernel; `None` where Linux is not integrated.
    kernel: Option<Kernel>,
    down: Arc<DownPorts>,
    workers: Vec<FibReader>,
    control: FibReader,
    sources: FibReader,
}

fn routes(
    config: &Config,
    ports: &[OpenPort],
    integration: Option<Integration>,
    more: &[IpNet],
) -> anyhow::Result<Routes> {
    let macs: Vec<Mac> = ports.iter().map(|port| port.mac).collect();
    let readers = config.cores.workers.len() + 2;
    let (capacity, seed) = (
        wiring::routes::capacity(config),
        wiring::routes::seed(config, &macs),
    );
    let (writer, mut readers) = RouteWriter::with_seed(capacity, readers, seed);
    let mut reader = || {
        let last = readers.pop();
        last.ok_or_else(|| anyhow!("the route table has no readers"))
    };
    let (control, sources) = (reader()?, reader()?);
    let down = writer.down_ports();
    let (by_file, kernel) = match integration {
        None => (Some(by_file(writer, config, &macs, more)?), None),
        Some(_) if !more.is_empty() => {
            return Err(anyhow!(
                "the routes are Linux's (linux.integrate): put a file of prefixes there with `ip -batch`"
            ));
        }
        Some(integration) => {
            let kernel = Kernel::follow(integration, writer).context("cannot follow the kernel")?;
            (None, Some(kernel))
        }
    };
    Ok(Routes {
        by_file,
        kernel,
        down,
        workers: readers,
        control,
        sources,
    })
}

fn by_file(
    writer: RouteWriter,
    config: &Config,
    macs: &[Mac],
    more: &[IpNet],
) -> anyhow::Result<LiveRoutes> {
    let mut live = LiveRoutes::new(writer);
    let mut table = wiring::routes::table(config, macs);
    wiring::routes::deal(config, macs, more, &mut table);
    live.become_of(table)?;
    Ok(live)
}

/// Returns the running state as started.
fn live(
    (source, options): (&Source, &Options),
    desired: Desired,
    table: Option<LiveRoutes>,
) -> Live {
    Live {
        running: Running::new(source.path.clone(), &source.loaded, desired),
        routes: Routing {
            table,
            prefixes: options.prefixes.clone(),
        },
    }
}

/// Returns the desired state at the start.
fn desired(config: &Config, ports: &[OpenPort], links: &Links) -> Desired {
    let macs = ports.iter().map(|port| port.mac);
    let links: Vec<Link> = macs
        .zip(links.all())
        .map(|(mac, state)| state.link(mac))
        .collect();
    Desired::new(config, &links)
}

/// Returns an unpredictable 64-bit number: the standard library takes the keys of its maps from the system. An attacker who knew the seed
/// could aim at one chain of a table.
fn unforeseen() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn control_core(
    config: &Config,
    desired: &Desired,
    (sources, recorder): (FibReader, Option<&Recorder>),
    seed: u64,
) -> ControlCore {
    let settings = desired.control.clone();
    let logs = recorder.map(Recorder::decisions).unwrap_or_default();
    let plan = wiring::control::plan(config, settings, seed);
    let mut core = ControlCore::logging(&plan, logs);
    core.know_routes(Box::new(SourceRoutes(sources)));
    core.touch_memory();
    core
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
    let (lossless, flows) = wiring::pfc::lossless(config, ports);
    let buffer = buffer_facts(config, &lossless)?;
    let links: Vec<_> = ports.iter().map(|port| port.speeds.link).collect();
    // An assumed speed is checked once the link is up and reports its real one.
    let known = |port: &OpenPort| port.speeds.from != LinkFrom::Configured(SpeedFrom::Assumed);
    let shapers: Vec<_> = ports
        .iter()
        .map(|port| port.speeds.shaper.filter(|_| known(port)))
        .collect();
    wiring::pfc::marks_in_time(config, &links, &shapers, &flows).map_err(|why| anyhow!(why))?;
    for port in ports.iter().filter(|port| !port.port.is_vdev()) {
        // Losses of the device before the start are not counted as ours. A driver that cannot reset its counters is taken as it is.
        let _ = port.port.reset_stats();
    }
    Ok((lossless, buffer, links_of(ports, flows)))
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
fn links_of(ports: &[OpenPort], flows: Vec<PortFlow>) -> Links {
    let state = |(port, flow): (&OpenPort, PortFlow)| LinkState {
        up: port.up,
        admin_up: true,
        speeds: port.speeds,
        flow,
        since: SystemTime::now(),
        flaps: 0,
        reason: if port.up {
            DownReason::None
        } else {
            DownReason::Link
        },
    };
    Links::new(ports.iter().zip(flows).map(state).collect())
}

fn port_facts(config: &Config, ports: &[OpenPort]) -> Vec<PortFacts> {
    let ports = config.ports.iter().zip(ports);
    ports
        .map(|(plan, port)| PortFacts {
            name: plan.name.clone(),
            device: plan.device.to_string(),
            mac: port.mac,
            port: Arc::clone(&port.port),
            workers: wiring::workers::receivers(config, plan, port),
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
