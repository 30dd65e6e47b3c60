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
use crate::frame::{FrameBuf, Meta, Row};
use crate::stage::admit::Run;
use crate::stage::packet::Packets;
use crate::stage::train::{Cars, Kin, dress_counted};
use crate::tap::FlowTap;
use crate::units::{BURST, PortId, Priority};

/// The burst that waits for its port's turn; what is known of its frames is still in the path's hand.
#[derive(Debug)]
pub struct Express<B> {
    frames: Row<B>,
    run: Run,
    /// What they hold of the buffer.
    amount: Amount,
    bytes: u64,
    /// It is a train: packets say nothing of it.
    train: Option<Kin>,
}

/// A burst that goes.
#[derive(Debug)]
pub struct Departure<'a, B> {
    /// What it held of the buffer.
    pub amount: Amount,
    /// Bytes of its frames.
    pub bytes: u64,
    /// It is a train, of which packets say nothing.
    pub train: Option<Kin>,
    /// Its frames, to be taken out.
    pub frames: &'a mut Row<B>,
}

impl<B> Default for Express<B> {
    fn default() -> Express<B> {
        Express {
            frames: Row::default(),
            run: Run {
                egress: PortId(0),
                priority: Priority::new(0),
                frames: 0,
            },
            amount: Amount::ZERO,
            bytes: 0,
            train: None,
        }
    }
}

impl<B: FrameBuf> Express<B> {
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

    /// What a burst of `frames` frames that is this run holds of the buffer, if it may come here: it is all that its idle queue
    /// and port have, and nothing waits here before.
    #[inline]
    #[must_use]
    pub fn open(&self, ports: &[EgressPort], run: Run, frames: usize) -> Option<Amount> {
        let amount = ports
            .get(run.egress.index())?
            .only(run.priority, run.frames)?;
        (run.frames == frames && self.frames.is_empty()).then_some(amount)
    }

    /// Takes a burst of `bytes` for which [`Express::open`] said `amount`. `train`: it is one, of which packets say nothing.
    #[inline]
    pub fn board(
        &mut self,
        (run, amount): (Run, Amount),
        frames: &mut Row<B>,
        bytes: u64,
        train: Option<Kin>,
    ) {
        (self.run, self.amount, self.bytes, self.train) = (run, amount, bytes, train);
        debug_assert!(self.frames.is_empty(), "all that waited have gone");
        std::mem::swap(&mut self.frames, frames);
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
            train: self.train,
            frames: &mut self.frames,
        })
    }

    /// Puts the burst into its queue after all; `packets` or `cars` is what is known of its frames. Returns those there is no cell for.
    #[cold]
    pub fn alight(
        &mut self,
        port: &mut EgressPort,
        store: &mut FifoStore<B, Meta>,
        (packets, cars): (&mut Packets, &Cars),
    ) -> ArrayVec<(B, Meta), BURST> {
        let packets = packets.get_mut(..self.frames.len()).unwrap_or_default();
        if let Some(kin) = self.train.take() {
            dress_counted(packets, cars, &kin);
        }
        let mut metas = packets.iter().map(|packet| packet.meta);
        let mut frames = self.frames.drain(..);
        port.fill(store, self.run.priority, &mut frames, &mut metas);
        frames.zip(metas).collect()
    }

    /// The port the burst waits for, if there is one.
    #[inline]
    #[must_use]
    pub const fn port(&self) -> Option<PortId> {
        if self.frames.is_empty() {
            None
        } else {
            Some(self.run.egress)
        }
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
