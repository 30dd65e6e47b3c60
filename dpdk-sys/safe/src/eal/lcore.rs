//! Logical cores of EAL, and running a function on one.
//!
//! Law: a launched function holds the EAL until it has returned, and a panic in it ends there: it
//! is passed to the thread that joins, never across C.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, PoisonError};

use super::{Eal, EalCore};
use crate::errno::Errno;

/// Logical core of the running EAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lcore(u32);

impl Lcore {
    /// Returns EAL's number of the lcore.
    #[must_use]
    pub fn id(self) -> u32 {
        self.0
    }

    /// Returns the CPU it is pinned to; `None` when it may run on several.
    #[must_use]
    pub fn cpu(self) -> Option<u32> {
        // SAFETY: reads EAL's table at the index of an lcore that exists.
        u32::try_from(unsafe { dpdk_sys::npcc_lcore_cpu(self.0) }).ok()
    }

    /// Returns the NUMA node of its CPU.
    #[must_use]
    pub fn socket(self) -> u32 {
        // SAFETY: reads EAL's table at the index of an lcore that exists.
        unsafe { dpdk_sys::rte_lcore_to_socket_id(self.0) }
    }

    /// Returns the lcore of the calling thread; `None` on a thread that EAL did not make.
    #[must_use]
    pub fn current() -> Option<Self> {
        // SAFETY: reads a thread-local integer.
        let id = unsafe { dpdk_sys::npcc_lcore_id() };
        (id < dpdk_sys::RTE_MAX_LCORE).then_some(Self(id))
    }
}

/// Error of launching a function on an lcore.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchError {
    /// The lcore is the main lcore, or none that EAL was started with.
    #[error(
        "lcore {lcore} is not a worker: name it in EAL's -l or --lcores, and leave the first for \
         control"
    )]
    NotAWorker {
        /// EAL's number of the lcore.
        lcore: u32,
    },
    /// The lcore still runs the function launched before.
    #[error("lcore {lcore} is busy: join what it was given before")]
    Busy {
        /// EAL's number of the lcore.
        lcore: u32,
    },
    /// EAL refused the launch.
    #[error("lcore {lcore} could not be given work: {errno}")]
    Refused {
        /// EAL's number of the lcore.
        lcore: u32,
        /// EAL's reason.
        errno: Errno,
    },
}

/// Panic of a function on its lcore.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the function on lcore {lcore} panicked: {message}")]
pub struct LcorePanic {
    /// EAL's number of the lcore.
    pub lcore: u32,
    /// Message of the panic, if it had one.
    pub message: String,
}

/// Handle of a function that runs, or has run, on an lcore. Dropping the handle lets it run on.
#[derive(derive_more::Debug)]
#[must_use = "a function whose handle is dropped cannot be joined"]
#[debug("LcoreHandle {{ lcore: {lcore:?}, .. }}")]
pub struct LcoreHandle<T> {
    lcore: Lcore,
    result: Receiver<Result<T, Box<dyn Any + Send>>>,
    core: Arc<EalCore>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Eal {
    /// Returns the lcore of the thread that started EAL.
    #[must_use]
    pub fn main_lcore(&self) -> Lcore {
        // SAFETY: EAL is up, which `self` proves.
        Lcore(unsafe { dpdk_sys::rte_get_main_lcore() })
    }

    /// Returns all other lcores, in ascending order.
    #[must_use]
    pub fn workers(&self) -> Vec<Lcore> {
        all().collect()
    }

    /// Runs `function` on a worker lcore.
    ///
    /// # Errors
    /// When the lcore is no worker of this EAL, or is still busy.
    pub fn launch<T, F>(&self, lcore: Lcore, function: F) -> Result<LcoreHandle<T>, LaunchError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let core = Arc::clone(self.core());
        let one_at_a_time = core
            .launching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let id = lcore.0;
        if !all().any(|worker| worker == lcore) {
            return Err(LaunchError::NotAWorker { lcore: id });
        }
        if !is_idle(lcore) {
            return Err(LaunchError::Busy { lcore: id });
        }
        let (sender, result) = mpsc::channel();
        let held = Arc::clone(&core);
        let job: Job = Box::new(move || {
            let outcome = panic::catch_unwind(AssertUnwindSafe(function));
            // Dropped before the result is sent: the thread that joins may then be the last holder, on the main thread.
            drop(held);
            // No receiver is left when the handle was dropped; the outcome is then of no interest.
            drop(sender.send(outcome));
        });
        let job = Box::into_raw(Box::new(job));
        // SAFETY: `run` has the signature asked for, and takes back the box that `job` is, exactly
        // once, on the lcore.
        let rc = unsafe { dpdk_sys::rte_eal_remote_launch(Some(run), job.cast(), id) };
        if let Err(errno) = Errno::check(rc) {
            // Dropping the function may itself check for quiescence, so the lock is released first.
            drop(one_at_a_time);
            // SAFETY: the launch was refused, so `run` will never see the box; it is still ours.
            drop(unsafe { Box::from_raw(job) });
            return Err(LaunchError::Refused { lcore: id, errno });
        }
        drop(one_at_a_time);
        Ok(LcoreHandle {
            lcore,
            result,
            core,
        })
    }
}

impl<T> LcoreHandle<T> {
    /// Returns the lcore it runs on.
    pub fn lcore(&self) -> Lcore {
        self.lcore
    }

    /// Returns true if the function has returned.
    pub fn is_finished(&self) -> bool {
        is_idle(self.lcore)
    }

    /// Blocks until the function returns.
    ///
    /// # Errors
    /// When it panicked.
    pub fn join(self) -> Result<T, LcorePanic> {
        let outcome = self.result.recv();
        // The lcore has only to return to EAL's loop: EAL's busy wait lasts a moment.
        let one_at_a_time = self
            .core
            .launching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a worker lcore of a running EAL; the lock keeps another function from being
        // launched meanwhile.
        unsafe { dpdk_sys::rte_eal_wait_lcore(self.lcore.0) };
        drop(one_at_a_time);
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(payload)) => Err(LcorePanic {
                lcore: self.lcore.0,
                message: message(payload.as_ref()),
            }),
            Err(_) => Err(LcorePanic {
                lcore: self.lcore.0,
                message: "no outcome".to_owned(),
            }),
        }
    }
}

/// Iterates over the worker lcores of the running EAL.
pub(super) fn all() -> impl Iterator<Item = Lcore> {
    // SAFETY: reads EAL's table; the index -1 (as unsigned) means before the first, 1 skips the
    // main lcore, 0 does not wrap round.
    let next = |id: u32| unsafe { dpdk_sys::rte_get_next_lcore(id, 1, 0) };
    std::iter::successors(Some(next(u32::MAX)), move |&id| Some(next(id)))
        .take_while(|&id| id < dpdk_sys::RTE_MAX_LCORE)
        .map(Lcore)
}

/// Returns true if a worker waits for work. Its earlier stores are then visible to the caller: EAL reads the
/// state with acquire.
pub(super) fn is_idle(lcore: Lcore) -> bool {
    // SAFETY: reads the state of an lcore that exists.
    unsafe { dpdk_sys::rte_eal_get_lcore_state(lcore.0) == dpdk_sys::WAIT }
}

/// Runs the job; called on the lcore itself.
///
/// # Safety
/// `job` comes from `Box::into_raw(Box<Job>)` and is passed to one call only.
unsafe extern "C" fn run(job: *mut c_void) -> c_int {
    // SAFETY: by this function's own contract.
    let job = unsafe { Box::from_raw(job.cast::<Job>()) };
    job();
    0
}

fn message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
