//! Reads a recorder and returns its records in the order in which they happened, as text for people and as JSON. The recorder may be of
//! this run or the last, its process alive or gone.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use npcc_cnp::log::Entry;
use npcc_config::regular;
use npcc_heap::records::{self, Record};
use npcc_pipeline::capture::{Event, SNAPLEN};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::num::{real, whole};
use serde::Serialize;

use super::layout::{
    BEATS, FOLDER, Head, MAGIC, NAME, PORTS, PROGRAM, RingKind, TEXT, THREAD, THREAD_NAME, THREADS,
    VERSION, hash, rings, text_of,
};
use super::said;

/// Reason why a recorder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] regular::ReadError),
    /// The file is something else, or was never begun.
    #[error("this is no recorder of npcc-switch")]
    Foreign,
}

/// Ending of a run, as far as its recorder knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The run ended in order.
    Ordered,
    /// A thread panicked.
    Panicked,
    /// A second signal ended the run at once while it was stopping: somebody lost patience.
    SecondSignal,
    /// The run goes on, or ended without a word: it was killed, or the machine was.
    Unknown,
}

impl Ending {
    /// Returns the ending of the run whose recorder begins with `words`.
    fn of(words: &[u64]) -> Ending {
        let head = |head: Head| words.get(head as usize).copied().unwrap_or_default();
        if head(Head::Panicked) != 0 {
            Ending::Panicked
        } else if head(Head::Ended) != 0 {
            Ending::Ordered
        } else if head(Head::Signal) != 0 {
            Ending::SecondSignal
        } else {
            Ending::Unknown
        }
    }

    /// Returns true if the ending needs an investigation: a panic, or an end without a word.
    #[must_use]
    pub fn is_crash(self) -> bool {
        matches!(self, Ending::Panicked | Ending::Unknown)
    }
}

/// State of one thread: its loops, and when it last moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Thread {
    /// Name of the thread.
    pub name: String,
    /// Number of turns of the thread's loop.
    pub loops: u64,
    /// Time at which the thread last moved, RFC 3339.
    pub moved: String,
    /// Time from the thread's last move to the latest of all records and moves, in seconds.
    pub still_s: f64,
}

/// One record: a message, a decision or a malformed frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Time of the record, RFC 3339.
    pub wall: String,
    /// Time of the record in ns since 1970.
    pub ns: u64,
    /// Kind of the record: `message`, `decision` or `frame`.
    pub kind: &'static str,
    /// Sequence number of the record in its ring.
    pub number: u64,
    /// Level of a message: `info`, `warning`, `error` or `panic`; absent for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'static str>,
    /// Text of the record, for people.
    pub text: String,
    /// First bytes of a frame, in hexadecimal digits; absent for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

/// Contents of a whole recorder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// Version of the program that wrote it.
    pub version: String,
    /// Process that wrote it.
    pub pid: u64,
    /// Folder the process ran in.
    pub folder: String,
    /// Time at which the run began, RFC 3339.
    pub begun: String,
    /// Ending of the run.
    pub ending: Ending,
    /// Threads of the process.
    pub threads: Vec<Thread>,
    /// Number of inconsistent records, left out: they were being written, or overwritten.
    pub torn: usize,
    /// All other records, oldest first.
    pub lines: Vec<Line>,
    /// Reason why there are no lines, where another version of the program wrote them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// Reads a recorder from a regular file.
///
/// # Errors
/// [`ReadError`].
pub fn file(path: &Path) -> Result<Reading, ReadError> {
    let octets = regular::read(path)?;
    Reading::of(&records::words_of(&octets).collect::<Vec<u64>>())
}

/// Wraps an error of the operating system.
pub(super) fn file_error(error: std::io::Error) -> ReadError {
    ReadError::File(error.into())
}

impl Reading {
    /// Decodes the words of a recorder.
    ///
    /// # Errors
    /// [`ReadError`], never [`ReadError::File`].
    pub fn of(words: &[u64]) -> Result<Reading, ReadError> {
        let head = |head: Head| words.get(head as usize).copied().unwrap_or_default();
        if head(Head::Magic) != MAGIC {
            return Err(ReadError::Foreign);
        }
        let version = text_at(words, PROGRAM, TEXT);
        let is_read = head(Head::Version) == VERSION && head(Head::Hash) == hash();
        let unread = (!is_read).then(|| {
            format!("its records are of npcc-switch {version}, and this version reads them otherwise: have that one read them")
        });
        let workers = usize::try_from(head(Head::Workers)).unwrap_or_default();
        let rings = rings(workers).take(if is_read { usize::MAX } else { 0 });
        // The threads lie at the same place in every version up to this one.
        let has_threads = head(Head::Version) <= VERSION;
        let mut lines = Vec::new();
        let mut torn = 0;
        let memory: Vec<AtomicU64> = words.iter().copied().map(AtomicU64::new).collect();
        for (kind, place) in rings {
            let read = records::read(&memory, place);
            torn += read.inconsistent;
            let all = read.whole.iter();
            lines.extend(all.map(|record| line(words, kind, record)));
        }
        lines.sort_by_key(|line| line.ns);
        let last = lines.last().map_or(0, |line| line.ns);
        Ok(Reading {
            version,
            pid: head(Head::Pid),
            folder: text_at(words, FOLDER, TEXT),
            begun: rfc3339(head(Head::Begun)),
            ending: Ending::of(words),
            threads: threads(
                words,
                if has_threads { head(Head::Threads) } else { 0 },
                last,
            ),
            torn,
            lines,
            unread,
        })
    }
}

