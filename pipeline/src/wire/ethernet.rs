//! Ethernet II and IEEE 802.1Q tags.

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;
/// EtherType of an 802.1Q customer tag.
pub const VLAN: u16 = 0x8100;
/// EtherType of an 802.1ad service tag.
pub const QINQ: u16 = 0x88a8;
/// EtherType of LLDP (IEEE 802.1AB).
pub const LLDP: u16 = 0x88cc;
/// EtherType of PTP (IEEE 1588 annex F).
pub const PTP: u16 = 0x88f7;
/// EtherType of an LLC frame that is longer than an IEEE 802.3 length can say, as IS-IS has on links with jumbo frames.
pub const LONG_LLC: u16 = 0x8870;
/// Largest value of the type field that is a length (IEEE 802.3).
pub const LONGEST_LENGTH: u16 = 1500;
/// EtherType of MAC control: 802.3x pause and 802.1Qbb PFC.
pub const MAC_CONTROL: u16 = 0x8808;

/// Length of an untagged header in bytes.
pub const HEADER_LEN: usize = 14;
/// Length of one tag in bytes.
pub const TAG_LEN: usize = 4;

/// ```text
///  0              6              12     14
/// +--------------+--------------+------+
/// | destination  | source       | type |
/// +--------------+--------------+------+
/// ```
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ethernet {
    /// Destination MAC address.
    pub dst: [u8; 6],
    /// Source MAC address.
    pub src: [u8; 6],
    /// EtherType of the payload, or of a tag.
    pub ethertype: U16,
}

/// VLAN tag, as it follows an EtherType of [`VLAN`] or [`QINQ`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Tag {
    /// Tag control word: PCP (3 bits), DEI (1), VLAN id (12).
    pub tci: U16,
    /// EtherType of the payload, or of the next tag.
    pub ethertype: U16,
}

/// Bit of a tag control word: drop eligible indicator (IEEE 802.1Q, 6.9.3).
pub const DEI: u16 = 1 << 12;

/// Returns the VLAN id of a tag control word.
#[must_use]
pub const fn vlan_id(tci: u16) -> u16 {
    tci & 0x0fff
}

/// Returns the priority code point of a tag control word.
#[must_use]
pub const fn pcp(tci: u16) -> u8 {
    (tci >> 13) as u8
}

const _: () = assert!(size_of::<Ethernet>() == HEADER_LEN);
const _: () = assert!(size_of::<Tag>() == TAG_LEN);
