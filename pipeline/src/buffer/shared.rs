//! The shared pool: admission, release, and the dynamic threshold that follows the free space.

use std::sync::Arc;

use super::amount::Amount;
use super::config::BufferConfig;
use super::group::Group;
use super::group_id::GroupId;
use super::ledger::{RemoteUsage, UsageLedger};
use super::originated::OriginatedFrames;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::units::{MAX_PORTS, PRIORITIES, PortId, Priority, WorkerId};

/// The egress queue that a frame would join, as admission sees it.
#[derive(Debug, Clone, Copy)]
pub struct QueueAdmission {
    /// Wire bytes and frames that wait in the queue.
    pub queued: Amount,
    /// True if its frames must not be dropped for exceeding the queue's share.
    pub lossless: bool,
    /// Amount the queue may hold regardless of the others: nonzero for a queue of control frames.
    pub reserve: Amount,
}

impl QueueAdmission {
    /// Returns true if `frames` may join the queue when its share of the free pool is `share`.
    #[inline]
    pub(super) fn admits(&self, frames: Amount, share: Amount) -> bool {
        let after = self.queued.plus(frames);
        self.lossless || after.within(share) || after.within(self.reserve)
    }
}

/// The shared buffer as one worker sees it: its own charges exactly, those of the other workers as of the last refresh.
#[derive(Debug)]
pub struct Buffer {
    pub(super) alpha_256: u32,
    /// Pool without reserves and headroom, less the amount other workers hold of it.
    pub(super) shared: Amount,
    /// Headroom of all groups together, less what other workers hold of it.
    pub(super) headroom: Amount,
    /// Amount this worker charged less what it released, modulo 2^64.
    pub(super) used: Amount,
    /// Shared-pool amount in use, or released since the last [`Buffer::apply_releases`].
    pub(super) in_shared: Amount,
    /// Headroom in use, or released since the last [`Buffer::apply_releases`].
    pub(super) in_headroom: Amount,
    /// Account of the frames the switch makes itself, and of those of Linux that are not control frames.
    pub(super) originated: OriginatedFrames,
    /// Account of Linux's control frames: BFD, and protocols that routes and neighbours depend on.
    pub(super) linux: OriginatedFrames,
    pub(super) groups: Box<[Group]>,
    pub(super) ledger: Arc<UsageLedger>,
    pub(super) me: WorkerId,
    /// True if any bit of `release_pending` is set.
    pub(super) has_releases: bool,
    /// Priorities, by port, whose releases are not yet settled. An inline array, as is `gauge_dirty`: boxes this small would share
    /// a cache line with those of the next worker.
    pub(super) release_pending: [u8; MAX_PORTS],
    /// Priorities, by port, of the groups that changed since they were last published.
    pub(super) gauge_dirty: [u8; MAX_PORTS],
    /// Number of ports, at most [`MAX_PORTS`].
    pub(super) ports: usize,
    /// This worker's view of the other workers' holdings.
    pub(super) remote: RemoteUsage,
}

impl Buffer {
    /// Returns an empty buffer for a switch with one worker.
    #[must_use]
    pub fn new(config: &BufferConfig) -> Buffer {
        let ports = config.groups.len();
        Buffer::of_worker(
            config,
            Arc::new(UsageLedger::new(1, ports)),
            WorkerId::FIRST,
            &[],
        )
    }

    /// Returns an empty buffer for one of the workers that share `ledger`. `receivers` is, by port, the number of workers that
    /// receive from the port; 1 where it has no entry.
    #[must_use]
    pub fn of_worker(
        config: &BufferConfig,
        ledger: Arc<UsageLedger>,
        me: WorkerId,
        receivers: &[u8],
    ) -> Buffer {
        let receivers = |port: usize| receivers.get(port).copied().unwrap_or(1).max(1);
        let groups = config.groups.iter().enumerate();
        let groups: Box<[Group]> = groups
            .flat_map(|(port, groups)| Priority::all().zip(groups).map(move |of| (port, of)))
            .map(|(port, of)| Group::of(config, of, receivers(port)))
            .collect();
        let workers = u8::try_from(ledger.usages().count()).unwrap_or(u8::MAX);
        let ports = config.groups.len();
        let spread = (0..ports.min(MAX_PORTS)).filter(|port| receivers(*port) > 1);
        Buffer {
            alpha_256: config.pool.alpha_256,
            shared: config.shared(),
            headroom: config.headroom(),
            used: Amount::ZERO,
            in_shared: Amount::ZERO,
            in_headroom: Amount::ZERO,
            originated: OriginatedFrames::of(config.control.own, workers),
            linux: OriginatedFrames::of(config.control.linux, workers),
            groups,
            ledger,
            me,
            has_releases: false,
            release_pending: [0; MAX_PORTS],
            gauge_dirty: [0; MAX_PORTS],
            ports: ports.min(MAX_PORTS),
            remote: RemoteUsage {
                pool_total: config.shared(),
                headroom_total: config.headroom(),
                used: Amount::ZERO,
                holding: [0; MAX_PORTS],
                spread: spread.fold(0, |set, port| set | 1 << port),
            },
        }
    }

