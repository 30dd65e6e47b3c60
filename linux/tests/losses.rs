//! Streams of a model kernel, with messages lost and dumps in between, end in the kernel's state, and the switch has the state
//! desired for it, computed anew in the simplest way.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::common::kernel::{Held, Kernel};
use crate::common::{Book, prefix};
use npcc_linux::fib::Member;
use npcc_linux::table::model::Model;
use npcc_linux::wanted::differ::Differ;
use npcc_linux::wanted::ports::{Place, Ports};
use npcc_linux::wire::address::Address;
use npcc_linux::wire::event::Event;
use npcc_linux::wire::nexthop::NextHopKind;
use npcc_linux::wire::request::Dump;
use npcc_linux::wire::route::{Action, Hop, Table, Way};
use npcc_pipeline::route::nexthop::{Adjacency, Kind};
use npcc_pipeline::route::prefix::{Family, Prefix};
use npcc_pipeline::units::{Mac, PortId};
use proptest::prelude::*;

/// Number of links; the last is no port.
const LINKS: u32 = 4;

#[derive(Debug, Clone)]
enum Step {
    Admin(u32, bool),
    Carrier(u32, bool),
    AddAddress(u32, u8),
    RemoveAddress(u32, u8),
    Neighbor(u32, u8, bool, Option<u8>),
    Single(u32, u32, Option<u8>),
    Group(u32, Vec<(u32, u16)>),
    Blackhole(u32),
    RemoveNextHop(u32),
    Object(u8, u8, u32),
    Plain(u8, u8, Vec<(u32, Option<u8>, u16)>, Option<(u32, u8)>),
    Other(u8, u8, bool),
    RemoveRoute(u8, u8),
    /// The next `n` messages are lost; a dump follows after as many steps.
    Lose(usize),
    Give,
    Dump,
}

fn step() -> impl Strategy<Value = Step> {
    let link = 1..=LINKS;
    let hop = (link.clone(), prop::option::of(0u8..4), 1u16..3);
    prop_oneof![
        2 => (link.clone(), any::<bool>()).prop_map(|(l, up)| Step::Admin(l, up)),
        2 => (link.clone(), any::<bool>()).prop_map(|(l, up)| Step::Carrier(l, up)),
        2 => (link.clone(), 0u8..3).prop_map(|(l, n)| Step::AddAddress(l, n)),
        1 => (link.clone(), 0u8..3).prop_map(|(l, n)| Step::RemoveAddress(l, n)),
        5 => (link.clone(), 0u8..4, any::<bool>(), prop::option::of(0u8..3)).prop_map(|(l, n, v6, mac)| Step::Neighbor(l, n, v6, mac)),
        3 => (1u32..5, link.clone(), prop::option::of(0u8..4)).prop_map(|(id, l, g)| Step::Single(id, l, g)),
        3 => (5u32..8, prop::collection::vec((1u32..5, 1u16..3), 1..3)).prop_map(|(id, m)| Step::Group(id, m)),
        1 => (1u32..5).prop_map(Step::Blackhole),
        1 => (1u32..8).prop_map(Step::RemoveNextHop),
        6 => (0u8..12, 0u8..2, 1u32..8).prop_map(|(p, m, id)| Step::Object(p, m, id)),
        6 => (0u8..12, 0u8..2, prop::collection::vec(hop, 1..3), prop::option::of((link, 0u8..3)))
            .prop_map(|(p, m, hops, source)| Step::Plain(p, m, hops, source)),
        1 => (0u8..12, 0u8..2, any::<bool>()).prop_map(|(p, m, drop)| Step::Other(p, m, drop)),
        3 => (0u8..12, 0u8..2).prop_map(|(p, m)| Step::RemoveRoute(p, m)),
        1 => (1usize..30).prop_map(Step::Lose),
        4 => Just(Step::Give),
        1 => Just(Step::Dump),
    ]
}

/// Returns a prefix: some within others, some that contain neighbours, some host prefixes.
fn some_prefix(n: u8) -> Prefix {
    let all = [
        "0.0.0.0/0",
        "20.0.0.0/8",
        "20.1.0.0/16",
        "10.1.0.0/24",
        "10.2.0.0/24",
        "10.1.0.2/32",
        "10.1.0.0/30",
        "::/0",
        "2001:db8:1::/64",
        "2001:db8:2::/64",
        "2001:db8:ff::/48",
        "2001:db8:1::2/128",
    ];
    prefix(all[usize::from(n)])
}

