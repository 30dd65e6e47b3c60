//! `run`: brings everything up in order, forwards until told to stop, and takes everything down in the reverse order.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use arrayvec::ArrayVec;
use npcc_cnp::control::ControlCore;
use npcc_cnp::flow_cache::FlowCache;
use npcc_config::ipnet::IpNet;
use npcc_config::{Config, Loaded, Sizing};
use npcc_dpdk::{Eal, HEADROOM, Mempool, MempoolConfig};
use npcc_pipeline::datapath::Datapath;
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::{Mac, Nanos, PortId};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::apply::Live;
use crate::clock::Clock;
use crate::control::{Control, ControlStats};
use crate::inject::{self, Injector};
use crate::live_routes::LiveRoutes;
use crate::manage::server::Server;
use crate::reaction::FirstAnswer;
use crate::reload::Running;
use crate::report::lossless::BufferFacts;
use crate::report::model::Snapshot;
use crate::report::observer::{Observer, PortFacts};
use crate::wiring::{self, ports::OpenPort};
use crate::worker::{PortQueues, Worker, WorkerStats};

/// How to run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Stop after this time.
    pub duration: Option<Duration>,
    /// Prefixes to route beside those of the file, until the first reload: for measurements.
    pub prefixes: Vec<IpNet>,
}

/// What to run, and where it came from.
#[derive(Debug)]
pub struct Source {
    /// The file, read again by `reload`.
    pub path: PathBuf,
    /// What it held.
    pub loaded: Loaded,
}

/// The version as every output shows it.
#[must_use]
pub fn version() -> String {
    format!("{}, DPDK {}", env!("NPCC_VERSION"), npcc_dpdk::DPDK_VERSION)
}

/// Forwards as configured until SIGINT, SIGTERM or the given time; returns the totals.
///
/// # Errors
/// What could not be brought up, and what to do about it.
pub fn run(source: &Source, options: &Options) -> anyhow::Result<Snapshot> {
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
    let pool = mempool(&eal, &sizing)?;
    let ports = wiring::ports::open(&eal, config, &pool)?;
    let clock = Clock::new(npcc_dpdk::Clock::new(&eal), config.time_scale);

    let Assembly {
        worker,
        control,
        observer,
    } = assemble(source, &options.prefixes, ports, pool, clock)?;
    let lcore = eal
        .workers()
        .into_iter()
        .next()
        .ok_or_else(|| anyhow!("EAL offers no worker core"))?;
    let stop_worker = Arc::new(AtomicBool::new(false));
    let ready = Arc::new(AtomicBool::new(false));
    let worker = {
        let (ready, stop) = (Arc::clone(&ready), Arc::clone(&stop_worker));
        eal.launch(lcore, move || {
            // The first frames are not to pass before there is somebody to judge them.
            while !ready.load(Ordering::Acquire) && !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            worker.run(&stop);
        })?
    };

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
        deadline.is_some_and(|deadline| Instant::now() >= deadline) || worker.is_finished()
    });

    stop_worker.store(true, Ordering::Relaxed);
    let ended = worker.join();
    // The socket answers until the worker stands still.
    manager
        .join()
        .map_err(|_| anyhow!("the management thread panicked"))?;
    ended.context("the worker panicked; this is a defect, please report it")?;
    Ok(observer.snapshot())
}

/// Things that run, and the one who watches them.
struct Assembly {
    worker: Worker,
    control: Control,
    observer: Observer,
}

fn assemble(
    source: &Source,
    prefixes: &[IpNet],
    ports: Vec<OpenPort>,
    pool: Mempool,
    clock: Clock,
) -> anyhow::Result<Assembly> {
    let config = &source.loaded.config;
    let macs: Vec<Mac> = ports.iter().map(|port| port.mac).collect();
    // Two readers: the worker, and the control core for its CNPs.
    let (writer, mut readers) = RouteWriter::new(wiring::routes::capacity(config), 2);
    let mut routes = LiveRoutes::new(writer);
    let mut table = wiring::routes::table(config, &macs);
    wiring::routes::deal(config, &macs, prefixes, &mut table);
    routes.become_of(table)?;
    let (Some(control_fib), Some(worker_fib)) = (readers.pop(), readers.pop()) else {
        return Err(anyhow!("the route table has no readers"));
    };

    let seed = clock.now().0;
    let (cache, reader) = FlowCache::new(
        config.npcc.flows,
        wiring::control::ports(config),
        wiring::control::RING,
        seed,
    );
    let rates: Vec<_> = ports.iter().map(|port| port.rate).collect();
    let mut core = ControlCore::new(&wiring::control::plan(config, &rates, seed));
    wiring::control::offer(&mut core, config, &rates);
    let (npcc_orders, inbox) = crate::control_commands::ring();
    let observed = (core.status(), core.flows(), reader.shared());
    if !core.attach(reader) {
        return Err(anyhow!("the control core takes no more workers"));
    }

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
    let path = Datapath::new(
        settings,
        wiring::path::pool(config),
        worker_fib,
        cache,
        seed,
    )
    .with_lossless(lossless);
    let (orders, commands) = crate::command::ring();
    let counters = vec![Arc::clone(path.counters())];
    let (to_worker, injections) = inject::ring();
    let (worker_stats, control_stats) = (
        Arc::new(WorkerStats::default()),
        Arc::new(ControlStats::default()),
    );

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
        });
    let (npcc, flows, cache) = observed;
    let observer = Observer {
        version: version(),
        started: Instant::now(),
        ports: facts.collect(),
        counters: counters.clone(),
        workers: vec![Arc::clone(&worker_stats)],
        caches: vec![cache],
        npcc,
        flows,
        control: Arc::clone(&control_stats),
        buffer,
        qos: Mutex::new(qos),
        orders: vec![orders],
        npcc_orders,
        events: Mutex::default(),
        clock,
        cleared: Mutex::new(None),
        live: Mutex::new(Live {
            running: Running::new(source.path.clone(), &source.loaded),
            routes,
        }),
    };
    let owners = vec![0; ports.len()];
    let (style, priority) = wiring::control::style(config);
    let control = Control {
        core,
        injector: Injector::new(control_fib, style, priority, vec![to_worker], owners),
        first: FirstAnswer::default(),
        counters,
        inbox,
        clock,
        stats: control_stats,
    };
    let queues = ports
        .into_iter()
        .zip(0u8..)
        .map(|(port, id)| PortQueues::new(PortId(id), port.rx, port.tx));
    let worker = Worker {
        path,
        ports: queues.collect(),
        injections,
        commands,
        pool,
        clock,
        stats: worker_stats,
        answered: ArrayVec::new(),
    };
    Ok(Assembly {
        worker,
        control,
        observer,
    })
}

fn mempool(eal: &Eal, sizing: &Sizing) -> anyhow::Result<Mempool> {
    let room = sizing.mbuf_data_room.saturating_sub(u64::from(HEADROOM));
    Ok(Mempool::new(
        eal,
        &MempoolConfig {
            name: "frames".to_owned(),
            mbufs: u32::try_from(sizing.mbufs)
                .context("buffer.pool needs more buffers than DPDK can count")?,
            cache: 256,
            frame_room: u16::try_from(room)
                .context("buffer.mbuf is larger than DPDK can describe")?,
            socket: None,
        },
    )?)
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
