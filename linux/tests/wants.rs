//! Desired kernel state of a configuration, and its notices of addresses from others. Root is needed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::common::live::{Live, host_mac};
use npcc_linux::netlink::handle::Notice;
use npcc_linux::netlink::wants::{StaticNeighbor, StaticRoute, Wanted};
use npcc_pipeline::route::nexthop::Kind;
use npcc_pipeline::units::{Mac, PortId};

const OTHER: Mac = Mac([2, 0, 0, 0, 9, 9]);

fn wanted(addresses: &[&str], routes: &[(&str, &str)]) -> Wanted {
    let nets = addresses.iter().map(|text| text.parse().unwrap());
    let route = |(prefix, gateway): &(&str, &str)| StaticRoute {
        prefix: prefix.parse().unwrap(),
        via: vec![("p1".to_owned(), Some(gateway.parse().unwrap()))],
        metric: 0,
    };
    Wanted {
        addresses: BTreeMap::from([("p1".to_owned(), nets.collect())]),
        neighbors: vec![],
        routes: routes.iter().map(route).collect(),
    }
}

#[test]
fn what_is_not_wanted_any_more_is_taken_away_and_what_others_put_stays() {
    let live = Live::open("wants");
    live.ip("route add 10.77.0.0/16 via 10.0.1.2");
    let mut first = wanted(
        &["10.0.1.1/24", "10.5.0.1/24", "2001:db8:5::1/64"],
        &[
            ("10.50.0.0/16", "10.0.1.2"),
            ("2001:db8:50::/48", "2001:db8:5::2"),
            ("10.51.0.0/16", "10.5.0.9"),
        ],
    );
    first.neighbors.push(StaticNeighbor {
        link: "p1".to_owned(),
        address: "10.5.0.9".parse().unwrap(),
        mac: OTHER,
    });
    let refused = live.handle().want(first).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
    live.until("the routes are there", |book| {
        ["10.50.0.0/16", "10.51.0.0/16", "2001:db8:50::/48"]
            .iter()
            .all(|text| book.has(text))
    });
    let by = live.book.0.lock().unwrap().members("10.51.0.0/16").unwrap()[0].adjacency;
    assert_eq!(
        (by.kind, by.dst),
        (Kind::Forward, OTHER),
        "nobody was asked"
    );

    let second = wanted(
        &["10.0.1.1/24"],
        &[("10.50.0.0/16", "10.0.1.2"), ("10.52.0.0/16", "10.9.9.9")],
    );
    let refused = live.handle().want(second).unwrap();
    assert_eq!(refused.len(), 1, "its gateway is on no subnet: {refused:?}");
    assert!(refused[0].to_string().contains("10.52.0.0/16"));
    live.until("the old ones are gone", |book| {
        ["10.51.0.0/16", "2001:db8:50::/48", "10.5.0.1/32"]
            .iter()
            .all(|text| !book.has(text))
    });
    live.until("the others are there", |book| {
        book.has("10.50.0.0/16") && book.has("10.77.0.0/16") && book.has("10.0.1.1/32")
    });
    assert!(!live.ip_says("neigh show dev p1").contains("10.5.0.9"));
    // The desired state is restored with its link.
    live.ip("link set p1 down");
    live.until("it goes with the link", |book| !book.has("10.50.0.0/16"));
    live.ip("link set p1 up");
    live.until("and comes back", |book| book.has("10.50.0.0/16"));
    assert!(!live.book.0.lock().unwrap().has("10.51.0.0/16"));
    live.equal("at the end");
}

#[test]
fn addresses_that_come_from_linux_are_told() {
    let live = Live::open("told");
    let last = |port| {
        let notices = live.notices.lock().unwrap();
        let mut reported = notices.iter().rev().filter_map(|notice| match notice {
            Notice::Addresses(of, interfaces, _) if *of == PortId(port) => Some(interfaces.clone()),
            _ => None,
        });
        reported.next().unwrap_or_default()
    };
    let has = |vlan: u16, text: &str| {
        let address: IpAddr = text.parse().unwrap();
        let of = |(at, all): &(u16, Vec<IpAddr>)| *at == vlan && all.contains(&address);
        last(0).iter().any(of)
    };
    assert!(has(0, "10.0.0.1") && has(7, "10.0.7.1"), "{:?}", last(0));
    live.ip("addr add 10.60.0.1/24 dev p0.7");
    live.until("the new address is told", |_| has(7, "10.60.0.1"));
    live.ip("addr del 10.0.0.1/24 dev p0");
    live.until("the lost one is not", |_| !has(0, "10.0.0.1"));
    assert!(has(0, "2001:db8::1"));
}

