//! How deep a cut is, by the time since the CNP before it.

use npcc_pipeline::units::Nanos;

use crate::response::Measured;

/// Upper ends of the first classes of time; the last has none.
const ENDS: [Nanos; GAPS - 1] = [
    Nanos::from_micros(100),
    Nanos::from_micros(300),
    Nanos::from_millis(1),
    Nanos::from_millis(4),
];
/// Classes of time since the CNP before.
pub const GAPS: usize = 5;
/// What the classes of time since the CNP before are called.
pub const GAP_NAMES: [&str; GAPS] = ["<100us", "<300us", "<1ms", "<4ms", ">=4ms"];
/// Most a cut costs, in 65,536ths: DCQCN's halves, and half of that for what a measurement errs.
const DEEPEST: u32 = ONE / 4 * 3;
const ONE: u32 = 1 << 16;

/// Share of the rate that a CNP costs, in thousandths, by time since the CNP before: up to 100 us, 300 us, 1 ms, 4 ms, and more. `None` until
/// learned.
pub type CutDepth = [Option<u16>; GAPS];

/// In 65,536ths; 0 until learned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cuts([u16; GAPS]);

fn class(gap: Nanos) -> usize {
    ENDS.iter().position(|end| gap < *end).unwrap_or(ENDS.len())
}

/// What each of so many CNPs cost that cost this together; three count as four, so that a cut is not taken for deeper than it is.
fn each(seen: u32, cnps: u8) -> u32 {
    // Of numbers below 2^16 the root of the product with 2^16 is in the same unit.
    let root = |left: u32| u32::try_from((u64::from(left) << 16).isqrt()).unwrap_or(ONE);
    let left = ONE.saturating_sub(seen);
    let left = match cnps {
        0 | 1 => left,
        2 => root(left),
        _ => root(root(left)),
    };
    ONE.saturating_sub(left)
}

impl Cuts {
    /// Takes a measurement of up to four CNPs. A flow that did not slow down at all says nothing of how deep a cut is.
    pub(super) fn learn(&mut self, measured: &Measured) {
        let Some((gap, cnps)) = measured.after.filter(|_| measured.worked) else {
            return;
        };
        if let (1..=4, Some(cut)) = (cnps, self.0.get_mut(class(gap))) {
            let seen = each(measured.seen, cnps).min(DEEPEST);
            let next = match *cut {
                0 => seen,
                known => (u32::from(known) * 3 + seen) / 4,
            };
            *cut = u16::try_from(next.max(1)).unwrap_or(u16::MAX);
        }
    }

    /// In 65,536ths, where it was learned.
    pub(super) fn at(&self, gap: Nanos) -> Option<u32> {
        let cut = self.0.get(class(gap)).copied().unwrap_or(0);
        (cut > 0).then_some(u32::from(cut))
    }

    pub(super) fn words(&self) -> [u64; 2] {
        let [a, b, c, d, e] = self.0.map(u64::from);
        [a | b << 16 | c << 32 | d << 48, e]
    }

    pub(super) fn depths(words: [u64; 2]) -> CutDepth {
        let [low, high] = words;
        let all = [low, low >> 16, low >> 32, low >> 48, high];
        all.map(|word| {
            let cut = word & 0xffff;
            (cut > 0).then(|| u16::try_from((cut * 1_000) >> 16).unwrap_or(1_000))
        })
    }
}
