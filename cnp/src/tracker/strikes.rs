//! Strikes that workers owe to senders: taken from the rings, and given back where no CNP can be sent.

use npcc_pipeline::units::Nanos;

use super::{FlowTracker, UNWATCHED};
use crate::flow_cache::CacheReader;
use crate::window::mul_div;

/// Time for which a worker looks for frames that can carry returned strikes. A flow loses them if it sends none meanwhile, or gets another slot.
const RETURNS_FOR: Nanos = Nanos::from_millis(10);

/// Wire bytes that a CNP costs a flow at least: half of a frame of 4 KiB. A flow with 1/64 of 100 Gb/s earns that in 10 us.
const LEAST_EARNED: u64 = 2 << 10;

/// One owed strike.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwedStrike {
    /// Index of the watched queue that was struck.
    pub(crate) queue: usize,
    /// Index of the flow, if it is still known.
    pub(crate) flow: Option<u32>,
}

impl FlowTracker {
    /// Takes the next strike owed by any worker.
    pub(crate) fn pop_strike(&mut self) -> Option<OwedStrike> {
        let mut readers = self.readers.iter_mut().enumerate();
        let (reader, strike) =
            readers.find_map(|(at, reader)| Some((at, CacheReader::pop_owed(reader)?)))?;
        let queue = self.queue_of.get(strike.egress.index());
        let queue = queue.and_then(|of| of.get(strike.priority.index()));
        let slots = self.slot_flows.get(reader);
        let index = slots.and_then(|slots| slots.get(strike.slot.slot.0 as usize));
        let same = |index: &u32| {
            let flow = self.flows.get(*index);
            flow.is_some_and(|flow| (flow.reader, flow.slot) == (reader, strike.slot))
        };
        Some(OwedStrike {
            queue: usize::from(queue.copied().unwrap_or(UNWATCHED)),
            flow: index.copied().filter(same),
        })
    }

    /// Returns a strike that cannot be paid: the flow's next frame that may carry CE is marked.
    pub(crate) fn return_strike(&mut self, index: u32, now: Nanos) {
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        flow.returned = flow.returned.wrapping_add(1);
        let reader = flow.reader;
        self.write_control(index);
        if let Some(reader) = self.readers.get(reader) {
            reader.expect_returned(now + RETURNS_FOR);
        }
    }

    /// Wire bytes that a flow has put into its queue until this moment, including those not read yet.
    pub(crate) fn bytes_now(&self, index: u32) -> u64 {
        self.flows.get(index).map_or(0, |flow| {
            let reader = self.readers.get(flow.reader);
            let reading = reader.and_then(|reader| reader.read(flow.slot));
            let unread = reading.map_or(0, |now| now.bytes.saturating_sub(flow.slot_bytes));
            flow.bytes.saturating_add(unread)
        })
    }

    /// Wire bytes that a flow must put into its queue between two CNPs: `cnp.earned` for a flow that has all of the drain rate, and of a slower one
    /// its share of that, so that each may have one in the same time. Whoever forges another's frames pays [`LEAST_EARNED`] at least.
    pub(crate) fn earned(&self, index: u32) -> u64 {
        let most = self.settings.earned;
        let queue = self.queue_of_flow(index);
        let queue = queue.and_then(|queue| self.settings.queues.get(queue));
        let flow = self.flows.get(index);
        let (Some(queue), Some(flow)) = (queue, flow) else {
            return most;
        };
        let drain = queue.detector.drain.0.max(1);
        let share = mul_div(most, flow.dcqcn.predicted(), drain);
        share.max(LEAST_EARNED).min(most)
    }

    /// Returns true if a flow has put enough into its queue since its last CNP to earn the next. Its slot is read only if the bytes read
    /// so far do not suffice: between two ticks a policy may look again before they are.
    pub(crate) fn has_earned(&self, index: u32) -> bool {
        let (bytes, last) = self
            .flows
            .get(index)
            .map_or((0, 0), |flow| (flow.bytes, flow.bytes_at_cnp));
        let earned = self.earned(index);
        let is_enough = |bytes: u64| bytes.saturating_sub(last) >= earned;
        is_enough(bytes) || is_enough(self.bytes_now(index))
    }

    /// Makes a flow pay for CNPs that it had beside those it earned: it earns the next once it has put [`LEAST_EARNED`] for each into its queue.
    pub(crate) fn owe_for_cnps(&mut self, index: u32, cnps: u64) {
        let paid = self.bytes_now(index) + cnps * LEAST_EARNED;
        if let Some(flow) = self.flows.get_mut(index) {
            flow.bytes_at_cnp = paid;
        }
        self.write_control(index);
    }

    /// Restarts the count of bytes that earn a flow's next CNP, as one has just left.
    pub(crate) fn spend_earned(&mut self, index: u32) {
        self.owe_for_cnps(index, 0);
    }
}
