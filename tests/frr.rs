//! Routing daemons beside the switch, as Debian ships them: BGP of both families, also unnumbered, OSPF, BFD, and BIRD once.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::frr::{Frr, bgp_host};
use crate::common::net::run;
use crate::common::rack::Rack;
use crate::common::{Running, alone};
use npcc_testkit::wait;
use serde_json::Value;

/// BGP configuration of the switch's namespace: numbered towards `dc`, unnumbered towards `wan`.
const SWITCH: &str = "router bgp 65000
 bgp router-id 10.0.1.1
 no bgp ebgp-requires-policy
 timers bgp 1 3
 neighbor 10.0.1.3 remote-as 65101
 neighbor 10.0.1.3 bfd
 neighbor 10.0.1.3 timers connect 1
 neighbor 10.0.1.3 advertisement-interval 0
 neighbor wan0 interface remote-as external
 neighbor wan0 bfd
 neighbor wan0 timers connect 1
 neighbor wan0 advertisement-interval 0
 address-family ipv6 unicast
  neighbor wan0 activate
  neighbor 10.0.1.3 activate
 exit-address-family
";

/// BGP configuration for a restart of FRR itself, as docs/linux.md has it.
const GRACEFUL: &str = "router bgp 65000
 bgp router-id 10.0.1.1
 no bgp ebgp-requires-policy
 bgp graceful-restart
 bgp graceful-restart preserve-fw-state
 timers bgp 1 3
 neighbor 10.0.1.3 remote-as 65101
 neighbor 10.0.1.3 timers connect 1
 neighbor 10.0.1.3 advertisement-interval 0
 neighbor wan0 interface remote-as external
 neighbor wan0 timers connect 1
 neighbor wan0 advertisement-interval 0
 address-family ipv6 unicast
  neighbor wan0 activate
  neighbor 10.0.1.3 activate
 exit-address-family
";

/// Law: with zebra's `-r -K` and BGP's graceful restart, a restart of FRR costs no frame and no route.
#[test]
fn frr_restarts_without_an_outage() {
    let _alone = alone();
    let rack = Rack::new("frrgr", "");
    let texts = ["! none\n", GRACEFUL, "! no more\n", ""];
    let mut own = Frr::start_with(&rack.space.0, &["-K", "60"], texts);
    let hosts = [
        ("dc", 101, "10.0.1.1", "remote-as 65000"),
        ("wan", 102, "unnumbered", "interface remote-as external"),
    ];
    let hosts = hosts.map(|(side, number, peer, remote)| {
        let host = bgp_host(&rack, side, number, peer, remote);
        // BFD ends with bfdd, and with it the session that graceful restart is to bridge.
        let link = rack.net.link(&format!("h{side}"));
        let peer = if peer == "unnumbered" { &link } else { peer };
        let lines = [
            "conf t".to_owned(),
            format!("router bgp 65{number}"),
            format!("no neighbor {peer} bfd"),
        ];
        host.vtysh(&lines.each_ref().map(String::as_str));
        host
    });
    let long = Duration::from_secs(40);
    let prefixes = [
        "10.101.0.0/16",
        "10.102.0.0/16",
        "2001:db8:101::/48",
        "2001:db8:102::/48",
    ];
    let installed = || {
        let all = prefixes.iter().filter(|prefix| {
            let rows = rack.show(&format!("routes --host {prefix}"));
            let rows = rows.as_array().cloned().unwrap_or_default();
            rows.iter()
                .any(|row| row["prefix"] == **prefix && row["next_hops"][0]["kind"] == "forward")
        });
        all.count()
    };
    wait::until("all prefixes are forwarded", long, || {
        installed() == prefixes.len()
    });
    let ping = "ping -n -c 1 -W 1 -I 10.101.0.1 10.102.0.1";
    wait::until("the hosts reach each other", long, || {
        rack.host("dc", ping).0
    });
    let before = own.times("10.0.1.3");

    // A ping every 20 ms, over the restart and until BGP is back.
    let space = rack.net.space("dc");
    let mut pings = Command::new("ip");
    pings.args([
        "netns", "exec", &space, "ping", "-n", "-i", "0.02", "-W", "1",
    ]);
    pings
        .args(["-I", "10.101.0.1", "10.102.0.1"])
        .stdout(Stdio::piped());
    let pings = Running::of(pings.spawn().unwrap());
    // SIGKILL, as SONiC does before a warm start: at SIGTERM bgpd withdraws its routes and takes leave of its neighbours.
    for daemon in ["zebra", "bgpd", "bfdd"] {
        own.signal(daemon, "KILL");
        assert_eq!(installed(), prefixes.len(), "{daemon} has ended");
    }
    for daemon in ["zebra", "bgpd", "bfdd"] {
        own.launch(daemon);
        assert_eq!(installed(), prefixes.len(), "{daemon} is back");
    }
    let mut least = prefixes.len();
    wait::until("BGP is back", long, || {
        least = least.min(installed());
        own.established(&["10.0.1.3", "wan0"])
    });
    // The stale routes are replaced a second after the end of the neighbour's routes: each look after that finds them all.
    let steady = |own: &Frr| {
        own.json("show ip route bgp json")
            .as_object()
            .map_or(0, serde_json::Map::len)
    };
    wait::until("zebra has BGP's routes again", long, || {
        least = least.min(installed());
        steady(&own) >= 2
    });
    assert_eq!(least, prefixes.len(), "a route was away");
    run(&format!("kill -INT {}", pings.id()));
    let said = String::from_utf8(pings.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains(" 0% packet loss"), "{said}");
    assert!(before > 0);
    rack.agrees("after FRR's restart");
    drop((own, hosts));
    rack.end();
}

