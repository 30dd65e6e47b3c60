//! Tasks that read the switch's tables and publish records.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::schema::{Decision, Event, Host, Record, State, VERSION};
use super::state;
use crate::bus::Link;
use crate::run::FeedReport;
use crate::settings::Settings;
use crate::switch::{ask, ask_rows};

/// Time between two states, and two reads of the log.
const STATE: Duration = Duration::from_secs(1);
/// Number of states between two roll-ups of hosts.
const HOSTS: u64 = 60;
/// Most lines of the log that are read at once.
const LINES: usize = 1000;

/// Publishes records until the feed ends.
pub fn spawn_records(settings: &Settings, link: &Link, report: watch::Receiver<FeedReport>) {
    let records = Records {
        settings: settings.clone(),
        link: link.clone(),
        report,
        log: None,
    };
    tokio::spawn(records.run());
}

struct Records {
    settings: Settings,
    link: Link,
    report: watch::Receiver<FeedReport>,
    /// Time of the last line of the switch's log, in microseconds of its clock.
    log: Option<u64>,
}

impl Records {
    async fn run(mut self) {
        let (mut round, mut hosts_due) = (0, 0);
        let mut unresponsive = None;
        let mut rounds = tokio::time::interval(STATE);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            // Roll-ups that are due while the server or the switch is away come once both are there.
            if round >= hosts_due && self.link.is_up() {
                unresponsive = self.hosts().await;
                if unresponsive.is_some() {
                    hosts_due = round + HOSTS;
                }
            }
            round += 1;
            self.state(unresponsive).await;
            self.log().await;
        }
    }

    async fn state(&self, unresponsive: Option<usize>) {
        let answer = ask(&self.settings.switch.socket, "\"snapshot\"\n").await;
        let snapshot = answer
            .ok()
            .and_then(|line| serde_json::from_str::<Value>(&line).ok());
        let switch = snapshot.and_then(|answer| state::read(answer.get("snapshot")?));
        let feed = self.report.borrow().clone();
        let state = State {
            switch,
            hosts_unresponsive: unresponsive,
            feed,
        };
        self.publish("state", state).await;
    }

    /// Publishes a roll-up of each host; returns the number of those that do not respond.
    async fn hosts(&self) -> Option<usize> {
        let answer = ask_rows(&self.settings.switch.socket, "hosts", &json!({})).await;
        let (hosts, _) = answer.ok()?;
        let unresponsive = hosts
            .iter()
            .filter(|host| host["standing"] == "doubted")
            .count();
        for host in hosts.into_iter().filter_map(object) {
            self.publish("hosts", Host { host }).await;
        }
        Some(unresponsive)
    }

    /// Publishes the lines of the log since the last time: decisions and events. Lines before the feed's start are left out. Where more
    /// lines came than are read at once, an event says so.
    async fn log(&mut self) {
        let socket = &self.settings.switch.socket;
        let Ok((mut lines, _)) = ask_rows(socket, "log", &json!({"top": LINES})).await else {
            return;
        };
        lines.sort_by_key(time_of);
        let Some(last) = lines.last().map(time_of) else {
            self.log.get_or_insert_default();
            return;
        };
        let Some(before) = self.log.replace(last) else {
            return;
        };
        if lines.len() >= LINES && lines.first().is_some_and(|line| time_of(line) > before) {
            self.publish("events", Event::Gap { gap: true }).await;
        }
        for line in lines.into_iter().filter(|line| time_of(line) > before) {
            let is_decision = line["kind"] == "decision";
            let Some(line) = object(line) else { continue };
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

/// Returns the keys of a row; `None` for a row that is no object.
fn object(row: Value) -> Option<Map<String, Value>> {
    match row {
        Value::Object(keys) => Some(keys),
        _ => None,
    }
}

/// Returns the time of a line of the log.
fn time_of(line: &Value) -> u64 {
    line["time_us"].as_u64().unwrap_or_default()
}

/// Returns the time in microseconds since the Unix epoch.
fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
