//! Look-ups: the kernel's own answers to "where does a packet to this host go", against the switch's routes.
//!
//! The periodic comparison reads the kernel's tables by the same code that follows them, so an attribute that this code does not read is
//! missing on both sides. A look-up (`RTM_GETROUTE`) is the kernel's decision after all attributes, decoded by a library. Law: where the
//! switch has several next hops the kernel's answer is one of them. An answer that differs in two rounds, a second apart, is reported.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use netlink_packet_core::Parseable as _;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteType, RouteVia,
};
use nix::errno::Errno;
use npcc_pipeline::route::prefix::{Family, Prefix};

use super::requests::Requests;
use super::state::State;
use crate::table::model::Model;
use crate::wanted::decide::host;
use crate::wanted::differ::Installed;
use crate::wanted::groups::Group;
use crate::wanted::members::{GroupKey, hops};
use crate::wire::neighbor::FAILED;
use crate::wire::request::look_up;
use crate::wire::route::Way;

/// Interval between rounds.
const EVERY: Duration = Duration::from_secs(1);
/// Maximum number of look-ups of a round, some 15 us each.
const ROUND: usize = 64;
/// Maximum number of destinations whose answers differ that are looked at again.
const DOUBTED: usize = 16;
/// Maximum number of destinations of each kind that are kept.
const KEPT: usize = 256;

/// Packet to look up: destination, and its sender, which decides only for IPv6. IPv4's output look-up takes an own address as sender only.
pub type Packet = (IpAddr, Option<IpAddr>);

/// Destination whose packets the kernel would send another way than the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// Destination of the packet.
    pub destination: IpAddr,
    /// Kernel's answer, and what the switch does.
    pub words: String,
}

/// Answer of a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Sent by this link to a gateway, or to the destination itself, and the MTU of the route, or 0; `None` for one that expires, as may one
    /// that path MTU discovery found for Linux's own packets.
    By(u32, Option<IpAddr>, Option<u16>),
    /// An address of this machine.
    Local,
    /// Dropped silently.
    Blackhole,
    /// No route, or one that refuses.
    Refused,
    /// No answer that says anything about forwarding.
    Unknown,
}

/// Destinations to look up, and those whose answers differed.
#[derive(Debug)]
pub(super) struct LookUps {
    /// Packets of flows, and of installed prefixes; each list is walked round and round.
    flows: Walk,
    drawn: Walk,
    /// Packets whose answers differed in the last round; true if that was reported.
    doubted: BTreeMap<Packet, bool>,
    due: Instant,
    random: RandomState,
    drawn_so_far: u64,
}

/// List of packets that is walked round and round.
#[derive(Debug, Default)]
struct Walk {
    all: Vec<Packet>,
    at: usize,
}

impl Walk {
    fn set(&mut self, mut all: Vec<Packet>) {
        all.truncate(KEPT);
        self.all = all;
    }

    /// Returns the next packets, at most `most` of them, each once.
    fn next(&mut self, most: usize) -> Vec<Packet> {
        let count = most.min(self.all.len());
        let next = self
            .all
            .iter()
            .cycle()
            .skip(self.at % self.all.len().max(1));
        let next = next.take(count).copied().collect();
        self.at = (self.at + count) % self.all.len().max(1);
        next
    }
}

impl LookUps {
    pub(super) fn new() -> LookUps {
        LookUps {
            flows: Walk::default(),
            drawn: Walk::default(),
            doubted: BTreeMap::new(),
            due: Instant::now() + EVERY,
            random: RandomState::default(),
            drawn_so_far: 0,
        }
    }

    /// Replaces the packets of flows.
    pub(super) fn set_flows(&mut self, flows: Vec<Packet>) {
        self.flows.set(flows);
    }

    /// Draws hosts of installed prefixes anew, with equal chances for each prefix.
    pub(super) fn draw(&mut self, state: &State) {
        let mut kept: Vec<Packet> = Vec::with_capacity(KEPT);
        for (seen, (prefix, _)) in state.differ.installed().enumerate() {
            let place = if seen < KEPT {
                seen
            } else {
                usize::try_from(self.random() % (seen as u64 + 1)).unwrap_or(usize::MAX)
            };
            if place < KEPT {
                let packet = (self.host_of(prefix), None);
                match kept.get_mut(place) {
                    Some(known) => *known = packet,
                    None => kept.push(packet),
                }
            }
        }
        self.drawn.set(kept);
    }

    fn random(&mut self) -> u64 {
        self.drawn_so_far += 1;
        self.random.hash_one(self.drawn_so_far)
    }

    /// Returns a random host of a prefix.
    fn host_of(&mut self, prefix: Prefix) -> IpAddr {
        let random = u128::from(self.random()) << 64 | u128::from(self.random());
        let bits = prefix.bits() | random.unbounded_shr(prefix.len().into());
        match prefix.family() {
            Family::V4 => {
                let top = u32::try_from(bits >> 96).unwrap_or_default();
                IpAddr::V4(Ipv4Addr::from_bits(top))
            }
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }
    }

