//! UDP header (RFC 768).

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IP protocol number of UDP.
pub const PROTOCOL: u8 = 17;
/// Destination port of RoCEv2 (IANA).
pub const ROCEV2_PORT: u16 = 4791;
/// Length of the header in bytes.
pub const HEADER_LEN: usize = 8;

/// UDP header.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Udp {
    /// Source port.
    pub src_port: U16,
    /// Destination port.
    pub dst_port: U16,
    /// Length of header and payload in bytes.
    pub len: U16,
    /// Checksum; zero means none (IPv4).
    pub checksum: U16,
}

const _: () = assert!(size_of::<Udp>() == HEADER_LEN);
