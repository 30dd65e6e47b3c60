//! Tests against the kernel of this machine, in a namespace each: its notifications, and the changes it does not notify. Root is needed.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::live::{Live, host_mac, port_mac};
use npcc_linux::netlink::handle::Notice;
use npcc_pipeline::route::nexthop::Kind;
use npcc_pipeline::units::PortId;

#[test]
fn ports_are_links_with_addresses_and_their_subnets_are_attached() {
    let live = Live::open("ports");
    let link = live.ip_says("-d link show p0");
    for text in [
        "02:00:00:00:00:00",
        "mtu 9000",
        "addrgenmode none",
        "alias npcc-switch port 0",
        "UP",
    ] {
        assert!(link.contains(text), "{text}: {link}");
    }
    live.until("all is there", |book| {
        let all = [
            "10.0.0.1/32",
            "2001:db8::1/128",
            "10.0.7.0/24",
            "2001:db8:1::/64",
        ];
        all.iter().all(|text| book.has(text))
    });
    {
        let book = live.book.0.lock().unwrap();
        let one = |text: &str| book.members(text).unwrap()[0];
        assert_eq!(one("10.0.0.1/32").adjacency.kind, Kind::Local);
        assert_eq!(one("2001:db8::1/128").adjacency.kind, Kind::Local);
        let subnet = one("10.0.7.0/24").adjacency;
        assert_eq!(
            (subnet.kind, subnet.port, subnet.vlan),
            (Kind::Unresolved, PortId(0), 7)
        );
        assert_eq!(one("2001:db8:1::/64").adjacency.port, PortId(1));
        assert!(
            book.routes
                .keys()
                .all(|prefix| prefix.to_string() != "127.0.0.0/8")
        );
    }
    live.handle()
        .resolve(PortId(0), 7, "10.0.7.2".parse().unwrap());
    live.until("the neighbour is found", |book| {
        book.members("10.0.7.2/32").is_some()
    });
    let host = live.book.0.lock().unwrap().members("10.0.7.2/32").unwrap()[0].adjacency;
    assert_eq!(
        (host.kind, host.dst, host.src, host.vlan),
        (Kind::Forward, host_mac(6), port_mac(0), 7)
    );
    live.until("and kept", |_| {
        live.ip_says("neigh show dev p0.7").contains("managed")
    });
    live.equal("at the end");
}

#[test]
fn a_next_hop_is_asked_for_and_a_change_of_its_mac_address_followed() {
    let live = Live::open("mac");
    live.ip("route add 192.0.2.0/24 via 10.0.0.2");
    live.ip("route add 2001:db8:f::/48 via 2001:db8::2");
    let to = |text: &'static str, mac| {
        move |book: &crate::common::Book| {
            let members = book.members(text).unwrap_or_default();
            members
                .iter()
                .any(|one| one.adjacency.kind == Kind::Forward && one.adjacency.dst == mac)
        }
    };
    live.until("IPv4's is resolved", to("192.0.2.0/24", host_mac(2)));
    live.until("IPv6's is resolved", to("2001:db8:f::/48", host_mac(4)));
    live.ip("neigh replace 10.0.0.2 lladdr 02:00:00:00:09:09 dev p0 nud reachable");
    live.until(
        "another MAC address",
        to(
            "192.0.2.0/24",
            npcc_pipeline::units::Mac([2, 0, 0, 0, 9, 9]),
        ),
    );
    live.equal("at the end");
}

