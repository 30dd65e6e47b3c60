//! DCQCN's reaction point as network cards implement it: alpha and cuts run on clocks (HPCC simulator's `mlx` functions).
//!
//! - the first CNP sets alpha and starts two clocks; it cuts at once;
//! - every `alpha_interval`: alpha keeps a share of itself, and gains if a CNP came since the last step;
//! - every `decrease_interval`, if a CNP came: target = rate (unless no increase lay between, by the timer or the byte counter:
//!   NVIDIA's default `CLAMP_TGT_RATE_AFTER_TIME_INC` = 1), rate *= 1 - alpha / 2;
//! - every `increase_interval` after the last cut, and every `byte_counter` bytes: halve the way to the target, then raise
//!   the target by `additive`, then by `hyper`;
//! - with `reset`, a rate that is back at the line frees the rate limiter, and the next CNP is a first one again (NVIDIA's
//!   DCQCN page: `initial_alpha` counts "when receiving the first CNP for a flow").
//!
//! State does not advance between calls: it is brought forward to `now` first, in closed form where nothing can happen.

use npcc_pipeline::units::Nanos;

use super::{Gbps, RateControl};
use crate::num::small;

/// Parameters of the vendor reaction point; rates in Gb/s.
#[derive(Debug, Clone, Copy)]
pub struct VendorParams {
    /// Share of alpha kept at each step.
    pub alpha_keep: f64,
    /// Gain of alpha in a step after a CNP.
    pub alpha_add: f64,
    /// Value of alpha at the first CNP.
    pub alpha_first: f64,
    /// Time between two steps of alpha.
    pub alpha_interval: Nanos,
    /// Shortest time between two cuts.
    pub decrease_interval: Nanos,
    /// Time between two increases.
    pub increase_interval: Nanos,
    /// Bytes between two increases, if counted.
    pub byte_counter: Option<u64>,
    /// Number of increases that only approach the target (fast recovery).
    pub fast_recovery: u32,
    /// Step of the target in additive increase, after fast recovery.
    pub additive: Gbps,
    /// Step of the target in hyper increase.
    pub hyper: Gbps,
    /// True if a rate back at the line (within [`FREE`]) frees the rate limiter: alpha starts anew at the next CNP.
    pub reset: bool,
    /// Lower bound of the rate.
    pub min: Gbps,
    /// Upper bound of the rate: the line rate.
    pub line: Gbps,
}

/// Distance from the line rate, as a share of it, within which a rate counts as the line's. The real distance is not documented.
const FREE: f64 = 1.0 / 128.0;

/// State of one queue pair under the vendor reaction point.
#[derive(Debug, Clone)]
pub struct Vendor {
    params: VendorParams,
    rate: Gbps,
    target: Gbps,
    alpha: f64,
    clocks: Option<Clocks>,
    time_stage: u32,
    byte_stage: u32,
    bytes: u64,
}

/// Clocks that run since the first CNP.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    alpha_at: Nanos,
    alpha_signalled: bool,
    decrease_at: Nanos,
    signalled: bool,
    increase_at: Option<Nanos>,
}

impl Vendor {
    /// Creates a queue pair at line rate that has seen no CNP.
    #[must_use]
    pub fn new(params: VendorParams) -> Vendor {
        Vendor {
            rate: params.line,
            target: params.line,
            alpha: params.alpha_first,
            clocks: None,
            time_stage: 0,
            byte_stage: 0,
            bytes: 0,
            params,
        }
    }

