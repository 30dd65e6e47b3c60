//! Reads the bytes that flows put into their queues, and returns the contributors.
//!
//! Law: work is bounded. An evaluation reads a limited number of flows, those that send before all others; a decision weighs only flows of
//! which a reading in the last window found bytes, at most [`RECENT`] of them, however many are in the table.
//!
//! [`RECENT`]: crate::table::RECENT

use std::hint::black_box;

use arrayvec::ArrayVec;
use npcc_pipeline::units::Nanos;

use super::active::falls_asleep;
use super::{FlowTracker, LEAST_READS, PREFETCH_ABOVE, SLOW};
use crate::deadline::Deadline;
use crate::flow_cache::SlotReading;
use crate::status::NpccStatus;
use crate::table::{Flow, IDLE, QueueList};
use npcc_roce::fixed_map::{Hints, TOGETHER};
use npcc_roce::pair::connections::EndpointId;

/// Share of readings (1/8) that the slow sweep gets at least.
const SWEEP: usize = 8;

/// Result of reading a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Bytes in the window.
    Bytes,
    /// No bytes in the window.
    Nothing,
    /// No bytes, and the flow has paused.
    Idle,
    /// No bytes for so long that the flow contributes to nothing.
    Gone,
}

impl FlowTracker {
    /// Adapts the readings of quiet queues after every full pass: if it came late by more than half a tick their number is halved, else it
    /// grows by one, as senders of TCP share a link. So readings that can wait leave the next ticks on time.
    pub(crate) fn adapt_reads(&mut self, late: bool) {
        self.quiet_reads = if late {
            (self.quiet_reads / 2).max(LEAST_READS)
        } else {
            (self.quiet_reads + 1).min(self.reads_per_tick)
        };
    }

    /// Reads flows of a queue: those that send, and some of all of them, round and round. Up to `busy` together; if that is `None`,
    /// as many as keep the window and [`SLOW`] and are left of the tick's work, of which a record and a reading take as
    /// much. Never more than a tick may read, and after the deadline no more than [`LEAST_READS`].
    pub(crate) fn read_queue(
        &mut self,
        queue: usize,
        busy: Option<usize>,
        now: Nanos,
        deadline: &Deadline<'_>,
    ) {
        let Some(mut list) = self.lists.get(queue).copied() else {
            return;
        };
        let (active, slow) = self.shares(&list, busy);
        self.read_active(&mut list, active, now, deadline);
        let read = self.read_sweep(&mut list, slow, now, deadline);
        self.overdue = self.overdue.saturating_sub(read);
        if let Some(place) = self.lists.get_mut(queue) {
            *place = list;
        }
    }

    /// Number of flows to read among those that send, and in the slow sweep.
    fn shares(&self, list: &QueueList, busy: Option<usize>) -> (usize, usize) {
        // Reads per tick, so that each flow is read once in this time.
        let paced = |flows: usize, time: Nanos| {
            let flows = u64::try_from(flows).unwrap_or(u64::MAX);
            let reads = flows.saturating_mul(self.tick.0).div_ceil(time.0.max(1));
            usize::try_from(reads).unwrap_or(usize::MAX).min(list.len())
        };
        let slow = paced(list.len(), SLOW);
        if let Some(most) = busy {
            let most = most.min(self.reads_per_tick);
            let slow = slow.min(most.div_ceil(SWEEP));
            let active = list.active().min(most - slow);
            return (active, slow.max(self.overdue.min(most - active)));
        }
        let left = self.quiet_reads.saturating_sub(self.drained);
        let left = left.max(LEAST_READS).min(self.reads_per_tick);
        let slow = slow.min(left);
        let active = paced(list.active(), self.window).min(left - left.div_ceil(SWEEP).min(slow));
        (active, slow.max(self.overdue).min(left - active))
    }

    /// Reads flows that send, those read longest ago first.
    fn read_active(
        &mut self,
        list: &mut QueueList,
        reads: usize,
        now: Nanos,
        deadline: &Deadline<'_>,
    ) {
        let mut left = reads;
        while left > 0 && (reads - left < LEAST_READS || !deadline.is_over()) {
            let next = std::iter::from_fn(|| self.flows.take_active(list));
            let next: Hints = next.take(left.min(TOGETHER)).collect();
            if next.is_empty() {
                break;
            }
            left -= next.len();
            self.prefetch_read(&Hints::new(), &next);
            for index in &next {
                match self.read_flow(*index, now) {
                    Found::Bytes => {
                        self.flows.contributed(list, *index, now);
                        self.flows.activate(list, *index);
                    }
                    Found::Nothing => {
                        self.flows.activate(list, *index);
                    }
                    Found::Idle => {}
                    Found::Gone => self.flows.unlist(list, *index),
                }
            }
        }
    }

    /// Reads flows of the slow sweep; returns their number.
    fn read_sweep(
        &mut self,
        list: &mut QueueList,
        reads: usize,
        now: Nanos,
        deadline: &Deadline<'_>,
    ) -> usize {
        let reads = reads.min(list.len());
        let mut left = reads;
        let mut before = Hints::new();
        while left > 0 && (left == reads || !deadline.is_over()) {
            let next = std::iter::from_fn(|| self.flows.advance(list));
            let next: Hints = next.take(left.min(TOGETHER)).collect();
            if next.is_empty() {
                break;
            }
            left -= next.len();
            self.prefetch_read(&before, &next);
            for index in &next {
                if self
                    .flows
                    .get(*index)
                    .is_some_and(|flow| flow.window.read_at() == now)
                {
                    continue;
                }
                match self.read_flow(*index, now) {
                    Found::Bytes => {
                        self.flows.contributed(list, *index, now);
                        self.flows.activate(list, *index);
                    }
                    Found::Nothing | Found::Idle => {}
                    Found::Gone => self.flows.unlist(list, *index),
                }
            }
            before = next;
        }
        reads - left
    }

