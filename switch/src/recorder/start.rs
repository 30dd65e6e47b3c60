//! A recorder from its beginning to its end, and what becomes of the one before.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use npcc_cnp::log::DecisionLog;
use npcc_heap::mark::Mark;
use npcc_heap::records::{Place, Ring, Words};
use npcc_heap::shared::SharedWords;
use npcc_pipeline::units::MAX_PORTS;

use super::beats::{Beat, wall};
use super::frames::Keeper;
use super::layout::{
    ENTRY, FIRST, FOLDER, Head, Kind, LIST, MAGIC, NAME, PORTS, PROGRAM, RINGS, TEXT, VERSION,
    hash, words_of,
};
use super::read::{self, Ending, ReadError, Reading};
use super::said::Messages;
use crate::clock::Clock;
use crate::log::note;

/// A recorder that is written.
#[derive(Debug)]
pub struct Recorder {
    memory: Arc<SharedWords>,
    /// The workers' rings, last first.
    frames: Vec<Place>,
    /// Those of CNPs and of refusals.
    decisions: [Place; 2],
}

/// What a recorder says about itself.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The program's version.
    pub version: &'a str,
    /// Names of the ports.
    pub ports: &'a [String],
    /// How many workers there are.
    pub workers: usize,
    /// Real ns of one of the switch's clock.
    pub time_scale: f64,
}

/// Keeps the recorder of the last run under its other name. Returns how that run ended, if it had one; a recorder of another version
/// tells that too, and a note says that its records are not read. To be called when no other switch runs on this socket.
pub fn keep_previous(socket: &Path) -> Option<Ending> {
    let (path, kept) = (super::path(socket), super::previous(socket));
    let words = read::words(&path).ok();
    fs::rename(&path, kept).ok()?;
    let words = words?;
    if let Err(why @ ReadError::OtherVersion(_)) = Reading::of(&words) {
        note(&format!("note: records of the last run: {why}"));
    }
    Ending::of(&words)
}

impl Recorder {
    /// Begins one.
    ///
    /// # Errors
    /// Its file cannot be made.
    pub fn begin(socket: &Path, about: &About<'_>) -> io::Result<Recorder> {
        let mut rings = vec![Kind::Said, Kind::Decisions, Kind::Decisions];
        rings.extend((0..about.workers).map(|_| Kind::Frames));
        rings.truncate(RINGS);
        let mut next = FIRST;
        let places: Vec<(Kind, Place)> = rings
            .into_iter()
            .map(|kind| {
                let place = kind.at(next);
                // No line of memory has two writers.
                next = (next + place.words()).next_multiple_of(8);
                (kind, place)
            })
            .collect();
        let memory = Arc::new(SharedWords::in_file(&super::path(socket), next)?);
        describe(&memory, about, &places);
        let [(_, said), (_, cnps), (_, refusals), frames @ ..] = places.as_slice() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let recorder = Recorder {
            memory,
            frames: frames.iter().rev().map(|(_, place)| *place).collect(),
            decisions: [*cnps, *refusals],
        };
        Messages::new(Arc::clone(&recorder.memory), recorder.ring(*said)).listen();
        Ok(recorder)
    }

    /// Who keeps the next worker's odd frames.
    pub fn keeper(&mut self) -> Option<Keeper> {
        let place = self.frames.pop()?;
        Some(Keeper::new(self.ring(place)))
    }

    /// Where the control core logs CNPs and refusals.
    #[must_use]
    pub fn decisions(&self) -> [DecisionLog; 2] {
        self.decisions
            .map(|place| DecisionLog::new(self.ring(place)))
    }

    fn ring(&self, place: Place) -> Ring {
        Ring::new(Arc::clone(&self.memory) as Arc<dyn Words>, place)
    }

    /// A place for a thread.
    #[must_use]
    pub fn beat(&self, name: &str) -> Option<Beat> {
        Beat::new(&self.memory, name)
    }

    /// Takes down how the switch's clock stands to the time of day.
    pub fn tell_time(&self, clock: &Clock) {
        let scaled = clock.now().0 as f64 * clock.scale();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time since the start of the machine, in ns; the cast saturates"
        )]
        let offset = wall().saturating_sub(scaled as u64);
        self.put(Head::Offset, offset);
    }

    /// Has a signal that ends the run at once written down.
    pub fn note_signal(&self, mark: &Mark) {
        mark.at(Arc::clone(&self.memory), Head::Signal as usize);
    }

    /// The run ends in order.
    pub fn end(&self) {
        self.put(Head::Ended, wall());
    }

    fn put(&self, head: Head, word: u64) {
        store(&self.memory, head as usize, [word]);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A run that could not come up ends here, with its error told.
        if !std::thread::panicking() {
            self.end();
        }
    }
}

fn store(memory: &SharedWords, at: usize, words: impl IntoIterator<Item = u64>) {
    let places = memory.words().get(at..).unwrap_or_default();
    for (to, word) in places.iter().zip(words) {
        to.store(word, Ordering::Release);
    }
}

fn describe(memory: &SharedWords, about: &About<'_>, places: &[(Kind, Place)]) {
    let put = |head: Head, word: u64| store(memory, head as usize, [word]);
    // All pages are there before a worker writes to one.
    store(memory, 0, std::iter::repeat_n(0, memory.words().len()));
    let folder = std::env::current_dir().unwrap_or_default();
    store(memory, PROGRAM, words_of(about.version, TEXT));
    store(memory, FOLDER, words_of(&folder.to_string_lossy(), TEXT));
    for (index, name) in about.ports.iter().take(MAX_PORTS).enumerate() {
        store(memory, PORTS + index * NAME, words_of(name, NAME));
    }
    for (index, (kind, place)) in places.iter().enumerate() {
        let earlier = places.iter().take(index);
        let number = earlier.filter(|(other, _)| other == kind).count();
        let numbers = [number, place.first, place.slots, place.width];
        let words = [*kind as u64].into_iter();
        let words = words.chain(numbers.map(|number| number as u64));
        store(memory, LIST + index * ENTRY, words);
    }
    put(Head::Rings, places.len() as u64);
    put(Head::Scale, about.time_scale.to_bits());
    put(Head::Begun, wall());
    put(Head::Pid, std::process::id().into());
    put(Head::Hash, hash());
    put(Head::Version, VERSION);
    put(Head::Magic, MAGIC);
}
