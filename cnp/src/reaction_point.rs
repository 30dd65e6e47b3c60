//! Model of a sender's rate after CNPs, for each kind of network card that responds to them.
//!
//! Three kinds are in use, and a flow keeps the state of each: cards with DCQCN's alpha by a fast clock, such cards whose alpha starts anew
//! once the flow is back at its line rate, and DCQCN as published. Which one a host has shows in what its flows do
//! ([`crate::host_response`]). Rates are in 65,536ths of the line, and a CNP cuts by half of alpha.

use npcc_pipeline::units::Nanos;

/// The value 1 in the fixed point of rates, shares and alpha (16 fractional bits).
pub(crate) const ONE: u32 = 1 << 16;
/// Number of kinds of cards that respond.
pub(crate) const KINDS: usize = 3;
/// Minimum time between two CNPs of a flow: the default of ConnectX as a notification point (`min_time_between_cnps`). The
/// reaction point is taken to ignore a second one within the same time.
pub const NIC_MIN_CNP_INTERVAL: Nanos = Nanos::from_micros(4);
/// Tolerance below the line rate within which a rate counts as the line rate: 1/128.
const FREE: u32 = ONE / 128;
/// Lowest rate of any card: 1/1,024 of the line.
const LEAST: u32 = ONE / 1_024;

/// Parameters of one kind of card.
#[derive(Debug)]
struct Kind {
    /// Time between two increases of the rate (`rpg_time_reset`); the first comes one such time after a cut.
    timer: Nanos,
    /// Number of increases of fast recovery (F, `rpg_threshold`). These leave the target as it is; every increase takes the rate half of the way to
    /// it.
    fast: u64,
    /// Gain of the target by each increase after those of fast recovery (R_AI, `rpg_ai_rate`; R_HAI for [`CLOCK`]).
    grows: u32,
    /// Time in which alpha halves without a CNP, in ns: it follows from g and the time between two updates of alpha.
    half_life: u64,
    /// Gain of alpha by a CNP (g).
    step_up: u32,
    /// True if alpha is 1 again once the rate is that of the line.
    restarts: bool,
    /// True if each cut makes the rate before it the target (`clamp_tgt_rate`); false if only the first cut after an increase does.
    retargets: bool,
}

/// Cards with NVIDIA's defaults: alpha by 1 us and 1,019/1,024, increases by 300 us, HAI of some thousandth of the line.
const CLOCK: Kind = Kind {
    timer: Nanos::from_micros(300),
    fast: 1,
    grows: ONE / 1_024,
    half_life: 142_000,
    step_up: ONE / 1_024 * 5,
    restarts: false,
    retargets: false,
};
/// Kinds of cards, in the order of [`OfEach`] and of a flow's state.
static ALL: [Kind; KINDS] = [
    CLOCK,
    Kind {
        restarts: true,
        ..CLOCK
    },
    // SIGCOMM'15: alpha by 55 us and 255/256, increases by 55 us.
    Kind {
        timer: Nanos::from_micros(55),
        fast: 5,
        grows: ONE / 2_048,
        half_life: 9_740_000,
        step_up: ONE / 256,
        restarts: false,
        retargets: true,
    },
];

#[derive(Debug, Clone, Copy)]
struct ReactionPoint {
    /// Rate right after the latest cut.
    rate: u32,
    target: u32,
    /// Alpha right after the latest CNP.
    alpha: u32,
}

/// Models of a flow's sender, one for each kind of card it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReactionPoints {
    signalled: Option<Nanos>,
    points: [ReactionPoint; KINDS],
}

/// One rate, share or alpha for each kind of card.
pub(crate) type OfEach = [u32; KINDS];

impl ReactionPoints {
    pub(crate) const fn new() -> ReactionPoints {
        let point = ReactionPoint {
            rate: ONE,
            target: ONE,
            alpha: ONE,
        };
        ReactionPoints {
            signalled: None,
            points: [point; KINDS],
        }
    }

    /// Time of the latest CNP to the sender, from this switch or from a receiver; `None` before the first.
    pub(crate) const fn signalled(&self) -> Option<Nanos> {
        self.signalled
    }

    fn each(&self, now: Nanos, of: impl Fn(&Kind, &ReactionPoint, Nanos) -> u32) -> Option<OfEach> {
        let passed = now.since(self.signalled?);
        let mut each = [ONE; KINDS];
        for ((place, kind), point) in each.iter_mut().zip(&ALL).zip(&self.points) {
            *place = of(kind, point, passed);
        }
        Some(each)
    }

    /// Rates at `now` if no further CNP has come until then.
    pub(crate) fn rates(&self, now: Nanos) -> OfEach {
        self.each(now, Kind::rate).unwrap_or([ONE; KINDS])
    }

    /// Mean rates between two times after the latest CNP, from four samples.
    pub(crate) fn mean(&self, from: Nanos, to: Nanos) -> OfEach {
        let eighth = to.since(from).0 / 8;
        let mut sum = [0; KINDS];
        for part in [1, 3, 5, 7] {
            let rates = self.rates(Nanos(from.0 + eighth * part));
            for (sum, rate) in sum.iter_mut().zip(rates) {
                *sum += rate / 4;
            }
        }
        sum
    }

