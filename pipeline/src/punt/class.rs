//! The classes of frames for Linux: each has a rate and a queue of its own, so that none takes what another lives on.

use crate::drop::DropReason;

crate::named! {
    /// A class of frames for Linux, the most important first.
    pub enum PuntClass {
        /// BFD to us.
        Bfd = "bfd",
        /// BGP to us, OSPF and other routing protocols.
        Routing = "routing",
        /// LLDP.
        Lldp = "lldp",
        /// ARP and neighbour discovery.
        ArpNd = "arp_nd",
        /// All else that is for us.
        ToUs = "to_us",
    }
}

impl PuntClass {
    /// Why a frame of this class is dropped that its rate or its queue does not let pass.
    #[must_use]
    pub const fn reason(self) -> DropReason {
        match self {
            PuntClass::Bfd => DropReason::PuntBfd,
            PuntClass::Routing => DropReason::PuntRouting,
            PuntClass::Lldp => DropReason::PuntLldp,
            PuntClass::ArpNd => DropReason::PuntArpNd,
            PuntClass::ToUs => DropReason::PuntToUs,
        }
    }

    /// Bytes of its queue: a worker's bursts until the housekeeping thread comes round.
    #[must_use]
    pub const fn room(self) -> usize {
        match self {
            PuntClass::Bfd | PuntClass::ArpNd => 128 << 10,
            // A window of BGP, in full frames.
            PuntClass::Routing => 1 << 20,
            PuntClass::Lldp => 64 << 10,
            PuntClass::ToUs => 256 << 10,
        }
    }
}
