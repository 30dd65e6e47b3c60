//! Congestion detector of one queue: its zone, its trend, and whether a rise has lasted long enough to count.
//!
//! | | idle | shallow | deep |
//! |---|---|---|---|
//! | rising | none | few | many |
//! | falling | none | none | few |
//! | jitter: the rise is not confirmed by `filter` | none | none | few where a rise to shallow is confirmed, else none |
//!
//! **Zone**: entered at its threshold, left downward at the threshold less the hysteresis, so that a depth near an edge
//! does not chatter. `Hard` is deep without a filter: at its threshold, or above deep when the depth grew by more than
//! half of what the queue drains in the time since the last evaluation (and at least four MTU, or every frame on a slow link would be one). An
//! evaluation that comes late or early is scaled by its actual interval.
//!
//! **Trend**: turns when the depth has gone against it by more than one MTU from its last extreme. A flat queue keeps its
//! trend, so a queue that rose and stands counts as rising, and one that fell and stands as falling.
//!
//! **Jitter**: a zone counts once the depth has been in it (or above) and rising for `filter` evaluations, and for the time between as many ticks: an
//! evaluation made early on request proves no more than its interval does. Until then the reading counts for the highest zone that has: a spike out of a
//! shallow queue is as good as shallow, a spike out of an idle one is nothing, and so is its way back. That keeps the decision monotone in depth.

use npcc_pipeline::named;
use npcc_pipeline::units::{BitRate, Nanos};

named! {
    /// Zone of a queue's depth.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Zone {
        /// Depth below `shallow`.
        #[default]
        Idle = "idle",
        /// Depth from `shallow`.
        Shallow = "shallow",
        /// Depth from `deep`.
        Deep = "deep",
        /// Depth from `hard`, or growing too fast to wait.
        Hard = "hard",
    }
}

impl Zone {
    const fn below(self) -> Zone {
        match self {
            Zone::Idle | Zone::Shallow => Zone::Idle,
            Zone::Deep => Zone::Shallow,
            Zone::Hard => Zone::Deep,
        }
    }
}

named! {
    /// Direction in which a queue's depth moves.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Trend {
        /// Depth that falls, or stands after it fell.
        #[default]
        Falling = "falling",
        /// Depth that rises, or stands after it rose.
        Rising = "rising",
    }
}

/// Result of one evaluation of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Bytes waiting.
    pub depth: u64,
    /// Zone of the depth.
    pub zone: Zone,
    /// Highest zone that counts; below `zone` while the rise may still be jitter.
    pub confirmed: Zone,
    /// Trend of the depth.
    pub trend: Trend,
}

impl Reading {
    /// Returns true if the rise into this zone has not lasted long enough yet.
    #[must_use]
    pub fn is_jitter(&self) -> bool {
        self.confirmed < self.zone
    }
}

/// Number of frames up to which a depth, or its growth, shows the order of packets and no congestion.
pub(crate) const ORDER: u64 = 4;
/// Share of a threshold by which the depth must fall below it to leave the zone, in percent.
const HYSTERESIS: u128 = 20;

/// Configuration of one queue's detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectorConfig {
    /// Bytes from which the queue is shallow.
    pub shallow: u64,
    /// Bytes from which the queue is deep; not below `shallow`.
    pub deep: u64,
    /// Bytes from which no filter applies; not below `deep`.
    pub hard: u64,
    /// Number of evaluations that a rise must last to count, over the time of as many ticks; 0 and 1 mean no filter.
    pub filter: u32,
    /// Time between observations.
    pub tick: Nanos,
    /// The queue's drain rate.
    pub drain: BitRate,
    /// Largest frame on the wire in bytes: the trend's dead band.
    pub mtu: u64,
}

/// Time since which the depth has been rising in a zone or above, and the evaluations since then.
#[derive(Debug, Clone, Copy)]
struct Risen {
    since: Nanos,
    evaluations: u32,
}

/// Detector of one queue. Call [`Detector::observe`] about once a tick.
#[derive(Debug, Clone)]
pub struct Detector {
    config: DetectorConfig,
    zone: Zone,
    trend: Trend,
    extreme: u64,
    /// Time and depth of the previous evaluation.
    previous: Option<(Nanos, u64)>,
    confirmed: Zone,
    /// Rise in or above a zone: shallow, deep.
    risen: [Option<Risen>; 2],
}

