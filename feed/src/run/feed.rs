//! Loop of a feed.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use npcc_api::ends::EndRow;
use npcc_api::peers::MOST_ROWS;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::lease_queue::LeaseQueue;
use super::report::{FeedReport, millis, peers};
use super::subscribe;
use crate::agent::LeaseMessage;
use crate::bus::{BusCounts, ConnectFailure, Link, Published};
use crate::clock::now_us;
use crate::fleet;
use crate::name::Name;
use crate::settings::Settings;
use crate::switch::{Batch, FromSwitch, SuggestCounts, follow, suggest};
use crate::sync::{Machine, Outgoing};

/// Time between two steps of publishing and suggesting.
const STEP: Duration = Duration::from_millis(10);
/// Time between two reports.
const REPORT: Duration = Duration::from_secs(1);
/// Most batches of the switch's rows that wait: 262,144 rows.
const ROWS: usize = 256;
/// Most messages of peers, and of hosts, that wait to be read.
const MESSAGES: usize = 1024;
/// Time between two suggestions of ends that the switch refused as behind no port: its routes may have changed.
const REPEAT: Duration = Duration::from_secs(2);
/// Most ends of a peer that are suggested again at such a time: 8,192 rows a second, a twelfth of what the switch is given at most.
const REPEATED: usize = 16_384;
/// Reason for which the switch refuses an end that its routes do not lead to.
const NOT_BEHIND_PORT: &str = "not-behind-port";

/// Reason why a feed does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] ConnectFailure),
    /// A subscription failed.
    #[error("cannot subscribe: {0}")]
    Subscribe(#[from] async_nats::SubscribeError),
}

/// State of the loop.
struct Feed {
    machine: Machine,
    link: Link,
    /// Message that found the queue to the server full.
    held: Option<Outgoing>,
    /// Suggestions of peers' rows, and of hosts' leases: neither waits for the other.
    suggestions: Option<[mpsc::Sender<Batch>; 2]>,
    leases: LeaseQueue,
    started: Instant,
    switch_down: Option<String>,
    snapshots: u64,
    suggested: Arc<Mutex<SuggestCounts>>,
    /// Number of each peer's rows that the switch had refused as behind no port at the last tick of [`REPEAT`].
    behind_no_port: BTreeMap<Name, u64>,
    bus: Arc<BusCounts>,
}

/// Runs a feed until `stop`. No failure of the bus or of the switch ends it.
///
/// # Errors
/// Fails with [`RunError`].
pub async fn run(settings: &Settings, stop: impl Future<Output = ()>) -> Result<(), RunError> {
    let bus = Arc::new(BusCounts::default());
    let link = Link::open(&settings.bus, &settings.prefix(), &bus).await?;
    let (rows_to, mut rows) = mpsc::channel(ROWS);
    let (received_to, mut received) = mpsc::channel(MESSAGES);
    let (leases_to, mut leases) = mpsc::channel(MESSAGES);
    subscribe::to_peers(settings, &link, &received_to).await?;
    subscribe::to_hosts(settings, &link, leases_to).await?;
    let socket = settings.switch.socket.clone();
    tokio::spawn(async move { follow(&socket, rows_to).await });
    let suggested = Arc::<Mutex<SuggestCounts>>::default();
    let mut feed = Feed {
        machine: Machine::new(
            settings.name.clone(),
            // The standard library takes the keys of its maps from the system, so nobody can foresee it.
            RandomState::new().hash_one(()),
            &settings.peers,
            &settings.limits,
        ),
        link,
        held: None,
        suggestions: suggestions(settings, &suggested),
        leases: LeaseQueue::default(),
        started: Instant::now(),
        switch_down: Some("not connected yet".to_owned()),
        snapshots: 0,
        suggested,
        behind_no_port: BTreeMap::new(),
        bus,
    };
    let (report_to, report) = watch::channel(FeedReport::default());
    fleet::spawn_records(settings, &feed.link, report);
    let mut stop = pin!(stop);
    let mut steps = interval(STEP);
    steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut reports = interval(REPORT);
    let mut repeats = interval(REPEAT);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(message) = rows.recv() => feed.take(message),
            Some((from, bytes)) = received.recv() => {
                let now = feed.now();
                feed.machine.receive(now, &from, &bytes);
            }
            Some(message) = leases.recv() => feed.take_leases(message),
            () = feed.link.reconnected() => {
                let now = feed.now();
                feed.machine.reconnected(now);
            }
            _ = steps.tick() => {
                feed.publish(settings).await;
                feed.suggest();
            }
            _ = repeats.tick() => feed.repeat_refused(&settings.peers),
            _ = reports.tick() => {
                let _ = report_to.send(feed.report());
            }
        }
    }
    feed.link.close().await;
    Ok(())
}

