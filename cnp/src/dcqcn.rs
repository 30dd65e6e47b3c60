//! How fast one flow sends, how long a CNP takes to show in its rate, and how much of its rate a CNP costs it.
//!
//! What a CNP costs is what it costs a card of the kind that its host showed itself to have ([`crate::cards`]). The feedback delay is the time from a CNP to the fall of the flow's rate, as seen last; before the first, that to
//! the sender and back as replies show it ([`crate::near_rtt`]), between the default and ten times that; before that, the default (20 us).

use npcc_pipeline::units::{BitRate, Nanos};

use crate::cards::{Cards, ONE};
use crate::window::share;

/// How flows are measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// Time from a CNP to its effect, until learned.
    pub(crate) feedback: Nanos,
    /// Time over which a rate is measured, at least.
    step: Nanos,
    /// A flow not read for this long has no known rate.
    pub(crate) stale: Nanos,
}

impl Measure {
    /// For flows looked at once in `period`.
    pub(crate) const fn new(feedback: Nanos, period: Nanos) -> Measure {
        let twice = Nanos(period.0.saturating_mul(2));
        let least = Nanos::from_micros(10);
        let step = if twice.0 < least.0 { least } else { twice };
        Measure {
            feedback,
            step,
            stale: Nanos(step.0.saturating_mul(10)),
        }
    }
}

/// How many times the default feedback delay a first effect is waited for.
const UNSEEN: u64 = 10;
/// How many times the default replies can make the delay. A reply can be made up: at 5 ms nobody would be signalled while a queue
/// grows by 14 MB, at 2 us everybody twice, and a third of the link lost. So replies only lengthen, and so far.
const FORGED: u64 = 10;
/// A feedback delay is not shorter or longer than this.
const DELAYS: (u64, u64) = (2_000, 10_000_000);

/// What is known of how one flow's sender answers CNPs. In the order of use: what every reading needs comes first.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct DcqcnModel {
    /// Checkpoints: when, and how many bytes until then.
    to: (Nanos, u64),
    from: (Nanos, u64),
    /// Bits per second over the last whole measurement; 0 when not known.
    rate: u64,
    told: Option<Nanos>,
    /// Time to the sender and back, in ns; 0 until learned.
    near: u64,
    /// What the rate should be once the CNPs on their way have had effect.
    expected: u64,
    /// Before the first of them.
    before: u64,
    fallen: bool,
    /// Whether `before` was measured, not guessed.
    measured: bool,
    /// What each kind of card does.
    pub(crate) cards: Cards,
    /// 0 until learned, in ns.
    feedback: u64,
}

impl DcqcnModel {
    pub(crate) fn new(now: Nanos) -> DcqcnModel {
        DcqcnModel {
            from: (now, 0),
            to: (now, 0),
            rate: 0,
            expected: 0,
            before: 0,
            told: None,
            fallen: false,
            measured: false,
            cards: Cards::new(),
            feedback: 0,
            near: 0,
        }
    }

    /// Whether it was ever told of a CNP.
    #[cfg(test)]
    pub(crate) const fn was_told(&self) -> bool {
        self.cards.told().is_some()
    }

    /// Something of what every reading needs.
    pub(crate) const fn look(&self) -> u64 {
        self.to.1 ^ self.near
    }

    /// The time to the sender and back was learned.
    pub(crate) fn learn_near(&mut self, near: Option<Nanos>) {
        if let Some(near) = near {
            self.near = near.0;
        }
    }

    /// Takes the flow's running total of bytes.
    pub(crate) fn observe(&mut self, now: Nanos, bytes: u64, measure: &Measure) {
        if now.since(self.to.0) > measure.stale {
            // It says how much was sent, not how fast.
            (self.from, self.to, self.rate) = ((now, bytes), (now, bytes), 0);
            self.told = None;
            return;
        }
        if now.since(self.to.0) >= measure.step {
            self.rate = rate(self.to, (now, bytes));
            self.learn_delay(now);
            (self.from, self.to) = (self.to, (now, bytes));
            self.settle(now, measure);
        }
    }

    /// The sender was held back by something else at that time: nothing is learned from CNPs of before.
    pub(crate) fn forget(&mut self, at: Nanos) {
        if at > Nanos::ZERO && self.told.is_some_and(|told| told <= at) {
            self.told = None;
        }
    }

    /// When did the rate fall half of the way it should?
    fn learn_delay(&mut self, now: Nanos) {
        let Some(told) = self.told.filter(|_| self.measured && !self.fallen) else {
            return;
        };
        let half = self.before / 2 + self.expected.min(self.before) / 2;
        // A fall of less than an eighth drowns in the order of packets.
        if self.expected > self.before / 8 * 7 || self.rate > half {
            return;
        }
        self.fallen = true;
        let middle = now.since(self.to.0).0 / 2;
        let delay = now
            .since(told)
            .0
            .saturating_sub(middle)
            .clamp(DELAYS.0, DELAYS.1);
        self.feedback = match self.feedback {
            0 => delay,
            known => (known * 3 + delay) / 4,
        };
    }

