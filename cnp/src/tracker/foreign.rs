//! Reports of peers: which are taken, and what became of them.

use npcc_pipeline::units::Nanos;

use super::FlowTracker;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::Evidence;
use npcc_roce::pair::foreign::view::Reports;
use npcc_roce::pair::foreign::{PeerId, RefusedEnd, Report};

impl FlowTracker {
    /// Takes report `at` of a list; returns `false` if there is none.
    pub(crate) fn take_report(&mut self, reports: &Reports, at: usize, now: Nanos) -> bool {
        let Some(report) = reports.all.get(at) else {
            return false;
        };
        let peer = reports.peer;
        let taken = self.take(peer, report, now);
        let counts = self.status.peers.of(peer);
        counts.heard.set(now.0);
        match taken {
            Ok(displaced) => {
                reports.accepted.add(1);
                counts.accepted.add(1);
                counts.displaced.add(displaced);
            }
            Err(reason) => {
                reason.pick(&reports.refused).add(1);
                reason.pick(&counts.refused).add(1);
            }
        }
        true
    }

    fn take(&mut self, peer: PeerId, report: &Report, now: Nanos) -> Result<u64, RefusedEnd> {
        if let Some(reason) = self.connections.refuses(peer, now) {
            return Err(reason);
        }
        match report {
            Report::Gone(key, port) => {
                self.connections.forget_end(peer, (key, *port), now);
                Ok(0)
            }
            Report::Seen(end) if !self.is_between_ports(&end.key) => Err(RefusedEnd::NotBehindPort),
            Report::Seen(end) => self.connections.take_end(peer, end, now),
        }
    }

    /// Returns true if a flow that an end answers would come in by a trusted port and leave by a watched one: its sender lies behind the first and its
    /// receiver, where it is known, behind the other.
    fn is_between_ports(&mut self, end: &FlowKey) -> bool {
        let (trusted, watched) = (self.settings.trusted_ports, self.watched);
        let mut behind = |source: &FlowKey, ports: u32| {
            let toward = self.check.ports_of(source);
            toward.is_some_and(|toward| toward & ports != 0)
        };
        let flow = end.reversed(Qpn::default());
        behind(&flow, trusted) && (end.is_sourceless() || behind(end, watched))
    }

    /// Believes nothing of a peer from now on, or again once what it said is forgotten.
    pub(crate) fn distrust(&mut self, peer: PeerId, distrusted: bool) {
        self.connections.distrust(peer, distrusted);
        let counts = self.status.peers.of(peer);
        counts.distrusted.set(u64::from(distrusted));
    }

    /// Counts a CNP to a queue pair that a peer reported.
    pub(crate) fn count_reported_cnp(&self, flow: &FlowKey, (sender, evidence): (Qpn, Evidence)) {
        if evidence != Evidence::Foreign {
            return;
        }
        if let Some(peer) = self.connections.reporter(flow, sender) {
            self.status.peers.of(peer).cnps.add(1);
        }
    }

    /// Counts a flow whose sender became known by a peer's end.
    pub(super) fn count_reported_pair(&self, flow: &FlowKey, sender: Qpn) {
        if let Some(peer) = self.connections.reporter(flow, sender) {
            self.status.peers.of(peer).pairs.add(1);
        }
    }

    /// Publishes the number of ends of the next peer.
    pub(super) fn show_peer(&mut self) {
        let peer = PeerId(self.shown_peer);
        self.shown_peer = self.shown_peer.wrapping_add(1);
        let counts = self.status.peers.of(peer);
        let held = self.connections.held_by(peer) as u64;
        if counts.held.get() != held {
            counts.held.set(held);
        }
    }
}