    /// Returns true if a round is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Makes a round; returns the destinations whose answers differ as in the round before, each once.
    pub(super) fn round(
        &mut self,
        requests: &mut Requests,
        state: &mut State,
    ) -> io::Result<Vec<Differing>> {
        self.due = Instant::now() + EVERY;
        let mut packets: Vec<Packet> = self.doubted.keys().copied().collect();
        packets.extend(self.flows.next((ROUND - packets.len()) / 2));
        packets.extend(self.drawn.next(ROUND - packets.len()));
        packets.sort_unstable();
        packets.dedup();
        let mut lasting = vec![];
        for packet in packets {
            let Some(differing) = look(packet, requests, state)? else {
                self.doubted.remove(&packet);
                continue;
            };
            let reported = self.doubted.get(&packet).copied();
            if reported == Some(false) {
                state.counts.lookups_differing += 1;
                lasting.push(differing);
            }
            if reported.is_some() || self.doubted.len() < DOUBTED {
                self.doubted.insert(packet, reported.is_some());
            }
        }
        Ok(lasting)
    }

    /// Looks up all packets that are known now; returns those whose answers differ.
    pub(super) fn all(
        &self,
        requests: &mut Requests,
        state: &mut State,
    ) -> io::Result<Vec<(Packet, Differing)>> {
        let mut all: Vec<Packet> = self.doubted.keys().copied().collect();
        all.extend(self.flows.all.iter().chain(&self.drawn.all));
        all.sort_unstable();
        all.dedup();
        let mut found = vec![];
        for packet in all {
            found.extend(look(packet, requests, state)?.map(|one| (packet, one)));
        }
        Ok(found)
    }
}

/// Looks a packet up in the kernel and in the switch; returns the difference, if there is one.
pub(super) fn look(
    (destination, sender): Packet,
    requests: &mut Requests,
    state: &mut State,
) -> io::Result<Option<Differing>> {
    let Some(prefix) = host(destination) else {
        return Ok(None);
    };
    let sender = sender.filter(|sender| sender.is_ipv6() && destination.is_ipv6());
    let answer = ask(destination, sender, requests)?;
    state.counts.lookups += 1;
    let differ = &state.differ;
    let installed = differ.covering(prefix);
    let group = match installed {
        Some(Installed::By(id)) => differ.group(id),
        _ => None,
    };
    let model = &state.model;
    let port = |link: u32| differ.ports().place(link).is_some();
    let agrees = match (answer, installed, group) {
        // A route that is left out, or has no room, is shown as such.
        (Answer::Unknown, ..) | (_, Some(Installed::Refused), _) => true,
        (Answer::By(link, ..), Some(Installed::LeftOut) | None, _) => !port(link),
        (_, Some(Installed::LeftOut), _) => false,
        (_, _, Some(group)) => {
            agrees(model, group, answer) || all_failed(model, group, destination)
        }
        (answer, None, _) => answer == Answer::Refused,
        (_, Some(Installed::By(_)), None) => true,
    };
    if agrees {
        return Ok(None);
    }
    let switch = match (installed, group) {
        (Some(Installed::LeftOut), _) => "left out".to_owned(),
        (_, Some(group)) => group_in_words(model, group),
        _ => "no route".to_owned(),
    };
    let words = format!(
        "Linux: {}; the switch: {switch}",
        answer_in_words(model, answer)
    );
    Ok(Some(Differing { destination, words }))
}

/// Asks the kernel where it would send a packet.
fn ask(destination: IpAddr, sender: Option<IpAddr>, requests: &mut Requests) -> io::Result<Answer> {
    let mut found = Answer::Unknown;
    let done = requests.ask_for(look_up(destination, sender), |message| {
        found = RouteMessage::parse(message.body).map_or(Answer::Unknown, |route| of(&route));
    });
    let Err(error) = done else {
        return Ok(found);
    };
    Ok(match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::EACCES | Errno::EAGAIN) => {
            Answer::Refused
        }
        // IPv4's answer for a blackhole.
        Some(Errno::EINVAL) => Answer::Blackhole,
        Some(_) => Answer::Unknown,
        None => return Err(error),
    })
}

