//! The workers' rings of captured frames, read as one in order of time.

use std::sync::Arc;

use npcc_pipeline::capture::{CaptureStats, Event};
use npcc_pipeline::punt::FrameReceiver;
use npcc_pipeline::units::Nanos;

/// The longest record.
pub(super) const RECORD: usize = 1 << 16;

/// One worker's captures.
#[derive(Debug)]
pub struct WorkerCaptures {
    /// What it copied.
    pub frames: FrameReceiver,
    /// What it tells.
    pub stats: Arc<CaptureStats>,
}

/// All workers' captures, of whoever has them in hand.
#[derive(Debug)]
pub struct Captures {
    workers: Vec<Reading>,
    /// Captures so far.
    ids: u32,
}

/// A worker's ring, and the oldest of it.
#[derive(Debug)]
struct Reading {
    from: WorkerCaptures,
    record: Box<[u8; RECORD]>,
    /// Bytes of the record that was taken out and not written yet, and its time.
    held: Option<(usize, Nanos)>,
}

impl Reading {
    /// Takes the next record of a capture out, if none is held.
    fn fetch(&mut self, id: u32) {
        while self.held.is_none() {
            let Some((_, record)) = self.from.frames.pop(&mut self.record[..]) else {
                return;
            };
            let (length, event) = (record.len(), Event::decode(record));
            // What is left of a capture before is thrown away.
            self.held = event
                .filter(|(event, _)| event.capture == id)
                .map(|(event, _)| (length, event.time));
        }
    }
}

impl Captures {
    /// Of workers that capture nothing.
    #[must_use]
    pub fn new(workers: Vec<WorkerCaptures>) -> Captures {
        let reading = |from| Reading {
            from,
            record: Box::new([0; RECORD]),
            held: None,
        };
        Captures {
            workers: workers.into_iter().map(reading).collect(),
            ids: 0,
        }
    }

    /// What each worker tells of captures.
    #[must_use]
    pub fn told(workers: &[WorkerCaptures]) -> Vec<Arc<CaptureStats>> {
        workers.iter().map(|one| Arc::clone(&one.stats)).collect()
    }

    /// The number of a new capture, for which nothing is held yet.
    pub(super) fn begin(&mut self) -> u32 {
        for worker in &mut self.workers {
            worker.held = None;
        }
        self.ids = self.ids.wrapping_add(1).max(1);
        self.ids
    }

    /// The oldest record of all workers' rings.
    pub(super) fn next(&mut self, id: u32) -> Option<&[u8]> {
        for worker in &mut self.workers {
            worker.fetch(id);
        }
        let held = self.workers.iter_mut().filter(|one| one.held.is_some());
        let oldest = held.min_by_key(|one| one.held.map(|(_, time)| time))?;
        let (length, _) = oldest.held.take()?;
        oldest.record.get(..length)
    }

    /// Frames lost so far, of all captures.
    pub(super) fn lost(&self) -> u64 {
        let lost = self.workers.iter().map(|one| one.from.stats.lost.get());
        lost.fold(0, u64::wrapping_add)
    }

    /// Whether a worker still captures by this order.
    pub(super) fn is_on(&self, id: u32) -> bool {
        let active = |one: &Reading| one.from.stats.active.get() == u64::from(id);
        self.workers.iter().any(active)
    }
}
