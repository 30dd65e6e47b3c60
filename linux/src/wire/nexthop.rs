//! Next-hop objects: `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP` (linux/nexthop.h), one next hop or a group of them, with an id.

use std::net::IpAddr;

use super::attribute::{address, attributes, number, u32_at};
use super::unread::Unread;

/// `RTM_NEWNEXTHOP`.
pub const NEW: u16 = 104;
/// `RTM_DELNEXTHOP`.
pub const GONE: u16 = 105;
/// `RTM_GETNEXTHOP`.
pub const GET: u16 = 106;
/// Octets of `struct nhmsg`.
pub const FIXED: usize = 8;

/// `NHA_ID`.
pub const ID: u16 = 1;
/// `NHA_GROUP`.
pub const GROUP: u16 = 2;
/// `NHA_BLACKHOLE`.
pub const BLACKHOLE: u16 = 4;
/// `NHA_OIF`.
pub const OIF: u16 = 5;
/// `NHA_GATEWAY`.
pub const GATEWAY: u16 = 6;
/// `NHA_ENCAP`: encapsulation into a tunnel, which the switch does not support.
const ENCAP: u16 = 8;
/// `NHA_FDB`: entry of a VXLAN device, not of routes.
const FDB: u16 = 11;

/// Maximum number of members read of a group: the kernel's own bound is what fits a message.
const MEMBERS: usize = 4096;

/// Kind of a next-hop object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextHopKind {
    /// Single next hop over a link, to a gateway or to attached hosts.
    By {
        /// Index of the link.
        link: u32,
        /// Gateway, if there is one.
        gateway: Option<IpAddr>,
    },
    /// Blackhole: drops silently.
    Blackhole,
    /// Group (ECMP): ids and weights of its members.
    Group(Vec<(u32, u16)>),
    /// Unsupported: a tunnel, or a bridge's entry.
    Unusable,
}

/// Next-hop object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextHop {
    /// Id of the object, never 0.
    pub id: u32,
    /// Kind of the object.
    pub kind: NextHopKind,
}

/// Parses a next-hop message.
///
/// # Errors
/// The message has no id.
pub fn read(body: &[u8]) -> Result<NextHop, Unread> {
    let rest = body.get(FIXED..).ok_or(Unread::Malformed)?;
    let (mut id, mut link, mut gateway, mut group) = (None, None, None, None);
    let (mut blackhole, mut unusable) = (false, false);
    for (kind, value) in attributes(rest) {
        match kind {
            ID => id = number(value),
            OIF => link = number(value),
            GATEWAY => gateway = address(value),
            GROUP => group = Some(members(value)),
            BLACKHOLE => blackhole = true,
            ENCAP | FDB => unusable = true,
            _ => {}
        }
    }
    let kind = match (group, link) {
        _ if unusable => NextHopKind::Unusable,
        (Some(members), _) => NextHopKind::Group(members),
        _ if blackhole => NextHopKind::Blackhole,
        (None, Some(link)) => NextHopKind::By { link, gateway },
        (None, None) => NextHopKind::Unusable,
    };
    match id {
        Some(id) if id > 0 => Ok(NextHop { id, kind }),
        _ => Err(Unread::Malformed),
    }
}

/// Parses the members of a group: `struct nexthop_grp`, which holds the weight less one; its upper part is in an octet that older kernels
/// leave zero.
fn members(value: &[u8]) -> Vec<(u32, u16)> {
    let (whole, _) = value.as_chunks::<8>();
    let member = |entry: &[u8; 8]| {
        let weight = u16::from_le_bytes([entry[4], entry[5]]);
        (u32_at(entry, 0).unwrap_or(0), weight.saturating_add(1))
    };
    whole.iter().take(MEMBERS).map(member).collect()
}
