//! DCQCN's reaction point as published (Zhu et al., SIGCOMM'15, section 3.1), and the timers of DCQCN+ on top.
//!
//! Every CNP cuts at once: target = rate, rate *= 1 - alpha / 2, alpha moves toward 1 by g. Without one for `K`, alpha decays.
//! A timer and a byte counter each count increases: F of fast recovery, then additive, then (both beyond F) hyper.
//!
//! DCQCN+ (adaptive): a CNP carries the receiver's period between CNPs of one flow; the timers become at least a tenth longer
//! than it, and the additive step shrinks by as much as it exceeds 50 us. That is the idea of the work, not its
//! exact constants, which the text at hand does not give.

use npcc_pipeline::units::Nanos;

use super::{Gbps, RateControl};

/// Parameters of the published reaction point; rates in Gb/s.
#[derive(Debug, Clone, Copy)]
pub struct PaperParams {
    /// Gain g of alpha.
    pub g: f64,
    /// K: time without a CNP after which alpha decays.
    pub alpha_timer: Nanos,
    /// T: time between increases.
    pub increase_timer: Nanos,
    /// B: bytes between increases.
    pub byte_counter: u64,
    /// F: increases of fast recovery.
    pub fast_recovery: u32,
    /// Step of the target in additive increase.
    pub additive: Gbps,
    /// Step of the target in hyper increase (the paper names no number; five additive steps).
    pub hyper: Gbps,
    /// Lower bound of the rate.
    pub min: Gbps,
    /// Upper bound of the rate: the line rate.
    pub line: Gbps,
    /// True for DCQCN+: timers and steps follow the period in the CNPs.
    pub adaptive: bool,
}

impl PaperParams {
    /// Returns the parameters as published.
    #[must_use]
    pub const fn published(line: Gbps) -> PaperParams {
        PaperParams {
            g: 1.0 / 256.0,
            alpha_timer: Nanos::from_micros(55),
            increase_timer: Nanos::from_micros(55),
            byte_counter: 10_000_000,
            fast_recovery: 5,
            additive: 0.040,
            hyper: 0.200,
            min: 0.010,
            line,
            adaptive: false,
        }
    }
}

/// State of one queue pair under the published reaction point.
#[derive(Debug, Clone)]
pub struct Paper {
    params: PaperParams,
    rate: Gbps,
    target: Gbps,
    alpha: f64,
    timers: Option<Timers>,
    time_stage: u32,
    byte_stage: u32,
    bytes: u64,
    /// Factor by which timers are longer and steps shorter; 1 unless adaptive.
    stretch: f64,
}

#[derive(Debug, Clone, Copy)]
struct Timers {
    alpha_at: Nanos,
    increase_at: Nanos,
}

impl Paper {
    /// Creates a queue pair at line rate that has seen no CNP.
    #[must_use]
    pub const fn new(params: PaperParams) -> Paper {
        Paper {
            rate: params.line,
            target: params.line,
            alpha: 1.0,
            timers: None,
            time_stage: 0,
            byte_stage: 0,
            bytes: 0,
            stretch: 1.0,
            params,
        }
    }

    fn stretched(&self, timer: Nanos) -> Nanos {
        Nanos(crate::num::whole(timer.0 as f64 * self.stretch).max(1))
    }

    fn advance(&mut self, now: Nanos) {
        let (alpha_timer, increase_timer) = (
            self.stretched(self.params.alpha_timer),
            self.stretched(self.params.increase_timer),
        );
        let Some(mut timers) = self.timers else {
            return;
        };
        if timers.alpha_at <= now {
            let steps = now.since(timers.alpha_at).0 / alpha_timer.0 + 1;
            self.alpha *= (1.0 - self.params.g).powi(i32::try_from(steps).unwrap_or(i32::MAX));
            timers.alpha_at = Nanos(timers.alpha_at.0 + steps * alpha_timer.0);
        }
        while timers.increase_at <= now {
            self.time_stage = self.time_stage.saturating_add(1);
            self.increase();
            timers.increase_at += increase_timer;
        }
        self.timers = Some(timers);
    }

    fn increase(&mut self) {
        let params = &self.params;
        let (least, most) = (
            self.time_stage.min(self.byte_stage),
            self.time_stage.max(self.byte_stage),
        );
        if least > params.fast_recovery {
            self.target += params.hyper / self.stretch;
        } else if most > params.fast_recovery {
            self.target += params.additive / self.stretch;
        }
        self.target = self.target.min(params.line);
        self.rate = f64::midpoint(self.rate, self.target).min(params.line);
    }
}

impl RateControl for Paper {
    fn rate(&mut self, now: Nanos) -> Gbps {
        self.advance(now);
        self.rate
    }

    fn sent(&mut self, bytes: u64, now: Nanos) {
        self.advance(now);
        if self.timers.is_none() {
            return;
        }
        self.bytes += bytes;
        while self.bytes >= self.params.byte_counter {
            self.bytes -= self.params.byte_counter;
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.increase();
        }
    }

    fn cnp(&mut self, period: Option<Nanos>, now: Nanos) {
        self.advance(now);
        if self.params.adaptive {
            let signalled = period.unwrap_or(Nanos::ZERO).0 as f64;
            self.stretch = (1.1 * signalled / self.params.increase_timer.0 as f64).max(1.0);
        }
        self.target = self.rate;
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(self.params.min);
        self.alpha += self.params.g * (1.0 - self.alpha);
        (self.time_stage, self.byte_stage, self.bytes) = (0, 0, 0);
        self.timers = Some(Timers {
            alpha_at: now + self.stretched(self.params.alpha_timer),
            increase_at: now + self.stretched(self.params.increase_timer),
        });
    }

    fn rtt(&mut self, _: Nanos, _: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_won_back_by_five_halvings_of_the_way() {
        let mut rp = Paper::new(PaperParams::published(40.0));
        rp.cnp(None, Nanos(0));
        assert!((rp.rate(Nanos(0)) - 20.0).abs() < 1e-9);
        let after = rp.rate(Nanos::from_micros(55 * 5));
        assert!((after - (40.0 - 20.0 / 32.0)).abs() < 1e-9, "{after}");
    }

    #[test]
    fn an_adaptive_sender_waits_longer_than_the_period_told() {
        let mut rp = Paper::new(PaperParams {
            adaptive: true,
            ..PaperParams::published(40.0)
        });
        rp.cnp(Some(Nanos::from_micros(500)), Nanos(0));
        assert!((rp.rate(Nanos::from_micros(549)) - 20.0).abs() < 1e-9);
        assert!((rp.rate(Nanos::from_micros(551)) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn alpha_decays_without_cnps() {
        let mut rp = Paper::new(PaperParams::published(40.0));
        rp.cnp(None, Nanos(0));
        let _ = rp.rate(Nanos::from_micros(55 * 256));
        assert!((rp.alpha - (1.0f64 - 1.0 / 256.0).powi(256)).abs() < 1e-9);
    }
}
