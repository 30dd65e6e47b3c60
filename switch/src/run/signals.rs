//! What signals do to a run: the first one stops it in order, a second one ends it at once, and is written down before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use npcc_heap::mark::Mark;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// What signals set.
pub(super) struct Signals {
    /// SIGINT or SIGTERM: stop in order.
    pub(super) stop: Arc<AtomicBool>,
    /// SIGHUP: read the configuration file again.
    pub(super) hangup: Arc<AtomicBool>,
    /// A second SIGINT or SIGTERM, which ends the process: written down before.
    pub(super) second: Arc<Mark>,
}

impl Signals {
    /// Catches signals. A second SIGINT or SIGTERM ends the process at once, with 128 and the signal's number as its exit code.
    pub(super) fn caught() -> std::io::Result<Signals> {
        let signals = Signals {
            stop: Arc::default(),
            hangup: Arc::default(),
            second: Arc::default(),
        };
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag down, and the second is written down before it ends all.
            signals.second.when(signal, &signals.stop)?;
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&signals.stop))?;
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        flag::register(SIGHUP, Arc::clone(&signals.hangup))?;
        Ok(signals)
    }
}
