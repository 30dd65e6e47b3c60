//! What the snapshot and `show flows`, `show hosts` and `show log` say of NPCC.

use std::collections::BTreeMap;

use npcc_cnp::flow_cache::CacheCount;
use npcc_cnp::hosts::Counts;
use npcc_cnp::plan::Suppressed;
use npcc_cnp::status::{NpccCount, WatchedCount};
use npcc_pipeline::counters::{ByName, Cell, Counter, Path};
use serde::{Deserialize, Serialize};

use super::counted;
use crate::control::ControlCount;

/// CNPs not sent, by reason.
pub type NotSent = ByName<Suppressed, Counter, { Suppressed::COUNT }>;

/// NPCC.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Npcc {
    /// What the control core counted.
    #[serde(flatten)]
    pub counts: NpccCount,
    /// What the workers' flow caches counted.
    #[serde(flatten)]
    pub caches: CacheCount,
    /// What the control loop counted.
    #[serde(flatten)]
    pub control: ControlCount,
    /// What becomes of decisions on the whole switch: `send`, `observe` or `off`.
    pub action: String,
    /// CNPs handed to a port.
    pub cnps_sent: u64,
    /// CNPs that would have been, where nothing is sent.
    pub would_send: u64,
    /// CNPs not sent, by reason.
    pub cnps_suppressed: <NotSent as Cell>::Count,
    /// From the enqueue that crosses `shallow` to the CNP handed to the device (the filter's ticks included), in us.
    pub reaction_us: Percentiles,
    /// From the enqueue that crosses `hard`, where no filter applies, to the CNP handed to the device, in us.
    pub reaction_hard_us: Percentiles,
    /// Watched queues.
    pub queues: Vec<NpccQueue>,
    /// How much of the traffic NPCC can do something about.
    pub health: Health,
    /// Wire bytes of contributors without an entry in the flow table, by the port they came by.
    pub uncounted_ports: BTreeMap<String, u64>,
    /// Packets not learned from because their ICRC was wrong, by the port they came by.
    pub damaged_ports: BTreeMap<String, u64>,
}

impl Npcc {
    /// Shows each count that only grows, and which it is; `ports` are the names of all.
    pub fn each<'a>(
        &mut self,
        path: Path,
        ports: impl Iterator<Item = &'a str>,
        show: &mut dyn FnMut(Path, &mut u64),
    ) {
        self.counts.each(path, show);
        self.caches.each(path, show);
        self.control.each(path, show);
        show(path.then("cnps_sent"), &mut self.cnps_sent);
        show(path.then("would_send"), &mut self.would_send);
        NotSent::each(&mut self.cnps_suppressed, path.then("suppressed"), show);
        for port in ports {
            for (name, by_port) in [
                ("uncounted_ports", &mut self.uncounted_ports),
                ("damaged_ports", &mut self.damaged_ports),
            ] {
                let mut count = by_port.remove(port).unwrap_or_default();
                show(path.then(name).then(port), &mut count);
                if count > 0 {
                    by_port.insert(port.to_owned(), count);
                }
            }
        }
        for queue in &mut self.queues {
            let path = path.then("queue").then(&queue.port);
            queue.counts.each(path.at(queue.priority.into()), show);
        }
    }
}

/// A distribution of times, in us.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many were measured.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(default)]
    pub p999: f64,
    /// Longest.
    pub max: f64,
}

/// A watched queue.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NpccQueue {
    /// Port name.
    pub port: String,
    /// Priority.
    pub priority: u8,
    /// Zone: idle, shallow, deep, hard.
    pub zone: String,
    /// Trend: rising, falling.
    pub trend: String,
    /// What becomes of decisions about it: the least of the switch's action, the port's and its own.
    pub action: String,
    /// The policy in its slot.
    pub policy: String,
    /// The policy that answered at the last look: another one when the first does not know enough.
    pub policy_now: String,
    /// Why it is another one.
    pub policy_why: Option<String>,
    /// The policy's parameters, each with its unit.
    pub parameters: Vec<Setting>,
    /// What was counted.
    #[serde(flatten)]
    pub counts: WatchedCount,
}

counted! { Npcc: NpccCount, NpccQueue: WatchedCount, Host: Counts }

/// A policy's parameter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Setting {
    /// Its name in `set`.
    pub name: String,
    /// What the number means: `ns`, `bytes` or `per-mille`.
    pub unit: String,
    /// Its value.
    pub value: u64,
    /// Smallest value it takes.
    pub min: u64,
    /// Largest.
    pub max: u64,
}

/// Data bytes in watched queues, and whose senders could be told.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Health {
    /// Wire bytes of data.
    pub data_bytes: u64,
    /// Share of them from flows paired well enough to be told, in percent.
    pub paired: f64,
    /// Share from flows that are answered, but known by less than the configured evidence.
    pub unpaired: f64,
    /// Share from flows nobody has answered here yet: cold, or their answers go another way.
    pub cold: f64,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Flow {
    /// Data sender's address.
    pub src: String,
    /// Data receiver's address.
    pub dst: String,
    /// Receiver's QPN, which the data carry.
    pub dest_qp: u32,
    /// Sender's QPN, which a CNP carries; absent while unknown.
    pub sender_qp: Option<u32>,
    /// How the sender's QPN is known.
    pub evidence: String,
    /// Egress port.
    pub port: String,
    /// Egress queue.
    pub priority: u8,
    /// Bytes enqueued.
    pub bytes: u64,
    /// CNPs sent to its sender.
    pub cnps: u64,
    /// What the last CNP did: halved, weak, none; absent when not yet known.
    pub response: Option<String>,
    /// CNPs that would have been sent to its sender, where nothing is.
    #[serde(default)]
    pub would_send: u64,
    /// Why it got no CNP when it was last considered; absent when it did, or would have.
    #[serde(default)]
    pub refused: Option<String>,
    /// Whether nobody has answered it yet.
    #[serde(default)]
    pub cold: bool,
    /// Round trip from here to the sender, as NPCC counts with it, in us.
    #[serde(default)]
    pub near_us: u64,
    /// Round trip from here to the receiver, in us; absent while unknown.
    #[serde(default)]
    pub far_us: Option<u64>,
    /// Whether it is left to ECN because its receiver is near.
    #[serde(default)]
    pub gated: bool,
    /// How long ago it was first seen, in ms.
    #[serde(default)]
    pub age_ms: u64,
    /// How long ago it was last seen, in ms.
    #[serde(default)]
    pub idle_ms: u64,
}

