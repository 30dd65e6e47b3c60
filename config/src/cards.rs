//! Pause support of each card by its DPDK driver, and the evidence for it. The table in docs/lossless.md is the same.

use std::fmt;

use crate::model::{PfcBackend, PortPfc};

/// Evidence for a fact about a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The source of its driver says so.
    Source,
    /// No source states it; it is what the hardware or its firmware probably does.
    Suspected,
    /// A test has shown it.
    Tried(&'static str),
}

/// Answer to one question about a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fact {
    /// The answer.
    pub holds: bool,
    /// Evidence for it.
    pub evidence: Evidence,
}

impl fmt::Display for Fact {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.holds { "yes, " } else { "no, " })?;
        match self.evidence {
            Evidence::Source => out.write_str("by source"),
            Evidence::Suspected => out.write_str("suspected"),
            Evidence::Tried(by) => write!(out, "tried by {by}"),
        }
    }
}

/// Decision of the start on a lossless port with `pfc: auto` and `pfc.backend: auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auto {
    /// The port starts.
    Starts,
    /// The port starts, unless its device takes the pause frame of the start and does not count it.
    StartsIfCounted,
    /// The port does not start if a priority is lossless: the reason.
    Refused(&'static str),
}

/// Card, or family of devices, and its pause support.
#[derive(Debug)]
pub struct Card {
    /// Name, for operators.
    pub name: &'static str,
    /// First letters of the names of its DPDK drivers.
    pub drivers: &'static [&'static str],
    /// PCI vendor.
    pub vendor: u16,
    /// PCI devices of that vendor; `None`: all.
    pub devices: Option<&'static [u16]>,
    /// The peer's pause frames (EtherType 0x8808) reach the switch.
    pub receives: Fact,
    /// Pause frames of the switch reach the wire.
    pub sends: Fact,
    /// The device applies the peer's pauses by itself, a transmit queue for each priority, by the calls that the switch makes.
    pub hardware: Fact,
    /// Decision of the start with `auto`.
    pub auto: Auto,
    /// Place in DPDK 22.11.11 below drivers/net.
    pub source: &'static str,
}

const fn fact(holds: bool, evidence: Evidence) -> Fact {
    Fact { holds, evidence }
}

const YES: Fact = fact(true, Evidence::Source);
const NO: Fact = fact(false, Evidence::Source);
const PERHAPS: Fact = fact(true, Evidence::Suspected);
const HARDLY: Fact = fact(false, Evidence::Suspected);

/// Vendor of devices that have no PCI address, or of which the address tells nothing.
const NO_VENDOR: u16 = 0;
/// Source of a device without hardware.
const NO_MAC: &str = "no MAC";
const INTEL: u16 = 0x8086;
const HUAWEI: u16 = 0x19e5;

/// Virtual functions, whatever their driver.
static VF: Card = Card {
    name: "virtual functions (VF)",
    drivers: &["net_iavf", "net_ice_dcf"],
    vendor: INTEL,
    devices: Some(&[
        0x10ca, 0x10ed, 0x1515, 0x1520, 0x152d, 0x152e, 0x152f, 0x1530, 0x154c, 0x1564, 0x1565,
        0x1571, 0x15a8, 0x15a9, 0x15b4, 0x15c5, 0x1889, 0x374d, 0x37cd,
    ]),
    receives: HARDLY,
    sends: NO,
    hardware: NO,
    auto: Auto::Refused(
        "the card drops pause frames that a virtual function sends, and keeps those of the peer",
    ),
    source: "i40e/i40e_ethdev.c:804, ixgbe/ixgbe_pf.c:173, iavf/iavf_ethdev.c:192",
};

/// Cards that no row names.
static OTHER: Card = Card {
    name: "other cards",
    drivers: &[],
    vendor: NO_VENDOR,
    devices: None,
    receives: HARDLY,
    sends: PERHAPS,
    hardware: HARDLY,
    auto: Auto::Starts,
    source: "not read",
};

