//! `run`: brings everything up in order, forwards until told to stop, and takes everything down in the reverse order.

mod aftermath;
mod assemble;
mod keeping;
mod linux;
mod service;
mod signals;
mod source;
mod steps;
mod storms;
mod workers;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_config::sizing::SpeedFrom;
use npcc_config::{Config, Sizing};
use npcc_dpdk::{Calibration, Eal};

use self::assemble::{Assembly, assemble};
use self::service::Service;
use self::signals::Signals;
pub use self::source::{Options, Source};
use self::steps::Steps;
use crate::clock::Clock;
use crate::fault;
use crate::keep::Keep;
use crate::keep::store::Store;
use crate::linux_io::LinuxIo;
use crate::log::{self, note};
use crate::manage::access::Access;
use crate::manage::orders::Management;
use crate::manage::room::Room;
use crate::manage::server::{self, Server, SocketError};
use crate::recorder::start::Recorder;
use crate::report::model::Snapshot;
use crate::sandbox;
use crate::telemetry::http::{Limits, Listener};
use crate::telemetry::pages;
use crate::threads::{Heartbeat, Role, Threads, Watchdog};
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
    log::init();
    // The start takes longer than the clock needs to be measured.
    let begin = Calibration::now();
    let config = &source.loaded.config;
    let mut steps = Steps::new();
    let keep = Arc::new(Keep::open(&options.store));
    let caught = Signals::caught().context("cannot catch signals")?;
    let stop = &caught.stop;
    let servers = servers(config)?;
    // Asked before EAL binds this thread to the control core.
    let spare_core = spare_core(config);
    // The sockets are ours: nobody else writes the recorder.
    let mut recorder = aftermath::look_back(source, options, spare_core, &caught.second);
    let http = config.telemetry.http.map(Listener::bind).transpose()?;

    let sizing = Sizing::of(config);
    let plan = wiring::eal::plan(config, &sizing, wiring::eal::Free::now())?;
    tell_pages(plan.no_huge);
    let ahead = wiring::hosts::read_ahead(config, &keep);
    steps.done("what was left");
    let eal = Eal::init(&plan.args)?;
    aftermath::keep_packets_out_of_cores(&eal);
    steps.done("EAL");
    let pools = Pools::new(&eal, config, &sizing)?;
    steps.done("pools");
    service::starting("opening the ports");
    let waits = |down: &[&str]| tell_waiting(config, down);
    let ports = wiring::ports::open(&eal, config, &pools, (stop, waits))?;
    tell_ports(config, &ports);
    steps.done("ports");
    let clock = Clock::new(
        npcc_dpdk::Clock::calibrated(&eal, &begin),
        config.time_scale,
    );

    let Assembly {
        workers,
        control,
        management,
        linux,
    } = assemble(
        source,
        (options, Arc::clone(&keep), ahead),
        ports,
        &pools,
        clock,
        (recorder.as_mut(), probe),
    )?;
    close_rest(&options.store);
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
        http,
        linux,
        hangup: caught.hangup,
        ready: Arc::clone(&ready),
        recorder: recorder.clone(),
    };
    look_after(&mut threads, &management, ends)?;
    steps.done("threads");
    steps.tell();
    sandbox::close(config)?;
    let deadline = options.duration.map(|duration| Instant::now() + duration);
    control.run(stop, || {
        turned(&ready);
        deadline.is_some_and(|deadline| Instant::now() >= deadline) || threads.has_ended()
    });
    service::stopping();
    if fault::strikes("stop") {
        std::thread::sleep(Duration::from_secs(60));
    }
    threads.end()?;
    aftermath::ends_in_order(recorder.as_deref());
    // The last look is written down as every other.
    Ok(management.view.snapshot())
}

/// The control core turned: with its first turn it runs.
fn turned(ready: &AtomicBool) {
    if !ready.load(Ordering::Relaxed) {
        fault::waits("ready");
        ready.store(true, Ordering::Release);
    }
    fault::waits("control-stuck");
    fault::panics("control");
}

