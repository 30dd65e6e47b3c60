//! Leases on their way to the switch: the newest of each, by host.
//!
//! Laws: a lease that ended is not handed over. Hosts take turns, and so do the leases of a host that has more than a request carries. Memory is
//! bounded, and a host that fills it leaves [`SHARE`] leases to each other one.

use std::collections::BTreeMap;
use std::ops::Bound;

use npcc_api::ends::Lease;
use npcc_api::peers::MOST_ROWS;

use crate::agent::LeaseMessage;
use crate::name::Name;
use crate::switch::HostLeases;

/// Maximum number of hosts whose leases wait.
const HOSTS: usize = 4_096;
/// Number of waiting leases from which on a host that has [`SHARE`] gets no more.
const LEASES: usize = 131_072;
/// Number of leases for which each host has room.
const SHARE: usize = 32;
/// Maximum number of hosts of a request.
const HOSTS_AT_ONCE: usize = 128;

/// Leases of all hosts that wait.
#[derive(Debug, Default)]
pub(super) struct LeaseQueue {
    hosts: BTreeMap<Name, Waiting>,
    /// Number of leases of all hosts.
    len: usize,
    /// Host whose leases were handed over last: the ones after it come next.
    last: Option<Name>,
}

/// Leases of one host, with the time at which each ends.
#[derive(Debug, Default)]
struct Waiting {
    leases: BTreeMap<Lease, u64>,
    /// Lease that was handed over last: the ones after it come next.
    last: Option<Lease>,
}

impl LeaseQueue {
    /// Enters the leases of a message, each in place of the same one that waits. Returns the number for which there was no room.
    pub(super) fn push(&mut self, message: LeaseMessage) -> u64 {
        if self.hosts.len() >= HOSTS && !self.hosts.contains_key(&message.host) {
            return message.leases.len() as u64;
        }
        let waiting = self.hosts.entry(message.host).or_default();
        let mut refused = 0;
        for lease in message.leases {
            if let Some(expires) = waiting.leases.get_mut(&lease) {
                *expires = message.expires.max(*expires);
            } else if self.len < LEASES || waiting.leases.len() < SHARE {
                waiting.leases.insert(lease, message.expires);
                self.len += 1;
            } else {
                refused += 1;
            }
        }
        refused
    }

    /// Takes the next leases for a request, and counts those that ended before `now` (microseconds since 1970).
    pub(super) fn take(&mut self, now: u64) -> Vec<HostLeases> {
        let (mut all, mut room) = (Vec::new(), MOST_ROWS);
        while room > 0 && all.len() < HOSTS_AT_ONCE {
            let Some(host) = after(&self.hosts, self.last.as_ref()).cloned() else {
                break;
            };
            let Some(waiting) = self.hosts.get_mut(&host) else {
                break;
            };
            let before = waiting.leases.len();
            let rows = waiting.take(room, now);
            let gone = before - waiting.leases.len();
            if waiting.leases.is_empty() {
                self.hosts.remove(&host);
            }
            self.last = Some(host.clone());
            self.len -= gone;
            room -= rows.len();
            let expired = (gone - rows.len()) as u64;
            all.push(HostLeases {
                host,
                rows,
                expired,
            });
        }
        all
    }
}

impl Waiting {
    /// Takes the next leases that have not ended, `most` at most.
    fn take(&mut self, most: usize, now: u64) -> Vec<(Lease, u64)> {
        let mut rows = Vec::new();
        while rows.len() < most
            && let Some(lease) = after(&self.leases, self.last.as_ref()).copied()
        {
            let expires = self.leases.remove(&lease);
            let valid = expires.filter(|expires| *expires > now);
            rows.extend(valid.map(|expires| (lease, expires)));
            self.last = Some(lease);
        }
        rows
    }
}

/// Returns the key after `last`, or the first one after the end.
fn after<'a, K: Ord, V>(map: &'a BTreeMap<K, V>, last: Option<&K>) -> Option<&'a K> {
    let bound = last.map_or(Bound::Unbounded, Bound::Excluded);
    let mut later = map.range((bound, Bound::Unbounded));
    later
        .next()
        .or_else(|| map.first_key_value())
        .map(|(key, _)| key)
}

#[cfg(test)]
#[path = "lease_queue_tests.rs"]
mod tests;
