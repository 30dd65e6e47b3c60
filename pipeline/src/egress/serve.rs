//! Service of a port's queues: which queue sends next, and how much it sends at once.
//!
//! Law: frames sent together in a grant would have been sent one by one in the same order. A grant ends with the queue's
//! deficit, with its rate or the port's; one for a minimum rate has one frame. Rates are refilled once, before the first grant,
//! so that no minimum rate becomes due between two frames of a grant.

use std::hint::black_box;

use arrayvec::ArrayVec;

use super::fifo::{Fifo, FifoStore, SEGMENT};
use super::marking::Marking;
use super::port::EgressPort;
use crate::buffer::{Amount, Buffer, Charge, GroupId, InFlight};
use crate::burst::Run;
use crate::counters::PortCounters;
use crate::frame::{FrameBuf, FrameVec, Meta, Queued};
use crate::per::PerPriority;
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, Priority};

/// Sink of a port's frames, between the port and its device.
pub trait TxSink<B> {
    /// Returns the number of frames it takes now, at most a burst.
    fn free_slots(&self) -> usize;

    /// Returns the bytes on the wire from which it takes no further frame now. The last frame may go beyond them.
    #[inline]
    fn byte_budget(&self) -> i64 {
        i64::MAX
    }

    /// Returns the transmit queue that frames of this priority use: 0 if there is only one.
    #[inline]
    fn tx_queue(&self, _priority: Priority) -> Priority {
        Priority::new(0)
    }

    /// Takes a frame; the caller has checked that there is room.
    fn put(&mut self, frame: Queued<B>);

    /// Takes all frames of `run`, which is empty afterwards; the caller has checked that there is room.
    #[inline]
    fn put_run(&mut self, run: &mut Run<B>) {
        for (buf, meta) in run.drain() {
            self.put(Queued { buf, meta });
        }
    }
}

impl<B> TxSink<B> for ArrayVec<Queued<B>, BURST> {
    #[inline]
    fn free_slots(&self) -> usize {
        self.remaining_capacity()
    }

    #[inline]
    fn put(&mut self, frame: Queued<B>) {
        self.push(frame);
    }
}

/// Keeps the buffers, without their metadata.
impl<B> TxSink<B> for FrameVec<B> {
    #[inline]
    fn free_slots(&self) -> usize {
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

/// Frames that a port has handed out, by transmit queue, and the buffer to which charges beyond their capacity are released.
#[derive(Debug)]
pub struct InFlightAccounts<'a> {
    /// Charges in flight, by transmit queue.
    pub in_flight: &'a mut PerPriority<InFlight>,
    /// Shared buffer.
    pub buffer: &'a mut Buffer,
}

impl InFlightAccounts<'_> {
    /// Accounts for frames of `group`, charged with `amount`, that were handed to a transmit queue.
    #[inline]
    pub fn add(&mut self, tx_queue: Priority, group: GroupId, amount: Amount) {
        if let Some(gone) = self.in_flight[tx_queue].add(Charge { group, amount }) {
            self.buffer.release(gone);
        }
    }

    /// Accounts for a row of frames that were handed to a transmit queue: at once if they are of one group.
    #[inline]
    fn add_row(&mut self, tx_queue: Priority, part: SendablePart, metas: &[Meta]) {
        if part.one_group {
            let amount = Amount {
                bytes: part.bytes.unsigned_abs(),
                frames: part.frames as u64,
            };
            self.add(tx_queue, part.group, amount);
        } else {
            for meta in metas {
                self.add(tx_queue, meta.group, Amount::frame(meta.wire_len()));
            }
        }
    }
}

/// A queue's grant to send.
#[derive(Debug, Clone, Copy)]
struct Grant {
    priority: Priority,
    /// Most bytes on the wire.
    bytes: i64,
    /// Most frames.
    frames: usize,
}

