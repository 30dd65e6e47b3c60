//! Routes: `RTM_NEWROUTE`, `RTM_DELROUTE`.

use std::net::IpAddr;
use std::time::Duration;

use npcc_pipeline::route::prefix::Prefix;

use super::attribute::{
    INET, INET6, address, address_of_family, attributes, number, u16_at, u32_at, unspecified,
};
use super::message::{APPEND, REPLACE};
use super::not_followed::{NotFollowed, Reason};
use super::unread::Unread;

/// `RTM_NEWROUTE`.
pub const NEW: u16 = 24;
/// `RTM_DELROUTE`.
pub const GONE: u16 = 25;
/// Octets of `struct rtmsg`.
pub const FIXED: usize = 12;

/// `RTA_DST`.
pub const DESTINATION: u16 = 1;
/// `RTA_SRC`.
const SOURCE: u16 = 2;
/// `RTA_OIF`.
pub const OIF: u16 = 4;
/// `RTA_GATEWAY`.
pub const GATEWAY: u16 = 5;
/// `RTA_PRIORITY`.
pub const PRIORITY: u16 = 6;
/// `RTA_PREFSRC`.
const PREFSRC: u16 = 7;
/// `RTA_METRICS`: attributes of their own.
pub const METRICS: u16 = 8;
/// `RTAX_MTU`, in [`METRICS`]. `RTAX_LOCK` beside it concerns path MTU discovery of Linux's own packets only.
pub const METRIC_MTU: u16 = 2;
/// `RTA_MULTIPATH`.
pub const MULTIPATH: u16 = 9;
/// `RTA_CACHEINFO`: `struct rta_cacheinfo`.
pub const CACHE_INFO: u16 = 12;
/// `RTA_TABLE`.
pub const TABLE: u16 = 15;
/// `RTA_VIA`: a gateway of another family.
pub const VIA: u16 = 18;
/// `RTA_PREF`: preference of an IPv6 route (RFC 4191).
pub const PREFERENCE: u16 = 20;
/// `RTA_ENCAP_TYPE`: encapsulation into a tunnel, which the switch does not support.
const ENCAP_TYPE: u16 = 21;
/// `RTA_NH_ID`.
pub const NEXT_HOP: u16 = 30;

/// `RTNH_F_DEAD`.
const DEAD: u8 = 1;
/// `RTM_F_CLONED`: a cached copy.
const CLONED: u32 = 0x200;
/// `RT_TABLE_MAIN`.
pub const MAIN: u32 = 254;
/// `RT_TABLE_DEFAULT`.
pub const DEFAULT: u32 = 253;
/// `RT_TABLE_LOCAL`.
pub const LOCAL: u32 = 255;

/// Routing table: one of the two that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Table `local`: local addresses; looked up before the other.
    Local,
    /// Table `main`: all forwarding routes.
    Main,
}

/// Action of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Forwards to its next hops.
    Forward,
    /// Delivers to this machine (`local`, `anycast`).
    Deliver,
    /// Delivers to this machine too, but disappears when its link is set down (`broadcast`).
    Broadcast,
    /// Drops silently (`blackhole`).
    Drop,
    /// Rejects (`unreachable`, `prohibit`, and `throw`, as no table comes after).
    Refuse,
}

/// Next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// Index of the link; 0 for one the switch cannot use.
    pub link: u32,
    /// Gateway; without one the destination itself is attached.
    pub gateway: Option<IpAddr>,
    /// Weight of the next hop relative to the others'.
    pub weight: u16,
}

/// Next hops of a route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Next-hop object of this id.
    Object(u32),
    /// Next hops of the route's own, in order; empty for a route that does not forward.
    Hops(Vec<Hop>),
}

/// Preference of an IPv6 route among those of the same prefix and metric (RFC 4191); the first is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Preference {
    /// `ICMPV6_ROUTER_PREF_HIGH`.
    High,
    /// `ICMPV6_ROUTER_PREF_MEDIUM`, and any IPv4 route.
    #[default]
    Medium,
    /// `ICMPV6_ROUTER_PREF_LOW`.
    Low,
}

/// Position of a route beside others of the same prefix and metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In front of the others.
    First,
    /// Behind the others.
    Last,
    /// Replaces the first.
    Instead,
}

/// Route as the kernel has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Routing table that contains the route.
    pub table: Table,
    /// Destination prefix.
    pub prefix: Prefix,
    /// Metric of the route; the lower, the better.
    pub metric: u32,
    /// Action of the route.
    pub action: Action,
    /// Next hops of the route.
    pub way: Way,
    /// Largest IP packet in bytes that the route allows; 0 for that of its link.
    pub mtu: u16,
    /// Preference among routes of the same prefix and metric (IPv6).
    pub preference: Preference,
    /// Time left until the kernel uses the route no more (IPv6), zero if it has passed; `None` for a route that does not expire.
    pub expires: Option<Duration>,
    /// Preferred source address (IPv4): the route disappears with that address.
    pub source: Option<IpAddr>,
    /// Origin of the route (`RTPROT_*`).
    pub protocol: u8,
    /// Position among routes of the same prefix and metric, for a notification of a new route.
    pub place: Place,
    /// Links of dead next hops (`RTNH_F_DEAD`) of a multipath route.
    pub dead: Vec<u32>,
}

