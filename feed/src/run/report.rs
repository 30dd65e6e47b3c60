//! State of a feed, for the record `state`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bus::BusCounted;
use crate::name::Name;
use crate::switch::SuggestCounts;
use crate::sync::{Machine, PeerCounts, PeerState, RejectReason};

/// State of a feed.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct FeedReport {
    /// Version of the feed.
    pub version: &'static str,
    /// Time since its start, in milliseconds.
    pub uptime_ms: u64,
    /// Ends of the own switch that are published.
    pub ends: usize,
    /// Own rows that were not published: out of range, or more than the limits.
    pub lost: u64,
    /// Reason why no rows arrive from the switch; `null` while they arrive.
    pub switch_down: Option<String>,
    /// Times at which the switch's rows were taken anew.
    pub snapshots: u64,
    /// Peers.
    pub peers: Vec<PeerReport>,
    /// Suggestions to the switch.
    pub suggested: SuggestCounts,
    /// Counters of the bus.
    pub bus: BusCounted,
}

/// State of a peer's copy.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PeerReport {
    /// Name of the peer.
    pub peer: Name,
    /// Ends of the peer that are held.
    pub ends: usize,
    /// Time since the peer's last message, in milliseconds; `null` before the first.
    pub heard_ms: Option<u64>,
    /// True if the copy equals the peer's ends as far as is known.
    pub equal: bool,
    /// Messages and rows from this peer.
    #[serde(flatten)]
    pub counts: PeerCounts,
    /// Messages and rows refused, by reason; reasons without any are left out.
    pub refused: Vec<(RejectReason, u64)>,
}

/// Returns the reports of all peers.
pub(super) fn peers(machine: &Machine, now: Duration) -> Vec<PeerReport> {
    let peers = machine.peers();
    peers
        .map(|(name, state)| report(name, &state, now))
        .collect()
}

fn report(name: &Name, state: &PeerState, now: Duration) -> PeerReport {
    let since = |heard: Duration| millis(now.saturating_sub(heard));
    let refused = RejectReason::ALL.into_iter().zip(state.counts.refused);
    PeerReport {
        peer: name.clone(),
        ends: state.ends,
        heard_ms: state.heard.map(since),
        equal: state.equal,
        counts: state.counts,
        refused: refused.filter(|(_, count)| *count > 0).collect(),
    }
}

/// Returns a time in milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
