//! One egress queue of a port: its frames, its depth and the thresholds watched, its shapers.

use super::config::EgressQueueConfig;
use super::fifo::Fifo;
use super::shaper::Shaper;
use crate::buffer::Amount;
use crate::counters::QueueCounters;
use crate::units::{BitRate, Nanos};

#[derive(Debug)]
pub(super) struct EgressQueue {
    pub(super) fifo: Fifo,
    /// Amount that waits, including frames that were admitted and are not yet in the fifo.
    pub(super) amount: Amount,
    /// Highest depth since last published.
    high: u64,
    /// Times at which the depth last rose to each of the watched depths.
    crossed: [Nanos; 2],
    /// Depth, and these times, as last published.
    reported: (u64, [Nanos; 2]),
    /// Time since which the queue is not empty.
    pub(super) nonempty_since: Nanos,
    pub(super) shaper: Shaper,
    /// Token bucket of the minimum rate: positive credit is what the queue was due by it and has not sent.
    pub(super) min_rate: Shaper,
    pub(super) config: EgressQueueConfig,
}

/// Time a polling worker is often away: the least that a shaper saves up.
pub const SHAPER_BURST: Nanos = Nanos::from_micros(20);

/// Returns the shaper of a rate: it saves up what a polling worker misses while away, and at least two frames.
pub(super) fn shaper(rate: Option<BitRate>, max_frame: u16, max_absence: Nanos) -> Shaper {
    rate.map_or_else(Shaper::unlimited, |rate| {
        let max_absence = max_absence.max(SHAPER_BURST);
        let burst = rate.bytes_in(max_absence).max(2 * u64::from(max_frame));
        Shaper::new(rate, u32::try_from(burst).unwrap_or(u32::MAX))
    })
}

impl EgressQueue {
    /// Returns an empty queue; the two lengths are those of [`EgressConfig`](super::config::EgressConfig).
    pub(super) fn new(
        config: EgressQueueConfig,
        max_frame: u16,
        max_absence: Nanos,
    ) -> EgressQueue {
        EgressQueue {
            fifo: Fifo::default(),
            amount: Amount::ZERO,
            high: 0,
            crossed: [Nanos::ZERO; 2],
            reported: (0, [Nanos::ZERO; 2]),
            nonempty_since: Nanos::ZERO,
            shaper: shaper(config.max_rate, max_frame, max_absence),
            min_rate: shaper(config.min_rate, max_frame, max_absence),
            config,
        }
    }

    /// Changes the configuration, except `lossless`.
    pub(super) fn reconfigure(
        &mut self,
        config: &EgressQueueConfig,
        max_frame: u16,
        max_absence: Nanos,
    ) {
        self.shaper = shaper(config.max_rate, max_frame, max_absence);
        self.min_rate = shaper(config.min_rate, max_frame, max_absence);
        self.config = EgressQueueConfig {
            lossless: self.config.lossless,
            ..config.clone()
        };
    }

    /// Adds frames to the depth; returns true if it rose to the second watched depth, `hard`.
    #[inline]
    pub(super) fn add(&mut self, frames: Amount, now: Nanos) -> bool {
        if self.amount.frames == 0 {
            self.nonempty_since = now;
        }
        let before = self.amount.bytes;
        self.amount = self.amount.plus(frames);
        let rose = self
            .config
            .watched_depths
            .map(|watch| before < watch && self.amount.bytes >= watch);
        for (crossed, rose) in self.crossed.iter_mut().zip(rose) {
            if rose {
                *crossed = now;
            }
        }
        self.high = self.high.max(self.amount.bytes);
        let [_, hard] = rose;
        hard
    }

    /// Publishes depth and watermark.
    pub(super) fn publish(&mut self, gauges: &QueueCounters) {
        gauges.peak.raise(self.high);
        let level = (self.amount.bytes, self.crossed);
        if level != self.reported {
            self.reported = level;
            gauges.level.depth.set(self.amount.bytes);
            for (gauge, crossed) in gauges.level.crossed.iter().zip(self.crossed) {
                gauge.set(crossed.0);
            }
        }
        self.high = self.amount.bytes;
    }
}