/// Content of a route message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Route that is followed.
    Route(Route),
    /// Route that is not.
    NotFollowed(NotFollowed),
}

/// Parses a route message; `flags` are the message's.
///
/// # Errors
/// The route is of another table or family, cached, or multicast.
pub fn read(body: &[u8], flags: u16) -> Result<Read, Unread> {
    let malformed = Unread::Malformed;
    let &[family, len, source_len, tos, table, protocol, _, kind, ..] = body else {
        return Err(malformed);
    };
    let cloned = u32_at(body, 8).ok_or(malformed)? & CLONED != 0;
    if !matches!(family, INET | INET6) || cloned {
        return Err(Unread::NotOurs);
    }
    let mut found = Found {
        table: u32::from(table),
        ..Found::default()
    };
    for (kind, value) in attributes(body.get(FIXED..).ok_or(malformed)?) {
        found.take(kind, value);
    }
    let destination = found.destination.or_else(|| unspecified(family));
    let destination = destination.filter(|address| address.is_ipv4() == (family == INET));
    let prefix = destination.and_then(|address| Prefix::new(address, len));
    let prefix = prefix.ok_or(malformed)?;
    if matches!(found.table, MAIN | LOCAL | DEFAULT) {
        let from = found.from.or_else(|| unspecified(family));
        let from = from.filter(|_| source_len > 0);
        let from = from.and_then(|from| Prefix::new(from, source_len));
        if let Some((reason, detail)) = not_followed(found.table, from, tos) {
            return Ok(Read::NotFollowed(NotFollowed {
                prefix,
                table: Some(found.table),
                metric: found.metric,
                reason,
                detail,
            }));
        }
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
    Ok(Read::Route(Route {
        table,
        prefix,
        metric: found.metric,
        action,
        mtu: mtu_of(family, found.mtu),
        preference: found.preference,
        expires: found.expires.filter(|_| family == INET6),
        source: found.source.filter(|_| family == INET),
        dead: std::mem::take(&mut found.dead),
        way: found.way(),
        protocol,
        place: match flags & (REPLACE | APPEND) {
            0 if family == INET => Place::First,
            0 | APPEND => Place::Last,
            _ => Place::Instead,
        },
    }))
}

/// Returns the reason why a route is not followed for its table, its source prefix or its TOS; `None` if it is.
fn not_followed(table: u32, source: Option<Prefix>, tos: u8) -> Option<(Reason, String)> {
    if let Some(source) = source {
        return Some((Reason::Source, source.to_string()));
    }
    if tos != 0 {
        return Some((Reason::Tos, format!("{tos:#04x}")));
    }
    (table == DEFAULT).then_some((Reason::DefaultTable, String::new()))
}

/// Attributes of a route, collected.
#[derive(Default)]
struct Found {
    table: u32,
    destination: Option<IpAddr>,
    from: Option<IpAddr>,
    metric: u32,
    source: Option<IpAddr>,
    link: Option<u32>,
    gateway: Option<IpAddr>,
    several: Vec<Hop>,
    dead: Vec<u32>,
    object: Option<u32>,
    mtu: Option<u32>,
    preference: Preference,
    expires: Option<Duration>,
    tunnel: bool,
}

impl Found {
    fn take(&mut self, kind: u16, value: &[u8]) {
        match kind {
            DESTINATION => self.destination = address(value),
            SOURCE => self.from = address(value),
            OIF => self.link = number(value),
            GATEWAY => self.gateway = address(value),
            VIA => self.gateway = address_of_family(value),
            PRIORITY => self.metric = number(value).unwrap_or(0),
            METRICS => {
                let mut metrics = attributes(value);
                let mtu = metrics.find_map(|(kind, value)| (kind == METRIC_MTU).then_some(value));
                self.mtu = mtu.and_then(number).filter(|mtu| *mtu > 0);
            }
            CACHE_INFO => self.expires = u32_at(value, 8).and_then(left),
            PREFERENCE => {
                self.preference = match value {
                    [1, ..] => Preference::High,
                    [3, ..] => Preference::Low,
                    _ => Preference::Medium,
                }
            }
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

/// Returns the MTU that a route allows: the kernel takes no less than a link must have (RFC 791, RFC 8200) for what it forwards.
fn mtu_of(family: u8, metric: Option<u32>) -> u16 {
    let least = if family == INET { 68 } else { 1280 };
    let mtu = metric.map_or(0, |mtu| mtu.max(least));
    u16::try_from(mtu).unwrap_or(u16::MAX)
}

/// Returns the time left of a route by its `rta_expires`, in hundredths of a second: negative once it has passed, 0 if it never does.
fn left(expires: u32) -> Option<Duration> {
    let hundredths = expires.cast_signed();
    let left = u64::try_from(hundredths).unwrap_or(0);
    (hundredths != 0).then(|| Duration::from_millis(left.saturating_mul(10)))
}

/// Parses the next hops of `RTA_MULTIPATH`: `struct rtnexthop`, each with attributes of its own; also returns the links of dead ones.
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
