//! Writing side of a recorder, from its beginning to its end, and the renaming of the recorder of the run before.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use npcc_cnp::log::DecisionLog;
use npcc_heap::mark::Mark;
use npcc_heap::records::{self, Place, Ring, Words};
use npcc_heap::shared::SharedWords;
use npcc_pipeline::capture::Standing;
use npcc_pipeline::num::{real, whole};
use npcc_pipeline::units::{MAX_PORTS, WorkerId};

use super::beats::{Beat, wall};
use super::layout::{
    FOLDER, Head, MAGIC, NAME, PORTS, PROGRAM, TEXT, VERSION, hash, rings, words_of,
};
use super::place;
use super::read::{Ending, Reading};
use super::said::Messages;
use crate::clock::Clock;
use crate::log::note;
use crate::store::Store;

/// Name of the memory in the service manager's descriptor store.
const STORED: &str = "recorder";

/// Recorder of this run, open for writing.
#[derive(Debug)]
pub struct Recorder {
    memory: Arc<SharedWords>,
    /// File in which it lies while the switch runs; `None` for a memfd.
    file: Option<PathBuf>,
    /// File beside the socket, in which it lies once the run has ended.
    beside: PathBuf,
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

/// Keeps the recorder of the last run as `.recorder.previous` beside the socket. Returns the ending of that run, if it had a recorder; where
/// another version wrote it, a note says that its records are not read. Call it when no other switch runs on this socket.
pub fn keep_previous(socket: &Path, store: &Store) -> Option<Ending> {
    let (beside, shared) = (place::beside(socket), place::shared(socket));
    let previous = place::previous(socket);
    let in_file = place::find(socket).ok();
    let stored = stored(store);
    let newer = |(_, reading): &(Vec<u8>, Reading)| {
        let found = in_file.as_ref();
        found.is_none_or(|(_, found)| reading.begun > found.begun)
    };
    let (kept, reading) = match (stored.filter(newer), in_file) {
        (Some((octets, reading)), _) => (place::write(&previous, &octets), Some(reading)),
        (None, Some((path, reading))) if path == shared => {
            let copied = fs::read(&path).and_then(|octets| place::write(&previous, &octets));
            (copied, Some(reading))
        }
        (None, found) => {
            let renamed = fs::rename(&beside, &previous);
            // There is nothing to keep where there is no file at all.
            let renamed = renamed.or_else(|error| match found {
                None if error.kind() == io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            });
            (renamed, found.map(|(_, reading)| reading))
        }
    };
    match kept {
        Ok(()) => {
            for old in [&beside, &shared] {
                // Usually there is none any more.
                let _ = fs::remove_file(old);
            }
        }
        Err(error) => {
            let path = previous.display();
            note(&format!(
                "note: the recorder of the last run stays where it is: cannot write {path}: {error}"
            ));
        }
    }
    let reading = reading?;
    if let Some(why) = reading.unread {
        note(&format!("note: the recorder of the last run: {why}"));
    }
    Some(reading.ending)
}

/// Takes the recorder that the last run left in the service manager's store.
fn stored(store: &Store) -> Option<(Vec<u8>, Reading)> {
    let memory = SharedWords::of(store.take(STORED)?).ok()?;
    // A manager that went away keeps nothing anyway.
    let _ = store.forget(STORED);
    let words = copy(&memory);
    Some((records::octets_of(&words), Reading::of(&words).ok()?))
}

/// Copies the words of a recorder out of its memory.
fn copy(memory: &SharedWords) -> Vec<u64> {
    let words = memory.words().iter();
    words.map(|word| word.load(Ordering::Acquire)).collect()
}

/// Makes the memory of a recorder in the best place that there is; returns its file, if it has one.
fn memory(
    socket: &Path,
    words: usize,
    store: &Store,
) -> io::Result<(SharedWords, Option<PathBuf>)> {
    let files = [place::beside(socket), place::shared(socket)];
    for path in files.iter().filter(|path| place::is_in_memory(path)) {
        match SharedWords::in_file(path, words) {
            Ok(memory) => return Ok((memory, Some(path.clone()))),
            Err(error) => {
                let path = path.display();
                note(&format!(
                    "note: the flight recorder is not {path}: cannot make it: {error}"
                ));
            }
        }
    }
    let memory = SharedWords::new("npcc-recorder", words)?;
    let has_store = Store::listens() && store.save(STORED, memory.as_fd()).is_ok();
    let (where_to, lost) = if has_store {
        ("the service manager's descriptor store", "")
    } else {
        (
            "the memory of this process",
            ": a report after SIGKILL is lost",
        )
    };
    let folder = socket.parent().unwrap_or(socket).display();
    note(&format!(
        "note: neither {folder} nor /dev/shm has a place in memory for the flight recorder, so it is in {where_to}{lost}"
    ));
    Ok((memory, None))
}

impl Recorder {
    /// Creates the recorder, writes its head, and begins to record messages and panics.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn begin(socket: &Path, about: &About<'_>, store: &Store) -> io::Result<Recorder> {
        let places: Vec<Place> = rings(about.workers).map(|(_, place)| place).collect();
        let [said, cnps, refusals, frames @ ..] = places.as_slice() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let last = frames.last().unwrap_or(refusals);
        let words = last.first + last.words();
        let (memory, file) = memory(socket, words, store)?;
        let memory = Arc::new(memory);
        describe(&memory, about, frames.len());
        let recorder = Recorder {
            memory,
            file,
            beside: place::beside(socket),
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

    /// Leaves the recorder of a run that ends beside the socket.
    fn leave(&self) {
        match place::write(&self.beside, &records::octets_of(&copy(&self.memory))) {
            Ok(()) => {
                if let Some(file) = &self.file {
                    // The next start removes one that stays.
                    let _ = fs::remove_file(file);
                }
            }
            Err(error) => {
                // The next start reads one in `/dev/shm` as well, and moves it.
                let kept = self.file.as_deref().map_or_else(
                    || "is not kept".to_owned(),
                    |file| format!("stays in {}", file.display()),
                );
                let path = self.beside.display();
                note(&format!(
                    "note: the flight recorder {kept}: cannot write {path}: {error}"
                ));
            }
        }
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
        if self.file.as_ref() != Some(&self.beside) {
            self.leave();
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
