//! DCQCN model of one flow: its rate, the delay until a CNP shows in it, and the share of it that a CNP costs.
//!
//! A CNP costs half of alpha. Alpha is that of cards with NVIDIA's defaults: 1 at first, halved in 142 us without a CNP, and 5/1,024 more by each.
//! A model of three kinds of cards, with the likeliest chosen from each host's measured rates, met no more cells of the acceptance (docs/evidence.md).
//! The feedback delay is the time from a CNP to the fall of the flow's rate, as last seen; before the first, the time to the sender and back as replies show it
//! ([`crate::host_rtt`]), between the default and ten times that; before that, the default (20 us).

use npcc_pipeline::units::{BitRate, Nanos};

use crate::response::Response;
use crate::window::mul_div;

/// The value 1 in the fixed point of shares and alpha (16 fractional bits).
pub(crate) const ONE: u32 = 1 << 16;
/// Minimum time between two CNPs of a flow: the default of ConnectX as a notification point (`min_time_between_cnps`).
pub const NIC_MIN_CNP_INTERVAL: Nanos = Nanos::from_micros(4);
/// Time in which alpha halves without a CNP, in ns: 1,019/1,024 by 1 us (NVIDIA's `dce_tcp_g` and `dce_tcp_rtt`).
const HALF_LIFE: u64 = 142_000;
/// Gain of alpha by a CNP (g), and its least value.
const GAIN: u32 = ONE / 1_024 * 5;

/// Times by which flows are measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// Time from a CNP to its effect, until learned.
    pub(crate) feedback: Nanos,
    /// Minimum time over which a rate is measured.
    step: Nanos,
    /// Time without a reading after which a flow's rate is unknown.
    pub(crate) stale: Nanos,
}

/// Minimum time over which a rate is measured. A card's rate limiter may send 64 KB at the line rate and then wait: over 10 us such a flow of
/// 25 Gb/s in a link of 100 Gb/s seems to send four times its rate, or nothing.
const STEP: Nanos = Nanos::from_micros(50);

impl Measure {
    /// Times for flows read once in `period`.
    pub(crate) const fn new(feedback: Nanos, period: Nanos) -> Measure {
        let twice = Nanos(period.0.saturating_mul(2));
        let step = if twice.0 < STEP.0 { STEP } else { twice };
        Measure {
            feedback,
            step,
            stale: Nanos(step.0.saturating_mul(10)),
        }
    }
}

/// Multiple of the default feedback delay for which a first effect is waited for, and up to which replies can raise the delay. A reply can be made
/// up: at 5 ms nobody would be signalled while a queue grows by 14 MB, at 2 us everybody twice, and a third of the link lost. So replies only
/// lengthen it, and up to this limit.
const UNLEARNED: u64 = 10;
/// Limits of a feedback delay, in ns.
const DELAYS: (u64, u64) = (2_000, 10_000_000);