    /// All CNPs must have had their effect: the rate is what is measured.
    fn settle(&mut self, now: Nanos, measure: &Measure) {
        let (Some(last), true) = (self.cards.told(), self.told.is_some()) else {
            return;
        };
        let patience = if self.fallen || self.feedback > 0 {
            self.feedback(measure.feedback).0
        } else {
            // What replies say may be forged: it lengthens the wait, and does not shorten it.
            let default = measure.feedback.0.saturating_mul(UNSEEN);
            default.max(self.near.saturating_mul(2))
        };
        if now.since(last).0 >= patience + 2 * measure.step.0 {
            self.told = None;
        }
    }

    /// Time from a CNP to its effect; `default` until learned.
    pub(crate) fn feedback(&self, default: Nanos) -> Nanos {
        if self.feedback == 0 {
            self.replies(default)
        } else {
            Nanos(self.feedback)
        }
    }

    /// Time to the sender and back as replies show it, as far as it is believed; `default` until there were any.
    pub(crate) fn replies(&self, default: Nanos) -> Nanos {
        Nanos(self.near.clamp(default.0, default.0.saturating_mul(FORGED)))
    }

    /// The rate the flow will have once the CNPs on their way have had effect; 0 when it is not known.
    pub(crate) fn predicted(&self) -> u64 {
        if self.told.is_some() {
            self.expected
        } else {
            self.rate
        }
    }

    /// The sender was signalled, while it sent at `rate`, of which that costs this share in 65,536ths.
    pub(crate) fn record_cnp_sent(&mut self, rate: u64, share: u32, now: Nanos) {
        let cut = cut_of(rate, share);
        if self.told.is_none() {
            (self.told, self.before, self.fallen) = (Some(now), rate, false);
            self.measured = self.rate > 0;
        }
        self.expected = rate.saturating_sub(cut.0);
        self.cards.signal(now);
    }
}

/// What a CNP that costs this share, in 65,536ths, would take off this rate.
pub(crate) fn cut_of(rate: u64, share: u32) -> BitRate {
    let cut = u128::from(rate) * u128::from(share) / u128::from(ONE);
    BitRate(u64::try_from(cut).unwrap_or(u64::MAX))
}

fn rate(from: (Nanos, u64), to: (Nanos, u64)) -> u64 {
    let bytes = to.1.saturating_sub(from.1);
    share(bytes, 8_000_000_000, to.0.since(from.0).0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Nanos = Nanos::from_micros(20);
    fn measure() -> Measure {
        Measure::new(DEFAULT, Nanos::from_micros(4))
    }

    const G: u64 = 1_000_000_000;

    /// A flow of `rate` gigabits that is read every 5 us, `us` long.
    struct Source {
        dcqcn: DcqcnModel,
        now: Nanos,
        bytes: u64,
    }

    impl Source {
        fn new() -> Source {
            Source {
                dcqcn: DcqcnModel::new(Nanos::ZERO),
                now: Nanos::ZERO,
                bytes: 0,
            }
        }

        fn run(&mut self, gigabits: u64, us: u64) {
            for _ in 0..us / 5 {
                self.now += Nanos::from_micros(5);
                self.bytes += gigabits * 625;
                self.dcqcn.observe(self.now, self.bytes, &measure());
            }
        }

        fn told(&mut self) {
            let rate = self.dcqcn.predicted();
            let [share, ..] = self.dcqcn.cards.cuts(self.now);
            self.dcqcn.record_cnp_sent(rate, share, self.now);
        }
    }

    #[test]
    fn a_rate_is_known_after_ten_microseconds_and_not_after_silence() {
        let mut source = Source::new();
        source.run(40, 20);
        assert_eq!(source.dcqcn.predicted(), 40 * G);
        source.now += Nanos::from_millis(1);
        source.bytes += 1_000_000;
        source.dcqcn.observe(source.now, source.bytes, &measure());
        assert_eq!(source.dcqcn.predicted(), 0);
    }

    /// Its host was paused by us: it fell, and not by the CNP.
    #[test]
    fn nothing_is_learned_across_a_pause_of_the_sender() {
        for stopped in [false, true] {
            let mut source = Source::new();
            source.run(40, 40);
            source.told();
            source.run(40, 10);
            if stopped {
                source.dcqcn.forget(source.now);
            }
            source.run(0, 400);
            assert_eq!(source.dcqcn.feedback > 0, !stopped);
        }
    }

    #[test]
    fn the_delay_is_learned() {
        let mut source = Source::new();
        source.run(40, 40);
        assert_eq!(source.dcqcn.feedback(DEFAULT), DEFAULT);
        source.told();
        source.run(40, 40);
        source.run(20, 100);
        let delay = source.dcqcn.feedback(DEFAULT).0;
        assert!((35_000..=50_000).contains(&delay), "{delay}");
        assert_eq!(source.dcqcn.predicted(), 20 * G);
    }
}