/// One host, by address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Host {
    /// Its address.
    pub address: String,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// What becomes of decisions to tell it: `send`, `observe`, `off`, or `deny` where it may not be told.
    #[serde(default)]
    pub action: String,
    /// CNPs its living flows would have been sent, where nothing is.
    #[serde(default)]
    pub would_send: u64,
    /// Its flows.
    #[serde(default)]
    pub flows: u64,
    /// Of these, those whose sending queue pair is known.
    #[serde(default)]
    pub paired: u64,
    /// Flows whose last CNP halved their rate.
    #[serde(default)]
    pub halved: u64,
    /// Flows whose last CNP had a weak effect.
    #[serde(default)]
    pub weak: u64,
    /// Flows whose last CNPs had none.
    #[serde(default)]
    pub unresponsive: u64,
    /// What is believed of its network card: `unknown`, `answers` or `doubted`.
    #[serde(default)]
    pub standing: String,
    /// Measurements that spoke for it: a flow of it slowed down when told and stayed slow.
    #[serde(default)]
    pub worked: u64,
    /// Measurements that spoke against it: none did, or not for long.
    #[serde(default)]
    pub vain: u64,
    /// The natural logarithm of the odds that it responds, in tenths: 0 is even, 22 is nine to one.
    #[serde(default)]
    pub odds: i64,
    /// Measurements that say nothing of it, by reason.
    #[serde(default)]
    pub unmeasured: BTreeMap<String, u64>,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogLine {
    /// When, in us of the switch's clock.
    pub time_us: u64,
    /// When by everybody's clock, RFC 3339, UTC.
    #[serde(default)]
    pub wall: String,
    /// What it tells of: a `decision` about a flow, an `event` of ports and lossless queues, or a `change` by an operator.
    pub kind: String,
    /// The whole of it, for people.
    pub text: String,
    /// Of a decision: the egress port; of an event: the port, where it is one port's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Of a decision: the egress queue; of an event: the priority, where it is one priority's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The decision, where it is one.
    #[serde(flatten)]
    pub decision: Option<LogDecision>,
}

/// A decision about a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogDecision {
    /// Data sender's address.
    pub src: String,
    /// Data receiver's address.
    pub dst: String,
    /// Receiver's QPN.
    pub dest_qp: u32,
    /// Sender's QPN; absent while unknown.
    pub sender_qp: Option<u32>,
    /// How it is known.
    pub evidence: String,
    /// What became of it: `sent`, `would-send` or `refused`.
    pub outcome: String,
    /// Why it was refused.
    pub refused: Option<String>,
    /// Why the policy wanted somebody told.
    pub reason: String,
    /// Wire bytes in the queue.
    pub depth: u64,
    /// Its zone.
    pub zone: String,
    /// Its trend.
    pub trend: String,
    /// CNPs of the flow, this one included; would-be ones where nothing is sent.
    pub cnps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every number of NPCC's report is shown, or is one that may go down.
    #[test]
    fn no_count_of_npcc_is_forgotten() {
        let mut npcc = Npcc {
            queues: vec![NpccQueue {
                port: "wan0".to_owned(),
                ..NpccQueue::default()
            }],
            ..Npcc::default()
        };
        let mut paths = BTreeSet::new();
        let mut shown = 0;
        npcc.each(
            Path::ROOT,
            ["dc0", "wan0"].into_iter(),
            &mut |path, count| {
                assert!(paths.insert(path), "two counts with one number");
                *count += 1;
                shown += 1;
            },
        );
        let value = serde_json::to_value(&npcc).unwrap();
        // What goes up and down, and what is a distribution of this process's.
        let gauges = [
            "/flows",
            "/reaction_us",
            "/reaction_hard_us",
            // The same as `counts.data_bytes`, which is shown.
            "/health/data_bytes",
            "/health/paired",
            "/health/unpaired",
            "/health/cold",
            "/queues/0/priority",
            "/queues/0/depth",
            "/queues/0/peak",
            "/queues/0/shallow",
            "/queues/0/deep",
            "/queues/0/hard",
            "/queues/0/contributors",
        ];
        let mut grown = 0;
        let mut left = vec![(String::new(), &value)];
        while let Some((at, value)) = left.pop() {
            if gauges.contains(&at.as_str()) {
                continue;
            }
            match value {
                serde_json::Value::Object(map) => {
                    left.extend(
                        map.iter()
                            .map(|(key, value)| (format!("{at}/{key}"), value)),
                    );
                }
                serde_json::Value::Array(all) => {
                    left.extend(
                        all.iter()
                            .enumerate()
                            .map(|(n, value)| (format!("{at}/{n}"), value)),
                    );
                }
                serde_json::Value::Number(number) => {
                    assert_eq!(number.as_u64(), Some(1), "{at} is not shown");
                    grown += 1;
                }
                _ => {}
            }
        }
        // Some are shown that JSON has in a sum only, or not at all.
        assert!(grown > 50 && grown < shown, "{grown} of {shown}");
    }
}
