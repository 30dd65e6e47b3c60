//! Requests of the system to release a device: a card that is unplugged.
//!
//! vfio asks the process to release the device and waits until it does; DPDK passes the request on as an event. There is no other
//! indication: the device continues as before, or its registers read as all ones.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Mutex, PoisonError};

/// Names of the devices that the system has asked to release.
static WANTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Starts to record the system's requests for a PCI device. A device for which that fails is never reported.
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

/// Returns true if the system has asked to release a device.
pub(crate) fn is_wanted(device: &str) -> bool {
    let wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    wanted.iter().any(|name| name == device)
}

fn forget(device: &str) {
    let mut wanted = WANTED.lock().unwrap_or_else(PoisonError::into_inner);
    wanted.retain(|name| name != device);
}

/// Records a request; called by DPDK's interrupt thread.
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
        let reported = |event| {
            // SAFETY: the name lives through the call.
            unsafe { requested(name.as_ptr(), event, std::ptr::null_mut()) };
        };
        reported(dpdk_sys::RTE_DEV_EVENT_ADD);
        assert!(!is_wanted("0000:01:00.0"));
        reported(dpdk_sys::RTE_DEV_EVENT_REMOVE);
        assert!(is_wanted("0000:01:00.0") && !is_wanted("0000:02:00.0"));
        forget("0000:01:00.0");
        assert!(!is_wanted("0000:01:00.0"));
    }
}
