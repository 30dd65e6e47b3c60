//! The thread that follows the kernel, and the link states last reported to the kernel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use npcc_cnp::table::FlowView;
use npcc_linux::netlink::handle::{Handle, Notice};
use npcc_linux::{Integration, Running};
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::PortId;

use super::kernel_fib::KernelFib;
use npcc_engine::log::lines::Lines;

/// Interval at which flows are taken for look-ups, their number, and how many places of the table are read for them.
const FLOWS_EVERY: Duration = Duration::from_secs(5);
const FLOWS: usize = 128;
const PLACES: usize = 1 << 16;

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
    /// Place in the flow table from which packets are looked up next, and when.
    flows: Mutex<(usize, Option<Instant>)>,
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
            flows: Mutex::default(),
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

    /// Gives the thread packets of the flow table's next flows, every few seconds: their ways are looked up in Linux.
    pub fn look_up(&self, flows: &FlowView, now: Instant) {
        let mut place = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, due) = &mut *place;
        if due.is_some_and(|due| now < due) {
            return;
        }
        *due = Some(now + FLOWS_EVERY);
        let places = flows.places().max(1);
        let mut packets = Vec::with_capacity(FLOWS);
        for _ in 0..places.min(PLACES) {
            if let Some(flow) = flows.at(*from) {
                packets.push((flow.flow.key.dst(), Some(flow.flow.key.src())));
            }
            *from = (*from + 1) % places;
            if packets.len() == FLOWS {
                break;
            }
        }
        self.handle().flows(packets);
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // The thread may be waiting for workers that have ended.
        self.stop.store(true, Ordering::Relaxed);
    }
}
