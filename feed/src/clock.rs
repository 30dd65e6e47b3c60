//! Wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time in microseconds since the Unix epoch.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
