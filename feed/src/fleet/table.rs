//! `npcc-feed fleet`: a row for each box, from the states that they publish every second.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::{Client, SubscribeError};
use comfy_table::{Table, presets};
use futures_util::StreamExt;
use npcc_config::printable;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::history;
use super::identity::record;
use crate::bus::{ConnectFailure, connect};
use crate::clock::now_us;
use crate::settings::Settings;

/// Time for which states are collected: each box publishes one a second.
const WAIT: Duration = Duration::from_millis(2500);

/// Most characters of a text or number of a record, and of a cell of the table.
const LONGEST: usize = 64;
const WIDEST: usize = 1024;

/// Reason why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no connection to a server.
    #[error("cannot connect to the bus: {0}")]
    Connect(#[from] ConnectFailure),
    /// The subscription failed.
    #[error("cannot subscribe to the states: {0}")]
    Subscribe(#[from] SubscribeError),
}

/// Last states of boxes.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    /// The states, by site and box.
    pub states: Vec<Value>,
    /// Number of records that were dropped: not readable, or of another box than that under whose subject they came.
    pub dropped: usize,
}

/// Collects the last state of each box of the site, or of all sites. The state of a box that published none meanwhile is the last one that
/// the site's stream keeps, with the key `silent_s`: its age in seconds. A peer without any has an object with `silent_s: null`.
///
/// # Errors
/// Fails if no server can be reached.
pub async fn fleet(settings: &Settings, all_sites: bool) -> Result<Fleet, FleetError> {
    let client = connect(&settings.bus, &settings.prefix()).await?;
    let site = if all_sites {
        "*"
    } else {
        settings.site.as_str()
    };
    let mut live = BTreeMap::new();
    let collected = each_state(&client, site, |subject, state| {
        live.insert(subject.to_owned(), state);
    });
    let (collected, kept) = tokio::join!(collected, timeout(WAIT, kept_states(&client, settings)));
    let mut dropped = collected?;
    let mut states = BTreeMap::new();
    for peer in &settings.peers {
        let state = json!({"site": settings.site, "box": peer, "silent_s": null});
        states.insert(format!("npcc.{}.{peer}.state", settings.site), state);
    }
    // Servers without a stream, or that do not let this user read it, keep no states.
    let (kept, dropped_of_kept) = kept.ok().flatten().unwrap_or_default();
    dropped += dropped_of_kept;
    for (subject, mut state) in kept {
        let age = state["at"].as_u64().map(|at| now_us().saturating_sub(at));
        state["silent_s"] = json!(age.map(|us| us / 1_000_000));
        states.insert(subject, state);
    }
    states.extend(live);
    let states = states.into_values().collect();
    Ok(Fleet { states, dropped })
}

/// Passes each state that arrives within [`WAIT`] to `each`, with its subject; returns the number of those dropped.
pub(crate) async fn each_state(
    client: &Client,
    site: &str,
    mut each: impl FnMut(&str, Value),
) -> Result<usize, SubscribeError> {
    let mut messages = client.subscribe(format!("npcc.{site}.*.state")).await?;
    let mut dropped = 0;
    let collect = async {
        while let Some(message) = messages.next().await {
            match record(message.subject.as_str(), &message.payload) {
                Some(state) => each(message.subject.as_str(), state),
                None => dropped += 1,
            }
        }
    };
    let _ = timeout(WAIT, collect).await;
    Ok(dropped)
}

/// Returns the last state of each box that the site's stream keeps, by subject, and the number of those dropped; `None` without a stream.
async fn kept_states(
    client: &Client,
    settings: &Settings,
) -> Option<(Vec<(String, Value)>, usize)> {
    if !client.server_info().jetstream {
        return None;
    }
    let config = pull::OrderedConfig {
        deliver_policy: DeliverPolicy::LastPerSubject,
        filter_subject: format!("npcc.{}.*.state", settings.site),
        ..Default::default()
    };
    let (mut states, mut dropped) = (Vec::new(), 0);
    let read = history::read(client.clone(), settings, config, |message| {
        match record(message.subject.as_str(), &message.payload) {
            Some(state) => states.push((message.subject.to_string(), state)),
            None => dropped += 1,
        }
    });
    read.await.ok()?;
    Some((states, dropped))
}