fn host(link: u32, n: u8, v6: bool) -> IpAddr {
    if v6 {
        format!("2001:db8:{link}::{}", n + 1).parse().unwrap()
    } else {
        format!("10.{link}.0.{}", n + 1).parse().unwrap()
    }
}

fn own(link: u32, n: u8) -> Address {
    let address = if n == 2 {
        format!("2001:db8:{link}::100")
    } else {
        format!("10.{link}.0.{}", 100 + n)
    };
    Address {
        link,
        address: address.parse().unwrap(),
        len: if n == 2 { 64 } else { 24 },
    }
}

fn act(kernel: &mut Kernel, step: &Step, loud: bool) {
    match step {
        Step::Admin(link, up) => kernel.admin(*link, *up, loud),
        Step::Carrier(link, carrier) => kernel.carrier(*link, *carrier, loud),
        Step::AddAddress(link, n) => kernel.add_address(own(*link, *n)),
        Step::RemoveAddress(link, n) => kernel.remove_address(own(*link, *n)),
        Step::Neighbor(link, n, v6, mac) => {
            kernel.neighbor(
                *link,
                host(*link, *n, *v6),
                mac.map(|n| Mac([2, 0, 0, 0, 9, n])),
            );
        }
        Step::Single(id, link, gateway) => {
            let gateway = gateway.map(|n| host(*link, n, n & 1 == 1));
            kernel.next_hop(
                *id,
                NextHopKind::By {
                    link: *link,
                    gateway,
                },
            );
        }
        Step::Group(id, members) => {
            let mut members = members.clone();
            members.sort_unstable();
            members.dedup_by_key(|(id, _)| *id);
            kernel.next_hop(*id, NextHopKind::Group(members));
        }
        Step::Blackhole(id) => kernel.next_hop(*id, NextHopKind::Blackhole),
        Step::RemoveNextHop(id) => kernel.remove_next_hop(*id, loud),
        Step::Object(p, metric, id) => {
            kernel.add_route(
                some_prefix(*p),
                u32::from(*metric),
                Action::Forward,
                Way::Object(*id),
                None,
            );
        }
        Step::Plain(p, metric, hops, source) => {
            let prefix = some_prefix(*p);
            let v6 = prefix.family() == Family::V6;
            let mut hops: Vec<Hop> = hops
                .iter()
                .map(|(link, gateway, weight)| Hop {
                    link: *link,
                    gateway: gateway.map(|n| host(*link, n, v6)),
                    weight: *weight,
                })
                .collect();
            hops.sort_unstable();
            hops.dedup_by_key(|hop| (hop.link, hop.gateway));
            if let [only] = hops.as_mut_slice() {
                only.weight = 1;
            }
            let source = source
                .map(|(link, n)| own(link, n).address)
                .filter(IpAddr::is_ipv4);
            kernel.add_route(
                prefix,
                u32::from(*metric),
                Action::Forward,
                Way::Hops(hops),
                source,
            );
        }
        Step::Other(p, metric, drop) => {
            let action = if *drop { Action::Drop } else { Action::Refuse };
            kernel.add_route(
                some_prefix(*p),
                u32::from(*metric),
                action,
                Way::Hops(vec![]),
                None,
            );
        }
        Step::RemoveRoute(p, metric) => kernel.remove_route(some_prefix(*p), u32::from(*metric)),
        Step::Lose(_) | Step::Give | Step::Dump => {}
    }
}

fn ports() -> Ports {
    let place = |n: u32| Place {
        port: PortId(n as u8),
        vlan: 0,
        mac: Mac([2, 0, 0, 0, 0, n as u8]),
    };
    Ports::new((1..LINKS).map(|n| (format!("p{n}"), place(n))).collect())
}

