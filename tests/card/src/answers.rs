//! Kinds of answers in the table of profiles.

use serde::Deserialize;

/// Declares enumerations of the table, whose names there are in `snake_case`.
macro_rules! choices {
    ($($(#[$doc:meta])+ $name:ident { $($(#[$variant:meta])+ $choice:ident $(($of:ty))?,)+ })+) => {
        $(
            $(#[$doc])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
            #[serde(rename_all = "snake_case")]
            pub enum $name { $($(#[$variant])+ $choice $(($of))?,)+ }
        )+
    };
}

choices! {
    /// Offloads at receive that the product knows of.
    RxOffload {
        /// `RTE_ETH_RX_OFFLOAD_SCATTER`.
        Scatter,
    }
    /// Offloads at transmit that the product knows of.
    TxOffload {
        /// `RTE_ETH_TX_OFFLOAD_MULTI_SEGS`.
        MultiSegs,
        /// `RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE`.
        MbufFastFree,
    }
    /// Buffers that a burst frees.
    Frees {
        /// All that the card has reported.
        Reported,
        /// All that the card has reported, or, while enough descriptors are free at first, as many as the burst needs.
        Needed,
        /// So many of the driver's batches.
        Batches(u16),
        /// Those of the descriptors that it fills again, each as soon as the card has reported its frame.
        Refilled,
    }
    /// Multiple to which the card's receive buffers are cut.
    Floor {
        /// Buffers have the length of the mbuf's data room.
        Whole,
        /// Multiple, in bytes.
        Multiple(u16),
        /// Power of two, at most this.
        PowerOfTwo(u16),
    }
    /// Comparison by which scattered receive is chosen although nobody requested it.
    Scatter {
        /// None: it must be requested.
        Requested,
        /// MTU and this many bytes exceed the mbuf's data room.
        AboveRoom(u16),
        /// MTU and this many bytes exceed the card's buffer, as it was cut.
        AboveBuffer(u16),
        /// The MTU exceeds this one.
        AboveMtu(u16),
        /// It is always on.
        Always,
    }
    /// Frames that are longer than a buffer while scattered receive is not chosen.
    Oversize {
        /// There is none: the comparison takes no such MTU.
        Never,
        /// Each comes as two frames, both bogus.
        Split,
        /// The card drops it.
        Dropped,
        /// Setup of the queue fails with this error.
        Refused(Outcome),
    }
    /// Moment at which the card takes over an MTU.
    Mtu {
        /// `rte_eth_dev_configure`.
        Configure,
        /// `rte_eth_dev_start`.
        Start,
        /// `rte_eth_dev_set_mtu`, and no other call.
        Set,
    }
    /// Received frame with Ethertype 0x8808.
    Received {
        /// Software gets it.
        Passed,
        /// Software gets it once `flow_ctrl_set` has set `mac_ctrl_frame_fwd` and the MAC does not honor pauses itself.
        PassedIfSet,
        /// Software never gets it.
        Consumed,
    }
    /// Frame with Ethertype 0x8808 that software sends.
    Sent {
        /// It leaves the card.
        Passed,
        /// A filter drops it.
        Filtered,
    }
    /// Peer's pauses and the MAC.
    Honors {
        /// The MAC sends on.
        Never,
        /// The MAC stops, and no call changes it.
        Always,
        /// The MAC stops until `flow_ctrl_set` says otherwise.
        UntilCleared,
        /// The MAC stops once a call has set it.
        IfSet,
    }
    /// Calls during which the link may go down.
    Moment {
        /// `rte_eth_dev_configure`.
        Configure,
        /// `rte_eth_dev_start`.
        Start,
        /// `rte_eth_dev_stop`.
        Stop,
        /// `rte_eth_dev_set_mtu`.
        MtuSet,
        /// `rte_eth_dev_flow_ctrl_set`.
        FlowCtrlSet,
        /// `rte_eth_dev_priority_flow_ctrl_set`.
        PriorityFlowCtrlSet,
    }
    /// Effect of `rte_eth_dev_set_link_down`.
    LinkDown {
        /// The peer sees its link go down.
        PeerSees,
        /// The call succeeds, and the peer's link stays up.
        PeerUnaware,
        /// The call fails with this error.
        Refused(Outcome),
    }
    /// Things without which a probe fails.
    Prerequisite {
        /// Dynamic device personalization file of the E810.
        Ddp,
        /// Verbs device of the kernel.
        Verbs,
    }
    /// Condition that a call about pauses refuses.
    Field {
        /// `mac_ctrl_frame_fwd` is not 0.
        MacCtrlFrameFwd,
        /// `autoneg` is not 0.
        Autoneg,
        /// `autoneg` is not what the card has.
        AutonegDiffers,
        /// `pause_time` is 0.
        PauseTimeZero,
        /// `high_water` is not 0.
        HighWater,
        /// `low_water` is not 0.
        LowWater,
        /// `send_xon` is not 0.
        SendXon,
        /// `high_water` is above the card's limit, or below `low_water`.
        WaterOrder,
        /// `high_water` is above the card's limit, or not above `low_water`.
        WaterNotAbove,
        /// PFC is on.
        PfcOn,
        /// 802.3x is on.
        LinkPauseOn,
    }
}

/// Result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Outcome {
    /// 0.
    #[serde(rename = "ok")]
    Done,
    /// Operation not permitted.
    #[serde(rename = "EPERM")]
    Perm,
    /// No such file or directory.
    #[serde(rename = "ENOENT")]
    NoEntry,
    /// Input or output error.
    #[serde(rename = "EIO")]
    Io,
    /// Device or resource busy.
    #[serde(rename = "EBUSY")]
    Busy,
    /// No such device.
    #[serde(rename = "ENODEV")]
    NoDevice,
    /// Invalid argument.
    #[serde(rename = "EINVAL")]
    Invalid,
    /// No space left.
    #[serde(rename = "ENOSPC")]
    NoSpace,
    /// Function not implemented.
    #[serde(rename = "ENOSYS")]
    NoCall,
    /// Operation not supported.
    #[serde(rename = "ENOTSUP")]
    Unsupported,
}

impl Outcome {
    /// Value that the call returns: 0, or the negative error number of Linux.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Outcome::Done => 0,
            Outcome::Perm => -1,
            Outcome::NoEntry => -2,
            Outcome::Io => -5,
            Outcome::Busy => -16,
            Outcome::NoDevice => -19,
            Outcome::Invalid => -22,
            Outcome::NoSpace => -28,
            Outcome::NoCall => -38,
            Outcome::Unsupported => -95,
        }
    }
}

/// Thing without which the probe fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// The thing.
    pub needs: Prerequisite,
    /// Error of the probe without it.
    pub error: Outcome,
}

/// Call with a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Call.
    pub call: Moment,
    /// Condition.
    pub field: Field,
    /// Error.
    pub error: Outcome,
}

/// Limits of the descriptors of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Smallest number.
    pub min: u16,
    /// Largest number.
    pub max: u16,
    /// Number of which the ring is a multiple.
    pub align: u16,
}

