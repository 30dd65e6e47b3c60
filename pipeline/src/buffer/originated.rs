//! Account of frames that arrived on no port.

use super::amount::Amount;
use super::config::ControlReserve;

/// Buffer account of frames that arrived on no port. There are two: of Linux's control frames, and of all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct OriginatedFrames {
    /// Amount held, reserve included.
    pub(super) held: Amount,
    /// This worker's part of their reserve.
    pub(super) reserve: Amount,
}

impl OriginatedFrames {
    /// Returns an empty account with an equal part of `bytes`, the reserve of all workers together.
    pub(super) fn of(bytes: u64, workers: u8) -> OriginatedFrames {
        OriginatedFrames {
            held: Amount::ZERO,
            reserve: ControlReserve::amount(bytes).part(workers),
        }
    }

    /// Returns the amount held beyond the reserve, which counts against the shared pool.
    pub(super) const fn shared(self) -> Amount {
        self.held.minus(self.reserve)
    }
}
