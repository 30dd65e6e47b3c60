//! Reaction time from the enqueue that crosses a threshold to the CNP in the device's hands, again and again: `bench --reaction`.
//!
//! 64 connections send in volleys into a port of 1 Gb/s, at a tick of 20 us. To cross `hard`: 32 frames at once, which take the queue from
//! empty past `hard` in one enqueue. To cross `shallow`: arrivals at 1.4 times the drain rate that go on for many ticks and end before
//! `deep`. The crossing is dated by the turn of the worker that began it, so the source's copying of the burst is counted in. The period
//! is no multiple of the tick, so volleys meet every phase of it, and longer than the millisecond in which a flow that does not heed CNPs
//! is signalled once. The senders' queue pairs are known by their ACKs and UDP ports, as in production.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use npcc_api::model::{Percentiles, Snapshot};
use npcc_api::protocol::Request;
use npcc_pipeline::units::Mac;
use serde::Serialize;

use super::{Running, SETTLE, hosts, write_way};
use crate::pace::Schedule;
use crate::traffic::{Operation, Traffic, Way};

/// Length of a frame without FCS, in bytes.
const FRAME: usize = 1_082;
/// Number of connections.
const FLOWS: usize = 64;
/// Time to send a frame at 1 Gb/s, with preamble, gap and FCS, in ps.
const DRAIN: u64 = (FRAME as u64 + 24) * 8_000;
/// Time from one volley to the next, in ps: 1,103.7 us, 55 ticks and a fifth.
const PERIOD: u64 = 1_103_717_000;

npcc_pipeline::named! {
    /// Threshold that is crossed.
    pub enum Cnps {
        /// Threshold `hard`, where no filter applies.
        Hard = "hard",
        /// Threshold `shallow`, after the filter.
        Shallow = "shallow",
    }
}

impl Cnps {
    const fn schedule(self) -> Schedule {
        match self {
            Cnps::Hard => Schedule {
                frames: 32,
                gap: 0,
                period: PERIOD,
            },
            Cnps::Shallow => Schedule {
                frames: 90,
                gap: DRAIN * 5 / 7,
                period: PERIOD,
            },
        }
    }

    /// Returns thresholds for the volley: one of 35 KB passes the first `hard` (twice `deep`) at once; one that rises to 28 KB stays below the second `deep`.
    const fn thresholds(self) -> &'static str {
        match self {
            Cnps::Hard => "shallow: 8KB, deep: 12KB",
            Cnps::Shallow => "shallow: 8KB, deep: 40KB",
        }
    }
}

/// Results of one measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reacted {
    /// Name of the threshold that was crossed.
    pub crossed: &'static str,
    /// Number of requests to the management socket during the measurement.
    pub questions: u64,
    /// Time from the enqueue to the device, in us.
    pub reaction_us: Percentiles,
    /// Number of volleys during the measurement; one that no CNP answered is not in the distribution.
    pub volleys: u64,
    /// Number of ticks of the control core.
    pub ticks: u64,
    /// Number of those ticks that were late by more than half a tick.
    pub ticks_late: u64,
    /// Number of CNPs sent.
    pub cnps: u64,
}

/// Crosses a threshold `crossings` times; if `requested`, a client requests the state all the time.
///
/// # Errors
/// The switch does not start or answer, or no CNP comes.
pub fn reaction(
    what: Cnps,
    crossings: u64,
    requested: bool,
    cores: (usize, usize),
) -> anyhow::Result<Reacted> {
    let folder = tempfile::tempdir().context("cannot make a folder for the captures")?;
    let traffic = Traffic {
        qps: FLOWS,
        operations: vec![Operation::Send, Operation::Ack],
        sizes: vec![FRAME],
        ..hosts()
    };
    let far = Traffic {
        src_mac: Mac([2, 0, 0, 0, 2, 2]),
        dst_mac: Mac([2, 0, 0, 0, 2, 1]),
        ..traffic.clone()
    };
    let file = |name| folder.path().join(name);
    write_way(&traffic, Way::Forward, &file("in.pcap"), FLOWS)?;
    write_way(&far, Way::Back, &file("acks.pcap"), 2 * FLOWS)?;
    let args = ["--timetable".into(), what.schedule().to_string().into()];
    let mut switch = Running::start(folder.path(), &config(what, cores, folder.path()), &args)?;
    std::thread::sleep(SETTLE);
    switch.clear()?;
    let (before, start) = (switch.snapshot()?, Instant::now());
    let time = Duration::from_nanos(crossings * (PERIOD / 1_000));
    let mut questions = 0;
    while start.elapsed() < time {
        if requested {
            switch.ask(&Request::Snapshot)?;
            switch.rows("flows")?;
            questions += 2;
        } else {
            std::thread::sleep(time.saturating_sub(start.elapsed()));
        }
    }
    let after = switch.snapshot()?;
    let took = start.elapsed();
    switch.stop();
    let reaction_us = match what {
        Cnps::Hard => after.npcc.reaction_hard_us,
        Cnps::Shallow => after.npcc.reaction_us,
    };
    if reaction_us.count == 0 {
        return Err(anyhow!(
            "no CNP answered a crossing: {} sent, suppressed {:?}, paired {:?}",
            after.npcc.cnps_sent,
            after.npcc.cnps_suppressed,
            after.npcc.paired
        ));
    }
    let since = |of: fn(&Snapshot) -> u64| of(&after) - of(&before);
    Ok(Reacted {
        crossed: what.name(),
        questions,
        reaction_us,
        volleys: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / (PERIOD / 1_000),
        ticks: since(|shot| shot.npcc.ticks),
        ticks_late: since(|shot| shot.npcc.control.late),
        cnps: since(|shot| shot.npcc.cnps_sent),
    })
}

fn config(what: Cnps, (control, worker): (usize, usize), folder: &Path) -> String {
    format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
cores: {{ control: {control}, workers: [{worker}] }}
telemetry: {{ socket: {folder}/s.sock }}
ports:
  - {{ name: dc0, device: \"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1\", mac: \"02:00:00:00:01:01\", mtu: 1500,
      addresses: [10.0.1.1/24], speed: 100G }}
  - {{ name: wan0, device: \"net_pcap1,rx_pcap={folder}/acks.pcap\", mac: \"02:00:00:00:02:01\", mtu: 1500, speed: 1G,
      addresses: [10.0.12.1/24], npcc: {{ enable: true, queues: [3], {} }} }}
routes: [ {{ prefix: 10.0.2.0/24, via: 10.0.12.2 }} ]
neighbors:
  - {{ address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" }}
  - {{ address: 10.0.1.3, port: dc0, mac: \"02:00:00:00:01:03\" }}
buffer: {{ pool: 64MB }}
",
        what.thresholds(),
        folder = folder.display(),
    )
}
