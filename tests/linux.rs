//! A switch with Linux integrated, between hosts of the kernel whose addresses are not configured: ARP, neighbour discovery, ping, carrier and
//! admin state in both directions, a reload, and the output of `show`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::net::{Net, Space, python, run};
use crate::common::rack::{Rack, text};
use crate::common::{Lab, Running, alone, assert_success, seconds};
use npcc_testkit::wait;
use serde_json::Value;

#[test]
fn hosts_that_are_not_configured_reach_the_switch_and_each_other() {
    let _alone = alone();
    let rack = Rack::new("hosts", "");
    for (side, address) in [
        ("dc", "10.0.1.1"),
        ("dc", "2001:db8:1::1"),
        ("wan", "10.0.2.1"),
        ("dc", "10.0.2.3"),
        ("wan", "2001:db8:1::3"),
    ] {
        rack.until(&format!("{side} reaches {address}"), |rack| {
            rack.pings(side, address)
        });
    }
    // From the switch itself, through Linux.
    let from = rack.space.says("ping -n -c 2 -W 1 10.0.1.3");
    assert!(from.contains(" 0% packet loss"), "{from}");
    let neighbors = rack.show("neighbors --host 10.0.1.0/24");
    assert_eq!(neighbors[0]["address"], "10.0.1.3");
    assert_eq!(
        (&neighbors[0]["mac"], &neighbors[0]["port"]),
        (&"02:00:00:00:01:03".into(), &"dc0".into())
    );
    rack.until("and is kept", |rack| {
        rack.show("neighbors --host 10.0.1.3")[0]["kept"] == true
    });
    let routes = rack.show("routes --host 10.0.2.3");
    let hop = |route: &Value| {
        (
            route["prefix"].clone(),
            route["next_hops"][0]["kind"].clone(),
        )
    };
    let routes: Vec<_> = routes.as_array().unwrap().iter().map(hop).collect();
    assert_eq!(
        routes,
        [
            ("10.0.2.0/24".into(), "unresolved".into()),
            ("10.0.2.3/32".into(), "forward".into())
        ]
    );
    rack.agrees("at the end");
    let (said, stats) = rack.end();
    assert!(!said.contains("linux:"), "{said}");
    let account = &stats["conservation"];
    let of = |key: &str| account[key]["packets"].as_u64().unwrap();
    assert_eq!(
        of("rx") + of("originated"),
        of("tx") + of("drops") + of("consumed") + of("punted") + of("held"),
        "{account}"
    );
    assert!(of("punted") > 0);
}

