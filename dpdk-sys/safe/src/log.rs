//! Notes in EAL's own log, for messages of destructors, which cannot return an error.
//!
//! Not for the packet path.

use std::ffi::CString;

/// Logs one line at notice level. EAL need not be up: the log then goes to standard error.
pub(crate) fn note(text: &str) {
    let Ok(text) = CString::new(text) else { return };
    // SAFETY: the format takes exactly one string, which is NUL-terminated and outlives the call.
    unsafe {
        dpdk_sys::rte_log(
            dpdk_sys::RTE_LOG_NOTICE,
            dpdk_sys::RTE_LOGTYPE_USER1,
            c"npcc: %s\n".as_ptr(),
            text.as_ptr(),
        );
    }
}
