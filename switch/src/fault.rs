//! Faults on purpose, for tests of what the switch does about them: `NPCC_FAULT=PLACE` in the environment of a debug build.
//! A release build has none.

#[cfg(debug_assertions)]
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a fault was asked for at this place.
#[cfg(debug_assertions)]
#[must_use]
pub fn strikes(place: &str) -> bool {
    static PLACE: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("NPCC_FAULT").ok());
    PLACE.as_deref() == Some(place)
}

/// Whether a fault was asked for at this place: never in a release build.
#[cfg(not(debug_assertions))]
#[must_use]
pub const fn strikes(_: &str) -> bool {
    false
}

/// Whether a fault was asked for at this place, the first time.
#[must_use]
pub fn strikes_once(place: &str) -> bool {
    static STRUCK: AtomicBool = AtomicBool::new(false);
    strikes(place) && !STRUCK.swap(true, Ordering::Relaxed)
}

/// Panics if that was asked for at this place.
///
/// # Panics
/// In debug builds, when told to.
#[expect(clippy::panic, reason = "that is what it is for")]
pub fn panics(place: &str) {
    if strikes(place) {
        panic!("a fault was asked for at `{place}`");
    }
}

/// Waits here until the file named by `NPCC_FAULT_UNTIL` exists, if that was asked for at this place; a minute at most.
pub fn waits(place: &str) {
    if !strikes(place) {
        return;
    }
    let until = std::env::var_os("NPCC_FAULT_UNTIL").unwrap_or_default();
    let pause = Duration::from_millis(10);
    for _ in 0..6_000 {
        if std::path::Path::new(&until).exists() {
            return;
        }
        std::thread::sleep(pause);
    }
}
