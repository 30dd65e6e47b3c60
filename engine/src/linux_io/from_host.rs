//! Transfer of frames from Linux to the workers that own their egress ports.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use npcc_pipeline::counters::LinuxStats;
use npcc_pipeline::punt::classify;

use super::host::HostInterface;
use super::worker_end::{LONGEST, ToWorker};
use crate::sleep::Wakers;

/// Most frames of an interface per turn.
const BUDGET: usize = 32;
/// Most interfaces reported by one wait.
const EVENTS: usize = 64;
/// Index of this thread for [`Wakers::wake_others`]: that of no thread that sleeps.
const NOBODY: usize = 63;
/// Time for which an interface that failed is not polled.
const AGAIN: Duration = Duration::from_millis(100);

/// Linux's interfaces, and the rings to the workers.
#[derive(Debug)]
pub struct FromHost {
    interfaces: Vec<HostInterface>,
    /// Index in `workers` of each port's owner.
    owners: Vec<usize>,
    workers: Vec<ToWorker>,
    epoll: Epoll,
    /// Interfaces that failed, and the time at which each is polled again.
    resting: Vec<(usize, Instant)>,
    stats: Arc<LinuxStats>,
    frame: Box<[u8]>,
    /// Wake-up descriptors of workers that sleep.
    wakers: Option<Arc<Wakers>>,
}

impl FromHost {
    /// Polls these interfaces; `owners` names for each port its worker's place in `workers`.
    ///
    /// # Errors
    /// Fails if the system gives no descriptor, or an interface's cannot be waited for.
    pub fn new(
        interfaces: Vec<HostInterface>,
        owners: Vec<usize>,
        workers: Vec<ToWorker>,
        stats: Arc<LinuxStats>,
    ) -> nix::Result<FromHost> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, interface) in interfaces.iter().enumerate() {
            epoll.add(interface.host.as_fd(), readable(index))?;
        }
        Ok(FromHost {
            interfaces,
            owners,
            workers,
            epoll,
            resting: Vec::new(),
            stats,
            frame: vec![0; LONGEST].into_boxed_slice(),
            wakers: None,
        })
    }

    /// Wakes sleeping workers with `wakers` when frames have come.
    #[must_use]
    pub fn waking(mut self, wakers: Option<Arc<Wakers>>) -> FromHost {
        self.wakers = wakers;
        self
    }

    /// Returns Linux's interfaces.
    pub(super) fn interfaces(&self) -> &[HostInterface] {
        &self.interfaces
    }

    /// Takes frames from Linux, at most a turn's worth, waiting for them up to `wait` ms; returns their number.
    pub fn turn(&mut self, wait: u16) -> usize {
        self.wake_rested();
        let mut events = [EpollEvent::empty(); EVENTS];
        // A signal ends the wait like a timeout.
        let reported = self.epoll.wait(&mut events, wait).unwrap_or(0);
        let mut moved = 0;
        for event in events.iter().take(reported) {
            let index = usize::try_from(event.data()).unwrap_or(usize::MAX);
            moved += self.take(index);
        }
        if moved > 0
            && let Some(wakers) = &self.wakers
        {
            wakers.wake_others(NOBODY);
        }
        moved
    }

    /// Takes the frames of one interface.
    fn take(&mut self, index: usize) -> usize {
        let Some(interface) = self.interfaces.get(index) else {
            return 0;
        };
        let mut taken = 0;
        while taken < BUDGET {
            match interface.host.recv(&mut self.frame) {
                Ok(len) => {
                    taken += 1;
                    let owner = self.owners.get(interface.place.port.index());
                    let worker = owner.and_then(|owner| self.workers.get_mut(*owner));
                    let frame = self.frame.get(..len).unwrap_or_default();
                    let class = classify::of_sent(frame);
                    let (Some(worker), Some(class)) = (worker, class) else {
                        self.stats.sent_odd.add(1);
                        continue;
                    };
                    let control = class.goes_ahead();
                    let counter = if !worker.push(interface.place, control, frame) {
                        &self.stats.sent_full
                    } else if control {
                        &self.stats.sent_control
                    } else {
                        &self.stats.sent
                    };
                    counter.add(1);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.stats.host_errors.add(1);
                    self.rest(index);
                    break;
                }
            }
        }
        taken
    }

    /// Stops polling an interface for [`AGAIN`]: one that is gone would be reported in every turn.
    #[cold]
    fn rest(&mut self, index: usize) {
        if let Some(interface) = self.interfaces.get(index) {
            let _ = self.epoll.delete(interface.host.as_fd());
            self.resting.push((index, Instant::now() + AGAIN));
        }
    }

    /// Polls again the interfaces whose pause is over.
    fn wake_rested(&mut self) {
        if self.resting.is_empty() {
            return;
        }
        let now = Instant::now();
        let (epoll, interfaces) = (&self.epoll, &self.interfaces);
        self.resting.retain(|(index, until)| {
            let due = now >= *until;
            if due && let Some(interface) = interfaces.get(*index) {
                let _ = epoll.add(interface.host.as_fd(), readable(*index));
            }
            !due
        });
    }
}

fn readable(index: usize) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, index as u64)
}