    /// Repartitions the pool to the reserves and headroom of `config`, which has the same ports. Charges are kept.
    pub fn repartition(&mut self, config: &BufferConfig) {
        for (port, groups) in config.groups.iter().enumerate() {
            for (priority, of) in Priority::all().zip(groups) {
                let Some(group) = self.groups.get_mut(port * PRIORITIES + priority.index()) else {
                    continue;
                };
                let before = group.in_shared();
                let sizes = Group::of(config, (priority, of), group.receivers);
                group.divide(&sizes);
                self.in_shared = self.in_shared.plus(group.in_shared()).minus(before);
            }
        }
        self.shared = config
            .shared()
            .minus(self.remote.pool_total.minus(self.shared));
        self.headroom = config
            .headroom()
            .minus(self.remote.headroom_total.minus(self.headroom));
        self.remote.pool_total = config.shared();
        self.remote.headroom_total = config.headroom();
    }

    /// Returns the amount all workers hold; the other workers' part is as of the last refresh.
    #[must_use]
    pub fn used(&self) -> Amount {
        self.used.wrapping_plus(self.remote.used).or_nothing()
    }

    /// Returns the amount this worker charged less what it released, modulo 2^64: the sum over all workers is the amount held.
    #[must_use]
    pub const fn used_here(&self) -> Amount {
        self.used
    }

    /// Returns the headroom in use; the other workers' part is as of the last refresh.
    #[must_use]
    pub const fn in_headroom(&self) -> Amount {
        self.in_headroom
            .plus(self.remote.headroom_total.minus(self.headroom))
    }

    /// Returns the headroom that this worker's frames use.
    #[must_use]
    pub const fn in_headroom_here(&self) -> Amount {
        self.in_headroom
    }

    /// Returns the free part of the shared pool.
    #[inline]
    #[must_use]
    pub const fn free(&self) -> Amount {
        self.shared.minus(self.in_shared)
    }

