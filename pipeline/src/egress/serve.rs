//! A port's way out: whose turn it is, and how much of its queue it sends in one go.
//!
//! Law: what is sent together in a turn would have been sent one by one in the same order. A turn ends with the queue's
//! deficit, with its rate or the port's, or after each frame where a minimum rate may come first.

use arrayvec::ArrayVec;

use super::fifo::FifoStore;
use super::marking::Marking;
use super::port::EgressPort;
use crate::buffer::Amount;
use crate::counters::PortCounters;
use crate::frame::{FrameBuf, Queued};
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, Priority};

/// A queue's turn to send.
#[derive(Debug, Clone, Copy)]
struct Turn {
    priority: Priority,
    /// At most so many bytes on the wire.
    bytes: i64,
    /// At most so many frames.
    frames: usize,
}

impl EgressPort {
    /// Moves frames into `out` while it has room and the rates allow, marking as they leave.
    #[inline]
    pub fn schedule<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<Queued<B>>,
        out: &mut ArrayVec<Queued<B>, BURST>,
        marking: &Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) {
        if self.backlog & !self.paused == 0 {
            return;
        }
        self.shaper.refill(marking.now);
        let mut held_back = self.over_rate(marking.now) | self.paused;
        while !out.is_full() && self.shaper.ready() {
            let offered = self.backlog & !held_back;
            let Some(turn) = self.next(store, offered) else {
                break;
            };
            let served = self.serve(store, turn, out, marking, counters);
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
    fn next<B>(&mut self, store: &FifoStore<Queued<B>>, offered: u8) -> Option<Turn> {
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
            front.map_or(0, |frame| frame.meta.wire_len)
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
    #[inline]
    fn serve<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<Queued<B>>,
        turn: Turn,
        out: &mut ArrayVec<Queued<B>, BURST>,
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
        let scope = marking.scope(queue.config.ecn.as_ref());
        let red = queue.config.ecn.as_ref();
        let depth = i64::try_from(queue.waiting.bytes).unwrap_or(i64::MAX);
        let most = turn.frames.min(out.remaining_capacity());
        let (mut sent, mut frames) = (0, 0);
        while frames < most && !queue.fifo.is_empty() {
            let cells = queue.fifo.oldest(store);
            let before = frames;
            for cell in cells.iter_mut().take(most - before) {
                let may = |frame: &mut Queued<B>| {
                    sent < rate && sent + i64::from(frame.meta.wire_len) <= turn.bytes
                };
                let Some(frame) = cell.take_if(may) else {
                    break;
                };
                let meta = frame.meta;
                out.push(frame);
                sent += i64::from(meta.wire_len);
                frames += 1;
                let left = depth - sent;
                if scope.concerns(left, meta.flags)
                    && let Some(frame) = out.last_mut()
                {
                    marking.apply(red, frame, left, &mut self.rng, counters);
                }
            }
            let all = frames - before == cells.len();
            queue.fifo.advance(store, frames - before);
            if !all {
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
        let gone = Amount {
            bytes: sent.unsigned_abs(),
            frames: frames as u64,
        };
        self.leave(priority, gone);
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
