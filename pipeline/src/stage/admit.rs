//! Stage 3: room in the shared buffer, in wire bytes and in frames.
//!
//! A lossy queue may hold `alpha` times what is free of the pool (dynamic threshold, Choudhury and Hahne 1998); a lossless
//! queue may use all of it. Ingress groups, headroom and pause join here with PFC.

use crate::drop::Drop;

/// The pool's size and the lossy share.
#[derive(Debug, Clone, Copy)]
pub struct PoolConfig {
    /// Wire bytes.
    pub bytes: u64,
    /// Frames (buffers).
    pub frames: u64,
    /// Dynamic threshold of a lossy queue, in 1/256.
    pub alpha_256: u32,
}

/// What is held of the pool.
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    bytes: u64,
    frames: u64,
}

impl Pool {
    /// Empty.
    #[must_use]
    pub const fn new(config: PoolConfig) -> Pool {
        Pool {
            config,
            bytes: 0,
            frames: 0,
        }
    }

    /// Takes room for a frame of `wire_len` that will wait behind `depth` bytes.
    ///
    /// # Errors
    /// The drop reason when there is none.
    #[inline]
    pub fn charge(&mut self, wire_len: u16, depth: u64, lossless: bool) -> Result<(), Drop> {
        let bytes = self.bytes + u64::from(wire_len);
        if bytes > self.config.bytes || self.frames >= self.config.frames {
            return Err(Drop::BufferFull);
        }
        if !lossless {
            let free = self.config.bytes - self.bytes;
            let share = (u128::from(free) * u128::from(self.config.alpha_256)) >> 8;
            if u128::from(depth) + u128::from(wire_len) > share {
                return Err(Drop::QueueFull);
            }
        }
        self.bytes = bytes;
        self.frames += 1;
        Ok(())
    }

    /// Gives back a frame's room.
    #[inline]
    pub fn release(&mut self, wire_len: u16) {
        self.bytes = self.bytes.saturating_sub(u64::from(wire_len));
        self.frames = self.frames.saturating_sub(1);
    }

    /// Wire bytes held.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames held.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lossy_stops_at_its_share_and_lossless_at_the_end() {
        let mut pool = Pool::new(PoolConfig {
            bytes: 10_000,
            frames: 100,
            alpha_256: 256,
        });
        let mut depth = 0;
        while pool.charge(100, depth, false).is_ok() {
            depth += 100;
        }
        // alpha 1: a single queue settles at half the pool.
        assert_eq!(depth, 5_000);
        assert_eq!(pool.charge(100, depth, false), Err(Drop::QueueFull));
        let mut lossless = 0;
        while pool.charge(100, lossless, true).is_ok() {
            lossless += 100;
        }
        assert_eq!(lossless, 5_000);
        assert_eq!(pool.charge(100, 0, true), Err(Drop::BufferFull));
        pool.release(100);
        assert_eq!(pool.charge(100, 0, true), Ok(()));
    }

    #[test]
    fn the_pool_is_counted_in_frames_too() {
        let mut pool = Pool::new(PoolConfig {
            bytes: 1 << 30,
            frames: 3,
            alpha_256: 256,
        });
        for _ in 0..3 {
            assert_eq!(pool.charge(84, 0, true), Ok(()));
        }
        assert_eq!(pool.charge(84, 0, true), Err(Drop::BufferFull));
    }
}