/// Starts the tasks that suggest, where the settings name a socket for it.
fn suggestions(
    settings: &Settings,
    counts: &Arc<Mutex<SuggestCounts>>,
) -> Option<[mpsc::Sender<Batch>; 2]> {
    let socket = settings.switch.control.as_ref()?;
    let start = |()| {
        let (to, from) = mpsc::channel(1);
        let (socket, counts) = (socket.clone(), Arc::clone(counts));
        tokio::spawn(async move { suggest(&socket, from, counts).await });
        to
    };
    Some([(), ()].map(start))
}

fn locked(counts: &Mutex<SuggestCounts>) -> MutexGuard<'_, SuggestCounts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn take(&mut self, message: FromSwitch) {
        match message {
            FromSwitch::Connected => {
                self.switch_down = None;
                // It may be another process, which knows nothing of the peers.
                self.machine.repeat_suggestions(self.started.elapsed());
            }
            FromSwitch::Rows(rows) => {
                for row in rows {
                    self.snapshots += u64::from(row == EndRow::Begin);
                    self.machine.row(row);
                }
            }
            FromSwitch::Disconnected(why) => self.switch_down = Some(why),
        }
    }

    /// Publishes what there is, as far as that takes no waiting.
    async fn publish(&mut self, settings: &Settings) {
        while self.link.is_up() {
            let now = self.now();
            let Some(out) = self.held.take().or_else(|| self.machine.publish(now)) else {
                break;
            };
            let subject = settings.subject(&out.subject());
            // A refused message is dropped: holding it would stop all later ones.
            if self.link.publish(&subject, &out.bytes).await == Published::Full {
                self.held = Some(out);
                break;
            }
        }
    }

    /// Enters leases into the queue, where they are suggested.
    fn take_leases(&mut self, message: LeaseMessage) {
        if self.suggestions.is_none() {
            return;
        }
        let host = message.host.clone();
        let refused = self.leases.push(message);
        locked(&self.suggested).refuse(&host, "full", refused);
    }

    /// Passes the next rows of a peer and the next leases to the switch, if it took the last ones.
    fn suggest(&mut self) {
        let Some([peers, hosts]) = &self.suggestions else {
            return;
        };
        if let Ok(permit) = peers.try_reserve()
            && let Some((peer, rows)) = self.machine.suggestions(MOST_ROWS)
        {
            permit.send(Batch::Peer(peer, rows));
        }
        if let Ok(permit) = hosts.try_reserve() {
            let leases = self.leases.take(now_us());
            if !leases.is_empty() {
                permit.send(Batch::Hosts(leases));
            }
        }
    }

    /// Has ends be suggested again of each peer of which the switch refused some as behind no port since the last time.
    fn repeat_refused(&mut self, peers: &[Name]) {
        let now = self.now();
        let suggested = locked(&self.suggested);
        for peer in peers {
            let answers = suggested.peers.get(peer.as_str());
            let refused = answers.and_then(|answers| answers.refused.get(NOT_BEHIND_PORT));
            let refused = refused.copied().unwrap_or(0);
            let before = self.behind_no_port.insert(peer.clone(), refused);
            let again = refused > before.unwrap_or(0);
            self.machine.repeat_refused(now, peer, REPEATED, again);
        }
    }

    fn report(&self) -> FeedReport {
        let now = self.now();
        FeedReport {
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: millis(now),
            ends: self.machine.own_ends(),
            lost: self.machine.own_lost(),
            switch_down: self.switch_down.clone(),
            snapshots: self.snapshots,
            peers: peers(&self.machine, now),
            suggested: locked(&self.suggested).clone(),
            bus: self.bus.values(),
        }
    }
}
