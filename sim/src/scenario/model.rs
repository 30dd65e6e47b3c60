//! The parts of a scenario: hosts, links, traffic, failures, thresholds.

use npcc_config::units::{BitRate, Bytes, Length, Nanos, Percent, Threshold};
use serde::Deserialize;

use crate::host::params::Sender;

/// Hosts of one kind.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostGroup {
    /// Name, for flows.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Which switch they hang on.
    pub switch: String,
    /// Their link's rate.
    #[serde(default = "hundred_gig")]
    pub rate: BitRate,
    /// Their link's length.
    #[serde(default = "twenty_metres")]
    pub cable: Length,
    /// What their cards do, where it is not the sender set of the run: a fleet of several kinds.
    pub sender: Option<Sender>,
    /// Shortest time between two CNPs of these hosts, as receivers, for one flow, where it is not the run's.
    pub cnp_interval: Option<Nanos>,
}

/// A link between two switches, both ways.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name.
    pub name: String,
    /// One end; the queue that is watched under this link's name is here.
    pub from: String,
    /// The other.
    pub to: String,
    /// Rate.
    #[serde(default = "hundred_gig")]
    pub rate: BitRate,
    /// Length; light takes 5 ns a metre.
    pub length: Length,
    /// Only used while every link without this flag is down.
    #[serde(default)]
    pub backup: bool,
}

/// RDMA operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// The sender writes.
    #[default]
    Write,
    /// The receiver reads.
    Read,
}

/// Flows between two host groups: host i of one to host i of the other, the smaller group over and over.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// Name in reports. Default: `from-to`.
    pub name: Option<String>,
    /// Who sends data.
    pub from: String,
    /// Who receives it.
    pub to: String,
    /// Connections between each two hosts.
    #[serde(default = "one_qp")]
    pub qps: u32,
    /// Operation.
    #[serde(default)]
    pub verb: Verb,
    /// Bytes of one message.
    #[serde(default = "one_mb")]
    pub message: Bytes,
    /// Sends so many bytes at a time; without end when absent.
    pub burst: Option<Bytes>,
    /// Time from the start of a burst to that of the next.
    pub every: Option<Nanos>,
    /// First packet.
    #[serde(default)]
    pub start: Nanos,
    /// Start times of the connections are spread evenly over this time.
    #[serde(default)]
    pub spread: Nanos,
    /// No new data from here on.
    pub stop: Option<Nanos>,
}

/// A link goes down, and perhaps up again.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Which.
    pub link: String,
    /// When.
    pub at: Nanos,
    /// When routes take the other path.
    #[serde(default)]
    pub rerouted_after: Nanos,
}

/// Depths, as sizes or times of the drain rate; defaults as the switch's.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// Marking begins.
    pub kmin: Threshold,
    /// Marking is certain.
    pub kmax: Threshold,
    /// Probability just below `kmax`.
    pub pmax: Percent,
    /// NPCC zones.
    pub shallow: Threshold,
    /// See [`npcc_cnp::detector`].
    pub deep: Threshold,
    /// See [`npcc_cnp::detector`].
    pub hard: Threshold,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            kmin: Threshold::from_micros(60),
            kmax: Threshold::from_micros(480),
            pmax: Percent::new(10).unwrap_or(Percent::FULL),
            shallow: Threshold::from_micros(30),
            deep: Threshold::from_micros(120),
            hard: Threshold::from_micros(240),
        }
    }
}

const fn one_qp() -> u32 {
    1
}

const fn hundred_gig() -> BitRate {
    BitRate(100_000_000_000)
}

const fn twenty_metres() -> Length {
    Length::from_metres(20)
}

const fn one_mb() -> Bytes {
    Bytes(1_000_000)
}
