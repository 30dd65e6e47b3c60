//! Loop of a feed.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::report::{FeedReport, millis, peers};
use super::{epoch, subscribe};
use crate::agent::LeaseMessage;
use crate::bus::{BusCounts, ConnectFailure, Link};
use crate::fleet;
use crate::name::Name;
use crate::row::Row;
use crate::settings::Settings;
use crate::switch::{Batch, FromSwitch, SuggestCounts, follow, suggest};
use crate::sync::{Machine, Outgoing};

/// Time between two steps of publishing and suggesting.
const STEP: Duration = Duration::from_millis(10);
/// Time between two reports.
const REPORT: Duration = Duration::from_secs(1);
/// Most batches of the switch's rows that wait: 262,144 rows.
const ROWS: usize = 256;
/// Most messages of peers that wait.
const MESSAGES: usize = 1024;
/// Most rows of a suggestion.
const SUGGESTION: usize = 1024;

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
    /// The system refused.
    #[error("cannot read random bytes from the kernel: {0}")]
    System(#[from] io::Error),
}

/// State of the loop.
struct Feed {
    machine: Machine,
    link: Link,
    /// Message that found the queue to the server full.
    held: Option<Outgoing>,
    batches: Option<mpsc::Sender<Batch>>,
    /// True if hosts come before peers at the next suggestion.
    host_next: bool,
    started: Instant,
    switch_down: Option<String>,
    snapshots: u64,
    suggested: Arc<Mutex<SuggestCounts>>,
    /// Number of each peer's ends that the switch had refused as behind no port when they were last suggested again.
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
            epoch::random()?,
            &settings.peers,
            &settings.machine_limits(),
        ),
        link,
        held: None,
        batches: suggestions(settings, &suggested),
        host_next: false,
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
            () = feed.link.reconnected() => {
                let now = feed.now();
                feed.machine.reconnected(now);
            }
            _ = steps.tick() => {
                feed.publish(settings).await;
                feed.suggest(&mut leases);
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

/// Starts the task that suggests, where the settings name a socket for it.
fn suggestions(
    settings: &Settings,
    counts: &Arc<Mutex<SuggestCounts>>,
) -> Option<mpsc::Sender<Batch>> {
    let socket = settings.switch.control.clone()?;
    let (to, from) = mpsc::channel(1);
    let counts = Arc::clone(counts);
    tokio::spawn(async move { suggest(&socket, from, counts).await });
    Some(to)
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
                    self.snapshots += u64::from(row == Row::Begin);
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
            let mut subject = settings.subject("ends.") + out.topic.name();
            if let Some(to) = &out.to {
                subject = subject + "." + to.as_str();
            }
            if !self.link.publish(&subject, &out.bytes).await {
                self.held = Some(out);
                break;
            }
        }
    }

    /// Passes the next rows of a peer or a host to the switch, in turn, if it took the last ones.
    fn suggest(&mut self, leases: &mut mpsc::Receiver<LeaseMessage>) {
        let Some(Ok(permit)) = self.batches.as_ref().map(mpsc::Sender::try_reserve) else {
            return;
        };
        let machine = &mut self.machine;
        let mut of_peer = || {
            let rows = machine.suggestions(SUGGESTION);
            rows.map(|(peer, rows)| Batch::Peer(peer, rows))
        };
        let mut of_host = || leases.try_recv().ok().map(Batch::Host);
        let batch = if self.host_next {
            of_host().or_else(of_peer)
        } else {
            of_peer().or_else(of_host)
        };
        if let Some(batch) = batch {
            self.host_next = matches!(batch, Batch::Peer(..));
            permit.send(batch);
        }
    }

    /// Has ends be suggested again of each peer of which the switch refused some as behind no port since the last time.
    fn repeat_refused(&mut self, peers: &[Name]) {
        let now = self.now();
        let suggested = self.suggested.lock();
        let suggested = suggested.unwrap_or_else(PoisonError::into_inner);
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
        let suggested = self
            .suggested
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        FeedReport {
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: millis(now),
            ends: self.machine.own_ends(),
            lost: self.machine.own_lost(),
            switch_down: self.switch_down.clone(),
            snapshots: self.snapshots,
            peers: peers(&self.machine, now),
            suggested: suggested.clone(),
            bus: self.bus.values(),
        }
    }
}
