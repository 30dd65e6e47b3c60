//! Why a frame was not forwarded: every reason is declared here, counted per port, and named in every output.

crate::named! {
    /// Why a frame was dropped.
    pub enum DropReason {
        /// Shorter than the headers it announces.
        Runt = "runt",
        /// Longer than the port's MTU allows on arrival.
        Oversize = "oversize",
        /// Unicast to a MAC address that is not the port's.
        NotForUs = "not_for_us",
        /// Broadcast or multicast: this switch routes, and nothing on it listens.
        Multicast = "multicast",
        /// More than one VLAN tag.
        VlanDepth = "vlan_depth",
        /// A VLAN the port does not carry: an id it was not given, or any id in a service tag (IEEE 802.1ad).
        VlanUnknown = "vlan_unknown",
        /// Neither IPv4, IPv6 nor MAC control, and nothing that Linux is given (ARP and LLDP are, where it is integrated).
        NotIp = "not_ip",
        /// IP version or header length is wrong, or the extension chain is too long.
        IpHeader = "ip_header",
        /// The IP length exceeds the frame.
        IpTruncated = "ip_truncated",
        /// The IPv4 header checksum is wrong.
        IpChecksum = "ip_checksum",
        /// Source or destination address that must not be routed: loopback, multicast, link-local, unspecified.
        Martian = "martian",
        /// TTL or hop limit would reach zero.
        TtlExpired = "ttl_expired",
        /// No route and no default route.
        NoRoute = "no_route",
        /// A blackhole route.
        Blackhole = "blackhole",
        /// An unreachable route: its sender is told.
        Unreachable = "unreachable",
        /// A prohibited route: its sender is told.
        Prohibited = "prohibited",
        /// The next hop's MAC address is unknown, with no Linux to ask for it.
        NoNeighbor = "no_neighbor",
        /// The next hop's MAC address is unknown, and Linux is asked for it.
        Unresolved = "unresolved",
        /// Addressed to this switch, with no Linux to punt to.
        LocalUnserved = "local_unserved",
        /// Addressed to this switch with a source route or a routing header: Linux would forward it.
        SourceRoute = "source_route",
        /// BFD for Linux, past its rate or its queue.
        PuntBfd = "punt_bfd",
        /// BGP, OSPF or another routing protocol for Linux, past its rate or its queue.
        PuntRouting = "punt_routing",
        /// LLDP for Linux, past its rate or its queue.
        PuntLldp = "punt_lldp",
        /// ARP or neighbour discovery for Linux, past its rate or its queue.
        PuntArpNd = "punt_arp_nd",
        /// Other frames for Linux, past their rate or their queue.
        PuntToUs = "punt_to_us",
        /// Larger than the MTU of the port it would leave by. Nothing is fragmented, with DF or without.
        MtuExceeded = "mtu_exceeded",
        /// The buffer had no room for a VLAN tag.
        NoHeadroom = "no_headroom",
        /// The shared buffer pool is full, in bytes or in buffers.
        BufferFull = "buffer_full",
        /// A lossless group has used up its headroom: its sender did not pause in time.
        HeadroomFull = "headroom_full",
        /// The watchdog found the peer's pause without end; frames of that priority are dropped meanwhile.
        PfcStorm = "pfc_storm",
        /// The link of the port it would leave by is down, or was taken down by the operator.
        LinkDown = "link_down",
        /// A lossy queue, or a group that is not lossless, is past its share of the pool.
        QueueFull = "queue_full",
        /// Early drop of a lossy Not-ECT frame.
        Wred = "wred",
        /// The crossing ring to another worker is full (lossy traffic only).
        XringFull = "xring_full",
        /// Still queued when the switch stopped.
        Shutdown = "shutdown",
    }
}

/// Number of reasons.
pub const REASONS: usize = DropReason::COUNT;

impl DropReason {
    /// What no neighbour in order sends: damaged, forged, or meant for a port that is set up otherwise. Worth a look at its bytes.
    #[must_use]
    pub const fn is_odd(self) -> bool {
        matches!(
            self,
            DropReason::Runt
                | DropReason::Oversize
                | DropReason::VlanDepth
                | DropReason::VlanUnknown
                | DropReason::IpHeader
                | DropReason::IpTruncated
                | DropReason::IpChecksum
                | DropReason::Martian
                | DropReason::SourceRoute
        )
    }

    /// Lost for want of room: what must never happen to a lossless frame.
    #[must_use]
    pub const fn is_congestion(self) -> bool {
        matches!(
            self,
            DropReason::BufferFull
                | DropReason::HeadroomFull
                | DropReason::QueueFull
                | DropReason::XringFull
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_follow_the_list_and_names_are_unique() {
        let mut names: Vec<_> = DropReason::ALL.iter().map(|reason| reason.name()).collect();
        for (index, reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REASONS);
    }
}