#[test]
fn who_is_asked_for_is_the_gateway_and_not_the_packets_destination() {
    let live = Live::open("whom");
    live.hosts
        .lock()
        .unwrap()
        .remove(&"10.0.0.2".parse().unwrap());
    live.ip("route add 10.80.0.0/16 via 10.0.0.2");
    live.until("the route is there", |book| book.has("10.80.0.0/16"));
    live.hosts
        .lock()
        .unwrap()
        .insert("10.0.0.2".parse().unwrap(), host_mac(2));
    live.handle()
        .resolve(PortId(0), 0, "10.80.3.4".parse().unwrap());
    live.until("the gateway is found", |book| {
        let members = book.members("10.80.0.0/16").unwrap_or_default();
        members.iter().any(|one| one.adjacency.dst == host_mac(2))
    });
    assert!(!live.ip_says("neigh show dev p0").contains("10.80.3.4"));
}

/// The packet path has the MAC address and the MTU of the file, so those of the interface stay the same.
#[test]
fn the_mac_address_and_the_mtu_of_a_link_are_set_back() {
    let live = Live::open("set-back");
    let shown = || live.ip_says("link show p0");
    live.ip("link set p0 mtu 1400");
    live.until("the MTU is back", |_| shown().contains("mtu 9000"));
    // Not at once, in case somebody sets it again and again.
    live.ip("link set p0 address 02:00:00:00:01:55");
    live.until("the MAC address is back", |_| {
        shown().contains("02:00:00:00:00:00")
    });
    let notices = live.notices.lock().unwrap();
    let reported = notices.iter().filter_map(|notice| match notice {
        Notice::SetBack(name, words) => Some((name.clone(), words.clone())),
        _ => None,
    });
    let words = [
        "MTU 1400 set back to 9000",
        "MAC address 02:00:00:00:01:55 set back to 02:00:00:00:00:00",
    ];
    let expected = words.map(|words| ("p0".to_owned(), words.to_owned()));
    assert_eq!(reported.collect::<Vec<_>>(), expected);
}

/// An address of the loopback is a port's where the port has none, and a macvlan's MAC address and addresses are those of its port.
#[test]
fn addresses_of_the_loopback_and_of_macvlans_are_told() {
    let live = Live::open("told-more");
    let last = || {
        let notices = live.notices.lock().unwrap();
        let mut reported = notices.iter().rev().filter_map(|notice| match notice {
            Notice::Addresses(PortId(0), interfaces, macs) => {
                Some((interfaces.clone(), macs.clone()))
            }
            _ => None,
        });
        reported.next().unwrap_or_default()
    };
    let of = |vlan: u16| {
        let (interfaces, _) = last();
        let mut found = interfaces.into_iter().filter(|(at, _)| *at == vlan);
        found.next().map(|(_, all)| all).unwrap_or_default()
    };
    live.ip("addr add 10.255.0.1/32 dev lo");
    let loopback: IpAddr = "10.255.0.1".parse().unwrap();
    live.until("the loopback's comes last", |_| {
        of(0).last() == Some(&loopback) && of(7).last() == Some(&loopback)
    });
    assert_eq!(of(0).first(), Some(&"10.0.0.1".parse().unwrap()));
    live.ip("link add vrrp51 link p0.7 address 00:00:5e:00:01:33 type macvlan mode private");
    live.ip("link set vrrp51 up");
    live.settle();
    assert_eq!(last().1, [], "a backup's has no address");
    live.ip("addr add 10.0.7.254/32 dev vrrp51");
    let mac = npcc_pipeline::units::Mac([0, 0, 0x5e, 0, 1, 0x33]);
    live.until("the macvlan's is told", |_| last().1 == [(7, mac)]);
    assert!(of(7).contains(&"10.0.7.254".parse().unwrap()));
    live.ip("route add 10.77.0.0/16 dev vrrp51");
    live.until("a route over it is its port's", |book| {
        let members = book.members("10.77.0.0/16").unwrap_or_default();
        members.iter().any(|one| one.adjacency.vlan == 7)
    });
    assert!(
        live.notices
            .lock()
            .unwrap()
            .iter()
            .all(|notice| { !matches!(notice, Notice::Admin(_, false) | Notice::Refused(_)) })
    );
    live.ip("link set vrrp51 down");
    live.until("and is not while it is down", |_| last().1.is_empty());
    live.ip("link del vrrp51");
    live.equal("at the end");
}