/// Formats the states for people.
#[must_use]
pub fn text(states: &[Value]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "SITE",
        "BOX",
        "SWITCH",
        "VERSION",
        "UP",
        "WORST QUEUE",
        "DELAY",
        "CNPS",
        "PAIRED",
        "UNRESPONSIVE",
        "ENDS",
        "PEERS",
    ]);
    for state in states {
        let cells = row(state);
        table.add_row(cells.iter().map(|cell| printable(cell, WIDEST)));
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

fn row(state: &Value) -> Vec<String> {
    let at = |path: &str| state.pointer(path).filter(|value| !value.is_null());
    let word = |path: &str| at(path).map_or_else(none, plain);
    let down = at("/feed/switch_down").is_some() || at("/switch").is_none();
    let switch = match state.get("silent_s") {
        Some(Value::Null) => "silent".to_owned(),
        Some(age) => format!("silent {age} s"),
        None if down => "down".to_owned(),
        None => "up".to_owned(),
    };
    let worst = at("/switch/worst_queue").map_or_else(none, |queue| {
        format!("{}/{}", plain(&queue["port"]), plain(&queue["priority"]))
    });
    let number = |path: &str| at(path).and_then(Value::as_f64);
    let delay = number("/switch/worst_queue/delay_us")
        .map_or_else(none, |us| format!("{:.1} us", us.min(1e12)));
    let up = number("/switch/uptime_s")
        .map_or_else(none, |seconds| format!("{:.0} s", seconds.min(1e12)));
    let paired = number("/switch/paired")
        .map_or_else(none, |share| format!("{:.1} %", share.min(1.0) * 100.0));
    let peers = at("/feed/peers").and_then(Value::as_array);
    let peers = peers
        .into_iter()
        .flatten()
        .map(peer)
        .collect::<Vec<_>>()
        .join(" ");
    vec![
        word("/site"),
        word("/box"),
        switch,
        word("/switch/version"),
        up,
        worst,
        delay,
        word("/switch/cnps"),
        paired,
        word("/hosts_unresponsive"),
        word("/feed/ends"),
        if peers.is_empty() { none() } else { peers },
    ]
}

/// Returns a peer's name and state: `equal`, `behind`, or `silent`.
fn peer(peer: &Value) -> String {
    let silent = peer["heard_ms"].as_u64().is_none_or(|ms| ms > 2000);
    let state = match (silent, peer["equal"].as_bool()) {
        (true, _) => "silent",
        (false, Some(true)) => "equal",
        (false, _) => "behind",
    };
    format!("{}:{state}", plain(&peer["peer"]))
}

fn none() -> String {
    "-".to_owned()
}

/// Returns a value without quotes, fit for a terminal.
fn plain(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    printable(&text, LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A box writes what it likes into its state, and whoever looks is at a terminal.
    #[test]
    fn what_a_box_writes_stays_in_its_row() {
        let evil = "\u{1b}]0;pwned\u{7}\u{1b}[2J\ndc1 edge-1 up";
        let state = json!({"site": "dc1", "box": "edge-2",
            "switch": {"version": evil, "uptime_s": 1e300, "cnps": evil, "worst_queue": {"port": evil, "priority": evil}},
            "feed": {"ends": evil, "peers": [{"peer": evil}]}});
        let text = text(&[state]);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
        assert!(text.len() < 2_000, "{}", text.len());
    }

    #[test]
    fn a_box_is_a_row_also_without_its_switch() {
        let states = [
            json!({"site": "dc1", "box": "edge-1", "hosts_unresponsive": 2,
                "switch": {"version": "0.1.0", "uptime_s": 61.0, "cnps": 7, "paired": 0.994,
                    "worst_queue": {"port": "dci", "priority": 3, "bytes": 1, "delay_us": 12.34}},
                "feed": {"ends": 9, "switch_down": null, "peers": [
                    {"peer": "edge-2", "heard_ms": 100, "equal": true},
                    {"peer": "edge-3", "heard_ms": 5000, "equal": true},
                    {"peer": "edge-4", "heard_ms": null, "equal": false}]}}),
            json!({"site": "dc1", "box": "edge-2", "switch": null, "feed": {"ends": 0, "switch_down": "gone", "peers": []}}),
            json!({"site": "dc1", "box": "edge-3", "switch": {"version": "0.1.0"}, "feed": {"ends": 0, "peers": []}, "silent_s": 12}),
            json!({"site": "dc1", "box": "edge-4", "silent_s": null}),
        ];
        let text = text(&states);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 5);
        assert_eq!(
            rows[1].join(" "),
            "dc1 edge-1 up 0.1.0 61 s dci/3 12.3 us 7 99.4 % 2 9 edge-2:equal edge-3:silent edge-4:silent"
        );
        assert_eq!(rows[2].join(" "), "dc1 edge-2 down - - - - - - - 0 -");
        assert_eq!(
            rows[3].join(" "),
            "dc1 edge-3 silent 12 s 0.1.0 - - - - - - 0 -"
        );
        assert_eq!(rows[4].join(" "), "dc1 edge-4 silent - - - - - - - - -");
    }
}