/// Script of a server that echoes a TCP connection's data.
const ECHO: &str = "import socket
s = socket.create_server(('::', 9997), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    c, _ = s.accept()
    while data := c.recv(65536):
        c.sendall(data)
    c.close()";

/// Script of a client that sends 200 KB by TCP to an address and checks the echo.
const TALK: &str = "import socket, sys, threading
s = socket.create_connection((sys.argv[1], 9997), 2)
data = bytes(i % 251 for i in range(200_000))
threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
s.settimeout(5)
back = b''
while part := s.recv(65536):
    back += part
sys.exit(back != data)";

/// Guards checksum offloads: what a kernel leaves to a card is completed before Linux gets it, for a session with the switch's own address,
/// such as BGP's.
#[test]
fn tcp_of_a_host_reaches_the_switch_and_the_host_behind_it() {
    let _alone = alone();
    let rack = Rack::new("tcp", "");
    let (dc, wan) = (rack.net.space("dc"), rack.net.space("wan"));
    let _own = Running::of(python(&rack.space.0, ECHO).spawn().unwrap());
    let _far = Running::of(python(&wan, ECHO).spawn().unwrap());
    for address in ["10.0.1.1", "2001:db8:1::1", "10.0.2.3", "2001:db8:2::3"] {
        rack.until(address, |_| {
            let output = python(&dc, TALK).arg(address).output().unwrap();
            output.status.success()
        });
    }
    rack.end();
}

#[test]
fn carrier_and_admin_state_go_both_ways() {
    let _alone = alone();
    let rack = Rack::new("power", "");
    let link = |rack: &Rack| rack.space.says("ip link show wan0");
    rack.until("all is up", |rack| rack.pings("dc", "10.0.2.3"));
    assert!(link(&rack).contains("LOWER_UP"), "{}", link(&rack));
    let speed = rack.space.says("ethtool wan0");
    let shown = rack.show("ports")[1]["link_speed"].as_u64().unwrap() / 1_000_000;
    assert!(
        speed.contains(&format!("Speed: {shown}Mb/s")),
        "{shown}: {speed}"
    );

    rack.space.says("ip link set wan0 down");
    rack.until("Linux takes the port down", |rack| {
        rack.port(1, "admin") == "down" && rack.port(1, "down_reason") == "admin"
    });
    assert!(!rack.pings("dc", "10.0.2.3"));
    rack.agrees("switched off");
    rack.space.says("ip link set wan0 up");
    rack.until("and up", |rack| {
        rack.port(1, "admin") == "up" && rack.pings("dc", "10.0.2.3")
    });

    rack.order("port wan0 down");
    rack.until("an operator's order is Linux's loss of carrier", |rack| {
        link(rack).contains("NO-CARRIER")
    });
    rack.order("port wan0 up");
    rack.until("and comes back", |rack| rack.pings("dc", "10.0.2.3"));
    rack.agrees("at the end");
    rack.end();
}

#[test]
fn a_link_that_is_lost_is_lost_in_linux_too() {
    let _alone = alone();
    let net = Net::of(&["dc"], &[]);
    let space = Space::of("carrier");
    // Created here, as a mount made inside another namespace is not visible outside.
    run(&format!("ip netns add {}", space.0));
    let lab = Lab::inside(net.space("dc"));
    lab.config(&format!(
        "version: 1
dpdk: {{ eal_args: [--no-pci], hugepages: off, link_wait: 1s }}
cores: {{ control: 0, workers: [1], idle: adaptive }}
ports:
  - {{ name: wan0, device: 'net_tap0,iface=peer', mac: '02:00:00:00:01:02', mtu: 1500, addresses: [10.0.2.1/24] }}
routes: [ {{ prefix: 10.50.0.0/16, via: 10.0.2.3 }} ]
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
linux: {{ integrate: true, netns: {} }}
",
        space.0
    ));
    let rack = Rack::start(net, space, lab);
    let link = |rack: &Rack| rack.space.says("ip link show wan0");
    let routed = |rack: &Rack| rack.show("routes --host 10.50.0.0/16") != Value::Array(vec![]);
    for round in 0..5 {
        assert!(rack.host("dc", "ip link set peer up").0);
        rack.until("a link is one in Linux too", |rack| {
            link(rack).contains("LOWER_UP")
        });
        rack.until("with its route", routed);
        assert!(rack.host("dc", "ip link set peer down").0);
        rack.until("and its loss", |rack| link(rack).contains("NO-CARRIER"));
        rack.agrees(&format!("without a link, round {round}"));
    }
    rack.end();
}

#[test]
fn a_reload_changes_the_kernel_and_what_linux_adds_is_ours() {
    let _alone = alone();
    let rack = Rack::new(
        "reload",
        "routes: [ { prefix: 10.50.0.0/16, via: 10.0.1.3 } ]\n",
    );
    rack.until("the file's route is the kernel's", |rack| {
        rack.space
            .says("ip route show 10.50.0.0/16")
            .contains("via 10.0.1.3 dev dc0 proto static")
    });
    let more = "routes: [ { prefix: 10.51.0.0/16, via: 10.0.2.3 }, { prefix: '2001:db8:51::/48', via: '2001:db8:2::3' } ]
neighbors: [ { address: 10.0.2.77, port: wan0, mac: '02:00:00:00:77:77' } ]
";
    let wan = "10.0.2.1/24, 10.7.0.1/24, '2001:db8:2::1/64'";
    rack.lab.config(&text(&rack.net, &rack.space, wan, more));
    rack.order("reload");
    let routes = rack.space.says("ip route");
    assert!(
        routes.contains("10.51.0.0/16 via 10.0.2.3") && routes.contains("10.7.0.0/24"),
        "{routes}"
    );
    assert!(!routes.contains("10.50.0.0/16"), "{routes}");
    rack.until("the switch follows", |rack| {
        let state = |host: &str| rack.show(&format!("routes --host {host}"));
        state("10.51.0.0/16")[0]["state"] == "installed"
            && state("10.0.2.77/32").as_array().is_some_and(|all| {
                all.iter()
                    .any(|route| route["next_hops"][0]["mac"] == "02:00:00:00:77:77")
            })
            && state("10.50.0.0/16") == Value::Array(vec![])
    });
    // Routes added by others, of IPv6, and by nexthop objects.
    for command in [
        "ip addr add 10.8.0.1/24 dev dc0",
        "ip route add 10.80.0.0/16 via 10.0.2.3 proto bgp",
        "ip nexthop add id 7 via 10.0.1.3 dev dc0",
        "ip nexthop add id 8 via 10.0.2.3 dev wan0",
        "ip nexthop add id 9 group 7,3/8,1",
        "ip route add 10.90.0.0/16 nhid 9",
        "ip route add blackhole 10.91.0.0/16",
        "ip -6 route add unreachable 2001:db8:91::/48",
    ] {
        let said = rack.space.says(command);
        assert!(said.is_empty(), "{command}: {said}");
    }
    rack.until("all is in the switch", |rack| {
        let hops = |prefix: &str| {
            let all = rack.show(&format!("routes --host {prefix}"));
            all.as_array().and_then(|all| {
                all.iter()
                    .find(|route| route["prefix"] == prefix)
                    .map(|route| route["next_hops"].clone())
            })
        };
        hops("10.90.0.0/16").is_some_and(|hops| hops[0]["weight"] == 3 && hops[1]["weight"] == 1)
            && hops("10.91.0.0/16").is_some_and(|hops| hops[0]["kind"] == "blackhole")
            && hops("10.8.0.1/32").is_some_and(|hops| hops[0]["kind"] == "local")
            && hops("10.80.0.0/16").is_some()
    });
    rack.agrees("at the end");
    // A file that the kernel cannot take changes nothing.
    let wrong = more.replace(
        "10.0.2.3 }",
        "10.0.2.3 }, { prefix: 127.0.0.0/8, via: 10.0.2.3 }",
    );
    rack.lab.config(&text(&rack.net, &rack.space, wan, &wrong));
    let _ = rack.lab.ask(&["reload"]);
    rack.agrees("after a reload that may have been refused");
    rack.end();
}

/// Guards the refresh of next hops, for 4 s or `NPCC_SECONDS`: the kernel sees none of the data, and would drop an unused neighbour.
/// Its times are shorter than by default, for a short test.
#[test]
fn a_next_hop_that_answers_stays_and_a_silent_change_of_its_mac_address_is_followed() {
    let _alone = alone();
    let rack = Rack::new(
        "stays",
        "routes: [ { prefix: 10.102.0.0/16, via: 10.0.2.3 } ]\n",
    );
    let seconds = seconds(4);
    for time in [
        "base_reachable_time_ms=1000",
        "interval_probe_time_ms=1000",
        "delay_first_probe_time=1",
        "retrans_time_ms=200",
        "gc_stale_time=1",
    ] {
        rack.space
            .says(&format!("sysctl -w net.ipv4.neigh.wan0.{time}"));
    }
    let hop = |rack: &Rack| {
        let rows = rack.show("routes --host 10.102.0.0/16");
        (
            rows[0]["next_hops"][0]["kind"].clone(),
            rows[0]["next_hops"][0]["mac"].clone(),
        )
    };
    let forwards = |mac: &str| (Value::from("forward"), Value::from(mac));
    rack.until("the next hop is found", |rack| {
        hop(rack) == forwards("02:00:00:00:02:03")
    });
    let mut answered = 0;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(seconds) {
        assert_eq!(
            hop(&rack),
            forwards("02:00:00:00:02:03"),
            "after {:?}",
            began.elapsed()
        );
        // A busy machine loses some; the test is whether the next hop stays.
        answered += u32::from(rack.host("dc", "ping -n -c 5 -i 0.02 -W 1 10.0.2.3").0);
    }
    assert!(answered > 0, "the next hop was used");
    // A silent change: no gratuitous ARP.
    let (space, link) = (rack.net.space("wan"), rack.net.link("hwan"));
    run(&format!(
        "ip netns exec {space} sysctl -qw net.ipv4.conf.{link}.arp_notify=0"
    ));
    run(&format!(
        "ip -n {space} link set {link} address 02:00:00:00:02:99"
    ));
    let took = wait::until("the new MAC address is followed", wait::LONG, || {
        hop(&rack) == forwards("02:00:00:00:02:99")
    });
    println!("followed within {took:?}");
    rack.end();
}

/// Script in Linux's namespace that prints a line for each kind of frame that comes by `dc0`: DHCP by a socket as a relay has it, IS-IS and PTP.
const LISTENS: &str = "
import select, socket
relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
relay.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'dc0')
relay.bind(('0.0.0.0', 67))
clock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
clock.bind(('0.0.0.0', 319))
clock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton('224.0.1.129') + socket.inet_aton('10.0.1.1'))
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
frames.bind(('dc0', 0))
names = {relay: 'DHCP', clock: 'PTP over UDP'}
while True:
    for one in select.select([relay, clock, frames], [], [])[0]:
        data, address = one.recvfrom(2048)
        if one in names:
            print(names[one], flush=True)
        elif address[2] != socket.PACKET_OUTGOING:
            kind = {b'\\x88\\xf7': 'PTP', b'\\x00\\x2e': 'IS-IS'}.get(data[12:14])
            kind and print(kind, flush=True)
