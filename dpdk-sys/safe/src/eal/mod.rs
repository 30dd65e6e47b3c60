//! Environment Abstraction Layer (EAL): one per process, alive as long as any object that was made
//! under it.
//!
//! Law: every pool, port and running lcore holds the EAL, so that `rte_eal_cleanup` (which unmaps
//! all of DPDK's memory) can run only after the last of them. It runs when the last holder is
//! dropped on the thread that called [`Eal::init`], every worker lcore is idle and no buffer was
//! left behind; otherwise the operating system cleans up at exit, and a note in the log says so.
//!
//! Threads that EAL did not make may use everything here; they are merely slower at allocating
//! buffers, since the per-lcore caches are not theirs.

mod error;
mod lcore;

use std::ffi::{CString, c_char};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

pub use error::EalError;
pub use lcore::{LaunchError, Lcore, LcoreHandle, LcorePanic};

use crate::errno::Errno;
use crate::hugepages::hugepages_available;
use crate::log;

static INITIALISED: AtomicBool = AtomicBool::new(false);

/// Handle to the running EAL. Cloning it is cheap.
#[derive(Clone, derive_more::Debug)]
#[debug("Eal {{ main_lcore: {:?}, .. }}", self.main_lcore())]
pub struct Eal {
    core: Arc<EalCore>,
}

/// State that all holders share.
#[derive(Debug)]
pub(crate) struct EalCore {
    main_thread: ThreadId,
    /// True if a buffer or an open port still uses DPDK's memory, so that it must never be unmapped.
    leaked: AtomicBool,
    /// Numbers of the ports that a `Port` owns.
    ports: Mutex<Vec<u16>>,
    /// Lock held while a function is launched on an lcore: the request and its answer are two pipes.
    launching: Mutex<()>,
}

impl Eal {
    /// Starts EAL with the arguments of its command line, without a program name
    /// (for example `["--no-huge", "-m", "512", "--no-shconf"]`).
    ///
    /// The calling thread becomes the main lcore and is pinned to it. EAL prints why it refused an
    /// argument, without its usage.
    ///
    /// # Errors
    /// [`EalError::AlreadyInitialised`] on every call but the first of a process, even if that one
    /// failed: DPDK cannot start twice. Otherwise the reason of EAL's failure, and what to do about it.
    pub fn init(args: &[String]) -> Result<Self, EalError> {
        let mut argv = vec![c"npcc-switch".to_owned()];
        for arg in args {
            let arg = CString::new(arg.as_str()).map_err(|_| EalError::NulInArgument {
                argument: arg.replace('\0', "\\0"),
            })?;
            argv.push(arg);
        }
        if INITIALISED.swap(true, Ordering::AcqRel) {
            return Err(EalError::AlreadyInitialised);
        }
        let count = i32::try_from(argv.len()).map_err(|_| EalError::TooManyArguments)?;
        // EAL may keep pointers into its arguments and may permute them: they live as long as the
        // process.
        let mut argv: Vec<*mut c_char> = argv.into_iter().map(CString::into_raw).collect();
        argv.push(std::ptr::null_mut());
        let argv = argv.leak();
        // SAFETY: argv is a null-terminated array of `count` writable NUL-terminated strings that
        // are never freed, and the flag above makes this the only call of the process.
        let rc = unsafe { dpdk_sys::npcc_eal_init(count, argv.as_mut_ptr()) };
        if rc < 0 {
            return Err(EalError::explain(
                Errno::last(),
                args,
                hugepages_available(),
            ));
        }
        Ok(Self {
            core: Arc::new(EalCore {
                main_thread: thread::current().id(),
                leaked: AtomicBool::new(false),
                ports: Mutex::new(Vec::new()),
                launching: Mutex::new(()),
            }),
        })
    }

    /// Keeps DPDK's memory, and with it all packets, out of core dumps from now on: hugepages and ordinary pages, including those it maps
    /// later.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn keep_out_of_cores(&self) -> Result<(), Errno> {
        // SAFETY: EAL is up, as `self` proves; the function walks DPDK's own list of its memory under DPDK's lock, and the advice it
        // gives about each piece changes no content.
        Errno::check(unsafe { dpdk_sys::npcc_keep_out_of_cores() })
    }

    pub(crate) fn core(&self) -> &Arc<EalCore> {
        &self.core
    }
}

impl EalCore {
    /// Proves, while the guard is held, that no other lcore is inside DPDK: the caller is the main thread,
    /// every worker waits for work, and none can be given any.
    ///
    /// A thread that is not an lcore has no buffer cache; its last store in freeing a buffer is the
    /// one that makes the buffer count as free, so it need not be considered.
    pub(crate) fn quiesce(&self) -> Option<MutexGuard<'_, ()>> {
        if thread::current().id() != self.main_thread {
            return None;
        }
        let guard = match self.launching.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        lcore::all().all(lcore::is_idle).then_some(guard)
    }

    /// Marks DPDK's memory as still in use, by a buffer or a port that nothing will wait for.
    pub(crate) fn mark_leaked(&self) {
        self.leaked.store(true, Ordering::Release);
    }

    /// Records that a port has an owner; returns false if it has one already.
    pub(crate) fn claim_port(&self, port: u16) -> bool {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        let free = !ports.contains(&port);
        if free {
            ports.push(port);
        }
        free
    }

    /// Releases a port that was claimed by [`claim_port`](Self::claim_port).
    pub(crate) fn release_port(&self, port: u16) {
        self.ports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|&held| held != port);
    }
}

impl Drop for EalCore {
    fn drop(&mut self) {
        if *self.leaked.get_mut() || self.quiesce().is_none() {
            log::note("EAL is left to the operating system: its memory may still be in use");
            return;
        }
        // SAFETY: this was the last holder, so no pool, port or launched function exists; no lcore
        // is working; and no buffer was left behind (a pool with buffers out sets `leaked`).
        let rc = unsafe { dpdk_sys::rte_eal_cleanup() };
        if let Err(errno) = Errno::check(rc) {
            log::note(&format!("EAL did not release everything: {errno}"));
        }
    }
}
