//! The buffer shared by several workers: each refreshes its view of the pool once a burst and of the groups once an iteration,
//! and publishes its own part.

use super::amount::Amount;
use super::group::RemoteShare;
use super::shared::{Buffer, QueueAdmission};
use crate::counters::PortCounters;
use crate::units::{PRIORITIES, PortId};

impl Buffer {
    /// Refreshes everything the other workers publish: their holdings in the pool and in this worker's groups, and their
    /// releases of its frames. Called once an iteration if there are other workers: it reads a cache line of another core for
    /// each group and worker.
    pub fn refresh(&mut self) {
        self.refresh_pool();
        for (release_pending, holding) in self.release_pending.iter_mut().zip(self.remote.holding) {
            *release_pending |= holding;
        }
        self.has_releases = true;
        let mut spread = self.remote.spread;
        while spread != 0 {
            self.refresh_groups_of(spread.trailing_zeros() as usize);
            spread &= spread - 1;
        }
        self.apply_releases();
    }

    /// Refreshes the other workers' holdings in the pool, one cache line for each worker. Called once a burst, so that each
    /// worker admits at most a burst into room that another has taken meanwhile. Releases and group holdings may be an
    /// iteration old, which the headroom absorbs.
    pub fn refresh_pool(&mut self) {
        let (mut used, mut shared, mut headroom) = (Amount::ZERO, Amount::ZERO, Amount::ZERO);
        for usage in self.ledger.remote_usages(self.me) {
            used = used.wrapping_plus(usage.pool.used.get());
            shared = shared.plus(usage.pool.in_shared.get());
            headroom = headroom.plus(usage.pool.in_headroom.get());
        }
        self.remote.used = used;
        self.shared = self.remote.pool_total.minus(shared);
        self.headroom = self.remote.headroom_total.minus(headroom);
    }

    /// Refreshes the holdings of the other receivers of a port in its groups.
    fn refresh_groups_of(&mut self, port: usize) {
        for index in 0..PRIORITIES {
            let Some(group) = self.groups.get_mut(port * PRIORITIES + index) else {
                continue;
            };
            let mut beside = RemoteShare::default();
            for usage in self.ledger.remote_usages(self.me) {
                if let Some(share) = usage.groups.get(port).and_then(|groups| groups.get(index)) {
                    beside.ordinary = beside.ordinary.plus(share.ordinary.get());
                    beside.headroom = beside.headroom.plus(share.headroom.get());
                }
            }
            group.set_remote_share(beside);
        }
    }

    /// Publishes this worker's part in the ledger. Called after every burst if there are other workers.
    pub fn publish_usage(&self) {
        let Some(usage) = self.ledger.usage_of(self.me) else {
            return;
        };
        usage.pool.used.set(self.used);
        usage.pool.in_shared.set(self.in_shared);
        usage.pool.in_headroom.set(self.in_headroom);
        let mut spread = self.remote.spread;
        while spread != 0 {
            let port = spread.trailing_zeros() as usize;
            spread &= spread - 1;
            let groups = self.groups.get(port * PRIORITIES..).unwrap_or_default();
            let shares = usage.groups.get(port).map_or(&[][..], |line| &line[..]);
            for (group, share) in groups.iter().zip(shares) {
                share.ordinary.set(group.ordinary);
                share.headroom.set(group.headroom);
            }
        }
    }

    /// Publishes the gauges of every group that changed, so that releases by other workers show up even if no frame arrives.
    pub fn publish_all<'a>(&mut self, ports: impl Iterator<Item = &'a PortCounters>) {
        for (port, counters) in (0u8..).zip(ports) {
            self.publish(PortId(port), counters);
        }
    }

    /// Returns true if several workers receive from `port`.
    #[inline]
    #[must_use]
    pub const fn is_spread(&self, port: PortId) -> bool {
        self.remote.spread & port.bit() != 0
    }

    /// Signals to the port's owner whether this worker falls behind its receive queue.
    pub fn publish_pressure(&self, port: PortId, high: bool) {
        let usage = self.ledger.usage_of(self.me);
        if let Some(signals) = usage.and_then(|usage| usage.ports.get(port.index())) {
            signals.pressure.set(u64::from(high));
        }
    }

    /// Returns true if another worker falls behind its receive queue of `port`.
    #[must_use]
    pub fn is_pressed_elsewhere(&self, port: PortId) -> bool {
        let mut signals = self
            .ledger
            .remote_usages(self.me)
            .filter_map(|usage| usage.ports.get(port.index()));
        signals.any(|signals| signals.pressure.get() != 0)
    }

    /// Signals to the other receivers of `port` which priorities are dropped because of a storm. Called by its owner.
    pub fn publish_dropping(&self, port: PortId, priorities: u8) {
        let usage = self.ledger.usage_of(self.me);
        if let Some(signals) = usage.and_then(|usage| usage.ports.get(port.index())) {
            signals.dropping.set(u64::from(priorities));
        }
    }

    /// Returns the priorities that the owner of `port` drops because of a storm.
    #[must_use]
    pub fn dropping_elsewhere(&self, port: PortId) -> u8 {
        let signals = self
            .ledger
            .remote_usages(self.me)
            .filter_map(|usage| usage.ports.get(port.index()));
        signals.fold(0, |all, signals| {
            all | u8::try_from(signals.dropping.get()).unwrap_or(u8::MAX)
        })
    }

    /// Returns true if the queue has a share left for frames that another worker received and charged.
    #[inline]
    #[must_use]
    pub fn fits_queue(&self, frames: Amount, queue: QueueAdmission) -> bool {
        let share = self.free().share(self.alpha_256);
        queue.admits(frames, share)
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