    fn advance(&mut self, now: Nanos) {
        while let Some(clocks) = self.clocks {
            let cut = clocks.signalled.then_some(clocks.decrease_at);
            let next = [cut, clocks.increase_at].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= now) else {
                break;
            };
            self.alpha_to(at);
            if cut == Some(at) {
                self.cut(at);
            } else {
                self.time_increase();
                if let Some(clocks) = &mut self.clocks {
                    clocks.increase_at = Some(at + self.params.increase_interval);
                }
            }
        }
        self.alpha_to(now);
        if let Some(clocks) = &mut self.clocks {
            clocks.decrease_at = on_grid(clocks.decrease_at, self.params.decrease_interval, now);
        }
    }

    fn alpha_to(&mut self, now: Nanos) {
        let (Some(clocks), params) = (&mut self.clocks, &self.params) else {
            return;
        };
        if clocks.alpha_at > now {
            return;
        }
        let interval = params.alpha_interval.0.max(1);
        let steps = now.since(clocks.alpha_at).0 / interval + 1;
        let exponent = i32::try_from(steps).unwrap_or(i32::MAX);
        let gain = if clocks.alpha_signalled {
            params.alpha_add * params.alpha_keep.powi(exponent - 1)
        } else {
            0.0
        };
        self.alpha = self.alpha * params.alpha_keep.powi(exponent) + gain;
        clocks.alpha_signalled = false;
        clocks.alpha_at = Nanos(clocks.alpha_at.0 + steps * interval);
    }

    fn cut(&mut self, at: Nanos) {
        if self.time_stage > 0 || self.byte_stage > 0 {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(self.params.min);
        (self.time_stage, self.byte_stage, self.bytes) = (0, 0, 0);
        if let Some(clocks) = &mut self.clocks {
            clocks.signalled = false;
            clocks.decrease_at = at + self.params.decrease_interval;
            clocks.increase_at = Some(at + self.params.increase_interval);
        }
    }

    fn time_increase(&mut self) {
        self.increase();
        if self.clocks.is_some() {
            self.time_stage += 1;
        }
    }

    fn increase(&mut self) {
        let params = &self.params;
        let other = if params.byte_counter.is_some() {
            self.byte_stage
        } else {
            self.time_stage
        };
        let (least, most) = (self.time_stage.min(other), self.time_stage.max(other));
        if least > params.fast_recovery {
            self.target += params.hyper;
        } else if most >= params.fast_recovery {
            self.target += params.additive;
        }
        self.target = self.target.min(params.line);
        self.rate = (f64::midpoint(self.rate, self.target)).min(params.line);
        if params.reset && self.rate >= params.line * (1.0 - FREE) {
            (self.rate, self.target) = (params.line, params.line);
            (self.time_stage, self.byte_stage, self.bytes) = (0, 0, 0);
            self.clocks = None;
        }
    }
}

/// Returns the first time not before `now` that is a whole number of intervals after `at`.
fn on_grid(at: Nanos, interval: Nanos, now: Nanos) -> Nanos {
    let behind = now.since(at).0.div_ceil(interval.0.max(1));
    Nanos(at.0 + behind * interval.0)
}

impl RateControl for Vendor {
    fn rate(&mut self, now: Nanos) -> Gbps {
        self.advance(now);
        self.rate
    }

    fn sent(&mut self, bytes: u64, now: Nanos) {
        self.advance(now);
        let (Some(limit), Some(_)) = (self.params.byte_counter, self.clocks) else {
            return;
        };
        self.bytes += bytes;
        let events = small(self.bytes / limit);
        self.bytes %= limit;
        for _ in 0..events {
            self.increase();
            if self.clocks.is_none() {
                break;
            }
            self.byte_stage = self.byte_stage.saturating_add(1);
        }
    }

    fn cnp(&mut self, _: Option<Nanos>, now: Nanos) {
        self.advance(now);
        if let Some(clocks) = &mut self.clocks {
            (clocks.alpha_signalled, clocks.signalled) = (true, true);
        } else {
            self.alpha = self.params.alpha_first;
            self.target = self.rate;
            self.clocks = Some(Clocks {
                alpha_at: now + self.params.alpha_interval,
                alpha_signalled: false,
                decrease_at: now,
                signalled: true,
                increase_at: None,
            });
        }
        self.advance(now);
    }

