//! `run`: brings everything up in order, forwards until a stop is requested, and takes everything down in the reverse order.

mod aftermath;
mod assemble;
mod checkpoint;
mod device_lock;
mod housekeeping;
mod limits;
mod linux;
mod notes;
mod routes;
mod service;
mod signals;
mod source;
mod steps;
mod storms;
mod workers;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use core_affinity::CoreId;
use npcc_api::model::Snapshot;
use npcc_config::{Config, Sizing};
use npcc_dpdk::{Calibration, Eal};

use self::assemble::{Assembly, Inputs, assemble};
use self::device_lock::DeviceLocks;
use self::housekeeping::Ends;
use self::signals::Signals;
pub use self::source::{Options, Source};
use self::steps::Steps;
use crate::manage::access::Access;
use crate::manage::server::{Server, SocketError};
use crate::sandbox::{self, Account};
use crate::saved::SavedState;
use crate::telemetry::http::Listener;
use crate::wiring::kernel_ipv6::Ipv6Off;
use crate::wiring::{self, pools::Pools, ports::OpenPort};
use npcc_engine::clock::Clock;
use npcc_engine::fault;
use npcc_engine::log;
use npcc_engine::notify;
use npcc_engine::threads::Threads;
use npcc_engine::worker::Worker;
use npcc_engine::worker::probe::Probe;
use npcc_engine::worker::telemetry::Telemetry;

/// Forwards as configured until SIGINT, SIGTERM or the given time; returns the totals. `probe` makes each worker's probe, which the
/// appliance supplies, the first worker's first.
///
/// # Errors
/// Says which part could not be brought up, and how to fix it.
pub fn run<P: Probe>(
    source: &Source,
    options: &Options,
    probe: impl FnMut(Telemetry) -> P,
) -> anyhow::Result<Snapshot> {
    // The start takes longer than calibrating the clock: it begins here.
    let begin = Calibration::now();
    let config = &source.loaded.config;
    let mut steps = Steps::new();
    let saved = Arc::new(SavedState::open(&options.store));
    let caught = Signals::caught().context("cannot catch signals")?;
    let stop = &caught.stop;
    limits::check(config)?;
    let account = Account::of(config)?;
    let servers = servers(config)?;
    let _locks = DeviceLocks::take(config)?;
    // Read before EAL binds this thread to the control core.
    let spare_core = spare_core(config);
    let control = CoreId {
        id: config.cores.control,
    };
    log::move_to(spare_core.unwrap_or(control));
    // The sockets are ours: no other process writes the recorder.
    let recorder = aftermath::look_back(source, options, spare_core, &caught.second);
    let http = config.telemetry.http.map(Listener::bind).transpose()?;

    let ahead = wiring::hosts::read_ahead(config, &saved);
    steps.done("what was left");
    // Dropped after the ports, however this ends.
    let _ipv6_off = Ipv6Off::under_ports(config, &saved);
    let (eal, pools, ports) = devices(config, stop, &mut steps)?;
    let clock = npcc_dpdk::Clock::calibrated(&eal, &begin);
    let inputs = Inputs {
        source,
        options,
        saved,
        ahead,
        ports,
        pools: &pools,
        clock: Clock::new(clock, config.time_scale),
        recorder: recorder.as_ref(),
    };
    let Assembly {
        workers,
        control,
        management,
        linux,
    } = assemble(inputs, probe)?;
    notes::close_rest(&options.store);
    steps.done("tables");
    management.wait_for_linux(LINUX_WAIT, stop);
    steps.done("the kernel's routes");
    let ready = Arc::new(AtomicBool::new(false));
    let mut threads = Threads::new(spare_core);
    launch(&eal, config, workers, &ready, &mut threads)?;

    let management = Arc::new(management);
    let recorder = recorder.map(Arc::new);
    let ends = Ends {
        servers,
        http: http.map(|http| (http, config.telemetry.http_hosts.clone())),
        linux,
        hangup: caught.hangup,
        ready: Arc::clone(&ready),
        recorder: recorder.clone(),
    };
    housekeeping::start(&mut threads, &management, ends)?;
    steps.done("threads");
    steps.tell();
    sandbox::close(config, &source.path, account.as_ref())?;
    let deadline = options.duration.map(|duration| Instant::now() + duration);
    control.run(stop, || {
        turned(&ready);
        deadline.is_some_and(|deadline| Instant::now() >= deadline) || threads.has_ended()
    });
    service::stopping();
    fault::hangs("stop");
    threads.end()?;
    aftermath::ends_in_order(recorder.as_deref());
    // Taking the last snapshot saves it like every other.
    Ok(management.view.snapshot())
}

