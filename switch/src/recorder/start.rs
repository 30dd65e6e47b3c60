//! A recorder from its beginning to its end, and what becomes of the one before.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use npcc_heap::mark::Mark;
use npcc_heap::shared::SharedWords;
use npcc_pipeline::units::MAX_PORTS;

use super::beats::{Beat, wall};
use super::decisions::Copier;
use super::frames::Keeper;
use super::layout::{
    ENTRY, FIRST, FOLDER, Head, Kind, LIST, MAGIC, NAME, PORTS, PROGRAM, RINGS, TEXT, VERSION,
    hash, words_of,
};
use super::read::{self, Ending};
use super::ring::{HEAD, Place, Writer};
use super::said::Messages;
use crate::clock::Clock;

/// A recorder that is written.
#[derive(Debug)]
pub struct Recorder {
    memory: Arc<SharedWords>,
    /// The workers' rings, last first.
    frames: Vec<Place>,
    decisions: Place,
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

/// Keeps the recorder of the last run under its other name; how that run ended, if there was one that can be read. To be called
/// when it is sure that no other switch runs on this socket.
pub fn keep_previous(socket: &Path) -> Option<Ending> {
    let (path, kept) = (super::path(socket), super::previous(socket));
    let reading = read::file(&path).ok();
    match fs::rename(&path, kept) {
        Ok(()) => reading.map(|reading| reading.ending),
        Err(_) => None,
    }
}

impl Recorder {
    /// Begins one.
    ///
    /// # Errors
    /// Its file cannot be made.
    pub fn begin(socket: &Path, about: &About<'_>) -> io::Result<Recorder> {
        let mut rings = vec![Kind::Said, Kind::Decisions];
        rings.extend((0..about.workers).map(|_| Kind::Frames));
        rings.truncate(RINGS);
        let mut next = FIRST;
        let places: Vec<(Kind, Place)> = rings
            .into_iter()
            .map(|kind| {
                let place = Place {
                    first: next,
                    slots: kind.slots(),
                    width: kind.payload() + HEAD,
                };
                // No line of memory has two writers.
                next = (next + place.words()).next_multiple_of(8);
                (kind, place)
            })
            .collect();
        let memory = Arc::new(SharedWords::in_file(&super::path(socket), next)?);
        describe(&memory, about, &places);
        let of = |wanted| move |(kind, place): &(Kind, Place)| (*kind == wanted).then_some(*place);
        let mut frames: Vec<Place> = places.iter().filter_map(of(Kind::Frames)).collect();
        frames.reverse();
        let one = |kind| places.iter().find_map(of(kind));
        let missing = || io::Error::other("the recorder has no ring for messages or decisions");
        let (said, decisions) = one(Kind::Said)
            .zip(one(Kind::Decisions))
            .ok_or_else(missing)?;
        Messages::new(Arc::clone(&memory), Writer::new(Arc::clone(&memory), said)).listen();
        Ok(Recorder {
            memory,
            frames,
            decisions,
        })
    }

    /// Who keeps the next worker's odd frames.
    pub fn keeper(&mut self) -> Option<Keeper> {
        let place = self.frames.pop()?;
        Some(Keeper::new(Writer::new(Arc::clone(&self.memory), place)))
    }

    /// Who copies the control core's decisions.
    #[must_use]
    pub fn copier(&self) -> Copier {
        Copier::new(Writer::new(Arc::clone(&self.memory), self.decisions))
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
    let mut workers = 0..;
    for (index, (kind, place)) in places.iter().enumerate() {
        let number = match kind {
            Kind::Frames => workers.next().unwrap_or_default(),
            Kind::Said | Kind::Decisions => 0,
        };
        let numbers = [place.first, place.slots, place.width];
        let words = [*kind as u64, number].into_iter();
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