impl Detector {
    /// Makes a detector that has seen an empty queue.
    #[must_use]
    pub fn new(config: DetectorConfig) -> Detector {
        Detector {
            config,
            zone: Zone::Idle,
            trend: Trend::Falling,
            extreme: 0,
            previous: None,
            confirmed: Zone::Idle,
            risen: [None; 2],
        }
    }

    /// Configuration of the detector.
    #[must_use]
    pub const fn config(&self) -> &DetectorConfig {
        &self.config
    }

    /// Replaces the configuration; the state stays, and the next evaluation judges it by the new thresholds.
    pub const fn reconfigure(&mut self, config: DetectorConfig) {
        self.config = config;
    }

    /// Takes the depth in bytes at this tick.
    pub fn observe(&mut self, depth: u64, now: Nanos) -> Reading {
        self.update_trend(depth);
        self.update_zone(depth, now);
        self.confirm(now);
        self.previous = Some((now, depth));
        Reading {
            depth,
            zone: self.zone,
            confirmed: self.confirmed,
            trend: self.trend,
        }
    }

    /// Takes the depth at the next evaluation, one tick after the one before.
    #[cfg(test)]
    pub(crate) fn tick(&mut self, depth: u64) -> Reading {
        let at = self.previous.map_or(Nanos::ZERO, |(at, _)| at);
        self.observe(depth, at + self.config.tick)
    }

    fn update_trend(&mut self, depth: u64) {
        let band = self.config.mtu;
        match self.trend {
            Trend::Rising if depth.saturating_add(band) < self.extreme => {
                (self.trend, self.extreme) = (Trend::Falling, depth);
            }
            Trend::Falling if depth > self.extreme.saturating_add(band) => {
                (self.trend, self.extreme) = (Trend::Rising, depth);
            }
            Trend::Rising => self.extreme = self.extreme.max(depth),
            Trend::Falling => self.extreme = self.extreme.min(depth),
        }
    }

    fn threshold(&self, zone: Zone) -> u64 {
        match zone {
            Zone::Idle => 0,
            Zone::Shallow => self.config.shallow,
            Zone::Deep => self.config.deep,
            Zone::Hard => self.config.hard,
        }
    }

    /// Returns true if the growth since the last evaluation is too fast to wait.
    fn grows_fast(&self, depth: u64, now: Nanos) -> bool {
        // The first evaluation tells nothing about when the growth began.
        let (at, before) = self
            .previous
            .unwrap_or_else(|| (Nanos(now.0.saturating_sub(self.config.tick.0)), 0));
        let half_drain = self.config.drain.bytes_in(now.since(at)) / 2;
        let fast = half_drain.max(self.config.mtu.saturating_mul(ORDER));
        depth.saturating_sub(before) > fast
    }

    fn update_zone(&mut self, depth: u64, now: Nanos) {
        let fits = |zone: &Zone| depth >= self.threshold(*zone);
        let mut reached = Zone::ALL.into_iter().rev().find(fits).unwrap_or_default();
        if reached > Zone::Shallow && self.grows_fast(depth, now) {
            reached = Zone::Hard;
        }
        let mut zone = self.zone;
        while zone > reached && depth < self.exit_threshold(zone) {
            zone = zone.below();
        }
        self.zone = zone.max(reached);
    }

    /// Threshold in bytes below which a zone is left downward.
    fn exit_threshold(&self, zone: Zone) -> u64 {
        let kept = 100 - HYSTERESIS;
        let edge = u128::from(self.threshold(zone)) * kept / 100;
        u64::try_from(edge).unwrap_or(u64::MAX)
    }

    fn confirm(&mut self, now: Nanos) {
        let [shallow, deep] = &mut self.risen;
        let filter = self.config.filter.max(1);
        // A tick that comes an eighth early still counts as a whole one.
        let ticks = Nanos(self.config.tick.0 / 8 * 7 * u64::from(filter - 1));
        for (zone, risen) in [(Zone::Shallow, shallow), (Zone::Deep, deep)] {
            let inside = self.zone >= zone;
            if !inside || self.trend != Trend::Rising {
                *risen = None;
                continue;
            }
            let rise = risen.get_or_insert(Risen {
                since: now,
                evaluations: 0,
            });
            rise.evaluations = rise.evaluations.saturating_add(1);
            if rise.evaluations >= filter && now.since(rise.since) >= ticks {
                self.confirmed = self.confirmed.max(zone);
            }
        }
        self.confirmed = if self.zone == Zone::Hard {
            Zone::Hard
        } else {
            self.confirmed.min(self.zone)
        };
    }
}

#[cfg(test)]
#[path = "detector_tests.rs"]
mod tests;
