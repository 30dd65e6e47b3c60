//! Capture points of the stages: frames that were dropped, punted, consumed or handed over.

use crate::burst::Run;
use crate::capture::{Capture, CapturePoint, Event, Kind};
use crate::drop::DropReason;
use crate::frame::{FrameBuf, Meta};
use crate::units::{Nanos, PortId};

/// Outcome of a frame that goes no further than its ingress port.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoppedFrame {
    Dropped(DropReason),
    Punted,
    Consumed,
}

impl StoppedFrame {
    /// Returns the outcome for a drop reason; without one, the frame was MAC control and was consumed.
    pub(super) fn of(reason: Option<DropReason>) -> StoppedFrame {
        reason.map_or(StoppedFrame::Consumed, StoppedFrame::Dropped)
    }

    /// Returns the outcome for the decision about a frame that may be for Linux.
    pub(super) fn classified(decision: Result<(), DropReason>) -> StoppedFrame {
        decision.map_or_else(StoppedFrame::Dropped, |()| StoppedFrame::Punted)
    }
}

/// Captures a frame that goes no further than its ingress port, and keeps it if it is malformed.
#[cold]
pub(super) fn stopped<B: FrameBuf>(
    capture: &mut Capture,
    stopped: StoppedFrame,
    (buf, port): (&B, PortId),
    now: Nanos,
) {
    let point = match stopped {
        StoppedFrame::Dropped(reason) => CapturePoint::dropped(reason),
        StoppedFrame::Punted => CapturePoint::of(Kind::Punted),
        StoppedFrame::Consumed => CapturePoint::of(Kind::Consumed),
    };
    let point = CapturePoint {
        ingress: Some(port),
        ..point
    };
    capture.keep_malformed(&point, buf.data(), now);
    if capture.is_on() {
        capture.observe(&point, buf);
    }
}

/// Captures a frame that was dropped on the way to its queue or in it; `depth` is the queue's depth in wire bytes without it.
#[cold]
pub(super) fn dropped<B: FrameBuf>(
    capture: &mut Capture,
    reason: DropReason,
    buf: &B,
    meta: &Meta,
    depth: u64,
) {
    if !capture.is_on() {
        return;
    }
    let made = if meta.group.is_none() { Event::MADE } else { 0 };
    let point = CapturePoint {
        ingress: meta.ingress(),
        egress: Some(meta.egress),
        priority: Some(meta.priority),
        depth,
        flags: made | Event::REWRITTEN,
        ..CapturePoint::dropped(reason)
    };
    capture.observe(&point, buf);
}

/// Captures a run that was dropped as a whole before it was queued.
#[cold]
pub(super) fn run_dropped<B: FrameBuf>(capture: &mut Capture, reason: DropReason, run: &Run<B>) {
    for (buf, record) in run.frames.iter().zip(&run.records) {
        dropped(capture, reason, buf, &run.head.meta(record), 0);
    }
}

/// Captures a run that goes to the owner of its egress port.
#[cold]
pub(super) fn handed_over<B: FrameBuf>(capture: &mut Capture, run: &Run<B>) {
    let point = CapturePoint {
        ingress: Some(run.head.group.ingress()),
        egress: Some(run.head.egress),
        priority: Some(run.head.priority),
        flags: Event::REWRITTEN,
        ..CapturePoint::of(Kind::HandedOver)
    };
    for buf in run.frames.iter() {
        capture.observe(&point, buf);
    }
}

/// Captures a PFC frame that the device of `port` took.
#[cold]
pub(super) fn control_sent(capture: &mut Capture, port: PortId, frame: &[u8]) {
    let point = CapturePoint {
        egress: Some(port),
        flags: Event::MADE,
        ..CapturePoint::of(Kind::Sent)
    };
    capture.observe_bytes(&point, frame);
}
