//! `linux:` Linux as the control plane.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Ranged};

/// Linux as the control plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Linux {
    /// A TAP a port and VLAN: Linux answers ARP, ND and ICMP, and its routes and neighbours are ours.
    pub integrate: bool,
    /// Network namespace of the TAPs: a name, or `none` for the one the switch was started in.
    pub netns: String,
    /// What the kernel may hold of news for us before it drops some; 64KiB to 1GiB.
    pub receive_buffer: Bytes,
    /// What Linux is given, and at which rates.
    pub punt: Punt,
}

impl Default for Linux {
    fn default() -> Self {
        Self {
            integrate: false,
            netns: "npcc".to_owned(),
            receive_buffer: Bytes(16 << 20),
            punt: Punt::default(),
        }
    }
}

impl Linux {
    /// The namespace the TAPs are put in; `None` for the one the switch was started in.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        (self.netns != "none").then_some(self.netns.as_str())
    }
}

/// Frames a second.
pub type FrameRate = Ranged<1, 1_000_000>;

/// What Linux is given of each class, and what is made in its stead, in frames a second of each worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Punt {
    /// BFD (UDP 3784, 3785 and 4784 to us).
    pub bfd: FrameRate,
    /// BGP to us, OSPF and other routing protocols.
    pub routing: FrameRate,
    /// LLDP.
    pub lldp: FrameRate,
    /// ARP and neighbour discovery.
    pub arp_nd: FrameRate,
    /// All else to one of our addresses, or to a group of the link.
    pub to_us: FrameRate,
    /// Questions for the MAC address of a next hop.
    pub unresolved: FrameRate,
    /// ICMP errors this switch makes itself: time exceeded, unreachable, too big.
    pub icmp_errors: FrameRate,
}

impl Default for Punt {
    fn default() -> Self {
        Self {
            bfd: Ranged::fixed(20_000),
            routing: Ranged::fixed(20_000),
            lldp: Ranged::fixed(500),
            arp_nd: Ranged::fixed(5_000),
            to_us: Ranged::fixed(5_000),
            unresolved: Ranged::fixed(1_000),
            icmp_errors: Ranged::fixed(1_000),
        }
    }
}
