//! Suggestions of peers' rows to the switch, one request at a time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use npcc_api::client;
use npcc_api::ends::EndRow;
use npcc_api::peers::Suggested;
use npcc_api::protocol::Reply;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use super::envelope::{self, HostLeases};
use crate::name::Name;

/// Time after which a request that failed is sent again.
const AGAIN: Duration = Duration::from_millis(500);

/// Rows of a request, at most 1,024.
#[derive(Debug)]
pub enum Batch {
    /// Rows that another box saw.
    Peer(Name, Vec<EndRow>),
    /// Queue pairs that hosts' agents reported.
    Hosts(Vec<HostLeases>),
}

/// Maximum number of hosts whose answers are counted one by one: the record `state` has 64 KiB at most.
const HOSTS: usize = 64;
/// Name under which the answers of further hosts are counted, as in `show peers`.
const OTHERS: &str = "host:other-agents";

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

impl SuggestCounts {
    /// Counts an answer about a box.
    fn add(&mut self, peer: &Name, said: &Suggested) {
        add(self.peers.entry(peer.to_string()).or_default(), said);
    }

    /// Counts an answer about a host, as `show peers` names it.
    fn add_host(&mut self, host: &Name, said: &Suggested) {
        let mut listed = format!("host:{host}");
        let hosts = self.peers.keys().filter(|name| name.starts_with("host:"));
        if !self.peers.contains_key(&listed) && hosts.count() >= HOSTS {
            OTHERS.clone_into(&mut listed);
        }
        add(self.peers.entry(listed).or_default(), said);
    }

    /// Counts leases of a host that the feed does not pass on.
    pub fn refuse(&mut self, host: &Name, reason: &str, count: u64) {
        if count > 0 {
            let refused = [(reason.to_owned(), count)].into();
            self.add_host(
                host,
                &Suggested {
                    accepted: 0,
                    refused,
                },
            );
        }
    }

    fn fail(&mut self, why: String) {
        self.failed += 1;
        self.last_failure = Some(why);
    }

    /// Counts the answer to a batch: an outcome for each of its peers.
    fn count(&mut self, batch: &Batch, all: &[Suggested]) {
        match batch {
            Batch::Peer(peer, _) => all.iter().for_each(|said| self.add(peer, said)),
            Batch::Hosts(hosts) => {
                for (host, said) in hosts.iter().zip(all) {
                    self.add_host(&host.host, said);
                }
            }
        }
    }
}

/// Sends batches to the switch. Ends of a peer that fail are sent again until they succeed, as they come once; leases come again by
/// themselves. Ends when the sender is gone.
pub async fn suggest(
    socket: &Path,
    mut from: mpsc::Receiver<Batch>,
    counts: Arc<Mutex<SuggestCounts>>,
) {
    let counts = || counts.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(batch) = from.recv().await {
        let request = match &batch {
            Batch::Peer(peer, rows) => envelope::suggestion(peer, rows),
            Batch::Hosts(hosts) => {
                for of in hosts {
                    counts().refuse(&of.host, "expired", of.expired);
                }
                envelope::leases(hosts)
            }
        };
        loop {
            let why = match client::ask(socket, &request).await {
                Ok(Reply::Suggested(all)) => {
                    counts().count(&batch, &all);
                    break;
                }
                Ok(other) => other.unexpected().to_string(),
                Err(error) => error.to_string(),
            };
            counts().fail(why);
            if matches!(batch, Batch::Hosts(_)) {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn add(of: &mut Suggested, said: &Suggested) {
    of.accepted += said.accepted;
    for (reason, count) in &said.refused {
        *of.refused.entry(reason.clone()).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A feed that had heard 800 hosts wrote a record that no server took, and its box was missing in `fleet`.
    #[test]
    fn answers_of_few_hosts_are_counted_one_by_one() {
        let mut counts = SuggestCounts::default();
        counts.add(&"edge-2".parse().unwrap(), &Suggested::default());
        for round in 0..2 {
            for host in 0..1_000 {
                let host = format!("a-host-with-a-long-name-of-{round}{host:03}");
                counts.refuse(&host.parse().unwrap(), "not-behind-port", 3);
            }
        }
        assert_eq!(counts.peers.len(), 1 + HOSTS + 1);
        let others = &counts.peers[OTHERS];
        assert_eq!(
            others.refused["not-behind-port"],
            3 * (2_000 - HOSTS as u64)
        );
        assert!(serde_json::to_vec(&counts).unwrap().len() < 16 << 10);
    }
}
