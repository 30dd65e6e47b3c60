//! Table through which a port's driver is called, `rte_eth_fp_ops`, as a polling thread may read it.
//!
//! A driver that recovers from a reset exchanges the functions of its ports while others poll. DPDK's inline functions read them as
//! ordinary memory; here every word is a relaxed atomic load, the same instruction on x86 and ARM, so that the exchange is no data race.

use std::ffi::c_void;
use std::mem::{size_of, transmute_copy};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Returns the table entry of a port.
pub(super) fn fast_path(port: u16) -> *const dpdk_sys::rte_eth_fp_ops {
    // The number of an open port is below RTE_MAX_ETHPORTS, so this stays inside the array.
    (&raw const dpdk_sys::rte_eth_fp_ops)
        .cast::<dpdk_sys::rte_eth_fp_ops>()
        .wrapping_add(usize::from(port))
}

/// Reads a pointer, or a function that may be absent, which another thread may exchange meanwhile.
///
/// # Safety
/// `place` is an aligned `T` in memory that may be written, and every value that is ever there is a valid `T`.
#[inline]
pub(super) unsafe fn load<T: Copy>(place: *const T) -> T {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: the caller's word is valid for atomic reads, and it is of a pointer's size and holds a valid `T`.
    unsafe {
        let word = AtomicPtr::from_ptr(place.cast_mut().cast::<*mut c_void>());
        transmute_copy(&word.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_is_absent_and_a_pointer_are_read_as_they_are() {
        let absent: Option<fn(u8) -> u8> = None;
        let present: Option<fn(u8) -> u8> = Some(|value| value + 1);
        let mut data = 7u64;
        let pointer = &raw mut data;
        // SAFETY: words of this frame, each of a pointer's size.
        unsafe {
            assert!(load(&raw const absent).is_none());
            assert_eq!(load(&raw const present).unwrap()(1), 2);
            assert_eq!(load(&raw const pointer), pointer);
        }
    }
}
