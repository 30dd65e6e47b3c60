//! Capture points of the packet path. None of this runs while nothing is captured.
//!
//! The stages' decisions are in the records and heads of runs, so a capture changes nothing and needs nothing from a stage.

use super::Datapath;
use super::punted::ends;
use crate::burst::Run;
use crate::capture::{
    Capture, CaptureEnd, CaptureOrder, CapturePoint, Captured, Event, Kind, Notes, Standing,
};
use crate::drop::DropReason;
use crate::egress::serve::TxSink;
use crate::frame::{FrameBuf, FrameVec, Meta};
use crate::parse::{Kind as Parsing, parse};
use crate::per::PerPriority;
use crate::tap::{FlowTap, watched};
use crate::units::{Nanos, PortId, Priority};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Attaches a capture ring, before the first frame.
    #[must_use]
    pub fn with_capture(mut self, end: CaptureEnd) -> Datapath<B, T> {
        self.capture = Capture::new(end);
        self
    }

    /// Keeps malformed frames from now on, in addition to other captures.
    pub fn keep_malformed(&mut self, standing: Standing) {
        self.capture.stand(standing);
    }

    /// Activates a capture order; `None` ends the capture.
    #[cold]
    pub fn set_capture(&mut self, order: Option<Box<CaptureOrder>>) {
        self.capture.set(order);
    }

    /// Captures frames that [`Datapath::egress`] handed out and that are dropped before a device took them.
    #[cold]
    pub fn capture_abandoned(&mut self, port: PortId, reason: DropReason, frames: &[B]) {
        if !self.capture.is_on() {
            return;
        }
        let point = CapturePoint {
            egress: Some(port),
            flags: Event::REWRITTEN,
            ..CapturePoint::dropped(reason)
        };
        for buf in frames {
            self.capture.observe(&point, buf);
        }
    }

    /// Captures a burst as it was received.
    #[cold]
    #[inline(never)]
    pub(super) fn capture_received(&mut self, port: PortId, frames: &FrameVec<B>, now: Nanos) {
        self.capture.at(now);
        if !self.capture.may_want(Kind::Received, port) {
            return;
        }
        let follows = self.capture.follows();
        for buf in frames.iter() {
            let notes = if follows {
                self.notes_of(buf.data())
            } else {
                Notes::default()
            };
            let point = CapturePoint {
                ingress: Some(port),
                priority: self.class_of(port, buf.data()),
                notes,
                ..CapturePoint::of(Kind::Received)
            };
            self.capture.observe(&point, buf);
        }
    }

    /// Returns the priority of a frame as received, if it is an IP packet.
    fn class_of(&self, port: PortId, frame: &[u8]) -> Option<Priority> {
        let parsed = parse(frame).ok()?;
        let routed = parsed.kind != Parsing::MacControl;
        routed.then(|| self.ingress[port].classifier().priority(&parsed))
    }

    /// Returns the next-hop group and flow hash of a received frame.
    fn notes_of(&self, frame: &[u8]) -> Notes {
        let Some((parsed, destination)) = ends(frame) else {
            return Notes::default();
        };
        Notes {
            next_hops: self.fib.group(destination),
            flow_hash: self.hash(frame, &parsed),
            ..Notes::default()
        }
    }

    /// Captures an admitted run, before it is queued.
    #[cold]
    #[inline(never)]
    pub(super) fn capture_queued(&mut self, run: &Run<B>, now: Nanos) {
        self.capture.at(now);
        if !self.capture.follows() {
            return;
        }
        let head = &run.head;
        let (port, waits) = (&self.egress_side.ports[head.egress], head.amount.bytes);
        let depth = port.depth(head.priority);
        let kind = if depth == waits {
            Kind::Bypassed
        } else {
            Kind::Queued
        };
        let group = self.egress_side.buffer.group(head.group);
        let is_watched = watched(self.tap.ports(), head);
        let point = CapturePoint {
            ingress: Some(head.group.ingress()).filter(|_| !head.group.is_none()),
            egress: Some(head.egress),
            priority: Some(head.priority),
            depth: depth.saturating_sub(waits),
            flags: Event::REWRITTEN | if is_watched { Event::WATCHED } else { 0 },
            notes: Notes {
                pool: self.egress_side.buffer.used().bytes,
                group: group.map_or(0, |group| group.held().bytes),
                headroom: group.map_or(0, |group| group.headroom().bytes),
                ..Notes::default()
            },
            ..CapturePoint::of(kind)
        };
        for buf in run.frames.iter() {
            self.capture.observe(&point, buf);
        }
    }

    /// Captures a frame that the switch made, or Linux sent, before it is queued.
    #[cold]
    #[inline(never)]
    pub(super) fn capture_made(&mut self, buf: &B, meta: &Meta, now: Nanos) {
        self.capture.at(now);
        let point = CapturePoint {
            egress: Some(meta.egress),
            priority: Some(meta.priority),
            depth: self.egress_side.ports[meta.egress].depth(meta.priority),
            flags: Event::MADE | Event::REWRITTEN,
            ..CapturePoint::of(Kind::Made)
        };
        self.capture.observe(&point, buf);
    }

    /// Runs [`Datapath::egress`] with a capture of the frames that leave.
    #[cold]
    #[inline(never)]
    pub(super) fn send_captured(&mut self, port: PortId, out: &mut impl TxSink<B>, now: Nanos) {
        self.capture.at(now);
        if !self.capture.may_want(Kind::Sent, port) {
            return self.send_uncaptured(port, out, now);
        }
        let egress = &self.egress_side.ports[port];
        let depths = Priority::all().map(|priority| egress.depth(priority));
        let mut all = PerPriority::default();
        for ((_, place), depth) in all.iter_mut().zip(depths) {
            *place = depth;
        }
        let mut capture = std::mem::take(&mut self.capture);
        let mut out = Captured {
            out,
            capture: &mut capture,
            depths: all,
        };
        self.send_uncaptured(port, &mut out, now);
        self.capture = capture;
    }
}
