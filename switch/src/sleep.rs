//! `cores.idle: adaptive`: a switch with nothing to do sleeps, and the frame that ends its rest wakes it.
//!
//! A worker that has moved nothing for a while, holds nothing, and whose fellows have moved nothing either *lies down*: from then on
//! whoever has something for it rings. It walks its loop once more, so that what came in between is found, and then sleeps until its
//! devices or a ring wake it, at most [`NAP`] at a time. The control core lies down when all workers do.
//!
//! Law: a sleeper says that it lies down before it looks for the last time; who brings something looks for sleepers after bringing it;
//! a full fence stands between the two on both sides. So one of them sees the other, and nothing waits for the end of a nap.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use npcc_dpdk::Bell;
use npcc_pipeline::units::Nanos;

use crate::worker::stats::WorkerStats;

/// Longest sleep in ms: what has no bell (orders, routes, a stop) waits so long.
const NAP: u16 = 4;
/// The same of a worker with a device that cannot wake it.
const SHORT_NAP: Duration = Duration::from_micros(500);
/// A worker lies down after so long without a frame.
const WORKER: Nanos = Nanos::from_micros(100);
/// The control core after so long without a worker awake: by then it has taken in what they told it.
const CONTROL: Nanos = Nanos::from_millis(2);

/// Who sleeps, and how to wake them.
#[derive(Debug)]
pub struct Dormitory {
    /// A bit each: the workers, lowest first, then the control core.
    lying: AtomicU64,
    rings: Vec<EventFd>,
}

impl Dormitory {
    /// For so many workers (at most 63) and a control core, all awake.
    ///
    /// # Errors
    /// When the system gives no descriptors.
    pub fn new(workers: usize) -> nix::Result<Arc<Dormitory>> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let ring = |_| EventFd::from_flags(flags);
        Ok(Arc::new(Dormitory {
            lying: AtomicU64::new(0),
            rings: (0..=workers).map(ring).collect::<nix::Result<_>>()?,
        }))
    }

    /// The control core's place.
    fn control(&self) -> usize {
        self.rings.len().saturating_sub(1)
    }

    /// Whether all workers lie.
    fn workers_lie(&self) -> bool {
        let workers = bit(self.control()) - 1;
        self.lying.load(Ordering::SeqCst) & workers == workers
    }

    fn lie_down(&self, who: usize) {
        self.lying.fetch_or(bit(who), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn get_up(&self, who: usize) {
        self.lying.fetch_and(!bit(who), Ordering::SeqCst);
        if let Some(ring) = self.rings.get(who) {
            // Nothing to read: nobody rang.
            let _ = ring.read();
        }
    }

    /// Wakes whoever lies, but `me`. To be called after what they are to find was put there.
    pub fn wake_others(&self, me: usize) {
        fence(Ordering::SeqCst);
        let lying = self.lying.load(Ordering::Relaxed) & !bit(me);
        if lying != 0 {
            self.ring(lying);
        }
    }

    #[cold]
    fn ring(&self, lying: u64) {
        for (who, ring) in self.rings.iter().enumerate() {
            if lying & bit(who) != 0 {
                // A ring that is full has rung.
                let _ = ring.write(1);
            }
        }
    }
}

const fn bit(who: usize) -> u64 {
    1 << who
}

/// Where one thread sleeps.
#[derive(Debug)]
struct Bed {
    dormitory: Arc<Dormitory>,
    me: usize,
    epoll: Epoll,
    bells: Vec<Arc<Bell>>,
}

impl Bed {
    fn new(dormitory: Arc<Dormitory>, me: usize, bells: Vec<Arc<Bell>>) -> nix::Result<Bed> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let readable = |data| EpollEvent::new(EpollFlags::EPOLLIN, data);
        for bell in &bells {
            epoll.add(bell.as_fd(), readable(0))?;
        }
        if let Some(ring) = dormitory.rings.get(me) {
            epoll.add(ring.as_fd(), readable(1))?;
        }
        Ok(Bed {
            dormitory,
            me,
            epoll,
            bells,
        })
    }

    /// Sleeps until something rings or the nap ends; whether something rang.
    fn sleep(&self) -> bool {
        let mut events = [EpollEvent::empty(); 1];
        // A signal wakes too: its handler's doing is looked at like anything else.
        self.epoll.wait(&mut events, NAP).is_ok_and(|rang| rang > 0)
    }

    fn get_up(&self) {
        self.bells.iter().for_each(|bell| bell.hush());
        self.dormitory.get_up(self.me);
    }
}

/// What a worker does after a turn of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Another turn.
    None,
    /// Its devices are to ring from now on; then one more turn, to find what came before.
    Arm,
    /// It slept; its devices still ring.
    Napped,
    /// It slept, and something woke it: its devices need not ring any more.
    Woken,
    /// It did not come to sleep: a frame was found. The same.
    Found,
}

/// A worker's rest.
#[derive(Debug)]
pub struct WorkerBed {
    bed: Bed,
    fellows: Vec<Arc<WorkerStats>>,
    /// A device of its own cannot wake it.
    mute: bool,
    lying: bool,
    /// Since when nothing moved.
    since: Nanos,
    /// Busy turns of its fellows when it last looked.
    busy: u64,
}

