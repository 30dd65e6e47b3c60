//! Sorting of a burst, in order of arrival, into its runs: a stable partition.

use super::{Places, Run, RunHead, RunPool, Runs, Trash};
use crate::bits::low8;
use crate::buffer::GroupId;
use crate::frame::FrameBuf;
use crate::units::{MAX_PORTS, PRIORITIES, PortId, Priority, WorkerId};

/// Egress port and priority in one octet: equal for frames of one queue only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueKey(pub u8);

const _: () = assert!(MAX_PORTS * PRIORITIES <= 256);

impl QueueKey {
    /// Returns the key of a queue.
    #[inline]
    #[must_use]
    pub const fn new(egress: PortId, priority: Priority) -> QueueKey {
        QueueKey(egress.0 << 3 | priority.get())
    }

    /// Returns the port of the queue.
    #[inline]
    #[must_use]
    pub const fn egress(self) -> PortId {
        PortId(self.0 >> 3)
    }

    /// Returns the priority of the queue.
    #[inline]
    #[must_use]
    pub const fn priority(self) -> Priority {
        Priority::new(self.0)
    }

    /// Returns the head of a run without frames that enters this queue; `worker` received it on `port`.
    #[inline]
    #[must_use]
    pub const fn head(self, worker: WorkerId, port: PortId) -> RunHead {
        let group = GroupId::new(worker, port, self.priority());
        RunHead::new(self.egress(), self.priority(), group)
    }
}

/// Lookup table that finds the run of a queue while a burst is sorted.
#[derive(Debug)]
pub struct Sorter {
    /// Position of the run of each [`QueueKey`]; [`NONE`] if it has none yet.
    places: Box<[u8; 256]>,
}

const NONE: u8 = u8::MAX;

impl Default for Sorter {
    fn default() -> Sorter {
        Sorter {
            places: Box::new([NONE; 256]),
        }
    }
}

impl Sorter {
    /// Moves the frames of `all`, except those in `gone`, into one run for each queue that their records name. `head` makes
    /// the head of a run, and `stopped` takes the frames in `gone`, in order. `unpadded`: no other frame is shorter than Ethernet
    /// pads to. What few frames need is called, so that the loop stays in registers.
    #[inline(never)]
    pub fn sort<B: FrameBuf>(
        &mut self,
        all: &mut Run<B>,
        (gone, stopped): (Places, &mut Trash<B>),
        unpadded: bool,
        head: &dyn Fn(QueueKey) -> RunHead,
        (pool, runs): (&mut RunPool<B>, &mut Runs<B>),
    ) {
        let mut frames = all.frames.drain(..);
        let Places(mut gone) = gone;
        for record in &all.records {
            let Some(buf) = frames.next() else {
                break;
            };
            let is_gone = gone & 1 != 0;
            gone >>= 1;
            if is_gone {
                stop(buf, stopped);
                continue;
            }
            let Some(known) = self.places.get_mut(usize::from(record.queue.0)) else {
                continue;
            };
            if *known == NONE {
                *known = begin(head(record.queue), pool, runs);
            }
            if let Some(run) = runs.get_mut(usize::from(*known)) {
                run.put(buf, record);
            }
        }
        for run in runs.iter_mut() {
            run.measure(unpadded);
        }
        for run in runs.iter() {
            let key = QueueKey::new(run.head.egress, run.head.priority);
            if let Some(known) = self.places.get_mut(usize::from(key.0)) {
                *known = NONE;
            }
        }
    }
}

#[inline(never)]
fn stop<B>(buf: B, stopped: &mut Trash<B>) {
    // There are no more than frames.
    stopped.push(buf);
}

/// Adds a run with this head; returns its position.
#[inline(never)]
fn begin<B>(head: RunHead, pool: &mut RunPool<B>, runs: &mut Runs<B>) -> u8 {
    let mut run = pool.take();
    run.head = head;
    // There are no more runs than frames.
    runs.push(run);
    low8(runs.len() - 1)
}
