//! Admission: charges a run at once to the shared buffer and to its queue.
//!
//! Law: a run admitted as a whole would have had its frames admitted one by one. A run is admitted frame by frame if it does
//! not fit as a whole, and always if its queue is this worker's, lossy, and has a WRED curve, which is asked about each frame.

use crate::buffer::Amount;
pub use crate::buffer::{Buffer, PoolConfig};
use crate::burst::{Record, Run, RunHead};
use crate::drop::DropReason;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta};
use crate::per::PerPort;
use crate::units::{Nanos, PortId};

/// Egress ports and buffer to which frames are admitted.
#[derive(Debug)]
pub struct Room<'a> {
    /// Egress side of all ports.
    pub ports: &'a mut PerPort<EgressPort>,
    /// Shared buffer.
    pub buffer: &'a mut Buffer,
    /// Time of the call.
    pub now: Nanos,
    /// Ports that this worker owns. Frames that leave by another worker's port are charged here, and their queue's limits are
    /// enforced by its owner.
    pub owned: u32,
    /// True if the frames came over from other workers, which have charged them.
    pub charged: bool,
}

impl Room<'_> {
    /// Admits a run. Frames for which there is no room are removed from it, each with its drop reason.
    #[inline]
    pub fn admit<B: FrameBuf>(
        &mut self,
        run: &mut Run<B>,
        refused: impl FnMut(B, &Meta, DropReason),
    ) {
        if !self.admit_whole(&run.head) {
            self.admit_each(run, refused);
        }
    }

    const fn owns(&self, port: PortId) -> bool {
        self.owned & port.bit() != 0
    }

    /// Admits all of a run at once; returns false, and does nothing, if its frames must be judged one by one: there is no room for all, WRED may drop some,
    /// or the queue is closed.
    #[inline]
    fn admit_whole(&mut self, run: &RunHead) -> bool {
        let port = &mut self.ports[run.egress];
        if self.owned & run.egress.bit() == 0 {
            if port.is_down() {
                return false;
            }
            let queue = port.remote_admission(run.priority);
            return self.buffer.charge_run(run.group, run.amount, queue);
        }
        let admitted = port.admission(run.priority).is_some_and(|queue| {
            !port.drops_early(run.priority)
                && if self.charged {
                    self.buffer.fits_queue(run.amount, queue)
                } else {
                    self.buffer.charge_run(run.group, run.amount, queue)
                }
        });
        if admitted {
            port.account_in(run.priority, run.amount, self.now);
        }
        admitted
    }

    /// Admits each frame by itself.
    #[inline(never)]
    fn admit_each<B: FrameBuf>(
        &mut self,
        run: &mut Run<B>,
        mut refused: impl FnMut(B, &Meta, DropReason),
    ) {
        let head = run.head;
        // `retain` calls the first closure for a frame and hands that frame to the second before it goes on to the next.
        let reason = std::cell::Cell::new(None);
        run.retain(
            |record| {
                reason.set(self.admit_one(&head, record).err());
                reason.get().is_none()
            },
            |buf, record| {
                if let Some(reason) = reason.get() {
                    refused(buf, &head.meta(record), reason);
                }
            },
        );
    }

    fn admit_one(&mut self, run: &RunHead, record: &Record) -> Result<(), DropReason> {
        let meta = run.meta(record);
        let owns = self.owns(run.egress);
        let port = &mut self.ports[run.egress];
        if !owns {
            if port.is_down() {
                return Err(port.closed_for());
            }
            let queue = port.remote_admission(run.priority);
            return self.buffer.charge(run.group, meta.wire_len(), queue);
        }
        let Some(queue) = port.admission(run.priority) else {
            return Err(port.closed_for());
        };
        if record.ecn() == 0 && port.wred_strikes(run.priority) {
            return Err(DropReason::Wred);
        }
        let one = Amount::frame(meta.wire_len());
        if !self.charged {
            self.buffer.charge(run.group, meta.wire_len(), queue)?;
        } else if !self.buffer.fits_queue(one, queue) {
            return Err(DropReason::QueueFull);
        }
        port.account_in(run.priority, one, self.now);
        Ok(())
    }
}