    /// The lowest rates since the latest CNP.
    pub(crate) fn lowest(&self) -> OfEach {
        self.points.map(|point| point.rate)
    }

    /// Share of its rate that a CNP sent now takes off each kind of card, in 65,536ths.
    pub(crate) fn cuts(&self, now: Nanos) -> OfEach {
        let alphas = self.each(now, Kind::alpha).unwrap_or([ONE; KINDS]);
        alphas.map(|alpha| alpha / 2)
    }

    /// Records a CNP to the sender.
    pub(crate) fn signal(&mut self, now: Nanos) {
        let (rates, alphas) = (self.rates(now), self.cuts(now).map(|cut| cut * 2));
        let passed = self
            .signalled
            .map_or(Nanos(u64::MAX), |signalled| now.since(signalled));
        for (((point, kind), rate), alpha) in
            self.points.iter_mut().zip(&ALL).zip(rates).zip(alphas)
        {
            point.alpha = (alpha + kind.step_up).min(ONE);
            if passed < NIC_MIN_CNP_INTERVAL {
                continue;
            }
            if passed >= kind.timer || kind.retargets {
                point.target = rate;
            }
            point.rate = (rate - cut_by(rate, alpha / 2)).max(LEAST);
        }
        self.signalled = Some(now);
    }
}

fn cut_by(rate: u32, share: u32) -> u32 {
    u32::try_from((u64::from(rate) * u64::from(share)) >> 16).unwrap_or(rate)
}

impl Kind {
    fn rate(&self, point: &ReactionPoint, passed: Nanos) -> u32 {
        let steps = passed.0 / self.timer.0;
        let grown = u64::from(self.grows) * steps.saturating_sub(self.fast);
        let grown = u32::try_from(grown).unwrap_or(ONE).min(ONE);
        let target = (point.target + grown).min(ONE);
        let below = point.target.saturating_sub(point.rate);
        target
            - below
                .checked_shr(u32::try_from(steps).unwrap_or(32))
                .unwrap_or(0)
    }

    fn alpha(&self, point: &ReactionPoint, passed: Nanos) -> u32 {
        if self.restarts && self.rate(point, passed) >= ONE - FREE {
            return ONE;
        }
        let halves = u32::try_from(passed.0 / self.half_life).unwrap_or(u32::MAX);
        let whole = point.alpha.checked_shr(halves).unwrap_or(0);
        // Between two halvings along the chord, at most 6 % above the curve.
        let part = u64::from(whole / 2) * (passed.0 % self.half_life) / self.half_life;
        // The CNP itself adds its part before it cuts.
        let faded = whole.saturating_sub(u32::try_from(part).unwrap_or(0));
        faded.max(self.step_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    /// Converts shares to thousandths.
    fn thousandths(each: OfEach) -> OfEach {
        each.map(|share| u32::try_from((u64::from(share) * 1_000 + 32_768) >> 16).unwrap())
    }

    #[test]
    fn each_kind_cuts_by_half_of_its_alpha_and_wins_back_by_its_own_timer() {
        let mut points = ReactionPoints::new();
        assert_eq!(thousandths(points.rates(us(7))), [1_000; KINDS]);
        points.signal(us(10));
        assert_eq!(thousandths(points.rates(us(10))), [500; KINDS]);
        assert_eq!(thousandths(points.rates(us(64))), [500; KINDS]);
        assert_eq!(thousandths(points.rates(us(65))), [500, 500, 750]);
        assert_eq!(thousandths(points.rates(us(310))), [750, 750, 984]);
        // Half in 142 us, and half in 10 ms.
        assert_eq!(thousandths(points.cuts(us(152))), [250, 250, 496]);
        // A train keeps the target of its beginning, except for the published card.
        for at in [14, 18] {
            points.signal(us(at));
        }
        let [clock, _, published] = thousandths(points.rates(us(318)));
        assert!((560..=575).contains(&clock), "{clock}");
        assert!(published < 260, "{published}");
    }

    #[test]
    fn alpha_starts_anew_at_the_line_for_the_kind_that_does_so() {
        let mut points = ReactionPoints::new();
        points.signal(us(0));
        assert_eq!(thousandths(points.cuts(us(1_700)))[..2], [2, 2]);
        assert_eq!(thousandths(points.cuts(us(1_900)))[..2], [2, 500]);
    }

    #[test]
    fn no_rate_leaves_its_range_and_cnps_closer_than_four_microseconds_cut_once() {
        let mut points = ReactionPoints::new();
        for at in 0..100_000 {
            points.signal(Nanos(at * 4_000 + at % 7 * 300_000));
            let later = us(at * 4 + at * 13 % 90_000);
            for rate in points.rates(later).into_iter().chain(points.cuts(later)) {
                assert!(rate <= ONE);
            }
            assert!(points.lowest().iter().all(|rate| *rate >= LEAST));
        }
        let mut points = ReactionPoints::new();
        points.signal(us(10));
        points.signal(Nanos(13_999));
        assert_eq!(thousandths(points.lowest()), [500; KINDS]);
    }
}
