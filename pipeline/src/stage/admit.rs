//! Stage 3: room for the frames in the shared buffer and in their queues' accounts, for a run at once.
//!
//! Law: what a run is let in with, its frames would have been let in with one after the other; a run that does not fit as
//! a whole is looked at frame by frame.

use crate::buffer::Amount;
pub use crate::buffer::{Buffer, PoolConfig};
use crate::burst::{Record, Run, RunHead};
use crate::drop::DropReason;
use crate::egress::port::EgressPort;
use crate::frame::{FrameBuf, Meta};
use crate::per::PerPort;
use crate::units::{Nanos, PortId};

/// Where frames ask for room.
#[derive(Debug)]
pub struct Room<'a> {
    /// The egress side of all ports.
    pub ports: &'a mut PerPort<EgressPort>,
    /// The shared buffer.
    pub buffer: &'a mut Buffer,
    /// When.
    pub now: Nanos,
    /// Ports whose queues are its own. What leaves by another's is charged here, and finds its queue's limits there.
    pub owned: u32,
    /// The frames came over from other workers, who have charged them.
    pub charged: bool,
}

impl Room<'_> {
    /// Takes room for a run. The frames there is none for leave it, each with its reason.
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

    /// Takes room for all of a run; `false`, and nothing done, where there is none for all.
    #[inline]
    fn admit_whole(&mut self, run: &RunHead) -> bool {
        let port = &mut self.ports[run.egress];
        if self.owned & run.egress.bit() == 0 {
            if port.is_down() {
                return false;
            }
            let queue = port.queue_abroad(run.priority);
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
            port.join(run.priority, run.amount, self.now);
        }
        admitted
    }

    /// Asks for each frame by itself.
    #[inline(never)]
    fn admit_each<B: FrameBuf>(
        &mut self,
        run: &mut Run<B>,
        mut refused: impl FnMut(B, &Meta, DropReason),
    ) {
        let head = run.head;
        // `retain` asks about a frame and hands it over before it asks about the next.
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
            let queue = port.queue_abroad(run.priority);
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
        port.join(run.priority, one, self.now);
        Ok(())
    }
}