/// Model of one flow's rate and of its sender's response to CNPs. In the order of use: what every reading needs comes first.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct DcqcnModel {
    /// Checkpoints of the rate measurement: time, and total bytes at that time.
    to: (Nanos, u64),
    from: (Nanos, u64),
    /// Rate in bit/s over the last whole measurement; 0 when not known.
    rate: u64,
    signalled: Option<Nanos>,
    /// Time to the sender and back, in ns; 0 until learned.
    sender_rtt: u64,
    /// Rate expected once the CNPs on their way have taken effect, in bit/s.
    expected: u64,
    /// Rate before the first of those CNPs, in bit/s.
    before: u64,
    fallen: bool,
    /// True if `before` was measured, not guessed.
    measured: bool,
    /// Alpha right after the latest CNP.
    alpha: u32,
    /// Time of the latest CNP to the sender, from this switch or from a receiver.
    last: Option<Nanos>,
    /// Response to the latest CNPs.
    pub(crate) response: Response,
    /// Feedback delay in ns; 0 until learned.
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
            signalled: None,
            fallen: false,
            measured: false,
            alpha: ONE,
            last: None,
            response: Response::Unknown,
            feedback: 0,
            sender_rtt: 0,
        }
    }

    /// Takes over the sender's state from the entry of the same flow in another queue: its reaction point, and the delays to it.
    pub(crate) const fn adopt_sender(&mut self, other: &DcqcnModel) {
        (self.alpha, self.last) = (other.alpha, other.last);
        (self.feedback, self.sender_rtt) = (other.feedback, other.sender_rtt);
    }

    /// Returns true if the model has recorded any CNP.
    #[cfg(test)]
    pub(crate) const fn was_signalled(&self) -> bool {
        self.last.is_some()
    }

    /// Reads the fields that every reading needs, to bring them into the cache.
    pub(crate) const fn look(&self) -> u64 {
        self.to.1 ^ self.sender_rtt
    }

    /// Stores the measured time to the sender and back.
    pub(crate) fn learn_sender_rtt(&mut self, rtt: Option<Nanos>) {
        if let Some(rtt) = rtt {
            self.sender_rtt = rtt.0;
        }
    }

    /// Takes the flow's running total of bytes.
    pub(crate) fn observe(&mut self, now: Nanos, bytes: u64, measure: &Measure) {
        if now.since(self.to.0) > measure.stale {
            // The total says how much was sent, not how fast.
            (self.from, self.to, self.rate) = ((now, bytes), (now, bytes), 0);
            self.signalled = None;
            return;
        }
        if now.since(self.to.0) >= measure.step {
            self.rate = rate(self.to, (now, bytes));
            self.learn_delay(now);
            (self.from, self.to) = (self.to, (now, bytes));
            self.settle(now, measure);
        }
    }

    /// Forgets CNPs sent before `at`, when something else held the sender back: nothing is learned from them.
    pub(crate) fn forget(&mut self, at: Nanos) {
        if at > Nanos::ZERO && self.signalled.is_some_and(|signalled| signalled <= at) {
            self.signalled = None;
        }
    }

    /// Learns the feedback delay: the time at which the rate fell half of the way it should.
    fn learn_delay(&mut self, now: Nanos) {
        let Some(signalled) = self.signalled.filter(|_| self.measured && !self.fallen) else {
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
            .since(signalled)
            .0
            .saturating_sub(middle)
            .clamp(DELAYS.0, DELAYS.1);
        self.feedback = match self.feedback {
            0 => delay,
            known => (known * 3 + delay) / 4,
        };
    }

    /// Ends the wait once all CNPs must have taken effect: the rate is then the measured one.
    fn settle(&mut self, now: Nanos, measure: &Measure) {
        let (Some(last), true) = (self.last, self.signalled.is_some()) else {
            return;
        };
        let patience = if self.fallen || self.feedback > 0 {
            self.feedback(measure.feedback).0
        } else {
            // The delay that replies show may be forged: it lengthens the wait, and does not shorten it.
            let default = measure.feedback.0.saturating_mul(UNLEARNED);
            default.max(self.sender_rtt.saturating_mul(2))
        };
        if now.since(last).0 >= patience + 2 * measure.step.0 {
            self.signalled = None;
            // Slower flows have less than eight frames of 1 KiB in a measurement.
            if self.measured && mul_div(self.before, measure.step.0, 8_000_000_000) >= 8 << 10 {
                self.response = Response::of(self.before, self.rate);
            }
        }
    }

    /// Share of its rate that a CNP sent now takes off the sender, in 65,536ths.
    pub(crate) fn cut_share(&self, now: Nanos) -> u32 {
        let Some(last) = self.last else {
            return ONE / 2;
        };
        let passed = now.since(last).0;
        let halves = u32::try_from(passed / HALF_LIFE).unwrap_or(u32::MAX);
        let whole = self.alpha.checked_shr(halves).unwrap_or(0);
        // Between two halvings along the chord, at most 6 % above the curve.
        let part = u64::from(whole / 2) * (passed % HALF_LIFE) / HALF_LIFE;
        whole
            .saturating_sub(u32::try_from(part).unwrap_or(0))
            .max(GAIN)
            / 2
    }

    /// Time from a CNP to its effect; `default` until learned.
    pub(crate) fn feedback(&self, default: Nanos) -> Nanos {
        if self.feedback == 0 {
            self.bounded_rtt(default)
        } else {
            Nanos(self.feedback)
        }
    }

    /// Time to the sender and back as replies show it, within the limits in which it is believed; `default` until there were any.
    pub(crate) fn bounded_rtt(&self, default: Nanos) -> Nanos {
        Nanos(
            self.sender_rtt
                .clamp(default.0, default.0.saturating_mul(UNLEARNED)),
        )
    }

    /// The rate the flow will have once the CNPs on their way have had effect; 0 when it is not known.
    pub(crate) fn predicted(&self) -> u64 {
        if self.signalled.is_some() {
            self.expected
        } else {
            self.rate
        }
    }

    /// Records a CNP to the sender while it sent at `rate`.
    pub(crate) fn record_cnp_sent(&mut self, rate: u64, now: Nanos) {
        let share = self.cut_share(now);
        let cut = cut_of(rate, share);
        if self.signalled.is_none() {
            (self.signalled, self.before, self.fallen) = (Some(now), rate, false);
            self.measured = self.rate > 0;
        }
        self.expected = rate.saturating_sub(cut.0);
        self.alpha = (share * 2 + GAIN).min(ONE);
        self.last = Some(now);
    }
}

