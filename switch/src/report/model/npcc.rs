//! What the snapshot and `show flows`, `show hosts` and `show log` say of NPCC.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// NPCC.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Npcc {
    /// Detailed samples taken in by the control core.
    pub samples: u64,
    /// Samples the ring had no room for.
    pub sample_drops: u64,
    /// Flows known.
    pub flows: u64,
    /// Bytes of flows that nobody could tell yet: no packet came back.
    pub cold_bytes: u64,
    /// Flows by the evidence for their sender QPN.
    pub paired: BTreeMap<String, u64>,
    /// What becomes of decisions on the whole switch: `send`, `observe` or `off`.
    #[serde(default)]
    pub action: String,
    /// CNPs handed to a port.
    pub cnps_sent: u64,
    /// CNPs that would have been, where nothing is sent.
    #[serde(default)]
    pub would_send: u64,
    /// CNPs not sent, by reason.
    pub cnps_suppressed: BTreeMap<String, u64>,
    /// From the enqueue that crosses `shallow` to the CNP handed to the device (the filter's ticks included), in us.
    pub reaction_us: Percentiles,
    /// From the enqueue that crosses `hard`, where no filter applies, to the CNP handed to the device, in us.
    pub reaction_hard_us: Percentiles,
    /// Turns of the detector.
    pub ticks: u64,
    /// Ticks that came late by more than half a tick.
    pub ticks_late: u64,
    /// Ticks that came early because a queue had just risen to `hard`.
    #[serde(default)]
    pub ticks_early: u64,
    /// Times at which a tick had no time left for a queue that was due, which came first in the next.
    #[serde(default)]
    pub queues_deferred: u64,
    /// Flows whose bytes were read from a worker.
    #[serde(default)]
    pub flows_read: u64,
    /// Flows weighed as contributors of a decision.
    #[serde(default)]
    pub flows_weighed: u64,
    /// Flows that began to send again after a pause, as a worker said.
    #[serde(default)]
    pub flows_woken: u64,
    /// Flows of which a worker said so too long ago: they are found by the slow round of readings.
    #[serde(default)]
    pub wakes_lost: u64,
    /// Watched queues.
    pub queues: Vec<NpccQueue>,
    /// The connection manager's messages.
    #[serde(default)]
    pub cm: Cm,
    /// What the flow caches saw beside data.
    #[serde(default)]
    pub seen: Seen,
    /// How much of the traffic NPCC can do something about.
    #[serde(default)]
    pub health: Health,
    /// CNPs of receivers that passed through.
    #[serde(default)]
    pub cnps_passed: u64,
    /// Of CNPs that passed, those with a wrong ICRC or without BECN: nothing was learned from them.
    #[serde(default)]
    pub cnps_damaged: u64,
    /// New flows refused: their source had too many, or the table was full of live ones.
    #[serde(default)]
    pub flows_refused: u64,
    /// Packets shown by ports that are not trusted: nothing was learned from them.
    #[serde(default)]
    pub untrusted: u64,
    /// Packets shown whose source does not lie behind the port they came by: nothing was learned from them.
    #[serde(default)]
    pub wrong_port: u64,
    /// Contributors without an entry in the flow table, by reason.
    #[serde(default)]
    pub uncounted: BTreeMap<String, Uncounted>,
    /// Their wire bytes, by the port they came by.
    #[serde(default)]
    pub uncounted_ports: BTreeMap<String, u64>,
}

/// Contributors without an entry in the flow table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Uncounted {
    /// Packets of theirs that were shown: of each its first, and one now and then.
    pub records: u64,
    /// Wire bytes, at least.
    pub bytes: u64,
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
pub struct NpccQueue {
    /// Port name.
    pub port: String,
    /// Priority.
    pub priority: u8,
    /// Depth the detector saw last, wire bytes.
    pub depth: u64,
    /// Highest depth the detector saw.
    pub peak: u64,
    /// Zone: idle, shallow, deep, hard.
    pub zone: String,
    /// Trend: rising, falling.
    pub trend: String,
    /// Wire bytes from which it is shallow.
    #[serde(default)]
    pub shallow: u64,
    /// Wire bytes from which it is deep.
    #[serde(default)]
    pub deep: u64,
    /// Wire bytes from which no filter applies.
    #[serde(default)]
    pub hard: u64,
    /// Ticks with each decision.
    pub decisions: BTreeMap<String, u64>,
    /// What becomes of decisions about it: the least of the switch's action, the port's and its own.
    #[serde(default)]
    pub action: String,
    /// CNPs for flows of this queue.
    pub cnps: u64,
    /// CNPs that would have been sent for them, where nothing is.
    #[serde(default)]
    pub would_send: u64,
    /// The policy in its slot.
    #[serde(default)]
    pub policy: String,
    /// The policy that answered at the last look: another one when the first does not know enough.
    #[serde(default)]
    pub policy_now: String,
    /// Why it is another one.
    #[serde(default)]
    pub policy_why: Option<String>,
    /// Looks at which another one answered.
    #[serde(default)]
    pub policy_fallbacks: u64,
    /// The policy's parameters, each with its unit.
    #[serde(default)]
    pub parameters: Vec<Setting>,
    /// Flows that put bytes in over the window, at the last decision.
    #[serde(default)]
    pub contributors: u64,
    /// Looks by the reason the policy gave.
    #[serde(default)]
    pub reasons: BTreeMap<String, u64>,
    /// CNPs not sent for flows of this queue, by reason.
    #[serde(default)]
    pub suppressed: BTreeMap<String, u64>,
}

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

/// What the connection manager's messages came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cm {
    /// QP1 packets seen.
    pub heard: u64,
    /// Of these, with a wrong ICRC: nothing was learned from them.
    pub damaged: u64,
    /// Of these, of another class than connection management.
    pub foreign: u64,
    /// Pairs taken back because something spoke against them.
    pub contradicted: u64,
}

/// What the workers' flow caches saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// QP1 packets given to the control core.
    pub messages: u64,
    /// QP1 packets its ring had no room for.
    pub message_drops: u64,
    /// Packets of XRC, RD and vendors' own transports: forwarded, never told.
    pub unsupported: u64,
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
    /// CNPs this switch sent it.
    pub cnps_sent: u64,
    /// CNPs of receivers to it that passed.
    pub cnps_passed: u64,
    /// NAKs it was sent.
    pub naks: u64,
    /// Receiver-not-ready NAKs it was sent.
    pub rnr_naks: u64,
    /// Sampled packets to it that came marked CE.
    pub ce: u64,
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
    /// What is believed of its network card: `unknown`, `answers`, `doubted` or `fallen-back`.
    #[serde(default)]
    pub standing: String,
    /// Measurements in which a flow of it slowed down when told and stayed slow.
    #[serde(default)]
    pub worked: u64,
    /// Measurements in which none did, or not for long.
    #[serde(default)]
    pub vain: u64,
    /// Thousandths of its rate that a CNP costs a flow of it, by the time since the CNP before, where that was learned.
    #[serde(default)]
    pub cuts: BTreeMap<String, u64>,
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
    /// Egress port.
    pub port: String,
    /// Egress queue.
    pub priority: u8,
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