/// Computes the expected forwarding table from the kernel's state alone.
fn plain(kernel: &Kernel) -> BTreeMap<Prefix, Vec<Member>> {
    let mut table = BTreeMap::new();
    let mut prefixes: Vec<Prefix> = kernel.routes.keys().map(|(_, prefix, _)| *prefix).collect();
    prefixes.extend(
        kernel
            .neighbors
            .keys()
            .map(|(_, address)| Prefix::host(*address)),
    );
    for prefix in prefixes {
        if let Some(members) = plain_of(kernel, prefix) {
            table.insert(prefix, members);
        }
    }
    table
}

fn best(kernel: &Kernel, prefix: Prefix) -> Option<(Table, &Held)> {
    let mut of = kernel.routes.iter().filter(|((_, at, _), _)| *at == prefix);
    of.next().map(|((table, _, _), route)| (*table, route))
}

fn one(adjacency: Adjacency) -> Vec<Member> {
    vec![Member {
        adjacency,
        weight: 1,
        gateway: None,
    }]
}

fn plain_of(kernel: &Kernel, prefix: Prefix) -> Option<Vec<Member>> {
    let own = best(kernel, prefix);
    if let Some((Table::Local, route)) = own {
        let Way::Hops(hops) = &route.way else {
            unreachable!()
        };
        let port = if hops[0].link < LINKS {
            hops[0].link as u8
        } else {
            0
        };
        return Some(one(Adjacency {
            port: PortId(port),
            ..Adjacency::unusable(Kind::Local)
        }));
    }
    let hops_of = |route: &Held| -> Option<Vec<Hop>> {
        match &route.way {
            Way::Hops(hops) => Some(
                hops.iter()
                    .filter(|hop| !route.dead.contains(&hop.link))
                    .copied()
                    .collect(),
            ),
            Way::Object(id) => {
                let of = |id: &u32, weight| match &kernel.next_hops[id] {
                    NextHopKind::By { link, gateway } => Some(Hop {
                        link: *link,
                        gateway: *gateway,
                        weight,
                    }),
                    _ => None,
                };
                match &kernel.next_hops[id] {
                    NextHopKind::Group(members) => {
                        members.iter().map(|(id, weight)| of(id, *weight)).collect()
                    }
                    NextHopKind::Blackhole => None,
                    _ => of(id, 1).map(|hop| vec![hop]),
                }
            }
        }
    };
    // A neighbour of that address, where the longest route says that its link is attached.
    let full = if prefix.family() == Family::V4 {
        32
    } else {
        128
    };
    if prefix.len() == full {
        let cover = (0..=full)
            .rev()
            .find_map(|len| best(kernel, prefix.covering(len)));
        let hosts = kernel
            .neighbors
            .iter()
            .filter(|((_, address), _)| Prefix::host(*address) == prefix);
        for ((link, address), mac) in hosts.filter(|((link, _), _)| *link < LINKS) {
            let Some((Table::Main, route)) = cover else {
                continue;
            };
            let all: Vec<Hop> = match &route.way {
                Way::Hops(hops) => hops.clone(),
                Way::Object(_) => hops_of(route).unwrap_or_default(),
            };
            if route.action == Action::Forward
                && all
                    .iter()
                    .any(|hop| hop.gateway.is_none() && hop.link == *link)
            {
                let port = Adjacency {
                    kind: Kind::Forward,
                    port: PortId(*link as u8),
                    vlan: 0,
                    dst: *mac,
                    src: Mac([2, 0, 0, 0, 0, *link as u8]),
                    mtu: 0,
                };
                return Some(vec![Member {
                    gateway: Some(*address),
                    ..one(port)[0]
                }]);
            }
        }
    }
    let (_, route) = own?;
    match route.action {
        Action::Drop => return Some(one(Adjacency::unusable(Kind::Blackhole))),
        Action::Refuse => return Some(one(Adjacency::unusable(Kind::NoRoute))),
        _ => {}
    }
    let Some(hops) = hops_of(route) else {
        return Some(one(Adjacency::unusable(Kind::Blackhole)));
    };
    let ports = |link: u32| link < LINKS;
    let any = match &route.way {
        Way::Hops(all) => all.iter().any(|hop| ports(hop.link)),
        Way::Object(_) => hops.iter().any(|hop| ports(hop.link)),
    };
    if !any {
        return None;
    }
    let member = |hop: &Hop| {
        let mac = hop
            .gateway
            .and_then(|gateway| kernel.neighbors.get(&(hop.link, gateway)));
        let port = PortId(hop.link as u8);
        let adjacency = match mac {
            Some(mac) => Adjacency {
                kind: Kind::Forward,
                port,
                vlan: 0,
                dst: *mac,
                src: Mac([2, 0, 0, 0, 0, hop.link as u8]),
                mtu: 0,
            },
            None => Adjacency {
                port,
                ..Adjacency::unusable(Kind::Unresolved)
            },
        };
        Member {
            adjacency,
            weight: hop.weight,
            gateway: hop.gateway,
        }
    };
    let mut members: Vec<Member> = hops
        .iter()
        .filter(|hop| ports(hop.link))
        .map(member)
        .collect();
    if members
        .iter()
        .any(|one| one.adjacency.kind == Kind::Forward)
    {
        members.retain(|one| one.adjacency.kind == Kind::Forward);
    }
    Some(members)
}

