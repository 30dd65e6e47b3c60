//! The thread that follows the kernel, and the link states last reported to the kernel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use npcc_linux::netlink::handle::{Handle, Notice};
use npcc_linux::{Integration, Running};
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::PortId;

use super::kernel_fib::KernelFib;
use crate::log::lines::Lines;

/// Link state of a port, as reported to Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinuxLink {
    /// True if the link is up.
    pub up: bool,
    /// Speed in Mb/s.
    pub mbps: u32,
}

/// Handle of the thread that follows the kernel; dropping it ends the thread.
#[derive(Debug)]
pub struct Kernel {
    running: Running,
    stop: Arc<AtomicBool>,
    notices: Mutex<Receiver<Notice>>,
    /// Link state of each port that was last reported.
    links: Mutex<Vec<Option<LinuxLink>>>,
    /// Log lines of each kind in the last minute.
    lines: Mutex<Lines>,
}

impl Kernel {
    /// Starts to follow the kernel, whose routes go to `writer`.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn follow(integration: Integration, writer: RouteWriter) -> std::io::Result<Kernel> {
        let stop = Arc::new(AtomicBool::new(false));
        let fib = KernelFib::new(writer, Arc::clone(&stop)).moving(integration.turns());
        let (tell, notices) = channel();
        let running = integration.run(fib, move |notice| {
            // No receiver is left when the switch comes down.
            let _ = tell.send(notice);
        })?;
        Ok(Kernel {
            running,
            stop,
            notices: Mutex::new(notices),
            links: Mutex::default(),
            lines: Mutex::default(),
        })
    }

    /// Returns the handle for requests to the thread.
    #[must_use]
    pub const fn handle(&self) -> &Handle {
        self.running.handle()
    }

    /// Returns the oldest unread notice of the thread; `None` if there is none.
    pub fn next(&self) -> Option<Notice> {
        let notices = self.notices.lock();
        let notices = notices.unwrap_or_else(PoisonError::into_inner);
        notices.try_recv().ok()
    }

    /// Reports to Linux the link states that differ from those reported last.
    pub fn tell(&self, links: &[LinuxLink]) {
        let reported = self.links.lock();
        let mut reported = reported.unwrap_or_else(PoisonError::into_inner);
        reported.resize(links.len(), None);
        for ((port, reported), link) in (0..).map(PortId).zip(reported.iter_mut()).zip(links) {
            if reported.map(|reported| reported.mbps) != Some(link.mbps) {
                self.handle().speed(port, link.mbps);
            }
            if reported.map(|reported| reported.up) != Some(link.up) {
                self.handle().carrier(port, link.up);
            }
            *reported = Some(*link);
        }
    }

    /// Returns the bound of log lines about Linux.
    pub fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // The thread may be waiting for workers that have ended.
        self.stop.store(true, Ordering::Relaxed);
    }
}