/// Says whose links are waited for.
fn tell_waiting(config: &Config, down: &[&str]) {
    let text = format!(
        "waiting for the link of {}, {} at most (dpdk.link_wait)",
        down.join(", "),
        config.dpdk.link_wait
    );
    note(&text);
    service::starting(&text);
}

/// Says what ordinary pages cost.
fn tell_pages(ordinary: bool) {
    if ordinary {
        note(
            "note: packet memory is in ordinary pages, which costs speed: reserve hugepages for production",
        );
    }
}

/// Closes what the process before left and nobody took.
fn close_rest(store: &Store) {
    let rest = store.close_rest();
    if !rest.is_empty() {
        note(&format!(
            "note: the service manager kept what nobody uses, which is closed: {}",
            rest.join(", ")
        ));
    }
}

/// Where others reach the switch: clients, scrapers, Linux, who sends signals.
struct Ends {
    servers: Vec<Server>,
    http: Option<Listener>,
    linux: Option<LinuxIo>,
    hangup: Arc<AtomicBool>,
    /// The control core runs.
    ready: Arc<AtomicBool>,
    recorder: Option<Arc<Recorder>>,
}

/// Starts the threads beside the workers, and has all watched.
fn look_after(
    threads: &mut Threads,
    management: &Arc<Management>,
    ends: Ends,
) -> anyhow::Result<()> {
    let view = &management.view;
    // The recorder lists them in this order.
    let own = threads.heartbeat("management", Role::Essential);
    for (core, stats) in view.cores.iter().zip(&view.workers) {
        let (name, stats) = (format!("worker on core {core}"), Arc::clone(stats));
        threads.watch(&name, Role::Essential, move || stats.loops.get());
    }
    let npcc = Arc::clone(&view.npcc);
    threads.watch("control thread", Role::Essential, move || npcc.ticks.get());
    if let Some((io, facts)) = ends.linux.zip(view.linux.as_ref()) {
        let (stats, kernel) = (io.stats(), facts.kernel.clone());
        threads.watch("linux thread", Role::Essential, move || stats.turns.get());
        threads.watch("netlink thread", Role::Essential, move || kernel.turns());
        let stop = Arc::clone(threads.stop());
        threads.spawn("npcc-linux", "linux thread", move || io.run(&stop))?;
    }
    let followed = Arc::clone(management);
    threads.start(
        "npcc-link",
        "link thread",
        Role::Essential,
        move |heartbeat| {
            follow_links(&followed, heartbeat);
        },
    )?;
    if Store::listens() {
        let (kept, ready) = (Arc::clone(management), Arc::clone(&ends.ready));
        threads.start(
            "npcc-keep",
            "keeping thread",
            Role::Auxiliary,
            move |heartbeat| {
                keeping::run(&kept, &ready, heartbeat);
            },
        )?;
    }
    if let Some(http) = ends.http {
        let router = pages::router(Arc::clone(management));
        threads.start(
            "npcc-http",
            "HTTP thread",
            Role::Auxiliary,
            move |heartbeat| {
                serve_http(http, &router, heartbeat);
            },
        )?;
    }
    // Last: it watches all the others.
    let watchdog = threads.watchdog(ends.recorder.map(|recorder| (recorder, view.clock)));
    let managed = Arc::clone(management);
    threads.spawn("npcc-manage", "management thread", move || {
        let signals = (&*ends.hangup, &*ends.ready);
        manage(ends.servers, &managed, (&own, watchdog), signals);
    })
}

/// The socket that may change things, and the one for reading.
fn servers(config: &Config) -> Result<Vec<Server>, SocketError> {
    let telemetry = &config.telemetry;
    let read_only = telemetry.read_only_path();
    let all = [
        (&telemetry.socket, &telemetry.group, Access::Change),
        (&read_only, &telemetry.read_only_group, Access::Read),
    ];
    let bind =
        |(path, group, access): (&String, &String, _)| Server::bind(Path::new(path), group, access);
    all.into_iter().map(bind).collect()
}

