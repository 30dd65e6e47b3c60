//! IPv6 routes of several next hops: the kernel announces all of them, and takes one away by itself.

use npcc_linux::table::model::Model;
use npcc_linux::wire::event::Event;
use npcc_linux::wire::route::{Action, Hop, Place, Preference, Route, Table, Way};

/// `RTPROT_STATIC` and `RTPROT_RA`.
const STATIC: u8 = 4;
const ROUTER_ADVERTISEMENT: u8 = 9;

const FAR: &str = "2001:db8:9::/48";

fn hop(link: u32, gateway: &str, weight: u16) -> Hop {
    Hop {
        link,
        gateway: gateway.parse().ok(),
        weight,
    }
}

fn route(protocol: u8, hops: &[Hop]) -> Route {
    Route {
        table: Table::Main,
        prefix: crate::common::prefix(FAR),
        metric: 1024,
        action: Action::Forward,
        way: Way::Hops(hops.to_vec()),
        source: None,
        protocol,
        place: Place::Last,
        dead: vec![],
        mtu: 0,
        preference: Preference::Medium,
        expires: None,
    }
}

/// Returns the next hops of each route of the prefix.
fn routes(model: &Model) -> Vec<Vec<Hop>> {
    let all = model.routes().of(crate::common::prefix(FAR)).iter();
    all.map(|entry| model.ways().hops(entry.way).to_vec())
        .collect()
}

#[test]
fn a_next_hop_more_is_announced_with_all_that_were_there() {
    let (first, second) = (hop(1, "2001:db8:1::3", 1), hop(2, "2001:db8:2::3", 1));
    let mut model = Model::default();
    model.apply(Event::Route(route(STATIC, &[first])));
    model.apply(Event::Route(route(STATIC, &[first, second])));
    assert_eq!(routes(&model), vec![vec![first, second]]);
}

/// The kernel keeps each router that advertises itself as a route of its own.
#[test]
fn routes_of_router_advertisements_stand_beside_each_other() {
    let (first, second) = (hop(1, "fe80::3", 1), hop(1, "fe80::4", 1));
    let mut model = Model::default();
    model.apply(Event::Route(route(ROUTER_ADVERTISEMENT, &[first])));
    model.apply(Event::Route(route(ROUTER_ADVERTISEMENT, &[second])));
    assert_eq!(routes(&model), vec![vec![first], vec![second]]);
    model.apply(Event::RouteGone(route(ROUTER_ADVERTISEMENT, &[first])));
    assert_eq!(routes(&model), vec![vec![second]]);
}

#[test]
fn a_next_hop_that_goes_leaves_the_others_and_the_last_has_weight_1() {
    let all = [
        hop(1, "2001:db8:1::3", 1),
        hop(2, "2001:db8:2::3", 7),
        hop(3, "2001:db8:3::3", 5),
    ];
    let [first, second, third] = all;
    let mut model = Model::default();
    model.apply(Event::Route(route(STATIC, &all)));
    model.apply(Event::RouteGone(route(STATIC, &[first])));
    assert_eq!(routes(&model), vec![vec![second, third]]);
    model.apply(Event::RouteGone(route(STATIC, &[third])));
    // A route of one next hop, as a dump shows it.
    assert_eq!(routes(&model), vec![vec![hop(2, "2001:db8:2::3", 1)]]);
    model.apply(Event::RouteGone(route(STATIC, &[second])));
    assert!(routes(&model).is_empty());
}
