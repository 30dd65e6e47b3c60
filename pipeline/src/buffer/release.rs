//! Releases of charges: noted as frames leave, and applied to the groups before the next burst is admitted.

use super::amount::Amount;
use super::in_flight::Charge;
use super::shared::Buffer;
use crate::units::{MAX_PORTS, PRIORITIES, Priority};

impl Buffer {
    /// Releases the charge of frames of one group. It can be used again after the next [`Buffer::apply_releases`].
    #[inline]
    pub fn release(&mut self, run: Charge) {
        self.used = self.used.wrapping_minus(run.amount);
        let released = self
            .ledger
            .usage_of(self.me)
            .and_then(|usage| usage.released.get(run.group.line()))
            .and_then(|released| released.get(run.group.priority()));
        let Some(released) = released else {
            // The switch's own frames, or Linux's, belong to no group.
            let held = self.originated_of(run.group).held;
            self.set_originated(run.group, held.minus(run.amount));
            return;
        };
        released.add(run.amount.frames, run.amount.bytes);
        // The owner of another worker's group notices when it refreshes.
        if run.group.worker() == self.me
            && let Some(pending) = self.release_pending.get_mut(run.group.port())
        {
            *pending |= run.group.bit();
            self.has_releases = true;
        }
    }

    /// Applies the releases since the last call: out of headroom first, then from the shared part, the reserve last.
    #[inline]
    pub fn apply_releases(&mut self) {
        if !std::mem::take(&mut self.has_releases) {
            return;
        }
        for port in 0..self.ports {
            let pending = self.release_pending.get_mut(port).map_or(0, std::mem::take);
            if pending == 0 {
                continue;
            }
            if let Some(gauge_dirty) = self.gauge_dirty.get_mut(port) {
                *gauge_dirty |= pending;
            }
            for priority in Priority::all_of(pending) {
                self.apply_releases_of(port * PRIORITIES + priority.index());
            }
        }
    }

    fn apply_releases_of(&mut self, index: usize) {
        let Some(group) = self.groups.get_mut(index) else {
            return;
        };
        let (line, priority) = (
            self.me.index() * MAX_PORTS + index / PRIORITIES,
            index % PRIORITIES,
        );
        let mut total = Amount::ZERO;
        for usage in self.ledger.usages() {
            if let Some(released) = usage.released.get(line).and_then(|line| line.get(priority)) {
                total.bytes += released.bytes.get();
                total.frames += released.packets.get();
            }
        }
        let released = total.minus(group.released);
        let from_headroom = released.min(group.headroom);
        let before = group.in_shared();
        group.released = total;
        group.headroom = group.headroom.minus(from_headroom);
        group.ordinary = group.ordinary.minus(released.minus(from_headroom));
        self.in_headroom = self.in_headroom.minus(from_headroom);
        self.in_shared = self.in_shared.plus(group.in_shared()).minus(before);
    }
}
