//! DPDK's queues, pools and clock as a worker's devices.

use arrayvec::ArrayVec;
use npcc_dpdk::{Mempool, RxQueue, TxQueue};
use npcc_pipeline::frame::{FrameBuf, FrameVec};
use npcc_pipeline::tx_ring::Device;

use super::frame::Frame;
use super::io::{Buffer, Io, Pool, Receive};
use crate::clock::Clock;

/// Devices of the appliance.
#[derive(Debug, Clone, Copy)]
pub struct Dpdk;

impl Io for Dpdk {
    type Buf = Frame;
    type Rx = RxQueue;
    type Tx = TxQueue;
    type Pool = Mempool;
    type Clock = Clock;
}

impl Buffer for Frame {
    #[inline]
    fn fill(&mut self, bytes: &[u8]) -> bool {
        self.0.fill(bytes).is_ok()
    }
}

impl Receive<Frame> for RxQueue {
    #[inline]
    fn descriptors(&self) -> u16 {
        self.descriptors()
    }

    #[inline]
    fn receive(&mut self, frames: &mut FrameVec<Frame>, most: usize) -> usize {
        self.rx_up_to(&mut **frames, most)
    }

    #[inline]
    fn holds_more_than(&self, frames: u16) -> Option<bool> {
        self.holds_more_than(frames)
    }

    fn arm(&self, on: bool) {
        // The result is ignored: a device whose interrupt is always on, or that has none, needs no arming.
        self.arm(on);
    }
}

impl Device<Frame> for TxQueue {
    #[inline]
    fn descriptors(&self) -> u16 {
        self.descriptors()
    }

    #[inline]
    fn is_full(&self, offset: u16) -> Option<bool> {
        self.is_full(offset)
    }

    #[inline]
    fn send(&mut self, frames: &mut FrameVec<Frame>, most: usize) -> usize {
        self.tx_up_to(&mut **frames, most)
    }

    #[inline]
    fn length(&self, frame: &Frame) -> usize {
        frame.data().len()
    }
}

impl Pool<Frame> for Mempool {
    #[inline]
    fn alloc_bulk<const N: usize>(&self, row: &mut ArrayVec<Frame, N>, n: usize) -> bool {
        self.alloc_bulk(row, n).is_ok()
    }
}
