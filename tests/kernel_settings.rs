//! Settings of Linux that concern forwarded packets beside its routes, with a real kernel as control plane and as hosts: MTU of routes, MAC
//! address and MTU of interfaces, addresses of the loopback, virtual routers.
//!
//! Needs root.

use std::fmt::Write as _;

use crate::common::Lab;
use crate::common::alone;
use crate::common::net::{Space, two_hosts};
use crate::common::rack::Rack;

/// Runs `ip` in the namespace of the switch.
fn ip(rack: &Rack, arguments: &str) {
    let said = rack.space.says(&format!("ip {arguments}"));
    assert_eq!(said, "", "ip {arguments}");
}

#[test]
fn a_host_learns_the_mtu_of_a_route() {
    let _alone = alone();
    let rack = Rack::new("route-mtu", "");
    rack.until("both hosts are known", |rack| {
        rack.pings("dc", "10.0.2.3") && rack.pings("wan", "2001:db8:1::3")
    });
    for (family, far, via) in [
        ("-4", "10.9.0.1", "10.0.2.3"),
        ("-6", "2001:db8:9::1", "2001:db8:2::3"),
    ] {
        let len = if family == "-4" { 32 } else { 128 };
        let (done, said) = rack.host("wan", &format!("ip addr add {far}/{len} dev lo"));
        assert!(done, "{said}");
        ip(
            &rack,
            &format!("{family} route add {far}/{len} via {via} mtu 1300"),
        );
        rack.until(far, |rack| rack.pings("dc", far));
        let large = format!("ping {family} -n -c 1 -W 1 -M do -s 1400 {far}");
        let (passed, said) = rack.host("dc", &large);
        assert!(!passed && said.contains("1300"), "{said}");
        let (_, known) = rack.host("dc", &format!("ip route get {far}"));
        assert!(known.contains("mtu 1300"), "{known}");
    }
    rack.agrees("at the end");
}

#[test]
fn what_linux_changes_on_an_interface_is_set_back_with_an_event() {
    let _alone = alone();
    let rack = Rack::new("set-back", "");
    rack.until("the switch is known", |rack| rack.pings("dc", "10.0.1.1"));
    let before = rack.space.says("ip -o link show dc0");
    ip(&rack, "link set dc0 mtu 1400 address 02:00:00:00:01:55");
    let mtu = before.split("mtu ").nth(1).unwrap();
    let mtu = mtu.split(' ').next().unwrap();
    rack.until("all is as before", |rack| {
        let now = rack.space.says("ip -o link show dc0");
        now.contains("02:00:00:00:01:01") && now.contains(&format!("mtu {mtu} "))
    });
    rack.until("and said", |rack| {
        let log = rack.show("log").to_string();
        log.contains("MAC address 02:00:00:00:01:55 set back to 02:00:00:00:01:01")
    });
    rack.until("hosts reach it", |rack| rack.pings("dc", "10.0.1.1"));
}

#[test]
fn a_switch_without_addresses_on_its_ports_sends_icmp_errors() {
    let _alone = alone();
    let net = two_hosts(1500, [3, 3]);
    let space = Space::of("unnumbered");
    let mut yaml = format!(
        "version: 1
dpdk: {{ eal_args: [--no-pci], hugepages: off }}
cores: {{ control: 0, workers: [1], idle: adaptive }}
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
linux: {{ integrate: true, netns: {} }}
ports:
",
        space.0
    );
    for (index, side) in [(0, "dc"), (1, "wan")] {
        let device = net.jumbo_device(index, side);
        let mac = format!("02:00:00:00:0{}:01", index + 1);
        let _ = writeln!(
            yaml,
            "  - {{ name: {side}0, device: \"{device}\", mac: \"{mac}\" }}"
        );
    }
    let rack = Rack::start(net, space, Lab::with(&yaml));
    for (n, port) in [(1, "dc0"), (2, "wan0")] {
        ip(&rack, &format!("route add 10.0.{n}.0/24 dev {port}"));
        ip(&rack, &format!("-6 route add 2001:db8:{n}::/64 dev {port}"));
        for host in [format!("10.0.{n}.3"), format!("2001:db8:{n}::3")] {
            let mac = format!("02:00:00:00:0{n}:03");
            ip(
                &rack,
                &format!("neigh replace {host} lladdr {mac} dev {port} nud permanent"),
            );
        }
    }
    for host in ["10.0.2.3", "2001:db8:2::3"] {
        rack.until(host, |rack| rack.pings("dc", host));
    }
    let expired = |rack: &Rack, host: &str, from: &str| {
        let (_, said) = rack.host("dc", &format!("ping -n -c 1 -W 1 -t 1 {host}"));
        said.contains(&format!("From {from}"))
    };
    rack.until("the dummy address", |rack| {
        expired(rack, "10.0.2.3", "192.0.0.8")
    });
    rack.until("the link-local address", |rack| {
        expired(rack, "2001:db8:2::3", "fe80::ff:fe00:101")
    });
    ip(&rack, "addr add 10.255.0.1/32 dev lo");
    ip(&rack, "addr add 2001:db8:255::1/128 dev lo");
    rack.until("the loopback's", |rack| {
        expired(rack, "10.0.2.3", "10.255.0.1")
    });
    rack.until("the loopback's of IPv6", |rack| {
        expired(rack, "2001:db8:2::3", "2001:db8:255::1")
    });
    rack.agrees("at the end");
}

/// A virtual router as keepalived's `use_vmac` and FRR's vrrpd make it: a macvlan over the interface with VRRP's MAC address.
#[test]
fn a_virtual_router_by_a_macvlan_answers_and_forwards() {
    let _alone = alone();
    let rack = Rack::new("vmac", "");
    rack.until("both hosts are known", |rack| {
        rack.pings("dc", "10.0.2.3") && rack.pings("wan", "10.0.1.3")
    });
    ip(
        &rack,
        "link add vrrp51 link dc0 address 00:00:5e:00:01:33 type macvlan mode private",
    );
    // keepalived sets this, so that the interface beneath does not answer too.
    rack.space.says("sysctl -qw net.ipv4.conf.dc0.arp_ignore=1");
    rack.space
        .says("sysctl -qw net.ipv4.conf.vrrp51.arp_ignore=1");
    ip(&rack, "link set vrrp51 up");
    ip(&rack, "addr add 10.0.1.254/32 dev vrrp51");
    rack.until("its address answers", |rack| rack.pings("dc", "10.0.1.254"));
    let (_, known) = rack.host("dc", "ip neigh show 10.0.1.254");
    assert!(known.contains("00:00:5e:00:01:33"), "{known}");
    let (done, said) = rack.host("dc", "ip route replace 10.0.2.0/24 via 10.0.1.254");
    assert!(done, "{said}");
    rack.until("it forwards", |rack| rack.pings("dc", "10.0.2.3"));
    rack.agrees("with it");
    ip(&rack, "link set vrrp51 down");
    rack.until("a backup does not", |rack| !rack.pings("dc", "10.0.2.3"));
}
