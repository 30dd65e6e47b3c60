//! From Linux to the workers that own the ports its frames leave by.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use npcc_pipeline::punt::{PuntClass, classify};

use super::host::HostInterface;
use super::stats::LinuxStats;
use super::worker_end::{LONGEST, ToWorker};
use crate::sleep::Wakers;

/// Frames of an interface a turn.
const BUDGET: usize = 32;
/// Interfaces that are told of at a time.
const EVENTS: usize = 64;
/// The number of a thread that never sleeps by the workers' law.
const NOBODY: usize = 63;
/// How long an interface that failed is left alone.
const AGAIN: Duration = Duration::from_millis(100);

/// Linux's interfaces, and the rings to the workers.
#[derive(Debug)]
pub struct FromHost {
    interfaces: Vec<HostInterface>,
    /// By port: the worker that owns it, by its place among `workers`.
    owners: Vec<usize>,
    workers: Vec<ToWorker>,
    epoll: Epoll,
    /// Interfaces that failed, and since when they are left alone.
    resting: Vec<(usize, Instant)>,
    stats: Arc<LinuxStats>,
    frame: Box<[u8]>,
    /// Who wakes workers that sleep.
    wakers: Option<Arc<Wakers>>,
}

impl FromHost {
    /// For these interfaces; `owners` names for each port its worker's place in `workers`.
    ///
    /// # Errors
    /// When the system gives no descriptor, or an interface's cannot be waited for.
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

    /// With workers that sleep, which are woken by these.
    #[must_use]
    pub fn waking(mut self, wakers: Option<Arc<Wakers>>) -> FromHost {
        self.wakers = wakers;
        self
    }

    /// Linux's interfaces.
    pub(super) fn interfaces(&self) -> &[HostInterface] {
        &self.interfaces
    }

    /// Takes what Linux sends, at most a turn's worth, and waits for it for so many ms; returns how many frames there were.
    pub fn turn(&mut self, wait: u16) -> usize {
        self.wake_rested();
        let mut events = [EpollEvent::empty(); EVENTS];
        // A signal ends the wait as anything else does.
        let told = self.epoll.wait(&mut events, wait).unwrap_or(0);
        let mut moved = 0;
        for event in events.iter().take(told) {
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
                    let control = class != PuntClass::ToUs;
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

    /// Leaves an interface alone for a while: one that is gone would be told of in every turn.
    #[cold]
    fn rest(&mut self, index: usize) {
        if let Some(interface) = self.interfaces.get(index) {
            let _ = self.epoll.delete(interface.host.as_fd());
            self.resting.push((index, Instant::now() + AGAIN));
        }
    }

    /// Looks again at interfaces that failed a while ago.
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
