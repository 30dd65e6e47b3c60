//! Look-ups against the kernel of this machine: it answers as the switch forwards, and where an attribute is not followed it says so.

use std::net::IpAddr;

use crate::common::live::Live;
use npcc_linux::netlink::handle::Notice;
use npcc_linux::netlink::lookup::Packet;

fn packet(destination: &str, sender: Option<&str>) -> Packet {
    let ip = |text: &str| text.parse().unwrap();
    (ip(destination), sender.map(ip))
}

/// Returns the destinations whose look-up differs now, with the words.
fn differing(live: &Live) -> Vec<(IpAddr, String)> {
    let all = live.handle().look_up().unwrap();
    all.into_iter()
        .map(|one| (one.destination, one.words))
        .collect()
}

#[test]
fn the_kernel_answers_as_the_switch_forwards() {
    let live = Live::open("look-same");
    for route in [
        "route add 192.0.2.0/24 via 10.0.0.2",
        "route add 192.0.3.0/24 nexthop via 10.0.0.2 weight 3 nexthop via 10.0.1.2",
        "route add 192.0.4.0/24 via inet6 2001:db8:1::2 dev p1",
        "route add blackhole 192.0.5.0/24",
        "route add unreachable 192.0.6.0/24",
        "route add prohibit 192.0.7.0/24",
        "nexthop add id 1 via 10.0.0.2 dev p0",
        "nexthop add id 2 via 10.0.1.2 dev p1",
        "nexthop add id 3 group 1/2",
        "route add 192.0.8.0/24 nhid 3",
        "link add dm0 type veth peer name dm1",
        "link set dm0 up",
        "link set dm1 up",
        "route add 192.0.9.0/24 dev dm0",
        "-6 route add 2001:db8:10::/48 nexthop via 2001:db8::2 nexthop via 2001:db8:1::2",
        "-6 route add blackhole 2001:db8:11::/48",
        "-6 route add unreachable 2001:db8:12::/48",
        "-6 route add 2001:db8:13::/48 via 2001:db8::2",
        "neigh add 10.0.0.77 lladdr 02:00:00:00:02:01 dev p0 nud permanent",
    ] {
        live.ip(route);
    }
    live.settle();
    let mut flows: Vec<Packet> = (0..100)
        .map(|n| packet(&format!("192.0.{}.{n}", n % 8 + 2), None))
        .collect();
    flows.extend(
        (0..40).map(|n| packet(&format!("2001:db8:1{}::{n}", n % 4), Some("2001:db8:1::9"))),
    );
    flows.extend(
        [
            "10.0.0.77",
            "10.0.1.200",
            "10.0.0.1",
            "198.51.100.1",
            "2001:db8::1",
        ]
        .map(|own| packet(own, None)),
    );
    live.handle().flows(flows);
    assert_eq!(differing(&live), []);
    live.until("all are counted", |_| {
        live.handle().status().counts.lookups > 145
    });
    live.equal("at the end");
}

#[test]
fn what_the_reader_does_not_follow_is_a_difference_and_a_lasting_one_is_reported_once() {
    let live = Live::open("look-differs");
    for route in [
        "route add 192.0.2.0/24 via 10.0.0.2",
        "route add 192.0.2.0/24 via 10.0.1.2 table 200",
        "rule add to 192.0.2.0/24 lookup 200",
        "-6 route add 2001:db8:9::/48 via 2001:db8::2",
        "-6 route add 2001:db8:9::/48 from 2001:db8:1::/64 via 2001:db8:1::2",
        "neigh replace 10.0.0.2 lladdr 02:00:00:00:02:01 dev p0 nud permanent",
    ] {
        live.ip(route);
    }
    live.settle();
    live.handle().flows(vec![
        packet("192.0.2.9", None),
        packet("2001:db8:9::9", Some("2001:db8:1::9")),
    ]);
    let found = differing(&live);
    for (destination, words) in [
        (
            "192.0.2.9",
            "Linux: via 10.0.1.2 p1; the switch: via 10.0.0.2 p0",
        ),
        (
            "2001:db8:9::9",
            "Linux: via 2001:db8:1::2 p1; the switch: via 2001:db8::2 p0",
        ),
    ] {
        let row = (destination.parse().unwrap(), words.to_owned());
        assert!(found.contains(&row), "{row:?} of {found:?}");
    }
    let reported = |destination: &str| {
        let notices = live.notices.lock().unwrap();
        let all = notices.iter().filter(|one| match one {
            Notice::Differs(one) => one.destination.to_string() == destination,
            _ => false,
        });
        all.count()
    };
    live.until("both are reported", |_| {
        reported("192.0.2.9") == 1 && reported("2001:db8:9::9") == 1
    });
    // Further rounds look at it again, and say nothing more.
    let before = live.handle().status().counts.lookups;
    live.until("three rounds more", |_| {
        live.handle().status().counts.lookups > before + 6
    });
    assert_eq!(reported("192.0.2.9"), 1);
    live.ip("rule del to 192.0.2.0/24 lookup 200");
    live.ip("-6 route del 2001:db8:9::/48 from 2001:db8:1::/64");
    live.settle();
    assert_eq!(differing(&live), []);
}
