//! The threads of a running switch, and that they end together.
//!
//! Law: once a thread was started, whatever happens (an error on the way up, a panic of any thread) the others are told to stop
//! and waited for before anything they use is taken down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use npcc_dpdk::LcoreHandle;

use crate::log::note;

/// How long the management thread has to end once the workers stand still: clients have 2 s of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A thread that forwards.
pub(super) trait Hand {
    /// Whether it has ended.
    fn has_ended(&self) -> bool;

    /// Waits for it.
    ///
    /// # Errors
    /// Its panic.
    fn wait(self) -> anyhow::Result<()>;
}

impl Hand for LcoreHandle<()> {
    fn has_ended(&self) -> bool {
        self.is_finished()
    }

    fn wait(self) -> anyhow::Result<()> {
        Ok(self.join()?)
    }
}

/// See the module's text. Dropping it stops all.
pub(super) struct Crew<H: Hand> {
    stop: Arc<AtomicBool>,
    workers: Vec<H>,
    /// What each is for, and the thread.
    managers: Vec<(&'static str, JoinHandle<()>)>,
}

impl<H: Hand> Crew<H> {
    /// Nobody yet; all who come look at `stop`.
    pub(super) const fn new(stop: Arc<AtomicBool>) -> Crew<H> {
        Crew {
            stop,
            workers: Vec::new(),
            managers: Vec::new(),
        }
    }

    /// What tells all to stop.
    pub(super) const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Takes a worker in.
    pub(super) fn add(&mut self, worker: H) {
        self.workers.push(worker);
    }

    /// Takes a thread of management in; `what` it is for.
    pub(super) fn manage(&mut self, what: &'static str, manager: JoinHandle<()>) {
        self.managers.push((what, manager));
    }

    /// Whether one of them has ended before it was told to.
    pub(super) fn has_ended(&self) -> bool {
        let mut managers = self.managers.iter();
        self.workers.iter().any(Hand::has_ended)
            || managers.any(|(_, manager)| manager.is_finished())
    }

    /// Stops all, the workers first: sockets answer until those stand still.
    ///
    /// # Errors
    /// Whose panic it was.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.halt()
    }

    fn halt(&mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let defect = "this is a defect, please report it";
        let mut ended = Ok(());
        for worker in self.workers.drain(..) {
            let one = worker.wait();
            let one = one.map_err(|panic| panic.context(format!("a worker panicked; {defect}")));
            ended = ended.and(one);
        }
        let deadline = Instant::now() + PATIENCE;
        for (what, manager) in self.managers.drain(..) {
            while !manager.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !manager.is_finished() {
                note(&format!(
                    "note: the {what} thread did not end in 5 s and is left behind"
                ));
                continue;
            }
            let managed = manager.join();
            let managed = managed.map_err(|_| anyhow!("the {what} thread panicked; {defect}"));
            ended = ended.and(managed);
        }
        ended
    }
}

impl<H: Hand> Drop for Crew<H> {
    fn drop(&mut self) {
        // Whoever drops it has a worse error to tell.
        let _ = self.halt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;
    use std::thread::spawn;

    impl Hand for JoinHandle<()> {
        fn has_ended(&self) -> bool {
            self.is_finished()
        }

        fn wait(self) -> anyhow::Result<()> {
            self.join().map_err(|_| anyhow!("a panic"))
        }
    }

    /// Two workers and a manager that end when told to, and how many have.
    fn crew() -> (Crew<JoinHandle<()>>, Arc<AtomicUsize>) {
        let mut crew = Crew::new(Arc::default());
        let ended = Arc::new(AtomicUsize::new(0));
        let thread = |crew: &Crew<JoinHandle<()>>| {
            let (stop, ended) = (Arc::clone(crew.stop()), Arc::clone(&ended));
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(Duration::from_millis(20));
                ended.fetch_add(1, Ordering::SeqCst);
            })
        };
        for _ in 0..2 {
            let worker = thread(&crew);
            crew.add(worker);
        }
        let manager = thread(&crew);
        crew.manage("management", manager);
        (crew, ended)
    }

    fn await_end(crew: &Crew<JoinHandle<()>>) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !crew.has_ended() {
            assert!(Instant::now() < deadline, "nobody noticed");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_panic_or_an_error_after_the_start_stops_all_and_waits_for_them() {
        let (crew, ended) = crew();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _crew = crew;
            panic!("as if the control core had a defect");
        }));
        assert!(panicked.is_err());
        assert_eq!(ended.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_thread_that_panics_is_noticed_and_named() {
        let (mut crew, ended) = crew();
        assert!(!crew.has_ended());
        crew.add(spawn(|| panic!("as if a worker had a defect")));
        await_end(&crew);
        let why = crew.end().unwrap_err().to_string();
        assert!(why.contains("a worker panicked"), "{why}");
        assert_eq!(ended.load(Ordering::SeqCst), 3);

        let mut crew: Crew<JoinHandle<()>> = Crew::new(Arc::default());
        crew.manage(
            "management",
            spawn(|| panic!("as if management had a defect")),
        );
        await_end(&crew);
        let why = crew.end().unwrap_err().to_string();
        assert!(why.contains("management thread panicked"), "{why}");
    }
}
