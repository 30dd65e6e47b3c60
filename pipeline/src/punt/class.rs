//! Classes of frames for Linux: each has its own rate and queue, so that none takes what another depends on.

use crate::drop::DropReason;

/// Registry of the classes, the most important first; a line is all that declares one. `punt_classes! { with ... }` calls
/// `with! { ... LINES }`, which generates what it needs from them: the enum here, the drop reasons, the keys and defaults of
/// the configuration.
///
/// A line names the variant, its name and key, the drop reason of its frames that exceed its rate or do not fit in its queue,
/// the size of its queue (a worker's bursts until the housekeeping thread comes round) and its default rate in frames a
/// second.
#[macro_export]
macro_rules! punt_classes {
    ($with:ident $($before:tt)*) => {
        $with! { $($before)*
            /// BFD (UDP 3784, 3785 and 4784 to us).
            Bfd = bfd, drop PuntBfd, queue 128 KiB, rate 20_000;
            /// BGP to us, OSPF, IS-IS and other routing protocols.
            Routing = routing, drop PuntRouting, queue 1024 KiB, rate 20_000;
            /// LLDP.
            Lldp = lldp, drop PuntLldp, queue 64 KiB, rate 500;
            /// Precision Time Protocol (IEEE 1588, EtherType 0x88f7, or UDP 319 and 320).
            Ptp = ptp, drop PuntPtp, queue 64 KiB, rate 2_000;
            /// ARP and neighbour discovery.
            ArpNd = arp_nd, drop PuntArpNd, queue 128 KiB, rate 5_000;
            /// DHCP of IPv4 and IPv6, by broadcast, to relays and to us.
            Dhcp = dhcp, drop PuntDhcp, queue 128 KiB, rate 1_000;
            /// All else to one of our addresses, or to a group of the link.
            ToUs = to_us, drop PuntToUs, queue 256 KiB, rate 5_000;
        }
    };
}

/// Declares the enum `PuntClass`.
macro_rules! classes {
    ($($(#[$doc:meta])+ $Class:ident = $key:ident, drop $Reason:ident, queue $size:literal KiB, rate $rate:literal;)+) => {
        crate::named! {
            /// Class of a frame for Linux, the most important first.
            pub enum PuntClass { $($(#[$doc])+ $Class = stringify!($key),)+ }
        }

        impl PuntClass {
            /// Returns the drop reason of a frame of this class that exceeds its rate or does not fit in its queue.
            #[must_use]
            pub const fn reason(self) -> DropReason {
                match self { $(PuntClass::$Class => DropReason::$Reason,)+ }
            }

            /// Returns true if frames of the class that Linux sends go ahead of the data: others' routes, neighbours and clocks depend on
            /// them. Those of DHCP are as many as hosts want.
            #[must_use]
            pub const fn goes_ahead(self) -> bool {
                !matches!(self, PuntClass::Dhcp | PuntClass::ToUs)
            }

            /// Returns the size of its queue in bytes.
            #[must_use]
            pub const fn room(self) -> usize {
                match self { $(PuntClass::$Class => $size << 10,)+ }
            }
        }
    };
}

crate::punt_classes! { classes }