/// Cut in bit/s by a CNP that costs this share of the rate, in 65,536ths.
pub(crate) fn cut_of(rate: u64, share: u32) -> BitRate {
    let cut = u128::from(rate) * u128::from(share) / u128::from(ONE);
    BitRate(u64::try_from(cut).unwrap_or(u64::MAX))
}

fn rate(from: (Nanos, u64), to: (Nanos, u64)) -> u64 {
    let bytes = to.1.saturating_sub(from.1);
    mul_div(bytes, 8_000_000_000, to.0.since(from.0).0.max(1))
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

        fn signalled(&mut self) {
            let rate = self.dcqcn.predicted();
            self.dcqcn.record_cnp_sent(rate, self.now);
        }
    }

    #[test]
    fn a_rate_is_known_after_fifty_microseconds_and_not_after_silence() {
        let mut source = Source::new();
        source.run(40, 45);
        assert_eq!(source.dcqcn.predicted(), 0);
        source.run(40, 5);
        assert_eq!(source.dcqcn.predicted(), 40 * G);
        source.now += Nanos::from_millis(1);
        source.bytes += 1_000_000;
        source.dcqcn.observe(source.now, source.bytes, &measure());
        assert_eq!(source.dcqcn.predicted(), 0);
    }

    /// Law: a flow whose card sends bursts of 64 KB at the line rate of 100 Gb/s has the rate of its limiter. The bursts come every 20.48 us at 25 Gb/s:
    /// a measurement covers two or three of them.
    #[test]
    fn a_flow_of_bursts_has_the_rate_of_its_limiter() {
        let mut source = Source::new();
        for ns in (0..1_000_000u64).step_by(1_000) {
            let (bursts, into) = (ns / 20_480, ns % 20_480);
            let bytes = bursts * 64_000 + (into * 25 / 2).min(64_000);
            source.dcqcn.observe(Nanos(ns), bytes, &measure());
            if ns >= 50_000 {
                let rate = source.dcqcn.predicted();
                assert!((20 * G..=31 * G).contains(&rate), "{rate} at {ns} ns");
            }
        }
    }

    /// Law: a fall of the rate during a pause of its host, which is not the CNP's effect, teaches nothing.
    #[test]
    fn nothing_is_learned_across_a_pause_of_the_sender() {
        for stopped in [false, true] {
            let mut source = Source::new();
            source.run(40, 100);
            source.signalled();
            source.run(40, 10);
            if stopped {
                source.dcqcn.forget(source.now);
            }
            source.run(0, 400);
            assert_eq!(source.dcqcn.feedback > 0, !stopped);
        }
    }

    /// Law: the delay learned is the middle of the first measurement of which half has the lower rate: never too short, and too long by less than a
    /// measurement.
    #[test]
    fn the_delay_is_learned() {
        for (us, learned) in [(20, 25), (25, 25), (30, 75), (40, 75), (75, 75), (80, 125)] {
            let mut source = Source::new();
            source.run(40, 100);
            assert_eq!(source.dcqcn.feedback(DEFAULT), DEFAULT);
            source.signalled();
            source.run(40, us);
            source.run(20, 150);
            let delay = source.dcqcn.feedback(DEFAULT);
            assert_eq!(delay, Nanos::from_micros(learned), "{us} us");
            assert_eq!(source.dcqcn.predicted(), 20 * G);
        }
    }
}
