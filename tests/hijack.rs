//! A host that sends a control packet to take over the traffic of others, or to spread it: router advertisements, redirects, and answers
//! with a MAC address that is no other host's. The switch has Linux integrated, and its hosts are the kernel's.
//!
//! Needs root.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what is wrong by panicking"
)]

mod common;

use std::process::Command;

use common::net::peer;
use common::rack::Rack;
use common::{alone, assert_success};
use serde_json::Value;

/// Returns a command that plays the host of `dc` by `tests/peer/hijack.py`.
fn forger(rack: &Rack, action: &str) -> Command {
    let mut command = peer(&rack.net.space("dc"), "hijack.py");
    command.args([&rack.net.link("hdc"), "02:00:00:00:01:01"]);
    command.args(action.split_whitespace());
    command
}

/// Sends one router advertisement, and waits until Linux has read it: it learns the neighbour that sent it, whatever else it does.
fn advertise(rack: &Rack, source: &str, prefix: &str, lifetime: u32) {
    let action = format!("advertise {source} {prefix} {lifetime}");
    assert_success(&forger(rack, &action).output().unwrap());
    rack.until(&action, |rack| {
        let seen = rack
            .space
            .says(&format!("ip -6 neigh show {source} dev dc0"));
        seen.contains("router")
    });
}

/// Returns the routes of the switch's namespace and what they lead to, as lines of `ip route`.
fn routes(rack: &Rack) -> String {
    let each = ["ip -4 route", "ip -6 route", "ip -6 -br addr show dc0"];
    each.map(|command| rack.space.says(command)).concat()
}

/// Earlier defect: one router advertisement of any host gave the switch a default route, or took over the traffic to a host behind another
/// port by an on-link prefix, and changed the MTU of its interface.
#[test]
fn a_router_advertisement_of_a_host_changes_no_route_no_address_and_no_mtu() {
    let _alone = alone();
    let rack = Rack::new("advert", "");
    rack.until("both hosts are known", |rack| {
        rack.pings("dc", "2001:db8:2::3") && rack.pings("wan", "2001:db8:1::3")
    });
    let mtu = |rack: &Rack| rack.space.says("sysctl -n net.ipv6.conf.dc0.mtu");
    let (before, mtu_before) = (routes(&rack), mtu(&rack));
    // A default router, and a prefix of another port's hosts.
    advertise(&rack, "fe80::bad1", "2001:db8:9::/64", 1800);
    advertise(&rack, "fe80::bad2", "2001:db8:2::/126", 0);
    assert_eq!(routes(&rack), before);
    assert_eq!(mtu(&rack), mtu_before);
    let all = rack.show("routes");
    let all = all.as_array().unwrap();
    assert!(!all.iter().any(|row| row["prefix"] == "::/0"), "{all:#?}");
    let host = rack.show("routes --host 2001:db8:2::3/128");
    let host = host.as_array().unwrap();
    let hop = |row: &Value| (row["prefix"].clone(), row["next_hops"][0]["port"].clone());
    assert!(
        host.iter()
            .any(|row| hop(row) == ("2001:db8:2::3/128".into(), "wan0".into())),
        "{host:#?}"
    );
    rack.agrees("at the end");

    // The running switch, in its sandbox, sets back what somebody changes.
    let words = "sysctl net/ipv6/conf/dc0/accept_ra was 1, set back to 0";
    rack.until("the difference is shown", |rack| {
        rack.space.says("sysctl -qw net.ipv6.conf.dc0.accept_ra=1");
        let differs = rack.show("routes --diff");
        let mut rows = differs.as_array().into_iter().flatten();
        rows.any(|row| row["prefix"] == words && row["state"] == "mended")
    });
    let now = rack.space.says("sysctl -n net.ipv6.conf.dc0.accept_ra");
    assert_eq!(now.trim(), "0");
    rack.agrees("afterwards");
    let (said, _) = rack.end();
    assert!(said.contains(&format!("linux: {words}")), "{said}");
}

#[test]
fn a_redirect_of_a_gateway_changes_no_route() {
    let _alone = alone();
    let rack = Rack::new("redirect", "");
    // The link-local address of the host is that of its MAC address.
    let gateway = "fe80::ff:fe00:103";
    for command in [
        "ip route add 10.99.0.0/16 via 10.0.1.3".to_owned(),
        format!("ip -6 route add 2001:db8:99::/48 via {gateway} dev dc0"),
        // Linux believes a redirect to a neighbour that it knows.
        "ip neigh add 10.0.1.66 lladdr 02:00:00:00:01:66 dev dc0".to_owned(),
        "ip neigh add fe80::66 lladdr 02:00:00:00:01:66 dev dc0".to_owned(),
    ] {
        assert_eq!(rack.space.says(&command), "", "{command}");
    }
    rack.until("the host reaches the switch", |rack| {
        rack.pings("dc", "10.0.1.1") && rack.pings("dc", "2001:db8:1::1")
    });
    for redirect in [
        "redirect 10.0.1.1 10.0.1.3 10.99.0.1 10.0.1.66".to_owned(),
        format!("redirect 2001:db8:1::1 {gateway} 2001:db8:99::1 fe80::66"),
    ] {
        assert_success(&forger(&rack, &redirect).output().unwrap());
    }
    // Both have been read once what came later in their classes has.
    advertise(&rack, "fe80::bad3", "2001:db8:9::/64", 0);
    assert!(rack.pings("dc", "10.0.1.1"));
    let way = rack.space.says("ip route get 10.99.0.1");
    assert!(way.contains("via 10.0.1.3 dev dc0"), "{way}");
    let way = rack.space.says("ip -6 route get 2001:db8:99::1");
    assert!(way.contains(&format!("via {gateway} dev dc0")), "{way}");
    rack.end();
}
