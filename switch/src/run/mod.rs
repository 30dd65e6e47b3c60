//! `run`: brings everything up in order, forwards until told to stop, and takes everything down in the reverse order.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_cnp::control::ControlCore;
use npcc_cnp::flow_cache::{CacheShared, FlowCache};
use npcc_config::ipnet::IpNet;
use npcc_config::{Config, Loaded, Sizing};
use npcc_dpdk::{Eal, LcoreHandle};
use npcc_pipeline::counters::Counters;
use npcc_pipeline::datapath::Datapath;
use npcc_pipeline::handoff::links;
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::{Mac, Nanos};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock::Clock;
use crate::control::inject::{self, Injector};
use crate::control::reaction::FirstAnswer;
use crate::control::{Alarms, Control, ControlStats};
use crate::manage::apply::Live;
use crate::manage::reload::Running;
use crate::manage::server::Server;
use crate::report::lossless::BufferFacts;
use crate::report::model::Snapshot;
use crate::report::observer::{Observer, PortFacts};
use crate::wiring::live_routes::LiveRoutes;
use crate::wiring::{self, pools::Pools, ports::OpenPort};
use crate::worker::Worker;
use crate::worker::command::Orders;
use crate::worker::probe::Probe;
use crate::worker::receiving::Receiving;
use crate::worker::stats::WorkerStats;
use crate::worker::telemetry::Telemetry;
use crate::worker::timings::{self, Timings};

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Prefixes to route beside those of the file, until the first reload; dealt round the neighbours of the last port.
    pub prefixes: Vec<IpNet>,
}

/// What to run, and where it came from.
#[derive(Debug)]
pub struct Source {
    /// The program's version, as every output shows it.
    pub version: String,
    /// The file, read again by `reload`.
    pub path: PathBuf,
    /// What it held.
    pub loaded: Loaded,
}

/// Forwards as configured until SIGINT, SIGTERM or the given time; returns the totals. `probe` makes each worker's probe of
/// the appliance's own, the first worker's first.
///
/// # Errors
/// What could not be brought up, and what to do about it.
pub fn run<P: Probe>(
    source: &Source,
    options: &Options,
    probe: impl FnMut(Telemetry) -> P,
) -> anyhow::Result<Snapshot> {
    let config = &source.loaded.config;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    let hangup = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, Arc::clone(&hangup)).context("cannot catch signals")?;
    let server = Server::bind(Path::new(&config.telemetry.socket), &config.telemetry.group)?;
    // Asked before EAL binds this thread to the control core.
    let spare_core = spare_core(config);

    let sizing = Sizing::of(config);
    let plan = wiring::eal::plan(config, &sizing, wiring::eal::Free::now())?;
    if plan.no_huge {
        note(
            "note: packet memory is in ordinary pages, which costs speed: reserve hugepages for production",
        );
    }
    let eal = Eal::init(&plan.args)?;
    let pools = Pools::new(&eal, config, &sizing)?;
    let ports = wiring::ports::open(&eal, config, &pools)?;
    for name in wiring::workers::mute(config, &ports) {
        note(&format!(
            "note: port {name} cannot wake a worker that sleeps: it is looked at every half millisecond (cores.idle)"
        ));
    }
    let clock = Clock::new(npcc_dpdk::Clock::new(&eal), config.time_scale);

    let Assembly {
        workers,
        control,
        observer,
    } = assemble(source, options, ports, &pools, clock, probe)?;
    let stop_worker = Arc::new(AtomicBool::new(false));
    let ready = Arc::new(AtomicBool::new(false));
    let workers = launch(&eal, config, workers, &ready, &stop_worker)?;

    let observer = Arc::new(observer);
    let manager = {
        let (observer, stop) = (Arc::clone(&observer), Arc::clone(&stop_worker));
        let spawn = std::thread::Builder::new().name("npcc-manage".to_owned());
        spawn
            .spawn(move || manage(&server, &observer, &stop, &hangup, spare_core))
            .context("cannot start the management thread")?
    };
    let deadline = options.duration.map(|duration| Instant::now() + duration);
    control.run(&stop, || {
        if !ready.load(Ordering::Relaxed) {
            ready.store(true, Ordering::Release);
        }
        deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || workers.iter().any(LcoreHandle::is_finished)
    });

    stop_worker.store(true, Ordering::Relaxed);
    let ended: Result<Vec<()>, _> = workers.into_iter().map(LcoreHandle::join).collect();
    // The socket answers until the workers stand still.
    manager
        .join()
        .map_err(|_| anyhow!("the management thread panicked"))?;
    ended.context("a worker panicked; this is a defect, please report it")?;
    Ok(observer.snapshot())
}