/// How long the first frame waits for the kernel's routes.
const LINUX_WAIT: Duration = Duration::from_secs(5);
/// How often the links are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// Follows the links until the switch stops: a thread of its own, so that no client and no reload keeps it.
fn follow_links(management: &Management, heartbeat: &Heartbeat) {
    while heartbeat.goes_on() {
        fault::waits("link-stuck");
        management.look_at_links();
        management.look_at_linux(|| heartbeat.beat());
        std::thread::sleep(LOOK);
    }
}

/// Says what is not as it should be with ports at the start.
fn tell_ports(config: &Config, ports: &[wiring::ports::OpenPort]) {
    for (plan, port) in config.ports.iter().zip(ports) {
        tell_link(plan, port);
        if let Some(why) = port.large_frames {
            note(&format!(
                "note: hosts behind port {} may send frames larger than the MTU, which are dropped as oversize, for the kernel does not cut them: {why}; \
                 on each host: ethtool -K INTERFACE tso off gso off",
                plan.name
            ));
        }
    }
    for name in wiring::workers::without_interrupt(config, ports) {
        note(&format!(
            "note: port {name} cannot wake a worker that sleeps: it is looked at every half millisecond (cores.idle)"
        ));
    }
}

/// Serves metrics and the page until the switch stops, or until the system takes the socket back: the switch forwards without it.
fn serve_http(http: Listener, router: &axum::Router, heartbeat: &Heartbeat) {
    if let Err(error) = http.serve(router, Limits::default(), heartbeat) {
        note(&format!("note: metrics are served no more: {error}"));
        while heartbeat.goes_on() {
            std::thread::sleep(LOOK);
        }
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
            // The first frames are not to pass before there is somebody to judge them.
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

/// A core for all other threads: the written one, or one that neither control nor workers use, if there is any.
fn spare_core(config: &Config) -> Option<core_affinity::CoreId> {
    if let Some(id) = config.cores.housekeeping {
        return Some(core_affinity::CoreId { id });
    }
    let used = |core: &core_affinity::CoreId| {
        core.id == config.cores.control || config.cores.workers.contains(&core.id)
    };
    core_affinity::get_core_ids()?
        .into_iter()
        .find(|core| !used(core))
}

/// The management thread: clients get theirs, events are looked for, signals are obeyed, the service manager hears that all is
/// well, and a terminal has a progress line.
fn manage(
    servers: Vec<Server>,
    management: &Arc<Management>,
    (own, mut watchdog): (&Heartbeat, Watchdog),
    (hangup, ready): (&AtomicBool, &AtomicBool),
) {
    let terminal = std::io::stderr().is_terminal();
    let mut due = Instant::now();
    // A reload may take seconds: events are looked for meanwhile.
    let mut reloads = Room::new("npcc-reload", 1);
    let mut service = Service::new(due);
    server::serve(servers, management, own.stop(), || {
        own.beat();
        fault::panics("manage");
        fault::aborts("abort");
        fault::forbidden("forbidden");
        management.view.watch();
        let now = Instant::now();
        watchdog.read(now);
        if ready.load(Ordering::Relaxed) {
            service.turn(&management.view, &mut watchdog, now);
        }
        if !reloads.is_full()
            && let Some(change) = wanted(management, hangup)
        {
            let management = Arc::clone(management);
            let started = reloads.start(move || change(&management));
            if let Err(why) = started {
                note(&format!("no reload: {why}"));
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
    reloads.wait(Duration::from_secs(2));
    if terminal {
        let _ = writeln!(std::io::stderr());
    }
}

/// A change that is wanted though no client asks for it.
fn wanted(management: &Management, hangup: &AtomicBool) -> Option<fn(&Management)> {
    if management.is_overdue() {
        return Some(Management::roll_back_if_overdue);
    }
    let asked = hangup.swap(false, Ordering::Relaxed);
    asked.then_some(Management::reload_at_signal)
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
