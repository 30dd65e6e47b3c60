//! MAC addresses of neighbours over time: since when each has its address, how often that changed, and which addresses have two owners.
//!
//! Law: time is an argument. A neighbour that the kernel forgot and found again with another MAC address has moved, too.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use npcc_pipeline::units::Mac;

/// Neighbours that the kernel forgot and that are remembered: more are forgotten here, too.
const REMEMBERED: usize = 16_384;
/// Time within which a MAC address that comes back means two owners, and not two moves.
const TOGETHER: Duration = Duration::from_secs(60);

/// Neighbour: index of its link, and its address.
pub(super) type Key = (u32, IpAddr);

/// Change of a neighbour's MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Index of the link.
    pub link: u32,
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// MAC address before.
    pub from: Mac,
    /// MAC address now.
    pub to: Mac,
    /// True if the neighbour had this MAC address a moment ago: the IP address has two owners.
    pub is_back: bool,
}

/// MAC address of a neighbour, and its past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// MAC address that the neighbour has, or had last.
    mac: Mac,
    /// MAC address before that.
    before: Option<Mac>,
    /// Time since which it has the address.
    pub since: Instant,
    /// Number of times that the MAC address changed.
    pub moves: u32,
}

/// MAC addresses of all neighbours over time.
#[derive(Debug, Default)]
pub(super) struct Ages(HashMap<Key, Age>);

impl Ages {
    /// Takes in the MAC address that a neighbour has at `now`, `None` if it has none; returns a change of it.
    pub(super) fn take_in(&mut self, key: Key, mac: Option<Mac>, now: Instant) -> Option<Move> {
        let Some(mac) = mac else {
            if self.0.len() > REMEMBERED {
                self.0.remove(&key);
            }
            return None;
        };
        let age = self.0.entry(key).or_insert(Age {
            mac,
            before: None,
            since: now,
            moves: 0,
        });
        if age.mac == mac {
            return None;
        }
        let is_back =
            age.before == Some(mac) && now.saturating_duration_since(age.since) < TOGETHER;
        let from = age.mac;
        *age = Age {
            mac,
            before: Some(from),
            since: now,
            moves: age.moves.saturating_add(1),
        };
        let (link, address) = key;
        Some(Move {
            link,
            address,
            from,
            to: mac,
            is_back,
        })
    }

    /// Returns the age of a neighbour's MAC address.
    pub(super) fn of(&self, key: Key) -> Option<Age> {
        self.0.get(&key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn key(host: u8) -> Key {
        (7, [10, 0, 1, host].into())
    }

    #[test]
    fn a_mac_address_that_changes_has_moved_and_one_that_comes_back_has_a_rival() {
        let (mut ages, start) = (Ages::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(ages.take_in(key(2), Some(A), at(0)), None, "new");
        assert_eq!(ages.take_in(key(2), Some(A), at(5)), None, "as before");
        let moved = ages.take_in(key(2), Some(B), at(10)).unwrap();
        assert_eq!((moved.from, moved.to, moved.is_back), (A, B, false));
        let age = ages.of(key(2)).unwrap();
        assert_eq!((age.since, age.moves), (at(10), 1));
        let back = ages.take_in(key(2), Some(A), at(69)).unwrap();
        assert_eq!((back.from, back.to, back.is_back), (B, A, true));
        let later = ages.take_in(key(2), Some(B), at(129)).unwrap();
        assert!(!later.is_back, "a failover and back");
        assert_eq!(ages.of(key(2)).unwrap().moves, 3);
        assert_eq!(ages.of(key(3)), None);
    }

    #[test]
    fn a_neighbour_that_was_forgotten_meanwhile_has_moved() {
        let (mut ages, now) = (Ages::default(), Instant::now());
        ages.take_in(key(2), Some(A), now);
        assert_eq!(ages.take_in(key(2), None, now), None);
        assert!(ages.take_in(key(2), Some(B), now).is_some());
    }

    #[test]
    fn the_memory_of_those_that_are_gone_is_bounded() {
        let (mut ages, now) = (Ages::default(), Instant::now());
        for n in 0..3 * REMEMBERED {
            let key = (u32::try_from(n).unwrap(), IpAddr::from([10, 0, 1, 2]));
            ages.take_in(key, Some(A), now);
            ages.take_in(key, None, now);
        }
        assert!(ages.0.len() <= REMEMBERED + 1);
    }
}
