//! Word of memory that outlives the process and that a signal handler writes: [`Mark`]. Whatever ends the process leaves that word.
//!
//! Law: the handler only reads atomics and writes one: no lock, no allocation, no system call
//! (`signal-safety(7)`).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::low_level::register;

use crate::shared::SharedWords;

/// Word that a signal handler writes, see the module's text. Nothing is written until [`Mark::at`] sets its place.
#[derive(Debug, Default)]
pub struct Mark {
    place: OnceLock<(Arc<SharedWords>, usize)>,
}

impl Mark {
    /// Sets the word that is written from now on; only the first call has an effect.
    pub fn at(&self, memory: Arc<SharedWords>, word: usize) {
        // A second recorder in one process is not this one's.
        let _ = self.place.set((memory, word));
    }

    /// Installs a handler that writes the signal's number whenever it arrives while the flag is set. Handlers registered for the signal later
    /// run after it.
    ///
    /// # Errors
    /// The system refuses a handler for the signal.
    pub fn when(self: &Arc<Mark>, signal: i32, flag: &Arc<AtomicBool>) -> io::Result<()> {
        let (mark, flag) = (Arc::clone(self), Arc::clone(flag));
        let number = u64::from(signal.unsigned_abs());
        let action = move || {
            if flag.load(Ordering::SeqCst) {
                mark.write(number);
            }
        };
        // SAFETY: the action is safe in a handler: it reads a flag and a cell that is set once by atomics, and stores an atomic in memory
        // that stays mapped as long as the cell holds it; it neither panics nor drops anything.
        let registered = unsafe { register(signal, action) };
        registered.map(|_| ())
    }

    fn write(&self, number: u64) {
        if let Some((memory, word)) = self.place.get()
            && let Some(word) = memory.words().get(*word)
        {
            word.store(number, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::SIGUSR2;
    use signal_hook::low_level::raise;

    #[test]
    fn a_word_is_written_by_a_signal_that_finds_the_flag_up() {
        let memory = Arc::new(SharedWords::new("mark", 4).unwrap());
        let (mark, flag) = (Arc::new(Mark::default()), Arc::default());
        mark.when(SIGUSR2, &flag).unwrap();
        let word = || memory.words()[3].load(Ordering::Acquire);
        flag.store(true, Ordering::SeqCst);
        raise(SIGUSR2).unwrap();
        assert_eq!(word(), 0, "nobody said where");
        mark.at(Arc::clone(&memory), 3);
        flag.store(false, Ordering::SeqCst);
        raise(SIGUSR2).unwrap();
        assert_eq!(word(), 0, "the flag is down");
        flag.store(true, Ordering::SeqCst);
        raise(SIGUSR2).unwrap();
        assert_eq!(word(), 12);
        // Another place, and one that is not there, change nothing.
        mark.at(Arc::clone(&memory), 9);
        raise(SIGUSR2).unwrap();
        assert_eq!((word(), memory.words().len()), (12, 4));
    }
}
