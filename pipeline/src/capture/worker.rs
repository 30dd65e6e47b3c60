//! A worker's end of a capture: its order, and the ring it copies frames into.

use std::sync::Arc;

use super::event::{HEAD, Kind};
use super::fields::Fields;
use super::filter::{Filter, Sightings};
use super::point::CapturePoint;
use super::standing::Standing;
use super::tracked::Tracked;
use crate::counters;
use crate::counters::{Counter, Gauge};
use crate::frame::FrameBuf;
use crate::punt::{FrameReceiver, FrameSender, Place, ring};
use crate::units::{Nanos, PortId, Priority, WorkerId};

/// Size of a worker's ring in bytes: 3 ms of 10 Gb/s.
pub const RING: usize = 4 << 20;

/// Most bytes a worker copies in one iteration of its loop, so that an iteration grows by no more than about 15 us.
pub const TURN: usize = 128 << 10;

/// Selection of the frames to be captured.
#[derive(Debug, Clone)]
pub struct CaptureOrder {
    /// Number of the capture, above 0.
    pub id: u32,
    /// Filter that chooses the frames.
    pub filter: Filter,
    /// Set of ports; a frame must have arrived on or leave by one of them.
    pub ports: u32,
    /// Set of priorities; if all eight are set, frames without a priority are captured too.
    pub priorities: u8,
    /// Most bytes copied of each frame.
    pub snaplen: u16,
    /// Table of followed frames, if frames are followed: the filter chooses them as they are received.
    pub tracked: Option<Arc<Tracked>>,
}

counters! {
    /// Capture counters of a worker. No two workers' share a cache line.
    #[repr(align(128))]
    pub struct CaptureStats => CaptureCount {
        /// Number of the active capture; 0 if there is none.
        active: Gauge => no_metric(),
        /// Frames copied, over all captures.
        captured: Counter => no_metric().column("CAPTURED"),
        /// Frames lost because there was no room in the ring, or in the iteration's budget.
        lost: Counter => no_metric(),
    }
}

/// A worker's end of its captures.
#[derive(Debug)]
pub struct CaptureEnd {
    ring: FrameSender,
    stats: Arc<CaptureStats>,
    worker: WorkerId,
    order: Option<Box<CaptureOrder>>,
    sightings: Sightings,
    now: Nanos,
    /// Bytes that may still be copied in this iteration.
    left: usize,
}

/// Returns both ends of a worker's captures: the worker's own, and for the reader the frames and the counters.
#[must_use]
pub fn ends(worker: WorkerId) -> (CaptureEnd, FrameReceiver, Arc<CaptureStats>) {
    let (mut ring, mut frames) = ring::ring(RING);
    touch(&mut ring, &mut frames);
    let stats = Arc::new(CaptureStats::default());
    let end = CaptureEnd {
        ring,
        stats: Arc::clone(&stats),
        worker,
        order: None,
        sightings: Filter::all().sightings(),
        now: Nanos::ZERO,
        left: TURN,
    };
    (end, frames, stats)
}

/// Writes to all of a ring's memory once: a worker that had to wait for the kernel's page faults would leave its ports
/// unpolled.
fn touch(ring: &mut FrameSender, frames: &mut FrameReceiver) {
    static PIECE: [u8; 32 << 10] = [0; 32 << 10];
    for _ in 0..=RING / PIECE.len() {
        if ring.push(Place::default(), &[&PIECE]) {
            // The piece is thrown away.
            let _ = frames.pop(&mut []);
        }
    }
}

impl CaptureOrder {
    fn wants(&self, point: &CapturePoint, frame: &[u8]) -> bool {
        let Some(seen) = point.seen() else {
            return false;
        };
        if point.ports() & self.ports == 0 {
            return false;
        }
        let fields = Fields::of(frame);
        let classes = fields.pfc.or_else(|| point.priority.map(Priority::bit));
        (self.priorities == u8::MAX || classes.unwrap_or(0) & self.priorities != 0)
            && self.filter.matches(&fields, seen, point.priority)
    }
}