/// A TAP is an interface of a router from the moment it is made, and stays one.
#[test]
fn a_router_takes_nothing_from_hosts_and_what_somebody_changes_is_set_back() {
    let live = Live::open("router");
    let all = [
        "ipv6/conf/p0.7/accept_ra",
        "ipv6/conf/p0.7/autoconf",
        "ipv6/conf/p0.7/accept_redirects",
        "ipv6/conf/p0.7/proxy_ndp",
        "ipv4/conf/p0.7/accept_redirects",
        "ipv4/conf/p0.7/send_redirects",
        "ipv4/conf/p0.7/proxy_arp",
        "ipv4/conf/p0.7/forwarding",
        "ipv6/conf/p0.7/forwarding",
        "ipv4/conf/all/accept_redirects",
        "ipv4/conf/all/send_redirects",
    ];
    for sysctl in all {
        assert_eq!(live.sysctl_of(sysctl), "0", "{sysctl}");
    }
    let set_back = || {
        let notices = live.notices.lock().unwrap();
        let reports = notices.iter().filter_map(|one| match one {
            Notice::Compared(report) => Some(report.set_back.clone()),
            _ => None,
        });
        reports.flatten().collect::<BTreeSet<String>>()
    };
    live.equal("at the start");
    assert_eq!(set_back(), BTreeSet::new());
    for sysctl in all {
        live.sysctl(sysctl, "1");
    }
    live.equal("after the change");
    let words = all.map(|sysctl| format!("sysctl net/{sysctl} was 1, set back to 0"));
    assert_eq!(set_back(), BTreeSet::from(words));
    for sysctl in all {
        assert_eq!(live.sysctl_of(sysctl), "0", "{sysctl}");
    }
}

/// Trap 1: the kernel does not notify of the routes that disappear with a link that is set down.
#[test]
fn routes_go_with_a_link_that_is_switched_off_and_the_port_follows() {
    let route = npcc_linux::netlink::wants::StaticRoute {
        prefix: "198.51.100.0/24".parse().unwrap(),
        via: vec![("p0".to_owned(), "10.0.0.2".parse().ok())],
        metric: 0,
    };
    let live = Live::with("down", 16 << 20, vec![route]);
    live.batch((0..500).map(|n| format!("route add 20.0.{}.{}/32 via 10.0.0.2", n >> 8, n & 255)));
    live.ip("nexthop add id 5 via 10.0.0.2 dev p0");
    live.ip("route add 21.0.0.0/24 nhid 5");
    live.ip("route add 22.0.0.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2");
    live.until("all are there", |book| {
        let there = |text| book.has(text);
        there("20.0.1.243/32")
            && there("21.0.0.0/24")
            && there("22.0.0.0/24")
            && there("198.51.100.0/24")
    });
    live.until("both are resolved", |book| {
        book.members("22.0.0.0/24").unwrap().len() == 2
    });
    live.ip("link set p0 down");
    live.until("all are gone", |book| {
        let there = |text| book.has(text);
        !there("20.0.1.243/32")
            && !there("21.0.0.0/24")
            && !there("10.0.0.0/24")
            && !there("198.51.100.0/24")
    });
    live.until("the other of two is left", |book| {
        let members = book.members("22.0.0.0/24").unwrap();
        members.len() == 1 && members[0].adjacency.port == PortId(1)
    });
    // The notice of a change follows its last route.
    let until_noticed = |up| {
        let is_it = |one: &Notice| matches!(one, Notice::Admin(PortId(0), now) if *now == up);
        live.until("the port is noticed", |_| {
            live.notices.lock().unwrap().iter().any(is_it)
        });
    };
    until_noticed(false);
    live.equal("while it is off");
    live.ip("link set p0 up");
    live.until(
        "what is attached is back, and the configuration's route",
        |book| {
            let there = |text| book.has(text);
            there("10.0.0.0/24") && there("198.51.100.0/24")
        },
    );
    live.until("the two of 22.0.0.0/24", |book| {
        book.members("22.0.0.0/24").unwrap().len() == 2
    });
    until_noticed(true);
    let report = live.equal("afterwards");
    assert!(
        !live.book.0.lock().unwrap().has("20.0.0.1/32"),
        "{report:?}"
    );
}

