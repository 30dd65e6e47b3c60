//! Moved hosts: senders whose RoCEv2 frames enter a lossy queue of their own instead of the queue that NPCC watches, so that those who do not respond
//! to CNPs have a share by the scheduler and no more.
//!
//! The control core writes the table, and each worker keeps a copy, which it renews once an iteration if the table has changed. A worker never
//! waits: a copy that would have met the writer is made in the next iteration.

use std::net::IpAddr;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::bits::{low32, low64};
use crate::seqlock::SeqCell;
use crate::units::Priority;

/// Maximum number of moved hosts.
pub const MOVED_HOSTS: usize = 64;

/// Words of the table: priority, families, shares, and two of each address.
const WORDS: usize = 3 + 2 * MOVED_HOSTS;
/// `::ffff:0:0/96`, the upper half of an IPv4 address's low word.
const MAPPED: u64 = 0xffff_0000_0000;

/// Address of a host as two words, the high one first; IPv4 is mapped (`::ffff:a.b.c.d`), and the family tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostAddress {
    words: [u64; 2],
    is_v6: bool,
}

impl HostAddress {
    /// Returns the host with these words.
    #[must_use]
    pub const fn of_words(words: [u64; 2], is_v6: bool) -> HostAddress {
        HostAddress { words, is_v6 }
    }

    /// Returns the host with this IPv4 address.
    #[inline]
    #[must_use]
    pub const fn of_v4(address: u32) -> HostAddress {
        HostAddress::of_words([0, MAPPED | address as u64], false)
    }

    /// Returns the host with this IPv6 address.
    #[inline]
    #[must_use]
    pub const fn of_v6(address: u128) -> HostAddress {
        HostAddress::of_words([low64(address >> 64), low64(address)], true)
    }

    /// Returns the words, the high one first.
    #[must_use]
    pub const fn words(self) -> [u64; 2] {
        self.words
    }

    /// Returns true for an IPv6 address.
    #[must_use]
    pub const fn is_v6(self) -> bool {
        self.is_v6
    }

    /// Returns the address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        let [high, low] = self.words;
        if self.is_v6 {
            IpAddr::from((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
        } else {
            IpAddr::from(low32(low).to_be_bytes())
        }
    }

    /// Returns its bit in a [filter](MovedView::filter).
    #[inline]
    const fn bit(self) -> u64 {
        let [high, low] = self.words;
        1 << ((high ^ low).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
    }
}

impl From<IpAddr> for HostAddress {
    fn from(address: IpAddr) -> HostAddress {
        match address {
            IpAddr::V4(v4) => HostAddress::of_v4(v4.to_bits()),
            IpAddr::V6(v6) => HostAddress::of_v6(v6.to_bits()),
        }
    }
}

/// Numbers of hosts that share a port's queues: those that were moved, and all that send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostShare {
    /// Number of moved hosts.
    pub moved: u32,
    /// Number of all hosts, moved ones included.
    pub all: u32,
}

/// Contents of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents {
    priority: Priority,
    share: HostShare,
    hosts: ArrayVec<HostAddress, MOVED_HOSTS>,
}

impl Contents {
    fn of_words(words: &[u64; WORDS]) -> Contents {
        let [state, families, share, addresses @ ..] = words;
        let (pairs, _) = addresses.as_chunks::<2>();
        let [priority, hosts, ..] = state.to_le_bytes();
        let known = pairs.iter().take(hosts.into()).enumerate();
        Contents {
            priority: Priority::new(priority),
            share: HostShare {
                moved: low32(share >> 32),
                all: low32(*share),
            },
            hosts: known
                .map(|(at, words)| HostAddress::of_words(*words, families >> at & 1 != 0))
                .collect(),
        }
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let [state, families, share, addresses @ ..] = &mut words;
        *state = (self.hosts.len() as u64) << 8 | u64::from(self.priority.get());
        *share = u64::from(self.share.moved) << 32 | u64::from(self.share.all);
        let (pairs, _) = addresses.as_chunks_mut::<2>();
        for (at, (place, host)) in pairs.iter_mut().zip(&self.hosts).enumerate() {
            *place = host.words;
            *families |= u64::from(host.is_v6) << at;
        }
        words
    }
}