/// Waits, at the end of the process, until the service manager has taken what it is owed, and until all that was said is written: a second
/// each at most.
pub fn finish() {
    let left = notify::finish();
    if !left.is_empty() {
        log::note(&format!(
            "note: the service manager did not take what the next start continues with: {}",
            left.join(", ")
        ));
    }
    log::finish();
}

/// Starts EAL, reserves the memory of the packets, and opens the ports.
fn devices(
    config: &Config,
    stop: &AtomicBool,
    steps: &mut Steps,
) -> anyhow::Result<(Eal, Pools, Vec<OpenPort>)> {
    let sizing = Sizing::of(config);
    let setup = wiring::eal::setup(config, &sizing, wiring::eal::Free::now())?;
    notes::pages(setup.no_huge);
    let eal = Eal::init(&setup.args)?;
    aftermath::keep_packets_out_of_cores(&eal);
    steps.done("EAL");
    let pools = Pools::new(&eal, config, &sizing)?;
    steps.done("pools");
    service::starting("opening the ports");
    let waits = |down: &[&str]| notes::waiting(config, down);
    let ports = wiring::ports::open(&eal, config, &pools, (stop, waits))?;
    notes::ports(config, &ports);
    steps.done("ports");
    Ok((eal, pools, ports))
}

/// Reports a turn of the control core; its first turn makes the switch ready.
fn turned(ready: &AtomicBool) {
    if !ready.load(Ordering::Relaxed) {
        fault::waits("ready");
        ready.store(true, Ordering::Release);
    }
    fault::waits("control-stuck");
    fault::panics("control");
}

/// Binds the socket that may change things, and the read-only one.
fn servers(config: &Config) -> Result<Vec<Server>, SocketError> {
    let telemetry = &config.telemetry;
    let read_only = telemetry.read_only_path();
    let all = [
        (&telemetry.socket, &telemetry.group, Access::ReadWrite),
        (&read_only, &telemetry.read_only_group, Access::ReadOnly),
    ];
    let bind =
        |(path, group, access): (&String, &String, _)| Server::bind(Path::new(path), group, access);
    all.into_iter().map(bind).collect()
}

/// Longest delay of the first frame for the kernel's routes.
const LINUX_WAIT: Duration = Duration::from_secs(5);

/// Starts every worker on its core; none moves a frame before `ready`.
fn launch<P: Probe>(
    eal: &Eal,
    config: &Config,
    workers: Vec<Worker<P>>,
    ready: &Arc<AtomicBool>,
    threads: &mut Threads,
) -> anyhow::Result<()> {
    for (index, worker) in workers.into_iter().enumerate() {
        let number = wiring::eal::worker_lcore(config, index);
        let mut lcores = eal.workers().into_iter();
        let lcore = lcores
            .find(|lcore| Some(lcore.id()) == number)
            .ok_or_else(|| anyhow!("EAL offers no core for worker {index}"))?;
        let (ready, stop) = (Arc::clone(ready), Arc::clone(threads.stop()));
        threads.add_worker(eal.launch(lcore, move || {
            // The first frames must not pass before the control core runs.
            while !ready.load(Ordering::Acquire) && !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            fault::waits("worker-stuck");
            fault::panics("worker");
            worker.run(&stop);
        })?);
    }
    if fault::strikes("launch") {
        return Err(anyhow!("a fault was asked for at `launch`"));
    }
    Ok(())
}

/// Returns a core for all other threads: the configured one, or one that neither control nor workers use, if there is any.
fn spare_core(config: &Config) -> Option<CoreId> {
    if let Some(id) = config.cores.housekeeping {
        return Some(CoreId { id });
    }
    let used =
        |core: &CoreId| core.id == config.cores.control || config.cores.workers.contains(&core.id);
    core_affinity::get_core_ids()?
        .into_iter()
        .find(|core| !used(core))
}
