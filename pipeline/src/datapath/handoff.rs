//! Handoff in the packet path: runs are handed over to the owner of their egress port, and taken over there.
//!
//! With one worker there are no channels, and none of this runs.

use super::{Datapath, capture_points, lossless};
use crate::buffer::{Buffer, Charge};
use crate::burst::Run;
use crate::drop::DropReason;
use crate::egress::fifo::FifoStore;
use crate::frame::{FrameBuf, Meta};
use crate::handoff::{Channels, WorkerLinks};
use crate::stage::enqueue::Taken;
use crate::tap::FlowTap;
use crate::units::{BURST, Nanos, PRIORITIES, PortId};

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Makes the path one of several workers' paths, before the first frame and after [`Datapath::with_lossless`].
    #[must_use]
    pub fn with_links(mut self, links: WorkerLinks<B>) -> Datapath<B, T> {
        let workers = usize::from(links.plan.workers);
        self.me = links.me;
        for (_, port) in self.ingress.iter_mut() {
            port.set_worker(links.me);
        }
        self.egress_side.owned = if workers == 1 {
            u32::MAX
        } else {
            links.owned()
        };
        // More slots than the pool has frames: each other worker may admit a burst to room that was taken since it last
        // looked, and another burst of frames that arrived on no port.
        let frames = usize::try_from(self.config.pool.frames).unwrap_or(usize::MAX >> 8);
        let late = 2 * BURST * (workers - 1);
        let queues = self.egress_side.ports.len() * PRIORITIES;
        self.egress_side.store = FifoStore::new(frames.saturating_add(late), queues, Meta::NOTHING);
        self.egress_side.buffer = Buffer::of_worker(
            &self.config,
            std::sync::Arc::clone(&links.ledger),
            links.me,
            &links.plan.receivers,
        );
        self.channels = (workers > 1).then(|| Box::new(Channels::new(links)));
        self
    }

    /// Returns true if this worker owns the egress side of `port`.
    #[inline]
    #[must_use]
    pub const fn owns(&self, port: PortId) -> bool {
        self.egress_side.owns(port)
    }

    /// Returns true if `port`'s receive queue may be polled: not while frames of its last burst wait for room in a channel.
    #[inline]
    #[must_use]
    pub fn may_receive(&mut self, port: PortId) -> bool {
        match &self.channels {
            None => true,
            Some(channels) if !channels.is_backlogged(port) => true,
            Some(_) => self.retry_handoff(port),
        }
    }

    #[cold]
    fn retry_handoff(&mut self, port: PortId) -> bool {
        let Some(channels) = self.channels.as_deref_mut() else {
            return true;
        };
        let sent = channels.retry(port, &mut self.egress_side.spare_runs) as u64;
        self.counters.handoff.handed_over.add(sent);
        if !channels.is_backlogged(port) {
            return true;
        }
        // The device's ring is not emptied meanwhile: its peer must pause.
        self.pause[port].stall();
        self.counters.handoff.stalls.add(1);
        false
    }

    /// Starts an iteration among several workers: exchanges holdings, releases, pressure and storms with the others.
    pub(super) fn sync_with_workers(&mut self) {
        if let Some(channels) = self.channels.as_deref_mut() {
            channels.begin_turn();
        }
        self.egress_side.buffer.refresh();
        self.egress_side.buffer.publish_all(self.counters.ports());
        for (port, pause) in self.pause.iter_mut() {
            if !self.egress_side.buffer.is_spread(port) {
                continue;
            }
            if self.egress_side.owns(port) {
                self.egress_side
                    .buffer
                    .publish_dropping(port, pause.dropping());
                if self.egress_side.buffer.is_pressed_elsewhere(port) {
                    pause.stall();
                }
            } else {
                self.egress_side
                    .buffer
                    .publish_pressure(port, pause.pressed());
            }
        }
        self.egress_side.buffer.publish_usage();
        self.is_pool_view_fresh = true;
    }

    /// Refreshes the other workers' holdings in the pool before a burst, unless that was done in this iteration and no burst
    /// came since.
    #[inline]
    pub(super) fn refresh_pool_view(&mut self) {
        if self.channels.is_some() && !std::mem::take(&mut self.is_pool_view_fresh) {
            self.egress_side.buffer.refresh_pool();
        }
    }

    /// Counts a burst that waited in its receive queue behind a held run.
    #[inline]
    pub(super) fn count_held_back(&mut self, port: PortId, frames: usize) {
        if let Some(channels) = self.channels.as_deref_mut()
            && channels.has_waited(port, frames)
        {
            self.counters.handoff.held_back.add(frames as u64);
        }
    }

    /// Hands a run over to the owner of its egress port; frames that a full channel does not take wait if they are lossless,
    /// and are dropped if not. Returns the totals of the frames handed over or waiting.
    pub(super) fn hand_over(&mut self, mut run: Box<Run<B>>) -> Taken {
        let mut lost = Taken::default();
        let taken = Taken::all(&run.head);
        let Some(channels) = self.channels.as_deref_mut() else {
            // This worker owns all ports, or is taking frames over.
            self.egress_side.spare_runs.give(run);
            return taken;
        };
        if self.capture.is_on() {
            capture_points::handed_over(&mut self.capture, &run);
        }
        let sent = channels.send(&mut run);
        self.counters.handoff.handed_over.add(sent as u64);
        if run.frames.is_empty() {
            self.egress_side.spare_runs.give(run);
            return taken;
        }
        let egress = &self.egress_side.ports[run.head.egress];
        if egress.remote_admission(run.head.priority).lossless {
            channels.keep_unsent(run.head.group.ingress(), run);
            return taken;
        }
        for (buf, meta) in run.drain() {
            capture_points::dropped(&mut self.capture, DropReason::XringFull, &buf, &meta, 0);
            self.egress_side.buffer.release(Charge::of(&meta));
            lossless::count_refused(
                &self.counters,
                &self.egress_side.ports,
                &meta,
                DropReason::XringFull,
            );
            self.counters
                .of(meta.egress)
                .drop(DropReason::XringFull, meta.len.into());
            lost.add(&meta);
            let _ = self.trash.try_push(buf);
        }
        self.egress_side.spare_runs.give(run);
        taken.without(lost)
    }

    /// Takes over the pauses that other workers received, and from each worker up to a burst of frames for this one's ports,
    /// run by run. Returns the number of frames: if it is not 0 there may be more, best taken over once these are sent.
    #[inline]
    pub fn take_over(&mut self, now: Nanos) -> usize {
        // Frames taken over are not handed on: meanwhile the path has no channels.
        let Some(mut channels) = self.channels.take() else {
            return 0;
        };
        let (pauses, counters) = (&mut self.pause, &self.counters);
        let egress = &self.egress_side.ports;
        channels.relays(|relay| {
            let nonempty_since = |priority| egress[relay.port].nonempty_since(priority);
            pauses[relay.port].apply_pause(
                &relay.request,
                now,
                nonempty_since,
                counters.of(relay.port),
            );
        });
        let mut came = 0;
        for channel in channels.inward() {
            let mut of_channel = 0;
            while let Some(frames) = channel.next()
                && of_channel + frames <= BURST
            {
                of_channel += frames;
                let mut run = self.egress_side.spare_runs.take();
                channel.take(&mut run);
                let all = run.head;
                let taken = self.admit_and_queue(run, now, true);
                let (frames, bytes) = (all.amount.frames, all.bytes);
                self.held
                    .subtract(frames - taken.frames, bytes - taken.bytes);
            }
            came += of_channel;
        }
        self.channels = Some(channels);
        if came > 0 {
            self.counters.handoff.taken_over.add(came as u64);
            if !self.trash.is_empty() {
                B::free_all(&mut self.trash);
            }
        }
        came
    }

    /// Returns true if no frame that this worker received waits for room in a channel.
    #[must_use]
    pub fn handed_over(&self) -> bool {
        self.channels.as_deref().is_none_or(Channels::is_clear)
    }

    /// Drops, with reason `shutdown`, frames that wait for room in channels and frames still in them: the switch stops.
    pub(super) fn abandon_handoff(&mut self) {
        let Some(mut channels) = self.channels.take() else {
            return;
        };
        let (buffer, held, counters) =
            (&mut self.egress_side.buffer, &mut self.held, &self.counters);
        let capture = &mut self.capture;
        let mut drop = |run: &mut Run<B>| {
            capture_points::run_dropped(capture, DropReason::Shutdown, run);
            let (frames, bytes) = (run.head.amount.frames, run.head.bytes);
            buffer.release(Charge {
                group: run.head.group,
                amount: run.head.amount,
            });
            held.subtract(frames, bytes);
            counters
                .of(run.head.egress)
                .drop_all(DropReason::Shutdown, frames, bytes);
            B::free_all(&mut run.frames);
        };
        for mut run in channels.abandon() {
            drop(&mut run);
        }
        let mut run = self.egress_side.spare_runs.take();
        for channel in channels.inward() {
            while channel.next().is_some() {
                channel.take(&mut run);
                drop(&mut run);
            }
        }
        self.egress_side.spare_runs.give(run);
        self.channels = Some(channels);
    }
}
