//! The workers' rings of captured frames, merged in order of time.

use std::sync::Arc;

use npcc_pipeline::capture::{CaptureStats, Event};
use npcc_pipeline::punt::FrameReceiver;
use npcc_pipeline::units::Nanos;

/// Longest record, in bytes.
pub(super) const RECORD: usize = 1 << 16;

/// Captures of one worker.
#[derive(Debug)]
pub struct WorkerCaptures {
    /// Ring of copied frames.
    pub frames: FrameReceiver,
    /// Counters that the worker publishes.
    pub stats: Arc<CaptureStats>,
}

/// Captures of all workers; one client at a time holds them.
#[derive(Debug)]
pub struct Captures {
    workers: Vec<Reading>,
    /// ID of the latest capture.
    ids: u32,
}

/// A worker's ring, and its oldest record.
#[derive(Debug)]
struct Reading {
    from: WorkerCaptures,
    record: Box<[u8; RECORD]>,
    /// Length of the record that was dequeued and not yet written, and its time.
    held: Option<(usize, Nanos)>,
}

impl Reading {
    /// Dequeues the next record of this capture, if none is held.
    fn fetch(&mut self, id: u32) {
        while self.held.is_none() {
            let Some((_, record)) = self.from.frames.pop(&mut self.record[..]) else {
                return;
            };
            let (length, event) = (record.len(), Event::decode(record));
            // Records left by an earlier capture are discarded.
            self.held = event
                .filter(|(event, _)| event.capture == id)
                .map(|(event, _)| (length, event.time));
        }
    }
}

impl Captures {
    /// Wraps the rings of workers that capture nothing.
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

    /// Returns the ID of a new capture, for which no record is held yet.
    pub(super) fn begin(&mut self) -> u32 {
        for worker in &mut self.workers {
            worker.held = None;
        }
        self.ids = self.ids.wrapping_add(1).max(1);
        self.ids
    }

    /// Returns the oldest record of all workers' rings.
    pub(super) fn next(&mut self, id: u32) -> Option<&[u8]> {
        for worker in &mut self.workers {
            worker.fetch(id);
        }
        let held = self.workers.iter_mut().filter(|one| one.held.is_some());
        let oldest = held.min_by_key(|one| one.held.map(|(_, time)| time))?;
        let (length, _) = oldest.held.take()?;
        oldest.record.get(..length)
    }

    /// Returns the frames lost so far, by all captures.
    pub(super) fn lost(&self) -> u64 {
        let lost = self.workers.iter().map(|one| one.from.stats.lost.get());
        lost.fold(0, u64::wrapping_add)
    }

    /// Returns true if a worker still runs this capture.
    pub(super) fn is_on(&self, id: u32) -> bool {
        let active = |one: &Reading| one.from.stats.active.get() == u64::from(id);
        self.workers.iter().any(active)
    }
}
