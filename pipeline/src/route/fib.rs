//! The table workers read: two pairs of images with their next hops, and the index that says which pair is live.
//!
//! | who | writes | reads |
//! |---|---|---|
//! | writer | spare pair (relaxed), `live` (release), `epoch` (release) | `passed` (acquire) |
//! | worker w | `passed[w]` (release), at the top of its loop | `epoch`, then `live` (acquire), once a burst |
//!
//! A worker that has published epoch `e` loaded it after the writer stored `e`, hence also sees the `live` stored before,
//! and holds nothing from an earlier loop. So when all workers have published `e`, the other pair is nobody's.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crossbeam_utils::CachePadded;

use super::down_ports::DownPorts;
use super::edit::ImageState;
use super::hops::NextHops;
use super::image::Image;
use super::nexthop::{Adjacency, Path, default_group};
use super::prefix::Family;
use super::seed::FlowSeed;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Both families' images, and what their values lead to.
#[derive(Debug)]
pub struct Images {
    /// IPv4.
    pub v4: Image,
    /// IPv6.
    pub v6: Image,
    /// Next-hop groups and adjacencies.
    pub hops: NextHops,
}

/// The writer's halves of [`Images`].
#[derive(Debug)]
pub struct ImagesState {
    /// IPv4.
    pub v4: ImageState,
    /// IPv6.
    pub v6: ImageState,
}

/// Which pair is live, and who has seen it: the grace period of a left-right table, without the data.
#[derive(Debug)]
pub struct GracePeriod {
    live: CachePadded<AtomicUsize>,
    epoch: CachePadded<AtomicU64>,
    passed: Box<[CachePadded<AtomicU64>]>,
}

impl GracePeriod {
    /// For `readers` workers; pair 0 is live.
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

    /// Reader `reader` holds nothing, and asks which pair is live until it asks again.
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

    /// The pair the writer may change, once [`GracePeriod::quiet`].
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

    /// Swaps so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether every reader has passed since the last swap.
    #[must_use]
    pub fn quiet(&self) -> bool {
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.passed
            .iter()
            .all(|passed| passed.load(Ordering::Acquire) >= epoch)
    }
}

/// The shared table.
#[derive(Debug)]
pub struct Fib {
    pub(super) grace: GracePeriod,
    pub(super) pairs: [Images; 2],
    /// More routes than a core's cache holds the entries of. The writer writes; a hint.
    pub(super) large: AtomicBool,
    /// Ports no flow with a choice is sent to.
    pub(super) down: Arc<DownPorts>,
    pub(super) seed: FlowSeed,
}

/// A worker's view of the table.
#[derive(Debug)]
pub struct FibReader {
    pub(super) fib: Arc<Fib>,
    reader: usize,
    live: usize,
    /// The ports that were down when the newest table was taken.
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

    /// Called at the top of the worker's loop: gives up the old table, takes the newest, and which ports are down.
    #[inline]
    pub fn refresh(&mut self) {
        self.live = self.fib.grace.enter(self.reader);
        self.down = self.fib.down.mask();
    }

    /// The live images.
    #[inline]
    #[must_use]
    pub fn images(&self) -> &Images {
        let [left, right] = &self.fib.pairs;
        if self.live == 0 { left } else { right }
    }

    /// The live pair's next-hop groups and adjacencies.
    #[inline]
    fn hops(&self) -> &NextHops {
        &self.images().hops
    }

    /// The path a flow with this hash takes in a group; `hash` is called only when there is a choice. While a path's port is
    /// down its flows take those of the other members, and without another stay.
    #[inline]
    pub fn resolve(&self, group: u32, hash: impl FnOnce() -> u32) -> Path {
        self.hops().resolve(group, self.down, hash)
    }

    /// The path of all flows of a group with one member; `None` where the flow decides.
    #[inline]
    #[must_use]
    pub fn only(&self, group: u32) -> Option<Path> {
        self.hops().only(group)
    }

    /// What this switch adds to the hash of a flow.
    #[inline]
    #[must_use]
    pub fn seed(&self) -> FlowSeed {
        self.fib.seed
    }

    /// The next-hop group of an address.
    #[inline]
    #[must_use]
    pub fn group(&self, address: IpAddr) -> u32 {
        match address {
            IpAddr::V4(v4) => self.images().v4.lookup_v4(v4.to_bits()),
            IpAddr::V6(v6) => match self.images().v6.lookup_v6(v6.to_bits()) {
                0 => u32::from(default_group(Family::V6).0),
                group => group,
            },
        }
    }

    /// A number that grows with each change readers can see. Asked before [`FibReader::refresh`] it is never ahead of what that takes.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.fib.grace.changes()
    }

    /// The ports, a bit each, behind which the next hops toward an address are: all of the equal ones, those of ports that are
    /// down and of neighbours that are not resolved too.
    #[must_use]
    pub fn ports_toward(&self, address: IpAddr) -> u32 {
        let paths = self.hops().paths(self.group(address));
        paths.fold(0, |ports, path| {
            let port = path.port().bit();
            ports | if path.is_behind(port) { port } else { 0 }
        })
    }

    /// All paths to an address, repeated as often as they have buckets; without those behind ports that are down, if any is left.
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
