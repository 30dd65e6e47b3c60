//! Threads beside the management thread: so many at a time and no more.

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A bounded number of threads that end by themselves.
#[derive(Debug)]
pub struct Room {
    name: &'static str,
    most: usize,
    threads: Vec<JoinHandle<()>>,
}

/// A thread was not started.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// As many as may run do.
    #[error("{0} others are being served: try again")]
    Full(usize),
    /// The system gives no more threads.
    #[error("the system gives no thread: {0}")]
    System(#[from] io::Error),
}

impl Room {
    /// Threads of this name, `most` at a time.
    #[must_use]
    pub const fn new(name: &'static str, most: usize) -> Room {
        Room {
            name,
            most,
            threads: Vec::new(),
        }
    }

    /// Whether as many run as may.
    pub fn is_full(&mut self) -> bool {
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.len() >= self.most
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn start(&mut self, work: impl FnOnce() + Send + 'static) -> Result<(), NoRoom> {
        if self.is_full() {
            return Err(NoRoom::Full(self.most));
        }
        let thread = Builder::new().name(self.name.to_owned()).spawn(work)?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits until all have ended, for a time; whether they have.
    pub fn wait(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            self.threads.retain(|thread| !thread.is_finished());
            if self.threads.is_empty() || Instant::now() >= deadline {
                return self.threads.is_empty();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn there_are_never_more_threads_than_room_and_places_become_free() {
        let mut room = Room::new("test", 2);
        let (ends, waits): (Vec<_>, Vec<_>) = (0..2).map(|_| channel::<()>()).unzip();
        for wait in waits {
            room.start(move || _ = wait.recv()).unwrap();
        }
        let third = room.start(|| {});
        assert!(matches!(third, Err(NoRoom::Full(2))));
        assert!(!room.wait(Duration::from_millis(20)));
        drop(ends);
        assert!(room.wait(Duration::from_secs(10)));
        assert!(room.start(|| {}).is_ok());
    }
}
