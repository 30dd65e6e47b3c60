//! Stage 3: room for the frames in the shared buffer and in their queues' books, for a run of one queue at once.
//!
//! Law: what a run is let in with, its frames would have been let in with one after the other; a run that does not fit as
//! a whole is looked at frame by frame.

use arrayvec::ArrayVec;

use super::packet::{Packet, Places};
use crate::buffer::{Amount, GroupId};
pub use crate::buffer::{Buffer, PoolConfig};
use crate::drop::Drop;
use crate::egress::port::EgressPort;
use crate::units::{BURST, Nanos, PortId, Priority};

/// Frames of a burst, one after the other, that join one queue.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Port they leave by.
    pub egress: PortId,
    /// Its queue.
    pub priority: Priority,
    /// How many.
    pub frames: usize,
}

/// The runs of a burst; together all of its frames.
pub type Runs = ArrayVec<Run, BURST>;

/// Where frames ask for room.
#[derive(Debug)]
pub struct Room<'a> {
    /// The egress side of all ports.
    pub ports: &'a mut [EgressPort],
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
    /// Splits the burst into runs and takes room for each; tells the frames there is none for.
    #[inline]
    pub fn take(&mut self, packets: &mut [Packet], runs: &mut Runs) -> Places {
        runs.clear();
        let mut gone = Places::NONE;
        let (mut rest, mut place) = (packets, 0);
        while let Some((run, all)) = first_run(rest) {
            let (mine, after) = rest.split_at_mut(run.frames.min(rest.len()));
            let group = mine.first().map_or(GroupId::NONE, |first| first.meta.group);
            let refused = if self.admit_run(group, run, all) {
                0
            } else {
                self.admit_each(mine, place, &mut gone)
            };
            place += run.frames;
            runs.push(Run {
                frames: run.frames - refused,
                ..run
            });
            rest = after;
        }
        gone
    }

    /// Takes room for a run of frames of one group, which hold `all`; `false`, and nothing done, where there is none for all.
    #[inline]
    pub fn admit_run(&mut self, group: GroupId, run: Run, all: Amount) -> bool {
        let Some(port) = self.ports.get_mut(run.egress.index()) else {
            return false;
        };
        if self.owned & run.egress.bit() == 0 {
            let queue = port.queue_abroad(run.priority);
            return self.buffer.charge_run(group, all, queue);
        }
        let admitted = port.admission(run.priority).is_some_and(|queue| {
            !port.drops_early(run.priority)
                && if self.charged {
                    self.buffer.fits_queue(all, queue)
                } else {
                    self.buffer.charge_run(group, all, queue)
                }
        });
        if admitted {
            port.join(run.priority, all, self.now);
        }
        admitted
    }

    /// Whether a run's queue, another worker's, is lossless.
    #[inline]
    pub fn lossless_abroad(&self, run: Run) -> bool {
        let port = self.ports.get(run.egress.index());
        port.is_some_and(|port| port.queue_abroad(run.priority).lossless)
    }

    /// Asks for each frame by itself; returns how many were refused.
    #[inline(never)]
    fn admit_each(&mut self, packets: &mut [Packet], first: usize, gone: &mut Places) -> usize {
        let mut refused = 0;
        for (place, packet) in (first..).zip(packets) {
            packet.reason = self.admit(packet).err();
            if packet.reason.is_some() {
                gone.add(place);
                refused += 1;
            }
        }
        refused
    }

    fn admit(&mut self, packet: &Packet) -> Result<(), Drop> {
        let meta = &packet.meta;
        let Some(port) = self.ports.get_mut(meta.egress.index()) else {
            return Err(Drop::NoRoute);
        };
        let group = meta.group;
        if self.owned & meta.egress.bit() == 0 {
            let queue = port.queue_abroad(meta.priority);
            return self.buffer.charge(group, meta.wire_len, queue);
        }
        let Some(queue) = port.admission(meta.priority) else {
            return Err(Drop::PfcStorm);
        };
        if packet.brief.ecn() == 0 && port.wred_strikes(meta.priority) {
            return Err(Drop::Wred);
        }
        if !self.charged {
            self.buffer.charge(group, meta.wire_len, queue)?;
        } else if !self.buffer.fits_queue(Amount::frame(meta.wire_len), queue) {
            return Err(Drop::QueueFull);
        }
        port.join(meta.priority, Amount::frame(meta.wire_len), self.now);
        Ok(())
    }
}

/// The longest run the burst begins with, and what it takes.
#[inline]
fn first_run(packets: &[Packet]) -> Option<(Run, Amount)> {
    let first = packets.first()?;
    let (egress, priority) = (first.meta.egress, first.meta.priority);
    let mut all = Amount::ZERO;
    for packet in packets {
        if packet.meta.queue() != first.meta.queue() {
            break;
        }
        all = all.plus(Amount::frame(packet.meta.wire_len));
    }
    let run = Run {
        egress,
        priority,
        frames: usize::try_from(all.frames).unwrap_or(usize::MAX),
    };
    Some((run, all))
}
