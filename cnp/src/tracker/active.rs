//! Flows that send: the evaluations of a busy queue read as many as its limit of reads allows, those of a quiet one each in a window; a slow sweep
//! reads all others.
//!
//! A flow that is new or seen again is among them, and one whose worker reports that it sends again after a pause (`flow_cache/woken.rs`). A flow
//! that was silent for [`ASLEEP`] when read is not; nor is it read again before it wakes, except in the slow sweep. Where reports of a worker were
//! lost, the slow sweep is as fast as the tick allows, once through.

use std::hint::black_box;

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use crate::deadline::Deadline;
use crate::flow_cache::{ASLEEP, SlotReading};
use crate::table::{Flow, QueueList};
use npcc_roce::fixed_map::{Hints, NONE, TOGETHER};

/// Maximum number of flows woken in a call, from each worker.
const WAKES: usize = 1_024;
/// Time after its last CNP for which a flow is read on though it is silent: its response is measured.
const WATCHED: Nanos = Nanos::from_micros(500);

/// Returns true if a flow, just read, is left alone until its worker reports that it sends again.
pub(super) fn falls_asleep(flow: &Flow, reading: Option<&SlotReading>, now: Nanos) -> bool {
    let silent = reading.is_none_or(|reading| now.since(reading.last_seen) >= ASLEEP);
    let watched = flow.cnps > 0 && now.since(flow.last_cnp) < WATCHED;
    silent && !watched
}

impl FlowTracker {
    /// Number of flows of a queue that send.
    pub(crate) fn active(&self, queue: usize) -> usize {
        self.lists.get(queue).map_or(0, QueueList::active)
    }

    /// Records the flow that has a slot.
    pub(super) fn note_slot(&mut self, reader: usize, slot: usize, flow: u32) {
        let flows = self.slot_flows.get_mut(reader);
        if let Some(place) = flows.and_then(|flows| flows.get_mut(slot)) {
            *place = flow;
        }
    }

    /// Processes a worker's reports of flows that send again.
    pub(super) fn wake_flows(&mut self, reader: usize, now: Nanos, deadline: &Deadline<'_>) {
        let mut left = WAKES;
        let mut lost = 0;
        while left > 0 {
            let mut slots = Hints::new();
            if let Some(reader) = self.readers.get_mut(reader) {
                let next = std::iter::from_fn(|| reader.pop_woken(&mut lost));
                slots.extend(next.take(left.min(TOGETHER)));
            }
            if slots.is_empty() {
                break;
            }
            left -= slots.len();
            let known = self.slot_flows.get(reader);
            let flow = |slot: &u32| known.and_then(|flows| flows.get(*slot as usize).copied());
            let flows: Hints = slots
                .iter()
                .map(|slot| flow(slot).unwrap_or(NONE))
                .collect();
            let looked = flows.iter().filter_map(|flow| self.flows.get(*flow));
            black_box(looked.fold(0, |sum, flow| sum ^ flow.last_seen.0 ^ flow.cnps));
            for (slot, flow) in slots.iter().zip(&flows) {
                self.wake(reader, *slot, *flow, now);
            }
            if deadline.is_over() {
                break;
            }
        }
        if lost > 0 {
            self.status.wakes_lost.add(lost);
            self.overdue = self.lists.iter().map(QueueList::len).sum();
        }
    }

    /// Wakes the flow of this slot, if it is still this one.
    fn wake(&mut self, reader: usize, slot: u32, index: u32, now: Nanos) {
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        if (flow.reader, flow.slot.slot.0) != (reader, slot) {
            return;
        }
        if flow.asleep {
            flow.asleep = false;
            // Bytes counted from now on came after the pause.
            flow.window.resume(now);
        }
        let queue = self.flows.key(index).and_then(|key| self.queue_index(&key));
        let Some(list) = queue.and_then(|queue| self.lists.get_mut(queue)) else {
            return;
        };
        self.flows.list(list, index);
        if self.flows.activate(list, index) {
            self.status.flows_woken.add(1);
        }
    }
}