#[test]
fn a_fabric_of_bgp_and_bfd_runs_through_linux() {
    let _alone = alone();
    let rack = Rack::new("frr", "");
    let mut own = Frr::start(&rack.space.0, "! none\n", SWITCH, "");
    let mut dc = bgp_host(&rack, "dc", 101, "10.0.1.1", "remote-as 65000");
    let wan = bgp_host(
        &rack,
        "wan",
        102,
        "unnumbered",
        "interface remote-as external",
    );
    let long = Duration::from_secs(30);
    wait::until("BGP is established", long, || {
        own.established(&["10.0.1.3", "wan0"])
    });
    wait::until("BFD is up", long, || own.bfd_up(2));
    let installed = |prefix: &str| {
        let rows = rack.show(&format!("routes --host {prefix}"));
        let rows = rows.as_array().cloned().unwrap_or_default();
        rows.iter()
            .any(|row| row["prefix"] == prefix && row["next_hops"][0]["kind"] == "forward")
    };
    for prefix in [
        "10.101.0.0/16",
        "10.102.0.0/16",
        "2001:db8:101::/48",
        "2001:db8:102::/48",
    ] {
        wait::until(&format!("{prefix} is forwarded"), long, || {
            installed(prefix)
        });
    }
    // The router advertisement that BGP finds its unnumbered neighbour by is read by zebra alone: it is no default route.
    assert_eq!(rack.space.says("ip -6 route show default"), "");
    assert!(!installed("::/0"), "{:#}", rack.show("routes"));
    for (side, from, to) in [
        ("dc", "10.101.0.1", "10.102.0.1"),
        ("wan", "2001:db8:102::1", "2001:db8:101::1"),
    ] {
        let ping = format!("ping -n -c 1 -W 1 -I {from} {to}");
        wait::until(&format!("{from} reaches {to}"), long, || {
            rack.host(side, &ping).0
        });
    }
    rack.agrees("with BGP");

    // A withdrawn path.
    dc.vtysh(&[
        "conf t",
        "router bgp 65101",
        "address-family ipv4 unicast",
        "no network 10.101.0.0/16",
    ]);
    let took = wait::until("a withdrawn prefix is gone", wait::LONG, || {
        !installed("10.101.0.0/16")
    });
    println!("withdrawn and gone within {took:?}");
    dc.vtysh(&[
        "conf t",
        "router bgp 65101",
        "address-family ipv4 unicast",
        "network 10.101.0.0/16",
    ]);
    wait::until("and back", long, || installed("10.101.0.0/16"));

    // BFD's loss takes the routes: nothing else does, as BGP's own keepalives go on.
    let times = own.times("10.0.1.3");
    dc.signal("bfdd", "STOP");
    let took = wait::until("BFD's loss takes the routes", wait::LONG, || {
        !installed("10.101.0.0/16")
    });
    println!("BFD 3 x 300 ms: routes gone after {took:?}");
    dc.signal("bfdd", "CONT");
    wait::until("and they come back", long, || {
        installed("10.101.0.0/16") && own.times("10.0.1.3") > times
    });

    // The kernel's routes survive zebra, and later changes are followed.
    own.signal("zebra", "KILL");
    rack.agrees("without zebra");
    assert!(
        installed("10.102.0.0/16")
            && rack
                .host("dc", "ping -n -c 1 -W 1 -I 10.101.0.1 10.102.0.1")
                .0,
        "what is forwarded stays"
    );
    for daemon in ["bgpd", "bfdd"] {
        own.signal(daemon, "KILL");
    }
    for daemon in ["zebra", "bgpd", "bfdd"] {
        own.launch(daemon);
    }
    wait::until("BGP is back", long, || {
        own.established(&["10.0.1.3", "wan0"]) && installed("10.102.0.0/16")
    });
    rack.agrees("after zebra came back");
    let punt = rack.show("punt");
    let class = |name: &str, key: &str| {
        let all = punt["classes"].as_array().unwrap();
        all.iter().find(|class| class["name"] == name).unwrap()[key]
            .as_u64()
            .unwrap()
    };
    assert!(
        class("bfd", "delivered") > 0 && class("routing", "delivered") > 0,
        "{punt:#}"
    );
    assert_eq!(
        class("bfd", "over_rate") + class("routing", "over_rate"),
        0,
        "{punt:#}"
    );
    drop((own, dc, wan));
    rack.end();
}