/// Virtual functions come first: their drivers are named like those of the physical ones.
pub static CARDS: [&Card; 15] = [
    &VF,
    &Card {
        name: "NVIDIA ConnectX",
        drivers: &["mlx5_", "net_mlx4"],
        vendor: 0x15b3,
        devices: None,
        receives: HARDLY,
        sends: PERHAPS,
        hardware: NO,
        auto: Auto::Refused(
            "the MAC of a ConnectX probably keeps the peer's pause frames to itself, and what the kernel has set for PFC holds back \
             none of the switch's queues",
        ),
        source: "mlx5/linux/mlx5_ethdev_os.c:733, mlx5/mlx5.c:2209",
    },
    &Card {
        name: "Intel X710, XL710, XXV710, X722",
        drivers: &["net_i40e"],
        vendor: INTEL,
        devices: Some(&[
            0x0cf8, 0x0d58, 0x101f, 0x104e, 0x104f, 0x1572, 0x1574, 0x1580, 0x1581, 0x1583, 0x1584,
            0x1585, 0x1586, 0x1587, 0x1588, 0x1589, 0x158a, 0x158b, 0x15ff, 0x374c, 0x37ce, 0x37cf,
            0x37d0, 0x37d1, 0x37d2, 0x37d3,
        ]),
        receives: YES,
        sends: NO,
        hardware: NO,
        auto: Auto::Refused(
            "DPDK's i40e driver has the card drop pause frames that software sends",
        ),
        source: "i40e/i40e_ethdev.c:804, 4242, 4278",
    },
    &Card {
        name: "Broadcom NetXtreme",
        drivers: &["net_bnxt"],
        vendor: 0x14e4,
        devices: None,
        receives: HARDLY,
        sends: PERHAPS,
        hardware: NO,
        auto: Auto::Refused(
            "the firmware of the card may keep the peer's pause frames, and the driver counts a frame as sent before any filter",
        ),
        source: "bnxt/bnxt_ethdev.c:4026, bnxt/bnxt_stats.c:532",
    },
    &Card {
        name: "Amazon ENA",
        drivers: &["net_ena"],
        vendor: 0x1d0f,
        devices: None,
        receives: HARDLY,
        sends: HARDLY,
        hardware: NO,
        auto: Auto::Refused("the cloud's network passes no pause frames"),
        source: "ena/ena_ethdev.c:277",
    },
    &Card {
        name: "Intel E810, E822, E823",
        drivers: &["net_ice"],
        vendor: INTEL,
        devices: Some(&[
            0x0dbd, 0x0dcd, 0x124c, 0x124d, 0x124e, 0x124f, 0x151d, 0x1591, 0x1592, 0x1593, 0x1599,
            0x159a, 0x159b, 0x1888, 0x188a, 0x188b, 0x188c, 0x188d, 0x188e, 0x1890, 0x1891, 0x1892,
            0x1893, 0x1894, 0x1897, 0x1898, 0x1899, 0x189a, 0x579c, 0x579d, 0x579e, 0x579f,
        ]),
        receives: HARDLY,
        sends: PERHAPS,
        hardware: NO,
        auto: Auto::Starts,
        source: "ice/ice_ethdev.c:214",
    },
    &Card {
        name: "HiSilicon HNS3",
        drivers: &["net_hns3"],
        vendor: HUAWEI,
        devices: Some(&[0xa220, 0xa221, 0xa222, 0xa224, 0xa226, 0xa228]),
        receives: HARDLY,
        sends: PERHAPS,
        hardware: HARDLY,
        auto: Auto::Starts,
        source: "hns3/hns3_ethdev.c:5449, 5500",
    },
    &Card {
        name: "Intel 82599, X520, X540, X550",
        drivers: &["net_ixgbe"],
        vendor: NO_VENDOR,
        devices: None,
        receives: YES,
        sends: YES,
        hardware: NO,
        auto: Auto::StartsIfCounted,
        source: "ixgbe/ixgbe_ethdev.c:2585, 7544, ixgbe/ixgbe_pf.c:173",
    },
    &Card {
        name: "Intel 82576, I350, I210",
        drivers: &["net_e1000_igb"],
        vendor: NO_VENDOR,
        devices: None,
        receives: YES,
        sends: YES,
        hardware: NO,
        auto: Auto::StartsIfCounted,
        source: "e1000/igb_ethdev.c:3154",
    },
    &Card {
        name: "Intel 82574, I217 to I219",
        drivers: &["net_e1000_em"],
        vendor: NO_VENDOR,
        devices: None,
        receives: YES,
        sends: YES,
        hardware: NO,
        auto: Auto::Starts,
        source: "e1000/em_ethdev.c:1791",
    },
    &Card {
        name: "virtio, as far as the host's switch passes them",
        drivers: &["net_virtio"],
        vendor: 0x1af4,
        devices: None,
        receives: YES,
        sends: YES,
        hardware: NO,
        auto: Auto::Starts,
        source: "virtio/virtio_ethdev.c:1025",
    },
    &Card {
        name: "VMware vmxnet3, as far as the host's switch passes them",
        drivers: &["net_vmxnet3"],
        vendor: 0x15ad,
        devices: None,
        receives: YES,
        sends: YES,
        hardware: NO,
        auto: Auto::Starts,
        source: "vmxnet3/vmxnet3_ethdev.c:124",
    },
    &Card {
        name: "kernel interfaces by packet sockets",
        drivers: &["net_af_packet"],
        vendor: NO_VENDOR,
        devices: None,
        receives: fact(true, Evidence::Tried("tests/pfc_live.rs")),
        sends: fact(true, Evidence::Tried("tests/pfc_live.rs")),
        hardware: NO,
        auto: Auto::Starts,
        source: NO_MAC,
    },
    &Card {
        name: "other software devices",
        drivers: &[
            "net_af_xdp",
            "net_tap",
            "net_memif",
            "net_vhost",
            "net_ring",
        ],
        vendor: NO_VENDOR,
        devices: None,
        receives: YES,
        sends: YES,
        hardware: NO,
        auto: Auto::Starts,
        source: NO_MAC,
    },
    &Card {
        name: "capture files and the null device",
        drivers: &["net_pcap", "net_null"],
        vendor: NO_VENDOR,
        devices: None,
        receives: NO,
        sends: NO,
        hardware: NO,
        auto: Auto::Refused("a capture or null device has no peer"),
        source: NO_MAC,
    },
];

