//! Time of the switch: the TSC, dilated by `time_scale`.
//!
//! A dilated clock dilates every interval and rate at once: with `time_scale: 100` a 100 Gb/s port sends 1 Gb/s of real
//! time, and a 20 us tick comes every 2 ms.

use std::time::Duration;

use npcc_dpdk::Clock as Tsc;
use npcc_pipeline::num::{real, whole};
use npcc_pipeline::units::Nanos;

/// Source of the present time.
pub trait Now: std::fmt::Debug {
    /// Returns the present time.
    fn now(&self) -> Nanos;
}

/// Clock that all threads share by copying.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    tsc: Tsc,
    /// Factor `2^32 / time_scale`; `None` for a scale of 1.
    scale: Option<u64>,
}

impl Clock {
    /// Makes a clock over `tsc` that runs `time_scale` times slower.
    #[must_use]
    pub fn new(tsc: Tsc, time_scale: f64) -> Clock {
        let factor = whole(4_294_967_296.0 / time_scale);
        Clock {
            tsc,
            scale: ((time_scale - 1.0).abs() > f64::EPSILON).then_some(factor),
        }
    }

    /// Returns the real ns per ns of this clock.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.scale
            .map_or(1.0, |factor| 4_294_967_296.0 / real(factor))
    }

    /// Returns the time since `then`, in real seconds.
    #[must_use]
    pub fn seconds_since(&self, then: Nanos) -> f64 {
        real(self.now().since(then).0) * self.scale() / 1e9
    }

    /// Returns the time of this clock at a real time ago; 0 if that is before the clock began.
    #[must_use]
    pub fn before(&self, ago: Duration) -> Nanos {
        let scaled = ago.as_secs_f64() * 1e9 / self.scale();
        Nanos(self.now().0.saturating_sub(whole(scaled)))
    }

    /// Returns the present time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        let real = self.tsc.now_ns();
        match self.scale {
            None => Nanos(real),
            Some(factor) => {
                let scaled = (u128::from(real) * u128::from(factor)) >> 32;
                Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }
}

impl Now for Clock {
    #[inline]
    fn now(&self) -> Nanos {
        self.now()
    }
}