";

/// Script of a host that sends one frame of each kind by the interface of its argument.
const SPEAKS: &str = "
import socket, struct, sys
def checksum(header):
    total = sum(struct.unpack('!10H', header))
    total = (total & 0xffff) + (total >> 16)
    return (~(total + (total >> 16))) & 0xffff
def udp(src, dst, ports):
    header = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 48, 0, 0, 64, 17, 0, socket.inet_aton(src), socket.inet_aton(dst))
    header = header[:10] + struct.pack('!H', checksum(header)) + header[12:]
    return b'\\x08\\x00' + header + struct.pack('!HHHH', *ports, 28, 0) + bytes(20)
def frame(to, rest):
    return bytes.fromhex(to + '020000000103') + rest + bytes(max(0, 48 - len(rest)))
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
out.send(frame('ffffffffffff', udp('0.0.0.0', '255.255.255.255', (68, 67))))
out.send(frame('01005e000181', udp('10.0.1.3', '224.0.1.129', (319, 319))))
out.send(frame('011b19000000', b'\\x88\\xf7' + bytes(44)))
out.send(frame('0180c2000015', b'\\x00\\x2e' + b'\\xfe\\xfe\\x03\\x83' + bytes(42)))
";

/// Earlier defect: DHCP of hosts was dropped as `martian`, IS-IS and PTP as `not_ip`, so that no relay, isisd or ptp4l could run beside the
/// switch.
#[test]
fn dhcp_is_is_and_ptp_reach_linux() {
    let _alone = alone();
    let rack = Rack::new("guests", "");
    rack.until("the addresses are there", |rack| {
        rack.space
            .says("ip -4 address show dc0")
            .contains("10.0.1.1")
    });
    let mut listener = python(&rack.space.0, LISTENS);
    let mut listener = listener.stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(listener.stdout.take().unwrap());
    let listener = Running::of(listener);
    let heard = Arc::new(Mutex::new(BTreeSet::new()));
    let hears = Arc::clone(&heard);
    let reader = std::thread::spawn(move || {
        let lines = said.lines().map_while(Result::ok);
        lines.for_each(|line| hears.lock().unwrap().extend([line]));
    });
    let expected = ["DHCP", "IS-IS", "PTP", "PTP over UDP"].map(str::to_owned);
    rack.until("all have come", |rack| {
        let mut host = python(&rack.net.space("dc"), SPEAKS);
        let sent = host.arg(rack.net.link("hdc")).status().unwrap();
        assert!(sent.success());
        *heard.lock().unwrap() == BTreeSet::from(expected.clone())
    });
    drop(listener);
    reader.join().unwrap();
    rack.end();
}

