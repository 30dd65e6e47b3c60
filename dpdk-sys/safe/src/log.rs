//! DPDK's log: its destination, and notes in it for messages of destructors, which cannot return an error.
//!
//! Not for the packet path.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use crate::errno::Errno;

/// Destination of DPDK's messages.
static SINK: OnceLock<fn(&[u8])> = OnceLock::new();

/// Passes each message of DPDK's log to `sink`, and no more to standard error and syslog, from now on. Any thread may call `sink`. Only the
/// first call of a process has an effect.
///
/// # Errors
/// There is no memory.
pub fn log_to(sink: fn(&[u8])) -> Result<(), Errno> {
    if SINK.set(sink).is_err() {
        return Ok(());
    }
    // SAFETY: the function has the type that the shim calls, and lives as long as the process; it does not unwind, as a panic in an
    // `extern "C"` function aborts.
    Errno::check(unsafe { dpdk_sys::npcc_log_to(Some(pass_on)) })
}

unsafe extern "C" fn pass_on(text: *const c_char, length: usize) {
    // SAFETY: fopencookie(3) passes a buffer of `length` readable bytes, which nobody changes during the call.
    let text = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    if let Some(sink) = SINK.get() {
        sink(text);
    }
}

/// Logs one line at notice level. EAL need not be up.
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
