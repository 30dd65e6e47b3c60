//! One worker's ends of all channels, and the runs that wait for room in them.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::channel::{Inward, Outward};
use super::{Relay, WorkerLinks, WorkerPlan};
use crate::burst::{Run, RunPool, Runs};
use crate::frame::FrameBuf;
use crate::pause::PauseRequest;
use crate::per::PerPort;
use crate::units::{BURST, MAX_WORKERS, PortId, WorkerId};

/// All channels from and to this worker.
#[derive(Debug)]
pub(crate) struct Channels<B> {
    plan: Arc<WorkerPlan>,
    /// Sending ends, by worker; `None` for the worker itself.
    out: Box<[Option<Outward<B>>]>,
    inward: ArrayVec<Inward<B>, MAX_WORKERS>,
    /// Runs of the last burst of each ingress port that a full channel did not take, oldest first.
    backlog: PerPort<Runs<B>>,
    /// Number of the iteration, and that in which the next burst of each ingress port will have waited behind a run that was held.
    turn: u64,
    waited: PerPort<u64>,
    /// Pauses, by port, that its peer requested and its owner has not been sent yet.
    request: PerPort<Option<PauseRequest>>,
}

impl<B: FrameBuf> Channels<B> {
    pub(crate) fn new(links: WorkerLinks<B>) -> Channels<B> {
        let ports = links.plan.owners.len();
        Channels {
            out: links.out.into_boxed_slice(),
            inward: links.inward.into_iter().collect(),
            backlog: PerPort::new((0..ports).map(|_| Runs::new()), Runs::new),
            turn: 1,
            waited: PerPort::new((0..ports).map(|_| 0), || 0),
            request: PerPort::new((0..ports).map(|_| None), || None),
            plan: links.plan,
        }
    }

    /// Returns the channel to the worker that owns `port`.
    #[inline]
    fn toward<'a>(
        plan: &WorkerPlan,
        out: &'a mut [Option<Outward<B>>],
        port: PortId,
    ) -> Option<&'a mut Outward<B>> {
        let owner = plan.owners.get(port.index());
        let owner = owner.copied().unwrap_or(WorkerId::FIRST);
        out.get_mut(owner.index())?.as_mut()
    }

    /// Hands over as much of a run as fits to the owner of its egress port; returns the number of frames sent.
    #[inline]
    pub(crate) fn send(&mut self, run: &mut Run<B>) -> usize {
        let channel = Channels::toward(&self.plan, &mut self.out, run.head.egress);
        channel.map_or(0, |channel| channel.send(run))
    }

    /// Keeps the part of a run, received on `port`, that a full channel did not take.
    pub(crate) fn keep_unsent(&mut self, port: PortId, run: Box<Run<B>>) {
        // A burst has no more runs than frames.
        self.backlog[port].push(run);
    }

    /// Starts an iteration.
    #[inline]
    pub(crate) const fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// Returns true if a burst of `port` had waited in the receive queue behind a run that was held: that of the iteration in which the hold
    /// ended, and those after it as long as they are full. `frames` is its number of frames.
    #[inline]
    pub(crate) fn has_waited(&mut self, port: PortId, frames: usize) -> bool {
        let waited = &mut self.waited[port];
        let has_waited = *waited == self.turn;
        if has_waited && frames == BURST {
            *waited += 1;
        }
        has_waited
    }

    /// Retries the runs that wait of `port`. Returns the number of frames sent.
    pub(crate) fn retry(&mut self, port: PortId, pool: &mut RunPool<B>) -> usize {
        let mut sent = 0;
        for mut run in std::mem::take(&mut self.backlog[port]) {
            sent += self.send(&mut run);
            if run.frames.is_empty() {
                pool.give(run);
            } else {
                self.keep_unsent(port, run);
            }
        }
        self.waited[port] = self.turn;
        sent
    }

    /// Returns true if frames of `port` wait for room.
    #[inline]
    pub(crate) fn is_backlogged(&self, port: PortId) -> bool {
        !self.backlog[port].is_empty()
    }

    /// Returns true if no frame waits for room.
    pub(crate) fn is_clear(&self) -> bool {
        self.backlog.iter().all(|(_, runs)| runs.is_empty())
    }

    /// Returns the receiving ends of the channels.
    #[inline]
    pub(crate) fn inward(&mut self) -> &mut [Inward<B>] {
        &mut self.inward
    }

    /// Takes out all runs that wait for room, for a stop.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = Box<Run<B>>> + '_ {
        self.backlog.iter_mut().flat_map(|(_, runs)| runs.drain(..))
    }

    /// Keeps a pause that the peer of another worker's port requests until it can be sent to the port's owner.
    #[cold]
    pub(crate) fn relay(&mut self, port: PortId, request: Option<PauseRequest>) {
        if let Some(request) = request {
            let kept = &mut self.request[port];
            *kept = Some(kept.map_or(request, |before| before.then(&request)));
        }
        self.send_pending(port);
    }

    fn send_pending(&mut self, port: PortId) {
        let channel = Channels::toward(&self.plan, &mut self.out, port);
        let kept = &mut self.request[port];
        if let (Some(channel), Some(request)) = (channel, *kept)
            && channel.relays.push(Relay { port, request }).is_ok()
        {
            *kept = None;
        }
    }

    /// Calls `each` with the pauses that other workers relayed, and sends owners those still pending here.
    #[inline]
    pub(crate) fn relays(&mut self, mut each: impl FnMut(Relay)) {
        for channel in &mut self.inward {
            while let Ok(relay) = channel.relays.pop() {
                each(relay);
            }
        }
        for port in (0u8..).map(PortId).take(self.request.len()) {
            if self.request[port].is_some() {
                self.send_pending(port);
            }
        }
    }
}