impl CaptureEnd {
    /// Starts an iteration: restores the byte budget.
    fn next_iteration(&mut self) {
        self.left = TURN;
    }

    /// Captures a frame if it is wanted.
    fn observe<B: FrameBuf>(&mut self, point: &CapturePoint, buf: &B) {
        let Some(order) = &self.order else { return };
        let frame = buf.data();
        let trace = match &order.tracked {
            None if order.wants(point, frame) => 0,
            None => return,
            Some(tracked) => {
                let chosen = match point.kind {
                    Kind::Received | Kind::Made if order.wants_first(point, frame) => {
                        tracked.follow(buf.handle())
                    }
                    Kind::Received | Kind::Made => None,
                    _ => tracked.number(buf.handle()),
                };
                let Some(number) = chosen else { return };
                if point.kind.is_last() {
                    tracked.forget(buf.handle());
                }
                number
            }
        };
        let (id, snaplen) = (order.id, order.snaplen);
        self.copy((id, trace), point, frame, snaplen);
    }

    /// Copies a frame into the ring, or counts it as lost.
    fn copy(&mut self, numbers: (u32, u32), point: &CapturePoint, frame: &[u8], snaplen: u16) {
        let event = point.event(numbers, (self.worker, self.now), frame.len());
        let most = usize::from(snaplen).min(usize::from(u16::MAX) - HEAD);
        let bytes = frame.get(..most).unwrap_or(frame);
        let length = HEAD + bytes.len();
        if length > self.left || !self.ring.push(Place::default(), &[&event.encode(), bytes]) {
            self.stats.lost.add(1);
            return;
        }
        self.left -= length;
        self.stats.captured.add(1);
    }
}

impl CaptureOrder {
    /// Returns true if a frame that was received, or made, is one to be followed.
    fn wants_first(&self, point: &CapturePoint, frame: &[u8]) -> bool {
        let received = CapturePoint {
            kind: Kind::Received,
            ingress: point.ingress.or(point.egress),
            ..*point
        };
        self.wants(&received, frame)
    }
}

/// Captures of one packet path. While nothing is captured, it costs a test of one flag.
#[derive(Debug, Default)]
pub struct Capture {
    on: bool,
    end: Option<Box<CaptureEnd>>,
    standing: Option<Box<Standing>>,
}

impl Capture {
    /// Returns a capture with a ring to copy into.
    #[must_use]
    pub fn new(end: CaptureEnd) -> Capture {
        Capture {
            end: Some(Box::new(end)),
            ..Capture::default()
        }
    }

    /// Keeps malformed frames from now on, in `standing`.
    pub(crate) fn stand(&mut self, standing: Standing) {
        self.standing = Some(Box::new(standing));
    }

    /// Keeps a dropped frame if it is malformed.
    pub(crate) fn keep_malformed(&mut self, point: &CapturePoint, frame: &[u8], now: Nanos) {
        if let Some(reason) = point.reason.filter(|reason| reason.is_malformed())
            && let Some(standing) = &mut self.standing
        {
            standing.keep(point, reason, frame, now);
        }
    }

    /// Returns true if a capture is active.
    #[inline]
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Activates a capture order; `None` ends the capture.
    #[cold]
    pub fn set(&mut self, order: Option<Box<CaptureOrder>>) {
        let Some(end) = &mut self.end else { return };
        self.on = order.is_some();
        let filter = order.as_ref().map(|order| &order.filter);
        end.sightings = filter.map_or_else(|| Filter::all().sightings(), Filter::sightings);
        let id = order.as_ref().map_or(0, |order| order.id);
        end.order = order;
        // Set after the last frame of the previous capture went into the ring.
        end.stats.active.set(id.into());
    }

    /// Starts an iteration.
    #[cold]
    pub(crate) fn turn(&mut self) {
        if let Some(end) = &mut self.end {
            end.next_iteration();
        }
    }

