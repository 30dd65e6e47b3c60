//! Messages of the kernel about objects that are not the switch's, and fields in the kernel's units, as `linux/rtnetlink.h` lays them out.
use npcc_linux::wire::event::{Event, event};
use npcc_linux::wire::link::Link;
use npcc_linux::wire::message::Message;
use npcc_linux::wire::neighbor::Neighbor;
use npcc_linux::wire::nexthop::{NextHop, NextHopKind};
use npcc_linux::wire::not_followed::Reason;
use npcc_linux::wire::route::{Hop, Way};
use npcc_linux::wire::unread::Unread;
use npcc_linux::wire::{link, neighbor, nexthop, route};
use npcc_pipeline::units::Mac;

const MAC: [u8; 6] = [2, 0, 0, 0, 1, 3];
/// `NDA_DST`, `NDA_LLADDR`.
const ADDRESS: u16 = 1;
const LINK_ADDRESS: u16 = 2;

type Attribute<'a> = (u16, &'a [u8]);

fn attributes(all: &[Attribute<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, value) in all {
        bytes.extend((value.len() as u16 + 4).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(*value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

fn read(kind: u16, fixed: &[u8], all: &[Attribute<'_>]) -> Result<Event, Unread> {
    let body = [fixed, &attributes(all)].concat();
    event(&Message {
        kind,
        flags: 0,
        sequence: 0,
        body: &body,
    })
}

/// Reads a neighbour on link 3 with these `ndm_state` and `ndm_flags`.
fn neighbor_of(address: [u8; 4], state: u16, flags: u8) -> Result<Event, Unread> {
    let mut fixed = [0; neighbor::FIXED];
    fixed[0] = 2;
    fixed[4] = 3;
    fixed[8..10].copy_from_slice(&state.to_ne_bytes());
    fixed[10] = flags;
    read(
        neighbor::NEW,
        &fixed,
        &[(ADDRESS, &address), (LINK_ADDRESS, &MAC)],
    )
}

/// The kernel keeps the MAC address of a neighbour that does not answer any more.
#[test]
fn a_neighbour_has_its_mac_address_while_the_kernel_would_send_to_it() {
    let mac = |state| match neighbor_of([10, 0, 1, 3], state, 0) {
        Ok(Event::Neighbor(Neighbor { mac, link: 3, .. })) => mac,
        other => panic!("{other:?}"),
    };
    // NUD_REACHABLE, NUD_STALE, NUD_DELAY, NUD_PROBE, NUD_NOARP, NUD_PERMANENT.
    for state in [0x02, 0x04, 0x08, 0x10, 0x40, 0x80] {
        assert_eq!(mac(state), Some(Mac(MAC)), "{state:#x}");
    }
    // NUD_NONE, NUD_INCOMPLETE, NUD_FAILED.
    for state in [0x00, 0x01, 0x20] {
        assert_eq!(mac(state), None, "{state:#x}");
    }
}

#[test]
fn entries_for_proxies_and_groups_are_no_neighbours() {
    let (host, reachable, proxy) = ([10, 0, 1, 3], 0x02, 8);
    assert_eq!(neighbor_of(host, reachable, proxy), Err(Unread::NotOurs));
    for group in [[224, 0, 0, 5], [255; 4]] {
        assert_eq!(neighbor_of(group, 0x40, 0), Err(Unread::NotOurs));
    }
}

/// Fields of `struct rtmsg` that decide whether a route is the switch's.
#[derive(Clone, Copy)]
struct Rtm {
    source_len: u8,
    tos: u8,
    table: u8,
    flags: u32,
}

const MAIN: Rtm = Rtm {
    source_len: 0,
    tos: 0,
    table: 254,
    flags: 0,
};

/// Reads a unicast route of 10.9.0.0/16 of the static protocol.
fn route_of(rtm: Rtm, more: &[Attribute<'_>]) -> Result<Event, Unread> {
    let fixed = [2, 16, rtm.source_len, rtm.tos, rtm.table, 4, 0, 1];
    let fixed = [&fixed[..], &rtm.flags.to_ne_bytes()].concat();
    let destination: Attribute<'_> = (route::DESTINATION, &[10, 9, 0, 0]);
    read(route::NEW, &fixed, &[&[destination][..], more].concat())
}

fn way_of(more: &[Attribute<'_>]) -> Way {
    match route_of(MAIN, more) {
        Ok(Event::Route(route)) => route.way,
        other => panic!("{other:?}"),
    }
}

#[test]
fn routes_of_other_tables_tos_sources_and_caches_are_not_read() {
    let by: Attribute<'_> = (route::OIF, &[3, 0, 0, 0]);
    assert!(route_of(MAIN, &[by]).is_ok());
    let others = [
        Rtm { table: 100, ..MAIN },
        // RTM_F_CLONED.
        Rtm {
            flags: 0x200,
            ..MAIN
        },
    ];
    for rtm in others {
        assert_eq!(route_of(rtm, &[by]), Err(Unread::NotOurs));
    }
    let not_followed = [
        (Rtm { tos: 8, ..MAIN }, Reason::Tos),
        (
            Rtm {
                source_len: 24,
                ..MAIN
            },
            Reason::Source,
        ),
        (Rtm { table: 253, ..MAIN }, Reason::DefaultTable),
    ];
    for (rtm, reason) in not_followed {
        match route_of(rtm, &[by]) {
            Ok(Event::NotFollowed(what)) => assert_eq!(what.reason, reason),
            other => panic!("{other:?}"),
        }
    }
    // A table above 255 is in an attribute, and RT_TABLE_COMPAT in the header.
    let far = 1_000u32.to_ne_bytes();
    let rtm = Rtm { table: 252, ..MAIN };
    assert_eq!(
        route_of(rtm, &[by, (route::TABLE, &far)]),
        Err(Unread::NotOurs)
    );
    let main = 254u32.to_ne_bytes();
    assert!(route_of(rtm, &[by, (route::TABLE, &main)]).is_ok());
}

/// `RTA_ENCAP_TYPE`: the frame would go into a tunnel, so its link is none of the switch's.
#[test]
fn a_next_hop_through_a_tunnel_leads_to_no_link() {
    let (link, tunnel): (Attribute<'_>, Attribute<'_>) =
        ((route::OIF, &[3, 0, 0, 0]), (21, &[2, 0]));
    let hop = |link| {
        Way::Hops(vec![Hop {
            link,
            gateway: None,
            weight: 1,
        }])
    };
    assert_eq!(way_of(&[link]), hop(3));
    assert_eq!(way_of(&[link, tunnel]), hop(0));
}

/// `struct rtnexthop` has the weight less one.
#[test]
fn weights_of_next_hops_are_the_operators() {
    let hop = |hops: u8, link: u8, gateway: [u8; 4]| {
        let gateway = attributes(&[(route::GATEWAY, &gateway)]);
        [&[16, 0, 0, hops, link, 0, 0, 0][..], &gateway].concat()
    };
    let both = [hop(0, 3, [10, 0, 3, 1]), hop(255, 4, [10, 0, 4, 1])].concat();
    let Way::Hops(hops) = way_of(&[(route::MULTIPATH, &both)]) else {
        panic!("no object");
    };
    let weights: Vec<(u32, u16)> = hops.iter().map(|hop| (hop.link, hop.weight)).collect();
    assert_eq!(weights, [(3, 1), (4, 256)]);
}

#[test]
fn a_next_hop_object_of_a_tunnel_or_a_bridge_is_unusable() {
    let kind = |more: &[Attribute<'_>]| {
        let link: [Attribute<'_>; 2] =
            [(nexthop::ID, &[7, 0, 0, 0]), (nexthop::OIF, &[3, 0, 0, 0])];
        match read(
            nexthop::NEW,
            &[0; nexthop::FIXED],
            &[&link[..], more].concat(),
        ) {
            Ok(Event::NextHop(NextHop { id: 7, kind })) => kind,
            other => panic!("{other:?}"),
        }
    };
    let by = NextHopKind::By {
        link: 3,
        gateway: None,
    };
    assert_eq!(kind(&[]), by);
    // NHA_ENCAP, NHA_FDB.
    for attribute in [8, 11] {
        assert_eq!(kind(&[(attribute, &[])]), NextHopKind::Unusable);
    }
}

/// Either of `IFF_RUNNING` and `IFF_LOWER_UP` is a carrier, `IFF_UP` alone is none.
#[test]
fn a_link_has_carrier_by_its_flags() {
    let flags = |flags: u32| {
        let mut fixed = [0; link::FIXED];
        fixed[4] = 3;
        fixed[8..12].copy_from_slice(&flags.to_ne_bytes());
        match read(link::NEW, &fixed, &[(link::NAME, b"p3\0")]) {
            Ok(Event::Link(Link { up, carrier, .. })) => (up, carrier),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(flags(0), (false, false));
    assert_eq!(flags(1), (true, false));
    assert_eq!(flags(1 | 1 << 6), (true, true));
    assert_eq!(flags(1 | 1 << 16), (true, true));
}