/// Trap 2: next-hop objects disappear with the carrier, and all routes over them, without a notification; plain routes stay.
#[test]
fn objects_go_with_the_carrier_and_plain_routes_stay() {
    let live = Live::open("carrier");
    live.ip("nexthop add id 5 via 10.0.0.2 dev p0");
    live.ip("nexthop add id 6 via 10.0.1.2 dev p1");
    live.ip("nexthop add id 7 via 2001:db8::2 dev p0");
    live.ip("nexthop add id 10 group 5,3/6,1");
    live.ip("route add 21.0.0.0/24 nhid 5");
    live.ip("route add 22.0.0.0/24 nhid 10");
    live.ip("-6 route add 2001:db8:7::/48 nhid 7");
    live.ip("route add 23.0.0.0/24 via 10.0.0.2");
    live.until("the group's weights", |book| {
        let members = book.members("22.0.0.0/24").unwrap_or_default();
        let weights: Vec<_> = members
            .iter()
            .map(|one| (one.adjacency.kind, one.weight))
            .collect();
        weights == [(Kind::Forward, 3), (Kind::Forward, 1)]
    });
    live.until("all", |book| {
        book.has("2001:db8:7::/48") && book.has("23.0.0.0/24")
    });
    live.equal("before");
    live.handle().carrier(PortId(0), false);
    live.until("those of objects are gone", |book| {
        let there = |text| book.has(text);
        !there("21.0.0.0/24")
            && !there("2001:db8:7::/48")
            && there("22.0.0.0/24")
            && there("23.0.0.0/24")
    });
    live.until("the group is smaller", |book| {
        book.members("22.0.0.0/24").unwrap().len() == 1
    });
    live.equal("without carrier");
    live.handle().carrier(PortId(0), true);
    live.until("the plain one forwards again", |book| {
        book.members("23.0.0.0/24").unwrap()[0].adjacency.kind == Kind::Forward
    });
    let report = live.equal("with it again");
    assert!(report.compared > 10);
    assert!(
        !live.book.0.lock().unwrap().has("21.0.0.0/24"),
        "nobody put it back"
    );
}

/// The last address takes the routes of a link along, and any address the routes that use it as source.
#[test]
fn routes_go_with_the_address() {
    let live = Live::open("address");
    live.ip("addr add 10.0.9.1/24 dev p0");
    live.ip("route add 30.0.0.0/24 via 10.0.0.2");
    live.ip("route add 31.0.0.0/24 via 10.0.9.2 src 10.0.9.1");
    live.ip("route add 32.0.0.0/24 via 10.0.1.2 src 10.0.9.1");
    let there = |text: &'static str| move |book: &crate::common::Book| book.has(text);
    live.until("all", |book| {
        ["30.0.0.0/24", "31.0.0.0/24", "32.0.0.0/24"]
            .iter()
            .all(|text| book.has(text))
    });
    live.ip("addr del 10.0.9.1/24 dev p0");
    live.until("those from it", |book| {
        !there("31.0.0.0/24")(book) && !there("32.0.0.0/24")(book)
    });
    live.equal("one address less");
    assert!(there("30.0.0.0/24")(&live.book.0.lock().unwrap()));
    live.ip("addr del 10.0.0.1/24 dev p0");
    live.until("all of the link", |book| {
        !there("30.0.0.0/24")(book) && !there("10.0.0.1/32")(book)
    });
    live.equal("no address");
    live.ip("addr add 10.0.0.1/24 dev p0");
    live.ip("route add 30.0.0.0/24 via 10.0.0.2");
    live.until("back", there("30.0.0.0/24"));
    live.equal("at the end");
}