/// Script of a host that says by ARP that the address of its second argument is at the MAC address of its third, by an interface.
const SAYS: &str = "
import socket, sys
interface, address, mac = sys.argv[1], socket.inet_aton(sys.argv[2]), bytes.fromhex(sys.argv[3])
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((interface, 0))
out.send(b'\\xff' * 6 + mac + bytes.fromhex('08060001080006040001') + mac + address + bytes(6) + address + bytes(18))
";

/// Earlier defect: a station that took another's address, or the switch's own, was noticed nowhere.
#[test]
fn a_neighbour_that_moves_and_an_address_with_two_owners_are_events() {
    let _alone = alone();
    let rack = Rack::new("moves", "");
    rack.until("the host is known", |rack| {
        rack.pings("dc", "10.0.1.1");
        rack.show("neighbors --host 10.0.1.3")[0]["mac"] == "02:00:00:00:01:03"
    });
    let says = |rack: &Rack, address: &str, mac: &str| {
        let mut host = python(&rack.net.space("dc"), SAYS);
        let sent = host.args([&rack.net.link("hdc"), address, mac]).status();
        assert!(sent.unwrap().success());
    };
    let logged = |rack: &Rack, text: &str| rack.lab.done(&["show", "log"]).contains(text);
    let new = "02:de:ad:00:00:01";
    // The kernel believes no second answer within a second.
    rack.until("it moves", |rack| {
        says(rack, "10.0.1.3", "02dead000001");
        rack.show("neighbors --host 10.0.1.3")[0]["mac"] == new
    });
    rack.until("which is an event", |rack| {
        logged(
            rack,
            "dc0: 10.0.1.3 moved from 02:00:00:00:01:03 to 02:de:ad:00:00:01",
        )
    });
    let row = rack.show("neighbors --host 10.0.1.3");
    assert!(row[0]["moves"].as_u64() >= Some(1), "{row}");
    assert!(row[0]["age_s"].is_u64(), "{row}");
    let shown = rack.lab.done(&["show", "neighbors"]);
    assert!(shown.contains("MOVES"), "{shown}");

    rack.until("it comes back", |rack| {
        says(rack, "10.0.1.3", "020000000103");
        logged(
            rack,
            "dc0: 10.0.1.3 has two owners, 02:de:ad:00:00:01 and 02:00:00:00:01:03",
        )
    });
    says(&rack, "10.0.1.1", "02dead000001");
    rack.until("our own address is claimed", |rack| {
        logged(
            rack,
            "dc0: 10.0.1.1 has two owners, 02:00:00:00:01:01 and 02:de:ad:00:00:01",
        )
    });
    rack.end();
}

