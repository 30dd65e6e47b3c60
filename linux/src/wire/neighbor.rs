//! Neighbours: `RTM_NEWNEIGH`, `RTM_DELNEIGH`.

use std::net::IpAddr;

use npcc_pipeline::units::Mac;

use super::attribute::{INET, INET6, address, array, attributes, u16_at, u32_at};
use super::unread::Unread;

/// `RTM_NEWNEIGH`.
pub const NEW: u16 = 28;
/// `RTM_DELNEIGH`.
pub const GONE: u16 = 29;
/// Octets of `struct ndmsg`.
pub const FIXED: usize = 12;

/// `NDA_DST`.
pub const DESTINATION: u16 = 1;
/// `NDA_LLADDR`.
pub const LINK_ADDRESS: u16 = 2;
/// `NDA_FLAGS_EXT`, since Linux 5.16.
pub const FLAGS_EXT: u16 = 15;

/// `NTF_PROXY`: a proxy entry, not a neighbour.
const PROXY: u8 = 8;
/// `NTF_EXT_MANAGED`, in [`FLAGS_EXT`]: the kernel keeps it resolved.
pub const EXT_MANAGED: u32 = 1;

/// `NUD_REACHABLE`, `NUD_STALE`, `NUD_DELAY`, `NUD_PROBE`, `NUD_NOARP`, `NUD_PERMANENT`: states with a usable MAC address (`NUD_VALID`).
const VALID: u16 = 0x02 | 0x04 | 0x08 | 0x10 | NO_ARP | PERMANENT;
/// `NUD_FAILED`.
pub const FAILED: u16 = 0x20;
/// `NUD_NOARP`.
pub const NO_ARP: u16 = 0x40;
/// `NUD_PERMANENT`.
pub const PERMANENT: u16 = 0x80;

/// Neighbour on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbor {
    /// Index of the link.
    pub link: u32,
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// MAC address, while the kernel uses one.
    pub mac: Option<Mac>,
    /// State: one of `NUD_*`.
    pub state: u16,
    /// True if the kernel keeps it resolved for the switch (`NTF_EXT_MANAGED`).
    pub managed: bool,
}

/// Parses a neighbour message.
///
/// # Errors
/// The neighbour is a bridge's, a proxy's, a multicast group, or has no address.
pub fn read(body: &[u8]) -> Result<Neighbor, Unread> {
    let malformed = Unread::Malformed;
    let family = *body.first().ok_or(malformed)?;
    if !matches!(family, INET | INET6) {
        return Err(Unread::NotOurs);
    }
    if body.get(10).ok_or(malformed)? & PROXY != 0 {
        return Err(Unread::NotOurs);
    }
    let state = u16_at(body, 8).ok_or(malformed)?;
    let (mut ip, mut mac, mut managed) = (None, None, false);
    for (kind, value) in attributes(body.get(FIXED..).ok_or(malformed)?) {
        match kind {
            DESTINATION => ip = address(value),
            LINK_ADDRESS if value.len() == 6 => mac = array(value).map(Mac),
            FLAGS_EXT => managed = u32_at(value, 0).unwrap_or(0) & EXT_MANAGED != 0,
            _ => {}
        }
    }
    let link = u32_at(body, 4).filter(|index| *index > 0);
    let ip = ip.filter(|address| address.is_ipv4() == (family == INET));
    match (link, ip) {
        // The kernel makes these entries up as it sends to groups, without a notification.
        (Some(_), Some(group)) if group.is_multicast() || is_broadcast(group) => {
            Err(Unread::NotOurs)
        }
        (Some(link), Some(address)) => Ok(Neighbor {
            link,
            address,
            mac: mac.filter(|_| state & VALID != 0),
            state,
            managed,
        }),
        _ => Err(malformed),
    }
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(v4) if v4.is_broadcast())
}
