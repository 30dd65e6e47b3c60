//! Suggestions of peers' rows to the switch, one request at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use super::envelope::{self, Suggested};
use super::request::ask;
use crate::agent::LeaseMessage;
use crate::name::Name;
use crate::row::Row;

/// Time after which a request that failed is sent again.
const AGAIN: Duration = Duration::from_millis(500);

/// Rows of one peer or host, at most 1,024.
#[derive(Debug)]
pub enum Batch {
    /// Rows that another box saw.
    Peer(Name, Vec<Row>),
    /// Queue pairs that a host's agent reported.
    Host(LeaseMessage),
}

impl Batch {
    /// Returns the name under which its answers are counted, as `show peers` has it.
    fn listed(&self) -> String {
        match self {
            Batch::Peer(name, _) => name.to_string(),
            Batch::Host(message) => format!("host:{}", message.host),
        }
    }
}

/// Counters of suggestions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SuggestCounts {
    /// Answers of the switch, by peer.
    pub peers: BTreeMap<String, Suggested>,
    /// Requests that failed.
    pub failed: u64,
    /// Last failure.
    pub last_failure: Option<String>,
}

/// Sends batches to the switch. Ends of a peer that fail are sent again until they succeed, as they come once; leases come again by
/// themselves. Ends when the sender is gone.
pub async fn suggest(
    socket: &Path,
    mut from: mpsc::Receiver<Batch>,
    counts: Arc<Mutex<SuggestCounts>>,
) {
    while let Some(batch) = from.recv().await {
        let request = match &batch {
            Batch::Peer(peer, rows) => envelope::suggestion(peer, rows),
            Batch::Host(message) => envelope::leases(message),
        };
        loop {
            let answer = ask(socket, &request)
                .await
                .map_err(|error| error.to_string());
            match answer.and_then(|line| envelope::suggested(&line)) {
                Ok(said) => {
                    add(&counts, batch.listed(), &said);
                    break;
                }
                Err(why) => {
                    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                    counts.failed += 1;
                    counts.last_failure = Some(why);
                }
            }
            if matches!(batch, Batch::Host(_)) {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn add(counts: &Mutex<SuggestCounts>, peer: String, said: &Suggested) {
    let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let of = counts.peers.entry(peer).or_default();
    of.accepted += said.accepted;
    for (reason, count) in &said.refused {
        *of.refused.entry(reason.clone()).or_default() += count;
    }
}
