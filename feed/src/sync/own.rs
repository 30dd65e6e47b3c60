//! Ends of the own box: what its switch reported, numbered and published.

use std::collections::{HashSet, VecDeque};

use npcc_api::ends::{Cm, EndRow, Key};

use super::ends::Ends;
use super::message::{Body, MOST_ROWS, Part};
use super::parts::{self, Parts};

/// Most messages of the connection manager that wait; the oldest are overwritten.
const MOST_CM: usize = 4096;

/// Ends of the own box.
#[derive(Debug)]
pub(super) struct Own {
    ends: Ends,
    cm: VecDeque<Cm>,
    /// Number of the last row.
    sequence: u64,
    /// Ends that the snapshot in progress has not confirmed yet.
    unconfirmed: Option<HashSet<Key>>,
    /// Rows that were not published: the table or a part was full, or too many waited.
    pub(super) lost: u64,
}

impl Own {
    pub(super) fn new(epoch: u64, most: usize) -> Self {
        Self {
            ends: Ends::new(epoch, most),
            cm: VecDeque::new(),
            sequence: 0,
            unconfirmed: None,
            lost: 0,
        }
    }

    /// Takes a row of the switch. One that only says that an end is still in use is left out for 10 s: a switch writes it every second.
    pub(super) fn take(&mut self, row: EndRow) {
        match row {
            EndRow::End(end) if row.is_shareable() => {
                if let Some(unconfirmed) = &mut self.unconfirmed {
                    unconfirmed.remove(&end.key());
                }
                let before = self.ends.get(&end.key());
                if before.is_some_and(|before| end.is_refresh_of(before)) {
                    return;
                }
                self.lost += u64::from(!self.ends.insert(end));
            }
            EndRow::Gone(key) => {
                self.ends.remove(&key);
            }
            EndRow::Cm(cm) if row.is_shareable() => {
                self.cm.push_back(cm);
                if self.cm.len() > MOST_CM {
                    self.cm.pop_front();
                    self.lost += 1;
                }
            }
            EndRow::End(_) | EndRow::Cm(_) => self.lost += 1,
            EndRow::Begin => {
                self.unconfirmed = Some(self.ends.iter().map(|end| end.key()).collect())
            }
            EndRow::Complete { .. } => {
                for key in self.unconfirmed.take().unwrap_or_default() {
                    self.ends.remove(&key);
                }
            }
            // No switch writes leases.
            EndRow::Lost { .. } | EndRow::Lease(_) => {}
        }
        let forgotten = self.ends.bound_changes() as u64;
        if forgotten > 0 {
            self.lost += forgotten;
            // The gap in the numbers has the peers compare their copies.
            self.sequence += 1;
        }
    }

    /// Returns the next rows to publish.
    pub(super) fn delta(&mut self) -> Option<Body> {
        let mut rows = Vec::new();
        while rows.len() < MOST_ROWS {
            let cm = self.cm.pop_front().map(EndRow::Cm);
            let Some(row) = cm.or_else(|| self.ends.next_change()) else {
                break;
            };
            rows.push(row);
        }
        let first = self.sequence + 1;
        self.sequence += rows.len() as u64;
        (!rows.is_empty()).then_some(Body::Delta { first, rows })
    }

    /// Returns true if there are rows to publish.
    pub(super) fn has_delta(&self) -> bool {
        self.ends.changes() > 0 || !self.cm.is_empty()
    }

    pub(super) fn heartbeat(&self) -> Body {
        Body::Heartbeat {
            sequence: self.sequence,
            hash: self.ends.hash(),
        }
    }

    pub(super) fn digest(&self) -> Body {
        Body::Digest {
            sequence: self.sequence,
            hashes: parts::ALL.map(|part| self.ends.hash_of(part)).collect(),
        }
    }

    /// Takes as many parts out of `requested` as fit into a message.
    pub(super) fn parts(&self, requested: &mut Parts) -> Body {
        let (mut parts, mut rows) = (Vec::new(), 0);
        while let Some(part) = requested.first() {
            rows += usize::from(self.ends.size(part)).max(1);
            if rows > MOST_ROWS && !parts.is_empty() {
                break;
            }
            requested.set(part, false);
            parts.push(Part {
                part,
                rows: self.ends.of_part(part).copied().collect(),
            });
        }
        Body::Parts {
            sequence: self.sequence,
            parts,
        }
    }

    pub(super) fn ends(&self) -> &Ends {
        &self.ends
    }
}
