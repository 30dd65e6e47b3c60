//! Ingress path: takes a received burst through the stages into the queues, run by run.

use arrayvec::ArrayVec;

use super::capture_points::{self, StoppedFrame};
use super::{Datapath, count_stopped, lossless, of_chain};
use crate::buffer::{Amount, Buffer, Charge};
use crate::burst::{QueueKey, Run, Trash};
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, FrameVec, Meta};
use crate::punt::PuntCandidate;
use crate::stage::enqueue::{Taken, count_refused};
use crate::stage::moved;
use crate::stage::receive::{self, Received};
use crate::tap::{FlowTap, watched};
use crate::units::{BURST, Nanos, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Takes a received burst through the stages into the queues. `frames` is empty afterwards.
    #[inline]
    pub fn ingress(&mut self, port: PortId, frames: &mut FrameVec<B>, now: Nanos) {
        self.ingress_by(port, frames, now, || ());
    }

    /// Like [`Datapath::ingress`]; `on_resolved` is called, for time measurements, when the frames are rewritten and not queued
    /// yet.
    #[inline]
    pub fn ingress_by(
        &mut self,
        port: PortId,
        frames: &mut FrameVec<B>,
        now: Nanos,
        on_resolved: impl FnOnce(),
    ) {
        // Prefetch first of all: these loads need not wait for the stores of a driver that has copied frames.
        for frame in frames.iter() {
            frame.prefetch();
        }
        if self.capture.is_on() {
            self.capture_received(port, frames, now);
        }
        if self.ingress[port].admin_down {
            return self.drop_received(port, frames, now);
        }
        self.refresh_pool_view();
        self.count_held_back(port, frames.len());
        self.pause[port].burst(frames.len(), BURST);
        self.resolve_burst(port, frames, now);
        let storm = if self.egress_side.owns(port) {
            self.pause[port].dropping()
        } else {
            self.egress_side.buffer.dropping_elsewhere(port)
        };
        on_resolved();
        self.egress_side.buffer.apply_releases();
        self.counters.bursts.runs.add(self.runs.len() as u64);
        while let Some(run) = self.runs.pop() {
            if storm & run.head.priority.bit() != 0 {
                self.drop_in_storm(port, run);
                continue;
            }
            let taken = self.admit_and_queue(run, now, false);
            self.held.add(taken.frames, taken.bytes);
        }
        if let Some(counters) = self.counters.port(port.index()) {
            self.egress_side.buffer.publish(port, counters);
        }
        if !self.trash.is_empty() {
            B::free_all(&mut self.trash);
        }
        if self.channels.is_some() {
            self.egress_side.buffer.publish_usage();
        }
    }

    /// Parses, routes and rewrites the burst, and sorts it into runs. Frames that go no further are counted and put into
    /// the trash, or set aside for Linux.
    #[inline]
    fn resolve_burst(&mut self, port: PortId, frames: &mut FrameVec<B>, now: Nanos) {
        let counters = self.counters.of(port);
        let ingress_port = &self.ingress[port];
        let mut all = self.egress_side.spare_runs.take();
        std::mem::swap(&mut all.frames, frames);
        let mut burst = receive::run(
            (ingress_port, self.vectors.as_deref()),
            (&self.fib, &self.mtus),
            &mut all.frames,
            (&mut all.records, &mut self.reasons),
            counters,
        );
        counters.rx.add(all.frames.len() as u64, burst.bytes);
        self.counters.bursts.received.add(1);
        if let Some(view) = &self.moved
            && !view.is_empty()
        {
            let (frames, records) = (&all.frames, &mut all.records);
            let ports = &self.egress_side.ports;
            burst.queue = moved::run(view, ports, (frames, records), burst.gone);
        }
        let head = |key: QueueKey| key.head(ingress_port.worker, ingress_port.port);
        match burst.queue {
            Some(queue) if burst.gone.is_empty() => {
                all.head = head(queue);
                measure(&mut all, &burst);
                self.runs.push(all);
            }
            _ => {
                let mut stopped = Trash::new();
                let (pool, runs) = (&mut self.egress_side.spare_runs, &mut self.runs);
                let (gone, unpadded) = ((burst.gone, &mut stopped), burst.unpadded);
                self.sorter
                    .sort(&mut all, gone, unpadded, &head, (pool, runs));
                self.egress_side.spare_runs.give(all);
                if !burst.gone.is_empty() {
                    for (buf, place) in stopped.drain(..).zip(burst.gone.iter()) {
                        self.stop(port, buf, place, now);
                    }
                    if self.punt.is_some() {
                        self.handle_punt_candidates(port, now);
                    }
                }
            }
        }
    }

    /// Takes the frame at `place` of a burst, which goes no further: sets it aside for Linux, applies it if it is MAC control, or drops
    /// it.
    #[inline(never)]
    fn stop(&mut self, port: PortId, buf: B, place: usize, now: Nanos) {
        let reason = self.reasons.get(place).copied().flatten();
        if let (Some(reason), Some(punt)) = (reason, &mut self.punt) {
            // No more frames are put aside than were received.
            let _ = punt.aside.try_push(PuntCandidate { buf, reason });
            return;
        }
        let reason = reason.map(|reason| of_chain(reason, &buf));
        let of = (&buf, port);
        capture_points::stopped(&mut self.capture, StoppedFrame::of(reason), of, now);
        count_stopped(self.counters.of(port), reason, buf.data().len());
        if reason.is_none() {
            self.apply_mac_control(port, buf.data(), now);
        }
        // At most a burst is dropped of one.
        self.trash.push(buf);
    }

    /// Applies MAC control, or relays it to the worker that owns the port.
    fn apply_mac_control(&mut self, port: PortId, frame: &[u8], now: Nanos) {
        let (pause, counters) = (&mut self.pause[port], self.counters.of(port));
        match self.channels.as_deref_mut() {
            Some(channels) if !self.egress_side.owns(port) => {
                channels.relay(port, pause.parse_pfc(frame, counters));
            }
            _ => {
                let egress = &self.egress_side.ports[port];
                let nonempty_since = |priority| egress.nonempty_since(priority);
                pause.on_mac_control(frame, now, nonempty_since, counters);
            }
        }
    }

    /// Admits a run, and queues it, lets it bypass its queue, or hands it over to the worker that owns its egress port. If
    /// `charged`, another worker has received it and charged it. Returns the totals of the accepted frames.
    #[inline]
    pub(super) fn admit_and_queue(
        &mut self,
        mut run: Box<Run<B>>,
        now: Nanos,
        charged: bool,
    ) -> Taken {
        let mut refused = Refused::new();
        let mut admission = self.egress_side.admission(now, charged);
        admission.admit(&mut run, |buf, meta, reason| {
            refused.push((buf, *meta, reason))
        });
        if !refused.is_empty() {
            self.refuse(refused, charged, now);
        }
        let taken = Taken::all(&run.head);
        if taken.frames == 0 {
            self.egress_side.spare_runs.give(run);
            return taken;
        }
        if !self.egress_side.owns(run.head.egress) {
            return self.hand_over(run);
        }
        if watched(self.tap.ports(), &run.head) {
            self.tap.enqueued(&mut run, now);
        }
        if self.capture.is_on() {
            self.capture_queued(&run, now);
        }
        taken.without(self.queue_or_bypass(run))
    }

    /// Lets an admitted run bypass its queue if that is empty; otherwise queues it, behind a run that bypasses the queue.
    /// Returns the totals of the frames for which there was no slot.
    #[inline]
    pub(super) fn queue_or_bypass(&mut self, run: Box<Run<B>>) -> Taken {
        let (egress, priority) = (run.head.egress, run.head.priority);
        let (frames, bytes) = (run.head.amount.frames, run.head.bytes);
        let side = &mut self.egress_side;
        let lost = match side.bypass[egress].try_bypass(&side.ports[egress], run) {
            None => Taken::default(),
            Some(run) => {
                self.queue_bypassed_of(egress, priority);
                self.queue_run(run)
            }
        };
        if let Some(queue) = self.counters.of(egress).queues.get(priority.index()) {
            queue.enqueued.add(frames - lost.frames, bytes - lost.bytes);
        }
        lost
    }

    /// Puts a run into its queue. Returns the totals of the frames for which there was no slot: there is one for every frame
    /// of the pool the path was made with.
    #[inline(never)]
    pub(super) fn queue_run(&mut self, mut run: Box<Run<B>>) -> Taken {
        let (side, trash) = (&mut self.egress_side, &mut self.trash);
        let (port, buffer) = (&mut side.ports[run.head.egress], &mut side.buffer);
        let (counters, capture) = (self.counters.of(run.head.egress), &mut self.capture);
        let mut lost = Taken::default();
        let depth = port.depth(run.head.priority);
        port.push_run(&mut side.store, &mut run, |buf, meta| {
            capture_points::dropped(capture, DropReason::BufferFull, &buf, &meta, depth);
            no_cell(counters, buffer, &meta, &mut lost);
            let _ = trash.try_push(buf);
        });
        if lost.frames > 0 {
            port.account_out(run.head.priority, lost.amount());
        }
        side.spare_runs.give(run);
        lost
    }

    /// Counts refused frames; if `charged`, another worker had charged them, and they are released.
    #[cold]
    fn refuse(&mut self, refused: Refused<B>, charged: bool, now: Nanos) {
        self.capture.at(now);
        for (buf, meta, reason) in refused {
            let depth = self.egress_side.ports[meta.egress].depth(meta.priority);
            capture_points::dropped(&mut self.capture, reason, &buf, &meta, depth);
            if charged {
                self.egress_side.buffer.release(Charge::of(&meta));
            }
            lossless::count_refused(&self.counters, &self.egress_side.ports, &meta, reason);
            self.counters.of(meta.egress).drop(reason, meta.len.into());
            let _ = self.trash.try_push(buf);
        }
    }

    /// Drops a run whose priority is under a storm on the port it arrived on.
    #[cold]
    fn drop_in_storm(&mut self, port: PortId, mut run: Box<Run<B>>) {
        let counters = self.counters.of(port);
        let (frames, bytes) = (run.head.amount.frames, run.head.bytes);
        if let Some(pause) = counters.flow.priorities.get(run.head.priority.index()) {
            pause.storm_rx_dropped.add(frames);
        }
        counters.drop_all(DropReason::PfcStorm, frames, bytes);
        capture_points::run_dropped(&mut self.capture, DropReason::PfcStorm, &run);
        B::free_all(&mut run.frames);
        self.egress_side.spare_runs.give(run);
    }
}

/// Counts an admitted frame for which there was no slot, and releases its charge; the caller corrects the queue's account.
#[cold]
fn no_cell(counters: &PortCounters, buffer: &mut Buffer, meta: &Meta, lost: &mut Taken) {
    buffer.release(Charge::of(meta));
    count_refused(counters, meta.priority, DropReason::BufferFull);
    counters.drop(DropReason::BufferFull, meta.len.into());
    lost.add(meta);
}

/// Frames that were refused, with their drop reasons.
type Refused<B> = ArrayVec<(B, Meta, DropReason), BURST>;

/// Sets the totals in the head of a burst that is one run.
#[inline]
fn measure<B>(run: &mut Run<B>, burst: &Received) {
    if burst.unpadded {
        run.head.bytes = burst.bytes + burst.added - burst.removed - burst.trimmed;
        run.head.amount = Amount::of_unpadded(run.head.bytes, run.frames.len() as u64);
    } else {
        run.head = run.head_of(run.frames.len());
    }
}
