//! `npcc-feed fleet`: a row for each box, from the states that they publish every second.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::Client;
use comfy_table::{Table, presets};
use futures_util::StreamExt;
use serde_json::Value;

use crate::bus::{ConnectFailure, connect};
use crate::settings::Settings;

/// Time for which states are collected: each box publishes one a second.
const WAIT: Duration = Duration::from_millis(2500);

/// Reason why there is no table.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no connection to a server.
    #[error("cannot connect to the bus: {0}")]
    Connect(#[from] ConnectFailure),
    /// The subscription failed.
    #[error("cannot subscribe to the states: {0}")]
    Subscribe(#[from] async_nats::SubscribeError),
}

/// Collects the last state of each box of the site, or of all sites.
///
/// # Errors
/// Fails if no server can be reached.
pub async fn fleet(settings: &Settings, all_sites: bool) -> Result<Vec<Value>, FleetError> {
    let client = connect(&settings.bus, &settings.prefix()).await?;
    let site = if all_sites {
        "*"
    } else {
        settings.site.as_str()
    };
    Ok(states(&client, site).await?.into_values().collect())
}

async fn states(
    client: &Client,
    site: &str,
) -> Result<BTreeMap<String, Value>, async_nats::SubscribeError> {
    let mut messages = client.subscribe(format!("npcc.{site}.*.state")).await?;
    let mut states = BTreeMap::new();
    let collect = async {
        while let Some(message) = messages.next().await {
            if let Ok(state) = serde_json::from_slice(&message.payload) {
                states.insert(message.subject.to_string(), state);
            }
        }
    };
    let _ = tokio::time::timeout(WAIT, collect).await;
    Ok(states)
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
        table.add_row(row(state));
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

fn row(state: &Value) -> Vec<String> {
    let at = |path: &str| state.pointer(path).filter(|value| !value.is_null());
    let word = |path: &str| at(path).map_or_else(none, plain);
    let down = at("/feed/switch_down").is_some() || at("/switch").is_none();
    let worst = at("/switch/worst_queue").map_or_else(none, |queue| {
        format!("{}/{}", plain(&queue["port"]), plain(&queue["priority"]))
    });
    let number = |path: &str| at(path).and_then(Value::as_f64);
    let delay =
        number("/switch/worst_queue/delay_us").map_or_else(none, |us| format!("{us:.1} us"));
    let up = number("/switch/uptime_s").map_or_else(none, |seconds| format!("{seconds:.0} s"));
    let paired =
        number("/switch/paired").map_or_else(none, |share| format!("{:.1} %", share * 100.0));
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
        if down { "down" } else { "up" }.to_owned(),
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

/// Returns a value without quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        ];
        let text = text(&states);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(
            rows[1].join(" "),
            "dc1 edge-1 up 0.1.0 61 s dci/3 12.3 us 7 99.4 % 2 9 edge-2:equal edge-3:silent edge-4:silent"
        );
        assert_eq!(rows[2].join(" "), "dc1 edge-2 down - - - - - - - 0 -");
    }
}