impl WorkerBed {
    /// Worker `me`, whom `bells` wake; `mute`: it has a device that has none.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub fn new(
        dormitory: Arc<Dormitory>,
        me: usize,
        (bells, mute): (Vec<Arc<Bell>>, bool),
        fellows: Vec<Arc<WorkerStats>>,
    ) -> nix::Result<WorkerBed> {
        Ok(WorkerBed {
            bed: Bed::new(dormitory, me, bells)?,
            fellows,
            mute,
            lying: false,
            since: Nanos::ZERO,
            busy: 0,
        })
    }

    /// A turn that began at `now` moved a frame.
    #[inline]
    pub fn moved(&mut self, now: Nanos) -> Rest {
        self.since = now;
        self.bed.dormitory.wake_others(self.bed.me);
        if self.lying {
            return self.rise(Rest::Found);
        }
        Rest::None
    }

    /// A turn that began at `now` moved nothing; `empty` tells whether the worker holds nothing either.
    #[inline]
    pub fn idle(&mut self, now: Nanos, empty: impl FnOnce() -> bool) -> Rest {
        if !self.lying && now.since(self.since) < WORKER {
            return Rest::None;
        }
        self.late(now, empty)
    }

    #[cold]
    fn late(&mut self, now: Nanos, empty: impl FnOnce() -> bool) -> Rest {
        if self.lying {
            if self.mute {
                std::thread::sleep(SHORT_NAP);
                return Rest::Napped;
            }
            if !self.bed.sleep() {
                return Rest::Napped;
            }
            return self.rise(Rest::Woken);
        }
        let busy = self.fellows.iter().map(|stats| stats.busy.get()).sum();
        if busy != self.busy || !empty() {
            (self.busy, self.since) = (busy, now);
            return Rest::None;
        }
        self.lying = true;
        self.bed.dormitory.lie_down(self.bed.me);
        Rest::Arm
    }

    fn rise(&mut self, why: Rest) -> Rest {
        self.lying = false;
        self.bed.get_up();
        why
    }

    /// Looks for frames for a while from `now` on before it lies down again.
    pub const fn awake(&mut self, now: Nanos) {
        self.since = now;
    }
}

/// The control core's rest.
#[derive(Debug)]
pub struct ControlBed {
    bed: Bed,
    /// Since when all workers lie.
    since: Option<Nanos>,
}

impl ControlBed {
    /// The control core of this dormitory.
    ///
    /// # Errors
    /// When the system gives no descriptor.
    pub fn new(dormitory: Arc<Dormitory>) -> nix::Result<ControlBed> {
        let me = dormitory.control();
        Ok(ControlBed {
            bed: Bed::new(dormitory, me, Vec::new())?,
            since: None,
        })
    }

    /// After a tick at `now`: sleeps if all workers have long lain down; whether it slept.
    pub fn rest(&mut self, now: Nanos) -> bool {
        let dormitory = &self.bed.dormitory;
        if !dormitory.workers_lie() {
            self.since = None;
            return false;
        }
        if now.since(*self.since.get_or_insert(now)) < CONTROL {
            return false;
        }
        dormitory.lie_down(self.bed.me);
        if dormitory.workers_lie() {
            self.bed.sleep();
        }
        self.bed.get_up();
        true
    }

    /// Workers are to find what was put in their rings.
    pub fn wake_workers(&self) {
        self.bed.dormitory.wake_others(self.bed.me);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(dormitory: &Arc<Dormitory>, me: usize, fellow: &Arc<WorkerStats>) -> WorkerBed {
        let fellows = vec![Arc::clone(fellow)];
        WorkerBed::new(Arc::clone(dormitory), me, (Vec::new(), false), fellows).unwrap()
    }

    #[test]
    fn a_worker_lies_down_when_all_are_quiet_and_empty_and_a_ring_wakes_it() {
        let dormitory = Dormitory::new(2).unwrap();
        let fellow = Arc::new(WorkerStats::default());
        let mut first = worker(&dormitory, 0, &fellow);
        let mut now = Nanos(1_000_000);
        assert_eq!(first.moved(now), Rest::None);
        now += Nanos(WORKER.0 - 1);
        assert_eq!(first.idle(now, || true), Rest::None, "too soon");
        now += WORKER;
        assert_eq!(first.idle(now, || false), Rest::None, "it holds a frame");
        now += WORKER;
        fellow.busy.add(1);
        assert_eq!(first.idle(now, || true), Rest::None, "its fellow moved one");
        now += WORKER;
        assert_eq!(first.idle(now, || true), Rest::Arm);
        assert_eq!(first.idle(now, || true), Rest::Napped, "nobody rang");
        dormitory.wake_others(1);
        assert_eq!(first.idle(now, || true), Rest::Woken);
        assert_eq!(dormitory.lying.load(Ordering::Relaxed), 0);
        first.awake(now);
        assert_eq!(first.idle(now, || true), Rest::None, "it looks for a while");
    }

    #[test]
    fn a_frame_found_at_the_last_look_keeps_a_worker_up() {
        let dormitory = Dormitory::new(1).unwrap();
        let mut only = WorkerBed::new(Arc::clone(&dormitory), 0, (Vec::new(), false), Vec::new());
        let only = only.as_mut().unwrap();
        assert_eq!(only.idle(Nanos(1_000_000), || true), Rest::Arm);
        assert!(dormitory.workers_lie());
        assert_eq!(only.moved(Nanos(1_000_000)), Rest::Found);
        assert!(!dormitory.workers_lie());
        assert_eq!(only.idle(Nanos(1_000_001), || true), Rest::None);
    }

    #[test]
    fn the_control_core_sleeps_only_while_all_workers_do() {
        let dormitory = Dormitory::new(2).unwrap();
        let mut control = ControlBed::new(Arc::clone(&dormitory)).unwrap();
        dormitory.lie_down(0);
        assert!(!control.rest(Nanos(1)) && !control.rest(Nanos(1) + CONTROL));
        dormitory.lie_down(1);
        assert!(!control.rest(Nanos(2)), "they may have left work");
        assert!(control.rest(Nanos(2) + CONTROL));
        dormitory.get_up(1);
        assert!(!control.rest(Nanos(3) + CONTROL));
    }
}
