//! The ring of NPCC's decisions: what the control core takes down is copied by its own thread, after the tick.

use npcc_cnp::log::{DecisionLog, Entry, KEPT};
use npcc_cnp::status::NpccStatus;

use super::ring::{Record, Writer};

/// The writer's end.
#[derive(Debug)]
pub struct Copier {
    ring: Writer,
    /// CNPs and refusals that were copied.
    copied: [u64; 2],
}

impl Copier {
    /// Copies into this ring.
    #[must_use]
    pub const fn new(ring: Writer) -> Copier {
        Copier {
            ring,
            copied: [0; 2],
        }
    }

    /// Copies what is new. By the control thread, which makes all of it.
    #[inline]
    pub fn turn(&mut self, status: &NpccStatus) {
        for (log, copied) in [&status.log, &status.refusals]
            .into_iter()
            .zip(&mut self.copied)
        {
            if log.noted.get() != *copied {
                copy(&mut self.ring, log, copied);
            }
        }
    }
}

#[cold]
fn copy(ring: &mut Writer, log: &DecisionLog, copied: &mut u64) {
    let noted = log.noted.get();
    let new = usize::try_from(noted - *copied).unwrap_or(KEPT);
    *copied = noted;
    for entry in log.last(new) {
        ring.write(entry.time.0, 0, entry.to_words());
    }
}

/// The decision of a record.
#[must_use]
pub fn decision(record: &Record) -> Option<Entry> {
    Entry::from_words(record.words.get(..)?.first_chunk().copied()?)
}