    /// Sets the time stamp of the frames captured from now on, by the worker's clock.
    #[cold]
    pub(crate) fn at(&mut self, now: Nanos) {
        if let Some(end) = &mut self.end {
            end.now = now;
        }
    }

    /// Returns true if frames are followed through the switch.
    pub(crate) fn follows(&self) -> bool {
        self.order().is_some_and(|order| order.tracked.is_some())
    }

    /// Returns true if frames of this kind that arrive on, or leave by, `port` may be wanted.
    pub(crate) fn may_want(&self, kind: Kind, port: PortId) -> bool {
        let (Some(order), Some(end)) = (self.order(), &self.end) else {
            return false;
        };
        let seen = match kind {
            Kind::Received => end.sightings.received,
            Kind::Sent => end.sightings.sent,
            _ => end.sightings.dropped,
        };
        order.tracked.is_some() || seen && order.ports & port.bit() != 0
    }

    fn order(&self) -> Option<&CaptureOrder> {
        self.end.as_ref()?.order.as_deref()
    }

    /// Captures a frame if it is wanted.
    #[cold]
    pub(crate) fn observe<B: FrameBuf>(&mut self, point: &CapturePoint, buf: &B) {
        if let Some(end) = &mut self.end {
            end.observe(point, buf);
        }
    }

    /// Captures a frame without a buffer: one that the switch made just now.
    #[cold]
    pub(crate) fn observe_bytes(&mut self, point: &CapturePoint, frame: &[u8]) {
        let Some(end) = &mut self.end else { return };
        if let Some(order) = &end.order
            && order.tracked.is_none()
            && order.wants(point, frame)
        {
            let (id, snaplen) = (order.id, order.snaplen);
            end.copy((id, 0), point, frame, snaplen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::HeapFrame;

    fn order() -> CaptureOrder {
        CaptureOrder {
            id: 1,
            filter: Filter::all(),
            ports: u32::MAX,
            priorities: u8::MAX,
            snaplen: u16::MAX,
            tracked: None,
        }
    }

    /// A frame of priority 3 from port 0 to port 1, at a stage.
    fn point(kind: Kind) -> CapturePoint {
        CapturePoint {
            ingress: Some(PortId(0)),
            egress: Some(PortId(1)),
            priority: Some(Priority::new(3)),
            ..CapturePoint::of(kind)
        }
    }

    #[test]
    fn a_capture_has_the_frames_of_its_ports_and_priorities_only() {
        let wants = |ports, priorities, priority: Option<u8>| {
            let order = CaptureOrder {
                ports,
                priorities,
                ..order()
            };
            let point = CapturePoint {
                priority: priority.map(Priority::new),
                ..point(Kind::Sent)
            };
            order.wants(&point, &[0; 64])
        };
        assert!(wants(0b10, u8::MAX, Some(3)) && !wants(0b01, u8::MAX, Some(3)));
        assert!(wants(0b10, 0b1000, Some(3)) && !wants(0b10, 0b0111, Some(3)));
        assert!(wants(0b10, u8::MAX, None) && !wants(0b10, 0b1000, None));
    }

    #[test]
    fn a_tracked_frame_is_forgotten_when_it_has_left() {
        let tracked = Arc::new(Tracked::new(4));
        let (end, _frames, stats) = ends(WorkerId::FIRST);
        let mut capture = Capture::new(end);
        capture.set(Some(Box::new(CaptureOrder {
            tracked: Some(Arc::clone(&tracked)),
            ..order()
        })));
        let frame = HeapFrame::new(&[0; 64]);
        for (kind, number) in [
            (Kind::Received, Some(1)),
            (Kind::Queued, Some(1)),
            (Kind::Sent, None),
            (Kind::Sent, None),
        ] {
            capture.observe(&point(kind), &frame);
            assert_eq!(tracked.number(frame.handle()), number, "{kind:?}");
        }
        assert_eq!(stats.captured.get(), 3);
    }
}