/// Starts every worker on its core; none moves a frame before `ready`.
fn launch<P: Probe>(
    eal: &Eal,
    config: &Config,
    workers: Vec<Worker<P>>,
    ready: &Arc<AtomicBool>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Vec<LcoreHandle<()>>> {
    let start = |(index, worker): (usize, Worker<P>)| {
        let number = wiring::eal::worker_lcore(config, index);
        let mut lcores = eal.workers().into_iter();
        let lcore = lcores
            .find(|lcore| Some(lcore.id()) == number)
            .ok_or_else(|| anyhow!("EAL offers no core for worker {index}"))?;
        let (ready, stop) = (Arc::clone(ready), Arc::clone(stop));
        let handle = eal.launch(lcore, move || {
            // The first frames are not to pass before there is somebody to judge them.
            while !ready.load(Ordering::Acquire) && !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            worker.run(&stop);
        });
        Ok(handle?)
    };
    let started: anyhow::Result<Vec<_>> = workers.into_iter().enumerate().map(start).collect();
    if started.is_err() {
        stop.store(true, Ordering::Relaxed);
    }
    started
}

/// Things that run, and the one who watches them.
struct Assembly<P> {
    workers: Vec<Worker<P>>,
    control: Control,
    observer: Observer,
}

fn assemble<P: Probe>(
    source: &Source,
    options: &Options,
    ports: Vec<OpenPort>,
    pools: &Pools,
    clock: Clock,
    mut probe: impl FnMut(Telemetry) -> P,
) -> anyhow::Result<Assembly<P>> {
    let config = &source.loaded.config;
    let macs: Vec<Mac> = ports.iter().map(|port| port.mac).collect();
    let count = config.cores.workers.len();
    // The readers: the workers, and the control core for its CNPs.
    let (writer, mut readers) = RouteWriter::new(wiring::routes::capacity(config), count + 1);
    let mut routes = LiveRoutes::new(writer);
    let mut table = wiring::routes::table(config, &macs);
    wiring::routes::deal(config, &macs, &options.prefixes, &mut table);
    routes.become_of(table)?;
    let Some(control_fib) = readers.pop() else {
        return Err(anyhow!("the route table has no readers"));
    };

    let seed = clock.now().0;
    let rates: Vec<_> = ports.iter().map(|port| port.rate).collect();
    let mut core = ControlCore::new(&wiring::control::plan(config, &rates, seed));
    wiring::control::offer(&mut core, config, &rates);
    core.touch_memory();
    let (npcc_orders, inbox) = crate::control::orders::ring();

    let settings = config
        .ports
        .iter()
        .zip(&ports)
        .map(|(plan, port)| wiring::path::port(config, plan, port.mac, port.rate));
    let settings: Vec<_> = settings.collect();
    let qos = crate::report::qos::effective(config, &settings);
    let (lossless, flows_of) = wiring::pfc::lossless(config, &ports);
    let buffer = BufferFacts {
        pool: lossless.buffer.pool.bytes,
        shared: lossless.buffer.shared().bytes,
        headroom: lossless.buffer.headroom().bytes,
        turn: Nanos(config.buffer.loop_time.nanos()),
    };
    if lossless.buffer.shared().is_zero() {
        return Err(anyhow!(
            "at the links' speeds headroom takes the whole pool: raise buffer.pool above {} B",
            buffer.headroom
        ));
    }
    let seating = wiring::workers::seating(config, &ports);
    let facts = config
        .ports
        .iter()
        .zip(&ports)
        .zip(flows_of)
        .map(|((plan, port), flow)| PortFacts {
            name: plan.name.clone(),
            device: plan.device.to_string(),
            mac: port.mac,
            rate: port.rate,
            port: Arc::clone(&port.port),
            flow,
            workers: wiring::workers::receivers(config, plan, port),
        });
    let facts: Vec<PortFacts> = facts.collect();

    let receiving = Arc::new(Receiving::new(count));
    let mut observed = Observed::default();
    let mut to_workers = Vec::new();
    let mut workers = Vec::new();
    let queues = wiring::workers::queues(config, ports);
    let stats: Vec<Arc<WorkerStats>> = queues.iter().map(|_| Arc::default()).collect();
    let beds = wiring::workers::beds(config, &queues, &stats).context("cannot sleep")?;
    let each = queues.into_iter().zip(beds.workers).zip(stats);
    for (((fib, seat), ((queues, bed), stats)), seed) in readers
        .into_iter()
        .zip(links(seating.clone()))
        .zip(each)
        .zip(seed..)
    {
        let (cache, reader) = FlowCache::new(
            config.npcc.flows.size(),
            wiring::control::ports(config),
            wiring::control::RING,
            seed,
        );
        observed.caches.push(reader.shared());
        if !core.attach(reader) {
            return Err(anyhow!("the control core takes no more workers"));
        }
        let pool = wiring::path::pool(config);
        let path = Datapath::new(settings.clone(), pool, fib, cache, seed)
            .with_lossless(lossless.clone())
            .with_links(seat);
        let (orders, commands) = crate::worker::command::ring();
        let (to_worker, injections) = inject::ring();
        let (times, told) = timings::ring();
        observed.counters.push(Arc::clone(path.counters()));
        observed.workers.push(Arc::clone(&stats));
        observed.orders.push(orders);
        observed.times.push(told);
        to_workers.push(to_worker);
        workers.push(Worker {
            path,
            ports: queues.own,
            guests: queues.guests,
            receiving: Arc::clone(&receiving),
            injections,
            commands,
            pool: pools.near(queues.socket).clone(),
            clock,
            stats,
            probe: probe(Telemetry::new(times)),
            bed,
        });
    }

    let control_stats = Arc::new(ControlStats::default());
    let owners = seating.owners.iter().map(|owner| owner.index()).collect();
    let (style, priority) = wiring::control::style(config);
    let observer = Observer {
        version: format!("{}, DPDK {}", source.version, npcc_dpdk::DPDK_VERSION),
        started: Instant::now(),
        ports: facts,
        cores: config.cores.workers.clone(),
        counters: observed.counters.clone(),
        workers: observed.workers,
        caches: observed.caches,
        npcc: core.status(),
        flows: core.flows(),
        control: Arc::clone(&control_stats),
        buffer,
        qos: Mutex::new(qos),
        orders: observed.orders,
        npcc_orders,
        events: Mutex::default(),
        clock,
        cleared: Mutex::new(None),
        timings: Mutex::new(Timings::new(observed.times)?),
        live: Mutex::new(Live {
            running: Running::new(source.path.clone(), &source.loaded),
            routes,
        }),
    };
    let control = Control {
        core,
        injector: Injector::new(control_fib, style, priority, to_workers, owners),
        first: FirstAnswer::default(),
        alarms: Alarms::new(&observed.counters, wiring::control::ports(config)),
        counters: observed.counters,
        inbox,
        clock,
        stats: control_stats,
        yields: wiring::eal::shares(config).then_some(config.time_scale),
        bed: beds.control,
    };
    Ok(Assembly {
        workers,
        control,
        observer,
    })
}

/// What there is to see of each worker.
#[derive(Default)]
struct Observed {
    counters: Vec<Arc<Counters>>,
    workers: Vec<Arc<WorkerStats>>,
    caches: Vec<Arc<CacheShared>>,
    orders: Vec<Orders>,
    times: Vec<rtrb::Consumer<timings::Timing>>,
}

/// A core for the management thread: one that neither control nor workers use, if there is any.
fn spare_core(config: &Config) -> Option<core_affinity::CoreId> {
    let used = |core: &core_affinity::CoreId| {
        core.id == config.cores.control || config.cores.workers.contains(&core.id)
    };
    core_affinity::get_core_ids()?
        .into_iter()
        .find(|core| !used(core))
}

/// The management thread: the socket, and a progress line on a terminal.
fn manage(
    server: &Server,
    observer: &Observer,
    stop: &AtomicBool,
    hangup: &AtomicBool,
    core: Option<core_affinity::CoreId>,
) {
    if let Some(core) = core {
        // Not being moved costs some reaction time and nothing else.
        let _ = core_affinity::set_for_current(core);
    }
    let terminal = std::io::stderr().is_terminal();
    let mut due = Instant::now();
    server.serve(observer, stop, || {
        observer.watch();
        if hangup.swap(false, Ordering::Relaxed) {
            match observer.reload() {
                Ok(outcome) => note(outcome.to_string().trim_end()),
                Err(error) => note(&error.to_string()),
            }
        }
        if terminal && Instant::now() >= due {
            due = Instant::now() + Duration::from_secs(1);
            let _ = write!(
                std::io::stderr(),
                "\r\x1b[K{}",
                progress(&observer.snapshot())
            );
        }
    });
    if terminal {
        let _ = writeln!(std::io::stderr());
    }
}

fn progress(snapshot: &Snapshot) -> String {
    let account = &snapshot.conservation;
    format!(
        "{:.0} s: rx {} tx {} dropped {} held {}; {} flows, {} CNPs",
        snapshot.seconds,
        account.rx.packets,
        account.tx.packets,
        account.drops.packets,
        account.held.packets,
        snapshot.npcc.flows,
        snapshot.npcc.cnps_sent
    )
}

fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
