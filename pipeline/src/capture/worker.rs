//! A worker's end of a capture: what it looks for, and the ring it copies frames into.

use std::sync::Arc;

use super::event::{HEAD, Kind};
use super::fields::Fields;
use super::filter::{Filter, Sightings};
use super::look::Look;
use super::standing::Standing;
use super::tracked::Tracked;
use crate::counters;
use crate::counters::{Counter, Gauge};
use crate::frame::FrameBuf;
use crate::punt::{FrameReceiver, FrameSender, Place, ring};
use crate::units::{Nanos, PortId, Priority, WorkerId};

/// Bytes of a worker's ring: 3 ms of 10 Gb/s.
pub const RING: usize = 4 << 20;

/// Bytes a worker copies in one turn of its loop at most, so that a turn grows by some 15 us and no more.
pub const TURN: usize = 128 << 10;

/// What is to be captured.
#[derive(Debug, Clone)]
pub struct CaptureOrder {
    /// Its number, above 0.
    pub id: u32,
    /// The frames.
    pub filter: Filter,
    /// The ports, as a set: those a frame came in by or leaves by.
    pub ports: u32,
    /// The priorities, as a set: of all eight, frames without one are captured too.
    pub priorities: u8,
    /// Bytes of each frame at most.
    pub snaplen: u16,
    /// The frames that are followed, where frames are: the filter chooses them as they come in.
    pub tracked: Option<Arc<Tracked>>,
}

counters! {
    /// What a worker tells of captures. No two workers' share a line of the cache.
    #[repr(align(128))]
    pub struct CaptureStats => CaptureCount {
        /// Number of the capture that is on; 0 is none.
        active: Gauge => no_metric(),
        /// Frames copied, of all captures.
        captured: Counter => no_metric().column("CAPTURED"),
        /// Frames that were to be captured and found no room in the ring, or in the turn.
        lost: Counter => no_metric(),
    }
}

/// A worker's end.
#[derive(Debug)]
pub struct CaptureEnd {
    ring: FrameSender,
    stats: Arc<CaptureStats>,
    worker: WorkerId,
    order: Option<Box<CaptureOrder>>,
    sightings: Sightings,
    now: Nanos,
    /// Bytes that may still be copied in this turn.
    left: usize,
}

/// Both ends of a worker's captures: its own; the frames, and what it tells.
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

/// Writes to all of a ring's memory once: a worker that had to wait for the kernel's pages would be away from its ports.
fn touch(ring: &mut FrameSender, frames: &mut FrameReceiver) {
    static PIECE: [u8; 32 << 10] = [0; 32 << 10];
    for _ in 0..=RING / PIECE.len() {
        if ring.push(Place::default(), &[&PIECE]) {
            // It is thrown away.
            let _ = frames.pop(&mut []);
        }
    }
}

impl CaptureOrder {
    fn wants(&self, look: &Look, frame: &[u8]) -> bool {
        let Some(seen) = look.seen() else {
            return false;
        };
        if look.ports() & self.ports == 0 {
            return false;
        }
        let fields = Fields::of(frame);
        let classes = fields.pfc.or_else(|| look.priority.map(Priority::bit));
        (self.priorities == u8::MAX || classes.unwrap_or(0) & self.priorities != 0)
            && self.filter.matches(&fields, seen, look.priority)
    }
}

impl CaptureEnd {
    /// A turn begins.
    fn turn(&mut self) {
        self.left = TURN;
    }

    /// Captures a frame if it is wanted.
    fn look<B: FrameBuf>(&mut self, look: &Look, buf: &B) {
        let Some(order) = &self.order else { return };
        let frame = buf.data();
        let trace = match &order.tracked {
            None if order.wants(look, frame) => 0,
            None => return,
            Some(tracked) => {
                let chosen = match look.kind {
                    Kind::Received | Kind::Made if order.wants_first(look, frame) => {
                        tracked.follow(buf.handle())
                    }
                    Kind::Received | Kind::Made => None,
                    _ => tracked.number(buf.handle()),
                };
                let Some(number) = chosen else { return };
                if look.kind.is_last() {
                    tracked.forget(buf.handle());
                }
                number
            }
        };
        let (id, snaplen) = (order.id, order.snaplen);
        self.copy((id, trace), look, frame, snaplen);
    }

    /// Copies a frame into the ring, or counts that it could not.
    fn copy(&mut self, numbers: (u32, u32), look: &Look, frame: &[u8], snaplen: u16) {
        let event = look.event(numbers, (self.worker, self.now), frame.len());
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
    /// Whether a frame that came in, or was made, is one to be followed.
    fn wants_first(&self, look: &Look, frame: &[u8]) -> bool {
        let received = Look {
            kind: Kind::Received,
            ingress: look.ingress.or(look.egress),
            ..*look
        };
        self.wants(&received, frame)
    }
}

/// A path's captures. While nothing is captured it is one flag that is tested.
#[derive(Debug, Default)]
pub struct Capture {
    on: bool,
    end: Option<Box<CaptureEnd>>,
    standing: Option<Box<Standing>>,
}

impl Capture {
    /// With a ring to copy into.
    #[must_use]
    pub fn new(end: CaptureEnd) -> Capture {
        Capture {
            end: Some(Box::new(end)),
            ..Capture::default()
        }
    }

    /// Keeps malformed frames from now on.
    pub(crate) fn stand(&mut self, standing: Standing) {
        self.standing = Some(Box::new(standing));
    }

    /// Keeps a frame that was dropped, if it is malformed.
    pub(crate) fn keep_malformed(&mut self, look: &Look, frame: &[u8], now: Nanos) {
        if let Some(reason) = look.reason.filter(|reason| reason.is_malformed())
            && let Some(standing) = &mut self.standing
        {
            standing.keep(look, reason, frame, now);
        }
    }

    /// Whether anything is captured.
    #[inline]
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// Captures by this order from now on, or nothing.
    #[cold]
    pub fn set(&mut self, order: Option<Box<CaptureOrder>>) {
        let Some(end) = &mut self.end else { return };
        self.on = order.is_some();
        let filter = order.as_ref().map(|order| &order.filter);
        end.sightings = filter.map_or_else(|| Filter::all().sightings(), Filter::sightings);
        let id = order.as_ref().map_or(0, |order| order.id);
        end.order = order;
        // After the last frame of the one before went into the ring.
        end.stats.active.set(id.into());
    }

    /// A turn begins.
    #[cold]
    pub(crate) fn turn(&mut self) {
        if let Some(end) = &mut self.end {
            end.turn();
        }
    }

    /// It is this time of the worker's clock.
    #[cold]
    pub(crate) fn at(&mut self, now: Nanos) {
        if let Some(end) = &mut self.end {
            end.now = now;
        }
    }

    /// Whether frames are followed, and not only seen.
    pub(crate) fn follows(&self) -> bool {
        self.order().is_some_and(|order| order.tracked.is_some())
    }

    /// Whether frames of this kind that come in, or leave, by `port` may be wanted.
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
    pub(crate) fn look<B: FrameBuf>(&mut self, look: &Look, buf: &B) {
        if let Some(end) = &mut self.end {
            end.look(look, buf);
        }
    }

    /// Captures a frame of which there is no buffer: one that the switch made for this moment.
    #[cold]
    pub(crate) fn look_at_bytes(&mut self, look: &Look, frame: &[u8]) {
        let Some(end) = &mut self.end else { return };
        if let Some(order) = &end.order
            && order.tracked.is_none()
            && order.wants(look, frame)
        {
            let (id, snaplen) = (order.id, order.snaplen);
            end.copy((id, 0), look, frame, snaplen);
        }
    }
}