/// Earlier defect: a port without its interface in Linux was down as if an operator had taken it down, and nobody was told what to do.
#[test]
fn a_port_whose_interface_in_linux_is_deleted_is_down_for_its_device() {
    let _alone = alone();
    let rack = Rack::new("deleted", "");
    rack.until("all is up", |rack| rack.pings("dc", "10.0.2.3"));
    rack.space.says("ip link set wan0 name uplink");
    rack.space.says("ip link del dc0");
    rack.until("it is down", |rack| {
        let port = &rack.show("ports")[0];
        port["up"] == false && port["down_reason"] == "device"
    });
    let ports = rack.show("ports");
    assert_eq!(ports[1]["down_reason"], "", "one that is renamed is there");
    let log = rack.lab.done(&["show", "log"]);
    assert!(
        log.contains("dc0: the interface of the port is gone from Linux"),
        "{log}"
    );
    rack.lab.done(&["port", "dc0", "up"]);
    assert_eq!(rack.show("ports")[0]["down_reason"], "device");
    rack.end();
}

/// An LLDP daemon in a namespace; it ends when this is dropped.
struct Lldp {
    _daemon: Running,
    space: String,
    folder: tempfile::TempDir,
}

impl Lldp {
    fn start(space: &str) -> Lldp {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            space,
            "lldpd",
            "-d",
            "-O",
            "/dev/null",
            "-u",
        ]);
        command.arg(folder.path().join("s"));
        let daemon = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        Lldp {
            _daemon: Running::of(daemon.unwrap()),
            space: space.to_owned(),
            folder,
        }
    }

    fn says(&self, commands: &[&str]) -> String {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space, "lldpcli", "-u"]);
        command.arg(self.folder.path().join("s")).args(commands);
        let output = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

