//! The thread that follows the kernel, and what is known of what it was told.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

use npcc_linux::netlink::handle::{Handle, Notice};
use npcc_linux::{Integration, Running};
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::PortId;

use super::kernel_fib::KernelFib;

/// Lines at most: under a storm of refusals the first tell what it is.
const TOLD: u32 = 20;

/// What Linux is told of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Whether it is up.
    pub up: bool,
    /// Its speed in Mb/s.
    pub mbps: u32,
}

/// The thread that follows the kernel. When this is dropped it ends.
#[derive(Debug)]
pub struct Kernel {
    running: Running,
    stop: Arc<AtomicBool>,
    notices: Mutex<Receiver<Notice>>,
    /// What each port's links were told last.
    links: Mutex<Vec<Option<Link>>>,
    /// Lines written about it.
    told: AtomicU32,
}

impl Kernel {
    /// Starts to follow the kernel, whose routes go to `writer`.
    ///
    /// # Errors
    /// There can be no thread.
    pub fn follow(integration: Integration, writer: RouteWriter) -> std::io::Result<Kernel> {
        let stop = Arc::new(AtomicBool::new(false));
        let fib = KernelFib::new(writer, Arc::clone(&stop)).moving(integration.turns());
        let (tell, notices) = channel();
        let running = integration.run(fib, move |notice| {
            // Nobody listens any more when the switch comes down.
            let _ = tell.send(notice);
        })?;
        Ok(Kernel {
            running,
            stop,
            notices: Mutex::new(notices),
            links: Mutex::default(),
            told: AtomicU32::new(0),
        })
    }

    /// How to ask the thread.
    #[must_use]
    pub const fn handle(&self) -> &Handle {
        self.running.handle()
    }

    /// What it told since it was asked last.
    pub fn next(&self) -> Option<Notice> {
        let notices = self.notices.lock();
        let notices = notices.unwrap_or_else(PoisonError::into_inner);
        notices.try_recv().ok()
    }

    /// Tells Linux of the ports' links what it was not told yet.
    pub fn tell(&self, links: &[Link]) {
        let told = self.links.lock();
        let mut told = told.unwrap_or_else(PoisonError::into_inner);
        told.resize(links.len(), None);
        for ((port, told), link) in (0..).map(PortId).zip(told.iter_mut()).zip(links) {
            if told.map(|told| told.mbps) != Some(link.mbps) {
                self.handle().speed(port, link.mbps);
            }
            if told.map(|told| told.up) != Some(link.up) {
                self.handle().carrier(port, link.up);
            }
            *told = Some(*link);
        }
    }

    /// Whether another line is to be written about it.
    #[must_use]
    pub fn may_tell(&self) -> bool {
        self.told.fetch_add(1, Ordering::Relaxed) < TOLD
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // The thread may wait for workers that have ended.
        self.stop.store(true, Ordering::Relaxed);
    }
}
