//! Tasks that read the switch's tables and publish records.

use std::time::Duration;

use npcc_api::client::{self, ClientError, PATIENCE};
use npcc_api::model;
use npcc_api::protocol::{Reply, Request};
use npcc_api::query::Query;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::schema::{Decision, Event, Host, Record, State, VERSION};
use super::state;
use crate::bus::Link;
use crate::clock::now_us;
use crate::run::FeedReport;
use crate::settings::Settings;

/// Time between two states, and two reads of the log.
const STATE: Duration = Duration::from_secs(1);
/// Longest time for the switch's part of a state: a state is published also while the switch hangs.
const SNAPSHOT: Duration = Duration::from_millis(500);
/// Number of reads of the log between two roll-ups of hosts.
const HOSTS: u64 = 60;
/// Most lines of the log that are read at once.
const LINES: usize = 1000;

/// Publishes records until the feed ends: states in one task, roll-ups of hosts and lines of the log in another, which may wait for the
/// switch.
pub fn spawn_records(settings: &Settings, link: &Link, report: watch::Receiver<FeedReport>) {
    let records = Records {
        settings: settings.clone(),
        link: link.clone(),
    };
    let (unresponsive_to, unresponsive) = watch::channel(None);
    tokio::spawn(records.clone().states(report, unresponsive));
    tokio::spawn(records.tables(unresponsive_to));
}

#[derive(Clone)]
struct Records {
    settings: Settings,
    link: Link,
}

impl Records {
    /// Publishes states. `unresponsive` is the number of hosts that do not respond, as of the last roll-up.
    async fn states(
        self,
        report: watch::Receiver<FeedReport>,
        unresponsive: watch::Receiver<Option<usize>>,
    ) {
        let mut rounds = rounds();
        loop {
            rounds.tick().await;
            let state = State {
                switch: self.switch().await,
                hosts_unresponsive: *unresponsive.borrow(),
                feed: report.borrow().clone(),
            };
            self.publish("state", state).await;
        }
    }

    async fn switch(&self) -> Option<state::SwitchState> {
        let answer = client::ask(&self.settings.switch.socket, &Request::Snapshot);
        match timeout(SNAPSHOT, answer).await.ok()?.ok()? {
            Reply::Snapshot(snapshot) => Some(state::read(&snapshot)),
            _ => None,
        }
    }

    /// Publishes roll-ups of hosts and lines of the log.
    async fn tables(self, unresponsive: watch::Sender<Option<usize>>) {
        let (mut round, mut hosts_due) = (0, 0);
        let mut log = None;
        let mut rounds = rounds();
        loop {
            rounds.tick().await;
            // Roll-ups that are due while the server or the switch is away come once both are there.
            if round >= hosts_due && self.link.is_up() {
                let count = self.hosts().await;
                if count.is_some() {
                    hosts_due = round + HOSTS;
                }
                unresponsive.send_replace(count);
            }
            round += 1;
            self.log(&mut log).await;
        }
    }

    /// Returns the rows of a table.
    async fn rows(&self, table: &str, query: Query) -> Option<Vec<Value>> {
        let mut rows = Vec::new();
        let give = |row| {
            rows.push(row);
            Ok::<(), ClientError>(())
        };
        let answer = client::rows(&self.settings.switch.socket, table, &query, give);
        timeout(PATIENCE, answer).await.ok()?.ok()?;
        Some(rows)
    }

    /// Publishes a roll-up of each host; returns the number of those that do not respond.
    async fn hosts(&self) -> Option<usize> {
        let hosts = self.rows("hosts", Query::default()).await?;
        let unresponsive = hosts
            .iter()
            .filter_map(|host| model::Host::deserialize(host).ok())
            .filter(|host| matches!(host.responsiveness.as_str(), "unresponsive" | "moved"))
            .count();
        for host in hosts {
            let Value::Object(host) = host else { continue };
            self.publish("hosts", Host { host }).await;
        }
        Some(unresponsive)
    }

    /// Publishes the lines of the log after `read`, the time of the last line read, in microseconds of the switch's clock: decisions and
    /// events. Lines before the feed's start are left out. Where more lines came than are read at once, an event says so.
    async fn log(&self, read: &mut Option<u64>) {
        let latest = Query {
            top: Some(LINES),
            ..Query::default()
        };
        let Some(mut lines) = self.rows("log", latest).await else {
            return;
        };
        lines.sort_by_key(time_of);
        let last = lines.last().map_or(0, time_of);
        let Some(before) = read.replace(last) else {
            return;
        };
        // The clock of another process of the switch began at 0: all its lines are new.
        let before = if last < before { 0 } else { before };
        if lines.len() >= LINES && lines.first().is_some_and(|line| time_of(line) > before) {
            self.publish("events", Event::Gap { gap: true }).await;
        }
        for line in lines.into_iter().filter(|line| time_of(line) > before) {
            let is_decision = line["kind"] == "decision";
            let Value::Object(line) = line else { continue };
            if is_decision {
                self.publish("decisions", Decision { line }).await;
            } else {
                self.publish("events", Event::Line { line }).await;
            }
        }
    }

    async fn publish<T: Serialize>(&self, subject: &str, content: T) {
        let record = Record {
            v: VERSION,
            site: self.settings.site.clone(),
            sender: self.settings.name.clone(),
            at: now_us(),
            content,
        };
        // Maps with text keys and numbers always encode.
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        self.link
            .publish_record(&self.settings.subject(subject), &bytes)
            .await;
    }
}

/// Returns the ticks at which records are due.
fn rounds() -> Interval {
    let mut rounds = interval(STATE);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    rounds
}

/// Returns the time of a line of the log.
fn time_of(line: &Value) -> u64 {
    line["time_us"].as_u64().unwrap_or_default()
}
