//! A port's way out: whose turn it is, and how much of its queue it sends in one go.
//!
//! Law: what is sent together in a turn would have been sent one by one in the same order. A turn ends with the queue's
//! deficit, with its rate or the port's, or after each frame where a minimum rate may come first.

use arrayvec::ArrayVec;

use super::fifo::FifoStore;
use super::marking::Marking;
use super::port::EgressPort;
use crate::buffer::{Amount, GroupId, HandedOut, Owed, Receipt};
use crate::counters::PortCounters;
use crate::frame::{FrameBuf, Meta, Queued, Row};
use crate::stage::packet::Packet;
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, Priority};

/// Where the frames of a port go: what stands between it and its device.
pub trait Outlet<B> {
    /// Whether it asks what travels with a frame.
    const ASKS: bool = true;

    /// How many frames it takes, at most a burst.
    fn room(&self) -> usize;

    /// Takes a frame; there is room.
    fn put(&mut self, frame: Queued<B>);

    /// Takes all of `frames`, which is empty afterwards; there is room. They have `bytes`, and `packets` is what is known of
    /// them, if this [asks](Outlet::ASKS).
    #[inline]
    fn put_all(&mut self, frames: &mut Row<B>, packets: &[Packet], _bytes: u64) {
        for (buf, packet) in frames.drain(..).zip(packets) {
            self.put(Queued {
                buf,
                meta: packet.meta,
            });
        }
    }
}

impl<B> Outlet<B> for ArrayVec<Queued<B>, BURST> {
    #[inline]
    fn room(&self) -> usize {
        self.remaining_capacity()
    }

    #[inline]
    fn put(&mut self, frame: Queued<B>) {
        self.push(frame);
    }
}

/// The buffers alone.
impl<B> Outlet<B> for Row<B> {
    const ASKS: bool = false;

    #[inline]
    fn room(&self) -> usize {
        self.remaining_capacity()
    }

    #[inline]
    fn put(&mut self, frame: Queued<B>) {
        self.push(frame.buf);
    }

    #[inline]
    fn put_all(&mut self, frames: &mut Row<B>, _: &[Packet], _: u64) {
        if self.is_empty() {
            std::mem::swap(self, frames);
        } else {
            self.extend(frames.drain(..));
        }
    }
}

/// A queue's turn to send.
#[derive(Debug, Clone, Copy)]
struct Turn {
    priority: Priority,
    /// At most so many bytes on the wire.
    bytes: i64,
    /// At most so many frames.
    frames: usize,
}

/// What of a row may go.
#[derive(Debug, Clone, Copy)]
struct Go {
    frames: usize,
    /// On the wire.
    bytes: i64,
    /// They are of the group asked for.
    alike: bool,
}

/// How far into a row of frames the rates and the turn reach.
#[inline]
fn allowed(row: &[Meta], rate: i64, turn: i64, group: GroupId) -> Go {
    let (mut frames, mut bytes, mut alike) = (0, 0, true);
    for meta in row {
        let after = bytes + i64::from(meta.wire_len);
        if bytes >= rate || after > turn {
            break;
        }
        alike &= meta.group == group;
        bytes = after;
        frames += 1;
    }
    Go {
        frames,
        bytes,
        alike,
    }
}

