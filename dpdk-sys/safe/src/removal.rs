//! Devices that the system wants back: a card that is unplugged.
//!
//! vfio asks the process politely and waits until it lets go; DPDK hands the request on as an event. Nothing else tells: the
//! device goes on as before, or its registers read as all ones.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// Names of the devices that are wanted back.
static WANTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Has the system's requests for a PCI device noted. A device that cannot be asked for is never wanted back.
pub(crate) fn watch(device: &str) {
    forget(device);
    let Ok(name) = CString::new(device) else {
        return;
    };
    // SAFETY: the name lives through the call, which copies it; the function is there as long as the process.
    let _ = unsafe {
        dpdk_sys::rte_dev_event_callback_register(
            name.as_ptr(),
            Some(requested),
            std::ptr::null_mut(),
        )
    };
}

/// Whether the system has asked for a device.
pub(crate) fn is_wanted(device: &str) -> bool {
    let wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    wanted.iter().any(|name| name == device)
}

fn forget(device: &str) {
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    wanted.retain(|name| name != device);
}

/// Called by DPDK's interrupt thread.
unsafe extern "C" fn requested(
    device: *const c_char,
    event: dpdk_sys::rte_dev_event_type,
    _argument: *mut c_void,
) {
    if event != dpdk_sys::RTE_DEV_EVENT_REMOVE || device.is_null() {
        return;
    }
    // SAFETY: DPDK hands over the device's name, which ends with a zero and lives through the call.
    let name = unsafe { CStr::from_ptr(device) };
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    wanted.push(name.to_string_lossy().into_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_removal_of_this_device_is_noted() {
        let name = CString::new("0000:01:00.0").unwrap();
        let told = |event| {
            // SAFETY: the name lives through the call.
            unsafe { requested(name.as_ptr(), event, std::ptr::null_mut()) };
        };
        told(dpdk_sys::RTE_DEV_EVENT_ADD);
        assert!(!is_wanted("0000:01:00.0"));
        told(dpdk_sys::RTE_DEV_EVENT_REMOVE);
        assert!(is_wanted("0000:01:00.0") && !is_wanted("0000:02:00.0"));
        forget("0000:01:00.0");
        assert!(!is_wanted("0000:01:00.0"));
    }
}