/// Reads the kernel's answer.
fn of(route: &RouteMessage) -> Answer {
    let (mut link, mut gateway, mut mtu) = (None, None, Some(0));
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Oif(index) => link = Some(*index),
            RouteAttribute::Gateway(RouteAddress::Inet(v4))
            | RouteAttribute::Via(RouteVia::Inet(v4)) => gateway = Some(IpAddr::V4(*v4)),
            RouteAttribute::Gateway(RouteAddress::Inet6(v6))
            | RouteAttribute::Via(RouteVia::Inet6(v6)) => gateway = Some(IpAddr::V6(*v6)),
            RouteAttribute::Metrics(metrics) => {
                let metric = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) => Some(*mtu),
                    _ => None,
                });
                // Linux forwards packets of the least MTU of a link whatever the metric says.
                let least = match route.header.address_family {
                    AddressFamily::Inet6 => 1280,
                    _ => 68,
                };
                let metric = metric.map_or(0, |metric| metric.max(least));
                let metric = u16::try_from(metric).unwrap_or(u16::MAX);
                mtu = mtu.map(|_| metric);
            }
            RouteAttribute::CacheInfo(info) if info.expires != 0 => mtu = None,
            _ => {}
        }
    }
    match (route.header.kind, link) {
        (RouteType::Unicast, Some(link)) => Answer::By(link, gateway, mtu),
        (RouteType::Local | RouteType::Broadcast | RouteType::Anycast, _) => Answer::Local,
        (RouteType::BlackHole, _) => Answer::Blackhole,
        (RouteType::Unreachable | RouteType::Prohibit | RouteType::Throw, _) => Answer::Refused,
        _ => Answer::Unknown,
    }
}

/// Returns true if the kernel's answer is what a group does, or one of its next hops.
fn agrees(model: &Model, group: &Group, answer: Answer) -> bool {
    let among = |way: &Way| match answer {
        Answer::By(link, gateway, _) => {
            let hops = hops(model, way);
            hops.iter()
                .any(|hop| (hop.link, hop.gateway) == (link, gateway))
        }
        // A next-hop object may drop.
        Answer::Blackhole => matches!(way, Way::Object(_)),
        _ => false,
    };
    if let Answer::By(_, _, Some(mtu)) = answer
        && mtu_of(model, group) != mtu
    {
        return false;
    }
    match group.key {
        GroupKey::Local(_) => answer == Answer::Local,
        GroupKey::Drop => answer == Answer::Blackhole,
        GroupKey::Refuse => answer == Answer::Refused,
        GroupKey::Object(id, _) => among(&Way::Object(id)),
        GroupKey::Way(way, _) => model.ways().get(way).is_none_or(|taken| among(&taken.way)),
        GroupKey::Host(link, ..) => matches!(answer, Answer::By(by, None, _) if by == link),
    }
}

/// Returns the MTU that the routes of a group allow, or 0.
fn mtu_of(model: &Model, group: &Group) -> u16 {
    match group.key {
        GroupKey::Object(_, mtu) | GroupKey::Host(_, _, mtu) => mtu,
        GroupKey::Way(way, _) => model.ways().get(way).map_or(0, |taken| taken.mtu),
        GroupKey::Local(_) | GroupKey::Drop | GroupKey::Refuse => 0,
    }
}

/// Returns true if no next hop of an IPv6 group answers: where `forwarding` is off the kernel looks for another router then, of any shorter
/// prefix, as a host does (RFC 4191, 3.2).
fn all_failed(model: &Model, group: &Group, destination: IpAddr) -> bool {
    let hangs_on = &group.members.hangs_on;
    let failed = |(link, address): &(u32, IpAddr)| {
        let known = model.neighbors().get(*link, *address);
        known.is_some_and(|one| one.state & FAILED != 0)
    };
    destination.is_ipv6() && !hangs_on.is_empty() && hangs_on.iter().all(failed)
}

fn hop_in_words(model: &Model, link: u32, gateway: Option<IpAddr>) -> String {
    let name = model.links().get(link).map_or("?", |link| &link.name);
    match gateway {
        Some(gateway) => format!("via {gateway} {name}"),
        None => format!("connected {name}"),
    }
}

fn answer_in_words(model: &Model, answer: Answer) -> String {
    match answer {
        Answer::By(link, gateway, None | Some(0)) => hop_in_words(model, link, gateway),
        Answer::By(link, gateway, Some(mtu)) => {
            format!("{} mtu {mtu}", hop_in_words(model, link, gateway))
        }
        Answer::Local => "local".to_owned(),
        Answer::Blackhole => "blackhole".to_owned(),
        Answer::Refused => "no route".to_owned(),
        Answer::Unknown => "no answer".to_owned(),
    }
}

fn group_in_words(model: &Model, group: &Group) -> String {
    let way = match group.key {
        GroupKey::Local(_) => return "local".to_owned(),
        GroupKey::Drop => return "blackhole".to_owned(),
        GroupKey::Refuse => return "no route".to_owned(),
        GroupKey::Host(link, ..) => return hop_in_words(model, link, None),
        GroupKey::Object(id, _) => Way::Object(id),
        GroupKey::Way(way, _) => model
            .ways()
            .get(way)
            .map_or(Way::Hops(vec![]), |taken| taken.way.clone()),
    };
    let hops = hops(model, &way);
    let words = hops
        .iter()
        .take(4)
        .map(|hop| hop_in_words(model, hop.link, hop.gateway));
    let words = words.collect::<Vec<_>>().join(", ");
    match mtu_of(model, group) {
        0 => words,
        mtu => format!("{words} mtu {mtu}"),
    }
}
