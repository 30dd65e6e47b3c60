//! Threads of a running switch: one registry that starts, names, joins and watches them.
//!
//! Laws: once a thread was started, whatever happens (an error on the way up, a panic of any thread), the others are stopped and joined
//! before anything they use is taken down. Every thread that runs as long as the switch has a counter of progress, which the watchdog in the
//! management thread reads; threads of clients, of a reload and of a report end by themselves in a bounded time and are not watched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, anyhow};
use core_affinity::CoreId;
use npcc_dpdk::LcoreHandle;
use npcc_pipeline::counters::Counter;

use crate::clock::Clock;
use crate::log::note;
use crate::recorder::beats::{Beat, wall};
use crate::recorder::start::Recorder;

/// Time limit for the other threads to end once the workers have: clients have 2 s of it.
const JOIN_LIMIT: Duration = Duration::from_secs(5);

/// Importance of a thread for the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Without it frames go astray, or no sender is signalled in time: a restart is the lesser evil.
    Essential,
    /// Without it the switch forwards as before.
    Auxiliary,
}

/// Thread's side of the registry: its counter of progress, and the request to stop.
#[derive(Debug, Default)]
pub struct Heartbeat {
    stop: Arc<AtomicBool>,
    progress: Arc<Counter>,
}

impl Heartbeat {
    /// Counts as progress.
    pub fn beat(&self) {
        self.progress.add(1);
    }

    /// Counts as progress. Returns true if the thread has to go on.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.beat();
        !self.stop.load(Ordering::Relaxed)
    }

    /// Returns the request to stop, shared by all threads.
    #[must_use]
    pub const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }
}

#[derive(derive_more::Debug)]
enum Handle {
    #[debug("Lcore")]
    Lcore(LcoreHandle<()>),
    System(JoinHandle<()>),
}

/// Registry of the switch's threads. Dropping it stops and joins all.
#[derive(Debug)]
pub struct Threads {
    stop: Arc<AtomicBool>,
    /// Core on which the threads other than workers run.
    core: Option<CoreId>,
    /// Started threads in the order of their start, workers first; each with its name in messages.
    started: Vec<(String, Handle)>,
    watched: Vec<Watched>,
}

