//! The kernel's interface under a port of `net_af_packet`: its IPv6 is off while the switch runs, and as it was before and afterwards.
//!
//! Needs root.

use std::process::Command;

use crate::common::manager::Manager;
use crate::common::net::{Space, run, strange_hosts};
use crate::common::rack::{Rack, text};
use crate::common::{Lab, Running, alone};
use npcc_testkit::wait;

/// Returns `disable_ipv6` of the switch's end of a link.
fn disabled(rack: &Rack, end: &str) -> String {
    let path = format!(
        "/proc/sys/net/ipv6/conf/{}/disable_ipv6",
        rack.net.link(end)
    );
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Returns a lab whose port `dc0` has the MAC address of the interface under it.
fn lab(test: &str) -> (crate::common::net::Net, Space, Lab) {
    let (net, space) = (strange_hosts(), Space::of(test));
    let config = text(&net, &space, "10.0.2.1/24, '2001:db8:2::1/64'", "");
    let config = config.replace("mac: \"02:00:00:00:01:01\", ", "");
    let lab = Lab::with(&config);
    (net, space, lab)
}

/// Earlier defect: the kernel under the port had its link-local address too. Each ping to it was answered twice, and BGP's connections were
/// refused by the kernel that had no listener.
#[test]
fn the_kernel_under_a_port_does_not_answer_beside_the_switch() {
    let _alone = alone();
    let (net, space, lab) = lab("beneath");
    let wan = net.link("wan");
    // What somebody disabled stays disabled.
    run(&format!("sysctl -qw net.ipv6.conf.{wan}.disable_ipv6=1"));
    // The kernel uses its address once it has found no other host with it.
    let shown = format!(
        "ip -6 addr show dev {} scope link -tentative",
        net.link("dc")
    );
    let words: Vec<&str> = shown.split_whitespace().collect();
    wait::until(
        "the kernel under the port has an address",
        wait::LONG,
        || {
            let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
            String::from_utf8_lossy(&output.stdout).contains("fe80::")
        },
    );
    let rack = Rack::start(net, space, lab);
    assert_eq!(
        (disabled(&rack, "dc"), disabled(&rack, "wan")),
        ("1".into(), "1".into())
    );
    let shown = rack.space.says("ip -6 -br addr show dc0 scope link");
    let address = shown
        .split_whitespace()
        .find_map(|word| word.strip_suffix("/64"));
    let to = format!("{}%{}", address.unwrap(), rack.net.link("hdc"));
    rack.until("the host reaches the link-local address", |rack| {
        rack.pings("dc", &to)
    });
    let (_, said) = rack.host("dc", &format!("ping -n -c 4 -i 0.2 -W 1 {to}"));
    assert!(
        said.contains("4 received") && !said.contains("duplicates"),
        "{said}"
    );
    // Linux's own listener answers, and no other kernel refuses.
    let server =
        "import socket; s = socket.create_server(('::', 179), family=socket.AF_INET6); s.accept()";
    let _server = Running::of(
        crate::common::net::python(&rack.space.0, server)
            .spawn()
            .unwrap(),
    );
    rack.until("a server listens", |rack| {
        rack.space.says("ss -Htln sport = :179").contains(":179")
    });
    let client = format!("import socket; socket.create_connection(('{to}', 179), 5)");
    let client = crate::common::net::python(&rack.net.space("dc"), &client).output();
    crate::common::assert_success(&client.unwrap());
    let path = format!(
        "/proc/sys/net/ipv6/conf/{}/disable_ipv6",
        rack.net.link("dc")
    );
    let read = || std::fs::read_to_string(&path).unwrap();
    let switch = rack.switch.id();
    run(&format!("kill -TERM {switch}"));
    rack.until("it is on again at the end", |_| read().trim() == "0");
    assert_eq!(disabled(&rack, "wan"), "1");
}

#[test]
fn ipv6_is_back_after_a_start_that_fails_and_addresses_that_are_lost_are_named() {
    let _alone = alone();
    let (net, space, lab) = lab("fails");
    let (dc, wan) = (net.link("dc"), net.link("wan"));
    run(&format!("ip addr add 2001:db8:77::7/64 dev {dc} nodad"));
    run(&format!("ip link del {wan}"));
    let output = lab.command(&["run", "-c", "switch.yaml"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains(&format!("port wan0: device \"net_af_packet1,iface={wan}")),
        "{said}"
    );
    assert!(
        said.contains(&format!("IPv6 is off on {dc}")) && said.contains("2001:db8:77::7"),
        "{said}"
    );
    let path = format!("/proc/sys/net/ipv6/conf/{dc}/disable_ipv6");
    assert_eq!(std::fs::read_to_string(path).unwrap().trim(), "0");
    drop((net, space));
}

/// A process that is killed leaves IPv6 off; the next one, of the same service manager, knows that it was on.
#[test]
fn ipv6_is_back_after_the_stop_that_follows_a_kill() {
    let _alone = alone();
    let (rack, mut manager): (Rack, Manager) = Rack::managed("killed", "");
    assert_eq!(disabled(&rack, "dc"), "1");
    manager.kill();
    rack.lab.answers();
    assert_eq!(disabled(&rack, "dc"), "1");
    manager.stop();
    assert_eq!(disabled(&rack, "dc"), "0");
}
