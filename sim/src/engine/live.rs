//! Real-time mode: the scenario's hosts, links and other switches are simulated, but the watched switch is an external process.
//!
//! Law: nothing at this end decides about congestion. Frames reach the process as bytes and come back as bytes; its queue depth is
//! what it reports itself; CNPs are counted where hosts read them. Time here is the reader's: `now` is the simulated time that
//! the real clock has reached, so that the same dilation holds on both sides.

use std::net::Ipv4Addr;

use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::{BitRate, Mac, Nanos, Priority};
use npcc_roce::pair::foreign::ReportedEnd;

use super::build::topology::{host_mac, port_mac};
use super::link::End;
use super::record::address;
use super::{BuildError, Engine, Sample};
use crate::frame::SimFrame;
use crate::scenario::{Case, Scenario};

/// A scenario around an external switch.
#[derive(Debug)]
pub struct Live {
    engine: Engine,
    outside: u32,
    latest: Nanos,
}

/// Link and hosts attached to one port of the external switch.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// MAC address of the port, which the hosts send to.
    pub mac: Mac,
    /// Rate of its link.
    pub rate: BitRate,
    /// IP address of each host behind it, and the MAC address frames to it are sent to.
    pub hosts: Vec<(Ipv4Addr, Mac)>,
    /// True if it is the port whose queue is watched.
    pub watched: bool,
}

/// Results as the hosts saw them. Times are simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// CNPs that reached senders, read from their bytes.
    pub cnps_received: u64,
    /// CNPs that receivers sent.
    pub cnps_host: u64,
    /// Data packets retransmitted: frames got lost, or came too late.
    pub repeated: u64,
    /// Share of the watched link used over the scenario's `utilisation_over`.
    pub utilisation: f64,
    /// Share of the watched link that carried data delivered in order, over the later part.
    pub goodput: f64,
    /// Jain's index of the connections, over the later part.
    pub jain: f64,
    /// Longest delay of an event after its scheduled time.
    pub latest: Nanos,
    /// Points of the curves, in order of time.
    pub samples: Vec<Sample>,
}

impl Live {
    /// Builds everything but the watched switch.
    ///
    /// # Errors
    /// The errors are those of [`super::run`].
    pub fn new(scenario: &Scenario, case: &Case) -> Result<Live, BuildError> {
        if scenario.priorities().ne([Priority::new(3)]) {
            return Err(BuildError::OnePriority);
        }
        let mut engine = Engine::build(scenario, case)?;
        let outside = engine.watch.0;
        engine.outside = Some(outside);
        Ok(Live {
            engine,
            outside,
            latest: Nanos::ZERO,
        })
    }

    /// Returns the ports the process needs, by number.
    #[must_use]
    pub fn attachments(&self) -> Vec<Attachment> {
        let engine = &self.engine;
        let switch = &engine.switches[self.outside as usize];
        let routes = &engine.record.routes[self.outside as usize];
        let attachment = |(port, at): (usize, &super::switch::Port)| {
            let link = &engine.links[at.link];
            let peer = match link.to {
                End::Host(host) => host_mac(host),
                End::Switch(switch, port) => port_mac(switch, usize::from(port)),
            };
            let behind = routes.iter().zip(0u32..);
            let behind = behind.filter(|(toward, _)| usize::from(**toward) == port);
            Attachment {
                mac: port_mac(self.outside, port),
                rate: link.rate(),
                hosts: behind.map(|(_, host)| (address(host), peer)).collect(),
                watched: usize::from(engine.watch.1) == port,
            }
        };
        switch.ports.iter().enumerate().map(attachment).collect()
    }

    /// Returns the times at which the traffic starts and the run ends.
    #[must_use]
    pub const fn span(&self) -> (Nanos, Nanos) {
        (self.engine.start, self.engine.end)
    }

    /// Runs all events up to and including `now`. Returns the time of the next one.
    pub fn advance(&mut self, now: Nanos) -> Option<Nanos> {
        let engine = &mut self.engine;
        while let Some(time) = engine.queue.next().filter(|time| *time <= now) {
            let Some((_, event)) = engine.queue.pop() else {
                break;
            };
            engine.now = time;
            if time >= engine.start {
                self.latest = self.latest.max(now.since(time));
            }
            engine.happen(event);
        }
        engine.now = engine.now.max(now);
        engine.queue.next()
    }

    /// Takes the next frame for the switch, and the port it goes into.
    pub fn leaving(&mut self) -> Option<(u8, SimFrame)> {
        self.engine.leaving.pop_front()
    }

    /// Takes the next end that a host reports to the switch; `None` if there is none.
    pub fn reported(&mut self) -> Option<ReportedEnd> {
        self.engine.reported.pop_front()
    }

