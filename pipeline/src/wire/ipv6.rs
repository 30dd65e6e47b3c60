//! IPv6 header (RFC 8200) and the extension headers that a router has to step over.

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Length of the fixed header in bytes.
pub const HEADER_LEN: usize = 40;

/// Offset of source and destination address in the header, 32 octets (section 3).
pub const ADDRESSES: usize = 8;

/// Fixed IPv6 header.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Ipv6 {
    /// Version (4 bits), traffic class (8), flow label (20).
    pub version_class_label: U32,
    /// Length after this header in bytes.
    pub payload_len: U16,
    /// Protocol of the next header or of the payload.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source address.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
}

impl Ipv6 {
    /// Returns the IP version, the first nibble.
    #[must_use]
    pub fn version(&self) -> u8 {
        (self.version_class_label.get() >> 28) as u8
    }

    /// Returns DSCP and ECN, as in IPv4's TOS octet.
    #[must_use]
    pub fn traffic_class(&self) -> u8 {
        crate::bits::low8((self.version_class_label.get() >> 20) as usize)
    }
}

/// Protocol number of hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Protocol number of a routing header.
pub const ROUTING: u8 = 43;
/// Protocol number of a fragment header.
pub const FRAGMENT: u8 = 44;
/// Protocol number of destination options.
pub const DESTINATION: u8 = 60;

/// Most extension headers stepped over; a longer chain is dropped.
pub const MAX_EXTENSIONS: usize = 8;

/// Returns true if `next_header` is an extension header whose second octet is its length in 8-byte units, less one.
#[must_use]
pub const fn is_option_like(next_header: u8) -> bool {
    matches!(next_header, HOP_BY_HOP | ROUTING | DESTINATION)
}

const _: () = assert!(size_of::<Ipv6>() == HEADER_LEN);