/// Dumps everything; notifications received meanwhile are applied after it.
fn resynchronise(model: &mut Model, kernel: &Kernel, meanwhile: Vec<Event>) {
    for (what, events) in Dump::ALL.into_iter().zip(kernel.dumps()) {
        model.begin_sweep();
        for event in events {
            model.apply_dumped(event);
        }
        model.sweep(what);
    }
    let before = model.doubts();
    for event in meanwhile {
        model.apply_late(event);
    }
    if model.doubts() != before {
        resynchronise(model, kernel, vec![]);
    }
}

fn routes_of(model: &Model) -> Vec<(Table, Prefix, u32, Action, Way)> {
    let routes = model.routes().iter();
    let mut all: Vec<_> = routes
        .map(|(prefix, entry)| {
            let way = model.ways().get(entry.way).unwrap().way.clone();
            (entry.table, prefix, entry.metric, entry.action, way)
        })
        .collect();
    all.sort();
    all
}

/// Plays a stream with losses, and a dump after which some of the last messages are repeated; the end state is the kernel's.
fn play(steps: &[Step], loud: bool, again: usize) -> Result<(), TestCaseError> {
    let mut kernel = Kernel::new(LINKS);
    let (mut model, mut book) = (Model::default(), Book::default());
    let mut differ = Differ::new(ports());
    resynchronise(&mut model, &kernel, vec![]);
    let (mut losing, mut torn) = (0usize, false);
    let mut last: Vec<Event> = vec![];
    for step in steps {
        act(&mut kernel, step, loud);
        for event in kernel.said() {
            last.push(event.clone());
            if losing > 0 {
                losing -= 1;
                torn = true;
            } else if !torn {
                model.apply(event);
            }
        }
        match step {
            Step::Lose(n) => losing += *n,
            // The last messages before the dump are repeated after it: they were queued.
            Step::Dump if torn || losing == 0 => {
                let from = last.len().saturating_sub(again);
                resynchronise(&mut model, &kernel, last[from..].to_vec());
                (losing, torn) = (0, false);
            }
            Step::Give => {
                let changes = model.take_changes();
                differ.sync(&model, changes, &mut book);
            }
            _ => {}
        }
    }
    if torn {
        resynchronise(&mut model, &kernel, vec![]);
    }
    let changes = model.take_changes();
    differ.sync(&model, changes, &mut book);
    let mut wanted: Vec<_> = kernel
        .routes
        .iter()
        .map(|((table, prefix, metric), route)| {
            (*table, *prefix, *metric, route.action, route.way.clone())
        })
        .collect();
    wanted.sort();
    prop_assert_eq!(routes_of(&model), wanted);
    prop_assert_eq!(book.table(), plain(&kernel));
    prop_assert!(differ.wrong(&model).is_empty());
    // Once more changes nothing.
    let before = (book.group_sets, book.route_sets, book.route_removals);
    resynchronise(&mut model, &kernel, vec![]);
    let changes = model.take_changes();
    differ.sync(&model, changes, &mut book);
    prop_assert_eq!(
        (book.group_sets, book.route_sets, book.route_removals),
        before
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn whatever_is_lost_the_end_is_the_kernels(
        steps in prop::collection::vec(step(), 1..120), loud in any::<bool>(), again in 0usize..20,
    ) {
        play(&steps, loud, again)?;
    }
}

/// A route over an object arrives after a dump that shows neither any more, and then the object's removal.
#[test]
fn what_was_by_an_object_that_is_gone_already_goes_too() {
    let steps = [
        Step::Single(4, 2, None),
        Step::Object(0, 0, 4),
        Step::RemoveNextHop(4),
        Step::Other(0, 0, false),
        Step::Dump,
    ];
    play(&steps, false, 4).unwrap();
}

/// The object was over another link when the route arrived; both disappeared silently with that link, and the number is in use again.
#[test]
fn an_object_whose_number_is_used_again_keeps_no_route() {
    let steps = [
        Step::Single(2, 4, None),
        Step::Object(0, 0, 2),
        Step::Admin(4, false),
        Step::Single(2, 1, None),
        Step::Dump,
    ];
    for again in 0..6 {
        play(&steps, false, again).unwrap();
    }
}

/// A group had another member when the object was removed than in the dump, which has the group as it was made later.
#[test]
fn a_group_that_got_another_member_keeps_its_routes() {
    let steps = [
        Step::Single(1, 1, None),
        Step::Group(6, vec![(1, 1)]),
        Step::Single(4, 1, None),
        Step::Object(0, 0, 6),
        Step::RemoveNextHop(4),
        Step::AddAddress(1, 0),
        Step::Single(4, 1, None),
        Step::Group(6, vec![(4, 1)]),
        Step::Dump,
    ];
    for again in 0..10 {
        play(&steps, false, again).unwrap();
    }
}

#[test]
fn a_route_replaced_while_a_dump_was_made_is_there_once() {
    let plain = Step::Plain(8, 1, vec![(1, None, 1)], None);
    play(&[plain, Step::Other(8, 1, false), Step::Dump], false, 2).unwrap();
}

/// Hosts are attached to the link of the object their route leads by.
#[test]
fn hosts_follow_the_link_of_an_object() {
    let steps = [
        Step::Neighbor(1, 0, false, Some(0)),
        Step::Single(4, 1, None),
        Step::Object(0, 0, 4),
        Step::Give,
        Step::Single(4, 2, None),
    ];
    play(&steps, false, 0).unwrap();
}

/// A host route, which led to the host itself and to no group of the object, follows the object too.
#[test]
fn a_host_with_a_route_of_its_own_follows_the_object() {
    let steps = [
        Step::AddAddress(1, 0),
        Step::Single(1, 1, None),
        Step::Object(11, 0, 1),
        Step::Neighbor(1, 1, true, Some(0)),
        Step::Give,
        Step::Single(1, 4, Some(0)),
    ];
    play(&steps, false, 0).unwrap();
}

/// Attached hosts follow a group's attached member that was left out in favour of one with a MAC address.
#[test]
fn a_host_follows_a_member_that_stood_back() {
    let steps = [
        Step::Single(2, 2, None),
        Step::Single(3, 1, Some(0)),
        Step::Single(4, 2, Some(2)),
        Step::Group(5, vec![(4, 1), (2, 1)]),
        Step::Object(4, 0, 5),
        Step::Neighbor(2, 2, false, Some(0)),
        Step::Give,
        Step::Group(5, vec![(3, 1)]),
    ];
    play(&steps, false, 0).unwrap();
}

/// Only a flag of a dumped route shows that a next hop died with its link's last address; an address revives it.
#[test]
fn a_next_hop_that_died_with_an_address_is_known_from_a_dump() {
    let both = Step::Plain(0, 0, vec![(2, None, 1), (3, None, 1)], None);
    let gone = [
        Step::AddAddress(2, 0),
        Step::AddAddress(3, 0),
        both,
        Step::Lose(1),
        Step::RemoveAddress(3, 0),
    ];
    play(&gone, false, 0).unwrap();
    let back = [&gone[..], &[Step::Dump, Step::Give, Step::AddAddress(3, 1)]].concat();
    play(&back, false, 0).unwrap();
    let risen = [
        &gone[..3],
        &[
            Step::Admin(3, false),
            Step::Lose(1),
            Step::RemoveAddress(3, 0),
            Step::Admin(3, true),
        ],
    ]
    .concat();
    play(&risen, false, 0).unwrap();
}
