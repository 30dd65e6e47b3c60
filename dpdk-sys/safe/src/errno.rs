//! DPDK's error numbers as a type.
//!
//! Law: a C return code becomes an [`Errno`] on the line after the call, and its text is DPDK's own
//! (`rte_strerror` knows the few codes that libc does not).

use std::ffi::CStr;
use std::fmt;

/// Positive error number, as in `errno.h` or `rte_errno.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, derive_more::Debug)]
#[debug("Errno({self})")]
pub struct Errno(i32);

impl Errno {
    /// Returns the error number itself, positive.
    #[must_use]
    pub fn raw(self) -> i32 {
        self.0
    }

    /// Creates it from a code of either sign: DPDK returns some negated and keeps others positive.
    pub(crate) fn new(code: i32) -> Self {
        Self(code.saturating_abs())
    }

    /// Returns `rte_errno` of the calling thread.
    pub(crate) fn last() -> Self {
        // SAFETY: reads a thread-local integer; there is no precondition.
        Self::new(unsafe { dpdk_sys::npcc_errno() })
    }

    /// Converts a return code that is zero or positive on success and a negated errno on failure.
    pub(crate) fn check(code: i32) -> Result<(), Self> {
        if code < 0 {
            Err(Self::new(code))
        } else {
            Ok(())
        }
    }

    /// Returns true if the driver lacks the operation rather than failed in it.
    pub(crate) fn is_unsupported(self) -> bool {
        // i40e says ENOSYS where others say ENOTSUP.
        self.0 == dpdk_sys::ENOTSUP || self.0 == dpdk_sys::ENOSYS
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: rte_strerror accepts any number and returns a NUL-terminated string that lives in
        // a thread-local buffer or in libc until the next call on this thread; it is used up right
        // here.
        let text = unsafe { CStr::from_ptr(dpdk_sys::rte_strerror(self.0)) };
        write!(f, "{} (errno {})", text.to_string_lossy(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_error_whatever_the_sign() {
        assert_eq!(Errno::new(-dpdk_sys::ENOMEM), Errno::new(dpdk_sys::ENOMEM));
        assert_eq!(
            Errno::new(-12).to_string(),
            "Cannot allocate memory (errno 12)"
        );
    }

    #[test]
    fn only_negative_codes_are_failures() {
        assert_eq!(Errno::check(0), Ok(()));
        assert_eq!(Errno::check(3), Ok(()));
        assert_eq!(Errno::check(-95).map_err(Errno::is_unsupported), Err(true));
    }
}