    /// Returns the group with this id; `None` if there is none.
    #[must_use]
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.get(id.index())
    }

    /// Charges a frame of `wire_len` bytes to group `id`, bound for `queue`.
    ///
    /// # Errors
    /// Returns the drop reason if there is no room; nothing has changed then.
    #[inline]
    pub fn charge(
        &mut self,
        id: GroupId,
        wire_len: u16,
        queue: QueueAdmission,
    ) -> Result<(), DropReason> {
        let one = Amount::frame(wire_len);
        let free = self.free();
        let Some(group) = self.groups.get_mut(id.index()) else {
            return Err(DropReason::BufferFull);
        };
        if group.lossless {
            let after = group.ordinary.plus(one);
            let fits = after.within(group.threshold(free.share(self.alpha_256)))
                && (one.within(free) || after.within(group.reserve_here));
            if fits && group.headroom.is_zero() {
                let before = group.in_shared();
                group.ordinary = after;
                self.in_shared = self.in_shared.plus(group.in_shared()).minus(before);
            } else if group.headroom.plus(one).within(group.headroom_limit)
                && self.in_headroom.plus(one).within(self.headroom)
            {
                group.headroom = group.headroom.plus(one);
                self.in_headroom = self.in_headroom.plus(one);
            } else {
                return Err(DropReason::HeadroomFull);
            }
        } else {
            let after = group.ordinary.plus(one);
            let own = after.within(group.reserve_here);
            if !own && !one.within(free) {
                return Err(DropReason::BufferFull);
            }
            let share = free.share(self.alpha_256);
            // The group's threshold holds for a lossless queue too: its sender is not paused, and must not take the others'
            // share.
            if !queue.admits(one, share) || !own && !after.within(group.threshold(share)) {
                return Err(DropReason::QueueFull);
            }
            let before = group.in_shared();
            group.ordinary = after;
            self.in_shared = self.in_shared.plus(group.in_shared()).minus(before);
        }
        self.used = self.used.wrapping_plus(one);
        if let Some(gauge_dirty) = self.gauge_dirty.get_mut(id.port()) {
            *gauge_dirty |= id.bit();
        }
        Ok(())
    }

    /// Charges the frames of `run` to group `id` at once, all bound for `queue`. True says that [`Buffer::charge`] would have
    /// let every one of them into the ordinary part. On false nothing has changed, and the caller must charge them one by
    /// one: some of them may still fit.
    #[inline]
    pub fn charge_run(&mut self, id: GroupId, run: Amount, queue: QueueAdmission) -> bool {
        let free = self.free();
        if !run.within(free) {
            return false;
        }
        // The share shrinks with every frame: a limit that holds for the last one held for those before it.
        let share = free.minus(run).share(self.alpha_256);
        let Some(group) = self.groups.get_mut(id.index()) else {
            return false;
        };
        let after = group.ordinary.plus(run);
        if group.lossless {
            if !(group.headroom.is_zero() && after.within(group.threshold(share))) {
                return false;
            }
            let before = group.in_shared();
            group.ordinary = after;
            self.in_shared = self.in_shared.plus(group.in_shared()).minus(before);
        } else {
            if !queue.admits(run, share) || !after.within(group.threshold(share)) {
                return false;
            }
            let before = group.in_shared();
            group.ordinary = after;
            self.in_shared = self.in_shared.plus(group.in_shared()).minus(before);
        }
        self.used = self.used.wrapping_plus(run);
        if let Some(gauge_dirty) = self.gauge_dirty.get_mut(id.port()) {
            *gauge_dirty |= id.bit();
        }
        true
    }

    /// Charges a frame that arrived on no port: a control frame of Linux ([`GroupId::LINUX`]), or any other ([`GroupId::NONE`]).
    ///
    /// # Errors
    /// Returns [`DropReason::BufferFull`] if both their reserve and the shared pool are full.
    #[inline]
    pub fn charge_originated(&mut self, id: GroupId, wire_len: u16) -> Result<(), DropReason> {
        let one = Amount::frame(wire_len);
        let own = self.originated_of(id);
        let after = own.held.plus(one);
        if !after.within(own.reserve) && !one.within(self.free()) {
            return Err(DropReason::BufferFull);
        }
        self.used = self.used.wrapping_plus(one);
        self.set_originated(id, after);
        Ok(())
    }

    pub(super) const fn originated_of(&self, id: GroupId) -> OriginatedFrames {
        if id.is_linux() {
            self.linux
        } else {
            self.originated
        }
    }

    /// Sets the amount held by Linux's control frames, or by the other frames that arrived on no port, and corrects the use of the shared pool.
    #[inline]
    pub(super) const fn set_originated(&mut self, id: GroupId, held: Amount) {
        let before = self.originated_of(id);
        let after = OriginatedFrames { held, ..before };
        self.in_shared = self.in_shared.plus(after.shared()).minus(before.shared());
        if id.is_linux() {
            self.linux = after;
        } else {
            self.originated = after;
        }
    }

    /// Returns the priorities of `port`, among `classes`, whose senders must pause; `paused` are those already paused.
    #[inline]
    #[must_use]
    pub fn wants_pause(&self, port: PortId, classes: u8, paused: u8) -> u8 {
        let share = self.free().share(self.alpha_256);
        let mut wanted = 0;
        for priority in Priority::all_of(classes) {
            let (index, bit) = (priority.index(), priority.bit());
            let group = self.groups.get(port.index() * PRIORITIES + index);
            if group
                .is_some_and(|group| group.lossless && group.wants_pause(paused & bit != 0, share))
            {
                wanted |= bit;
            }
        }
        wanted
    }

    /// Publishes the gauges of the groups of `port` that changed. Called after every burst received from it, and once an
    /// iteration. The watermarks miss nothing: between the charges of a burst and this call no release is applied
    /// ([`Buffer::apply_releases`]), so the groups are as full as they were.
    #[inline]
    pub fn publish(&mut self, port: PortId, counters: &PortCounters) {
        let gauge_dirty = self
            .gauge_dirty
            .get_mut(port.index())
            .map_or(0, std::mem::take);
        if gauge_dirty == 0 {
            return;
        }
        for index in Priority::all_of(gauge_dirty).map(Priority::index) {
            if let (Some(group), Some(gauges)) = (
                self.groups.get(port.index() * PRIORITIES + index),
                counters.groups.get(index),
            ) {
                let (held, headroom) = (group.held(), group.headroom);
                if let Some(holding) = self.remote.holding.get_mut(port.index()) {
                    *holding = *holding & !(1 << index) | u8::from(!held.is_zero()) << index;
                }
                gauges.held.set(held.bytes);
                gauges.headroom.set(headroom.bytes);
                gauges.held_peak.raise(held.bytes);
                gauges.headroom_peak.raise(headroom.bytes);
            }
        }
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
