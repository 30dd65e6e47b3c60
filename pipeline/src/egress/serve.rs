//! A port's way out: whose turn it is, and how much of its queue it sends in one go.
//!
//! Law: what is sent together in a turn would have been sent one by one in the same order. A turn ends with the queue's
//! deficit, with its rate or the port's, or after each frame where a minimum rate may come first.

use arrayvec::ArrayVec;

use super::fifo::FifoStore;
use super::marking::Marking;
use super::port::EgressPort;
use crate::buffer::{Amount, Buffer, Charge, GroupId, InFlight};
use crate::burst::Run;
use crate::counters::PortCounters;
use crate::frame::{FrameBuf, FrameVec, Meta, Queued};
use crate::per::PerPriority;
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, Priority};

/// Where the frames of a port go: what stands between it and its device.
pub trait Outlet<B> {
    /// How many frames it takes, at most a burst.
    fn room(&self) -> usize;

    /// Bytes on the wire it takes now: frames may follow while fewer were handed over.
    #[inline]
    fn credit(&self) -> i64 {
        i64::MAX
    }

    /// The transmit queue that frames of this priority go by: 0 where all go by one.
    #[inline]
    fn lane(&self, _priority: Priority) -> Priority {
        Priority::new(0)
    }

    /// Takes a frame; there is room.
    fn put(&mut self, frame: Queued<B>);

    /// Takes all frames of `run`, which is empty afterwards; there is room.
    #[inline]
    fn put_run(&mut self, run: &mut Run<B>) {
        for (buf, meta) in run.drain() {
            self.put(Queued { buf, meta });
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
impl<B> Outlet<B> for FrameVec<B> {
    #[inline]
    fn room(&self) -> usize {
        self.remaining_capacity()
    }

    #[inline]
    fn put(&mut self, frame: Queued<B>) {
        self.push(frame.buf);
    }

    #[inline]
    fn put_run(&mut self, run: &mut Run<B>) {
        if self.is_empty() {
            std::mem::swap(self, &mut run.frames);
        } else {
            self.extend(run.frames.drain(..));
        }
    }
}

/// What a port has handed out, by transmit queue, and the buffer that takes back what cannot be kept there.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// By transmit queue.
    pub in_flight: &'a mut PerPriority<InFlight>,
    /// The shared buffer.
    pub buffer: &'a mut Buffer,
}

impl Lanes<'_> {
    /// Frames of `group` that hold `amount` go by a lane.
    #[inline]
    pub fn add(&mut self, lane: Priority, group: GroupId, amount: Amount) {
        if let Some(gone) = self.in_flight[lane].add(Charge { group, amount }) {
            self.buffer.release(gone);
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
        let after = bytes + i64::from(meta.wire_len());
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
    /// Moves frames into `out` while it has room and the rates allow, marking as they leave, and notes in `lanes` what they
    /// hold.
    #[inline]
    pub fn schedule<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        out: &mut impl Outlet<B>,
        lanes: &mut Lanes<'_>,
        marking: &mut Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) {
        if self.backlog & !self.paused == 0 {
            return;
        }
        self.shaper.refill(marking.now);
        let mut held_back = self.over_rate(marking.now) | self.paused;
        while out.room() > 0 && out.credit() > 0 && self.shaper.ready() {
            let offered = self.backlog & !held_back;
            let Some(turn) = self.next(store, offered) else {
                break;
            };
            let served = self.serve(store, turn, out, lanes, marking, counters);
            if served == 0 {
                break;
            }
            if !self.queues[turn.priority].shaper.ready() {
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
            let front = queues[priority].fifo.front(store);
            front.map_or(0, |meta| meta.wire_len())
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
        lanes: &mut Lanes<'_>,
        marking: &mut Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) -> usize {
        let priority = turn.priority;
        let queue = &mut self.queues[priority];
        let Some(counters) = counters.queues.get(priority.index()) else {
            return 0;
        };
        let rate = self
            .shaper
            .allowance()
            .min(queue.shaper.allowance())
            .min(out.credit());
        let red = queue.config.ecn.as_ref();
        let mut depth = i64::try_from(queue.waiting.bytes).unwrap_or(i64::MAX);
        let [_, hard] = queue.config.watch;
        let scope = marking.scope(red, hard);
        let concerned = scope.concerns_any(depth);
        let lane = out.lane(priority);
        let most = turn.frames.min(out.room());
        let (mut sent, mut frames) = (0, 0);
        while frames < most && !queue.fifo.is_empty() {
            let (cells, metas) = queue.fifo.oldest(store);
            let places = metas.len().min(most - frames);
            let may_go = metas.get(..places).unwrap_or_default();
            let group = may_go.first().map_or(GroupId::NONE, |first| first.group);
            let go = allowed(may_go, rate - sent, turn.bytes - sent, group);
            let metas = metas.get(..go.frames).unwrap_or_default();
            if concerned {
                // Their handles were asked for in the last turn.
                for cell in cells.iter().take(go.frames).flatten() {
                    cell.prefetch();
                }
            }
            if go.frames == 0 {
                break;
            }
            if go.alike {
                let amount = Amount {
                    bytes: go.bytes.unsigned_abs(),
                    frames: go.frames as u64,
                };
                lanes.add(lane, group, amount);
            } else {
                for meta in metas {
                    lanes.add(lane, meta.group, Amount::frame(meta.wire_len()));
                }
            }
            for (cell, meta) in cells.iter_mut().zip(metas) {
                let Some(mut buf) = cell.take() else { break };
                if concerned {
                    depth -= i64::from(meta.wire_len());
                    if scope.concerns(depth, meta.flags) {
                        marking.apply(scope, &mut buf, meta, depth, &mut self.rng, counters);
                    }
                }
                out.put(Queued { buf, meta: *meta });
            }
            queue.fifo.advance(store, go.frames);
            sent += go.bytes;
            frames += go.frames;
            if go.frames < places {
                break;
            }
        }
        // Who is next: in a standing queue the buffers have left the cache since they were queued.
        let (next, _) = queue.fifo.oldest(store);
        for cell in next.iter().flatten() {
            cell.prefetch_handle();
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
        self.leave(priority, amount);
        frames
    }

    /// The highest queue that has not had its minimum rate.
    #[inline]
    fn below_floor(&self, offered: u8) -> Option<Priority> {
        if offered & self.floored == 0 {
            return None;
        }
        let mut queues = self.queues.iter().rev();
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
            for (priority, queue) in self.queues.iter_mut() {
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