    /// Accepts a frame that the switch sent by this port. [`Live::advance`] keeps account of how late it is.
    pub fn entering(&mut self, port: u8, frame: &[u8]) {
        let switch = &self.engine.switches[self.outside as usize];
        // A frame that is too long is not from the scenario's hosts.
        if let Some(port) = switch.ports.get(usize::from(port))
            && frame.len() <= usize::from(self.engine.frame_wire)
        {
            let link = port.link;
            self.engine.put_on(link, SimFrame::with(frame));
        }
    }

    /// Records the depth that the switch reports for its watched queue.
    pub fn depth(&mut self, depth: u64) {
        let now = self.engine.now;
        self.engine.record.depth(depth, now);
    }

    /// Ends the run and returns what the hosts saw.
    #[must_use]
    pub fn seen(self) -> Seen {
        let latest = self.latest;
        let outcome = self.engine.outcome();
        Seen {
            cnps_received: outcome.cnps_received,
            cnps_host: outcome.cnps_host,
            repeated: outcome.repeated,
            utilisation: outcome.utilisation,
            goodput: outcome.goodput,
            jain: outcome.jain,
            latest,
            samples: outcome.samples,
        }
    }
}

impl Engine {
    /// Queues a frame that reached the external switch.
    pub(super) fn leave(&mut self, port: u8, frame: SimFrame) {
        debug_assert!(frame.data().len() <= usize::from(self.frame_wire));
        self.leaving.push_back((port, frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "
version: 1
name: live
duration: 2ms
switches: [edge, far-edge]
hosts:
  - { name: senders, count: 2, switch: edge, rate: 10G }
  - { name: receivers, count: 2, switch: far-edge, rate: 10G }
links: [ { name: dci, from: edge, to: far-edge, rate: 40G, length: 10km } ]
flows: [ { from: senders, to: receivers } ]
watch: dci
utilisation_over: 2ms
goodput_from: 1ms
";

    /// Stands in for a switch that has no queue: every frame leaves at once by the port of its destination.
    fn forward(live: &mut Live, attachments: &[Attachment]) -> u32 {
        let mut frames = 0;
        while let Some((_, mut frame)) = live.leaving() {
            let to = Ipv4Addr::from(<[u8; 4]>::try_from(&frame.data()[30..34]).unwrap());
            let (port, mac) = attachments
                .iter()
                .zip(0u8..)
                .find_map(|(at, port)| {
                    let host = at.hosts.iter().find(|(host, _)| *host == to)?;
                    Some((port, host.1))
                })
                .unwrap();
            frame.data_mut()[..6].copy_from_slice(&mac.0);
            live.entering(port, frame.data());
            frames += 1;
        }
        frames
    }

    #[test]
    fn hosts_talk_through_a_switch_that_is_not_here() {
        let scenario = Scenario::parse("live", SCENARIO).unwrap();
        let mut live = Live::new(&scenario, &scenario.cases()[0]).unwrap();
        let attachments = live.attachments();
        let watched: Vec<bool> = attachments.iter().map(|at| at.watched).collect();
        assert_eq!(watched, [false, false, true]);
        assert_eq!(attachments[2].hosts.len(), 2, "the far ones");
        assert_eq!(attachments[2].rate, BitRate(40_000_000_000));
        let (_, end) = live.span();
        let (mut now, mut frames) = (Nanos::ZERO, 0);
        while now <= end {
            live.depth(1_234);
            live.advance(now);
            frames += forward(&mut live, &attachments);
            now += Nanos(200);
        }
        let seen = live.seen();
        // 2 ms at 20 of 40 Gb/s are 1,200 frames, plus the acknowledgements.
        assert!(frames > 1_100, "{frames}");
        assert_eq!((seen.repeated, seen.cnps_received), (0, 0));
        assert!(
            (seen.utilisation - 0.5).abs() < 0.02,
            "{}",
            seen.utilisation
        );
        assert!(seen.jain > 0.99 && seen.goodput > 0.45, "{seen:?}");
        assert!(seen.samples.iter().all(|sample| sample.depth == 1_234));
        assert!(seen.latest < Nanos(200));
    }

    #[test]
    fn a_switch_that_sends_faster_than_its_link_fills_the_link_and_no_more() {
        let scenario = Scenario::parse("live", SCENARIO).unwrap();
        let mut live = Live::new(&scenario, &scenario.cases()[0]).unwrap();
        let (start, end) = live.span();
        live.advance(start);
        let mut frame = None;
        let mut now = start;
        while frame.is_none() {
            now += Nanos(200);
            live.advance(now);
            frame = live.leaving();
        }
        let frame = frame.unwrap().1;
        for _ in 0..100 {
            live.entering(2, frame.data());
        }
        live.advance(end);
        let through = live
            .seen()
            .samples
            .iter()
            .map(|sample| sample.through)
            .fold(0.0, f64::max);
        assert!((39.0..40.1).contains(&through), "{through} Gb/s of 40");
    }
}
