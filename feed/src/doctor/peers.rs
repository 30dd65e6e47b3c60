//! Findings about peers: on the bus, and with the same time.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt;
use serde_json::Value;

use super::finding::{Finding, Kind};
use super::probe::Probe;
use crate::name::Name;
use crate::settings::Settings;

/// Time for which states are collected: each box publishes one a second.
const WAIT: Duration = Duration::from_millis(2500);
/// Difference of two clocks above which ends of one box look too old or too new to the other.
const MOST_MS: i64 = 100;

pub(super) async fn examine(settings: &Settings, probe: &Probe, found: &mut Vec<Finding>) {
    if settings.peers.is_empty() {
        return;
    }
    let offsets = offsets(settings, probe).await;
    for peer in &settings.peers {
        match offsets.get(peer) {
            None => {
                let what = "no state record arrived from it within 2.5 s";
                let mend = "run npcc-feed doctor there; its site and box must be named as here";
                found.push(Finding::new(Kind::PeerSilent, peer, what, mend));
            }
            Some(ms) if ms.abs() > MOST_MS => {
                let what = format!(
                    "its clock is {ms} ms from this box's (negative: behind); the limit is {MOST_MS} ms"
                );
                let mend = "synchronise both by NTP or PTP: chronyc tracking";
                found.push(Finding::new(Kind::Clock, peer, what, mend));
            }
            Some(_) => {}
        }
    }
}

/// Returns how many milliseconds each peer's clock is ahead, including the way of its message.
async fn offsets(settings: &Settings, probe: &Probe) -> BTreeMap<Name, i64> {
    let mut offsets = BTreeMap::new();
    let subject = format!("npcc.{}.*.state", settings.site);
    let Ok(mut states) = probe.client.subscribe(subject).await else {
        return offsets;
    };
    let collect = async {
        while let Some(message) = states.next().await {
            let Some(name) = message.subject.split('.').nth(2) else {
                continue;
            };
            let state = serde_json::from_slice::<Value>(&message.payload).unwrap_or_default();
            if let (Ok(name), Some(at)) = (name.parse::<Name>(), state["at"].as_i64()) {
                offsets.insert(name, (at - now_us()) / 1000);
            }
        }
    };
    let _ = tokio::time::timeout(WAIT, collect).await;
    offsets
}

fn now_us() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
