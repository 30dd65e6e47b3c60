//! The housekeeping thread between the workers and Linux's side of the ports: what is punted goes to the host's interfaces, best class
//! first, and what Linux sends goes to the worker that owns the port.
//!
//! No worker ever waits for it, or makes a call to the system for it: they meet in rings only ([`npcc_pipeline::punt`]). With nothing
//! to do it sleeps for a millisecond at a time, and what comes from Linux wakes it.

pub mod from_host;
pub mod host;
pub mod stats;
pub mod to_host;
pub mod worker_end;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use self::from_host::FromHost;
pub use self::host::{HostInterface, HostPort, Resolve};
pub use self::stats::LinuxStats;
pub use self::to_host::ToHost;
pub use self::worker_end::{LinuxFrames, ToWorker, ring};

use crate::fault;

/// Turns without a frame before it sleeps.
const PATIENCE: u32 = 16;
/// Longest sleep in ms: punted frames wake nobody.
const SLEEP: u16 = 1;

/// All the thread has.
#[derive(Debug)]
pub struct LinuxIo {
    /// Toward Linux.
    pub to_host: ToHost,
    /// From Linux.
    pub from_host: FromHost,
}

impl LinuxIo {
    /// Moves frames until `stop`.
    pub fn run(mut self, stop: &AtomicBool) {
        let mut idle = 0u32;
        while !stop.load(Ordering::Relaxed) {
            fault::waits("linux-stuck");
            let moved = self.to_host.turn(self.from_host.interfaces())
                + self.from_host.turn(if idle < PATIENCE { 0 } else { SLEEP });
            idle = if moved > 0 { 0 } else { idle.saturating_add(1) };
        }
    }

    /// What it counts, for any reader.
    #[must_use]
    pub fn stats(&self) -> Arc<LinuxStats> {
        self.to_host.stats()
    }
}

#[cfg(test)]
mod tests;
