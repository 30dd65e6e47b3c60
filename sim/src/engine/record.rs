//! Measurements recorded while a run goes on.

use std::net::Ipv4Addr;

use npcc_pipeline::units::Nanos;

/// Maximum number of points of the curves.
pub(crate) const POINTS: u64 = 600;

/// One point of a run's curves.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sample {
    /// Time since the start of the traffic.
    pub at: Nanos,
    /// Peak depth of the reported queue since the last point, in wire bytes.
    pub depth: u64,
    /// Sum of the senders' rates, in Gb/s.
    pub offered: f64,
    /// Throughput of the reported link since the last point, in Gb/s.
    pub through: f64,
    /// Total time hosts were paused until now, summed over the hosts.
    pub paused: Nanos,
    /// CNPs that reached senders until now.
    pub cnps: u64,
}

/// Measurements of a run in progress.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Port toward each host, by switch.
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
    /// Completion time of each burst, by group.
    pub(crate) bursts: Vec<Vec<Nanos>>,
    /// Shortest possible completion time of a burst, on otherwise idle links, by group.
    pub(crate) ideals: Vec<Option<Nanos>>,
}

/// Returns the address of host `index`: 10.x.y.z counted up from 10.0.0.1.
pub(crate) const fn address(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(0x0a00_0001 + index)
}

impl Record {
    /// Returns the egress port of a frame under the current routes; `None` for MAC control.
    pub(crate) fn route_of(&self, switch: u32, frame: &[u8]) -> Option<u8> {
        if frame[12..14] != [8, 0] {
            return None;
        }
        let host = u32::from_be_bytes([frame[30], frame[31], frame[32], frame[33]]) - 0x0a00_0001;
        self.routes[switch as usize].get(host as usize).copied()
    }

    /// Records the depth of the reported queue after a frame joined it.
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

    /// Records the depth of the reported queue after a frame left: the queue has drained when it is at `kmin` or below.
    pub(crate) fn drained(&mut self, depth: u64, now: Nanos) {
        if self.exceeded && self.drained_at.is_none() && depth <= self.kmin {
            self.drained_at = Some(now);
        }
    }

    /// Records that a burst of this group arrived whole, and the time it took.
    pub(crate) fn completed(&mut self, group: usize, time: Nanos) {
        self.bursts[group].push(time);
    }
}