/// Limits of a grant: its own, those of the rates, and that of the sink.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Most frames.
    frames: usize,
    /// Most bytes on the wire.
    bytes: i64,
    /// Bytes on the wire from which no further frame follows.
    byte_budget: i64,
}

/// Part of a row of frames that may go.
#[derive(Debug, Clone, Copy)]
struct SendablePart {
    frames: usize,
    /// Bytes on the wire.
    bytes: i64,
    /// Group of the first frame.
    group: GroupId,
    /// True if all frames are of that group.
    one_group: bool,
}

impl Limits {
    /// Returns how much of a row of frames may go after `sent` bytes.
    #[inline]
    fn allow(self, row: &[Meta], sent: i64) -> SendablePart {
        let (budget, most) = (self.byte_budget - sent, self.bytes - sent);
        let mut part = SendablePart {
            frames: 0,
            bytes: 0,
            group: row.first().map_or(GroupId::NONE, |first| first.group),
            one_group: true,
        };
        for meta in row {
            let after = part.bytes + i64::from(meta.wire_len());
            if part.bytes >= budget || after > most {
                break;
            }
            part.one_group &= meta.group == part.group;
            part.bytes = after;
            part.frames += 1;
        }
        part
    }
}

/// Distance from the head of a queue, in frames, at which descriptors are prefetched, and metadata with them: twice [`HEADERS`], as a
/// header's address is in its descriptor.
const DESCRIPTORS: usize = 2 * HEADERS;
/// Distance from the head of a queue, in frames, at which headers are prefetched.
const HEADERS: usize = SEGMENT;

/// Prefetches what the departure of `departed` frames has brought within the two distances from the head: in a standing queue buffers have left
/// the cache since they were queued. A queue shorter than that holds frames that came a moment ago.
#[inline]
fn prefetch<B: FrameBuf>(fifo: &Fifo, store: &FifoStore<B, Meta>, departed: usize, headers: bool) {
    if fifo.len() + departed <= HEADERS {
        return;
    }
    let within = |distance: usize| (distance.saturating_sub(departed), distance);
    if headers {
        fifo.ahead(store, within(HEADERS), |buf, _| buf.prefetch());
    }
    let mut sum = 0;
    fifo.ahead(store, within(DESCRIPTORS), |buf, meta| {
        buf.prefetch_handle();
        sum ^= meta.len;
    });
    black_box(sum);
}

