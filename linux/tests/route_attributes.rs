//! Attributes of a route beside its next hops, from the kernel of this machine: MTU, preference and expiry.

use std::time::{Duration, Instant};

use crate::common::live::Live;
use crate::common::prefix;
use npcc_linux::table::model::Model;
use npcc_linux::wire::event::Event;
use npcc_linux::wire::route::{Hop, Preference, Route};
use npcc_pipeline::route::nexthop::Kind;

#[test]
fn the_mtu_of_a_route_is_that_of_its_next_hops() {
    let live = Live::open("route-mtu");
    for route in [
        "route add 192.0.2.0/24 via 10.0.0.2 mtu 1400",
        "route add 192.0.3.0/24 via 10.0.0.2",
        "route add 192.0.4.0/24 mtu lock 1300 nexthop via 10.0.0.2 nexthop via 10.0.1.2",
        "nexthop add id 1 via 10.0.0.2 dev p0",
        "route add 192.0.5.0/24 nhid 1 mtu 1450",
        "-6 route add 2001:db8:9::/48 via 2001:db8::2 mtu 1400",
        "-6 route add 2001:db8:a::/48 via 2001:db8::2 mtu 1000",
        "-6 route add 2001:db8:b::/48 mtu 1500 nexthop via 2001:db8::2 nexthop via 2001:db8:1::2",
        "route add 10.5.0.0/16 dev p1 mtu 1350",
        "neigh add 10.5.0.9 lladdr 02:00:00:00:02:01 dev p1 nud permanent",
    ] {
        live.ip(route);
    }
    let all = [
        ("192.0.2.0/24", 1400),
        ("192.0.3.0/24", 0),
        ("192.0.4.0/24", 1300),
        ("192.0.5.0/24", 1450),
        ("2001:db8:9::/48", 1400),
        ("2001:db8:a::/48", 1280),
        ("2001:db8:b::/48", 1500),
        ("10.5.0.0/16", 1350),
        ("10.5.0.9/32", 1350),
    ];
    live.until("all are there, with their MTU", |book| {
        all.iter().all(|(text, mtu)| {
            let members = book.members(text).unwrap_or_default();
            !members.is_empty() && members.iter().all(|one| one.adjacency.mtu == *mtu)
        })
    });
    live.until("a host behind it has it with its MAC address", |book| {
        let members = book.members("10.5.0.9/32").unwrap_or_default();
        members
            .iter()
            .any(|one| one.adjacency.kind == Kind::Forward)
    });
    let flows = [
        "192.0.2.1",
        "192.0.3.1",
        "192.0.4.1",
        "192.0.5.1",
        "10.5.0.9",
    ];
    let flows = flows
        .into_iter()
        .chain(["2001:db8:9::1", "2001:db8:a::1", "2001:db8:b::1"]);
    live.handle()
        .flows(flows.map(|text| (text.parse().unwrap(), None)).collect());
    assert_eq!(live.handle().look_up().unwrap(), [], "as the kernel says");
    live.ip("route replace 192.0.2.0/24 via 10.0.0.2 mtu 1200");
    live.ip("route replace 10.5.0.0/16 dev p1");
    live.until("changed", |book| {
        let mtu = |text: &str| book.members(text).unwrap()[0].adjacency.mtu;
        (mtu("192.0.2.0/24"), mtu("10.5.0.9/32")) == (1200, 0)
    });
    live.equal("at the end");
}

#[test]
fn an_expired_route_is_not_used_although_the_kernel_has_it() {
    let live = Live::open("route-expires");
    live.ip("-6 route add 2001:db8:9::/48 via 2001:db8::2 expires 1");
    live.ip("-6 route add 2001:db8:a::/48 via 2001:db8::2 expires 1000");
    live.until("there", |book| {
        book.has("2001:db8:9::/48") && book.has("2001:db8:a::/48")
    });
    live.until("expired", |book| !book.has("2001:db8:9::/48"));
    assert!(live.book.0.lock().unwrap().has("2001:db8:a::/48"));
    live.equal("although the kernel may still list it");
    assert_eq!(live.handle().status().counts.faults, 0);
}

fn route(gateway: &str, preference: Preference, expires: Option<Duration>) -> Route {
    let hop = Hop {
        link: 1,
        gateway: Some(gateway.parse().unwrap()),
        weight: 1,
    };
    match crate::common::route("2001:db8:9::/48", vec![hop]) {
        // A router's: not merged into one with several next hops.
        Event::Route(route) => Route {
            protocol: 9,
            preference,
            expires,
            ..route
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_preferred_of_several_routes_of_a_metric_is_used() {
    let mut model = Model::default();
    let first = |model: &Model| {
        let best = *model.routes().best(prefix("2001:db8:9::/48")).unwrap();
        model.ways().hops(best.way)[0].gateway.unwrap().to_string()
    };
    for (gateway, preference, used) in [
        ("fe80::7", Preference::Low, "fe80::7"),
        ("fe80::8", Preference::Medium, "fe80::8"),
        ("fe80::9", Preference::High, "fe80::9"),
        ("fe80::a", Preference::Medium, "fe80::9"),
        ("fe80::9", Preference::Low, "fe80::8"),
    ] {
        model.apply(Event::Route(route(gateway, preference, None)));
        assert_eq!(first(&model), used, "{gateway} {preference:?}");
    }
    assert_eq!(model.routes().of(prefix("2001:db8:9::/48")).len(), 4);
}

#[test]
fn expiry_is_a_doubt_at_its_time_and_an_expired_route_is_none() {
    let mut model = Model::default();
    let gone = |model: &Model| model.routes().best(prefix("2001:db8:9::/48")).is_none();
    let lasting = route(
        "fe80::7",
        Preference::Medium,
        Some(Duration::from_secs(100)),
    );
    model.apply(Event::Route(lasting));
    let now = Instant::now();
    model.expire(now + Duration::from_secs(90));
    assert_eq!((model.doubts(), gone(&model)), (0, false));
    model.expire(now + Duration::from_secs(110));
    assert_eq!(
        (model.doubts(), gone(&model)),
        (1, false),
        "it may have been prolonged"
    );
    let expired = route("fe80::7", Preference::Medium, Some(Duration::ZERO));
    assert!(!model.apply_dumped(Event::Route(expired)), "no difference");
    assert!(gone(&model));
}
