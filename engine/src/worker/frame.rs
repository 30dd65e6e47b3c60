//! Frame buffer of the pipeline on an mbuf.

use arrayvec::ArrayVec;
use npcc_cnp::flow_cache::FlowCache;
use npcc_dpdk::Mbuf;
use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::BURST;

/// Packet path as the switch builds it.
pub type Datapath<B = Frame> = npcc_pipeline::datapath::Datapath<B, FlowCache>;

/// Frame in an mbuf. One segment: the pool's buffers hold the longest frame of any port, and a chain is dropped.
#[derive(Debug, derive_more::From, derive_more::Into)]
#[repr(transparent)]
pub struct Frame(pub Mbuf);

impl FrameBuf for Frame {
    #[inline]
    fn data(&self) -> &[u8] {
        self.0.data()
    }

    #[inline]
    fn data_mut(&mut self) -> &mut [u8] {
        self.0.data_mut()
    }

    #[inline]
    fn prepend(&mut self, n: usize) -> bool {
        self.0.prepend(n)
    }

    #[inline]
    fn trim_front(&mut self, n: usize) -> bool {
        self.0.trim_front(n)
    }

    #[inline]
    fn truncate(&mut self, n: usize) -> bool {
        self.0.truncate(n)
    }

    fn is_chain(&self) -> bool {
        self.0.segment_count() > 1
    }

    #[inline]
    fn handle(&self) -> usize {
        self.0.address()
    }

    #[inline]
    fn prefetch_handle(&self) {
        self.0.prefetch_header();
    }

    #[inline]
    fn prefetch(&self) {
        self.0.prefetch();
    }

    #[inline]
    fn free_all(frames: &mut ArrayVec<Frame, BURST>) {
        npcc_dpdk::free_all(frames);
    }
}
