//! IPv4 header (RFC 791).

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of a header without options, in bytes.
pub const MIN_LEN: usize = 20;

/// Fixed part of the IPv4 header.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv4 {
    /// Version (4) and header length in 32-bit words.
    pub version_ihl: u8,
    /// DSCP (6 bits) and ECN (2 bits).
    pub tos: u8,
    /// Length of header and payload in bytes.
    pub total_len: U16,
    /// Identification.
    pub id: U16,
    /// Flags (3 bits) and fragment offset (13 bits).
    pub flags_fragment: U16,
    /// Time to live.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Header checksum.
    pub checksum: U16,
    /// Source address.
    pub src: [u8; 4],
    /// Destination address.
    pub dst: [u8; 4],
}

impl Ipv4 {
    /// Returns the IP version, the first nibble.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Returns the header length in bytes, as declared.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        (self.version_ihl & 0x0f) as usize * 4
    }

    /// Returns true for any part of a fragmented packet: more-fragments set, or an offset.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.flags_fragment.get() & 0x3fff != 0
    }
}

const _: () = assert!(size_of::<Ipv4>() == MIN_LEN);
