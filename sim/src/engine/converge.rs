//! Convergence of M + M flows (draft-calabria-bmwg-ai-fabric-training-bench): the time from the start of the last flow until all are near
//! their fair share.

use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::Nanos;

use super::Engine;
use super::event::{Event, Mark};
use super::flow::Flow;
use crate::wire::OVERHEAD;

/// Window over which a flow's goodput is compared with its share.
const WINDOW: Nanos = Nanos::from_millis(1);
/// Largest distance from the fair share, as a part of it.
const NEAR: f64 = 0.1;

impl Engine {
    /// Returns the connections through the reported queue, if they are two endless flows or more and nothing else.
    fn joiners(&self) -> Vec<&Flow> {
        let crossing: Vec<&Flow> = self.flows.iter().filter(|flow| flow.crosses).collect();
        let endless = |flow: &&Flow| {
            let group = self.scenario.flows.get(flow.group);
            group.is_some_and(|group| group.burst.is_none() && group.stop.is_none())
        };
        if crossing.len() < 2 || !crossing.iter().all(endless) {
            return Vec::new();
        }
        crossing
    }

    /// Schedules the first window, which begins when the last flow starts.
    pub(super) fn first_window(&mut self) {
        if !self.joiners().is_empty() {
            self.queue.at(self.record.joined, Event::Mark(Mark::Window));
        }
    }

    /// Compares the goodputs of the window that ends now with fair shares, until all are near.
    pub(super) fn window_ends(&mut self) {
        let joiners = self.joiners();
        let counts: Vec<u64> = joiners.iter().map(|flow| flow.rx.expected()).collect();
        let share = self.watch_rate / counts.len().max(1) as f64;
        let frame = f64::from(wire_len(OVERHEAD + usize::from(self.scenario.mtu)));
        let windows = joiners.iter().zip(&counts).zip(&self.record.window);
        let mut shares = windows.map(|((flow, count), before)| {
            let of_host = self.flows.iter().filter(|other| other.src == flow.src);
            let own = self.hosts[flow.src as usize].line / of_host.count().max(1) as f64;
            let goodput = (count - before) as f64 * frame * 8.0 / WINDOW.0 as f64;
            goodput / share.min(own)
        });
        let is_near = |share: f64| (share - 1.0).abs() <= NEAR;
        if !self.record.window.is_empty() && shares.all(is_near) {
            self.record.converged = Some(self.now.since(self.record.joined));
            return;
        }
        drop(shares);
        self.record.window = counts;
        self.queue.at(self.now + WINDOW, Event::Mark(Mark::Window));
    }
}
