//! Outcome of a run, computed from the engine's final state.

use npcc_cnp::control::ControlCore;
use npcc_cnp::responsiveness::Responsiveness;
use npcc_pipeline::frame::wire_len;
use npcc_pipeline::units::Nanos;

use super::Engine;
use super::link::Tally;
use super::record::Sample;
use crate::app::ApplicationOutcome;
use crate::scenario::Verb;
use crate::wire::OVERHEAD;

/// Outcome of a run. Depths in wire bytes; rates as shares of the reported link's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Peak depth of the reported queue.
    pub peak: u64,
    /// Mean depth of the reported queue over the time since the start.
    pub mean: u64,
    /// Depth that the reported queue did not exceed for 99 % of that time, to 4 KiB.
    pub p99: u64,
    /// Share of that time in which it was deeper than the scenario's `kmin`.
    pub above: f64,
    /// Time from the start until the queue was first back at `kmin` after its peak; `None` when it was never above, or not back.
    pub drained: Option<Nanos>,
    /// Share of the link used from the start.
    pub utilisation: f64,
    /// Share of the link that carried data delivered in order, over the later part.
    pub goodput: f64,
    /// Jain's index of the connections through the reported port, each as a share of its fair one, over the later part; 1 is equal.
    pub jain: f64,
    /// Goodput of each connection through the reported queue over the later part, as a share of the reported link.
    pub flows: Vec<f64>,
    /// Pauses begun by switches, summed over the priorities.
    pub pauses: u64,
    /// Total time hosts were paused, summed over the hosts.
    pub paused: Nanos,
    /// CNPs sent by switches.
    pub cnps_switch: u64,
    /// CNPs sent by receivers.
    pub cnps_host: u64,
    /// CNPs that reached senders.
    pub cnps_received: u64,
    /// Trials of hosts' responsiveness, over all switches.
    pub trials: Trials,
    /// Frames that left the reported queue marked.
    pub marked: u64,
    /// Frames dropped by switches.
    pub dropped: u64,
    /// Data packets retransmitted.
    pub repeated: u64,
    /// Outcome of each flow group.
    pub groups: Vec<GroupOutcome>,
    /// Points of the curves, in order of time.
    pub samples: Vec<Sample>,
    /// Time from the start of the last flow until all through the reported queue were within 10 % of their fair share over 1 ms;
    /// `None` where that was not, or where other traffic crosses it than two endless flows or more.
    pub converged: Option<Nanos>,
    /// Outcome of each application.
    pub applications: Vec<ApplicationOutcome>,
    /// Conservation audit: where every frame is.
    pub audit: Audit,
}

/// Trials of hosts' responsiveness, and the verdicts that follow from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trials {
    /// Trials passed.
    pub passed: u64,
    /// Trials failed.
    pub failed: u64,
    /// Hosts that are unresponsive.
    pub unresponsive: u64,
    /// Hosts among them that are moved.
    pub moved: u64,
}

/// Outcome of one flow group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupOutcome {
    /// Name of the flow group.
    pub name: String,
    /// Goodput: delivered in order over the later part, in Gb/s on the wire.
    pub goodput: f64,
    /// True if the scenario names it: it is a class of traffic whose goodput counts by itself.
    pub is_class: bool,
    /// Fair share, in Gb/s: the reported link divided equally among the connections through it, and each sender's link among its
    /// own.
    pub fair: f64,
    /// Completion times, from the start of a burst to its last packet's arrival, sorted.
    pub bursts: Vec<Nanos>,
    /// Ages of the bursts that had not arrived at the end.
    pub unfinished: Vec<Nanos>,
    /// Shortest possible completion time of a burst, on otherwise idle links.
    pub ideal: Option<Nanos>,
}

impl GroupOutcome {
    /// Returns the completion time that this share (in thousandths) of the bursts did not exceed.
    #[must_use]
    pub fn quantile(&self, thousandths: usize) -> Option<Nanos> {
        let last = self.bursts.len().checked_sub(1)?;
        self.bursts
            .get((last * thousandths).div_ceil(1_000))
            .copied()
    }

    /// Returns the slowdown that this share (in thousandths) of the bursts did not exceed: flow completion time over that on links that
    /// carry nothing else. A burst that has not arrived counts with its age once that is longer than the median of the others.
    #[must_use]
    pub fn slowdown(&self, thousandths: usize) -> Option<f64> {
        let median = self.quantile(500);
        let late = self.unfinished.iter().copied();
        let late = late.filter(|age| median.is_none_or(|median| *age > median));
        let mut bursts: Vec<Nanos> = self.bursts.iter().copied().chain(late).collect();
        bursts.sort_unstable();
        let all = GroupOutcome {
            bursts,
            ..self.clone()
        };
        Some(all.quantile(thousandths)?.0 as f64 / self.ideal?.0.max(1) as f64)
    }
}

