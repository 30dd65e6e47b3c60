//! Test rig: several workers' paths in one test, each advanced an iteration at a time in any order.

use std::collections::HashMap;

use npcc_pipeline::buffer::GroupId;
use npcc_pipeline::datapath::{Outgoing, Sent};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::frame::{FrameBuf, FrameVec, HeapFrame, Queued};
use npcc_pipeline::handoff::{WorkerPlan, links};
use npcc_pipeline::route::writer::RouteWriter;
use npcc_pipeline::units::{BURST, Nanos, PortId, WorkerId};

use super::{Path, Setup, frame, prio};

/// Position of the PSN in a RoCEv2 frame over untagged IPv4.
const PSN: std::ops::Range<usize> = 51..54;

/// Returns a plan of ports by their owners, with the number of workers that receive from each, and rings of `ring` frames.
pub(crate) fn assignment(owners: &[u8], receivers: &[u8], ring: usize) -> WorkerPlan {
    WorkerPlan {
        workers: owners.iter().max().unwrap() + 1,
        owners: owners.iter().map(|owner| WorkerId(*owner)).collect(),
        receivers: receivers.to_vec(),
        ring,
    }
}

pub(crate) struct Several {
    pub(crate) paths: Vec<Path>,
    assignment: WorkerPlan,
    _routes: RouteWriter,
    /// PFC frames sent: port, priorities paused, priorities resumed.
    pub(crate) sent: Vec<(u8, u8, u8)>,
    /// Next number of each flow (from, to, priority), and the number expected to leave next.
    numbers: HashMap<(u8, u8, u8), (u32, u32)>,
    pub(crate) now: u64,
}

impl Several {
    pub(crate) fn new(setup: &Setup, assignment: WorkerPlan) -> Several {
        let workers = usize::from(assignment.workers);
        let (paths, routes) = setup.paths(workers);
        let seated = paths.into_iter().zip(links(assignment.clone()));
        let mut paths: Vec<Path> = seated.map(|(path, seat)| path.with_links(seat)).collect();
        paths.iter_mut().for_each(Path::refresh);
        Several {
            paths,
            assignment,
            _routes: routes,
            sent: Vec::new(),
            numbers: HashMap::new(),
            now: 1,
        }
    }

    pub(crate) fn owner(&self, port: u8) -> usize {
        self.assignment.owners[usize::from(port)].index()
    }

    /// Receives a burst at `worker`; returns the number of frames it took: none while it does not poll that queue.
    pub(crate) fn receive(
        &mut self,
        worker: usize,
        what: (u8, u8, u8),
        len: usize,
        count: usize,
    ) -> usize {
        let (from, to, priority) = what;
        let path = &mut self.paths[worker];
        if !path.may_receive(PortId(from)) {
            return 0;
        }
        let mut bytes = frame(from, to, priority, len);
        let mut burst = FrameVec::default();
        for _ in 0..count.min(BURST) {
            let (next, _) = self.numbers.entry(what).or_default();
            bytes[PSN].copy_from_slice(&next.to_be_bytes()[1..]);
            *next += 1;
            burst.push(HeapFrame::new(&bytes));
        }
        path.ingress(PortId(from), &mut burst, Nanos(self.now));
        count.min(BURST)
    }

    pub(crate) fn hear(&mut self, worker: usize, port: u8, frame: &[u8]) {
        let mut burst = FrameVec::default();
        burst.push(HeapFrame::new(frame));
        self.paths[worker].ingress(PortId(port), &mut burst, Nanos(self.now));
    }

    /// Ends an iteration after bursts were received: takes over frames of other workers, and sends due pauses.
    pub(crate) fn turn(&mut self, worker: usize) -> usize {
        let path = &mut self.paths[worker];
        let came = path.take_over(Nanos(self.now));
        for port in (0..self.assignment.owners.len() as u8).map(PortId) {
            // Only the owner sends, and only for its own ports.
            if path.owns(port)
                && let Some(frame) = path.control_due(port, Nanos(self.now))
            {
                path.control_sent(port, &frame, Nanos(self.now));
                self.sent.push((port.0, frame.xoff(), frame.xon()));
            }
        }
        path.publish_held();
        came
    }

    pub(crate) fn refresh(&mut self, worker: usize) {
        self.paths[worker].refresh();
    }

    /// Sends a burst out of a port; checks that the frames of each flow leave in the order of arrival.
    pub(crate) fn pull(&mut self, port: u8) -> Vec<Queued<HeapFrame>> {
        let mut out = Outgoing::new();
        let path = &mut self.paths[self.assignment.owners[usize::from(port)].index()];
        path.egress(PortId(port), &mut out, Nanos(self.now));
        let lengths = out.iter().map(|frame| frame.buf.data().len());
        path.sent(PortId(port), Sent::of(lengths));
        path.publish_held();
        for frame in &out {
            let flow = (
                frame.meta.group.ingress().0,
                port,
                frame.meta.priority.get(),
            );
            let (_, expected) = self.numbers.entry(flow).or_default();
            let psn = &frame.buf.data()[PSN];
            let number = u32::from_be_bytes([0, psn[0], psn[1], psn[2]]);
            assert!(
                number >= *expected,
                "flow {flow:?}: {number} after {expected}"
            );
            *expected = number + 1;
        }
        out.into_iter().collect()
    }

    fn sum(&self, of: impl Fn(&npcc_pipeline::counters::PortCounters) -> u64) -> u64 {
        let ports = self.paths.iter().flat_map(|path| path.counters().ports());
        ports.map(of).sum()
    }

    pub(crate) fn dropped(&self, reason: DropReason) -> u64 {
        self.sum(|port| port.drops[reason.index()].get())
    }

    pub(crate) fn lost(&self) -> u64 {
        self.sum(|port| port.lossless_lost.get())
    }

    pub(crate) fn stalls(&self) -> u64 {
        self.paths
            .iter()
            .map(|path| path.counters().handoff.stalls.get())
            .sum()
    }

    /// Returns the amount all workers together hold of a group, each as it sees it now.
    pub(crate) fn held(&self, port: u8, priority: u8) -> (u64, u64) {
        let mut total = (0, 0);
        for (worker, path) in (0u8..).zip(&self.paths) {
            let id = GroupId::new(WorkerId(worker), PortId(port), prio(priority));
            let held = path.buffer().group(id).unwrap().held();
            total = (total.0 + held.bytes, total.1 + held.frames);
        }
        total
    }

    /// Asserts the account over all workers, in frames and bytes; frames in rings are held.
    pub(crate) fn assert_conserved(&self) {
        for path in &self.paths {
            path.publish_held();
        }
        let held = |of: fn(&npcc_pipeline::counters::Held) -> u64| {
            let parts = self.paths.iter().map(|path| of(&path.counters().held));
            parts.fold(0u64, u64::wrapping_add)
        };
        let input = (
            self.sum(|port| port.rx.packets.get() + port.originated.packets.get()),
            self.sum(|port| port.rx.bytes.get() + port.originated.bytes.get()),
        );
        let output = (
            self.sum(|port| {
                port.tx.packets.get()
                    + port.consumed.packets.get()
                    + port.drops.iter().map(|count| count.get()).sum::<u64>()
            }) + held(|held| held.packets.get()),
            self.sum(|port| {
                port.tx.bytes.get() + port.consumed.bytes.get() + port.drop_bytes.get()
            }) + held(|held| held.bytes.get()),
        );
        assert_eq!(input, output, "(frames, bytes) in = out");
    }
}
