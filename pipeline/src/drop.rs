//! Drop reasons: each is declared here, counted per port, and named in every output.

/// Class of a drop reason: what it implies about the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropClass {
    /// No properly working neighbour sends such a frame: it is damaged, forged, or meant for a port that is set up otherwise.
    /// Its bytes are worth a look.
    Malformed,
    /// No room was left, which must never happen to a lossless frame.
    Congestion,
    /// Any other reason.
    Other,
}

/// Declares the drop reasons, each with its class.
macro_rules! reasons {
    ({ $($before:tt)* } { $($after:tt)* } $($(#[$doc:meta])+ $Punt:ident = $key:ident, drop $Reason:ident, queue $size:literal KiB, rate $rate:literal;)+) => {
        reasons! {
            $($before)*
            $(#[doc = concat!("For Linux, past the rate or the queue of its class, `", stringify!($key), "`.")]
            Other $Reason = concat!("punt_", stringify!($key)),)+
            $($after)*
        }
    };
    ($($(#[$doc:meta])* $Class:ident $Reason:ident = $name:expr,)+) => {
        crate::named! {
            /// Reason for which a frame was dropped.
            pub enum DropReason {
                $($(#[$doc])* $Reason = $name,)+
            }
        }

        impl DropReason {
            /// Returns the class of the reason.
            #[must_use]
            pub const fn class(self) -> DropClass {
                match self { $(DropReason::$Reason => DropClass::$Class,)+ }
            }
        }
    };
}

crate::punt_classes! { reasons {
    /// Shorter than the headers it announces.
    Malformed Runt = "runt",
    /// Received in several buffers that cannot be joined: a driver splits longer frames than the buffers were made for.
    Other MultiSegment = "multi_segment",
    /// Longer than the port's MTU allows on arrival.
    Malformed Oversize = "oversize",
    /// Unicast to a MAC address that is not the port's.
    Other NotForUs = "not_for_us",
    /// Broadcast or multicast that is not for Linux: this switch routes unicast only.
    Other Multicast = "multicast",
    /// More than one VLAN tag.
    Malformed VlanDepth = "vlan_depth",
    /// A VLAN the port does not carry: an id it was not given, or any id in a service tag (IEEE 802.1ad).
    Malformed VlanUnknown = "vlan_unknown",
    /// Neither IPv4, IPv6 nor MAC control, and nothing that Linux is given (ARP and LLDP are, where it is integrated).
    Other NotIp = "not_ip",
    /// IP version or header length is wrong, or the extension chain is too long.
    Malformed IpHeader = "ip_header",
    /// The IP length exceeds the frame.
    Malformed IpTruncated = "ip_truncated",
    /// Longer than the port's MTU, and without its end, which the ring of the driver cut off: a larger MTU at the sender, or IPv4
    /// fragments that the kernel reassembled under a packet socket.
    Malformed DriverTruncated = "driver_truncated",
    /// The IPv4 header checksum is wrong.
    Malformed IpChecksum = "ip_checksum",
    /// Source or destination address that must not be routed: loopback, link-local, reserved, a group or nobody as a source.
    Malformed Martian = "martian",
    /// TTL or hop limit would reach zero.
    Other TtlExpired = "ttl_expired",
    /// No route and no default route.
    Other NoRoute = "no_route",
    /// Destination of a blackhole route.
    Other Blackhole = "blackhole",
    /// Destination of an unreachable route; an ICMP error is sent.
    Other Unreachable = "unreachable",
    /// Destination of a prohibited route; an ICMP error is sent.
    Other Prohibited = "prohibited",
    /// The next hop's MAC address is unknown, and there is no Linux to resolve it.
    Other NoNeighbor = "no_neighbor",
    /// The next hop's MAC address is unknown, and Linux was requested to resolve it.
    Other Unresolved = "unresolved",
    /// Addressed to this switch, with no Linux to punt to.
    Other LocalUnserved = "local_unserved",
    /// Addressed to this switch with a source route or a routing header: Linux would forward it.
    Malformed SourceRoute = "source_route",
} /* `punt_CLASS` of each class of frames for Linux stands here. */ {
    /// Larger than the MTU of the port it would leave by. Nothing is fragmented, with DF or without.
    Other MtuExceeded = "mtu_exceeded",
    /// The buffer had no room for a VLAN tag.
    Other NoHeadroom = "no_headroom",
    /// The shared buffer pool is full, in bytes or in buffers.
    Congestion BufferFull = "buffer_full",
    /// A lossless group has used up its headroom, or all groups together the headroom of the switch: a sender did not pause
    /// in time.
    Congestion HeadroomFull = "headroom_full",
    /// The watchdog found the peer's pause without end; frames of that priority are dropped meanwhile.
    Other PfcStorm = "pfc_storm",
    /// The link of the port it would leave by is down, or was taken down by the operator.
    Other LinkDown = "link_down",
    /// A lossy queue, or a group that is not lossless, is past its share of the pool.
    Congestion QueueFull = "queue_full",
    /// Early drop of a lossy Not-ECT frame.
    Other Wred = "wred",
    /// The crossing ring to another worker has no room, or this priority of the ingress port has its share of the ring already (lossy traffic only).
    Congestion XringFull = "xring_full",
    /// Still queued when the switch stopped.
    Other Shutdown = "shutdown",
} }

impl DropReason {
    /// Returns true if no properly working neighbour sends such a frame.
    #[must_use]
    pub const fn is_malformed(self) -> bool {
        matches!(self.class(), DropClass::Malformed)
    }

    /// Returns true if there was no room.
    #[must_use]
    pub const fn is_congestion(self) -> bool {
        matches!(self.class(), DropClass::Congestion)
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
        assert_eq!(names.len(), DropReason::COUNT);
    }
}