/// `rte_eth_dev_portconf`; 0 where the driver says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortDefaults {
    /// `ring_size`, in descriptors.
    pub ring: u16,
    /// `burst_size`, in frames.
    pub burst: u16,
}

/// Contents of `struct rte_eth_fc_conf`, in the driver's own units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseSettings {
    /// `autoneg`.
    pub autoneg: bool,
    /// `pause_time`.
    pub pause_time: u16,
    /// `high_water`.
    pub high_water: u32,
    /// `low_water`.
    pub low_water: u32,
    /// `send_xon`.
    pub send_xon: bool,
}

/// Contents of `rte_eth_dev_get_dcb_info`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dcb {
    /// Number of traffic classes; 0 where the call fails.
    pub classes: u8,
    /// Class of each priority.
    pub priorities: Vec<u8>,
    /// First transmit queue of each class.
    pub tx_queues: Vec<u16>,
}

/// Kind of frame that RSS hashes, as a bit of `flow_type_rss_offloads`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rss {
    /// `RTE_ETH_RSS_IPV4`.
    Ipv4,
    /// `RTE_ETH_RSS_FRAG_IPV4`.
    FragIpv4,
    /// `RTE_ETH_RSS_NONFRAG_IPV4_UDP`.
    NonfragIpv4Udp,
    /// `RTE_ETH_RSS_NONFRAG_IPV4_OTHER`.
    NonfragIpv4Other,
    /// `RTE_ETH_RSS_IPV6`.
    Ipv6,
    /// `RTE_ETH_RSS_FRAG_IPV6`.
    FragIpv6,
    /// `RTE_ETH_RSS_NONFRAG_IPV6_UDP`.
    NonfragIpv6Udp,
    /// `RTE_ETH_RSS_NONFRAG_IPV6_OTHER`.
    NonfragIpv6Other,
    /// `RTE_ETH_RSS_IPV6_EX`.
    Ipv6Ex,
    /// `RTE_ETH_RSS_IPV6_UDP_EX`.
    Ipv6UdpEx,
}

impl Rss {
    /// Bit of DPDK.
    #[must_use]
    pub fn bit(self) -> u64 {
        1 << match self {
            Rss::Ipv4 => 2,
            Rss::FragIpv4 => 3,
            Rss::NonfragIpv4Udp => 5,
            Rss::NonfragIpv4Other => 7,
            Rss::Ipv6 => 8,
            Rss::FragIpv6 => 9,
            Rss::NonfragIpv6Udp => 11,
            Rss::NonfragIpv6Other => 13,
            Rss::Ipv6Ex => 15,
            Rss::Ipv6UdpEx => 17,
        }
    }
}
