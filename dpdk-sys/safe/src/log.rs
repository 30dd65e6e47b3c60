//! DPDK's log: its destination, and notes in it for messages of destructors, which cannot return an error.
//!
//! Not for the packet path.

use std::ffi::{CString, c_char};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::errno::Errno;

/// Destination of DPDK's messages.
static SINK: OnceLock<fn(&[u8])> = OnceLock::new();

/// Text that DPDK logs during a call, while there is one.
static DURING: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Maximum number of lines that are kept of a call: the last ones.
const LINES: usize = 5;

fn text_during() -> MutexGuard<'static, Option<Vec<u8>>> {
    DURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a call's result, and the last lines that DPDK logged meanwhile, in any thread; none unless [`log_to`] passes its messages on.
/// Calls that overlap share the lines.
pub(crate) fn during<R>(call: impl FnOnce() -> R) -> (R, Vec<String>) {
    *text_during() = Some(Vec::new());
    let result = call();
    let text = text_during().take().unwrap_or_default();
    (result, last_lines(&text))
}

fn last_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    lines.drain(..lines.len().saturating_sub(LINES));
    lines
}

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
    if let Some(during) = text_during().as_mut() {
        during.extend_from_slice(text);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let text = b"EAL: 1\nEAL: 2\nEAL: 3\nEAL: 4\n\nice_load_pkg(): failed to search file path\n\nice_dev_init(): Failed to load the DDP package\n";
        let lines = [
            "EAL: 2",
            "EAL: 3",
            "EAL: 4",
            "ice_load_pkg(): failed to search file path",
            "ice_dev_init(): Failed to load the DDP package",
        ];
        assert_eq!(last_lines(text), lines);
        assert_eq!(last_lines(b""), [""; 0]);
    }
}
