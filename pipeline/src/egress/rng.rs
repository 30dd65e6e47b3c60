//! Random numbers for RED: xorshift64* (Vigna 2016), seeded, so that a run can be repeated.

/// Pseudorandom generator with 64 bits of state.
#[derive(Debug, Clone)]
pub struct Xorshift(u64);

impl Xorshift {
    /// Returns a generator; any seed will do.
    #[must_use]
    pub const fn new(seed: u64) -> Xorshift {
        Xorshift(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns the next 32 random bits.
    #[inline]
    pub const fn next_u32(&mut self) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }
}
