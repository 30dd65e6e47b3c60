//! Signal handling of a run: the first one stops it in order, a second one is recorded and ends it at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use npcc_heap::mark::Mark;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXFSZ,
};
use signal_hook::flag;

/// SIGPWR, by which a UPS or a hypervisor announces the end of power.
const SIGPWR: i32 = 30;

/// Signals without a meaning here that would end the process: those that daemons are sent by mistake (`kill -USR1` of a log rotation), and
/// that of a file that may not grow, which is an error of the write.
const IGNORED: [i32; 8] = [
    SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGXFSZ,
];

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
        for signal in IGNORED {
            // A handler, as an ignored signal would be ignored by programs that this process starts, too.
            flag::register(signal, Arc::default())?;
        }
        Ok(signals)
    }
}
