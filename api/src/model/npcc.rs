//! NPCC in the snapshot, and the rows of `show flows`, `show hosts` and `show log`.

use std::collections::BTreeMap;

use npcc_cnp::admission::Suppressed;
use npcc_cnp::flow_cache::CacheCount;
use npcc_cnp::hosts::Counts;
use npcc_cnp::status::{NpccCount, WatchedCount};
use npcc_pipeline::counters::{ByName, Cell, ControlCount, Counter, Path};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted;

/// CNPs not sent, by reason.
pub type NotSent = ByName<Suppressed, Counter, { Suppressed::COUNT }>;

/// NPCC in the snapshot: counts, reaction times, watched queues.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Npcc {
    /// Counts of the control core.
    #[serde(flatten)]
    pub counts: NpccCount,
    /// Counts of the workers' flow caches.
    #[serde(flatten)]
    pub caches: CacheCount,
    /// Counts of the control loop.
    #[serde(flatten)]
    pub control: ControlCount,
    /// Action on decisions for the whole switch: `send`, `observe` or `off`.
    pub action: String,
    /// CNPs handed to a port.
    pub cnps_sent: u64,
    /// CNPs that would have been sent, where the action sends none.
    pub would_send: u64,
    /// CNPs not sent, by reason.
    pub cnps_suppressed: <NotSent as Cell>::Count,
    /// Time from the enqueue that crosses `shallow` to the CNP handed to the device (the filter's ticks included), in us.
    pub reaction_us: Percentiles,
    /// Time from the enqueue that crosses `hard`, where no filter applies, to the CNP handed to the device, in us.
    pub reaction_hard_us: Percentiles,
    /// Watched queues.
    pub queues: Vec<NpccQueue>,
    /// Data bytes in watched queues, by whether their senders can be signalled.
    pub health: Health,
    /// Wire bytes of contributors without an entry in the flow table, by ingress port.
    pub uncounted_ports: BTreeMap<String, u64>,
    /// Packets not learned from because their ICRC was wrong, by ingress port.
    pub damaged_ports: BTreeMap<String, u64>,
    /// QP1 packets lost on the way to the control core, by ingress port.
    pub message_drops_ports: BTreeMap<String, u64>,
}

impl Npcc {
    /// Calls `show` with each counter that only grows and its path; `ports` are the names of all ports.
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
                ("message_drops_ports", &mut self.message_drops_ports),
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
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Number of measurements.
    pub count: u64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    #[serde(default)]
    pub p999: f64,
    /// Longest time.
    pub max: f64,
}

/// A watched queue.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
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
    /// Action on decisions about this queue: the least of the switch's action, the port's and its own.
    pub action: String,
    /// Name of the policy in the queue's slot.
    pub policy: String,
    /// Policy that answered at the last evaluation: another one when the policy in the slot does not know enough.
    pub policy_now: String,
    /// Reason why another policy than the one in the slot answered; absent when that one did.
    pub policy_why: Option<String>,
    /// The policy's parameters, each with its unit.
    pub parameters: Vec<Setting>,
    /// Counts of this queue.
    #[serde(flatten)]
    pub counts: WatchedCount,
}

counted! { Npcc: NpccCount, NpccQueue: WatchedCount, Host: Counts }

/// A policy's parameter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// Name of the parameter in `set`.
    pub name: String,
    /// Unit of the value: `ns`, `bytes` or `per-mille`.
    pub unit: String,
    /// Current value.
    pub value: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
}

/// Data bytes in watched queues, and the shares of them by whether the sender could be signalled.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// Wire bytes of data in watched queues.
    pub data_bytes: u64,
    /// Share of the data from flows paired well enough to be signalled, in percent.
    pub paired: f64,
    /// Share of the data from flows that are answered, but known by less than the configured evidence, in percent.
    pub unpaired: f64,
    /// Share of the data from flows without an answer seen here yet, in percent: cold, or their answers take another path.
    pub cold: f64,
}

