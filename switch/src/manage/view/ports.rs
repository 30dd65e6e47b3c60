//! Port's row of the report, from its counters and its device's.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use npcc_api::lossless::{FlowControl, Group, Pause};
use npcc_api::model::{Port, Queue};
use npcc_dpdk::LinkPause;
use npcc_pipeline::counters::{DeviceDrops, FlowCount, GroupCount, Path, PauseCount, QueueCount};
use npcc_pipeline::num::real;
use npcc_pipeline::units::Nanos;

use super::{PortFacts, PortReading, View, lock};
use crate::saved::storms::Storm;
use crate::wiring::pfc::PfcState;

impl View {
    /// Returns the counts of a port and its device now. A pause that still lasts counts up to now.
    pub(super) fn reading(&self, index: usize) -> PortReading {
        let mut counts = self.counts(index);
        last(&mut counts.flow, self.clock.now());
        let port = self.ports.get(index);
        // A device that cannot report counts as having lost nothing.
        let device = port.and_then(|facts| facts.port.stats().ok());
        let device = device.unwrap_or_default();
        let mut device = DeviceDrops {
            rx_missed: device.rx_missed,
            rx_nombuf: device.rx_no_mbuf,
            rx_errors: device.rx_errors,
            tx_errors: device.tx_errors,
        };
        // The shown values are settled, not their parts: a difference may go back where both of its parts do not.
        counts.rx = counts.rx_ok();
        let path = port.map_or(Path::ROOT, path);
        counts.each(path, &mut self.settles());
        device.each(path.then("device"), &mut self.settles());
        PortReading { counts, device }
    }

    /// Returns a port's row; a group may hold `share` of the shared pool.
    pub(super) fn port(
        &self,
        (index, facts): (usize, &PortFacts),
        reading: PortReading,
        share: u64,
    ) -> Port {
        let PortReading { mut counts, device } = reading;
        let Some(link) = self.links.get(index) else {
            return Port::default();
        };
        let (pfc, mut flaps) = (&link.pfc, link.flaps);
        self.settles()(path(facts).then("flaps"), &mut flaps);
        counts.lossless_lost += lossless_lost(pfc.send, &device);
        let rate = link.speeds.shaper.unwrap_or(link.speeds.link);
        let peaks = counts.queues.iter().map(|queue| queue.peak);
        let delays = lock(&self.peaks).take_in(index, rate, peaks);
        Port {
            name: facts.name.clone(),
            device: facts.device.clone(),
            driver: facts.port.driver_name().to_owned(),
            mac: facts.mac.to_string(),
            up: link.up,
            admin: if link.admin_up { "up" } else { "down" }.to_owned(),
            down_reason: link.reason.name().to_owned(),
            link_speed: link.speeds.link.0,
            link_speed_from: link.speeds.from.name().to_owned(),
            last_change: humantime::format_rfc3339_millis(link.since).to_string(),
            flaps,
            rate: link.speeds.shaper.map(|rate| rate.0),
            workers: facts.workers.clone(),
            device_drops: device,
            flow: self.flow_control(pfc, &counts.flow),
            groups: (0..)
                .zip(&counts.groups)
                .map(|(priority, count)| group(pfc, priority, count, share))
                .collect(),
            queues: (0..)
                .zip(counts.queues.iter().zip(delays))
                .map(|(priority, (count, delay))| queue(priority, count, delay))
                .collect(),
            counts,
        }
    }

    /// Returns a port's flow control.
    fn flow_control(&self, facts: &PfcState, counts: &FlowCount) -> FlowControl {
        let (turn, covered) = (self.longest_turn(), self.buffer.turn);
        FlowControl {
            backend: facts.choice.backend.name().to_owned(),
            why: facts.choice.why.clone(),
            self_test: facts.self_test.name().to_owned(),
            link_pause: link_pause(facts.link_pause).to_owned(),
            link_pause_error: facts.link_pause_error.clone(),
            suspected: facts.choice.suspected && facts.honour != 0,
            tx_outstanding: facts.outstanding,
            rx_fill: if facts.tells_fill { "driver" } else { "bursts" }.to_owned(),
            rate: facts.rate.0,
            send: bits(u64::from(facts.send)),
            honour: bits(u64::from(facts.honour)),
            response_us: micros(turn.saturating_add(facts.rate.time_of(facts.burst).0)),
            headroom_short: if facts.send == 0 {
                0
            } else {
                facts.rate.bytes_in(Nanos(turn.saturating_sub(covered.0)))
            },
            priorities: (0..)
                .zip(&counts.priorities)
                .map(|(priority, count)| self.pause(priority, count))
                .collect(),
            counts: counts.clone(),
        }
    }