fn text_at(words: &[u64], at: usize, room: usize) -> String {
    text_of(words.get(at..at + room).unwrap_or_default())
}

fn rfc3339(ns: u64) -> String {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(ns);
    humantime::format_rfc3339_micros(time).to_string()
}

fn threads(words: &[u64], count: u64, last: u64) -> Vec<Thread> {
    let count = usize::try_from(count).unwrap_or(THREADS).min(THREADS);
    let all = words.get(BEATS..BEATS + count * THREAD).unwrap_or_default();
    let moved = |place: &&[u64]| place.last().copied().unwrap_or_default();
    let places = || all.chunks_exact(THREAD);
    let latest = places()
        .map(|place| moved(&place))
        .max()
        .unwrap_or(0)
        .max(last);
    let thread = |place: &[u64]| Thread {
        name: text_at(place, 0, THREAD_NAME),
        loops: place.get(THREAD_NAME).copied().unwrap_or_default(),
        moved: rfc3339(moved(&place)),
        still_s: Duration::from_nanos(latest.saturating_sub(moved(&place))).as_secs_f64(),
    };
    places().map(thread).collect()
}

/// Converts a time of the switch's clock into ns since 1970.
fn of_clock(words: &[u64], time: u64) -> u64 {
    let head = |head: Head| words.get(head as usize).copied().unwrap_or_default();
    let scaled = real(time) * f64::from_bits(head(Head::Scale));
    head(Head::Offset).saturating_add(whole(scaled))
}

fn line(words: &[u64], kind: RingKind, record: &Record) -> Line {
    let port = |port: usize| match text_at(words, PORTS + port * NAME, NAME) {
        name if name.is_empty() => format!("port {port}"),
        name => name,
    };
    let mut line = Line {
        wall: String::new(),
        ns: 0,
        kind: "message",
        number: record.number,
        level: None,
        text: String::new(),
        bytes: None,
    };
    match kind {
        RingKind::Said => {
            let (level, text) = said::message(record);
            line.ns = record.words.first().copied().unwrap_or_default();
            (line.level, line.text) = (Some(level), text);
        }
        RingKind::Decisions => {
            line.kind = "decision";
            if let Some(entry) = Entry::from_words(&record.words) {
                line.ns = of_clock(words, entry.time.0);
                line.text = entry.text(&port(entry.flow.egress.index()));
            }
        }
        RingKind::Frames => {
            line.kind = "frame";
            let octets = records::octets_of(&record.words);
            if let Some((event, frame)) = Event::decode(&octets) {
                line.ns = of_clock(words, event.time.0);
                let reason = event.reason.map_or("an unknown reason", DropReason::name);
                let ingress = event.ingress.map(|ingress| port(ingress.index()));
                let port = ingress.unwrap_or_default();
                let worker = event.worker.0;
                line.text = format!("worker {worker}, {port}: {reason}, {} bytes", event.len);
                let kept = frame.get(..usize::from(event.len).min(SNAPLEN));
                line.bytes = Some(hex(kept.unwrap_or(frame)));
            }
        }
    }
    line.wall = rfc3339(line.ns);
    line
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl fmt::Display for Reading {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reading {
            version,
            pid,
            folder,
            begun,
            torn,
            ..
        } = self;
        writeln!(
            out,
            "npcc-switch {version}, process {pid}, in {folder}, since {begun}"
        )?;
        let ending = match self.ending {
            Ending::Ordered => "ended in order",
            Ending::Panicked => "a thread panicked",
            Ending::SecondSignal => "ended by a second signal",
            Ending::Unknown => "runs, or ended without a word",
        };
        writeln!(out, "{ending}; records torn: {torn}\n")?;
        writeln!(
            out,
            "{:<24} {:>14}  {:<27}  still for",
            "thread", "loops", "last moved"
        )?;
        for thread in &self.threads {
            let Thread {
                name,
                loops,
                moved,
                still_s,
            } = thread;
            writeln!(out, "{name:<24} {loops:>14}  {moved:<27}  {still_s:.3} s")?;
        }
        writeln!(out)?;
        if let Some(why) = &self.unread {
            writeln!(out, "{why}")?;
        }
        for line in &self.lines {
            let Line {
                wall, kind, text, ..
            } = line;
            let kind = line.level.unwrap_or(kind);
            writeln!(out, "{wall}  {kind:<8}  {text}")?;
            if let Some(bytes) = &line.bytes {
                for row in bytes.as_bytes().chunks(64) {
                    writeln!(out, "{:37}{}", "", String::from_utf8_lossy(row))?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
