//! `cores.idle: adaptive`: threads with nothing to do sleep until a receive interrupt or another thread wakes them.
//!
//! A worker *arms* once it has moved nothing for a while, holds nothing, and the other workers have moved nothing either: from then on
//! its devices' receive interrupts are on, and whoever has work for it writes to its eventfd. It walks its loop once more, so that
//! what came in between is found, and then sleeps until one of them wakes it, at most [`LONGEST`] at a time. The control core arms
//! once all workers have.
//!
//! Law: a sleeper says that it is armed before it looks for the last time; who brings work looks for armed sleepers after bringing it; a
//! full fence stands between the two on both sides. So one of them sees the other, and nothing waits for the end of a sleep.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use npcc_dpdk::RxInterrupt;
use npcc_pipeline::units::Nanos;

use crate::worker::stats::WorkerStats;

/// Longest sleep in ms: what wakes nobody (orders, routes, a stop) waits so long.
const LONGEST: u16 = 4;
/// Sleep of a worker that must poll, because one of its devices has no receive interrupt.
const BETWEEN_POLLS: Duration = Duration::from_micros(500);
/// A worker arms after so long without a frame.
const WORKER: Nanos = Nanos::from_micros(100);
/// The control core arms after so long without a worker awake: by then it has taken in what they told it.
const CONTROL: Nanos = Nanos::from_millis(2);

/// Who is armed, and the eventfd that wakes each.
#[derive(Debug)]
pub struct Wakers {
    /// A bit each: the workers, lowest first, then the control core.
    armed: AtomicU64,
    eventfds: Vec<EventFd>,
}

impl Wakers {
    /// For so many workers (at most 63) and a control core, all awake.
    ///
    /// # Errors
    /// When the system gives no descriptors.
    pub fn new(workers: usize) -> nix::Result<Arc<Wakers>> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let eventfd = |_| EventFd::from_flags(flags);
        Ok(Arc::new(Wakers {
            armed: AtomicU64::new(0),
            eventfds: (0..=workers).map(eventfd).collect::<nix::Result<_>>()?,
        }))
    }

    /// The control core's number.
    fn control(&self) -> usize {
        self.eventfds.len().saturating_sub(1)
    }

    /// Whether all workers are armed.
    fn workers_armed(&self) -> bool {
        let workers = bit(self.control()) - 1;
        self.armed.load(Ordering::SeqCst) & workers == workers
    }

    fn arm(&self, who: usize) {
        self.armed.fetch_or(bit(who), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn disarm(&self, who: usize) {
        self.armed.fetch_and(!bit(who), Ordering::SeqCst);
        if let Some(eventfd) = self.eventfds.get(who) {
            // Nothing to read: nobody woke it.
            let _ = eventfd.read();
        }
    }

    /// Wakes whoever is armed, but `me`. To be called after what they are to find was put there.
    pub fn wake_others(&self, me: usize) {
        fence(Ordering::SeqCst);
        let armed = self.armed.load(Ordering::Relaxed) & !bit(me);
        if armed != 0 {
            self.wake(armed);
        }
    }

    #[cold]
    fn wake(&self, armed: u64) {
        for (who, eventfd) in self.eventfds.iter().enumerate() {
            if armed & bit(who) != 0 {
                // An eventfd that is full wakes already.
                let _ = eventfd.write(1);
            }
        }
    }
}

const fn bit(who: usize) -> u64 {
    1 << who
}

/// One thread that sleeps: what may wake it.
#[derive(Debug)]
struct Sleeper {
    wakers: Arc<Wakers>,
    me: usize,
    epoll: Epoll,
    interrupts: Vec<Arc<RxInterrupt>>,
}

impl Sleeper {
    fn new(
        wakers: Arc<Wakers>,
        me: usize,
        interrupts: Vec<Arc<RxInterrupt>>,
    ) -> nix::Result<Sleeper> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for interrupt in &interrupts {
            epoll.add(interrupt.as_fd(), readable(0))?;
        }
        if let Some(eventfd) = wakers.eventfds.get(me) {
            epoll.add(eventfd.as_fd(), readable(1))?;
        }
        Ok(Sleeper {
            wakers,
            me,
            epoll,
            interrupts,
        })
    }

    /// Sleeps until something wakes it or the time is over; whether something did.
    fn sleep(&self) -> bool {
        let mut events = [EpollEvent::empty(); 1];
        // A signal wakes too: its handler's doing is looked at like anything else.
        self.epoll
            .wait(&mut events, LONGEST)
            .is_ok_and(|woken| woken > 0)
    }

    fn disarm(&self) {
        self.interrupts
            .iter()
            .for_each(|interrupt| interrupt.hush());
        self.wakers.disarm(self.me);
    }
}

