//! Events of ports, hosts and lossless queues.

use std::fmt;
use std::net::IpAddr;

use npcc_pipeline::units::Mac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text::time;

npcc_pipeline::named! {
    /// Kind of an event.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[schemars(rename = "EventKind")]
    pub enum Kind {
        /// The watchdog found a storm.
        #[default]
        StormBegan = "storm-began",
        /// A storm ended.
        StormEnded = "storm-ended",
        /// The peer pauses for half of the time with frames waiting: short of a storm.
        StormWarning = "storm-warning",
        /// Lossless frames were lost for want of room.
        LosslessLost = "lossless-lost",
        /// A refresh went out after the peer's pause had run out.
        LateRefresh = "late-refresh",
        /// The peer was paused because the worker fell behind the receive ring.
        CpuPause = "cpu-pause",
        /// A turn of a worker's loop was longer than headroom covers.
        SlowTurn = "slow-turn",
        /// A port's link went down, or was taken down.
        LinkDown = "link-down",
        /// A port's link came up, or has another speed.
        LinkUp = "link-up",
        /// A port's device is gone or does not answer.
        DeviceGone = "device-gone",
        /// A port's interface in Linux is gone.
        InterfaceGone = "interface-gone",
        /// A neighbour has another MAC address.
        NeighborMoved = "neighbor-moved",
        /// An IP address has two owners.
        DuplicateAddress = "duplicate-address",
        /// A lossless queue is marked only after its senders are paused, at the speed with which the link came up.
        MarkingLate = "marking-late",
        /// Frames wait, and the device takes none, though its link is up and not paused.
        TxStalled = "tx-stalled",
        /// A host that ignores CNPs was found: it failed its latest trials.
        HostUnresponsive = "host-unresponsive",
        /// Frames of an unresponsive host go into the queue for such hosts.
        HostMoved = "host-moved",
        /// They go into their own again.
        HostMovedBack = "host-moved-back",
        /// A host that was unresponsive passed a trial.
        HostAnswers = "host-answers",
        /// Linux would send a host's packets another way than the switch does.
        RouteDiffers = "route-differs",
        /// A MAC address or an MTU of the switch's interfaces was changed in Linux, and set back.
        LinuxSetBack = "linux-set-back",
    }
}

impl Kind {
    /// Returns true if the event is found as a count that grew.
    #[must_use]
    pub const fn is_count(self) -> bool {
        matches!(
            self,
            Kind::LosslessLost | Kind::LateRefresh | Kind::CpuPause | Kind::TxStalled
        )
    }
}

/// One event of a port or a lossless queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Event {
    /// Time of the event, in us of the switch's clock, as in the CNPs' log.
    pub time_us: u64,
    /// Time at which the event was noted, RFC 3339.
    pub wall: String,
    /// Kind of the event.
    pub kind: Kind,
    /// Port of the event; empty where it concerns no single port.
    pub port: String,
    /// Priority of the event, where it concerns one priority.
    pub priority: Option<u8>,
    /// Address of the host, where it concerns one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    /// Words of Linux, where it is about Linux.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// MAC address of the host before, or of the other owner of its IP address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_before: Option<String>,
    /// MAC address of the host now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Number of occurrences, those of the second before it was noted; length in us of a slow turn; speed in Mb/s of a link that came up; trials that a host failed or passed.
    pub count: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event {
            time_us,
            port,
            count,
            ..
        } = self;
        let priority = self.priority.unwrap_or_default();
        write!(f, "{time_us} us: ")?;
        if !self.wall.is_empty() {
            write!(f, "{} ", self.wall)?;
        }
        match self.kind {
            Kind::StormBegan => write!(
                f,
                "{port}: the peer pauses priority {priority} without end: storm"
            ),
            Kind::StormEnded => write!(f, "{port}: the storm on priority {priority} is over"),
            Kind::StormWarning => write!(
                f,
                "{port}: the peer pauses priority {priority} for half of the time with frames waiting: short of a storm"
            ),
            Kind::LosslessLost => {
                write!(f, "{port}: {count} lossless frames lost for want of room")
            }
            Kind::LateRefresh => write!(
                f,
                "{port}: {count} refreshes later than the peer's pause lasted"
            ),
            Kind::CpuPause => write!(
                f,
                "{port}: peer paused {count} times, the worker fell behind the receive ring"
            ),
            Kind::SlowTurn => write!(
                f,
                "a turn of a worker's loop took {}, more than headroom covers",
                time(count.saturating_mul(1_000))
            ),
            Kind::LinkDown => write!(f, "{port}: link down"),
            Kind::DeviceGone => write!(
                f,
                "{port}: its device is gone, or does not answer: restart the switch once it is back, which opens it again"
            ),
            Kind::InterfaceGone => write!(
                f,
                "{port}: the interface of the port is gone from Linux: restart the switch, which makes it again"
            ),
            Kind::NeighborMoved | Kind::DuplicateAddress => self.fmt_neighbor(f),
            Kind::MarkingLate => write!(
                f,
                "{port}: at this speed senders are paused before they are marked: lower kmax or raise buffer.pool"
            ),
            Kind::LinkUp => write!(f, "{port}: link up, {count} Mb/s"),
            Kind::TxStalled => write!(
                f,
                "{port}: the device took no frame for {} ms, with frames waiting, the link up and not paused: see the kernel's log for the \
                 device, and whether the peer pauses the whole link; restart the switch if it does not send again",
                count.saturating_mul(10)
            ),
            Kind::HostUnresponsive | Kind::HostMoved | Kind::HostMovedBack | Kind::HostAnswers => {
                self.fmt_host(f)
            }
            Kind::LinuxSetBack => write!(
                f,
                "{port}: its {}: the file has MAC addresses and MTUs, change them there",
                self.detail
            ),
            Kind::RouteDiffers => write!(
                f,
                "{}: Linux would send its packets another way than the switch: {}: see `show routes --diff`",
                self.host_text(),
                self.detail
            ),
        }
    }
}

