//! One watched queue: its detector, its policy, and the time of its next evaluation.

use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};

use super::config::QueueConfig;
use super::level::{Held, QueueLevel};
use super::share::Share;
use crate::detector::{Detector, Reading};
use crate::policy::{Policy, QueueContext};

/// Maximum number of flows read at a look between two ticks: each read costs a line of the worker's cache.
pub(super) const READS_PER_LOOK: usize = 64;

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
    pub(super) next_look: Nanos,
    /// Part of its depth that pauses caused.
    held: Held,
    /// Share of its port's rate that the queue gets.
    share: Share,
    /// Previous evaluation: its time, and the depth without pause backlog.
    looked: (Nanos, u64),
    /// Number of the call that evaluated the queue last.
    pub(super) looked_in: u64,
    /// Result of the last evaluation.
    pub(super) context: Option<QueueContext>,
}

impl WatchedQueue {
    pub(super) fn new(config: &QueueConfig) -> WatchedQueue {
        WatchedQueue {
            port: config.port,
            priority: config.priority,
            detector: Detector::new(config.detector),
            policy: config.policy.slot(),
            reading: Reading::default(),
            next_tick: Nanos::ZERO,
            next_look: Nanos::ZERO,
            held: Held::default(),
            share: Share::default(),
            looked: (Nanos::ZERO, 0),
            looked_in: 0,
            context: None,
        }
    }

    /// Evaluates the depth, and the zone if a tick has passed.
    pub(super) fn look(
        &mut self,
        level: &QueueLevel,
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
        let drain = self.share.take(level, self.detector.config().drain, now);
        let depth = self.held.take(level, drain, now);
        let look = self.policy.look().unwrap_or(every.tick).min(every.tick);
        self.next_look = due(look);
        let fresh = now >= self.next_tick;
        if fresh {
            self.next_tick = due(every.tick);
            self.reading = Reading {
                depth: level.depth,
                ..self.detector.observe(depth, now)
            };
        }
        let reads =
            u64::try_from(active.div_ceil(READS_PER_LOOK - READS_PER_LOOK / 8)).unwrap_or(u64::MAX);
        let config = self.detector.config();
        let (at, before) = std::mem::replace(&mut self.looked, (now, depth));
        let arrival = arrival(drain, depth, before, now.since(at));
        let context = QueueContext {
            reading: self.reading,
            fresh,
            depth,
            deep: config.deep,
            drain,
            arrival,
            mtu: config.mtu,
            rates_known: reads.saturating_mul(look.0) <= every.stale.0,
        };
        self.context = Some(context);
        context
    }

    /// Returns true if backlog of a pause waits in the queue.
    pub(super) const fn holds_backlog(&self) -> bool {
        self.held.is_any()
    }

    /// Context between two evaluations, for a policy that asks for it: the depth of now, and the rest as last found.
    pub(super) fn glance(&self, depth: u64) -> Option<QueueContext> {
        self.context.map(|last| QueueContext {
            fresh: false,
            depth: self.held.without(depth),
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