#[test]
fn ospf_runs_through_linux() {
    let _alone = alone();
    let rack = Rack::new("ospf", "");
    // Both versions run from the beginning, as each waits for its dead interval.
    let start = |space: &str, id: &str, links: &[&str], nets: &[&str]| {
        let ospf = |link: &&str| {
            format!(
                "interface {link}
 ip ospf hello-interval 1
 ip ospf dead-interval 2
 ip ospf mtu-ignore
"
            )
        };
        let ospf6 = |link: &&str| {
            format!(
                "interface {link}
 ipv6 ospf6 area 0
 ipv6 ospf6 hello-interval 1
 ipv6 ospf6 dead-interval 2
 ipv6 ospf6 mtu-ignore
"
            )
        };
        let mut text: String = links.iter().map(ospf).collect();
        text += &format!("router ospf\n ospf router-id {id}\n redistribute connected\n");
        text.extend(nets.iter().map(|net| format!(" network {net} area 0\n")));
        let mut frr = Frr::start(space, "! none\n", "", &text);
        let router = format!("router ospf6\n ospf6 router-id {id}\n redistribute connected\n");
        frr.write("ospf6d.conf", links.iter().map(ospf6).chain([router]));
        frr.launch("ospf6d");
        frr
    };
    let host = |side: &str, number: u8, net: &str| {
        let (space, link) = (rack.net.space(side), rack.net.link(&format!("h{side}")));
        for command in [
            "route del default".to_owned(),
            "-6 route del default".to_owned(),
            format!("addr add 10.{number}.0.1/24 dev lo"),
            format!("addr add 2001:db8:{number}::1/128 dev lo"),
        ] {
            run(&format!("ip -n {space} {command}"));
        }
        start(&space, &format!("10.{number}.0.1"), &[&link], &[net])
    };
    let nets = ["10.0.1.0/24", "10.0.2.0/24"];
    let own = start(&rack.space.0, "10.0.1.1", &["dc0", "wan0"], &nets);
    let (dc, wan) = (host("dc", 101, nets[0]), host("wan", 102, nets[1]));
    let ping = "ping -n -c 1 -W 1 -I 10.101.0.1 10.102.0.1";
    wait::until(
        "hosts learn of each other by OSPF",
        Duration::from_secs(60),
        || rack.host("dc", ping).0,
    );
    let rows = rack.show("routes --host 10.102.0.0/24");
    assert_eq!(rows[0]["next_hops"][0]["gateway"], "10.0.2.3", "{rows:#}");
    rack.agrees("with OSPF");

    let ping = "ping -n -c 1 -W 1 -I 2001:db8:101::1 2001:db8:102::1";
    wait::until(
        "hosts learn of each other by OSPFv3",
        Duration::from_secs(60),
        || rack.host("dc", ping).0,
    );
    let rows = rack.show("routes --host 2001:db8:102::1");
    assert_eq!(rows[0]["next_hops"][0]["port"], "wan0", "{rows:#}");
    rack.agrees("with OSPFv3");
    drop((own, dc, wan));
    rack.end();
}