/// What a worker does after a turn of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Another turn.
    None,
    /// Its receive interrupts are to be on from now on; then one more turn, to find what came before.
    Arm,
    /// It slept, and nothing woke it; its receive interrupts stay on.
    TimedOut,
    /// It slept, and something woke it: its receive interrupts are to be off again.
    Woken,
    /// It did not come to sleep, as a frame was found: its receive interrupts are to be off again.
    Found,
}

/// A worker that sleeps when nothing moves.
#[derive(Debug)]
pub struct WorkerSleeper {
    sleeper: Sleeper,
    others: Vec<Arc<WorkerStats>>,
    /// One of its devices has no receive interrupt, so it must poll.
    polls: bool,
    armed: bool,
    /// Since when nothing moved.
    since: Nanos,
    /// Busy turns of the other workers when it last looked.
    busy: u64,
}

impl WorkerSleeper {
    /// Worker `me`, whom `interrupts` wake; `polls`: one of its devices has no receive interrupt, so it must poll.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub fn new(
        wakers: Arc<Wakers>,
        me: usize,
        (interrupts, polls): (Vec<Arc<RxInterrupt>>, bool),
        others: Vec<Arc<WorkerStats>>,
    ) -> nix::Result<WorkerSleeper> {
        Ok(WorkerSleeper {
            sleeper: Sleeper::new(wakers, me, interrupts)?,
            others,
            polls,
            armed: false,
            since: Nanos::ZERO,
            busy: 0,
        })
    }

    /// A turn that began at `now` moved a frame.
    #[inline]
    pub fn moved(&mut self, now: Nanos) -> Rest {
        self.since = now;
        self.sleeper.wakers.wake_others(self.sleeper.me);
        if self.armed {
            return self.disarmed(Rest::Found);
        }
        Rest::None
    }

    /// A turn that began at `now` moved nothing; `empty` tells whether the worker holds nothing either.
    #[inline]
    pub fn idle(&mut self, now: Nanos, empty: impl FnOnce() -> bool) -> Rest {
        if !self.armed && now.since(self.since) < WORKER {
            return Rest::None;
        }
        self.late(now, empty)
    }

    #[cold]
    fn late(&mut self, now: Nanos, empty: impl FnOnce() -> bool) -> Rest {
        if self.armed {
            if self.polls {
                std::thread::sleep(BETWEEN_POLLS);
                return Rest::TimedOut;
            }
            if !self.sleeper.sleep() {
                return Rest::TimedOut;
            }
            return self.disarmed(Rest::Woken);
        }
        let busy = self.others.iter().map(|stats| stats.busy.get()).sum();
        if busy != self.busy || !empty() {
            (self.busy, self.since) = (busy, now);
            return Rest::None;
        }
        self.armed = true;
        self.sleeper.wakers.arm(self.sleeper.me);
        Rest::Arm
    }

    fn disarmed(&mut self, why: Rest) -> Rest {
        self.armed = false;
        self.sleeper.disarm();
        why
    }

    /// Looks for frames for a while from `now` on before it arms again.
    pub const fn awake(&mut self, now: Nanos) {
        self.since = now;
    }
}

