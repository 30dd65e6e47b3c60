//! What is written down while a run goes on.

use std::net::Ipv4Addr;

use npcc_pipeline::units::Nanos;

/// Points of the curves, at most.
pub(crate) const POINTS: u64 = 600;

/// One point of a run's curves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Since the start of the traffic.
    pub at: Nanos,
    /// Deepest the reported queue was since the last point, in wire bytes.
    pub depth: u64,
    /// Sum of the senders' rates, in Gb/s.
    pub offered: f64,
    /// What left by the reported queue since the last point, in Gb/s.
    pub through: f64,
    /// Time senders were paused until now, all together.
    pub paused: Nanos,
    /// CNPs that reached senders until now.
    pub cnps: u64,
}

/// What is written down of a run while it goes on.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// By switch: the port toward each host.
    pub(crate) routes: Vec<Vec<u8>>,
    pub(crate) started: Option<Nanos>,
    pub(crate) peak: u64,
    pub(crate) high: u64,
    pub(crate) kmin: u64,
    pub(crate) exceeded: bool,
    pub(crate) drained_at: Option<Nanos>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) through_at_start: u64,
    pub(crate) through_before: u64,
    pub(crate) utilisation: Option<f64>,
    pub(crate) goodput_since: Nanos,
    /// Time each burst took, by group.
    pub(crate) bursts: Vec<Vec<Nanos>>,
    /// By group, what a burst takes on links that carry nothing else.
    pub(crate) ideals: Vec<Option<Nanos>>,
}

/// The address of host `index`: 10.x.y.z counted up from 10.0.0.1.
pub(crate) const fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + index)
}

impl Record {
    /// The port a frame leaves by, as the routes are now; `None` for MAC control.
    pub(crate) fn route_of(&self, switch: u32, frame: &[u8]) -> Option<u8> {
        if frame[12..14] != [8, 0] {
            return None;
        }
        let host = u32::from_be_bytes([frame[30], frame[31], frame[32], frame[33]]) - 0x0a00_0001;
        self.routes[switch as usize].get(host as usize).copied()
    }

    /// The reported queue has this depth after a frame joined it.
    pub(crate) fn depth(&mut self, depth: u64) {
        if self.started.is_some() {
            if depth > self.peak {
                self.peak = depth;
                self.drained_at = None;
            }
            self.high = self.high.max(depth);
            self.exceeded |= depth > self.kmin;
        }
    }

    /// Notes the depth after a frame left.
    pub(crate) fn drained(&mut self, depth: u64, now: Nanos) {
        if self.exceeded && self.drained_at.is_none() && depth <= self.kmin {
            self.drained_at = Some(now);
        }
    }

    /// A burst of this group arrived whole.
    pub(crate) fn completed(&mut self, group: usize, time: Nanos) {
        self.bursts[group].push(time);
    }
}
