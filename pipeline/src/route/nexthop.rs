//! Adjacency that a route leads to, and its packed form that readers see.

use super::prefix::Family;
use crate::units::{Mac, PortId};

/// Value of [`Adjacency::vlan`] for untagged frames.
pub const UNTAGGED: u16 = 0;

crate::named! {
    /// Treatment of a frame that takes this path.
    pub enum Kind {
        /// No route for the destination.
        NoRoute = "none",
        /// Frame is sent to `dst` out of `port`.
        Forward = "forward",
        /// Destination on a connected subnet, but the neighbour's MAC address is unknown.
        Unresolved = "unresolved",
        /// Destination is an address of the switch itself.
        Local = "local",
        /// Dropped by configuration.
        Blackhole = "blackhole",
        /// Dropped, with an ICMP error "host unreachable" to the sender.
        Unreachable = "unreachable",
        /// Dropped, with an ICMP error "administratively prohibited" to the sender.
        Prohibited = "prohibited",
    }
}

/// A path: egress port and layer 2 header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adjacency {
    /// Treatment of a frame.
    pub kind: Kind,
    /// Egress port (of `Forward`, `Unresolved`, `Local`).
    pub port: PortId,
    /// VLAN id of the frame as sent; [`UNTAGGED`] for none.
    pub vlan: u16,
    /// MAC address of the next hop.
    pub dst: Mac,
    /// MAC address of the egress port.
    pub src: Mac,
    /// Largest IP packet in bytes that the route allows, where that is less than the port's MTU; 0 where it allows any.
    pub mtu: u16,
}

impl Adjacency {
    /// Returns a path that does not forward.
    #[must_use]
    pub const fn unusable(kind: Kind) -> Adjacency {
        Adjacency {
            kind,
            port: PortId(0),
            vlan: UNTAGGED,
            dst: Mac([0; 6]),
            src: Mac([0; 6]),
            mtu: 0,
        }
    }

    /// Returns the packed form that the workers read, which has no MTU: that is beside it ([`super::hops::NextHops`]).
    #[must_use]
    pub const fn packed(self) -> Path {
        let [a, b, c, d, e, f] = self.dst.0;
        let [g, h, i, j, k, l] = self.src.0;
        let [vlan_low, vlan_high] = self.vlan.to_le_bytes();
        Path {
            head: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            rest: u64::from_le_bytes([
                i,
                j,
                k,
                l,
                vlan_low,
                vlan_high,
                self.port.0,
                self.kind as u8,
            ]),
        }
    }
}

/// An adjacency in two words: first the addresses in the order in which a frame begins, then the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    head: u64,
    rest: u64,
}

impl Path {
    /// Path of "no route".
    pub const NONE: Path = Adjacency::unusable(Kind::NoRoute).packed();

    /// Returns the path of the two words.
    #[inline]
    pub(super) const fn of_words([head, rest]: [u64; 2]) -> Path {
        Path { head, rest }
    }

    /// Returns the two words.
    pub(super) const fn words(self) -> [u64; 2] {
        [self.head, self.rest]
    }

    /// Returns the treatment of a frame.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self.rest >> 56 {
            1 => Kind::Forward,
            2 => Kind::Unresolved,
            3 => Kind::Local,
            4 => Kind::Blackhole,
            5 => Kind::Unreachable,
            6 => Kind::Prohibited,
            _ => Kind::NoRoute,
        }
    }

    /// Returns true if frames are forwarded.
    #[inline]
    #[must_use]
    pub const fn forwards(self) -> bool {
        self.rest >> 56 == Kind::Forward as u64
    }

    /// Returns the egress port.
    #[inline]
    #[must_use]
    pub const fn port(self) -> PortId {
        let [.., port, _] = self.rest.to_le_bytes();
        PortId(port)
    }

    /// Returns the VLAN id of the frame as sent; [`UNTAGGED`] for none.
    #[inline]
    #[must_use]
    pub const fn vlan(self) -> u16 {
        let [_, _, _, _, low, high, ..] = self.rest.to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// Returns true if it leads to a neighbour behind one of these ports, one bit each.
    #[inline]
    #[must_use]
    pub const fn is_behind(self, ports: u32) -> bool {
        let neighbor = matches!(self.kind(), Kind::Forward | Kind::Unresolved);
        neighbor && ports.unbounded_shr(self.port().0 as u32) & 1 == 1
    }

    /// Returns destination and source MAC address in the order in which a frame begins: the first eight octets, and the other
    /// four.
    #[inline]
    #[must_use]
    pub const fn addresses(self) -> ([u8; 8], [u8; 4]) {
        let [i, j, k, l, ..] = self.rest.to_le_bytes();
        (self.head.to_le_bytes(), [i, j, k, l])
    }

    /// Returns the path field by field.
    #[must_use]
    pub const fn unpacked(self) -> Adjacency {
        let ([a, b, c, d, e, f, g, h], [i, j, k, l]) = self.addresses();
        Adjacency {
            kind: self.kind(),
            port: self.port(),
            vlan: self.vlan(),
            dst: Mac([a, b, c, d, e, f]),
            src: Mac([g, h, i, j, k, l]),
            mtu: 0,
        }
    }
}

/// Index of an adjacency. 0 is "no route".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AdjacencyId(pub u16);

/// Index of a next-hop group. 0 is the IPv4 default route's, 1 the IPv6 one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NextHopGroupId(pub u16);

/// Returns the default route's group: its image value is 0 in both families.
#[must_use]
pub const fn default_group(family: Family) -> NextHopGroupId {
    match family {
        Family::V4 => NextHopGroupId(0),
        Family::V6 => NextHopGroupId(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adjacency_survives_its_two_words() {
        let adjacency = Adjacency {
            kind: Kind::Forward,
            port: PortId(31),
            vlan: 4094,
            dst: Mac([0xfe, 1, 2, 3, 4, 0xff]),
            src: Mac([2, 0, 0, 0, 0, 9]),
            mtu: 0,
        };
        assert_eq!(adjacency.packed().unpacked(), adjacency);
    }

    #[test]
    fn a_path_that_leads_to_no_neighbour_is_behind_no_port() {
        let behind = |kind| Adjacency::unusable(kind).packed().is_behind(1);
        assert!(behind(Kind::Forward) && behind(Kind::Unresolved));
        assert!(!behind(Kind::Blackhole) && !behind(Kind::Local) && !behind(Kind::NoRoute));
    }
}