#[test]
fn lldp_tells_hosts_which_priority_is_roce() {
    let _alone = alone();
    let rack = Rack::new("lldp", "");
    let own = Lldp::start(&rack.space.0);
    let host = Lldp::start(&rack.net.space("dc"));
    rack.until("it runs", |_| {
        own.says(&["show", "configuration"])
            .contains("Configuration")
    });
    rack.until("and so does the host's", |_| {
        host.says(&["show", "configuration"])
            .contains("Configuration")
    });
    let commands = rack.lab.path("dcbx");
    std::fs::write(&commands, rack.lab.done(&["show", "dcbx"])).unwrap();
    own.says(&["-c", commands.to_str().unwrap()]);
    for daemon in [&own, &host] {
        daemon.says(&["configure", "lldp", "tx-interval", "1"]);
        daemon.says(&["update"]);
    }
    rack.until("the host sees the port", |_| {
        let seen = host.says(&["show", "neighbors", "details"]);
        seen.contains("dc0") && seen.contains("00,80,C2") && seen.contains("SubType: 12")
    });
    rack.until("and the switch the host", |rack| {
        own.says(&["show", "neighbors"])
            .contains(&rack.net.link("hdc"))
    });
    drop((own, host));
    rack.end();
}

/// Script that sends malformed frames of every kind: any length, truncated, tagged, MAC control, with any EtherType and contents.
const ODD: &str = "
import random, socket, sys
random.seed(7)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
kinds = [b'\\x08\\x00\\x45', b'\\x08\\x06\\x00\\x01', b'\\x86\\xdd\\x60', b'\\x81\\x00\\x00\\x64\\x08\\x00\\x45', b'\\x88\\xa8\\x00\\x01\\x81\\x00', b'\\x88\\x08\\x01\\x01', b'\\x88\\xcc\\x02\\x07', b'\\x00\\x20', b'\\xff\\xff']
to = [bytes.fromhex(mac) for mac in ('020000000101', '020000000201', 'ffffffffffff', '0180c2000001', '0180c200000e', '333300000001', '01005e000005', '000000000000')]
sent = 0
for _ in range(20000):
    frame = random.choice(to) + random.randbytes(6) + random.choice(kinds)
    frame += random.randbytes(random.choice((0, 1, 7, 20, 40, 64, 300, 1400, 8900)))
    try:
        s.send(frame[:random.choice((14, 15, 34, 60, 9014))])
        sent += 1
    except OSError:
        pass
print(sent)
";

#[test]
fn malformed_frames_from_linux_and_from_the_link_end_nothing() {
    let _alone = alone();
    let rack = Rack::new("odd", "");
    rack.until("it answers", |rack| rack.pings("dc", "10.0.1.1"));
    for (space, link) in [
        (rack.space.0.clone(), "dc0".to_owned()),
        (rack.net.space("dc"), rack.net.link("hdc")),
    ] {
        let output = python(&space, ODD).arg(&link).output().unwrap();
        assert_success(&output);
        let sent: u32 = String::from_utf8_lossy(&output.stdout)
            .trim()
            .parse()
            .unwrap();
        assert!(sent > 10_000, "{sent}");
    }
    rack.until("it answers still", |rack| {
        rack.pings("dc", "10.0.1.1") && rack.pings("dc", "10.0.2.3")
    });
    let host = &rack.show("punt")["host"];
    assert!(host["sent_odd"].as_u64().unwrap() > 1_000, "{host}");
    rack.agrees("at the end");
    let (_, stats) = rack.end();
    assert_eq!(stats["conservation"]["held"]["packets"], 0);
}

#[test]
fn what_linux_has_none_of_is_refused_before_anything_starts() {
    let lab = Lab::with(
        "version: 1
ports:
  - { name: lo, device: net_null0, vlans: [ { id: 4000 } ] }
  - { name: averylongname, device: net_null1, vlans: [ { id: 100 } ] }
linux: { integrate: true }
",
    );
    let output = lab
        .command(&["check", "-c", "switch.yaml"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    assert!(
        said.contains("`lo`") && said.contains("averylongname.100"),
        "{said}"
    );
}
