//! `run`: brings everything up in order, forwards until told to stop, and takes everything down in the reverse order.

mod assemble;
mod source;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_config::sizing::SpeedFrom;
use npcc_config::{Config, Sizing};
use npcc_dpdk::{Eal, LcoreHandle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::assemble::{Assembly, assemble};
pub use self::source::{Options, Source};
use crate::clock::Clock;
use crate::manage::orders::Management;
use crate::manage::server::Server;
use crate::report::model::Snapshot;
use crate::wiring::speeds::LinkFrom;
use crate::wiring::{self, pools::Pools};
use crate::worker::Worker;
use crate::worker::probe::Probe;
use crate::worker::telemetry::Telemetry;

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
    let waits = |down: &[&str]| {
        note(&format!(
            "waiting for the link of {}, {} at most (dpdk.link_wait)",
            down.join(", "),
            config.dpdk.link_wait
        ));
    };
    let ports = wiring::ports::open(&eal, config, &pools, (&stop, waits))?;
    for (plan, port) in config.ports.iter().zip(&ports) {
        tell_link(plan, port);
    }
    for name in wiring::workers::without_interrupt(config, &ports) {
        note(&format!(
            "note: port {name} cannot wake a worker that sleeps: it is looked at every half millisecond (cores.idle)"
        ));
    }
    let clock = Clock::new(npcc_dpdk::Clock::new(&eal), config.time_scale);

    let Assembly {
        workers,
        control,
        management,
    } = assemble(source, options, ports, &pools, clock, probe)?;
    let stop_worker = Arc::new(AtomicBool::new(false));
    let ready = Arc::new(AtomicBool::new(false));
    let workers = launch(&eal, config, workers, &ready, &stop_worker)?;

    let management = Arc::new(management);
    let manager = {
        let (management, stop) = (Arc::clone(&management), Arc::clone(&stop_worker));
        let spawn = std::thread::Builder::new().name("npcc-manage".to_owned());
        spawn
            .spawn(move || manage(&server, &management, &stop, &hangup, spare_core))
            .context("cannot start the management thread")?
    };
    let follower = {
        let (management, stop) = (Arc::clone(&management), Arc::clone(&stop_worker));
        let spawn = std::thread::Builder::new().name("npcc-link".to_owned());
        spawn
            .spawn(move || follow_links(&management, &stop, spare_core))
            .context("cannot start the thread that follows the links")?
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
    follower
        .join()
        .map_err(|_| anyhow!("the thread that follows the links panicked"))?;
    ended.context("a worker panicked; this is a defect, please report it")?;
    Ok(management.view.snapshot())
}

/// How often the links are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Follows the links until `stop`: a thread of its own, so that no client and no reload keeps it.
fn follow_links(management: &Management, stop: &AtomicBool, core: Option<core_affinity::CoreId>) {
    if let Some(core) = core {
        let _ = core_affinity::set_for_current(core);
    }
    while !stop.load(Ordering::Relaxed) {
        management.look_at_links();
        std::thread::sleep(LOOK);
    }
}

/// Says what is not as it should be with a link at the start.
fn tell_link(plan: &npcc_config::plan::Port, port: &wiring::ports::OpenPort) {
    let name = &plan.name;
    if !port.up {
        note(&format!(
            "note: the link of port {name} is down: it forwards as soon as the link is up"
        ));
    } else if port.speeds.from == LinkFrom::Configured(SpeedFrom::Assumed)
        && !plan.device.is_virtual()
    {
        note(&format!(
            "note: the device of port {name} does not tell the speed of its link: {} is assumed; write link_speed",
            port.speeds.link
        ));
    }
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
    management: &Management,
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
    server.serve(management, stop, || {
        management.view.watch();
        if hangup.swap(false, Ordering::Relaxed) {
            match management.reload() {
                Ok(outcome) => note(outcome.to_string().trim_end()),
                Err(error) => note(&error.to_string()),
            }
        }
        if terminal && Instant::now() >= due {
            due = Instant::now() + Duration::from_secs(1);
            let _ = write!(
                std::io::stderr(),
                "\r\x1b[K{}",
                progress(&management.view.snapshot())
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