impl EgressPort {
    /// Moves frames into `out` while it has room and the rates allow, marking as they leave, and leaves their receipts with
    /// `owed`, which has room for a burst.
    #[inline]
    pub fn schedule<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        out: &mut impl Outlet<B>,
        owed: &mut Owed,
        marking: &Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) {
        if self.backlog & !self.paused == 0 {
            return;
        }
        self.shaper.refill(marking.now);
        let mut held_back = self.over_rate(marking.now) | self.paused;
        while out.room() > 0 && self.shaper.ready() {
            let offered = self.backlog & !held_back;
            let Some(turn) = self.next(store, offered) else {
                break;
            };
            let served = self.serve(store, turn, out, owed, marking, counters);
            if served == 0 {
                break;
            }
            let queue = self.queues.get(turn.priority.index());
            if queue.is_some_and(|queue| !queue.shaper.ready()) {
                held_back |= turn.priority.bit();
            }
        }
    }

    /// The queue whose turn it is, and how long.
    #[inline]
    fn next<B>(&mut self, store: &FifoStore<B, Meta>, offered: u8) -> Option<Turn> {
        if let Some(priority) = self.below_floor(offered) {
            return Some(Turn {
                priority,
                bytes: i64::MAX,
                frames: 1,
            });
        }
        let queues = &self.queues;
        let head = |priority: Priority| {
            let queue = queues.get(priority.index());
            let front = queue.and_then(|queue| queue.fifo.front(store));
            front.map_or(0, |meta| meta.wire_len)
        };
        let priority = self.scheduler.pick(offered, head)?;
        Some(Turn {
            priority,
            bytes: self.scheduler.allowance(priority),
            // After every frame a minimum rate may come first.
            frames: if offered & self.floored == 0 {
                BURST
            } else {
                1
            },
        })
    }

    /// Lets a queue send for as long as its turn and the rates allow; returns the frames it sent.
    #[inline(never)]
    fn serve<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        turn: Turn,
        out: &mut impl Outlet<B>,
        owed: &mut Owed,
        marking: &Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) -> usize {
        let priority = turn.priority;
        let (Some(queue), Some(counters)) = (
            self.queues.get_mut(priority.index()),
            counters.queues.get(priority.index()),
        ) else {
            return 0;
        };
        let rate = self.shaper.allowance().min(queue.shaper.allowance());
        let red = queue.config.ecn.as_ref();
        let mut depth = i64::try_from(queue.waiting.bytes).unwrap_or(i64::MAX);
        let scope = marking.scope(red);
        let concerned = scope.concerns_any(depth);
        let most = turn.frames.min(out.room());
        let (mut sent, mut frames, mut alike) = (0, 0, true);
        let first = queue.fifo.front(store);
        let group = first.map_or(GroupId::NONE, |first| first.group);
        while frames < most && !queue.fifo.is_empty() {
            let (cells, metas) = queue.fifo.oldest(store);
            let places = metas.len().min(most - frames);
            let may_go = metas.get(..places).unwrap_or_default();
            let go = allowed(may_go, rate - sent, turn.bytes - sent, group);
            let metas = metas.get(..go.frames).unwrap_or_default();
            let receipts = owed.vacant().get_mut(frames..).unwrap_or_default();
            for ((cell, meta), receipt) in cells.iter_mut().zip(metas).zip(receipts) {
                let Some(mut buf) = cell.take() else { break };
                *receipt = Receipt::of(meta);
                if concerned {
                    depth -= i64::from(meta.wire_len);
                    if scope.concerns(depth, meta.flags) {
                        marking.apply(red, &mut buf, meta, depth, &mut self.rng, counters);
                    }
                }
                out.put(Queued { buf, meta: *meta });
            }
            queue.fifo.advance(store, go.frames);
            alike &= go.alike;
            sent += go.bytes;
            frames += go.frames;
            if go.frames < places {
                break;
            }
        }
        if self.floored & priority.bit() != 0 && queue.floor.ready() {
            queue.floor.charge(sent);
        }
        queue.shaper.charge(sent);
        self.shaper.charge(sent);
        let empty = queue.fifo.is_empty();
        self.scheduler.sent(priority, sent, empty);
        let amount = Amount {
            bytes: sent.unsigned_abs(),
            frames: frames as u64,
        };
        if frames > 0 {
            owed.add(HandedOut { amount, alike });
        }
        self.leave(priority, amount);
        frames
    }

    /// The highest queue that has not had its minimum rate.
    #[inline]
    fn below_floor(&self, offered: u8) -> Option<Priority> {
        if offered & self.floored == 0 {
            return None;
        }
        let mut queues = Priority::all().zip(&self.queues).rev();
        let below = queues.find(|(priority, queue)| {
            offered & self.floored & priority.bit() != 0 && queue.floor.ready()
        });
        below.map(|(priority, _)| priority)
    }

    /// Queues that have used up their own rate.
    #[inline]
    fn over_rate(&mut self, now: Nanos) -> u8 {
        let mut held_back = 0;
        if (self.limited | self.floored) != 0 {
            for (priority, queue) in Priority::all().zip(&mut self.queues) {
                queue.shaper.refill(now);
                queue.floor.refill(now);
                if !queue.shaper.ready() {
                    held_back |= priority.bit();
                }
            }
        }
        held_back
    }
}