/// One flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Data sender's address.
    pub src: String,
    /// Data receiver's address.
    pub dst: String,
    /// Receiver's QPN, which the data carry.
    pub dest_qp: u32,
    /// Sender's QPN, which a CNP carries; absent while unknown.
    pub sender_qp: Option<u32>,
    /// Evidence by which the sender's QPN is known.
    pub evidence: String,
    /// Egress port.
    pub port: String,
    /// Priority of the egress queue.
    pub priority: u8,
    /// Bytes enqueued.
    pub bytes: u64,
    /// CNPs sent to the flow's sender.
    pub cnps: u64,
    /// Effect of the last CNP: halved, weak, none; absent when not yet known.
    pub response: Option<String>,
    /// CNPs that would have been sent to the flow's sender, where the action sends none.
    #[serde(default)]
    pub would_send: u64,
    /// Reason for no CNP when the flow was last considered; absent when it got one, or would have.
    #[serde(default)]
    pub refused: Option<String>,
    /// True if no answer of the receiver has been seen yet.
    #[serde(default)]
    pub cold: bool,
    /// Round trip from the switch to the sender, as NPCC counts with it, in us.
    #[serde(default)]
    pub near_us: u64,
    /// Round trip from the switch to the receiver, in us; absent while unknown.
    #[serde(default)]
    pub far_us: Option<u64>,
    /// True if the flow is left to ECN because its receiver is near.
    #[serde(default)]
    pub gated: bool,
    /// Time since the flow was first seen, in ms.
    #[serde(default)]
    pub age_ms: u64,
    /// Time since the flow was last seen, in ms.
    #[serde(default)]
    pub idle_ms: u64,
}

/// One host, by address.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// IP address of the host.
    pub address: String,
    /// Counts of the host.
    #[serde(flatten)]
    pub counts: Counts,
    /// Action on decisions to signal the host: `send`, `observe`, `off`, or `deny` where it must not be signalled.
    #[serde(default)]
    pub action: String,
    /// CNPs that the host's live flows would have been sent, where the action sends none.
    #[serde(default)]
    pub would_send: u64,
    /// Live flows that the host sends.
    #[serde(default)]
    pub flows: u64,
    /// Flows of the host whose sending queue pair is known.
    #[serde(default)]
    pub paired: u64,
    /// Flows whose last CNP halved their rate.
    #[serde(default)]
    pub halved: u64,
    /// Flows whose last CNP had a weak effect.
    #[serde(default)]
    pub weak: u64,
    /// Flows whose last CNPs had no effect.
    #[serde(default)]
    pub unresponsive: u64,
    /// Responsiveness of the host to CNPs: `unknown`, `answers` or `unresponsive`.
    #[serde(default)]
    pub responsiveness: String,
    /// Trials that the host passed: its flow slowed down to less than half.
    #[serde(default)]
    pub passed: u64,
    /// Trials that the host failed.
    #[serde(default)]
    pub failed: u64,
    /// Trials without a result, by reason.
    #[serde(default)]
    pub unmeasured: BTreeMap<String, u64>,
}

/// Line of `show log`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Time of the entry, in us of the switch's clock.
    pub time_us: u64,
    /// Time of the entry as wall-clock time, RFC 3339, UTC.
    #[serde(default)]
    pub wall: String,
    /// Kind of the entry: a `decision` about a flow, an `event` of ports and lossless queues, or a `change` by an operator.
    pub kind: String,
    /// Full text of the entry, for people.
    pub text: String,
    /// Egress port of a decision; port of an event, where it concerns one port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Egress queue of a decision; priority of an event, where it concerns one priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Details of the decision, if the entry is one.
    #[serde(flatten)]
    pub decision: Option<LogDecision>,
}

/// A decision about a flow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogDecision {
    /// Data sender's address.
    pub src: String,
    /// Data receiver's address.
    pub dst: String,
    /// Receiver's QPN.
    pub dest_qp: u32,
    /// Sender's QPN; absent while unknown.
    pub sender_qp: Option<u32>,
    /// Evidence by which the sender's QPN is known.
    pub evidence: String,
    /// Outcome of the decision: `sent`, `would-send` or `refused`.
    pub outcome: String,
    /// Reason for the refusal; absent unless refused.
    pub refused: Option<String>,
    /// Reason of the policy to want the sender signalled.
    pub reason: String,
    /// Wire bytes in the queue.
    pub depth: u64,
    /// Zone of the queue.
    pub zone: String,
    /// Trend of the queue.
    pub trend: String,
    /// CNPs of the flow, this one included; would-be ones where the action sends none.
    pub cnps: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Checks that every number of NPCC's report is shown, or is one that may go down.
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
        // Gauges, which go up and down, and distributions of this process.
        let gauges = [
            "/flows",
            "/reaction_us",
            "/reaction_hard_us",
            // Equal to `counts.data_bytes`, which is shown.
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
        // Some counters are shown that JSON holds only in a sum, or not at all.
        assert!(grown > 50 && grown < shown, "{grown} of {shown}");
    }
}
