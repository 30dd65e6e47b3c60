//! `show ends`: a snapshot of the table of ends, and what changes after it, row by row.
//!
//! Law: a reader gets every row, or the number of rows it lost and then a new snapshot. Neither the control core nor a worker waits for it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use npcc_api::ends::EndRow;
use npcc_roce::pair::export::{EndFeed, EndReader, Row};

use super::calendar::Calendar;
use super::row;
use crate::manage::http::lines::{Lines, Unanswered};
use npcc_engine::clock::Clock;

/// Longest time for which the control core may be silent within a snapshot.
const PATIENCE: Duration = Duration::from_secs(10);
/// Sleep between polls of the export: a tenth of the time in which the busiest switch fills it.
const POLL: Duration = Duration::from_millis(5);
/// Rows written between checks for the end.
const BATCH: usize = 256;

/// Rows of one connection.
#[derive(Debug)]
pub struct Rows {
    reader: EndReader,
    /// Last row of the snapshot that is under way.
    last: Option<Row>,
    /// Number of ends in it so far.
    count: u64,
    /// Number of lost rows that the client knows.
    lost: u64,
    /// True before the first row: the client must get the mark of the beginning.
    begins: bool,
}

impl Rows {
    /// Begins with a snapshot.
    #[must_use]
    pub fn new(feed: &Arc<EndFeed>) -> Rows {
        let reader = feed.read();
        Rows {
            last: Some(reader.walk()),
            reader,
            count: 0,
            lost: 0,
            begins: true,
        }
    }

    /// Returns true if no snapshot is under way.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.last.is_none()
    }

    /// Passes the rows there are to `give`, [`BATCH`] at most; returns their number.
    ///
    /// # Errors
    /// Returns the error of `give`.
    pub fn each(
        &mut self,
        calendar: &Calendar,
        mut give: impl FnMut(EndRow) -> io::Result<()>,
    ) -> io::Result<usize> {
        if std::mem::take(&mut self.begins) {
            give(EndRow::Begin)?;
        }
        for given in 0..BATCH {
            let Some(record) = self.reader.take() else {
                return Ok(given);
            };
            if self.reader.lost > self.lost {
                self.lost = self.reader.lost;
                give(EndRow::Lost { count: self.lost })?;
                (self.last, self.count) = (Some(self.reader.walk()), 0);
                give(EndRow::Begin)?;
            }
            if let (Some(Row::Walked(wanted)), Row::Walked(walked)) = (self.last, record)
                && walked >= wanted
            {
                self.last = None;
                give(EndRow::Complete { count: self.count })?;
            }
            self.count += u64::from(matches!(record, Row::End(_)));
            if let Some(row) = row::of(&record, calendar) {
                give(row)?;
            }
        }
        Ok(BATCH)
    }
}

/// Writes the rows of a snapshot, or also what changes after it until the client goes away.
pub(in crate::manage) fn write(
    follow: bool,
    (feed, clock): (&Arc<EndFeed>, Clock),
    out: &mut Lines,
) -> Result<(), Unanswered> {
    let mut rows = Rows::new(feed);
    let mut silent = Duration::ZERO;
    while follow || !rows.is_complete() {
        let calendar = Calendar::of(clock);
        let given = rows.each(&calendar, |row| {
            serde_json::to_writer(&mut *out, &row)?;
            out.write_all(b"\n")
        })?;
        if given == BATCH {
            continue;
        }
        out.flush()?;
        out.rests();
        if out.is_stopping() || out.is_gone() {
            return Ok(());
        }
        silent = if given > 0 || rows.is_complete() {
            Duration::ZERO
        } else {
            silent + POLL
        };
        if silent >= PATIENCE {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
