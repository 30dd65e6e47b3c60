//! Effects of single events on the model of the kernel's state, and on the forwarding desired for a prefix.

use std::collections::{BTreeMap, HashSet};

use crate::common::prefix;
use npcc_linux::table::model::Model;
use npcc_linux::table::sweep::ObjectId;
use npcc_linux::wanted::decide::{DesiredRoute, decide};
use npcc_linux::wanted::ports::Ports;
use npcc_linux::wire::address::Address;
use npcc_linux::wire::event::Event;
use npcc_linux::wire::link::Link;
use npcc_linux::wire::neighbor::Neighbor;
use npcc_linux::wire::nexthop::{NextHop, NextHopKind};
use npcc_linux::wire::request::Dump;
use npcc_linux::wire::route::{self, Action, Hop, Place, Preference, Route, Table, Way};
use npcc_pipeline::units::Mac;

fn link(up: bool) -> Event {
    Event::Link(Link {
        index: 1,
        name: "p1".to_owned(),
        up,
        carrier: up,
        mac: None,
        mtu: 1_500,
        macvlan_over: None,
    })
}

fn address(text: &str) -> Address {
    Address {
        link: 1,
        address: text.parse().unwrap(),
        len: 24,
    }
}

/// A route by link 1.
fn route(to: &str, metric: u32, action: Action) -> Route {
    Route {
        table: Table::Main,
        prefix: prefix(to),
        metric,
        action,
        way: Way::Hops(vec![Hop {
            link: 1,
            gateway: None,
            weight: 1,
        }]),
        source: None,
        protocol: 4,
        place: Place::First,
        dead: vec![],
        mtu: 0,
        preference: Preference::Medium,
        expires: None,
    }
}

fn model(events: impl IntoIterator<Item = Event>) -> Model {
    let mut model = Model::default();
    for event in [link(true)].into_iter().chain(events) {
        model.apply(event);
    }
    model
}

fn has(model: &Model, to: &str) -> bool {
    model.routes().best(prefix(to)).is_some()
}

#[test]
fn loopback_groups_and_link_local_addresses_have_no_route() {
    let ports = Ports::new(BTreeMap::new());
    for (to, routed) in [
        ("10.0.0.0/8", true),
        ("2001:db8::/32", true),
        ("127.0.0.0/8", false),
        ("224.0.0.0/4", false),
        ("ff00::/8", false),
        ("::1/128", false),
        ("fe80::/64", false),
    ] {
        let model = model([Event::Route(route(to, 0, Action::Drop))]);
        let desired = decide(&model, &ports, prefix(to));
        assert_eq!(desired != DesiredRoute::None, routed, "{to}");
    }
}

#[test]
fn the_route_of_the_lowest_metric_is_preferred_in_whatever_order_they_come() {
    for metrics in [[10, 20], [20, 10]] {
        let routes =
            metrics.map(|metric| Event::Route(route("10.0.9.0/24", metric, Action::Forward)));
        let best = model(routes);
        let best = best.routes().best(prefix("10.0.9.0/24")).unwrap();
        assert_eq!(best.metric, 10);
    }
}

/// A link without an IPv4 address carries no IPv4, until it is set up anew or gets one.
#[test]
fn a_link_that_rises_carries_ipv4_again() {
    let own = address("10.0.1.1");
    let mut model = model([Event::Address(own), Event::AddressGone(own)]);
    assert!(!model.links().carries(1, true) && model.links().carries(1, false));
    model.apply(link(false));
    model.apply(link(true));
    assert!(model.links().carries(1, true));
}

/// The kernel notifies of none of these routes.
#[test]
fn an_address_that_goes_takes_the_routes_with_it_as_source() {
    let (own, other) = (address("10.0.1.1"), address("10.0.1.2"));
    let from = |to, source: Address| {
        Event::Route(Route {
            source: Some(source.address),
            ..route(to, 0, Action::Forward)
        })
    };
    let mut model = model([
        Event::Address(own),
        Event::Address(other),
        from("10.0.8.0/24", own),
        from("10.0.9.0/24", other),
    ]);
    model.apply(Event::AddressGone(own));
    assert!(!has(&model, "10.0.8.0/24") && has(&model, "10.0.9.0/24"));
}

#[test]
fn a_link_that_goes_takes_its_neighbours() {
    let neighbor = |link, host: &str| {
        Event::Neighbor(Neighbor {
            link,
            address: host.parse().unwrap(),
            mac: Some(Mac([2, 0, 0, 0, 0, 9])),
            state: 2,
            managed: false,
        })
    };
    let mut model = model([neighbor(1, "10.0.1.3"), neighbor(2, "10.0.2.3")]);
    model.apply(Event::LinkGone(1));
    let left: Vec<u32> = model.neighbors().iter().map(|one| one.link).collect();
    assert_eq!(left, [2]);
}

/// Law: where an object names another that is not known, a dump has to show which it is.
#[test]
fn a_group_of_unknown_members_is_a_doubt() {
    let object = |id, kind| Event::NextHop(NextHop { id, kind });
    let group = |members: &[u32]| {
        let members = members.iter().map(|id| (*id, 1)).collect();
        object(9, NextHopKind::Group(members))
    };
    let blackhole = object(1, NextHopKind::Blackhole);
    assert_eq!(model([blackhole.clone(), group(&[1])]).doubts(), 0);
    assert_eq!(model([blackhole, group(&[1, 2])]).doubts(), 1);
}

/// Law: a dump does not remove what changed while it was made, as it may have passed that place already.
#[test]
fn a_dump_spares_the_routes_that_changed_meanwhile() {
    let all = ["2001:db8:1::/48", "2001:db8:2::/48"];
    let mut model = model(all.map(|to| Event::Route(route(to, 0, Action::Forward))));
    let spared = HashSet::from([ObjectId::Routes(prefix(all[0]))]);
    model.begin_sweep();
    let dump = Dump::Routes {
        v6: true,
        table: route::MAIN,
    };
    assert_eq!(model.sweep_but(dump, &spared, |_| true), 1);
    assert_eq!(all.map(|to| has(&model, to)), [true, false]);
}