/// Conservation: `made = received + consumed + dropped + lost + flying + held`, in frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Audit {
    /// Frames sent by hosts and far-end pauses, or originated by switches.
    pub made: u64,
    /// Frames that reached a host.
    pub received: u64,
    /// MAC control frames consumed by switches.
    pub consumed: u64,
    /// Frames dropped by switches.
    pub dropped: u64,
    /// Frames lost on a link that failed.
    pub lost: u64,
    /// Frames in flight on links.
    pub flying: u64,
    /// Frames held in switches.
    pub held: u64,
    /// Frames hosts could not parse or assign to a connection; must be 0.
    pub not_understood: u64,
}

impl Audit {
    /// Returns the number of frames that are unaccounted for.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        let found =
            self.received + self.consumed + self.dropped + self.lost + self.flying + self.held;
        self.made.abs_diff(found)
    }
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 {
        return 1.0;
    }
    sum * sum / (shares.len() as f64 * squares)
}

impl Engine {
    pub(crate) fn outcome(mut self) -> Outcome {
        let audit = self.audit();
        let (mean, p99) = self.record.mean_and_p99(self.now);
        let window = self.now.since(self.record.goodput_since).0.max(1) as f64;
        // Wire bytes of a full packet.
        let frame = f64::from(wire_len(OVERHEAD + usize::from(self.scenario.mtu)));
        let rates: Vec<f64> = self
            .flows
            .iter()
            .map(|flow| {
                let packets = flow.rx.expected() - flow.delivered_before;
                let short = (flow.short - flow.short_before) as f64;
                (packets as f64 * frame - short) * 8.0 / window
            })
            .collect();
        let crossing: Vec<f64> = self
            .flows
            .iter()
            .zip(&rates)
            .filter(|(flow, _)| flow.crosses)
            .map(|(_, rate)| *rate)
            .collect();
        let fair_of = self.fair_shares();
        // Equal division of the reported link, or of the sender's own where a connection takes another path.
        let part = |flow: &super::flow::Flow| {
            let fair = fair_of[flow.priority.index()];
            let of_host = self.flows.iter().filter(|other| other.src == flow.src);
            let own = self.hosts[flow.src as usize].line / of_host.count().max(1) as f64;
            if flow.crosses { fair.min(own) } else { own }
        };
        let groups = self.groups.iter().enumerate().map(|(group, name)| {
            let all = self.flows.iter().zip(&rates);
            let of: Vec<_> = all.filter(|(flow, _)| flow.group == group).collect();
            let mut bursts = self.record.bursts[group].clone();
            bursts.sort_unstable();
            let unfinished = of.iter().flat_map(|(flow, _)| &flow.bursts);
            GroupOutcome {
                name: name.clone(),
                goodput: of.iter().map(|(_, rate)| **rate).sum(),
                is_class: self
                    .scenario
                    .flows
                    .get(group)
                    .is_some_and(|group| group.name.is_some()),
                fair: of.iter().map(|(flow, _)| part(flow)).sum(),
                bursts,
                unfinished: unfinished
                    .map(|burst| self.now.since(burst.begun))
                    .collect(),
                ideal: self.record.ideals[group],
            }
        });
        let (watched, port) = self.watch;
        let started = self.record.started.unwrap_or_default();
        let paused = self.hosts.iter().map(|host| host.pause.total.0).sum();
        Outcome {
            peak: self.record.peak,
            mean,
            p99,
            above: self.record.above(),
            drained: self.record.drained_at.map(|at| at.since(started)),
            utilisation: self.record.utilisation.unwrap_or_default(),
            goodput: crossing.iter().sum::<f64>() / self.watch_rate,
            jain: self.jain(&rates, &fair_of),
            flows: crossing.iter().map(|rate| rate / self.watch_rate).collect(),
            pauses: self.pauses_begun(),
            paused: Nanos(paused),
            cnps_switch: self.switches.iter().map(|switch| switch.cnps).sum(),
            cnps_host: self.hosts.iter().map(|host| host.cnps_sent).sum(),
            cnps_received: self.hosts.iter().map(|host| host.cnps_received).sum(),
            trials: self.trials(),
            marked: self.switches[watched as usize].ports[usize::from(port)].marked,
            dropped: audit.dropped,
            repeated: self.flows.iter().map(|flow| flow.tx.repeated).sum(),
            groups: groups.collect(),
            samples: self.record.samples.clone(),
            converged: self.record.converged,
            applications: self.application_outcomes(),
            audit,
        }
    }

