//! Parts of a scenario: hosts, links, traffic, failures, thresholds.

use npcc_config::model::{Ecn, Npcc};
use npcc_config::units::{BitRate, Bytes, Length, Nanos, Percent, Threshold};
use npcc_pipeline::units::Priority;
use serde::Deserialize;

use super::Window;
use crate::host::params::Sender;

/// A group of identical hosts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostGroup {
    /// Name that flows refer to.
    pub name: String,
    /// Number of hosts.
    pub count: u32,
    /// Switch they attach to.
    pub switch: String,
    /// Rate of their links.
    #[serde(default = "hundred_gig")]
    pub rate: BitRate,
    /// Length of their links.
    #[serde(default = "twenty_metres")]
    pub cable: Length,
    /// Sender model of their cards, where it is not that of the run: a fleet of several kinds.
    pub sender: Option<Sender>,
    /// Minimum time between two CNPs of these hosts, as receivers, for one flow, where it is not the run's.
    pub cnp_interval: Option<Nanos>,
}

/// A bidirectional link between two switches.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Name of the link.
    pub name: String,
    /// Switch at one end; the queue that is watched under this link's name is here.
    pub from: String,
    /// Switch at the other end.
    pub to: String,
    /// Rate of the link.
    #[serde(default = "hundred_gig")]
    pub rate: BitRate,
    /// Length of the link; light takes 5 ns per metre.
    pub length: Length,
    /// True for a backup, which is used only while every link without this flag is down.
    #[serde(default)]
    pub backup: bool,
}

/// RDMA operation of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// RDMA WRITE by the sender.
    #[default]
    Write,
    /// RDMA READ by the receiver.
    Read,
}

/// Flows between two host groups: host i of one to host i of the other, cycling through the smaller group.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowGroup {
    /// Name in reports. Default: `from-to`.
    pub name: Option<String>,
    /// Host group that sends data.
    pub from: String,
    /// Host group that receives data.
    pub to: String,
    /// Number of connections between each pair of hosts.
    #[serde(default = "one_qp")]
    pub qps: u32,
    /// RDMA operation of the flows.
    #[serde(default)]
    pub verb: Verb,
    /// Bytes of one message.
    #[serde(default = "one_mb")]
    pub message: Bytes,
    /// Limit on the bytes sent and not acknowledged (WRITE), where it is not the run's.
    pub window: Option<Window>,
    /// Priority of the data: 3 (DSCP 26) or 4 (DSCP 34); acknowledgements and CNPs have priority 6.
    #[serde(default = "three")]
    pub priority: u8,
    /// False if the data is sent as Not-ECT.
    #[serde(default = "yes")]
    pub ect: bool,
    /// Bytes sent at a time; endless when absent.
    pub burst: Option<Bytes>,
    /// Time from the start of a burst to that of the next.
    pub every: Option<Nanos>,
    /// Time of the first packet.
    #[serde(default)]
    pub start: Nanos,
    /// Time over which the start times of the connections are evenly spread.
    #[serde(default)]
    pub spread: Nanos,
    /// Time after which no new data is offered.
    pub stop: Option<Nanos>,
}

impl FlowGroup {
    /// Returns the priority of the data.
    #[must_use]
    pub const fn priority(&self) -> Priority {
        Priority::new(self.priority)
    }
}

/// A link failure: the link goes down.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Name of the link.
    pub link: String,
    /// Time of the failure.
    pub at: Nanos,
    /// Delay from the failure until routes take the other path.
    #[serde(default)]
    pub rerouted_after: Nanos,
}

/// Queue depth thresholds, as sizes or as time at the drain rate; defaults are the switch's.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thresholds {
    /// Depth at which marking begins.
    pub kmin: Threshold,
    /// Depth from which marking is certain.
    pub kmax: Threshold,
    /// Marking probability just below `kmax`.
    pub pmax: Percent,
    /// Depth at which NPCC's shallow zone begins; see [`npcc_cnp::detector`].
    pub shallow: Threshold,
    /// Depth at which NPCC's deep zone begins; see [`npcc_cnp::detector`].
    pub deep: Threshold,
    /// Depth at which NPCC's hard zone begins; see [`npcc_cnp::detector`].
    pub hard: Threshold,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        let Ecn { kmin, kmax, pmax } = Ecn::default();
        let Npcc { shallow, deep, .. } = Npcc::default();
        Thresholds {
            kmin,
            kmax,
            pmax,
            shallow,
            deep,
            hard: deep.doubled(),
        }
    }
}

pub(super) const fn three() -> u8 {
    3
}

const fn yes() -> bool {
    true
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
