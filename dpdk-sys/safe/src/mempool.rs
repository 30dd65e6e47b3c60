//! Pools of packet buffers.
//!
//! Law: a pool's memory outlives its buffers. When the last handle is dropped, the pool is freed only if
//! every buffer has been returned and no other lcore can be returning one at that moment (see
//! `EalCore::quiesce`); otherwise it stays for the life of the process, and a note in the log
//! says how many buffers were in use.
//!
//! A pool does not grow.

use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{self, Ordering};

use crate::burst::Burst;
use crate::eal::{Eal, EalCore};
use crate::errno::Errno;
use crate::frames::Frames;
use crate::log;
use crate::mbuf::{HEADROOM, Mbuf};

/// Parameters of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MempoolConfig {
    /// Name, unique in the process, at most 25 bytes.
    pub name: String,
    /// Number of buffers. A power of two less one wastes least.
    pub mbufs: u32,
    /// Number of buffers that each lcore may cache: at most 512, and at most `mbufs / 1.5`; a divisor of
    /// `mbufs` is best.
    pub cache: u32,
    /// Bytes of the longest frame one buffer holds; [`HEADROOM`] comes on top. At most 65,407.
    pub frame_room: u16,
    /// NUMA node of the memory; `None` for any.
    pub socket: Option<u32>,
}

/// Error of creating a pool.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolError {
    /// The name holds a NUL character.
    #[error("mempool name \"{name}\" contains a NUL character")]
    BadName {
        /// The name, with the NUL made visible.
        name: String,
    },
    /// A buffer would be larger than DPDK can describe.
    #[error(
        "mempool {name}: buffers for frames of {frame_room} bytes are too large: 65407 is the most"
    )]
    FrameRoomTooLarge {
        /// Name of the pool.
        name: String,
        /// Requested size in bytes.
        frame_room: u16,
    },
    /// A pool of that name exists.
    #[error("mempool {name}: a pool of that name exists already; names are unique in the process")]
    Exists {
        /// Name of the pool.
        name: String,
    },
    /// Memory is insufficient.
    #[error(
        "mempool {name}: no memory for {mbufs} buffers (about {bytes} bytes on one NUMA node): \
         ask for fewer buffers, reserve more hugepages, or raise -m among the EAL arguments"
    )]
    NoMemory {
        /// Name of the pool.
        name: String,
        /// Requested number of buffers.
        mbufs: u32,
        /// Approximate memory they need, in bytes.
        bytes: u64,
    },
    /// DPDK refused: most often a cache that is too large for the pool, or too long a name.
    #[error(
        "mempool {name} of {mbufs} buffers with a cache of {cache} per lcore was refused: \
         {errno}; the cache may be at most 512 and mbufs / 1.5, the name at most 25 bytes"
    )]
    Refused {
        /// Name of the pool.
        name: String,
        /// Requested number of buffers.
        mbufs: u32,
        /// Requested cache size.
        cache: u32,
        /// DPDK's reason.
        errno: Errno,
    },
}

/// Error of allocating buffers. None was taken.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// The pool has fewer buffers left.
    #[error("the mempool has no {wanted} buffers left")]
    Exhausted {
        /// Number of buffers requested.
        wanted: usize,
    },
    /// The row has room for fewer buffers.
    #[error("the row has room for {room} buffers, not {wanted}")]
    NoRoom {
        /// Number of buffers requested.
        wanted: usize,
        /// Number of buffers that would fit.
        room: usize,
    },
}

/// Handle to a pool; cloning it is cheap. All methods may be called from any thread.
#[derive(Clone, derive_more::Debug)]
#[debug("Mempool {{ name: {:?}, mbufs: {}, frame_room: {}, .. }}", core.name, core.mbufs, core.frame_room)]
pub struct Mempool {
    core: Arc<PoolCore>,
}

struct PoolCore {
    raw: NonNull<dpdk_sys::rte_mempool>,
    name: String,
    mbufs: u32,
    frame_room: u16,
    eal: Arc<EalCore>,
}

// SAFETY: a mempool is made for concurrent use (its ring is multi-producer, multi-consumer, its
// caches belong to one lcore each); creation and freeing happen once, by the constructor and the
// last drop.
unsafe impl Send for PoolCore {}
// SAFETY: as above.
unsafe impl Sync for PoolCore {}

/// Bytes of a buffer besides its data: `rte_mbuf` and the pool's own header.
const OVERHEAD: u64 = 192;

