//! Writing side of a recorder, from its beginning to its end, and the renaming of the recorder of the run before.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use npcc_cnp::log::DecisionLog;
use npcc_heap::mark::Mark;
use npcc_heap::records::{Place, Ring, Words};
use npcc_heap::shared::SharedWords;
use npcc_pipeline::capture::Standing;
use npcc_pipeline::num::{real, whole};
use npcc_pipeline::units::{MAX_PORTS, WorkerId};

use super::beats::{Beat, wall};
use super::layout::{
    FOLDER, Head, MAGIC, NAME, PORTS, PROGRAM, TEXT, VERSION, hash, rings, words_of,
};
use super::read::{self, Ending};
use super::said::Messages;
use crate::clock::Clock;
use crate::log::note;

/// Recorder of this run, open for writing.
#[derive(Debug)]
pub struct Recorder {
    memory: Arc<SharedWords>,
    /// Places of the workers' rings of malformed frames.
    frames: Vec<Place>,
    /// Places of the rings of CNPs and of refusals.
    decisions: [Place; 2],
}

/// Description of the run, written into the head of its recorder.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Version of the program.
    pub version: &'a str,
    /// Names of the ports.
    pub ports: &'a [String],
    /// Number of workers.
    pub workers: usize,
    /// Real ns per ns of the switch's clock.
    pub time_scale: f64,
}

/// Renames the recorder of the last run, so that it is kept. Returns the ending of that run, if it had a recorder; where another version
/// wrote it, a note says that its records are not read. Call it when no other switch runs on this socket.
pub fn keep_previous(socket: &Path) -> Option<Ending> {
    let (path, kept) = (super::path(socket), super::previous(socket));
    let reading = read::file(&path).ok();
    fs::rename(&path, kept).ok()?;
    let reading = reading?;
    if let Some(why) = reading.unread {
        note(&format!("note: the recorder of the last run: {why}"));
    }
    Some(reading.ending)
}

impl Recorder {
    /// Creates the recorder's file, writes its head, and begins to record messages and panics.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(socket: &Path, about: &About<'_>) -> io::Result<Recorder> {
        let places: Vec<Place> = rings(about.workers).map(|(_, place)| place).collect();
        let [said, cnps, refusals, frames @ ..] = places.as_slice() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let last = frames.last().unwrap_or(refusals);
        let words = last.first + last.words();
        let memory = Arc::new(SharedWords::in_file(&super::path(socket), words)?);
        describe(&memory, about, frames.len());
        let recorder = Recorder {
            memory,
            frames: frames.to_vec(),
            decisions: [*cnps, *refusals],
        };
        Messages::new(Arc::clone(&recorder.memory), recorder.ring(*said)).listen();
        Ok(recorder)
    }

    /// Returns the ring into which `worker` captures malformed frames; `None` if it has none.
    #[must_use]
    pub fn malformed(&self, worker: WorkerId) -> Option<Standing> {
        Some(Standing::new(self.frames(worker)?, worker))
    }

    pub(super) fn frames(&self, worker: WorkerId) -> Option<Ring> {
        let place = self.frames.get(usize::from(worker.0))?;
        Some(self.ring(*place))
    }

    /// Returns the logs into which the control core writes CNPs and refusals.
    #[must_use]
    pub fn decisions(&self) -> [DecisionLog; 2] {
        self.decisions
            .map(|place| DecisionLog::new(self.ring(place)))
    }

    fn ring(&self, place: Place) -> Ring {
        Ring::new(Arc::clone(&self.memory) as Arc<dyn Words>, place)
    }

    /// Allocates a heartbeat slot for the thread `name`; `None` when all are taken.
    #[must_use]
    pub fn beat(&self, name: &str) -> Option<Beat> {
        Beat::new(&self.memory, name)
    }

    /// Records the offset between the switch's clock and the time of day.
    pub fn tell_time(&self, clock: &Clock) {
        let scaled = real(clock.now().0) * clock.scale();
        self.put(Head::Offset, wall().saturating_sub(whole(scaled)));
    }

    /// Has `mark` write the number of a signal that ends the run at once into the head.
    pub fn note_signal(&self, mark: &Mark) {
        mark.at(Arc::clone(&self.memory), Head::Signal as usize);
    }

    /// Records that the run ends in order.
    pub fn end(&self) {
        self.put(Head::Ended, wall());
    }

    fn put(&self, head: Head, word: u64) {
        store(&self.memory, head as usize, [word]);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A run that could not come up ends here; its error was reported already.
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

fn describe(memory: &SharedWords, about: &About<'_>, workers: usize) {
    let put = |head: Head, word: u64| store(memory, head as usize, [word]);
    // Touching every page here spares the workers the page faults.
    store(memory, 0, std::iter::repeat_n(0, memory.words().len()));
    let folder = std::env::current_dir().unwrap_or_default();
    store(memory, PROGRAM, words_of(about.version, TEXT));
    store(memory, FOLDER, words_of(&folder.to_string_lossy(), TEXT));
    for (index, name) in about.ports.iter().take(MAX_PORTS).enumerate() {
        store(memory, PORTS + index * NAME, words_of(name, NAME));
    }
    put(Head::Workers, workers as u64);
    put(Head::Scale, about.time_scale.to_bits());
    put(Head::Begun, wall());
    put(Head::Pid, std::process::id().into());
    put(Head::Hash, hash());
    put(Head::Version, VERSION);
    put(Head::Magic, MAGIC);
}
