//! Restarts under a service manager that keeps descriptors: what stays in Linux, what is counted on, and what is closed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::time::Duration;

use common::alone;
use common::net::run;
use common::rack::{Rack, text, wait};

/// Links, addresses and routes of the switch's namespace, as `ip` prints them; lifetimes and counters are not among them.
fn linux(rack: &Rack) -> String {
    let links = rack.space.says("ip -o link");
    let addresses = rack.space.says("ip -o addr");
    let routes = rack.space.says("ip -d route show table all");
    let routes6 = rack.space.says("ip -6 -d route show table main");
    format!("{links}\n{addresses}\n{routes}\n{routes6}")
}

#[test]
fn taps_addresses_and_routes_stay_over_a_kill_and_a_restart() {
    let _alone = alone();
    let (rack, mut manager) = Rack::managed("stay", "");
    for n in 0..100 {
        let route = format!(
            "ip -n {} route add 10.7.{n}.0/24 via 10.0.2.3 dev wan0 proto bgp",
            rack.space.0
        );
        run(&route);
    }
    rack.until("hosts reach each other", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    assert_eq!(
        manager.names(),
        ["counters", "facts", "pairs", "tap.dc0", "tap.wan0"]
    );
    let before = linux(&rack);
    assert!(before.contains("10.7.99.0/24"), "{before}");
    for kill in [true, false, true] {
        if kill {
            manager.kill();
        } else {
            manager.restart();
        }
        assert_eq!(linux(&rack), before, "without a switch");
        rack.answers();
        rack.until("hosts reach each other", |rack| {
            rack.pings("dc", "10.0.2.3")
        });
        assert_eq!(linux(&rack), before, "killed: {kill}");
        rack.agrees("after a restart");
        assert_eq!(
            manager.names(),
            ["counters", "facts", "pairs", "tap.dc0", "tap.wan0"]
        );
    }
    manager.stop();
    assert!(
        !rack.space.says("ip -o link").contains("dc0"),
        "a stop for good takes all"
    );
}