#[test]
fn what_drops_and_what_is_not_ours() {
    let live = Live::open("kinds");
    live.ip("link add name mgmt0 type veth peer name mgmt1");
    live.ip("link set mgmt0 up");
    live.ip("link set mgmt1 up");
    live.ip("addr add 172.16.0.1/24 dev mgmt0");
    for line in [
        "route add blackhole 40.0.0.0/24",
        "route add unreachable 41.0.0.0/24",
        "route add prohibit 42.0.0.0/24",
        "route add throw 43.0.0.0/24",
        "route add 44.0.0.0/24 via 172.16.0.2",
        "route add 45.0.0.0/24 via 172.16.0.2 metric 10",
        "route add 45.0.0.0/24 via 10.0.0.2 metric 20",
        "route add 46.0.0.0/24 via 10.0.0.2 metric 20",
        "route add 46.0.0.0/24 via 10.0.1.2 metric 10",
        "route add 47.0.0.0/24 via 10.0.0.2 table 100",
        "route add 48.0.0.0/24 via inet6 2001:db8::2 dev p0",
        "addr add 10.255.0.1/32 dev lo",
        "-6 route add 2001:db8:40::/48 nexthop via 2001:db8::2 nexthop via 2001:db8:1::2 weight 3",
        "-6 route append 2001:db8:41::/48 via 2001:db8::2",
        "-6 route append 2001:db8:41::/48 via 2001:db8:1::2",
        "-6 route append 2001:db8:42::/48 via 2001:db8::2",
        "-6 route append 2001:db8:42::/48 via 2001:db8:1::2",
        "-6 route del 2001:db8:42::/48 via 2001:db8::2",
    ] {
        live.ip(line);
    }
    live.until("the last", |book| {
        let at = |text| book.members(text).unwrap_or_default();
        at("2001:db8:40::/48").len() == 2
            && at("2001:db8:41::/48").len() == 2
            && at("2001:db8:42::/48").len() == 1
            && at("48.0.0.0/24")
                .iter()
                .any(|one| one.adjacency.kind == Kind::Forward)
    });
    {
        let book = live.book.0.lock().unwrap();
        let kind = |text: &str| book.members(text).map(|members| members[0].adjacency.kind);
        assert_eq!(kind("40.0.0.0/24"), Some(Kind::Blackhole));
        for text in ["41.0.0.0/24", "42.0.0.0/24", "43.0.0.0/24"] {
            assert_eq!(kind(text), Some(Kind::NoRoute), "{text}");
        }
        assert_eq!(kind("44.0.0.0/24"), None);
        assert_eq!(kind("45.0.0.0/24"), None, "the better one leads elsewhere");
        assert_eq!(
            book.members("46.0.0.0/24").unwrap()[0].adjacency.port,
            PortId(1)
        );
        assert_eq!(kind("47.0.0.0/24"), None);
        assert_eq!(kind("10.255.0.1/32"), Some(Kind::Local));
        assert_eq!(
            book.members("2001:db8:42::/48").unwrap()[0].adjacency.port,
            PortId(1)
        );
    }
    assert!(live.handle().status().figures.left_out >= 3);
    live.equal("with all kinds");
    live.ip("route del 46.0.0.0/24 metric 10");
    live.until("the next best", |book| {
        book.members("46.0.0.0/24").unwrap()[0].adjacency.port == PortId(0)
    });
    live.ip("link del mgmt0");
    live.until("the other one", |book| book.has("45.0.0.0/24"));
    live.equal("without the other link");
}

/// Trap 3: with `nexthop_compat_mode` 0 a change of a next hop under many routes is a message or two.
#[test]
fn a_next_hop_replaced_under_many_routes_is_one_change() {
    let live = Live::open("replace");
    live.ip("nexthop add id 5 via 10.0.0.2 dev p0");
    live.ip("nexthop add id 6 via 10.0.1.2 dev p1");
    live.ip("nexthop add id 10 group 5/6");
    live.batch((0..20_000).map(|n| format!("route add 50.{}.{}.0/24 nhid 10", n >> 8, n & 255)));
    live.until("all are there", |book| book.routes.len() > 20_000);
    live.until("both are resolved", |book| {
        book.members("50.0.0.0/24").unwrap().len() == 2
    });
    live.ip("route add 198.18.1.0/24 via 10.0.0.2");
    live.until("a later change", |book| book.has("198.18.1.0/24"));
    let before = live.handle().status().counts;
    let sets = {
        let book = live.book.0.lock().unwrap();
        (book.group_sets, book.route_sets)
    };
    live.ip("nexthop replace id 10 group 5");
    live.until("one is left", |book| {
        book.members("50.78.31.0/24").unwrap().len() == 1
    });
    live.ip("route add 198.18.2.0/24 via 10.0.0.2");
    live.until("a later change", |book| book.has("198.18.2.0/24"));
    let after = live.handle().status().counts;
    assert!(
        after.messages - before.messages <= 10,
        "{before:?} {after:?}"
    );
    {
        let book = live.book.0.lock().unwrap();
        // One route, and perhaps its group, is the later change.
        let (groups, routes) = (book.group_sets - sets.0, book.route_sets - sets.1);
        assert!(
            (1..=2).contains(&groups) && routes == 1,
            "{groups} {routes}"
        );
    }
    live.equal("at the end");
}

