//! Routes: `RTM_NEWROUTE`, `RTM_DELROUTE`.

use std::net::IpAddr;

use npcc_pipeline::route::prefix::Prefix;

use super::attribute::{
    INET, INET6, address, address_of_family, attributes, number, u16_at, u32_at, unspecified,
};
use super::message::{APPEND, REPLACE};
use super::unread::Unread;

/// `RTM_NEWROUTE`.
pub const NEW: u16 = 24;
/// `RTM_DELROUTE`.
pub const GONE: u16 = 25;
/// Octets of `struct rtmsg`.
pub const FIXED: usize = 12;

/// `RTA_DST`.
pub const DESTINATION: u16 = 1;
/// `RTA_OIF`.
pub const OIF: u16 = 4;
/// `RTA_GATEWAY`.
pub const GATEWAY: u16 = 5;
/// `RTA_PRIORITY`.
pub const PRIORITY: u16 = 6;
/// `RTA_PREFSRC`.
const PREFSRC: u16 = 7;
/// `RTA_MULTIPATH`.
pub const MULTIPATH: u16 = 9;
/// `RTA_TABLE`.
pub const TABLE: u16 = 15;
/// `RTA_VIA`: a gateway of another family.
pub const VIA: u16 = 18;
/// `RTA_ENCAP_TYPE`: into a tunnel, which we do not do.
const ENCAP_TYPE: u16 = 21;
/// `RTA_NH_ID`.
pub const NEXT_HOP: u16 = 30;

/// `RTNH_F_DEAD`.
const DEAD: u8 = 1;
/// `RTM_F_CLONED`: a cached copy.
const CLONED: u32 = 0x200;
/// `RT_TABLE_MAIN`.
pub const MAIN: u32 = 254;
/// `RT_TABLE_LOCAL`.
pub const LOCAL: u32 = 255;

/// Which of the two tables that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// What is for us; asked before the other.
    Local,
    /// All that is forwarded by.
    Main,
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Forwards, by its next hops.
    Forward,
    /// Delivers to this machine (`local`, `anycast`).
    Deliver,
    /// Delivers to this machine too, but goes when its link is switched off (`broadcast`).
    Broadcast,
    /// Drops silently (`blackhole`).
    Drop,
    /// Refuses (`unreachable`, `prohibit`, and `throw`, as no table comes after).
    Refuse,
}

/// One way a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The link's index; 0 for one we cannot use.
    pub link: u32,
    /// The gateway; without one the destination itself is attached.
    pub gateway: Option<IpAddr>,
    /// Its share, against the others'.
    pub weight: u16,
}

/// By what a route leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// By a next-hop object.
    Object(u32),
    /// By next hops of its own, in order; none, of a route that does not forward.
    Hops(Vec<Hop>),
}

/// How a route comes beside others of the same prefix and metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before them.
    First,
    /// Behind them.
    Last,
    /// In place of the first.
    Instead,
}

/// A route as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The table it stands in.
    pub table: Table,
    /// Its destinations.
    pub prefix: Prefix,
    /// The lower, the better.
    pub metric: u32,
    /// What it does.
    pub action: Action,
    /// By what.
    pub way: Way,
    /// The address of ours packets are sent from (IPv4): with that address goes the route.
    pub source: Option<IpAddr>,
    /// Who made it (`RTPROT_*`).
    pub protocol: u8,
    /// Where it comes, of a notification of a new one.
    pub place: Place,
    /// Links of its next hops that packets do not leave by now (`RTNH_F_DEAD`), of one with several.
    pub dead: Vec<u32>,
}