impl EgressPort {
    /// Moves frames into `out` while it has room and the rates allow, marking them as they leave, and records their charges in
    /// `accounts`.
    #[inline]
    pub fn schedule<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        out: &mut impl TxSink<B>,
        accounts: &mut InFlightAccounts<'_>,
        marking: &mut Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) {
        if self.backlog & !self.blocked == 0 {
            return;
        }
        self.shaper.refill(marking.now);
        let mut blocked = self.above_max_rate(marking.now) | self.blocked;
        while out.free_slots() > 0 && out.byte_budget() > 0 && self.shaper.ready() {
            let offered = self.backlog & !blocked;
            let Some(grant) = self.next_grant(store, offered) else {
                break;
            };
            let served = self.serve(store, grant, out, accounts, marking, counters);
            if served == 0 {
                break;
            }
            if !self.queues[grant.priority].shaper.ready() {
                blocked |= grant.priority.bit();
            }
        }
    }

    /// Returns the queue that is served next, and the limits of its grant.
    #[inline]
    fn next_grant<B>(&mut self, store: &FifoStore<B, Meta>, offered: u8) -> Option<Grant> {
        if let Some(priority) = self.below_min_rate(offered) {
            return Some(Grant {
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
        Some(Grant {
            priority,
            bytes: self.scheduler.allowance(priority),
            frames: BURST,
        })
    }

    /// Lets a queue send for as long as its grant and the rates allow; returns the number of frames sent.
    #[inline(never)]
    fn serve<B: FrameBuf>(
        &mut self,
        store: &mut FifoStore<B, Meta>,
        grant: Grant,
        out: &mut impl TxSink<B>,
        accounts: &mut InFlightAccounts<'_>,
        marking: &mut Marking<'_, impl FlowTap>,
        counters: &PortCounters,
    ) -> usize {
        let priority = grant.priority;
        let Some(counters) = counters.queues.get(priority.index()) else {
            return 0;
        };
        let limits = self.limits(grant, out);
        let queue = &mut self.queues[priority];
        let scope = marking.scope(queue.config.ecn.as_ref());
        let mut depth = i64::try_from(queue.amount.bytes).unwrap_or(i64::MAX);
        let concerned = scope.concerns_any(depth);
        let tx_queue = out.tx_queue(priority);
        let (mut sent, mut frames) = (0, 0);
        while frames < limits.frames && !queue.fifo.is_empty() {
            let (slots, metas) = queue.fifo.oldest(store);
            let row = metas.len().min(limits.frames - frames);
            let part = limits.allow(metas.get(..row).unwrap_or_default(), sent);
            if part.frames == 0 {
                break;
            }
            let metas = metas.get(..part.frames).unwrap_or_default();
            accounts.add_row(tx_queue, part, metas);
            for (slot, meta) in slots.iter_mut().zip(metas) {
                let Some(mut buf) = slot.take() else { break };
                if concerned {
                    depth -= i64::from(meta.wire_len());
                    if scope.concerns(depth, meta.flags) {
                        marking.apply(scope, &mut buf, meta, depth, &mut self.rng, counters);
                    }
                }
                out.put(Queued { buf, meta: *meta });
            }
            queue.fifo.advance(store, part.frames);
            prefetch(&queue.fifo, store, part.frames, concerned);
            sent += part.bytes;
            frames += part.frames;
            if part.frames < row {
                break;
            }
        }
        self.charge_grant(priority, sent, frames);
        frames
    }

    /// Returns the limits of a queue's grant.
    #[inline]
    fn limits<B>(&self, grant: Grant, out: &impl TxSink<B>) -> Limits {
        let rate = self.queues[grant.priority].shaper.allowance();
        Limits {
            frames: grant.frames.min(out.free_slots()),
            bytes: grant.bytes,
            byte_budget: self.shaper.allowance().min(rate).min(out.byte_budget()),
        }
    }

    /// Charges a grant of a queue, in which `frames` frames of `sent` bytes on the wire left, to shapers, scheduler and queue.
    #[inline]
    fn charge_grant(&mut self, priority: Priority, sent: i64, frames: usize) {
        let queue = &mut self.queues[priority];
        if self.has_min_rate & priority.bit() != 0 && queue.min_rate.ready() {
            queue.min_rate.charge(sent);
        }
        queue.shaper.charge(sent);
        self.shaper.charge(sent);
        let empty = queue.fifo.is_empty();
        self.scheduler.sent(priority, sent, empty);
        let amount = Amount {
            bytes: sent.unsigned_abs(),
            frames: frames as u64,
        };
        self.account_out(priority, amount);
    }

    /// Returns the highest queue that has not had its minimum rate.
    #[inline]
    fn below_min_rate(&self, offered: u8) -> Option<Priority> {
        if offered & self.has_min_rate == 0 {
            return None;
        }
        let mut queues = self.queues.iter().rev();
        let below = queues.find(|(priority, queue)| {
            offered & self.has_min_rate & priority.bit() != 0 && queue.min_rate.ready()
        });
        below.map(|(priority, _)| priority)
    }

    /// Refills the shapers of the queues, and returns the queues that have used up their own rate.
    #[inline]
    fn above_max_rate(&mut self, now: Nanos) -> u8 {
        let mut blocked = 0;
        if (self.has_max_rate | self.has_min_rate) != 0 {
            for (priority, queue) in self.queues.iter_mut() {
                queue.shaper.refill(now);
                queue.min_rate.refill(now);
                if !queue.shaper.ready() {
                    blocked |= priority.bit();
                }
            }
        }
        blocked
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
