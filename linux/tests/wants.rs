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
            Notice::Addresses(of, interfaces) if *of == PortId(port) => Some(interfaces.clone()),
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