/// The control core, which sleeps while all workers do.
#[derive(Debug)]
pub struct ControlSleeper {
    sleeper: Sleeper,
    /// Since when all workers are armed.
    since: Option<Nanos>,
}

impl ControlSleeper {
    /// The control core of this wakers.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub fn new(wakers: Arc<Wakers>) -> nix::Result<ControlSleeper> {
        let me = wakers.control();
        Ok(ControlSleeper {
            sleeper: Sleeper::new(wakers, me, Vec::new())?,
            since: None,
        })
    }

    /// After a tick at `now`: sleeps if all workers have long been armed; whether it slept.
    pub fn rest(&mut self, now: Nanos) -> bool {
        let wakers = &self.sleeper.wakers;
        if !wakers.workers_armed() {
            self.since = None;
            return false;
        }
        if now.since(*self.since.get_or_insert(now)) < CONTROL {
            return false;
        }
        wakers.arm(self.sleeper.me);
        if wakers.workers_armed() {
            self.sleeper.sleep();
        }
        self.sleeper.disarm();
        true
    }

    /// Workers are to find what was put in their rings.
    pub fn wake_workers(&self) {
        self.sleeper.wakers.wake_others(self.sleeper.me);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(wakers: &Arc<Wakers>, me: usize, other: &Arc<WorkerStats>) -> WorkerSleeper {
        let others = vec![Arc::clone(other)];
        WorkerSleeper::new(Arc::clone(wakers), me, (Vec::new(), false), others).unwrap()
    }

    #[test]
    fn a_worker_arms_when_all_are_quiet_and_empty_and_another_thread_wakes_it() {
        let wakers = Wakers::new(2).unwrap();
        let other = Arc::new(WorkerStats::default());
        let mut first = worker(&wakers, 0, &other);
        let mut now = Nanos(1_000_000);
        assert_eq!(first.moved(now), Rest::None);
        now += Nanos(WORKER.0 - 1);
        assert_eq!(first.idle(now, || true), Rest::None, "too soon");
        now += WORKER;
        assert_eq!(first.idle(now, || false), Rest::None, "it holds a frame");
        now += WORKER;
        other.busy.add(1);
        assert_eq!(first.idle(now, || true), Rest::None, "the other moved one");
        now += WORKER;
        assert_eq!(first.idle(now, || true), Rest::Arm);
        assert_eq!(first.idle(now, || true), Rest::TimedOut, "nobody woke it");
        wakers.wake_others(1);
        assert_eq!(first.idle(now, || true), Rest::Woken);
        assert_eq!(wakers.armed.load(Ordering::Relaxed), 0);
        first.awake(now);
        assert_eq!(first.idle(now, || true), Rest::None, "it looks for a while");
    }

    #[test]
    fn a_frame_found_at_the_last_look_keeps_a_worker_up() {
        let wakers = Wakers::new(1).unwrap();
        let mut only = WorkerSleeper::new(Arc::clone(&wakers), 0, (Vec::new(), false), Vec::new());
        let only = only.as_mut().unwrap();
        assert_eq!(only.idle(Nanos(1_000_000), || true), Rest::Arm);
        assert!(wakers.workers_armed());
        assert_eq!(only.moved(Nanos(1_000_000)), Rest::Found);
        assert!(!wakers.workers_armed());
        assert_eq!(only.idle(Nanos(1_000_001), || true), Rest::None);
    }

    #[test]
    fn the_control_core_sleeps_only_while_all_workers_do() {
        let wakers = Wakers::new(2).unwrap();
        let mut control = ControlSleeper::new(Arc::clone(&wakers)).unwrap();
        wakers.arm(0);
        assert!(!control.rest(Nanos(1)) && !control.rest(Nanos(1) + CONTROL));
        wakers.arm(1);
        assert!(!control.rest(Nanos(2)), "they may have left work");
        assert!(control.rest(Nanos(2) + CONTROL));
        wakers.disarm(1);
        assert!(!control.rest(Nanos(3) + CONTROL));
    }
}