/// Table of moved hosts. One thread changes it, the control core's; any thread reads it.
#[derive(Debug)]
pub struct MovedHosts {
    cell: SeqCell<WORDS>,
}

impl MovedHosts {
    /// Makes an empty table, whose hosts will have this priority.
    #[must_use]
    pub fn new(priority: Priority) -> MovedHosts {
        let table = MovedHosts {
            cell: SeqCell::new(),
        };
        table.set_priority(priority);
        table
    }

    /// Moves a host. Returns false if the table is full.
    pub fn add(&self, host: HostAddress) -> bool {
        self.change(|table| table.hosts.contains(&host) || table.hosts.try_push(host).is_ok())
    }

    /// Takes a host back. Returns false if it was not moved.
    pub fn remove(&self, host: HostAddress) -> bool {
        self.change(|table| {
            let before = table.hosts.len();
            table.hosts.retain(|known| *known != host);
            table.hosts.len() < before
        })
    }

    /// Takes all hosts back.
    pub fn clear(&self) {
        self.change(|table| table.hosts.clear());
    }

    /// Changes the priority of moved hosts.
    pub fn set_priority(&self, priority: Priority) {
        self.change(|table| table.priority = priority);
    }

    /// Sets the numbers of hosts from which schedulers take the queue's weight: moved ones, and all that send, moved ones included. While no
    /// number is set the queue has the [least part](crate::egress::scheduler::LEAST_PART).
    pub fn set_share(&self, moved: u32, all: u32) {
        self.change(|table| table.share = HostShare { moved, all });
    }

    /// Returns the moved hosts, in the order in which they were moved.
    #[must_use]
    pub fn hosts(&self) -> ArrayVec<HostAddress, MOVED_HOSTS> {
        self.contents().hosts
    }

    /// Returns true if a host was moved.
    #[must_use]
    pub fn holds(&self, host: HostAddress) -> bool {
        self.contents().hosts.contains(&host)
    }

    /// Returns the priority of moved hosts.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.contents().priority
    }

    fn contents(&self) -> Contents {
        Contents::of_words(&self.cell.read().unwrap_or([0; WORDS]))
    }

    /// Applies a change, and writes the table if it differs.
    fn change<T>(&self, change: impl FnOnce(&mut Contents) -> T) -> T {
        let before = self.contents();
        let mut after = before.clone();
        let outcome = change(&mut after);
        if after != before {
            self.cell.write(&after.words());
        }
        outcome
    }
}

/// A worker's copy of the table.
#[derive(Debug)]
pub struct MovedView {
    table: Arc<MovedHosts>,
    version: u64,
    contents: Contents,
    /// Bits of all hosts: most frames of others are told by this word alone.
    filter: u64,
}

impl MovedView {
    /// Makes an empty copy.
    #[must_use]
    pub fn new(table: Arc<MovedHosts>) -> MovedView {
        MovedView {
            table,
            version: 0,
            contents: Contents::of_words(&[0; WORDS]),
            filter: 0,
        }
    }

    /// Renews the copy if the table has changed; returns true if it was renewed.
    #[inline]
    pub fn refresh(&mut self) -> bool {
        self.table.cell.version() != self.version && self.copy()
    }

    #[cold]
    fn copy(&mut self) -> bool {
        let Some((version, words)) = self.table.cell.try_read_versioned() else {
            return false;
        };
        self.contents = Contents::of_words(&words);
        let hosts = self.contents.hosts.iter();
        self.filter = hosts.fold(0, |filter, host| filter | host.bit());
        self.version = version;
        true
    }

    /// Returns true if no host is moved.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.filter == 0
    }

    /// Returns true if a host is moved.
    #[inline]
    #[must_use]
    pub fn holds(&self, host: HostAddress) -> bool {
        self.filter & host.bit() != 0 && self.contents.hosts.contains(&host)
    }

    /// Returns the priority of moved hosts.
    #[inline]
    #[must_use]
    pub const fn priority(&self) -> Priority {
        self.contents.priority
    }

    /// Returns the numbers of hosts from which the queue's weight follows; `None` while no host is moved.
    #[must_use]
    pub fn share(&self) -> Option<HostShare> {
        (!self.is_empty()).then_some(self.contents.share)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
#[path = "moved_hosts_tests.rs"]
mod tests;
