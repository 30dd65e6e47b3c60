//! Links: `RTM_NEWLINK`, `RTM_DELLINK` (rtnetlink(7)).

use npcc_pipeline::units::Mac;

use super::attribute::{array, attributes, number, text, u32_at};
use super::unread::Unread;

/// `RTM_NEWLINK`.
pub const NEW: u16 = 16;
/// `RTM_DELLINK`.
pub const GONE: u16 = 17;
/// Octets of `struct ifinfomsg`.
pub const FIXED: usize = 16;

/// `IFLA_ADDRESS`.
pub const ADDRESS: u16 = 1;
/// `IFLA_IFNAME`.
pub const NAME: u16 = 3;
/// `IFLA_MTU`.
pub const MTU: u16 = 4;

/// `IFLA_LINK`: the link that another is over.
pub const OVER: u16 = 5;
/// `IFLA_LINKINFO`.
pub const INFO: u16 = 18;
/// `IFLA_INFO_KIND`, in [`INFO`].
pub const INFO_KIND: u16 = 1;

/// `IFF_UP`.
pub const UP: u32 = 1;
/// `IFF_RUNNING | IFF_LOWER_UP`: the kernel accepts either as a carrier when it flushes next hops.
const CARRIED: u32 = 1 << 6 | 1 << 16;

/// Link as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Index of the link.
    pub index: u32,
    /// Name of the link.
    pub name: String,
    /// True if the link is administratively up (`IFF_UP`).
    pub up: bool,
    /// True if the link has a carrier.
    pub carrier: bool,
    /// MAC address, if it has one of six octets.
    pub mac: Option<Mac>,
    /// IP MTU in octets.
    pub mtu: u32,
    /// Index of the link that a macvlan is over: it has a MAC address of its own there, as VRRP's virtual routers do.
    pub macvlan_over: Option<u32>,
}

/// Parses a link message.
///
/// # Errors
/// The message is of a bridge's port, or has no name.
pub fn read(body: &[u8]) -> Result<Link, Unread> {
    let malformed = Unread::Malformed;
    if body.first() != Some(&0) {
        return Err(Unread::NotOurs);
    }
    let flags = u32_at(body, 8).ok_or(malformed)?;
    let mut link = Link {
        index: u32_at(body, 4).ok_or(malformed)?,
        name: String::new(),
        up: flags & UP != 0,
        carrier: flags & CARRIED != 0,
        mac: None,
        mtu: 0,
        macvlan_over: None,
    };
    let (mut over, mut is_macvlan) = (None, false);
    for (kind, value) in attributes(body.get(FIXED..).ok_or(malformed)?) {
        match kind {
            ADDRESS if value.len() == 6 => link.mac = array(value).map(Mac),
            NAME => link.name = text(value).unwrap_or_default().to_owned(),
            MTU => link.mtu = number(value).unwrap_or(0),
            OVER => over = number(value),
            INFO => {
                let mut info = attributes(value);
                let kind = info.find_map(|(kind, value)| (kind == INFO_KIND).then_some(value));
                is_macvlan = kind.and_then(text) == Some("macvlan");
            }
            _ => {}
        }
    }
    link.macvlan_over = over.filter(|_| is_macvlan);
    if link.name.is_empty() || link.index == 0 {
        return Err(malformed);
    }
    Ok(link)
}