    /// Prefetches the state of flows about to be read.
    fn prefetch_read(&mut self, before: &[u32], flows: &[u32]) {
        if self.connections.len() <= PREFETCH_ABOVE {
            return;
        }
        self.flows.note_ahead(before, flows);
        self.flows.prefetch_found(flows);
        self.flows.prefetch_ahead(flows);
        let known = flows.iter().filter_map(|index| self.flows.get(*index));
        let sum = known.clone().fold(0, |sum, flow| {
            let reader = self.readers.get(flow.reader);
            let reading = reader.and_then(|reader| reader.read(flow.slot));
            sum ^ reading.map_or(0, |reading| reading.bytes)
        });
        black_box(sum);
        let endpoints: ArrayVec<EndpointId, TOGETHER> =
            known.filter_map(|flow| flow.endpoint).collect();
        self.connections.prefetch_found(&endpoints);
    }

    /// Forgets the CNPs to a flow whose senders we paused meanwhile: its rate fell by that, and not by a CNP.
    fn forget_stopped(&mut self, index: u32) {
        let Some(priority) = self.flows.key(index).map(|key| key.priority) else {
            return;
        };
        if let Some(flow) = self.flows.get_mut(index) {
            let at = self.xoffs.of(flow.ingress, priority);
            flow.dcqcn.forget(at);
        }
    }

    /// Reads one flow's bytes, and does what depends on them.
    fn read_flow(&mut self, index: u32, now: Nanos) -> Found {
        if self.xoffs.matter(now) {
            self.forget_stopped(index);
        }
        let Some(flow) = self.flows.get_mut(index) else {
            return Found::Gone;
        };
        self.status.flows_read.add(1);
        let reader = self.readers.get(flow.reader);
        let reading = reader.and_then(|reader| reader.read(flow.slot));
        let counted = reading.as_ref().map_or(0, |reading| {
            let believed = self.settings.believes(flow.evidence);
            count_bytes(flow, reading, (now, self.window), believed, &self.status)
        });
        flow.dcqcn.observe(now, flow.bytes, &self.measure);
        flow.asleep = counted == 0 && falls_asleep(flow, reading.as_ref(), now);
        let (silent, asleep) = (now.since(flow.last_seen) >= IDLE, flow.asleep);
        let is_pairing_old = now.since(flow.pairing_checked) >= SLOW;
        if is_pairing_old {
            self.check_pairing(index, silent, now);
        }
        match (silent, counted) {
            (true, _) => Found::Gone,
            (false, 0) if asleep => Found::Idle,
            (false, 0) => Found::Nothing,
            _ => Found::Bytes,
        }
    }

    /// Looks up the sender of a flow again; not that of a silent one.
    fn check_pairing(&mut self, index: u32, silent: bool, now: Nanos) {
        if !silent {
            self.refresh_pairing(index, now);
        } else if let Some(flow) = self.flows.get_mut(index) {
            flow.pairing_checked = now;
        }
        self.flows.publish(index);
    }

    /// Fills `out` with the flows of a queue that put bytes in over the window, in any order; without those of moved hosts, whose bytes are in
    /// another queue.
    pub(crate) fn contributors(&mut self, queue: usize, now: Nanos, out: &mut Vec<(u64, u32)>) {
        out.clear();
        let Some(list) = self.lists.get(queue) else {
            return;
        };
        // Bytes found before this time have left every flow's window.
        let since = Nanos(now.0.saturating_sub(self.window.0));
        let mut weighed = 0;
        for index in self.flows.recent(list, since).take(out.capacity()) {
            weighed += 1;
            let bytes = self
                .flows
                .get(index)
                .map_or(0, |flow| flow.window.bytes(now, self.window));
            if bytes > 0 && !self.is_moved(index) {
                out.push((bytes, index));
            }
        }
        self.status.flows_weighed.add(weighed);
    }
}

/// Adds the bytes of a flow's slot since the last reading; returns those taken to be of the window, which ends now. `believed` is true if the
/// sender's queue pair is known well enough.
fn count_bytes(
    flow: &mut Flow,
    reading: &SlotReading,
    (now, window): (Nanos, Nanos),
    believed: bool,
    status: &NpccStatus,
) -> u64 {
    let fresh = reading.bytes.saturating_sub(flow.slot_bytes);
    flow.slot_bytes = reading.bytes;
    flow.bytes = flow.bytes.saturating_add(fresh);
    if fresh > 0 {
        flow.last_seen = flow.last_seen.max(reading.last_seen);
    }
    let counted = flow.window.add(now, window, fresh, reading.last_seen);
    status.data_bytes.add(fresh);
    if flow.cold {
        status.cold_bytes.add(fresh);
    } else if !believed {
        status.unpaired_bytes.add(fresh);
    }
    counted
}
