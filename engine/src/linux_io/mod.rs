//! The housekeeping thread between the workers and Linux: it delivers punted frames to the host's interfaces, best class first, and frames
//! from Linux to the worker that owns the port.
//!
//! No worker ever waits for it, or makes a system call for it: they meet in rings only ([`npcc_pipeline::punt`]). When idle it sleeps for a
//! millisecond at a time, and frames from Linux wake it.

pub mod claims;
pub mod from_host;
pub mod host;
pub mod to_host;
pub mod worker_end;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use npcc_pipeline::counters::LinuxStats;

pub use self::from_host::FromHost;
pub use self::host::{HostInterface, HostPort, Resolve};
pub use self::to_host::ToHost;
pub use self::worker_end::{LinuxFrames, ToWorker, ring};

use crate::fault;

/// Turns without a frame before it sleeps.
const PATIENCE: u32 = 16;
/// Longest sleep in ms: punted frames do not wake the thread.
const SLEEP: u16 = 1;

/// State of the thread.
#[derive(Debug)]
pub struct LinuxIo {
    /// Transfer to Linux.
    pub to_host: ToHost,
    /// Transfer from Linux.
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

    /// Returns the claims of the switch's own addresses.
    #[must_use]
    pub fn claims(&self) -> Arc<claims::Claims> {
        self.to_host.claims()
    }

    /// Returns its counters, for any reader.
    #[must_use]
    pub fn stats(&self) -> Arc<LinuxStats> {
        self.to_host.stats()
    }
}

#[cfg(test)]
mod tests;
