//! Threads beside the workers: links, state that outlives the process, HTTP, Linux, and management, which watches all.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use npcc_api::model::Snapshot;

use super::checkpoint;
use super::service::Service;
use crate::manage::management::Management;
use crate::manage::server::{self, Server};
use crate::telemetry::http::{Limits, Listener};
use crate::telemetry::pages;
use npcc_engine::fault;
use npcc_engine::linux_io::LinuxIo;
use npcc_engine::log::{self, note};
use npcc_engine::recorder::start::Recorder;
use npcc_engine::store::Store;
use npcc_engine::threads::{Heartbeat, Role, Threads, Watchdog};

/// Outside endpoints of the switch: client sockets, HTTP, Linux, signals.
pub(super) struct Ends {
    pub(super) servers: Vec<Server>,
    /// The HTTP listener, and the host names it accepts in requests.
    pub(super) http: Option<(Listener, Vec<String>)>,
    pub(super) linux: Option<LinuxIo>,
    pub(super) hangup: Arc<AtomicBool>,
    /// True once the control core runs.
    pub(super) ready: Arc<AtomicBool>,
    pub(super) recorder: Option<Arc<Recorder>>,
}

/// Starts the threads beside the workers, and registers all threads with the watchdog.
pub(super) fn start(
    threads: &mut Threads,
    management: &Arc<Management>,
    ends: Ends,
) -> anyhow::Result<()> {
    let view = &management.view;
    // The recorder lists the threads in this order.
    let own = threads.heartbeat("management", Role::Essential);
    let workers = &view.workers;
    for (core, stats) in workers.cores.iter().zip(&workers.stats) {
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
    let beat = threads.heartbeat("link thread", Role::Essential);
    let followed = Arc::clone(management);
    threads.spawn("npcc-link", "link thread", move || {
        follow_links(&followed, &beat);
    })?;
    if Store::listens() {
        let beat = threads.heartbeat("keeping thread", Role::Auxiliary);
        let (kept, ready) = (Arc::clone(management), Arc::clone(&ends.ready));
        threads.spawn("npcc-keep", "keeping thread", move || {
            checkpoint::run(&kept, &ready, &beat);
        })?;
    }
    if let Some((http, names)) = ends.http {
        let beat = threads.heartbeat("HTTP thread", Role::Auxiliary);
        let router = pages::router(Arc::clone(management), &names);
        threads.spawn("npcc-http", "HTTP thread", move || {
            serve_http(http, &router, &beat);
        })?;
    }
    // Started last: the management thread watches all the others.
    let watchdog = threads.watchdog(ends.recorder.map(|recorder| (recorder, view.clock)));
    let managed = Arc::clone(management);
    threads.spawn("npcc-manage", "management thread", move || {
        let signals = (&*ends.hangup, &*ends.ready);
        manage(ends.servers, &managed, (&own, watchdog), signals);
    })
}

/// Interval at which the links are polled.
const LOOK: Duration = Duration::from_millis(10);

/// Polls the links until the switch stops: a thread of its own, so that neither clients nor a reload delay that the routes pass over a link
/// that goes down. All else that follows from a link waits until a change under way has ended.
fn follow_links(management: &Management, heartbeat: &Heartbeat) {
    let mut tried = 0;
    while heartbeat.goes_on() {
        fault::waits("link-stuck");
        management.poll_links();
        management.catch_up(&mut tried);
        management.look_at_linux(|| heartbeat.beat());
        std::thread::sleep(LOOK);
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

/// The management thread: serves clients, watches for events, acts on signals, sends the service manager its keep-alive, and prints a
/// progress line to a terminal.
fn manage(
    servers: Vec<Server>,
    management: &Arc<Management>,
    (own, mut watchdog): (&Heartbeat, Watchdog),
    (hangup, ready): (&AtomicBool, &AtomicBool),
) {
    let terminal = log::is_terminal();
    let mut due = Instant::now();
    // A reload may take seconds: events are watched meanwhile.
    let mut reload: Option<JoinHandle<()>> = None;
    let mut service = Service::new(due);
    let served = server::serve(servers, management, own.stop(), || {
        own.beat();
        fault::panics("manage");
        fault::aborts("abort");
        fault::forbidden("forbidden");
        management.view.watch();
        management.view.note_readiness();
        let now = Instant::now();
        watchdog.read(now);
        management.look_up_flows(now);
        if ready.load(Ordering::Relaxed) {
            service.turn(&management.view, &mut watchdog, now);
        }
        if reload.as_ref().is_none_or(JoinHandle::is_finished)
            && let Some(change) = wanted(management, hangup)
        {
            let management = Arc::clone(management);
            let named = Builder::new().name("npcc-reload".to_owned());
            match named.spawn(move || change(&management)) {
                Ok(started) => reload = Some(started),
                Err(why) => note(&format!("no reload: the system gives no thread: {why}")),
            }
        }
        if terminal && Instant::now() >= due {
            due = Instant::now() + Duration::from_secs(1);
            let line = format!("\r\x1b[K{}", progress(&management.view.snapshot()));
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    });
    if let Err(why) = served {
        note(&format!("no client can be served: {why}"));
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    while reload.as_ref().is_some_and(|one| !one.is_finished()) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    if terminal {
        let _ = writeln!(std::io::stderr());
    }
}

/// Returns a change that is due without a client's request: an overdue rollback, or a reload by SIGHUP.
fn wanted(management: &Management, hangup: &AtomicBool) -> Option<fn(&Management)> {
    if management.is_overdue() {
        return Some(Management::expire_confirmation);
    }
    let requested = hangup.swap(false, Ordering::Relaxed);
    requested.then_some(Management::reload_at_signal)
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
