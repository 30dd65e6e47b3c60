//! Seeded random generator for start times and phases: `SplitMix64` (Steele, Lea, Flood 2014).

use npcc_pipeline::bits::mix;

/// Generator of pseudo-random numbers that depend on the seed alone.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }
}
