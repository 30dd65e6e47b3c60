//! Adaptive idling (`cores.idle: adaptive`): threads with nothing to do sleep until a receive interrupt or another thread wakes them.
//!
//! A worker *arms* once it has moved nothing for a while, holds nothing, and the other workers have moved nothing either: from then on
//! its devices' receive interrupts are on, and any thread with work for it writes to its eventfd. It walks its loop once more, so that
//! work that came in between is found, and then sleeps until one of them wakes it, at most [`LONGEST`] at a time. The control core arms
//! once all workers have.
//!
//! Law: a sleeper sets its armed bit before it polls for the last time; a thread that brings work looks for armed sleepers after bringing
//! it; a full fence stands between the two on both sides. So one of them sees the other, and no work waits for the end of a sleep.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::SocketError;
use npcc_dpdk::RxInterrupt;
use npcc_pipeline::counters::WorkerStats;
use npcc_pipeline::units::Nanos;

/// Longest sleep in ms: changes that wake no thread (commands, routes, a stop) wait up to this long.
const LONGEST: u16 = 4;
/// Sleep of a worker that must poll, because one of its devices has no receive interrupt.
const BETWEEN_POLLS: Duration = Duration::from_micros(500);
/// Time without a frame after which a worker arms.
const WORKER: Nanos = Nanos::from_micros(100);
/// Time with all workers armed after which the control core arms: by then it has taken in all that they sent it.
const CONTROL: Nanos = Nanos::from_millis(2);

/// Armed threads, and the eventfd that wakes each.
#[derive(Debug)]
pub struct Wakers {
    /// One bit per thread: the workers, lowest first, then the control core. Set while the thread is armed.
    armed: AtomicU64,
    eventfds: Vec<EventFd>,
}

impl Wakers {
    /// Creates the wakers of `workers` workers (at most 63) and a control core, all awake.
    ///
    /// # Errors
    /// The system gives no descriptors.
    pub fn new(workers: usize) -> nix::Result<Arc<Wakers>> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let eventfd = |_| EventFd::from_flags(flags);
        Ok(Arc::new(Wakers {
            armed: AtomicU64::new(0),
            eventfds: (0..=workers).map(eventfd).collect::<nix::Result<_>>()?,
        }))
    }

    /// Returns the control core's number.
    fn control(&self) -> usize {
        self.eventfds.len().saturating_sub(1)
    }

    /// Returns true if all workers are armed.
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
            // An error means that there is nothing to read: no thread woke it.
            let _ = eventfd.read();
        }
    }

    /// Wakes all armed threads but `me`. Call it after the work for them was put in place.
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

/// Sleeping side of one thread, with the descriptors that may wake it.
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

    /// Sleeps until something wakes it or the time is over. Returns true if something did.
    fn sleep(&self) -> bool {
        let mut events = [EpollEvent::empty(); 1];
        // A signal wakes too; the effect of its handler is found by the next turn.
        let woken = self
            .epoll
            .wait(&mut events, LONGEST)
            .is_ok_and(|woken| woken > 0);
        let [event] = events;
        if woken && event.events().contains(EpollFlags::EPOLLERR) {
            self.take_errors();
            return false;
        }
        woken
    }

    /// Takes the errors that wait on the packet sockets, which would end every sleep at once: a socket has one as soon as the interface
    /// under it goes down or away, and keeps it.
    #[cold]
    fn take_errors(&self) {
        for interrupt in &self.interrupts {
            // Other descriptors have no such option.
            let _ = getsockopt(interrupt, SocketError);
        }
    }

    fn disarm(&self) {
        self.interrupts
            .iter()
            .for_each(|interrupt| interrupt.hush());
        self.wakers.disarm(self.me);
    }
}

/// Action of a worker after a turn of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// The worker takes another turn.
    None,
    /// The receive interrupts are to be turned on; then comes one more turn, to find frames that came before.
    Arm,
    /// The worker slept, and nothing woke it; its receive interrupts stay on.
    TimedOut,
    /// The worker slept, and something woke it: its receive interrupts are to be turned off again.
    Woken,
    /// The worker did not sleep, as a frame was found: its receive interrupts are to be turned off again.
    Found,
}

