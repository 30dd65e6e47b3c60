//! Sink of a port while frames are captured: passes each frame on, and captures it as it is handed to the device.

use super::event::{Event, Kind};
use super::point::CapturePoint;
use super::worker::Capture;
use crate::burst::Run;
use crate::egress::serve::TxSink;
use crate::frame::{FrameBuf, Meta, Queued};
use crate::per::PerPriority;
use crate::units::Priority;

/// Sink that captures each frame before passing it on.
pub(crate) struct Captured<'a, O> {
    pub(crate) out: &'a mut O,
    pub(crate) capture: &'a mut Capture,
    /// Wire bytes in each queue; reduced by each frame handed out.
    pub(crate) depths: PerPriority<u64>,
}

impl<O> Captured<'_, O> {
    fn observe<B: FrameBuf>(&mut self, buf: &B, meta: &Meta) {
        let depth = &mut self.depths[meta.priority];
        *depth = depth.saturating_sub(meta.wire_len().into());
        let made = if meta.group.is_none() { Event::MADE } else { 0 };
        let point = CapturePoint {
            ingress: meta.ingress(),
            egress: Some(meta.egress),
            priority: Some(meta.priority),
            depth: *depth,
            flags: made | Event::REWRITTEN,
            ..CapturePoint::of(Kind::Sent)
        };
        self.capture.observe(&point, buf);
    }
}

impl<B: FrameBuf, O: TxSink<B>> TxSink<B> for Captured<'_, O> {
    fn free_slots(&self) -> usize {
        self.out.free_slots()
    }

    fn byte_budget(&self) -> i64 {
        self.out.byte_budget()
    }

    fn tx_queue(&self, priority: Priority) -> Priority {
        self.out.tx_queue(priority)
    }

    fn put(&mut self, frame: Queued<B>) {
        self.observe(&frame.buf, &frame.meta);
        self.out.put(frame);
    }

    fn put_run(&mut self, run: &mut Run<B>) {
        let head = run.head;
        for (buf, record) in run.frames.iter().zip(&run.records) {
            self.observe(buf, &head.meta(record));
        }
        self.out.put_run(run);
    }
}