/// BIRD in a namespace; it ends when this is dropped.
struct Bird(
    #[expect(dead_code, reason = "it ends BIRD")] Running,
    #[expect(dead_code, reason = "kept until BIRD has ended")] tempfile::TempDir,
);

impl Bird {
    fn start(space: &str, text: &str) -> Bird {
        let folder = tempfile::tempdir().unwrap();
        let conf = folder.path().join("bird.conf");
        std::fs::write(&conf, text).unwrap();
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", space, "bird", "-f", "-c"])
            .arg(&conf);
        command.arg("-s").arg(folder.path().join("bird.ctl"));
        command.arg("-P").arg(folder.path().join("bird.pid"));
        let child = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Bird(Running::of(child), folder)
    }
}

#[test]
fn bgp_of_bird_runs_through_linux() {
    let _alone = alone();
    let rack = Rack::new("bird", "");
    let bird = |id: &str, own: u32, own_address: &str, peers: &[(&str, u32)], more: &str| {
        let sessions: Vec<String> = peers
            .iter()
            .enumerate()
            .map(|(n, (peer, number))| {
                format!("protocol bgp p{n} {{ local {own_address} as {own}; neighbor {peer} as {number}; connect retry time 1; connect delay time 1; hold time 3; ipv4 {{ import all; export all; }}; }}")
            })
            .collect();
        format!(
            "router id {id};
protocol device {{ scan time 1; }}
protocol kernel {{ ipv4 {{ export all; }}; }}
{}
{more}
",
            sessions.join("\n")
        )
    };
    let prefix =
        |number: u8| format!("protocol static {{ ipv4; route 10.{number}.0.0/16 blackhole; }}");
    for (side, number) in [("dc", 101), ("wan", 102)] {
        let space = rack.net.space(side);
        run(&format!("ip -n {space} route del default"));
        run(&format!("ip -n {space} addr add 10.{number}.0.1/32 dev lo"));
    }
    let _own = Bird::start(
        &rack.space.0,
        &bird(
            "10.0.1.1",
            65_000,
            "",
            &[("10.0.1.3", 65_101), ("10.0.2.3", 65_102)],
            "",
        ),
    );
    let _dc = Bird::start(
        &rack.net.space("dc"),
        &bird(
            "10.101.0.1",
            65_101,
            "",
            &[("10.0.1.1", 65_000)],
            &prefix(101),
        ),
    );
    let _wan = Bird::start(
        &rack.net.space("wan"),
        &bird(
            "10.102.0.1",
            65_102,
            "",
            &[("10.0.2.1", 65_000)],
            &prefix(102),
        ),
    );
    let ping = "ping -n -c 1 -W 1 -I 10.101.0.1 10.102.0.1";
    wait::until(
        "hosts reach each other by BIRD's routes",
        Duration::from_secs(40),
        || rack.host("dc", ping).0,
    );
    let rows = rack.show("routes --host 10.102.0.0/16");
    assert_ne!(rows, Value::Array(vec![]));
    rack.agrees("with BIRD");
    rack.end();
}
