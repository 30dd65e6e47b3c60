//! What a recorder holds, in the order in which it happened: as a person reads it, and as JSON. Of this run or the last, of a process
//! that is there or is not.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use npcc_cnp::log::Entry;
use npcc_heap::records::{self, Place, Record};
use serde::Serialize;

use super::layout::{
    BEATS, ENTRY, FOLDER, Head, Kind, LIST, MAGIC, NAME, PORTS, PROGRAM, RINGS, TEXT, THREAD,
    THREAD_NAME, THREADS, VERSION, hash, text_of,
};
use super::{frames, said};

/// Why a recorder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is something else, or was never begun.
    #[error("this is no recorder of npcc-switch")]
    Foreign,
    /// Another version of the program wrote it.
    #[error(
        "the recorder is of npcc-switch {0}, and this version reads it otherwise: have that one read it"
    )]
    OtherVersion(String),
}

/// How a run ended, as far as its recorder knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// In order.
    Ordered,
    /// A thread panicked.
    Panicked,
    /// A second signal ended it at once while it was stopping: somebody lost patience.
    SecondSignal,
    /// It runs, or ended without a word: it was killed, or the machine was.
    Unknown,
}

impl Ending {
    /// As the words of a recorder of any version tell; none of something else.
    #[must_use]
    pub fn of(words: &[u64]) -> Option<Ending> {
        let head = |head: Head| words.get(head as usize).copied().unwrap_or_default();
        let ending = if head(Head::Panicked) != 0 {
            Ending::Panicked
        } else if head(Head::Ended) != 0 {
            Ending::Ordered
        } else if head(Head::Signal) != 0 {
            Ending::SecondSignal
        } else {
            Ending::Unknown
        };
        (head(Head::Magic) == MAGIC).then_some(ending)
    }

    /// Whether somebody should look into it.
    #[must_use]
    pub fn is_crash(self) -> bool {
        matches!(self, Ending::Panicked | Ending::Unknown)
    }
}

/// A thread, and when it last moved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Turns of its loop.
    pub loops: u64,
    /// When it last moved, RFC 3339.
    pub moved: String,
    /// How long before the last of all records and moves that was, in seconds.
    pub still_s: f64,
}

/// One thing that was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// When, RFC 3339.
    pub wall: String,
    /// The same in ns since 1970.
    pub ns: u64,
    /// `message`, `decision` or `frame`.
    pub kind: &'static str,
    /// The how-manieth of its ring.
    pub number: u64,
    /// Of a message: `info`, `warning`, `error` or `panic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'static str>,
    /// What it says.
    pub text: String,
    /// Of a frame: its first bytes, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

/// All of a recorder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// The program's version.
    pub version: String,
    /// The process.
    pub pid: u64,
    /// The folder it ran in.
    pub folder: String,
    /// When it began, RFC 3339.
    pub begun: String,
    /// How it ended.
    pub ending: Ending,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Records that were being written, or overwritten, and are left out.
    pub torn: usize,
    /// Everything else, oldest first.
    pub lines: Vec<Line>,
}

/// Reads a file.
///
/// # Errors
/// [`ReadError`].
pub fn file(path: &Path) -> Result<Reading, ReadError> {
    Reading::of(&words(path)?)
}

/// The words of a file.
///
/// # Errors
/// It cannot be read.
pub fn words(path: &Path) -> std::io::Result<Vec<u64>> {
    let octets = std::fs::read(path)?;
    Ok(records::words_of(&octets).collect())
}

impl Reading {
    /// Out of the words of a recorder.
    ///
    /// # Errors
    /// [`ReadError`], never [`ReadError::Io`].
    pub fn of(words: &[u64]) -> Result<Reading, ReadError> {
        let head = |head: Head| words.get(head as usize).copied().unwrap_or_default();
        let ending = Ending::of(words).ok_or(ReadError::Foreign)?;
        let version = text_at(words, PROGRAM, TEXT);
        if head(Head::Version) != VERSION || head(Head::Hash) != hash() {
            return Err(ReadError::OtherVersion(version));
        }
        let mut lines = Vec::new();
        let mut torn = 0;
        let memory: Vec<AtomicU64> = words.iter().copied().map(AtomicU64::new).collect();
        for (kind, number, place) in rings(words, head(Head::Rings)) {
            let read = records::read(&memory, place);
            torn += read.inconsistent;
            let all = read.whole.iter();
            lines.extend(all.map(|record| line(words, kind, number, record)));
        }
        lines.sort_by_key(|line| line.ns);
        let last = lines.last().map_or(0, |line| line.ns);
        Ok(Reading {
            version,
            pid: head(Head::Pid),
            folder: text_at(words, FOLDER, TEXT),
            begun: rfc3339(head(Head::Begun)),
            ending,
            threads: threads(words, head(Head::Threads), last),
            torn,
            lines,
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

/// The rings of the list that stand inside the words.
fn rings(words: &[u64], count: u64) -> impl Iterator<Item = (Kind, u64, Place)> {
    let count = usize::try_from(count).unwrap_or(RINGS).min(RINGS);
    let list = words.get(LIST..LIST + count * ENTRY).unwrap_or_default();
    list.chunks_exact(ENTRY).filter_map(|entry| {
        let [kind, number, first, slots, width] = *entry else {
            return None;
        };
        let kind = Kind::of(kind)?;
        let place = kind.at(usize::try_from(first).ok()?);
        let of_kind = (place.slots as u64, place.width as u64);
        (of_kind == (slots, width)).then_some((kind, number, place))
    })
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

/// A time of the switch's clock as ns since 1970.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "ns since the machine started; microseconds are shown, and the cast saturates"
)]
fn of_clock(words: &[u64], time: u64) -> u64 {
    let head = |head: Head| words.get(head as usize).copied().unwrap_or_default();
    let scaled = time as f64 * f64::from_bits(head(Head::Scale));
    head(Head::Offset).saturating_add(scaled as u64)
}

fn line(words: &[u64], kind: Kind, ring: u64, record: &Record) -> Line {
    let port = |port: usize| match text_at(words, PORTS + port * NAME, NAME) {
        name if name.is_empty() => format!("port {port}"),
        name => name,
    };
    let time = record.words.first().copied().unwrap_or_default();
    let mut line = Line {
        wall: String::new(),
        ns: of_clock(words, time),
        kind: "message",
        number: record.number,
        level: None,
        text: String::new(),
        bytes: None,
    };
    match kind {
        Kind::Said => {
            let (level, text) = said::message(record);
            (line.ns, line.level, line.text) = (time, Some(level), text);
        }
        Kind::Decisions => {
            line.kind = "decision";
            if let Some(entry) = Entry::from_words(&record.words) {
                line.ns = of_clock(words, entry.time.0);
                line.text = entry.text(&port(entry.flow.egress.index()));
            }
        }
        Kind::Frames => {
            let frame = frames::OddFrame::of(record);
            let reason = frame
                .reason
                .map_or("an unknown reason", |reason| reason.name());
            let (port, length) = (port(frame.port.index()), frame.length);
            line.kind = "frame";
            line.text = format!("worker {ring}, {port}: {reason}, {length} bytes");
            line.bytes = Some(hex(&frame.bytes));
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
