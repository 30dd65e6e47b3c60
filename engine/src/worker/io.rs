//! Devices, buffers and time of a worker, as its loop needs them.
//!
//! The appliance has one implementation, [`Dpdk`](super::dpdk::Dpdk), so that the loop it runs is monomorphic. Laws of the loop run it over
//! queues in memory and a clock of their own.

use std::fmt::Debug;

use arrayvec::ArrayVec;
use npcc_pipeline::frame::{FrameBuf, FrameVec};
use npcc_pipeline::tx_ring::Device;

use crate::clock::Now;

/// Family of the types through which a worker meets its devices.
pub trait Io: Debug + Sized + 'static {
    /// Frame buffer.
    type Buf: Buffer;
    /// Receive queue.
    type Rx: Receive<Self::Buf>;
    /// Transmit queue.
    type Tx: Device<Self::Buf> + Debug;
    /// Pool of the frame buffers.
    type Pool: Pool<Self::Buf>;
    /// Time source.
    type Clock: Now + Clone;
}

/// Frame buffer that a worker fills itself, for the frames that it makes.
pub trait Buffer: FrameBuf + Debug {
    /// Makes these bytes the frame; returns false if the buffer is too small.
    fn fill(&mut self, bytes: &[u8]) -> bool;
}

/// Receive queue of a device.
pub trait Receive<B>: Debug {
    /// Returns the number of descriptors of its ring.
    fn descriptors(&self) -> u16;

    /// Receives at most `most` frames behind those in the row; returns their number.
    fn receive(&mut self, frames: &mut FrameVec<B>, most: usize) -> usize;

    /// Returns true if more than `frames` wait in the ring; `None` if the driver does not report it.
    fn holds_more_than(&self, frames: u16) -> Option<bool>;

    /// Enables or disables the interrupt for the next frame. A device without one needs nothing done.
    fn arm(&self, on: bool);
}

/// Pool of frame buffers.
pub trait Pool<B>: Debug {
    /// Appends `n` empty buffers to the row, all or none; returns false if the pool has fewer.
    fn alloc_bulk<const N: usize>(&self, row: &mut ArrayVec<B, N>, n: usize) -> bool;
}

/// Allocates one buffer; `None` if the pool has none. For rare frames.
pub(super) fn one<B>(pool: &impl Pool<B>) -> Option<B> {
    let mut row = ArrayVec::<B, 1>::new();
    pool.alloc_bulk(&mut row, 1);
    row.pop()
}