/// An overrun under churn ends in equality.
#[test]
fn an_overrun_ends_in_equality() {
    let live = Live::with("overrun", 64 << 10, vec![]);
    live.ip("nexthop add id 5 via 10.0.0.2 dev p0");
    let route = |verb: &'static str, part: u32, from: u32| {
        (from..20_000).map(move |n| {
            let by = if n % 3 == 0 { "nhid 5" } else { "via 10.0.1.2" };
            let (high, low) = (n >> 8, n & 255);
            format!("route {verb} {}.{high}.{low}.0/24 {by}", 60 + part)
        })
    };
    // The thread is blocked at first: it might keep up with `ip` otherwise, and nothing be lost.
    let held = live.book.0.lock().unwrap();
    live.batch(route("replace", 0, 0));
    drop(held);
    std::thread::scope(|scope| {
        for part in 0..2 {
            let live = &live;
            scope.spawn(move || {
                for round in 0..3 {
                    live.batch(route("replace", part, 0));
                    live.batch(route("del", part, 5_000 * round));
                }
            });
        }
    });
    let began = std::time::Instant::now();
    let kernel = || {
        let says = live.ip_says("route show table main");
        says.lines()
            .filter(|line| line.starts_with("60.") || line.starts_with("61."))
            .count()
    };
    assert_eq!(kernel(), 20_000);
    live.until("as many routes as the kernel", |book| {
        let ours = |text: &str| text.starts_with("60.") || text.starts_with("61.");
        book.routes
            .keys()
            .filter(|prefix| ours(&prefix.to_string()))
            .count()
            == 20_000
    });
    println!(
        "equal {:?} after the churn; {:?}",
        began.elapsed(),
        live.handle().status().counts
    );
    assert!(
        live.handle().status().counts.overruns > 0,
        "nothing was lost while the thread stood still"
    );
    live.equal("after an overrun");
}

/// Fifty thousand routes are added, their link set down and up, and the routes added again.
#[test]
fn fifty_thousand_routes() {
    many_routes("fifty", 50_000);
}

/// Repeats the test with 900,000 routes, the size of a full table.
#[test]
#[ignore = "takes minutes: scripts/test-long linux"]
fn a_full_table() {
    many_routes("full", 900_000);
}

fn many_routes(test: &str, count: u32) {
    let live = Live::open(test);
    let routes = |verb: &'static str| {
        let prefix = |n: u32| format!("{}.{}.{}.0/24", 60 + (n >> 16), (n >> 8) & 255, n & 255);
        (0..count).map(move |n| format!("route {verb} {} via 10.0.{}.2", prefix(n), n & 1))
    };
    let ours = |book: &crate::common::Book| book.routes.len() > count as usize;
    let began = std::time::Instant::now();
    live.batch(routes("add"));
    let put = began.elapsed();
    live.until("all are there", ours);
    println!(
        "{count} routes: ip -batch took {put:?}, the switch had all {:?} later",
        began.elapsed() - put
    );
    let report = live.equal("with all");
    println!(
        "compared {} in {:?}; {:?}",
        report.compared,
        report.took,
        live.handle().status()
    );
    println!("{}", memory());
    let began = std::time::Instant::now();
    live.ip("link set p0 down");
    let down = began.elapsed();
    live.until("half are gone", |book| {
        book.routes.len() < count as usize * 3 / 5
    });
    println!(
        "link down: the kernel {down:?}, the switch {:?}",
        began.elapsed()
    );
    live.equal("with half");
    live.ip("link set p0 up");
    live.batch(routes("replace"));
    live.until("all are there again", ours);
    live.equal("with all again");
    println!("{:?}", live.handle().status().counts);
    println!("{}", memory());
}

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.unwrap().to_owned()
}

