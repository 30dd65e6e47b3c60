//! Findings about peers: on the bus, and with the same time.

use std::collections::BTreeMap;

use super::finding::{Finding, Kind};
use super::probe::Probe;
use crate::clock::now_us;
use crate::fleet::table::each_state;
use crate::name::Name;
use crate::settings::Settings;

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
    let site = settings.site.as_str();
    // Without a subscription all peers are silent.
    let _ = each_state(&probe.client, site, |subject, state| {
        let name = subject.split('.').nth(2).and_then(|name| name.parse().ok());
        if let (Some(name), Some(at)) = (name, state["at"].as_i64()) {
            offsets.insert(name, at.saturating_sub(now_us().cast_signed()) / 1000);
        }
    })
    .await;
    offsets
}