impl Threads {
    /// Creates an empty registry, whose threads other than workers run on `core`.
    pub fn new(core: Option<CoreId>) -> Threads {
        Threads {
            stop: Arc::default(),
            core,
            started: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// Returns the request to stop, shared by all threads.
    pub const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Registers a worker that was launched.
    pub fn add_worker(&mut self, worker: LcoreHandle<()>) {
        let name = "a worker".to_owned();
        self.started.push((name, Handle::Lcore(worker)));
    }

    /// Starts a thread named `short` in the kernel and `name` in messages.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        &mut self,
        short: &str,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<()> {
        let core = self.core;
        let thread = Builder::new().name(short.to_owned()).spawn(move || {
            if let Some(core) = core {
                // If pinning fails, it costs some reaction time and nothing else.
                let _ = core_affinity::set_for_current(core);
            }
            work();
        });
        let thread = thread.with_context(|| format!("cannot start the {name}"))?;
        let name = format!("the {name}");
        self.started.push((name, Handle::System(thread)));
        Ok(())
    }

    /// Returns a heartbeat for a thread of this name, which is watched from now on.
    pub fn heartbeat(&mut self, name: &str, role: Role) -> Heartbeat {
        let progress = Arc::new(Counter::default());
        let seen = Arc::clone(&progress);
        self.watch(name, role, move || seen.get());
        let stop = Arc::clone(&self.stop);
        Heartbeat { stop, progress }
    }

    /// Watches a thread that has its own counter: `progress` grows while the thread moves.
    pub fn watch(&mut self, name: &str, role: Role, progress: impl Fn() -> u64 + Send + 'static) {
        self.watched.push(Watched {
            name: name.to_owned(),
            role,
            progress: Box::new(progress),
            seen: 0,
            moved: Instant::now(),
            is_stuck: false,
            beat: None,
        });
    }

    /// Returns the watchdog of all watched threads, each with a slot in the recorder.
    pub fn watchdog(&mut self, recorder: Option<(Arc<Recorder>, Clock)>) -> Watchdog {
        let mut watched = std::mem::take(&mut self.watched);
        for one in &mut watched {
            one.beat = recorder.as_ref().and_then(|(to, _)| to.beat(&one.name));
        }
        Watchdog {
            watched,
            read: None,
            recorder,
        }
    }

    /// Returns true if a thread has ended before it was stopped.
    pub fn has_ended(&self) -> bool {
        self.started.iter().any(|(_, handle)| match handle {
            Handle::Lcore(worker) => worker.is_finished(),
            Handle::System(thread) => thread.is_finished(),
        })
    }

    /// Stops and joins all threads, the workers first: sockets answer until the workers have ended.
    ///
    /// # Errors
    /// The name of the thread that panicked.
    pub fn end(mut self) -> anyhow::Result<()> {
        self.join()
    }

    fn join(&mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let mut ended = Ok(());
        let mut deadline = None;
        for (name, handle) in self.started.drain(..) {
            let defect = format!("{name} panicked; this is a defect, please report it");
            let joined = match handle {
                Handle::Lcore(worker) => worker
                    .join()
                    .map_err(|panic| Error::from(panic).context(defect)),
                Handle::System(thread) => {
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + JOIN_LIMIT);
                    while !thread.is_finished() && Instant::now() < deadline {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    if !thread.is_finished() {
                        note(&format!(
                            "note: {name} did not end in 5 s and is left behind"
                        ));
                        continue;
                    }
                    thread.join().map_err(|_| anyhow!(defect))
                }
            };
            ended = ended.and(joined);
        }
        ended
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // The caller has a worse error to report.
        let _ = self.join();
    }
}

/// Thread that the watchdog watches.
#[derive(derive_more::Debug)]
pub struct Watched {
    /// Name of the thread, as the operating system shows it.
    pub name: String,
    /// Work of the thread.
    pub role: Role,
    /// True while the thread makes no progress.
    pub is_stuck: bool,
    #[debug(skip)]
    progress: Box<dyn Fn() -> u64 + Send>,
    seen: u64,
    moved: Instant,
    beat: Option<Beat>,
}

/// Longest time between two readings that counts in full as stall time.
const GAP: Duration = Duration::from_secs(1);

/// Watchdog: progress of all watched threads, the management thread among them.
#[derive(Debug)]
pub struct Watchdog {
    watched: Vec<Watched>,
    /// Time of the last reading.
    read: Option<Instant>,
    recorder: Option<(Arc<Recorder>, Clock)>,
}

impl Watchdog {
    /// Reads all counters, and records when each thread last moved and the offset of the switch's clock to the time of day.
    pub fn read(&mut self, now: Instant) {
        self.leave_out(now);
        let wall = wall();
        for one in &mut self.watched {
            let progress = (one.progress)();
            if progress != one.seen {
                (one.seen, one.moved) = (progress, now);
                if let Some(beat) = &one.beat {
                    beat.write(progress, wall);
                }
            }
        }
        if let Some((recorder, clock)) = &self.recorder {
            recorder.tell_time(clock);
        }
    }

    /// Leaves the time since the last reading out of all stall times, but for [`GAP`]: in a longer one the reader itself did not run, so that
    /// the whole process, or the machine, may have stood still.
    fn leave_out(&mut self, now: Instant) {
        let since = self.read.replace(now).map(|last| now.duration_since(last));
        let Some(gap) = since.and_then(|since| since.checked_sub(GAP)) else {
            return;
        };
        for one in &mut self.watched {
            one.moved = now.min(one.moved + gap);
        }
    }

    /// Restarts the stall time of every thread at `now`.
    pub fn begin(&mut self, now: Instant) {
        for one in &mut self.watched {
            one.moved = now;
        }
    }

    /// Yields threads that have stood still for `limit`, and those that move again, as of the last reading: each once.
    pub fn changes(&mut self, limit: Duration, now: Instant) -> impl Iterator<Item = &Watched> {
        let changed = move |one: &&mut Watched| {
            let is_stuck = now.duration_since(one.moved) >= limit;
            is_stuck != one.is_stuck
        };
        let all = self.watched.iter_mut().filter(changed);
        all.map(|one| {
            one.is_stuck = !one.is_stuck;
            &*one
        })
    }

    /// Returns true if no essential thread stands still.
    pub fn is_well(&self) -> bool {
        let mut all = self.watched.iter();
        all.all(|one| !one.is_stuck || one.role != Role::Essential)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Starts three threads that end when they are stopped; returns the number that have ended, too.
    fn three() -> (Threads, Arc<AtomicUsize>) {
        let mut threads = Threads::new(None);
        let ended = Arc::new(AtomicUsize::new(0));
        for name in ["link thread", "HTTP thread", "management thread"] {
            let ended = Arc::clone(&ended);
            let heartbeat = threads.heartbeat(name, Role::Essential);
            let work = move || {
                while heartbeat.goes_on() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(Duration::from_millis(20));
                ended.fetch_add(1, Ordering::SeqCst);
            };
            threads.spawn("test", name, work).unwrap();
        }
        (threads, ended)
    }

    #[test]
    fn a_panic_or_an_error_after_the_start_stops_all_and_waits_for_them() {
        let (threads, ended) = three();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _threads = threads;
            panic!("as if the control core had a defect");
        }));
        assert!(panicked.is_err());
        assert_eq!(ended.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn a_thread_that_panics_is_noticed_and_named() {
        let (mut threads, ended) = three();
        assert!(!threads.has_ended());
        let defect = || panic!("as if the link thread had a defect");
        threads.spawn("test", "keeping thread", defect).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !threads.has_ended() {
            assert!(Instant::now() < deadline, "nobody noticed");
            std::thread::yield_now();
        }
        let why = threads.end().unwrap_err().to_string();
        assert!(why.contains("the keeping thread panicked"), "{why}");
        assert_eq!(ended.load(Ordering::SeqCst), 3);
    }

    /// Creates a watchdog of two threads of these roles, with their heartbeats.
    fn two(first: Role, second: Role, begin: Instant) -> (Watchdog, [Heartbeat; 2]) {
        let mut threads = Threads::new(None);
        let beats = [("worker on core 1", first), ("link thread", second)];
        let beats = beats.map(|(name, role)| threads.heartbeat(name, role));
        let mut watchdog = threads.watchdog(None);
        watchdog.begin(begin);
        (watchdog, beats)
    }

    /// Lets the threads that beat move, and returns the changes: `-` for a thread that is stuck, `+` for one that moves again.
    fn at(watchdog: &mut Watchdog, beats: &[&Heartbeat], now: Instant) -> Vec<String> {
        // The reader runs all the time.
        while let Some(next) = watchdog
            .read
            .map(|last| last + GAP)
            .filter(|next| *next < now)
        {
            watchdog.read(next);
        }
        beats.iter().for_each(|beat| beat.beat());
        watchdog.read(now);
        let changes = watchdog.changes(Duration::from_secs(5), now);
        changes
            .map(|one| format!("{}{}", if one.is_stuck { '-' } else { '+' }, one.name))
            .collect()
    }

    #[test]
    fn a_thread_that_stands_still_is_named_once_and_again_when_it_moves() {
        let begin = Instant::now();
        let second = |seconds| begin + Duration::from_secs(seconds);
        let (mut dog, [worker, link]) = two(Role::Essential, Role::Essential, begin);
        let none: [&str; 0] = [];
        assert_eq!(at(&mut dog, &[&worker, &link], second(1)), none);
        assert_eq!(at(&mut dog, &[&link], second(5)), none);
        assert!(dog.is_well());
        assert_eq!(at(&mut dog, &[&link], second(6)), ["-worker on core 1"]);
        assert!(!dog.is_well());
        assert_eq!(at(&mut dog, &[&link], second(9)), none);
        let both = [&worker, &link];
        assert_eq!(at(&mut dog, &both, second(10)), ["+worker on core 1"]);
        assert!(dog.is_well());
    }

    /// Law: the time in which the reader itself did not run accuses nobody; a thread that stands still beside a slow reader is found.
    #[test]
    fn a_standstill_of_the_whole_process_accuses_no_thread() {
        let begin = Instant::now();
        let second = |seconds| begin + Duration::from_secs(seconds);
        let limit = Duration::from_secs(5);
        let (mut dog, [worker, link]) = two(Role::Essential, Role::Essential, begin);
        dog.read(second(0));
        for frozen in 1..=8 {
            // A virtual machine is away for a minute, and its threads have not run again yet.
            let now = second(60 * frozen);
            dog.read(now);
            assert_eq!(dog.changes(limit, now).count(), 0, "{frozen}");
            [&worker, &link].into_iter().for_each(Heartbeat::beat);
            dog.read(now);
        }
        let mut now = second(480);
        let stuck = (1..=20).find(|_| {
            now += Duration::from_millis(1_500);
            link.beat();
            dog.read(now);
            dog.changes(limit, now)
                .any(|one| one.name == "worker on core 1")
        });
        assert_eq!(stuck, Some(5), "a second of each turn counts");
    }

    #[test]
    fn a_thread_that_never_moved_is_stuck_and_an_auxiliary_one_is_no_reason_to_restart() {
        let begin = Instant::now();
        let second = |seconds| begin + Duration::from_secs(seconds);
        let (mut dog, [worker, link]) = two(Role::Auxiliary, Role::Essential, begin);
        assert_eq!(at(&mut dog, &[&link], second(5)), ["-worker on core 1"]);
        assert!(dog.is_well());
        assert_eq!(at(&mut dog, &[], second(10)), ["-link thread"]);
        assert!(!dog.is_well());
        let both = [&worker, &link];
        let again = at(&mut dog, &both, second(11));
        assert_eq!(again, ["+worker on core 1", "+link thread"]);
    }
}
