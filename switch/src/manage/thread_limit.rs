//! Bounded set of threads beside the management thread.

use std::io;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Bounded set of threads that end by themselves.
#[derive(Debug)]
pub struct ThreadLimit {
    name: &'static str,
    most: usize,
    /// Most threads of one user.
    each: usize,
    threads: Vec<(u32, JoinHandle<()>)>,
}

/// Reason why a thread was not started.
#[derive(Debug, thiserror::Error)]
pub enum NoThread {
    /// The limit of all threads is reached.
    #[error("{0} others are being served: try again")]
    Full(usize),
    /// The limit of one user's threads is reached.
    #[error("{0} others of this user are being served: try again")]
    FullOfUser(usize),
    /// The system refused a thread.
    #[error("the system gives no thread: {0}")]
    System(#[from] io::Error),
}

impl ThreadLimit {
    /// Makes a set for threads of this name, at most `most` at a time and `each` for one user.
    #[must_use]
    pub const fn new(name: &'static str, most: usize, each: usize) -> ThreadLimit {
        ThreadLimit {
            name,
            most,
            each,
            threads: Vec::new(),
        }
    }

    /// Returns the number of further threads that may run.
    pub fn left(&mut self) -> usize {
        self.threads.retain(|(_, thread)| !thread.is_finished());
        self.most.saturating_sub(self.threads.len())
    }

    /// Starts a thread for a user.
    ///
    /// # Errors
    /// Fails with [`NoThread`].
    pub fn start(
        &mut self,
        user: u32,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), NoThread> {
        if self.left() == 0 {
            return Err(NoThread::Full(self.most));
        }
        let own = self.threads.iter().filter(|(owner, _)| *owner == user);
        if own.count() >= self.each {
            return Err(NoThread::FullOfUser(self.each));
        }
        let thread = Builder::new().name(self.name.to_owned()).spawn(work)?;
        self.threads.push((user, thread));
        Ok(())
    }

    /// Waits up to `patience` for all threads to end; returns true if they have.
    pub fn wait(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            let all_ended = self.left() == self.most;
            if all_ended || Instant::now() >= deadline {
                return all_ended;
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
    fn there_are_never_more_threads_than_the_limit_and_slots_become_free() {
        let mut threads = ThreadLimit::new("test", 2, 2);
        let (ends, waits): (Vec<_>, Vec<_>) = (0..2).map(|_| channel::<()>()).unzip();
        for wait in waits {
            threads.start(0, move || _ = wait.recv()).unwrap();
        }
        let third = threads.start(0, || {});
        assert!(matches!(third, Err(NoThread::Full(2))));
        assert!(!threads.wait(Duration::from_millis(20)));
        drop(ends);
        assert!(threads.wait(Duration::from_secs(10)));
        assert!(threads.start(0, || {}).is_ok());
    }

    /// One user once held all slots, and everybody else was turned away.
    #[test]
    fn a_user_has_some_slots_and_the_others_the_rest() {
        let mut threads = ThreadLimit::new("test", 5, 2);
        let (end, wait) = channel::<()>();
        let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
        let mut start = |user| {
            let wait = std::sync::Arc::clone(&wait);
            threads.start(user, move || _ = wait.lock().unwrap().recv())
        };
        for user in [7, 7, 8] {
            start(user).unwrap();
        }
        assert!(matches!(start(7), Err(NoThread::FullOfUser(2))));
        assert!(start(8).is_ok());
        assert!(matches!(start(8), Err(NoThread::FullOfUser(2))));
        assert!(start(0).is_ok());
        assert!(matches!(start(9), Err(NoThread::Full(5))));
        drop(end);
        assert!(threads.wait(Duration::from_secs(10)));
        assert!(threads.start(7, || {}).is_ok());
    }
}
