//! The classes of frames for Linux: each has a rate and a queue of its own, so that none takes what another lives on.

use crate::drop::DropReason;

/// The registry of classes, the most important first: a line is all that declares one. `punt_classes! { with ... }` calls
/// `with! { ... LINES }`, which makes what it needs of them: the enum here, the drop reasons, the keys and defaults of the configuration.
///
/// A line names the variant, its name and key, the reason its frames are dropped for when its rate or its queue does not let them pass,
/// the size of its queue (a worker's bursts until the housekeeping thread comes round) and its default rate in frames a second.
#[macro_export]
macro_rules! punt_classes {
    ($with:ident $($before:tt)*) => {
        $with! { $($before)*
            /// BFD (UDP 3784, 3785 and 4784 to us).
            Bfd = bfd, drop PuntBfd, queue 128 KiB, rate 20_000;
            /// BGP to us, OSPF and other routing protocols.
            Routing = routing, drop PuntRouting, queue 1024 KiB, rate 20_000;
            /// LLDP.
            Lldp = lldp, drop PuntLldp, queue 64 KiB, rate 500;
            /// ARP and neighbour discovery.
            ArpNd = arp_nd, drop PuntArpNd, queue 128 KiB, rate 5_000;
            /// All else to one of our addresses, or to a group of the link.
            ToUs = to_us, drop PuntToUs, queue 256 KiB, rate 5_000;
        }
    };
}

/// Declares the enum.
macro_rules! classes {
    ($($(#[$doc:meta])+ $Class:ident = $key:ident, drop $Reason:ident, queue $size:literal KiB, rate $rate:literal;)+) => {
        crate::named! {
            /// A class of frames for Linux, the most important first.
            pub enum PuntClass { $($(#[$doc])+ $Class = stringify!($key),)+ }
        }

        impl PuntClass {
            /// Why a frame of this class is dropped that its rate or its queue does not let pass.
            #[must_use]
            pub const fn reason(self) -> DropReason {
                match self { $(PuntClass::$Class => DropReason::$Reason,)+ }
            }

            /// Bytes of its queue.
            #[must_use]
            pub const fn room(self) -> usize {
                match self { $(PuntClass::$Class => $size << 10,)+ }
            }
        }
    };
}

crate::punt_classes! { classes }
