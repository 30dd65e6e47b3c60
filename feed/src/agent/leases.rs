//! Leases: connected queue pairs of a host with the addresses that their packets have, and when each is published again.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use npcc_api::ends::Lease;

use super::wire::{CmId, QueuePair};

/// Addresses of the network interfaces of each device.
pub type Addresses = BTreeMap<String, Vec<IpAddr>>;

/// Returns the leases of a device: with the addresses that the connection manager names, else with each address of the device.
pub(super) fn of_device(pairs: &[QueuePair], ids: &[CmId], addresses: &[IpAddr]) -> Vec<Lease> {
    let ids: BTreeMap<u32, &CmId> = ids.iter().map(|id| (id.queue_pair, id)).collect();
    let leases = pairs.iter().flat_map(|pair| {
        let lease = |to, from| Lease {
            to,
            from,
            queue_pair: pair.local,
            remote_queue_pair: pair.remote,
            udp_port: None,
        };
        match ids.get(&pair.local) {
            Some(id) => vec![lease(id.source, Some(id.destination))],
            None => addresses
                .iter()
                .map(|address| lease(*address, None))
                .collect(),
        }
    });
    leases.collect()
}

/// Leases of a host, and the time at which each was last published.
#[derive(Debug)]
pub struct Leases {
    known: BTreeMap<Lease, Duration>,
    /// Time between two publications of a lease.
    renewed: Duration,
}

impl Leases {
    /// Makes an empty set of leases that last `lasts`: each is published again after a third of that.
    #[must_use]
    pub fn new(lasts: Duration) -> Self {
        Self {
            known: BTreeMap::new(),
            renewed: lasts / 3,
        }
    }

    /// Replaces the set with the host's present leases; returns those that are new or due for renewal. Where one is due, all are renewed that
    /// are older than half of the interval, so that a host has few messages a second, however its connections began.
    pub fn update(
        &mut self,
        now: Duration,
        present: impl IntoIterator<Item = Lease>,
    ) -> Vec<Lease> {
        let age = |last: Duration| now.saturating_sub(last);
        let is_any_due = self.known.values().any(|last| age(*last) >= self.renewed);
        let held = self.renewed / if is_any_due { 2 } else { 1 };
        let mut known = BTreeMap::new();
        let mut due = Vec::new();
        for lease in present {
            let last = self.known.get(&lease).copied();
            let last = last.filter(|last| age(*last) < held);
            if last.is_none() && !known.contains_key(&lease) {
                due.push(lease);
            }
            known.insert(lease, last.unwrap_or(now));
        }
        self.known = known;
        due
    }

    /// Forgets the publication times, so that the next update returns every lease: the bus was down.
    pub fn forget(&mut self) {
        self.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_connection_manager_names_the_partner_and_else_every_own_address_counts() {
        let pairs = [(7, 8), (9, 10)].map(|(local, remote)| QueuePair { local, remote });
        let id = CmId {
            queue_pair: 9,
            source: address("10.0.1.2"),
            destination: address("10.0.2.2"),
        };
        let own = [address("10.0.1.2"), address("fd00::2")];
        let leases = of_device(&pairs, &[id], &own);
        let lease = |to: &str, from: Option<&str>, queue_pair, remote_queue_pair| Lease {
            to: address(to),
            from: from.map(address),
            queue_pair,
            remote_queue_pair,
            udp_port: None,
        };
        assert_eq!(
            leases,
            [
                lease("10.0.1.2", None, 7, 8),
                lease("fd00::2", None, 7, 8),
                lease("10.0.1.2", Some("10.0.2.2"), 9, 10)
            ]
        );
    }

    #[test]
    fn a_lease_is_published_when_it_is_new_and_a_third_of_its_time_later() {
        let mut leases = Leases::new(Duration::from_secs(3));
        let lease = Lease {
            to: address("10.0.1.2"),
            from: None,
            queue_pair: 7,
            remote_queue_pair: 8,
            udp_port: None,
        };
        let other = Lease {
            queue_pair: 9,
            ..lease
        };
        let at = Duration::from_millis;
        assert_eq!(leases.update(at(0), [lease, lease]), [lease]);
        assert_eq!(leases.update(at(900), [lease, other]), [other]);
        assert_eq!(leases.update(at(1000), [lease, other]), [lease]);
        assert_eq!(leases.update(at(1100), [other]), []);
        // One that went and came is new.
        assert_eq!(leases.update(at(1200), [lease, other]), [lease]);
        leases.forget();
        assert_eq!(leases.update(at(1300), [lease]), [lease]);
    }

    /// Leases kept the phase in which they appeared, and an agent sent ten messages a second.
    #[test]
    fn leases_that_appeared_one_after_another_are_soon_renewed_together() {
        let mut leases = Leases::new(Duration::from_secs(3));
        let lease = |queue_pair| Lease {
            to: address("10.0.1.2"),
            from: None,
            queue_pair,
            remote_queue_pair: 8,
            udp_port: None,
        };
        let mut sizes = Vec::new();
        let mut last = BTreeMap::new();
        for now in (0..10_000).step_by(100) {
            let present = (10..=(10 + now / 100).min(19)).map(lease);
            let due = leases.update(Duration::from_millis(u64::from(now)), present);
            for lease in &due {
                let before = last.insert(*lease, now);
                assert!(before.is_none_or(|before| now - before <= 1_000));
            }
            if now >= 3_000 && !due.is_empty() {
                sizes.push(due.len());
            }
        }
        assert_eq!(sizes, [10; 7]);
    }
}
