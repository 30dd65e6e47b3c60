//! State that a port shares with its queues, and the end of the port with the last of them.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::error::{Operation, PortError};
use super::state::{Direction, Phase, Rejection, State};
use crate::eal::EalCore;
use crate::errno::Errno;
use crate::log;

/// Object through which a driver moves frames, kept as long as its port.
pub(crate) type Wire = Arc<dyn Any + Send + Sync>;

/// State shared by the port and its queues.
pub(crate) struct PortCore {
    pub(super) id: u16,
    /// Device as it was named.
    pub(super) name: String,
    pub(super) driver: String,
    pub(super) vdev: bool,
    pub(super) socket: Option<u32>,
    pub(super) device: *mut dpdk_sys::rte_device,
    /// Objects through which the driver moves frames (a ring port's rings); they must outlive the port. Declared before
    /// the state: frames left in them must be returned before the pool is dropped.
    pub(super) _wires: Vec<Wire>,
    pub(super) state: Mutex<State>,
    pub(super) eal: Arc<EalCore>,
}

// SAFETY: the one pointer is to DPDK's description of the device, used only in the drop; everything
// else is plain data.
unsafe impl Send for PortCore {}
// SAFETY: calls that change the port are made under its lock; those that only read (statistics,
// link) may run beside them.
unsafe impl Sync for PortCore {}

impl PortCore {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, direction: Direction, index: u16) -> Result<(), PortError> {
        let device = || self.name.clone();
        self.lock()
            .take(direction, index)
            .map_err(|rejection| match rejection {
                Rejection::Phase(phase) => self.wrong_phase(phase, Phase::Started),
                Rejection::NoSuch(count) => PortError::NoSuchQueue {
                    device: device(),
                    direction,
                    index,
                    count,
                },
                Rejection::Taken => PortError::QueueTaken {
                    device: device(),
                    direction,
                    index,
                },
            })
    }

    pub(super) fn give_back(&self, direction: Direction, index: u16) {
        self.lock().give_back(direction, index);
    }

    pub(super) fn failed(&self, operation: Operation) -> impl FnOnce(Errno) -> PortError + '_ {
        move |errno| PortError::Driver {
            device: self.name.clone(),
            operation,
            errno,
        }
    }

    pub(super) fn wrong_phase(&self, phase: Phase, needed: Phase) -> PortError {
        PortError::WrongPhase {
            device: self.name.clone(),
            phase,
            needed,
        }
    }
}

impl Drop for PortCore {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.phase == Phase::Started {
            // SAFETY: an existing port; every queue held this value, so none is left.
            let rc = unsafe { dpdk_sys::rte_eth_dev_stop(self.id) };
            if let Err(errno) = Errno::check(rc) {
                log::note(&format!("{} did not stop: {errno}", self.name));
            }
        }
        // SAFETY: an existing, stopped port that nothing refers to any more.
        let mut rc = unsafe { dpdk_sys::rte_eth_dev_close(self.id) };
        // A PCI device may carry other ports, and stays; a virtual one is this port, and its name
        // becomes free.
        if rc == 0 && self.vdev {
            // SAFETY: the device was attached when the port was opened and only its owner, this
            // value, removes it.
            rc = unsafe { dpdk_sys::rte_dev_remove(self.device) };
        }
        if let Err(errno) = Errno::check(rc) {
            log::note(&format!("{} did not close cleanly: {errno}", self.name));
            self.eal.mark_leaked();
        }
        self.eal.release_port(self.id);
    }
}
