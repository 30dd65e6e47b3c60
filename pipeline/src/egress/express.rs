//! The short cut of an idle port: a burst that finds nothing to wait behind goes from its headers to the device, past the cells
//! of its queue.
//!
//! Law: what leaves, in which order and how marked, and every account, are as if the burst had been queued and served. It was
//! let in as any other; it waits here until its port is served in the same turn, and joins its queue when anything at all
//! comes between: another burst, a frame of the switch's own, a pause, a rate that does not let all of it go, a depth at which
//! frames are marked.

use arrayvec::ArrayVec;

use super::fifo::FifoStore;
use super::marking::Marking;
use super::port::EgressPort;
use crate::buffer::Amount;
use crate::frame::{FrameBuf, Meta};
use crate::stage::admit::Run;
use crate::stage::packet::Packet;
use crate::tap::FlowTap;
use crate::units::{BURST, PortId, Priority};

/// The burst that waits for its port's turn; what is known of its frames is still in the path's hand.
#[derive(Debug)]
pub struct Express<B> {
    frames: ArrayVec<B, BURST>,
    run: Run,
    /// What they hold of the buffer.
    amount: Amount,
    bytes: u64,
}

/// A burst that goes.
#[derive(Debug)]
pub struct Departure<'a, B> {
    /// What it held of the buffer.
    pub amount: Amount,
    /// Bytes of its frames.
    pub bytes: u64,
    /// Its frames, to be taken out.
    pub frames: &'a mut ArrayVec<B, BURST>,
}

impl<B> Default for Express<B> {
    fn default() -> Express<B> {
        Express {
            frames: ArrayVec::new(),
            run: Run {
                egress: PortId(0),
                priority: Priority::new(0),
                frames: 0,
            },
            amount: Amount::ZERO,
            bytes: 0,
        }
    }
}

impl<B: FrameBuf> Express<B> {
    /// Nothing waits.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Frames that wait for `port`.
    #[inline]
    #[must_use]
    pub const fn waiting(&self, port: PortId) -> usize {
        if self.run.egress.0 == port.0 {
            self.frames.len()
        } else {
            0
        }
    }

    /// Takes a burst that is one run into an idle queue of an idle port, and returns its bytes. `None`, and nothing done, when
    /// it is not; nothing waits here before.
    #[inline]
    pub fn board(
        &mut self,
        ports: &[EgressPort],
        run: Run,
        frames: &mut ArrayVec<B, BURST>,
        packets: &[Packet],
    ) -> Option<u64> {
        let port = ports.get(run.egress.index())?;
        if run.frames != frames.len() || !self.frames.is_empty() {
            return None;
        }
        self.amount = port.only(run.priority, run.frames)?;
        self.run = run;
        self.bytes = packets
            .iter()
            .map(|packet| u64::from(packet.brief.len))
            .sum();
        std::mem::swap(&mut self.frames, frames);
        Some(self.bytes)
    }

    /// Of the port it waits for: hands over the burst if all of it may go now.
    #[inline]
    pub fn depart(
        &mut self,
        port: &mut EgressPort,
        room: usize,
        marking: &Marking<'_, impl FlowTap>,
    ) -> Option<Departure<'_, B>> {
        let (amount, run) = (self.amount, self.run);
        (run.frames <= room && port.pass(run.priority, amount, marking)).then_some(Departure {
            amount,
            bytes: self.bytes,
            frames: &mut self.frames,
        })
    }

    /// Puts the burst into its queue after all; `packets` is what is known of its frames. Returns those there is no cell for.
    #[cold]
    pub fn alight(
        &mut self,
        ports: &mut [EgressPort],
        store: &mut FifoStore<B, Meta>,
        packets: &[Packet],
    ) -> ArrayVec<(B, Meta), BURST> {
        let Run {
            egress, priority, ..
        } = self.run;
        let mut metas = packets.iter().map(|packet| packet.meta);
        let mut frames = self.frames.drain(..);
        if let Some(port) = ports.get_mut(egress.index()) {
            port.fill(store, priority, &mut frames, &mut metas);
        }
        frames.zip(metas).collect()
    }
}

impl EgressPort {
    /// What waits in a queue, if that is `frames` frames and all that waits in the port, and no rate is a queue's own.
    #[inline]
    fn only(&self, priority: Priority, frames: usize) -> Option<Amount> {
        let queue = self.queues.get(priority.index())?;
        let alone = self.backlog == priority.bit() && queue.waiting.frames == frames as u64;
        (alone && self.limited | self.floored == 0).then_some(queue.waiting)
    }

    /// Accounts for all that waits as sent, if all of it may go now and none of it is changed on its way out.
    #[inline]
    fn pass(
        &mut self,
        priority: Priority,
        all: Amount,
        marking: &Marking<'_, impl FlowTap>,
    ) -> bool {
        self.shaper.refill(marking.now);
        let Some(queue) = self.queues.get(priority.index()) else {
            return false;
        };
        let bytes = i64::try_from(all.bytes).unwrap_or(i64::MAX);
        let clear = self.backlog == priority.bit()
            && self.paused & priority.bit() == 0
            && queue.waiting == all
            && !marking.scope(queue.config.ecn.as_ref()).concerns_any(bytes)
            && self.shaper.allowance() >= bytes;
        if clear {
            self.shaper.charge(bytes);
            self.scheduler.alone(priority);
            self.leave(priority, all);
        }
        clear
    }
}
