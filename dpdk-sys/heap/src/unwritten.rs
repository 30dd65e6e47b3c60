//! Text that a process has said and not yet written: [`Unwritten`]. The end of the process waits for it, also an end by `abort`.
//!
//! Law: the wait is bounded, and it is safe in a signal handler: it reads atomics, polls descriptors and sleeps, without lock or
//! allocation (`signal-safety(7)`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::SIGABRT;
use signal_hook::low_level::{emulate_default_handler, register};

/// Interval at which a wait looks again.
const LOOK: Duration = Duration::from_millis(1);

/// Queues of text, each a descriptor that is readable while it holds some, and the state of the one thread that empties them.
#[derive(Debug)]
pub struct Unwritten {
    queues: Vec<OwnedFd>,
    /// True from before the thread takes text until it has written it.
    writes: AtomicBool,
}

impl Unwritten {
    /// Creates the state of a thread that empties these queues.
    #[must_use]
    pub const fn of(queues: Vec<OwnedFd>) -> Unwritten {
        Unwritten {
            queues,
            writes: AtomicBool::new(false),
        }
    }

    /// Records that the thread takes text from now on, or that it has written all that it took.
    pub fn writes(&self, writes: bool) {
        self.writes.store(writes, Ordering::SeqCst);
    }

    /// Returns true if all that was said before this call is written.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let holds_none = |queue: &OwnedFd| {
            let mut queue = [PollFd::new(queue.as_fd(), PollFlags::POLLIN)];
            poll(&mut queue, PollTimeout::ZERO) == Ok(0)
        };
        // The order matters: text that has left its queue was taken by a thread that had said so before.
        self.queues.iter().all(holds_none) && !self.writes.load(Ordering::SeqCst)
    }

    /// Waits until all is written, `limit` at most.
    pub fn wait(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while !self.is_none() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }

    /// Installs a handler that waits for `limit` at most when the process is aborted, by itself or by another. Then it ends, by SIGABRT.
    ///
    /// # Errors
    /// The system refuses a handler for the signal.
    pub fn before_abort(self: &Arc<Unwritten>, limit: Duration) -> io::Result<()> {
        let unwritten = Arc::clone(self);
        let action = move || {
            unwritten.wait(limit);
            // It fails for unknown signals only.
            let _ = emulate_default_handler(SIGABRT);
        };
        // SAFETY: the action is safe in a handler: it loads an atomic, polls descriptors that stay open as long as the action exists,
        // reads the clock and sleeps; it neither allocates, panics nor drops anything. `emulate_default_handler` is documented as
        // async-signal-safe.
        let registered = unsafe { register(SIGABRT, action) };
        registered.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_wait_ends_with_the_last_text_or_with_its_limit() {
        let (from, to) = UnixDatagram::pair().unwrap();
        let unwritten = Unwritten::of(vec![to.as_fd().try_clone_to_owned().unwrap()]);
        assert!(unwritten.is_none());
        from.send(b"text").unwrap();
        assert!(!unwritten.is_none(), "it is in the queue");
        let begun = Instant::now();
        unwritten.wait(Duration::from_millis(50));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        unwritten.writes(true);
        assert_eq!(to.recv(&mut [0; 16]).unwrap(), 4);
        assert!(!unwritten.is_none(), "it is being written");
        unwritten.writes(false);
        unwritten.wait(Duration::from_secs(3600));
    }
}