impl Mempool {
    /// Creates a pool.
    ///
    /// # Errors
    /// When memory is short or a limit is exceeded; see [`PoolError`].
    pub fn new(eal: &Eal, config: &MempoolConfig) -> Result<Self, PoolError> {
        let MempoolConfig {
            name,
            mbufs,
            cache,
            frame_room,
            socket,
        } = config.clone();
        let Ok(c_name) = CString::new(name.as_str()) else {
            return Err(PoolError::BadName {
                name: name.replace('\0', "\\0"),
            });
        };
        let Some(data_room) = frame_room.checked_add(HEADROOM) else {
            return Err(PoolError::FrameRoomTooLarge { name, frame_room });
        };
        let socket = socket
            .and_then(|socket| i32::try_from(socket).ok())
            .unwrap_or(-1);
        // SAFETY: EAL is up (the argument proves it) and the name lives through the call, which
        // copies it.
        let raw = unsafe {
            dpdk_sys::rte_pktmbuf_pool_create(c_name.as_ptr(), mbufs, cache, 0, data_room, socket)
        };
        let Some(raw) = NonNull::new(raw) else {
            let errno = Errno::last();
            return Err(match errno.raw() {
                dpdk_sys::EEXIST => PoolError::Exists { name },
                dpdk_sys::ENOMEM => {
                    let bytes = u64::from(mbufs) * (u64::from(data_room) + OVERHEAD);
                    PoolError::NoMemory { name, mbufs, bytes }
                }
                _ => PoolError::Refused {
                    name,
                    mbufs,
                    cache,
                    errno,
                },
            });
        };
        let eal = Arc::clone(eal.core());
        Ok(Self {
            core: Arc::new(PoolCore {
                raw,
                name,
                mbufs,
                frame_room,
                eal,
            }),
        })
    }

    /// Appends `n` fresh, empty buffers to the row: all or none.
    ///
    /// # Errors
    /// When the pool or the row has not enough room.
    #[inline]
    pub fn alloc_bulk(&self, row: &mut impl Frames, n: usize) -> Result<(), AllocError> {
        let (slots, room) = row.spare();
        let Some(count) = u16::try_from(n).ok().filter(|&count| count <= room) else {
            return Err(AllocError::NoRoom {
                wanted: n,
                room: usize::from(room),
            });
        };
        // SAFETY: the pool is live, and `count` slots from the pointer on are ours to write.
        let rc = unsafe {
            dpdk_sys::npcc_pktmbuf_alloc_bulk(self.core.raw.as_ptr(), slots, u32::from(count))
        };
        if rc != 0 {
            return Err(AllocError::Exhausted { wanted: n });
        }
        // SAFETY: success means that `count` fresh buffers with one reference were written.
        unsafe { row.grow(n) };
        Ok(())
    }

    /// Allocates one fresh, empty buffer; `None` when the pool is exhausted. For rare frames: bursts should use
    /// [`alloc_bulk`](Self::alloc_bulk).
    #[must_use]
    pub fn alloc(&self) -> Option<Mbuf> {
        let mut one = Burst::<1>::new();
        self.alloc_bulk(&mut one, 1).ok()?;
        one.pop()
    }

    /// Returns the pool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Number of buffers in total.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.core.mbufs
    }

    /// Bytes of the longest frame one buffer holds.
    #[must_use]
    pub fn frame_room(&self) -> u16 {
        self.core.frame_room
    }

    /// Number of buffers available, in the pool or in caches. Visits every lcore's cache; inexact while
    /// others use the pool.
    #[must_use]
    pub fn available(&self) -> u32 {
        // SAFETY: the pool is live; the counts are read without stopping anyone.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.core.raw.as_ptr()) }
    }

    /// Number of buffers in use: held by bursts, queues, rings and devices. As exact as
    /// [`available`](Self::available).
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.core.in_use()
    }

    /// Returns the pointer for C; valid as long as a handle lives.
    pub(crate) fn as_ptr(&self) -> *mut dpdk_sys::rte_mempool {
        self.core.raw.as_ptr()
    }
}

impl PoolCore {
    fn in_use(&self) -> u32 {
        // SAFETY: the pool is live; the counts are read without stopping anyone.
        unsafe { dpdk_sys::rte_mempool_in_use_count(self.raw.as_ptr()) }
    }
}

impl Drop for PoolCore {
    fn drop(&mut self) {
        // In this order: an lcore that is idle returned its buffers before, and the count then sees
        // them.
        let quiescent = self.eal.quiesce();
        let out = self.in_use();
        // Everything that a thread without a cache did before its last store to the pool's ring happened
        // before this.
        atomic::fence(Ordering::Acquire);
        if quiescent.is_some() && out == 0 {
            // SAFETY: no handle is left to allocate from it, no buffer is out, and nobody is inside
            // the pool.
            unsafe { dpdk_sys::rte_mempool_free(self.raw.as_ptr()) };
            return;
        }
        self.eal.mark_leaked();
        log::note(&format!(
            "mempool {} is kept until the process ends: {out} of its {} buffers are out{}",
            self.name,
            self.mbufs,
            if quiescent.is_some() {
                ""
            } else {
                ", or lcores still work"
            }
        ));
    }
}
