//! Forwarding table that workers read: two pairs of images with their next hops, and the index of the live pair.
//!
//! | who | writes | reads |
//! |---|---|---|
//! | writer | spare pair (relaxed), `live` (release), `epoch` (release) | `passed` (acquire) |
//! | worker w | `passed[w]` (release), at the top of its loop | `epoch`, then `live` (acquire), at the top of its loop |
//!
//! A worker that has published epoch `e` loaded it after the writer stored `e`, hence it also sees the `live` stored before,
//! and holds nothing from an earlier iteration. So once all workers have published `e`, no worker reads the other pair.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crossbeam_utils::CachePadded;

use super::down_ports::DownPorts;
use super::edit::ImageState;
use super::hops::{Choice, NextHops};
use super::image::Image;
use super::nexthop::{Adjacency, AdjacencyId, Path, default_group};
use super::prefix::Family;
use super::seed::FlowSeed;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Images of both families, and the next hops that their values refer to.
#[derive(Debug)]
pub struct Images {
    /// Image of IPv4.
    pub v4: Image,
    /// Image of IPv6.
    pub v6: Image,
    /// Next-hop groups and adjacencies that the images' values refer to.
    pub hops: NextHops,
}

/// The writer's halves of [`Images`].
#[derive(Debug)]
pub struct ImagesState {
    /// Writer's half of the IPv4 image.
    pub v4: ImageState,
    /// Writer's half of the IPv6 image.
    pub v6: ImageState,
}

/// Grace period of a left-right table, without the data: which pair is live, and which readers have seen that.
#[derive(Debug)]
pub struct GracePeriod {
    live: CachePadded<AtomicUsize>,
    epoch: CachePadded<AtomicU64>,
    passed: Box<[CachePadded<AtomicU64>]>,
}

impl GracePeriod {
    /// Returns a grace period for `readers` workers, in which pair 0 is live.
    #[must_use]
    pub fn new(readers: usize) -> GracePeriod {
        GracePeriod {
            live: CachePadded::new(AtomicUsize::new(0)),
            epoch: CachePadded::new(AtomicU64::new(0)),
            passed: (0..readers)
                .map(|_| CachePadded::new(AtomicU64::new(0)))
                .collect(),
        }
    }

    /// Declares that `reader` holds nothing from before, and returns the pair that stays valid for it until its next call.
    #[inline]
    pub fn enter(&self, reader: usize) -> usize {
        if let Some(passed) = self.passed.get(reader) {
            let epoch = self.epoch.load(Ordering::Acquire);
            if passed.load(Ordering::Relaxed) != epoch {
                passed.store(epoch, Ordering::Release);
            }
        }
        self.live.load(Ordering::Acquire)
    }

    /// Returns the pair the writer may change, once [`GracePeriod::quiet`].
    #[must_use]
    pub fn spare(&self) -> usize {
        1 - self.live.load(Ordering::Relaxed).min(1)
    }

    /// Makes the spare pair live. Only the writer may call this.
    pub fn swap(&self) {
        let spare = self.spare();
        self.live.store(spare, Ordering::Release);
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.epoch.store(epoch + 1, Ordering::Release);
    }

    /// Returns the number of swaps so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Returns true if every reader has passed since the last swap.
    #[must_use]
    pub fn quiet(&self) -> bool {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.passed
            .iter()
            .all(|passed| passed.load(Ordering::Acquire) >= epoch)
    }
}

/// Forwarding table shared by the writer and all workers.
#[derive(Debug)]
pub struct Fib {
    pub(super) grace: GracePeriod,
    pub(super) pairs: [Images; 2],
    /// True if a core's cache does not hold the entries of all routes. Written by the writer; a hint.
    pub(super) large: AtomicBool,
    /// Ports to which no flow with a choice is sent.
    pub(super) down: Arc<DownPorts>,
    pub(super) seed: FlowSeed,
}

/// A worker's view of the table.
#[derive(Debug)]
pub struct FibReader {
    pub(super) fib: Arc<Fib>,
    reader: usize,
    live: usize,
    /// Ports that were down at the last refresh, one bit each.
    down: u32,
}

impl FibReader {
    pub(super) fn new(fib: Arc<Fib>, reader: usize) -> FibReader {
        FibReader {
            fib,
            reader,
            live: 0,
            down: 0,
        }
    }

