//! The kernel's routes in the table that workers read: how many, how soon, and by how many messages. Root is needed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what is wrong by panicking"
)]

use std::time::Duration;

use crate::rack::{Rack, v4, v6};
use npcc_pipeline::units::{Mac, PortId};

/// A group under many routes that loses a member: the first lookup that takes the other, and the messages read for it.
fn a_member_is_lost(test: &str, routes: u32) {
    let mut rack = Rack::new(test, 64 << 20);
    for object in [
        "id 7 via 10.0.0.2 dev p0",
        "id 8 via 10.0.1.2 dev p1",
        "id 9 group 7/8",
    ] {
        rack.ip(&format!("nexthop add {object}"));
    }
    let took = rack.batch((0..routes).map(|n| format!("route add {} nhid 9", v4(n))));
    let last = v4(routes - 1).replace(".0/24", ".1");
    let learned = rack.until(|rack| rack.ports(&last) == [0, 1]);
    rack.settle();
    println!("{routes} routes: ip took {took:?}, the switch had them {learned:?} after it ended");
    let counts = |rack: &Rack| rack.handle().status().counts;
    let before = counts(&rack);
    rack.ip("nexthop replace id 9 group 7");
    let moved = rack.until(|rack| rack.ports(&last) == [0]);
    rack.settle();
    let after = counts(&rack);
    let messages = after.messages - before.messages;
    println!(
        "the other path within {moved:?} of the command's end, by {messages} messages, {} groups, {} routes",
        after.groups - before.groups,
        after.routes - before.routes
    );
    assert!(messages <= 10, "{messages}");
    assert_eq!(
        (after.routes - before.routes, after.groups - before.groups),
        (0, 1)
    );
    for n in [0, routes / 2, routes - 1] {
        assert_eq!(rack.ports(&v4(n).replace(".0/24", ".1")), [0]);
    }
    rack.agrees();
}

#[test]
fn twenty_thousand_routes_move_by_one_change_of_their_group() {
    a_member_is_lost("member", 20_000);
}

#[test]
#[ignore = "takes a minute: scripts/test-long linux"]
fn two_hundred_thousand_routes_move_by_one_change_of_their_group() {
    a_member_is_lost("members", 200_000);
}

#[test]
#[ignore = "takes minutes: scripts/test-long linux"]
fn a_full_table_is_learned() {
    let mut rack = Rack::new("fulltable", 128 << 20);
    let (four, six) = (901_899, 160_147);
    let lines = (0..four).map(|n| format!("route add {} via 10.0.{}.2", v4(n), n & 1));
    let sixes = (0..six).map(|n| format!("route add {} via 2001:db8:{}::2", v6(n), n & 1));
    let took = rack.batch(lines.chain(sixes));
    let last = format!("2a00:{:x}:{:x}::1", (six - 1) >> 16, (six - 1) & 0xffff);
    let learned = rack.until(|rack| {
        rack.ports(&last) == [u8::try_from((six - 1) & 1).unwrap()]
            && rack.handle().status().kernel[0] >= 901_899
    });
    println!(
        "{four} IPv4 and {six} IPv6 routes: ip took {took:?}, the switch had them {learned:?} after it ended"
    );
    rack.settle();
    rack.agrees();
    println!("{:?}", rack.handle().status());
}

#[test]
fn ten_thousand_attached_hosts_are_next_hops() {
    let mut rack = Rack::new("hosts", 16 << 20);
    rack.ip("addr add 10.8.0.1/16 dev p0");
    let host = |n: u32| std::net::Ipv4Addr::from_bits(0x0a08_0100 + n);
    let hosts = 10_000u32;
    let took = rack.batch((0..hosts).map(move |n: u32| {
        let [.., high, low] = n.to_be_bytes();
        format!(
            "neigh replace {} dev p0 lladdr 02:00:00:08:{high:02x}:{low:02x} nud reachable",
            host(n)
        )
    }));
    let path = |rack: &Rack, n: u32| rack.reader.paths(host(n).into()).next().unwrap().dst;
    let last = Mac([2, 0, 0, 8, 0x27, 0x0f]);
    let learned = rack.until(|rack| path(rack, hosts - 1) == last);
    println!("{hosts} hosts: ip took {took:?}, the switch had them {learned:?} after it ended");
    assert!((0..hosts).step_by(101).all(|n| {
        let [.., high, low] = n.to_be_bytes();
        path(&rack, n) == Mac([2, 0, 0, 8, high, low])
    }));
}