    fn trials(&self) -> Trials {
        let cores = self
            .switches
            .iter()
            .filter_map(|switch| switch.core.as_ref());
        let status: Vec<_> = cores.map(ControlCore::status).collect();
        let mut trials = Trials::default();
        for host in status.iter().flat_map(|status| status.verdicts.hosts()) {
            trials.passed += u64::from(host.passed);
            trials.failed += u64::from(host.failed);
            let moved = host.responsiveness == Responsiveness::Moved;
            trials.moved += u64::from(moved);
            trials.unresponsive +=
                u64::from(moved || host.responsiveness == Responsiveness::Unresponsive);
        }
        trials
    }

    /// Returns Jain's index of the connections through the reported port, each as a share of its fair one.
    fn jain(&self, rates: &[f64], fair_of: &[f64; 8]) -> f64 {
        let like = fair_of[self.watch_priority.index()];
        let crossing = self
            .flows
            .iter()
            .zip(rates)
            .filter(|(flow, _)| flow.crosses);
        // With one priority the weight is 1, exactly.
        let weighed = crossing.map(|(flow, rate)| rate * (like / fair_of[flow.priority.index()]));
        jain(&weighed.collect::<Vec<f64>>())
    }

    /// Returns the fair share of a connection through the reported port, in Gb/s, by priority: the priorities have equal weights, and the
    /// connections of a priority share alike.
    fn fair_shares(&self) -> [f64; 8] {
        let mut counts = [0u32; 8];
        for flow in self.flows.iter().filter(|flow| flow.crosses) {
            counts[flow.priority.index()] += 1;
        }
        let used = counts.iter().filter(|count| **count > 0).count().max(1);
        let of_priority = self.watch_rate / used as f64;
        counts.map(|count| of_priority / f64::from(count.max(1)))
    }

    /// Returns the pauses that switches began.
    fn pauses_begun(&self) -> u64 {
        let of_switch = |switch: &super::Switch| {
            let counters = switch.path.counters();
            let of = |port: usize| {
                let priorities = counters.port(port)?.flow.priorities.iter();
                Some(priorities.map(|of| of.tx_pauses.get()).sum::<u64>())
            };
            (0..switch.ports.len()).filter_map(of).sum::<u64>()
        };
        self.switches.iter().map(of_switch).sum()
    }

    fn audit(&self) -> Audit {
        let mut audit = Audit {
            made: self.chance.pause_frames,
            ..Audit::default()
        };
        for host in &self.hosts {
            audit.made += self.links[host.link].sent.frames;
            audit.received += host.received.frames;
            audit.not_understood += host.not_understood;
        }
        for link in &self.links {
            audit.lost += link.lost.frames;
            audit.flying += link.in_flight().frames;
        }
        for switch in &self.switches {
            switch.path.publish_held();
            let counters = switch.path.counters();
            audit.held += counters.held.packets.get();
            for port in counters.ports() {
                audit.made += port.originated.packets.get();
                audit.consumed += port.consumed.packets.get();
                audit.dropped += port.drops.iter().map(|drops| drops.get()).sum::<u64>();
            }
        }
        audit
    }

    /// Returns the sum of the rates, in Gb/s, of the connections that send now: those armed, and all READs.
    pub(crate) fn offered(&mut self) -> f64 {
        let now = self.now;
        let active = self
            .flows
            .iter_mut()
            .filter(|flow| flow.armed || flow.verb == Verb::Read);
        active.map(|flow| flow.rate.rate(now)).sum()
    }
}

impl Tally {
    /// Returns true if no frame was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equal_and_one_nth_for_one_of_n() {
        assert!((jain(&[3.0; 7]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn quantiles_are_of_the_sorted_times() {
        let group = GroupOutcome {
            bursts: (1..=100).map(Nanos).collect(),
            ..GroupOutcome::default()
        };
        assert_eq!(group.quantile(990), Some(Nanos(100)));
        assert_eq!(group.quantile(500), Some(Nanos(51)));
    }

    #[test]
    fn a_burst_that_never_arrives_counts_as_slow() {
        let mut group = GroupOutcome {
            bursts: vec![Nanos(20); 9],
            ideal: Some(Nanos(10)),
            ..GroupOutcome::default()
        };
        assert_eq!(group.slowdown(990), Some(2.0));
        // A burst that has just begun does not count yet.
        group.unfinished = vec![Nanos(5)];
        assert_eq!(group.slowdown(990), Some(2.0));
        group.unfinished = vec![Nanos(90), Nanos(5)];
        assert_eq!(
            (group.slowdown(500), group.slowdown(990)),
            (Some(2.0), Some(9.0))
        );
        group.bursts.clear();
        assert_eq!(group.slowdown(990), Some(9.0), "none has arrived");
        group.ideal = None;
        assert_eq!(group.slowdown(990), None, "no bursts at all");
    }
}
