//! DCQCN's reaction point as published (Zhu et al., SIGCOMM'15, section 3.1), and the timers of DCQCN+ on top.
//!
//! Every CNP cuts at once: target = rate, rate *= 1 - alpha / 2, alpha moves toward 1 by g. Without one for `K`, alpha decays.
//! A timer and a byte counter each count increases: F of fast recovery, then additive, then (both beyond F) hyper.
//!
//! The authors' own simulator (`rpr_*` in bobzhuyb/ns3-rdma) differs from their text ([`PaperParams::authors`]): additive increase
//! begins with the F-th increase, hyper increase with a timed one; its i-th step is i times as long, and it halves timer and byte
//! counter, as IEEE 802.1Qau does. Their alpha moves before the cut; here it does after it, as in the text, which changes no figure.
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
    /// True for the increases of the authors' simulator.
    pub authors: bool,
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
            authors: false,
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
    /// Bytes until the next increase by the byte counter.
    byte_limit: u64,
    /// True if the last increase was hyper.
    hyper: bool,
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
            byte_limit: params.byte_counter,
            hyper: false,
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
            timers.increase_at += Nanos(increase_timer.0 / self.increases_per_period());
            self.time_stage = self.time_stage.saturating_add(1);
            self.increase(true);
        }
        self.timers = Some(timers);
    }

    /// Returns the number by which timer and byte counter are divided for the increase after the one that is due.
    const fn increases_per_period(&self) -> u64 {
        if self.params.authors && self.hyper {
            2
        } else {
            1
        }
    }

    fn increase(&mut self, timed: bool) {
        let params = &self.params;
        let (least, most) = (
            self.time_stage.min(self.byte_stage),
            self.time_stage.max(self.byte_stage),
        );
        let first = params.fast_recovery + u32::from(!params.authors);
        self.hyper = least >= first && (timed || self.hyper || !params.authors);
        if self.hyper {
            let steps = if params.authors { least - first + 1 } else { 1 };
            self.target += f64::from(steps) * params.hyper / self.stretch;
        } else if most >= first {
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
        while self.bytes >= self.byte_limit {
            self.bytes -= self.byte_limit;
            self.byte_limit = self.params.byte_counter / self.increases_per_period();
            self.byte_stage = self.byte_stage.saturating_add(1);
            self.increase(false);
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
        (self.byte_limit, self.hyper) = (self.params.byte_counter, false);
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
    fn the_authors_code_raises_the_target_sooner_faster_and_more_often() {
        let after = |authors: bool| {
            let mut rp = Paper::new(PaperParams {
                authors,
                ..PaperParams::published(40.0)
            });
            // The target is half of the line, so that the line does not limit it, and the byte counter is at 9.
            rp.cnp(None, Nanos(0));
            rp.cnp(None, Nanos(0));
            rp.sent(90_000_000, Nanos(0));
            let mut step = |time| {
                let before = rp.target;
                rp.rate(Nanos(time));
                ((rp.target - before) * 1e3).round()
            };
            let steps = (0..=16)
                .map(|half| step(half * 27_500))
                .collect::<Vec<f64>>();
            // One increase by bytes at the full counter, and those of 10 MB more.
            rp.sent(10_000_000, Nanos(440_000));
            rp.sent(10_000_000, Nanos(440_000));
            (steps, rp.byte_stage)
        };
        // Steps of the target in Mb/s, each half of the timer: the fifth timed increase is at 275 us, the sixth at 330.
        let of_text = [0, 0, 40, 0, 40, 0, 40, 0, 40, 0, 40, 0, 200, 0, 200, 0, 200];
        assert_eq!(after(false), (of_text.map(f64::from).to_vec(), 11));
        let of_code = [
            0, 0, 40, 0, 40, 0, 40, 0, 40, 0, 200, 0, 400, 600, 800, 1_000, 1_000,
        ];
        assert_eq!(after(true), (of_code.map(f64::from).to_vec(), 12));
    }

    #[test]
    fn alpha_decays_without_cnps() {
        let mut rp = Paper::new(PaperParams::published(40.0));
        rp.cnp(None, Nanos(0));
        let _ = rp.rate(Nanos::from_micros(55 * 256));
        assert!((rp.alpha - (1.0f64 - 1.0 / 256.0).powi(256)).abs() < 1e-9);
    }
}
