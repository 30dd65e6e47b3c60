//! Likelihood of a rate seen after CNPs, from a sender that responds to them and from one that does not.
//!
//! Law: an observation `x` is ln(rate after / rate before). A card of a kind that responds should send between `low` and `high` (logarithms
//! of the same ratio, by its alpha and timers: [`crate::reaction_point`]); the place between them is taken as unknown, as some CNPs may have had
//! their effect or not yet.
//!
//! ```text
//! responds:   0.9 N(x; low..high, s^2)  +  0.1 U(x; -4, 0.4)
//! does not:   0.9 N(x; 0, s^2)          +  0.1 U(x; -4, 0.4)        s^2 = 0.1^2 + 1/n
//! ```
//!
//! `n` is the frames counted after. The logarithm of the first over the second is added to the host's.
//! Evidence for a host counts a sixth: a sender that does not respond then comes to odds of nine to one for one of three kinds of cards with a
//! probability of 3 times 9^-6 at most, however long it is looked at (Ville's inequality, for a product of ratios to that power), and one whose
//! rates move as no likelihood here has it in one of 1,000 histories (`host_response/history_tests.rs`).
//!
//! Logarithms are computed here from sums and products alone, so that every machine gets the same ones.

/// Log-likelihood in thousandths of a nat.
pub(crate) type MilliNats = i32;

/// One measurement to be weighed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation {
    /// ln(rate after / rate before).
    pub(crate) seen: f64,
    /// Number of frames counted after.
    pub(crate) frames: f64,
}

/// Relative uncertainty of every rate: a tenth.
const UNSURE: f64 = 0.1;
/// Share of observations that have other causes, whether the sender responds or not.
const OTHER: f64 = 0.1;
/// Range of observations that have other causes, uniformly distributed.
const OTHERS: (f64, f64) = (-4.0, 0.4);
/// Expected log-ratio above which a measurement proves nothing: a fall by less than a fifth, ln 0.8.
pub(crate) const SHOWS: f64 = -0.223_143_551;
/// Expected log-ratio above which a measurement does not speak against a host, as nobody knows a card's alpha that well: a fall by less than two
/// fifths, ln 0.6.
const AGAINST: f64 = -0.510_825_624;
/// Divisor of the evidence for a host.
const FOR: f64 = 6.0;

impl Observation {
    /// Returns true if the log-ratio lies in the range that a rate can have.
    pub(crate) fn is_possible(seen: f64) -> bool {
        seen <= OTHERS.1
    }

    fn deviation(&self) -> f64 {
        (UNSURE * UNSURE + 1.0 / self.frames.max(1.0)).sqrt()
    }

    /// Log-likelihood ratio of a card that should send within `low..=high` against one that does not respond: 0 if such a card may
    /// lose too little to show.
    pub(crate) fn weigh(&self, (low, high): (f64, f64)) -> MilliNats {
        if high > SHOWS {
            return 0;
        }
        let seen = self.seen.max(OTHERS.0);
        let (low, high) = (low.max(OTHERS.0), high.max(OTHERS.0));
        let deviation = self.deviation();
        let density = |regular: f64| (1.0 - OTHER) * regular + OTHER / (OTHERS.1 - OTHERS.0);
        let responds = density(between(seen, low.min(high), high, deviation));
        let does_not = density(normal(seen, deviation));
        let ratio = ln(responds) - ln(does_not);
        let ratio = if ratio > 0.0 {
            ratio / FOR
        } else if high > AGAINST {
            0.0
        } else {
            ratio
        };
        milli(ratio)
    }
}

/// Logarithm of the odds `to_one` : 1.
pub(crate) fn odds(to_one: u16) -> MilliNats {
    milli(ln(f64::from(to_one.max(1))))
}

/// Rounds to thousandths; these logarithms are within -100..=100.
#[allow(clippy::cast_possible_truncation, reason = "clamped before")]
fn milli(nats: f64) -> MilliNats {
    (nats.clamp(-100.0, 100.0) * 1_000.0).round() as i32
}

/// Density of the normal distribution around 0.
fn normal(x: f64, deviation: f64) -> f64 {
    let z = x / deviation;
    // 1 / sqrt(2 pi)
    0.398_942_280_401_432_7 * exp(-z * z / 2.0) / deviation
}

/// Density of a value anywhere in `low..=high` that is observed with an error of this deviation.
fn between(x: f64, low: f64, high: f64, deviation: f64) -> f64 {
    let width = high - low;
    if width < deviation / 4.0 {
        return normal(x - f64::midpoint(low, high), deviation);
    }
    let below = |edge: f64| cumulative((edge - x) / deviation);
    (below(high) - below(low)).max(0.0) / width
}

/// Share of the normal distribution below `z`, to 10^-7 (Abramowitz and Stegun, 26.2.17).
fn cumulative(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let sum = [
        1.330_274_429,
        -1.821_255_978,
        1.781_477_937,
        -0.356_563_782,
        0.319_381_530,
    ];
    let tail = normal(z, 1.0) * sum.iter().fold(0.0, |all, factor| (all + factor) * t);
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// Natural logarithm of a positive, normal number.
pub(crate) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.max(f64::MIN_POSITIVE).to_bits();
    let exponent = i32::try_from(bits >> 52).unwrap_or(0) - 1_023;
    let mantissa = f64::from_bits(bits & MANTISSA | 1_023 << 52);
    // Within 1/sqrt(2) and sqrt(2), where the series needs few terms.
    let (mantissa, exponent) = if mantissa > std::f64::consts::SQRT_2 {
        (mantissa / 2.0, exponent + 1)
    } else {
        (mantissa, exponent)
    };
    let z = (mantissa - 1.0) / (mantissa + 1.0);
    let terms = [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0];
    let sum = terms.iter().fold(0.0, |all, term| all * z * z + 1.0 / term);
    2.0 * z * sum + f64::from(exponent) * std::f64::consts::LN_2
}

/// Exponential of a number that is 0 or less.
fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    // The argument is divided by 1,024, so that the series is short, and the result squared ten times.
    let small = x / 1_024.0;
    let mut power = (1..=6u32)
        .rev()
        .fold(1.0, |all, term| 1.0 + small / f64::from(term) * all);
    for _ in 0..10 {
        power *= power;
    }
    power
}

#[cfg(test)]
#[path = "likelihood_tests.rs"]
mod tests;