/// Rows of the table: the cards, and all others.
pub fn rows() -> impl Iterator<Item = &'static Card> {
    CARDS.into_iter().chain([&OTHER])
}

impl Card {
    /// Returns the row of a device by its DPDK driver. `is_vf`: it is a virtual function whatever its driver says.
    #[must_use]
    pub fn of_driver(driver: &str, is_vf: bool) -> &'static Card {
        if is_vf || driver.contains("_vf") {
            return &VF;
        }
        let named = |card: &&Card| card.drivers.iter().any(|name| driver.starts_with(name));
        CARDS.into_iter().find(named).unwrap_or(&OTHER)
    }

    /// Returns the row of a device by its PCI identity; `None` if that does not tell.
    #[must_use]
    pub fn of_pci(vendor: u16, device: u16, is_vf: bool) -> Option<&'static Card> {
        if is_vf || (vendor == HUAWEI && [0xa22e, 0xa22f].contains(&device)) {
            return Some(&VF);
        }
        CARDS.into_iter().find(|card| {
            card.vendor != NO_VENDOR
                && card.vendor == vendor
                && card.devices.is_none_or(|all| all.contains(&device))
        })
    }

    /// Returns the reason for which pause does not work with this card, or is not known to; `None` if it may.
    #[must_use]
    pub const fn reason(&self) -> Option<&'static str> {
        match self.auto {
            Auto::Refused(why) => Some(why),
            Auto::Starts | Auto::StartsIfCounted => None,
        }
    }

    /// Returns true for a device without hardware.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.source == NO_MAC
    }

    /// Returns the reason for which a port that is to have pause and follows the device must not start; `None` if it may.
    #[must_use]
    pub fn reject_reason(&self, backend: PfcBackend, port: PortPfc) -> Option<&'static str> {
        self.reason().filter(|_| is_auto(backend, port))
    }

    /// Returns true if no source and no test shows that pause works in software with the port's setting: received frames suffice for
    /// `honour`.
    #[must_use]
    pub fn is_suspected(&self, port: PortPfc) -> bool {
        !self.receives.holds || (port != PortPfc::Honour && !self.sends.holds)
    }

    /// Returns the decision of the start in the words of the table.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        match self.auto {
            Auto::Refused(_) => "refused",
            Auto::StartsIfCounted => "starts, refused if not counted",
            Auto::Starts if self.is_suspected(PortPfc::Auto) => "starts, pause: suspected",
            Auto::Starts => "starts",
        }
    }
}

/// Returns true if driver and device decide about a port's pause.
#[must_use]
pub fn is_auto(backend: PfcBackend, port: PortPfc) -> bool {
    backend == PfcBackend::Auto && port == PortPfc::Auto
}

/// Returns the message for a port that has a lossless priority and no pause, with the settings that it starts with, the best first.
#[must_use]
pub fn without_pause(port: &str, why: &str) -> String {
    format!(
        "port {port}: a priority is lossless, but pause does not work on this port: {why}; write `qos.profile: roce-semi-lossless` (the \
         same queues, ECN and NPCC, without pause; no priority may have lossless: true of its own), or `pfc: off` on the port (frames of \
         the lossless priorities that arrive there can be lost)"
    )
}