/// The thread is blocked for three seconds while routes change: messages are lost, and the state is equal again.
#[test]
fn a_thread_that_stood_still_is_equal_again() {
    let live = Live::with("still", 256 << 10, vec![]);
    let held = live.book.0.lock().unwrap();
    let changes = |verb: &'static str| {
        (0..30_000)
            .map(move |n| format!("route {verb} 70.{}.{}.0/24 via 10.0.1.2", n >> 8, n & 255))
    };
    live.batch(changes("add"));
    live.batch(changes("del").step_by(2));
    // The stimulus: it stands still for so long.
    std::thread::sleep(Duration::from_secs(3));
    let began = std::time::Instant::now();
    drop(held);
    live.until("as many as the kernel has", |book| {
        let of =
            |prefix: &&npcc_pipeline::route::prefix::Prefix| prefix.to_string().starts_with("70.");
        book.routes.keys().filter(of).count() == 15_000
    });
    println!("equal {:?} later", began.elapsed());
    assert!(live.handle().status().counts.overruns > 0);
    live.equal("at the end");
}

/// A peer silently changes its MAC address: the kernel detects it, and the switch follows; meanwhile a next hop that answers is never
/// removed.
#[test]
fn a_silent_change_of_a_mac_address_is_followed() {
    let live = Live::open("silent");
    for family in ["ipv4", "ipv6"] {
        // Shorter times than the switch's own, for a short test.
        live.sysctl(&format!("{family}/neigh/p0/base_reachable_time_ms"), "1000");
        live.sysctl(&format!("{family}/neigh/p0/interval_probe_time_ms"), "1000");
        live.sysctl(&format!("{family}/neigh/p0/gc_stale_time"), "1");
        live.sysctl(&format!("{family}/neigh/p0/delay_first_probe_time"), "1");
        live.sysctl(&format!("{family}/neigh/p0/retrans_time_ms"), "200");
    }
    live.ip("route add 192.0.2.0/24 via 10.0.0.2");
    live.ip("route add 2001:db8:f::/48 via 2001:db8::2");
    let mac_of = |book: &crate::common::Book, text: &str| {
        let members = book.members(text).unwrap_or_default();
        members
            .first()
            .filter(|one| one.adjacency.kind == Kind::Forward)
            .map(|one| one.adjacency.dst)
    };
    live.until("both are resolved", |book| {
        mac_of(book, "192.0.2.0/24").is_some() && mac_of(book, "2001:db8:f::/48").is_some()
    });
    // The stimulus: several rounds of the kernel's probes.
    let began = std::time::Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        let book = live.book.0.lock().unwrap();
        assert_eq!(mac_of(&book, "192.0.2.0/24"), Some(host_mac(2)));
        assert_eq!(mac_of(&book, "2001:db8:f::/48"), Some(host_mac(4)));
        drop(book);
        std::thread::sleep(Duration::from_millis(5));
    }
    let new = npcc_pipeline::units::Mac([2, 0, 0, 0, 9, 9]);
    for address in ["10.0.0.2", "2001:db8::2"] {
        live.hosts
            .lock()
            .unwrap()
            .insert(address.parse().unwrap(), new);
    }
    let took = live.until("both new ones", |book| {
        [
            mac_of(book, "192.0.2.0/24"),
            mac_of(book, "2001:db8:f::/48"),
        ] == [Some(new), Some(new)]
    });
    println!("followed after {took:?}");
    live.hosts.lock().unwrap().clear();
    live.until("nobody answers", |book| {
        mac_of(book, "192.0.2.0/24").is_none() && mac_of(book, "2001:db8:f::/48").is_none()
    });
    live.equal("at the end");
}