    /// Returns the pause storms that the watchdogs have detected and that are not over.
    #[must_use]
    pub fn storms(&self) -> Vec<Storm> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs_f64();
        let mut all = Vec::new();
        for (index, facts) in self.ports.iter().enumerate() {
            let of_port = self
                .workers
                .counters
                .iter()
                .filter_map(|own| own.port(index));
            for flow in of_port.map(|port| &port.flow) {
                let storm = flow.storm.get();
                let stormy = (0u8..).zip(&flow.priorities);
                for (priority, pause) in stormy.filter(|(one, _)| storm & 1 << one != 0) {
                    let ago = self.clock.seconds_since(Nanos(pause.storm_at.get()));
                    let since = Duration::try_from_secs_f64(now - ago).unwrap_or_default();
                    all.push(Storm {
                        port: facts.name.clone(),
                        priority,
                        since_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                    });
                }
            }
        }
        all
    }

    fn pause(&self, priority: u8, counts: &PauseCount) -> Pause {
        let ago = |then: u64| (then != 0).then(|| self.clock.seconds_since(Nanos(then)));
        Pause {
            priority,
            rx_began_s_ago: ago(counts.rx_began),
            tx_began_s_ago: ago(counts.tx_began),
            storm_s_ago: ago(counts.storm_at),
            counts: counts.clone(),
        }
    }
}

/// Returns the path of a port's counters, which does not depend on its place in the configuration.
fn path(facts: &PortFacts) -> Path {
    Path::ROOT.then("port").then(&facts.name)
}

/// Adds the time that present pauses have lasted so far, which the worker counts when they end.
fn last(flow: &mut FlowCount, now: Nanos) {
    for (n, pause) in flow.priorities.iter_mut().enumerate() {
        let lasted = |mask: u64, began: u64| match mask & 1 << n {
            0 => 0,
            _ => now.since(Nanos(began)).0,
        };
        let rx = lasted(flow.paused, pause.rx_began);
        let tx = lasted(flow.asserted, pause.tx_began);
        pause.rx_paused_ns += rx;
        pause.rx_longest_ns = pause.rx_longest_ns.max(rx);
        pause.tx_paused_ns += tx;
        pause.tx_longest_ns = pause.tx_longest_ns.max(tx);
    }
}

/// Returns the frames that the device lost for want of space and that count as lossless loss: all of them where the peer is paused in
/// any of the priorities `send`, as the device does not tell priorities apart.
const fn lossless_lost(send: u8, device: &DeviceDrops) -> u64 {
    if send == 0 {
        0
    } else {
        device.rx_missed + device.rx_nombuf
    }
}

fn queue(priority: u8, counts: &QueueCount, peak_delay: Nanos) -> Queue {
    Queue {
        priority,
        peak_delay_ns: peak_delay.0,
        peak_ever: counts.peak.max(counts.peak_before),
        enqueued: counts.enqueued.packets,
        enqueued_bytes: counts.enqueued.bytes,
        counts: counts.clone(),
    }
}

/// Returns the row of a port's ingress group.
fn group(facts: &PfcState, priority: u8, counts: &GroupCount, share: u64) -> Group {
    let lossless = facts.send & 1 << priority != 0;
    let xoff = facts.reserved.saturating_add(share);
    let xon = facts.reserved.max(xoff.saturating_sub(facts.xon_offset));
    Group {
        priority,
        lossless,
        xoff: lossless.then_some(xoff),
        xon: lossless.then_some(xon),
        headroom_size: if lossless { facts.headroom } else { 0 },
        held_peak_ever: counts.held_peak.max(counts.held_peak_before),
        headroom_peak_ever: counts.headroom_peak.max(counts.headroom_peak_before),
        counts: counts.clone(),
    }
}

fn micros(ns: u64) -> f64 {
    real(ns / 10) / 100.0
}

fn bits(mask: u64) -> Vec<u8> {
    (0..8).filter(|n| mask & 1 << n != 0).collect()
}

const fn link_pause(pause: Option<LinkPause>) -> &'static str {
    match pause {
        Some(LinkPause::Off) => "off",
        Some(LinkPause::Obeyed) => "obeyed",
        Some(LinkPause::Sent) => "sent",
        Some(LinkPause::Both) => "both",
        None => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames that overflow the receive ring, or find no buffer, are lossless loss on a port that pauses its peer. Damaged ones are not.
    #[test]
    fn frames_that_overflow_the_ring_of_a_lossless_port_are_lossless_loss() {
        let device = DeviceDrops {
            rx_missed: 17,
            rx_nombuf: 3,
            rx_errors: 100,
            tx_errors: 1_000,
        };
        assert_eq!(lossless_lost(1 << 3, &device), 20);
        assert_eq!(lossless_lost(0, &device), 0);
    }
}