/// A worker that sleeps when nothing moves.
#[derive(Debug)]
pub struct WorkerSleeper {
    sleeper: Sleeper,
    others: Vec<Arc<WorkerStats>>,
    /// True if one of the worker's devices has no receive interrupt, so that it must poll.
    polls: bool,
    armed: bool,
    /// Time since which nothing moved.
    since: Nanos,
    /// Busy turns of the other workers when this worker last looked.
    busy: u64,
}

impl WorkerSleeper {
    /// Creates the sleeper of worker `me`, woken by `interrupts`; `polls`: one of its devices has no receive interrupt, so it must poll.
    ///
    /// # Errors
    /// The system gives no descriptor.
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

    /// Reports that a turn that began at `now` moved a frame.
    #[inline]
    pub fn moved(&mut self, now: Nanos) -> Rest {
        self.since = now;
        self.sleeper.wakers.wake_others(self.sleeper.me);
        if self.armed {
            return self.disarmed(Rest::Found);
        }
        Rest::None
    }

    /// Reports that a turn that began at `now` moved nothing; `empty` returns true if the worker holds nothing either.
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

    /// Polls for frames for a while from `now` on before the worker arms again.
    pub const fn awake(&mut self, now: Nanos) {
        self.since = now;
    }
}

/// Control core, which sleeps while all workers do.
#[derive(Debug)]
pub struct ControlSleeper {
    sleeper: Sleeper,
    /// Time since which all workers are armed.
    since: Option<Nanos>,
}

impl ControlSleeper {
    /// Creates the sleeper of the control core.
    ///
    /// # Errors
    /// The system gives no descriptor.
    pub fn new(wakers: Arc<Wakers>) -> nix::Result<ControlSleeper> {
        let me = wakers.control();
        Ok(ControlSleeper {
            sleeper: Sleeper::new(wakers, me, Vec::new())?,
            since: None,
        })
    }

    /// Sleeps after a tick at `now` if all workers have been armed for 2 ms. Returns true if it slept.
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

    /// Wakes the workers, to find what was put in their rings.
    pub fn wake_workers(&self) {
        self.sleeper.wakers.wake_others(self.sleeper.me);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use nix::sys::socket::{self, AddressFamily, SockFlag, SockProtocol, SockType};
    use npcc_dpdk::PacketSockets;

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

    /// Law: a worker that moved a frame may have put it into another's ring, and wakes it.
    #[test]
    fn a_worker_that_moved_a_frame_wakes_the_others() {
        let wakers = Wakers::new(2).unwrap();
        let quiet = Arc::new(WorkerStats::default());
        let [mut first, mut second] = [0, 1].map(|me| worker(&wakers, me, &quiet));
        let now = Nanos(1_000_000);
        assert_eq!(second.idle(now, || true), Rest::Arm);
        assert_eq!(second.idle(now, || true), Rest::TimedOut);
        assert_eq!(first.moved(now), Rest::None);
        assert_eq!(second.idle(now, || true), Rest::Woken);
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

    /// Earlier defect: half a core was spent on the packet socket of an interface that was gone, which woke its worker at once, for ever.
    #[test]
    fn an_error_that_waits_on_a_packet_socket_ends_one_sleep_and_no_more() {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
        let before = PacketSockets::now();
        let every = Some(SockProtocol::EthAll);
        let socket = socket::socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::empty(),
            every,
        );
        let socket = socket.unwrap();
        // The loopback of a new namespace is down, so that the socket has an error from the start.
        let addresses = nix::ifaddrs::getifaddrs().unwrap();
        let loopback = addresses
            .filter_map(|one| one.address?.as_link_addr().copied())
            .next();
        socket::bind(socket.as_raw_fd(), &loopback.unwrap()).unwrap();

        let interrupts = before.opened_since().into_iter().map(Arc::new).collect();
        let sleeper = Sleeper::new(Wakers::new(1).unwrap(), 0, interrupts).unwrap();
        let ready = || {
            sleeper
                .epoll
                .wait(&mut [EpollEvent::empty(); 1], 0u8)
                .unwrap()
        };
        assert_eq!((sleeper.interrupts.len(), ready()), (1, 1));
        assert!(!sleeper.sleep(), "no frame has come");
        assert_eq!(ready(), 0);
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