#[test]
fn an_overrun_ends_with_the_kernels_routes() {
    let mut rack = Rack::new("overrun", 64 << 10);
    let routes = |round: u32| {
        (0..20_000).map(move |n| {
            let hop = (n + round) & 1;
            format!("route replace {} via 10.0.{hop}.2", v4(n))
        })
    };
    rack.batch_unread(routes(0));
    rack.batch(routes(1));
    rack.batch(routes(2));
    rack.until(|rack| {
        (0..20_000).step_by(997).all(|n| {
            let port = u8::try_from((n + 2) & 1).unwrap();
            rack.ports(&v4(n).replace(".0/24", ".1")) == [port]
        })
    });
    assert!(rack.handle().status().counts.overruns > 0);
    rack.settle();
    rack.agrees();
}

/// Routes that are put again after a round took them: plain routes behind `p1`, its next-hop object, the group and the routes by it.
fn put_again(rack: &mut Rack, plain: u32, grouped: u32, sixes: u32) -> Duration {
    let objects = [
        "nexthop replace id 7 via 10.0.0.2 dev p0",
        "nexthop replace id 8 via 10.0.1.2 dev p1",
        "nexthop replace id 9 group 7/8",
        "neigh replace 10.0.1.2 dev p1 lladdr 02:00:00:00:01:11 nud permanent",
        "neigh replace 2001:db8:1::2 dev p1 lladdr 02:00:00:00:01:11 nud permanent",
    ];
    let objects = objects.map(str::to_owned).into_iter();
    let plain = (0..plain).map(|n| format!("route replace {} via 10.0.1.2", v4(n)));
    let by_group = (0..grouped).map(|n| format!("route replace {} nhid 9", v4(300_000 + n)));
    let sixes = (0..sixes).map(|n| format!("route replace {} via 2001:db8:1::2", v6(n)));
    rack.batch(objects.chain(plain).chain(by_group).chain(sixes))
}

/// 200,000 IPv4 and 50,000 IPv6 routes, and what happens to them a hundred times, with a receive buffer of 64 KiB, so that every
/// change of many ends in a resynchronisation.
#[test]
#[ignore = "takes a quarter of an hour: scripts/test-long linux"]
fn a_hundred_rounds_under_a_quarter_of_a_million_routes_end_equal() {
    let rounds = std::env::var("NPCC_ROUNDS").map_or(100, |text| text.parse().unwrap());
    let mut rack = Rack::new("rounds", 64 << 10);
    put_again(&mut rack, 40_000, 60_000, 25_000);
    let fours = (0..100_000).map(|n| format!("route add {} via 10.0.0.2", v4(100_000 + n)));
    let sixes = (0..25_000).map(|n| format!("route add {} via 2001:db8::2", v6(100_000 + n)));
    rack.batch(fours.chain(sixes));
    let mut worst = [Duration::ZERO; 5];
    for round in 0..rounds {
        let kind = round % 5;
        match kind {
            0 => {
                rack.ip("link set p1 down");
                rack.equal_within(Duration::from_secs(10));
                rack.ip("link set p1 up");
            }
            1 => {
                rack.handle().carrier(PortId(1), false);
                rack.equal_within(Duration::from_secs(10));
                rack.handle().carrier(PortId(1), true);
            }
            2 => rack.ip("nexthop replace id 8 via 10.0.0.2 dev p0"),
            3 => {
                rack.ip("addr del 10.0.1.1/24 dev p1");
                rack.equal_within(Duration::from_secs(10));
                rack.ip("addr add 10.0.1.1/24 dev p1");
            }
            _ => {
                let flap =
                    |n: u32| format!("route replace {} via 10.0.{}.2", v4(n % 40_000), n & 1);
                rack.batch((0..100_000).map(flap));
            }
        }
        put_again(&mut rack, 40_000, 60_000, 25_000);
        let took = rack.equal_within(Duration::from_secs(10));
        worst[kind] = worst[kind].max(took);
        let status = rack.handle().status();
        assert!(
            status.kernel[0] >= 200_000 && status.kernel[1] >= 50_000,
            "{status:?}"
        );
    }
    let status = rack.handle().status();
    println!(
        "{rounds} rounds: equal at the latest after {worst:?} (down, carrier, replace, address, 100,000 changes); {:?}",
        status.counts
    );
    assert_eq!(
        status.counts.faults, 0,
        "differences nobody could account for"
    );
}