impl Event {
    fn host_text(&self) -> String {
        self.host.map(|host| host.to_string()).unwrap_or_default()
    }

    /// Writes an event of a host that NPCC watches.
    fn fmt_host(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count;
        match self.kind {
            Kind::HostUnresponsive => write!(
                f,
                "{}: ignores CNPs, {count} trials failed: see `show hosts`",
                self.host_text()
            ),
            Kind::HostMoved => write!(
                f,
                "{}: ignores CNPs for ten seconds, {count} trials failed: its frames are in the queue of `npcc.hosts.unresponsive`",
                self.host_text()
            ),
            Kind::HostMovedBack => write!(
                f,
                "{}: its frames are in their own queue again, until it fails trials for ten seconds more",
                self.host_text()
            ),
            Kind::HostAnswers => write!(f, "{}: answers CNPs again", self.host_text()),
            _ => Ok(()),
        }
    }

    /// Writes an event of a neighbour's MAC address.
    fn fmt_neighbor(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, now) = self.macs();
        let what = match self.kind {
            Kind::NeighborMoved => format!("moved from {before} to {now}"),
            _ => format!("has two owners, {before} and {now}"),
        };
        write!(f, "{}: {} {what}", self.port, self.host_text())
    }

    fn macs(&self) -> (&str, &str) {
        let [before, now] = [&self.mac_before, &self.mac];
        (
            before.as_deref().unwrap_or_default(),
            now.as_deref().unwrap_or_default(),
        )
    }

    /// Returns the event of a neighbour of a port: its MAC addresses before and now.
    #[must_use]
    pub fn neighbor(name: &str, kind: Kind, host: IpAddr, macs: [Mac; 2]) -> Event {
        let [before, mac] = macs.map(|mac| Some(mac.to_string()));
        Event {
            kind,
            port: name.to_owned(),
            host: Some(host),
            mac_before: before,
            mac,
            count: 1,
            ..Event::default()
        }
    }

    /// Returns the event of a port whose link changed; `mbps` is its speed.
    #[must_use]
    pub fn link(name: &str, kind: Kind, mbps: u64) -> Event {
        Event {
            kind,
            port: name.to_owned(),
            count: mbps,
            ..Event::default()
        }
    }

    /// Returns true if both events have the same kind, port and priority.
    #[must_use]
    pub fn is_same(&self, other: &Event) -> bool {
        let Event {
            kind,
            port,
            priority,
            host,
            ..
        } = self;
        (kind, port, priority, host) == (&other.kind, &other.port, &other.priority, &other.host)
    }

    /// Adds the count of another such event.
    pub fn count_in(&mut self, other: &Event) {
        self.count = self.count.saturating_add(other.count);
    }
}
