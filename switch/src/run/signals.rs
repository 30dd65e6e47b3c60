//! Signal handling of a run: the first one stops it in order, a second one is recorded and ends it at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use npcc_heap::mark::Mark;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Flags that the signal handlers set.
pub(super) struct Signals {
    /// Stop in order: SIGINT or SIGTERM.
    pub(super) stop: Arc<AtomicBool>,
    /// Read the configuration file again: SIGHUP.
    pub(super) hangup: Arc<AtomicBool>,
    /// Mark of a second SIGINT or SIGTERM, written to the recorder before it ends the process.
    pub(super) second: Arc<Mark>,
}

impl Signals {
    /// Registers the handlers. A second SIGINT or SIGTERM ends the process at once, with 128 and the signal's number as its exit code.
    pub(super) fn caught() -> std::io::Result<Signals> {
        let signals = Signals {
            stop: Arc::default(),
            hangup: Arc::default(),
            second: Arc::default(),
        };
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the first signal finds the flag down, and the second is recorded before it ends the process.
            signals.second.when(signal, &signals.stop)?;
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&signals.stop))?;
            flag::register(signal, Arc::clone(&signals.stop))?;
        }
        flag::register(SIGHUP, Arc::clone(&signals.hangup))?;
        Ok(signals)
    }
}