/// Reads a route; `flags` are the message's.
///
/// # Errors
/// It is of another table or family, a cached one, for one type of service or source only, or multicast.
pub fn read(body: &[u8], flags: u16) -> Result<Route, Unread> {
    let malformed = Unread::Malformed;
    let &[family, len, source_len, tos, table, protocol, _, kind, ..] = body else {
        return Err(malformed);
    };
    let cloned = u32_at(body, 8).ok_or(malformed)? & CLONED != 0;
    if !matches!(family, INET | INET6) || cloned || tos != 0 || source_len != 0 {
        return Err(Unread::NotOurs);
    }
    let mut found = Found {
        table: u32::from(table),
        ..Found::default()
    };
    for (kind, value) in attributes(body.get(FIXED..).ok_or(malformed)?) {
        found.take(kind, value);
    }
    let table = match found.table {
        MAIN => Table::Main,
        LOCAL => Table::Local,
        _ => return Err(Unread::NotOurs),
    };
    let action = match kind {
        1 => Action::Forward,
        2 | 4 => Action::Deliver,
        3 => Action::Broadcast,
        6 => Action::Drop,
        7..=9 => Action::Refuse,
        _ => return Err(Unread::NotOurs),
    };
    let destination = found.destination.or_else(|| unspecified(family));
    let destination = destination.filter(|address| address.is_ipv4() == (family == INET));
    let prefix = destination.and_then(|address| Prefix::new(address, len));
    Ok(Route {
        table,
        prefix: prefix.ok_or(malformed)?,
        metric: found.metric,
        action,
        source: found.source.filter(|_| family == INET),
        dead: std::mem::take(&mut found.dead),
        way: found.way(),
        protocol,
        place: match flags & (REPLACE | APPEND) {
            0 if family == INET => Place::First,
            0 | APPEND => Place::Last,
            _ => Place::Instead,
        },
    })
}

/// What a route's attributes say.
#[derive(Default)]
struct Found {
    table: u32,
    destination: Option<IpAddr>,
    metric: u32,
    source: Option<IpAddr>,
    link: Option<u32>,
    gateway: Option<IpAddr>,
    several: Vec<Hop>,
    dead: Vec<u32>,
    object: Option<u32>,
    tunnel: bool,
}

impl Found {
    fn take(&mut self, kind: u16, value: &[u8]) {
        match kind {
            DESTINATION => self.destination = address(value),
            OIF => self.link = number(value),
            GATEWAY => self.gateway = address(value),
            VIA => self.gateway = address_of_family(value),
            PRIORITY => self.metric = number(value).unwrap_or(0),
            PREFSRC => self.source = address(value),
            TABLE => self.table = number(value).unwrap_or(0),
            NEXT_HOP => self.object = number(value).filter(|id| *id > 0),
            MULTIPATH => (self.several, self.dead) = multipath(value),
            ENCAP_TYPE => self.tunnel = true,
            _ => {}
        }
    }

    fn way(self) -> Way {
        if let Some(id) = self.object {
            return Way::Object(id);
        }
        let mut hops = self.several;
        if let [only] = hops.as_mut_slice() {
            only.weight = 1;
        }
        if let (true, Some(link)) = (hops.is_empty(), self.link) {
            hops.push(Hop {
                link: if self.tunnel { 0 } else { link },
                gateway: self.gateway,
                weight: 1,
            });
        }
        hops.sort_unstable();
        Way::Hops(hops)
    }
}

/// The next hops of `RTA_MULTIPATH`: `struct rtnexthop`, each with attributes of its own; and the links of those that are dead.
fn multipath(value: &[u8]) -> (Vec<Hop>, Vec<u32>) {
    let mut rest = value;
    let (mut hops, mut dead) = (vec![], vec![]);
    while let Some(len) = u16_at(rest, 0).map(usize::from) {
        let (Some(entry), Some(link)) = (rest.get(8..len), u32_at(rest, 4)) else {
            break;
        };
        let weight = rest.get(3).copied().unwrap_or(0);
        let mut hop = Hop {
            link,
            gateway: None,
            weight: u16::from(weight) + 1,
        };
        for (kind, value) in attributes(entry) {
            match kind {
                GATEWAY => hop.gateway = address(value),
                VIA => hop.gateway = address_of_family(value),
                ENCAP_TYPE => hop.link = 0,
                _ => {}
            }
        }
        if rest.get(2).is_some_and(|flags| flags & DEAD != 0) {
            dead.push(link);
        }
        hops.push(hop);
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    (hops, dead)
}