/// Rounds of all kinds of changes to links, addresses, objects and routes; after each the model has the kernel's state.
#[test]
fn rounds_of_everything_end_equal() {
    rounds("rounds", 40, 11);
}

#[test]
#[ignore = "takes minutes: scripts/test-long linux"]
fn many_rounds_of_everything_end_equal() {
    for seed in 1..11 {
        rounds("many", 100, seed * 7919);
    }
}

fn rounds(test: &str, count: usize, mut seed: u64) {
    let live = Live::open(test);
    let mut any = move |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut log = vec![];
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..count {
        for _ in 0..1 + any(12) {
            let (port, other, n) = (any(2), any(2), any(6));
            let line = match any(24) {
                0 => format!("link set p{port} down"),
                1..=3 => format!("link set p{port} up"),
                4 => format!("addr del 10.0.{port}.1/24 dev p{port}"),
                5 => format!("addr replace 10.0.{port}.1/24 dev p{port}"),
                6 => format!("addr replace 10.5.{port}.1/24 dev p{port}"),
                7 => format!("addr del 10.5.{port}.1/24 dev p{port}"),
                8 => format!("addr replace 2001:db8:{port}::99/64 dev p{port} nodad"),
                9 => format!("addr del 2001:db8:{port}::99/64 dev p{port}"),
                10 => format!("nexthop replace id {} via 10.0.{port}.2 dev p{port}", 1 + n),
                11 => format!("nexthop replace id {} via fe80::2 dev p{port}", 1 + n),
                12 => format!(
                    "nexthop replace id {} group {}/{},2",
                    10 + any(3),
                    1 + n,
                    1 + any(6)
                ),
                13 => format!("nexthop del id {}", [1 + n, 10 + any(3)][any(2) as usize]),
                14 => format!(
                    "route replace 80.{n}.0.0/24 nhid {}",
                    [1 + any(6), 10 + any(3)][any(2) as usize]
                ),
                15 => format!(
                    "-6 route replace 2001:db8:8{n}::/48 nhid {}",
                    [1 + any(6), 10 + any(3)][any(2) as usize]
                ),
                16 => format!(
                    "route replace 80.{n}.0.0/24 via 10.0.{port}.2 metric {}",
                    any(2)
                ),
                17 => format!(
                    "route replace 80.{n}.0.0/24 nexthop via 10.0.0.2 nexthop via 10.0.1.2 weight 3"
                ),
                18 => format!("route append 80.{n}.0.0/24 via 10.0.{port}.3 src 10.5.{other}.1"),
                19 => format!(
                    "-6 route append 2001:db8:8{n}::/48 via 2001:db8:{port}::{}",
                    2 + any(2)
                ),
                20 => format!(
                    "-6 route del 2001:db8:8{n}::/48 via 2001:db8:{port}::{}",
                    2 + any(2)
                ),
                21 => format!(
                    "-6 route replace 2001:db8:8{n}::/48 nexthop via fe80::2 dev p0 nexthop via fe80::3 dev p1"
                ),
                22 => format!("route del 80.{n}.0.0/24"),
                _ => format!(
                    "neigh replace 10.0.{port}.{} lladdr 02:00:00:00:07:0{n} dev p{port}",
                    2 + any(4)
                ),
            };
            log.push(line);
        }
        if any(5) == 0 {
            live.handle().carrier(PortId(any(2) as u8), any(3) > 0);
        }
        let from = log.len().saturating_sub(12);
        live.batch(log[from..].iter().cloned());
        live.settle();
        let book = live.book.0.lock().unwrap();
        let kinds = book.routes.keys().map(|prefix| prefix.to_string());
        seen.extend(kinds.filter_map(|text| Some(text.split(['.', ':']).nth(2)?.to_owned())));
        drop(book);
        live.equal(&format!("round {round}, after {:#?}", &log[from..]));
    }
    assert_eq!(live.handle().status().counts.faults, 0);
    let v6 = |n: u32| seen.contains(&format!("8{n}"));
    assert!((0..6).any(v6), "IPv6's routes came too: {seen:?}");
}

