//! One watched queue: its detector, its policy, and the time of its next evaluation.

use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use super::config::WatchedQueueConfig;
use super::drain_rate::DrainRate;
use super::queue_state::{PauseBacklog, QueueState};
use crate::detector::{Detector, Reading};
use crate::policy::{Policy, QueueContext};

/// Maximum number of flows read at an evaluation between two ticks: each read costs a line of the worker's cache.
pub(super) const READS_PER_EVALUATION: usize = 64;

/// Time between ticks, between calls, and after which a flow's rate is stale.
#[derive(Debug, Clone, Copy)]
pub(super) struct Intervals {
    pub(super) tick: Nanos,
    pub(super) period: Nanos,
    pub(super) stale: Nanos,
}

/// State of one watched queue.
#[derive(Debug)]
pub(super) struct WatchedQueue {
    pub(super) port: PortId,
    pub(super) priority: Priority,
    pub(super) detector: Detector,
    pub(super) policy: Box<dyn Policy>,
    pub(super) reading: Reading,
    pub(super) next_tick: Nanos,
    pub(super) next_evaluation: Nanos,
    /// Part of its depth that pauses caused.
    pause_backlog: PauseBacklog,
    /// Share of its port's rate that the queue gets.
    drain_rate: DrainRate,
    /// Previous evaluation: its time, and the depth without pause backlog.
    evaluated: (Nanos, u64),
    /// Number of the call that evaluated the queue last.
    pub(super) evaluated_in: u64,
    /// Result of the last evaluation.
    pub(super) context: Option<QueueContext>,
}

impl WatchedQueue {
    pub(super) fn new(config: &WatchedQueueConfig) -> WatchedQueue {
        WatchedQueue {
            port: config.port,
            priority: config.priority,
            detector: Detector::new(config.detector),
            policy: config.policy.slot(),
            reading: Reading::default(),
            next_tick: Nanos::ZERO,
            next_evaluation: Nanos::ZERO,
            pause_backlog: PauseBacklog::default(),
            drain_rate: DrainRate::default(),
            evaluated: (Nanos::ZERO, 0),
            evaluated_in: 0,
            context: None,
        }
    }

    /// Evaluates the depth, and the zone if a tick has passed.
    pub(super) fn evaluate(
        &mut self,
        state: &QueueState,
        active: usize,
        every: &Intervals,
        now: Nanos,
    ) -> QueueContext {
        // Half of a period early, so that the nearest call counts; at every call if `time` is no longer than a period.
        let due = |time: Nanos| {
            if time > every.period {
                now + Nanos(time.0 - every.period.0 / 2)
            } else {
                now
            }
        };
        let drain = self
            .drain_rate
            .update(state, self.detector.config().drain, now);
        let depth = self.pause_backlog.update(state, drain, now);
        let interval = self.policy.interval().unwrap_or(every.tick).min(every.tick);
        self.next_evaluation = due(interval);
        let fresh = now >= self.next_tick;
        if fresh {
            self.next_tick = due(every.tick);
            self.reading = Reading {
                depth: state.depth,
                ..self.detector.observe(depth, now)
            };
        }
        let reads = u64::try_from(active.div_ceil(READS_PER_EVALUATION - READS_PER_EVALUATION / 8))
            .unwrap_or(u64::MAX);
        let config = self.detector.config();
        let (at, before) = std::mem::replace(&mut self.evaluated, (now, depth));
        let arrival = arrival(drain, depth, before, now.since(at));
        let context = QueueContext {
            reading: self.reading,
            fresh,
            depth,
            deep: config.deep,
            drain,
            arrival,
            mtu: config.mtu,
            rates_known: reads.saturating_mul(interval.0) <= every.stale.0,
        };
        self.context = Some(context);
        context
    }

    /// Returns true if backlog of a pause waits in the queue.
    pub(super) const fn holds_backlog(&self) -> bool {
        self.pause_backlog.is_any()
    }

    /// Context between two evaluations, for a policy that asks for it: the depth of now, and the rest as last found.
    pub(super) fn update_depth(&self, depth: u64) -> Option<QueueContext> {
        self.context.map(|last| QueueContext {
            fresh: false,
            depth: self.pause_backlog.without(depth),
            ..last
        })
    }
}

/// Arrival rate of a queue that went from one depth to another while it drained.
fn arrival(drain: BitRate, depth: u64, before: u64, time: Nanos) -> BitRate {
    let grown = (i128::from(depth) - i128::from(before)) * 8_000_000_000;
    let rate = i128::from(drain.0) + grown / i128::from(time.0.max(1));
    BitRate(u64::try_from(rate.max(0)).unwrap_or(u64::MAX))
}
