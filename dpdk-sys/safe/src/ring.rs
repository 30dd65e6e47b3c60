//! Port whose wire is a pair of rings in the program: frames put into one ring are received by the
//! port, frames the port sends come out of another. Real mbufs, real bursts, no kernel, no timing.
//!
//! Law: exactly one producer and one consumer on each ring (the port's queue and the [`RingTx`] or
//! [`RingRx`]); a frame is in one place, and those left in a ring when its last user goes return to
//! their pool.
//!
//! The driver does not set [`Mbuf::port`](crate::Mbuf::port).

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::burst::Burst;
use crate::eal::{Eal, EalCore};
use crate::errno::Errno;
use crate::frames::Slots;
use crate::port::{Port, PortError, Wire};

/// Error of creating a ring port.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError {
    /// The name holds a NUL character.
    #[error("ring port name \"{name}\" contains a NUL character")]
    BadName {
        /// The name, with the NUL made visible.
        name: String,
    },
    /// DPDK refused a ring.
    #[error(
        "ring {name} of {capacity} frames: {errno}; names are unique in the process and at most \
         26 bytes"
    )]
    Ring {
        /// Name of the ring.
        name: String,
        /// Requested number of frames.
        capacity: u32,
        /// DPDK's reason.
        errno: Errno,
    },
    /// DPDK refused a port over the rings.
    #[error("ring port {name}: {errno}")]
    Attach {
        /// Name of the port.
        name: String,
        /// DPDK's reason.
        errno: Errno,
    },
    /// The port was created but cannot be used.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Port and both ends of its wire.
#[derive(Debug)]
pub struct RingPort {
    /// Port, open, with at most one queue each way.
    pub port: Port,
    /// Ring of frames for the port to receive.
    pub feed: RingTx,
    /// Ring of frames that the port has sent.
    pub drained: RingRx,
}

/// End of a wire that frames are put into.
#[derive(Debug)]
pub struct RingTx {
    ring: Arc<Ring>,
}

/// End of a wire that frames come out of.
#[derive(Debug)]
pub struct RingRx {
    ring: Arc<Ring>,
}

/// Ring (`rte_ring`) of mbufs with one producer and one consumer.
#[derive(Debug)]
pub(crate) struct Ring {
    raw: NonNull<dpdk_sys::rte_ring>,
    _eal: Arc<EalCore>,
}

// SAFETY: the ring is made for a producer and a consumer on different threads; that there is one of
// each is this file's law.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl RingPort {
    /// Creates a port `net_ring_<name>` whose rings hold `capacity` frames each way.
    ///
    /// # Errors
    /// When the name is taken or too long, or memory is short.
    pub fn new(eal: &Eal, name: &str, capacity: u32) -> Result<Self, RingError> {
        let Ok(c_name) = CString::new(name) else {
            return Err(RingError::BadName {
                name: name.replace('\0', "\\0"),
            });
        };
        let feed = Arc::new(Ring::new(eal, &format!("{name}_rx"), capacity)?);
        let drained = Arc::new(Ring::new(eal, &format!("{name}_tx"), capacity)?);
        let (rx, tx) = ([feed.raw.as_ptr()], [drained.raw.as_ptr()]);
        // SAFETY: EAL is up; the rings are live and the port will hold them as long as it lives;
        // the arrays have as many entries as said and are copied. Node 0 always exists.
        let rc = unsafe {
            dpdk_sys::rte_eth_from_rings(c_name.as_ptr(), rx.as_ptr(), 1, tx.as_ptr(), 1, 0)
        };
        if rc < 0 {
            return Err(RingError::Attach {
                name: name.to_owned(),
                errno: Errno::last(),
            });
        }
        let rings: Vec<Wire> = vec![Arc::clone(&feed) as Wire, Arc::clone(&drained) as Wire];
        let port = Port::from_rings(eal, &format!("net_ring_{name}"), rings)?;
        Ok(Self {
            port,
            feed: RingTx { ring: feed },
            drained: RingRx { ring: drained },
        })
    }
}

impl RingTx {
    /// Puts frames from the front of the burst on the wire, as many as it holds; returns their number.
    /// The rest moves to the front.
    pub fn send<const N: usize>(&mut self, burst: &mut Burst<N>) -> usize {
        let (slots, count) = burst.lend();
        // SAFETY: the ring is live and this value, used by `&mut`, is its only producer; the slots
        // are owned buffers, of which the ring takes over those it counts.
        let sent = unsafe {
            dpdk_sys::npcc_ring_enqueue_burst(self.ring.raw.as_ptr(), slots, u32::from(count))
        };
        let sent = usize::try_from(sent).unwrap_or(usize::MAX);
        // SAFETY: the ring has taken over so many of those lent, the first ones.
        unsafe { burst.take_back(usize::from(count), sent) };
        sent
    }

    /// Number of frames that the port has not received yet.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.ring.len()
    }
}

impl RingRx {
    /// Takes frames off the wire, as many as there are and fit the burst, behind those it holds;
    /// returns their number.
    pub fn receive<const N: usize>(&mut self, burst: &mut Burst<N>) -> usize {
        let (slots, room) = burst.spare();
        // SAFETY: the ring is live and this value, used by `&mut`, is its only consumer; `room`
        // slots are ours to write.
        let received = unsafe {
            dpdk_sys::npcc_ring_dequeue_burst(self.ring.raw.as_ptr(), slots, u32::from(room))
        };
        let received = usize::try_from(received).unwrap_or(0);
        // SAFETY: the ring wrote that many buffers and has forgotten them.
        unsafe { burst.grow(received) };
        received
    }

    /// Number of frames that the port has sent and nobody has taken.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.ring.len()
    }
}

impl Ring {
    fn new(eal: &Eal, name: &str, capacity: u32) -> Result<Self, RingError> {
        let Ok(c_name) = CString::new(name) else {
            return Err(RingError::BadName {
                name: name.replace('\0', "\\0"),
            });
        };
        let flags = dpdk_sys::RING_F_SP_ENQ | dpdk_sys::RING_F_SC_DEQ | dpdk_sys::RING_F_EXACT_SZ;
        // SAFETY: EAL is up and the name is copied during the call; -1 takes memory from any node.
        let raw = unsafe { dpdk_sys::rte_ring_create(c_name.as_ptr(), capacity, -1, flags) };
        let raw = NonNull::new(raw).ok_or_else(|| RingError::Ring {
            name: name.to_owned(),
            capacity,
            errno: Errno::last(),
        })?;
        Ok(Self {
            raw,
            _eal: Arc::clone(eal.core()),
        })
    }

    fn len(&self) -> u32 {
        // SAFETY: the ring is live; the count is read without stopping anyone.
        unsafe { dpdk_sys::npcc_ring_count(self.raw.as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut left = Burst::<32>::new();
        loop {
            let (slots, room) = left.spare();
            // SAFETY: nobody else has the ring any more; `room` slots are ours to write.
            let n = unsafe {
                dpdk_sys::npcc_ring_dequeue_burst(self.raw.as_ptr(), slots, u32::from(room))
            };
            if n == 0 {
                break;
            }
            // SAFETY: the ring wrote that many buffers and has forgotten them.
            unsafe { left.grow(usize::try_from(n).unwrap_or(0)) };
            left.free_all();
        }
        // SAFETY: the last user, and the ring is empty.
        unsafe { dpdk_sys::rte_ring_free(self.raw.as_ptr()) };
    }
}
