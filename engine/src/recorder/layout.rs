//! Layout of a recorder: words of 64 bits, in the byte order of the machine.
//!
//! ```text
//! 0      magic, version, hash, pid, begun, ended, panicked, offset of the clock, its scale, workers, threads, signal     [`Head`]
//! 32     the version of the program, the folder it ran in: texts of [`TEXT`] words
//! 96     names of ports, [`NAME`] words each
//! 224    threads, [`THREAD`] words each: name, loops, when it last moved
//! 736    the rings ([`npcc_heap::records`]): [`rings`]
//! ```
//!
//! The first 96 words are the same in every version; version 1 had rings of another form.

use npcc_cnp::admission::Suppressed;
use npcc_cnp::log;
use npcc_cnp::policy::Reason;
use npcc_heap::records::{self, HEAD, Place};
use npcc_pipeline::capture::STANDING_WORDS;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::MAX_PORTS;
use npcc_roce::pair::Evidence;

/// First word of a recorder: `npccrec` and a zero.
pub const MAGIC: u64 = u64::from_le_bytes(*b"npccrec\0");
/// Version of the layout.
pub const VERSION: u64 = 2;

/// Index of each word of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Head {
    /// Mark of a recorder: [`MAGIC`].
    Magic,
    /// Version of the layout: [`VERSION`].
    Version,
    /// Hash of names and sizes: [`hash`].
    Hash,
    /// Process id of the writer.
    Pid,
    /// Time at which the run began, in ns since 1970.
    Begun,
    /// Time at which the run ended in order, in ns since 1970; 0 while it runs, and where it never did.
    Ended,
    /// Time at which a thread last panicked, in ns since 1970, or 0.
    Panicked,
    /// Offset added to a scaled time of the switch's clock to get ns since 1970.
    Offset,
    /// Real ns per ns of the switch's clock, as the bits of an `f64`.
    Scale,
    /// Number of workers that have a ring.
    Workers,
    /// Number of threads that have a slot.
    Threads,
    /// Number of the signal that ended the run at once while it was stopping, or 0.
    Signal,
}

/// Words of a text in the head.
pub const TEXT: usize = 32;
/// Index of the first word of the program's version.
pub const PROGRAM: usize = 32;
/// Index of the first word of the folder the program ran in.
pub const FOLDER: usize = PROGRAM + TEXT;
/// Index of the first word of the ports' names.
pub const PORTS: usize = FOLDER + TEXT;
/// Words of a port's name.
pub const NAME: usize = 4;
/// Index of the first word of the threads' slots.
pub const BEATS: usize = PORTS + MAX_PORTS * NAME;
/// Number of slots for threads.
pub const THREADS: usize = 64;
/// Words of a thread's slot: its name, its loops, when it last moved.
pub const THREAD: usize = 8;
/// Words of a thread's name.
pub const THREAD_NAME: usize = 6;
/// Index of the first word of the first ring.
pub const FIRST: usize = BEATS + THREADS * THREAD;
/// Largest number of workers that have a ring of frames.
const WORKERS: usize = 64;

/// Kind of the records in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingKind {
    /// Log messages, those of the event log included.
    Said,
    /// Decisions of NPCC: CNPs, or refusals.
    Decisions,
    /// Malformed frames of one worker, as captured.
    Frames,
}

impl RingKind {
    /// Number of records the ring keeps.
    #[must_use]
    pub const fn slots(self) -> usize {
        match self {
            RingKind::Said => 256,
            RingKind::Decisions => log::KEPT,
            RingKind::Frames => 64,
        }
    }

    /// Words of the longest record of this kind.
    #[must_use]
    pub const fn longest(self) -> usize {
        match self {
            RingKind::Said => 30,
            RingKind::Decisions => log::WORDS,
            RingKind::Frames => STANDING_WORDS,
        }
    }
}

/// Yields the rings of a switch with `workers` workers: messages, CNPs, refusals, and frames of each worker.
pub fn rings(workers: usize) -> impl Iterator<Item = (RingKind, Place)> {
    let frames = std::iter::repeat_n(RingKind::Frames, workers.min(WORKERS));
    let kinds = [RingKind::Said, RingKind::Decisions, RingKind::Decisions].into_iter();
    kinds.chain(frames).scan(FIRST, |next, kind| {
        let place = Place {
            first: *next,
            slots: kind.slots(),
            width: HEAD + kind.longest(),
        };
        // No cache line has two writers.
        *next = (*next + place.words()).next_multiple_of(8);
        Some((kind, place))
    })
}

/// Returns a hash that differs where another program would read something else into the words: it covers the names behind the
/// numbers, and the sizes.
#[must_use]
pub fn hash() -> u64 {
    let kinds = [RingKind::Said, RingKind::Decisions, RingKind::Frames];
    let sizes = kinds.map(|kind| format!("{} {}", kind.slots(), kind.longest()));
    let names = DropReason::ALL.iter().map(|one| one.name());
    let names = names.chain(Reason::ALL.iter().map(|one| one.name()));
    let names = names.chain(Suppressed::ALL.iter().map(|one| one.name()));
    let names = names.chain(Evidence::ALL.iter().map(|one| one.name()));
    let all = sizes.iter().map(String::as_str).chain(names);
    // FNV-1a.
    let bytes = all.flat_map(|text| text.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Encodes `text` as `room` words, cut where it is too long and padded with zeros.
pub fn words_of(text: &str, room: usize) -> impl Iterator<Item = u64> {
    let end = text.floor_char_boundary(room * 8);
    let octets = text.as_bytes().get(..end).unwrap_or_default();
    let words = records::words_of(octets);
    words.chain(std::iter::repeat(0)).take(room)
}

/// Decodes the text that `words` hold, up to its first zero.
#[must_use]
pub fn text_of(words: &[u64]) -> String {
    let octets = records::octets_of(words);
    let text = octets.split(|octet| *octet == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_and_is_cut_between_letters() {
        for text in ["", "wan0", "exactly8", "a folder of some length"] {
            let words: Vec<u64> = words_of(text, 4).collect();
            assert_eq!((words.len(), text_of(&words)), (4, text.to_owned()));
        }
        let words: Vec<u64> = words_of("1234567\u{e9}", 1).collect();
        assert_eq!(text_of(&words), "1234567");
    }

    #[test]
    fn nothing_stands_on_anything_else() {
        let ends = [PROGRAM, FOLDER, PORTS, BEATS, FIRST];
        assert!(ends.is_sorted() && (Head::Signal as usize) < PROGRAM);
        assert_eq!(FIRST, 736, "as the text says");
        let mut next = FIRST;
        for (_, place) in rings(5) {
            assert!(place.first >= next && place.first.is_multiple_of(8));
            next = place.first + place.words();
        }
    }
}
