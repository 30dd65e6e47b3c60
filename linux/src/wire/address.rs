//! Addresses of links: `RTM_NEWADDR`, `RTM_DELADDR`.

use std::net::IpAddr;

use super::attribute::{INET, INET6, address as ip, attributes, u32_at};
use super::unread::Unread;

/// `RTM_NEWADDR`.
pub const NEW: u16 = 20;
/// `RTM_DELADDR`.
pub const GONE: u16 = 21;
/// Octets of `struct ifaddrmsg`.
pub const FIXED: usize = 8;

/// `IFA_ADDRESS`: the peer's address on a point-to-point link.
pub const ADDRESS: u16 = 1;
/// `IFA_LOCAL`: the local address.
pub const LOCAL: u16 = 2;

/// Local address on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Index of the link.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Prefix length of the subnet.
    pub len: u8,
}

/// Parses an address message.
///
/// # Errors
/// The message is of another address family, or has no address.
pub fn read(body: &[u8]) -> Result<Address, Unread> {
    let [family, len] = match body {
        [family @ (INET | INET6), len, ..] => [*family, *len],
        [] | [INET | INET6] => return Err(Unread::Malformed),
        _ => return Err(Unread::NotOurs),
    };
    let (mut own, mut peer) = (None, None);
    for (kind, value) in attributes(body.get(FIXED..).ok_or(Unread::Malformed)?) {
        match kind {
            LOCAL => own = ip(value),
            ADDRESS => peer = ip(value),
            _ => {}
        }
    }
    let link = u32_at(body, 4).filter(|index| *index > 0);
    let own = own.or(peer);
    let own = own.filter(|address| address.is_ipv4() == (family == INET));
    match (link, own) {
        (Some(link), Some(address)) => Ok(Address { link, address, len }),
        _ => Err(Unread::Malformed),
    }
}