    /// Releases the old table, and takes the newest one and the set of ports that are down. Called at the top of the worker's
    /// loop.
    #[inline]
    pub fn refresh(&mut self) {
        self.live = self.fib.grace.enter(self.reader);
        self.down = self.fib.down.mask();
    }

    /// Returns the live images.
    #[inline]
    #[must_use]
    pub fn images(&self) -> &Images {
        let [left, right] = &self.fib.pairs;
        if self.live == 0 { left } else { right }
    }

    /// Returns the live pair's next-hop groups and adjacencies.
    #[inline]
    fn hops(&self) -> &NextHops {
        &self.images().hops
    }

    /// Returns the path that a flow takes in a group; `hash` is called only if there is a choice. While a path's port is down
    /// its flows take those of the other members, and stay if there is no other.
    #[inline]
    pub fn resolve(&self, group: u32, hash: impl FnOnce() -> u32) -> Path {
        self.hops().resolve(group, self.down, hash)
    }

    /// Returns the choice of a group's flows, as [`FibReader::resolve`] makes it; `None` if it has one member.
    #[inline]
    #[must_use]
    pub fn choice(&self, group: u32) -> Option<Choice<'_>> {
        self.hops().choice(group, self.down)
    }

    /// Returns one path.
    #[inline]
    #[must_use]
    pub fn adjacency(&self, id: AdjacencyId) -> Path {
        self.hops().adjacency(id)
    }

    /// Returns the path of all flows of a group with one member; `None` if the flow decides.
    #[inline]
    #[must_use]
    pub fn only(&self, group: u32) -> Option<Path> {
        self.hops().only(group)
    }

    /// Returns one path, and the MTU that its route allows, or 0.
    #[inline]
    #[must_use]
    pub fn with_mtu(&self, id: AdjacencyId) -> (Path, u16) {
        self.hops().with_mtu(id)
    }

    /// Returns the path of all flows of a group with one member and the MTU that its route allows, or 0; `None` if the flow decides.
    #[inline]
    #[must_use]
    pub fn only_with_mtu(&self, group: u32) -> Option<(Path, u16)> {
        self.hops().only_with_mtu(group)
    }

    /// Returns the path that a flow takes in a group, as [`FibReader::resolve`], and the MTU that its route allows, or 0.
    pub fn resolve_with_mtu(&self, group: u32, hash: impl FnOnce() -> u32) -> (Path, u16) {
        self.hops().resolve_with_mtu(group, self.down, hash)
    }

    /// Returns this switch's contribution to the hash of a flow.
    #[inline]
    #[must_use]
    pub fn seed(&self) -> FlowSeed {
        self.fib.seed
    }

    /// Returns the next-hop group of an address.
    #[inline]
    #[must_use]
    pub fn group(&self, address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(v4) => self.images().v4.lookup_v4(v4.to_bits()),
            IpAddr::V6(v6) => self.group_v6(v6.to_bits()).0,
        }
    }

    /// Returns the next-hop group of an IPv6 address, and true if its first 64 bits alone decide.
    #[inline(never)]
    #[must_use]
    pub fn group_v6(&self, address: u128) -> (u32, bool) {
        match self.images().v6.lookup_v6(address) {
            (0, alone) => (default_group(Family::V6).0.into(), alone),
            found => found,
        }
    }

    /// Returns a number that grows with each change readers can see. Read before [`FibReader::refresh`], it is never ahead of
    /// what that takes.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.fib.grace.changes()
    }

    /// Returns the ports, one bit each, behind which the next hops toward an address are: all of the equal-cost ones,
    /// including those of ports that are down and of neighbours that are not resolved.
    #[must_use]
    pub fn ports_toward(&self, address: IpAddr) -> u32 {
        let paths = self.hops().paths(self.group(address));
        paths.fold(0, |ports, path| {
            let port = path.port().bit();
            ports | if path.is_behind(port) { port } else { 0 }
        })
    }

    /// Returns all paths to an address, repeated as often as they have buckets; without those behind ports that are down, if
    /// any other is left.
    pub fn paths(&self, address: IpAddr) -> impl Iterator<Item = Adjacency> {
        let group = self.group(address);
        let mut all = self.hops().paths(group);
        let leads = |path: Path| path.forwards() && !path.is_behind(self.down);
        let avoided = if self.down != 0 && all.any(leads) {
            self.down
        } else {
            0
        };
        let paths = self.hops().paths(group);
        paths
            .filter(move |path| !path.is_behind(avoided))
            .map(Path::unpacked)
    }
}
