//! A host that sends a control packet to take over the traffic of others, or to spread it: router advertisements, redirects, and answers
//! with a MAC address that is no other host's. The switch has Linux integrated, and its hosts are the kernel's.
//!
//! Needs root.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use crate::common::net::peer;
use crate::common::rack::Rack;
use crate::common::{Running, alone, assert_success};
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

/// Earlier defect: one ARP answer with such an address turned a flow of data into broadcasts, or into frames for the switch itself.
#[test]
fn an_answer_with_a_mac_address_that_is_no_other_hosts_is_not_forwarded_to() {
    let _alone = alone();
    let rack = Rack::new("claims", "");
    rack.until("the hosts reach the switch", |rack| {
        rack.pings("dc", "10.0.1.1") && rack.pings("wan", "10.0.2.1")
    });
    let host = "02:00:00:00:01:77";
    let claims = [
        ("10.0.1.60", host, Value::Null),
        ("10.0.1.61", "01:00:5e:00:00:09", "group".into()),
        ("10.0.1.62", "ff:ff:ff:ff:ff:ff", "broadcast".into()),
        ("10.0.1.63", "00:00:00:00:00:00", "zero".into()),
        ("10.0.1.64", "02:00:00:00:01:01", "own".into()),
        // The address of the port that it is not behind.
        ("10.0.1.65", "02:00:00:00:02:01", "own".into()),
        ("2001:db8:1::66", "33:33:00:00:00:09", "group".into()),
    ];
    let words: Vec<String> = claims
        .iter()
        .map(|(address, mac, _)| format!("{address}={mac}"))
        .collect();
    let mut claimer = Running::of(
        forger(&rack, &format!("claim {}", words.join(" ")))
            .spawn()
            .unwrap(),
    );
    let heard = BufReader::new(claimer.stdout.take().unwrap());
    for (n, (address, _, _)) in (60u8..).zip(&claims) {
        let command = if address.contains(':') {
            format!("ip -6 route add 2001:db8:{n}::/48 via {address}")
        } else {
            format!("ip route add 10.{n}.0.0/16 via {address}")
        };
        assert_eq!(rack.space.says(&command), "", "{command}");
    }
    let row =
        |rack: &Rack, address: &str| rack.show(&format!("neighbors --host {address}"))[0].clone();
    for (address, mac, refused) in &claims {
        rack.until(&format!("{address} has answered"), |rack| {
            row(rack, address)["mac"] == *mac
        });
        assert_eq!(row(&rack, address)["refused"], *refused, "{address}");
    }
    for (n, (address, _, refused)) in (60u8..).zip(&claims) {
        let prefix = if address.contains(':') {
            format!("2001:db8:{n}::/48")
        } else {
            format!("10.{n}.0.0/16")
        };
        let kind = if refused.is_null() {
            "forward"
        } else {
            "unresolved"
        };
        rack.until(&format!("{prefix} is {kind}"), |rack| {
            rack.show(&format!("routes --host {prefix}"))[0]["next_hops"][0]["kind"] == kind
        });
    }
    // Data to what is behind the claims, and to the claims themselves.
    for n in (60..66).rev() {
        for address in [format!("10.{n}.0.1"), format!("10.0.1.{n}")] {
            let (answered, said) = rack.host("wan", &format!("ping -n -c 1 -W 0.2 {address}"));
            assert!(!answered, "{said}");
        }
    }
    let linux = rack.show("linux");
    assert!(linux["refused_neighbors"].as_u64() >= Some(6), "{linux:#}");
    rack.agrees("at the end");
    let (_, stats) = rack.end();
    let drops = stats["ports"][1]["drops"]["unresolved"].as_u64();
    assert!(
        drops.is_some_and(|drops| drops >= 10),
        "{:#}",
        stats["ports"]
    );
    claimer.kill().unwrap();
    let to: Vec<String> = heard.lines().map_while(Result::ok).collect();
    assert_eq!(
        to,
        [host, host],
        "frames to the host, and none to the others"
    );
}