    fn rtt(&mut self, _: Nanos, _: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::params::Sender;

    fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    #[test]
    fn the_first_cnp_halves_and_one_timer_later_half_is_back() {
        let mut rp = Sender::HpccVendor.start(100.0);
        assert!((rp.rate(us(10)) - 100.0).abs() < 1e-9);
        rp.cnp(None, us(10));
        assert!((rp.rate(us(10)) - 50.0).abs() < 1e-9, "alpha 1");
        assert!((rp.rate(us(309)) - 50.0).abs() < 1e-9);
        assert!((rp.rate(us(310)) - 75.0).abs() < 1e-9, "fast recovery");
        assert!(
            (rp.rate(us(610)) - 87.5).abs() < 0.1,
            "additive, target at the line"
        );
    }

    #[test]
    fn cuts_come_at_most_once_in_four_microseconds() {
        let mut rp = Sender::HpccVendor.start(100.0);
        for step in 0..40 {
            rp.cnp(None, Nanos(10_000 + step * 100));
        }
        // One at 10 us; the others wait for 14 us.
        assert!((rp.rate(Nanos(13_999)) - 50.0).abs() < 1e-9);
        let later = rp.rate(us(14));
        assert!(later < 26.0 && later > 25.0 - 0.5, "{later}");
    }

    #[test]
    fn a_late_cnp_cuts_little() {
        let mut rp = Sender::HpccVendor.start(100.0);
        rp.cnp(None, us(0));
        let before = rp.rate(us(1_400));
        rp.cnp(None, us(1_400));
        let after = rp.rate(us(1_404));
        let cut = 1.0 - after / before;
        // alpha = (1 - 1/256)^1400 = 0.004, and the gain of one step.
        assert!(cut > 0.0015 && cut < 0.006, "{cut}");
    }

    #[test]
    fn a_byte_counter_of_2_mb_leaves_a_cut_to_the_timer() {
        for sender in [Sender::Mlx, Sender::MlxReset] {
            let mut rp = sender.start(100.0);
            rp.cnp(None, us(0));
            // At 50 Gb/s a full frame leaves every 668 ns; 2,097,088 bytes are 336 us of that, and the timer ends after 300.
            for step in 1..=448 {
                rp.sent(4_178, Nanos(step * 668));
            }
            let rate = rp.rate(Nanos(299_999));
            assert!((rate - 50.0).abs() < 0.1, "{sender:?}: {rate}");
            let rate = rp.rate(us(300));
            assert!((rate - 75.0).abs() < 0.1, "{sender:?}: {rate}");
        }
    }

    #[test]
    fn the_byte_counter_brings_a_card_back_within_microseconds() {
        let mut rp = Sender::MlxBytes.start(100.0);
        rp.cnp(None, us(0));
        for step in 0..40 {
            rp.sent(4_178, Nanos(1_000 + step * 600));
        }
        let rate = rp.rate(us(25));
        assert!(rate > 95.0, "{rate}");
    }

    #[test]
    fn a_card_that_frees_its_limiter_halves_at_every_first_cnp() {
        let after = |sender: Sender| {
            let mut rp = sender.start(100.0);
            rp.cnp(None, us(0));
            // Seven increases of 300 us and what additive steps bring: 99.6 of 100.
            assert!((rp.rate(us(2_200)) - 100.0).abs() < 0.8);
            rp.cnp(None, us(2_200));
            rp.rate(us(2_200))
        };
        assert!(after(Sender::HpccVendor) > 99.4, "alpha has faded");
        assert!(
            (after(Sender::HpccReset) - 50.0).abs() < 1e-9,
            "alpha is 1 again"
        );
    }

    #[test]
    fn with_the_byte_counter_the_limiter_is_free_within_tens_of_microseconds() {
        let mut rp = Sender::MlxBytes.start(100.0);
        rp.cnp(None, us(0));
        for step in 0..100 {
            rp.sent(4_178, Nanos(1_000 + step * 400));
        }
        assert!((rp.rate(us(41)) - 100.0).abs() < 1e-9);
        rp.cnp(None, us(41));
        assert!(rp.rate(us(41)) < 50.1);
    }

    #[test]
    fn a_cut_after_increases_by_the_byte_counter_lowers_the_target() {
        let mut rp = Sender::MlxBytes.start(100.0);
        rp.cnp(None, us(0));
        // One increase by 32,767 bytes, far from the timer's: 75 Gb/s, and 62.5 after the next cut and increase.
        rp.sent(32_767, us(6));
        let before = rp.rate(us(6));
        assert!((before - 75.0).abs() < 0.1, "{before}");
        rp.cnp(None, us(6));
        let cut = rp.rate(us(8));
        rp.sent(32_767, us(9));
        let after = rp.rate(us(9));
        let way = (after - cut) / (before - cut);
        assert!((way - 0.5).abs() < 0.01, "{before}, {cut}, {after}");
    }

    #[test]
    fn closed_form_equals_step_by_step() {
        let mut often = Sender::HpccVendor.start(100.0);
        let mut rarely = Sender::HpccVendor.start(100.0);
        for at in [5, 60, 61, 400, 2_000] {
            often.cnp(None, us(at));
            rarely.cnp(None, us(at));
            for step in 0..500 {
                let _ = often.rate(us(at) + Nanos(step));
            }
        }
        let at = us(5_000);
        assert!((often.rate(at) - rarely.rate(at)).abs() < 1e-6);
    }
}