/// Two million changes of IPv6 routes leave no memory behind.
#[test]
#[ignore = "takes minutes: scripts/test-long linux"]
fn flaps_leave_no_memory_behind() {
    let live = Live::open("flaps");
    let flap = || {
        let lines = (0..100_000u32).flat_map(|n| {
            let prefix = format!(
                "2001:db8:{:x}:{:x}::/64",
                0x100 + (n >> 12 & 0xff),
                n & 0xfff
            );
            [
                format!("-6 route add {prefix} via 2001:db8::2"),
                format!("-6 route del {prefix}"),
            ]
        });
        live.batch(lines);
    };
    flap();
    let before = memory();
    let began = std::time::Instant::now();
    (0..9).for_each(|_| flap());
    println!(
        "before {before}, after {}, {:?}; {:?}",
        memory(),
        began.elapsed(),
        live.handle().status().counts
    );
    live.settle();
    assert!(
        live.handle().status().counts.messages > 1_900_000,
        "the kernel took the changes"
    );
    live.equal("at the end");
}

/// Repeats the kernel's message of a new route, with another prefix, to every netlink socket of the namespace.
const FORGE: &str = "
import socket, subprocess
own = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
own.bind((0, 1 << 6))
subprocess.run('ip route add 30.0.0.0/24 via 10.0.0.2', shell=True, check=True)
while bytes([30, 0, 0, 0]) not in (message := own.recv(65536)):
    pass
forged = message.replace(bytes([30, 0, 0, 0]), bytes([31, 0, 0, 0]))
rows = [line.split() for line in open('/proc/net/netlink')][1:]
sent = 0
for row in rows:
    port = int(row[2])
    if row[1] == '0' and port not in (0, own.getsockname()[0]):
        own.sendto(forged, (port, 0))
        sent += 1
assert sent >= 2
";

/// A process with the privilege to change the kernel's routes must not give the switch routes that the kernel does not have.
#[test]
fn a_message_that_is_not_the_kernels_is_not_believed() {
    let live = Live::open("forged");
    let done = std::process::Command::new("ip")
        .args(["netns", "exec", &live.name, "/usr/bin/python3", "-c", FORGE])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    live.until("the kernel's route", |book| book.has("30.0.0.0/24"));
    live.ip("route add 32.0.0.0/24 via 10.0.0.2");
    live.until("one that came later", |book| book.has("32.0.0.0/24"));
    assert!(!live.book.0.lock().unwrap().has("31.0.0.0/24"));
    live.equal("at the end");
}

/// The kernel makes up neighbours without ARP on the loopback as somebody uses it, and announces none of them.
#[test]
fn neighbours_that_the_kernel_makes_up_are_no_fault_and_permanent_ones_are_compared() {
    let live = Live::open("made-up");
    live.equal("at the start");
    let serve = "
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
";
    let used = std::process::Command::new("ip")
        .args(["netns", "exec", &live.name, "/usr/bin/python3", "-c", serve])
        .status();
    assert!(used.unwrap().success());
    let made_up = live.ip_says("neigh show dev lo nud noarp");
    assert!(made_up.contains("NOARP"), "{made_up}");
    live.ip("neigh add 10.0.0.99 lladdr 02:00:00:00:09:09 dev p0 nud permanent");
    live.settle();
    let report = live.equal("at the end");
    assert_eq!(report.examples, Vec::<String>::new());
    assert_eq!(live.handle().status().counts.faults, 0);
}
