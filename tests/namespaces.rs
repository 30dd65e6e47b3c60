//! Kernel hosts on both sides: two network namespaces, veth pairs, `net_af_packet` ports. UDP of every size up to jumbo goes
//! through the switch and back, IPv4 and IPv6, and the TTL set by the kernel arrives one lower.
//!
//! Needs root. Touches only namespaces and links of its own.

use std::time::Duration;

use npcc_api::model::Worker;

use crate::common::net::{Net, python, two_hosts};
use crate::common::switch::Switch;
use crate::common::{Lab, Running, alone, assert_success};

/// Script that echoes datagrams and reports the TTL of each.
const ECHO: &str = "
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
IP_RECVTTL = 12
s.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
s.bind(('::', 9999))
while True:
    data, extra, _, peer = s.recvmsg(65536, 256)
    ttl = int.from_bytes(extra[0][2][:4], 'little') if extra else 0
    s.sendto(bytes([ttl]) + data[1:], peer)
";

/// Script that sends datagrams of many sizes, each until it comes back (the switch may still be starting); the first octet is the TTL.
const CLIENT: &str = "
import socket, sys
for family, address in ((socket.AF_INET, '10.0.2.3'), (socket.AF_INET6, '2001:db8:2::3')):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(0.2)
    for size in (1, 18, 100, 1024, 1472, 4096, 8900):
        data = bytes(i % 251 for i in range(size))
        for attempt in range(50):
            s.sendto(data, (address, 9999))
            try:
                # One that took long may have been sent twice.
                while len(back := s.recv(65536)) != size:
                    pass
            except TimeoutError:
                continue
            break
        else:
            sys.exit(f'{address}: {size} bytes never came back')
        if back[0] != 63 or back[1:] != data[1:]:
            sys.exit(f'{address}: {size} bytes came back as {len(back)}, TTL {back[0]}')
print('all came back')
";

/// Creates the lab of a switch between the two hosts.
fn lab(net: &Net, idle: &str) -> Lab {
    Lab::with(&format!(
        "version: 1
dpdk: {{ eal_args: [\"--no-pci\", \"--in-memory\"] }}
cores: {{ idle: {idle} }}
ports:
  - {{ name: dc0, device: \"{}\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24, \"2001:db8:1::1/64\"] }}
  - {{ name: wan0, device: \"{}\", mac: \"02:00:00:00:02:01\", addresses: [10.0.2.1/24, \"2001:db8:2::1/64\"] }}
neighbors:
  - {{ address: 10.0.1.2, port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: \"2001:db8:1::2\", port: dc0, mac: \"02:00:00:00:01:03\" }}
  - {{ address: 10.0.2.3, port: wan0, mac: \"02:00:00:00:02:03\" }}
  - {{ address: \"2001:db8:2::3\", port: wan0, mac: \"02:00:00:00:02:03\" }}
qos: {{ profile: lossy }}
buffer: {{ pool: 8MB }}
",
        net.jumbo_device(0, "dc"),
        net.jumbo_device(1, "wan")
    ))
}

#[test]
fn kernel_hosts_talk_through_the_switch() {
    let _alone = alone();
    let net = two_hosts(9100, [2, 3]);
    let lab = lab(&net, "poll");
    let mut switch = Switch::start(lab);
    let mut echo = python(&net.space("wan"), ECHO).spawn().unwrap();
    let client = python(&net.space("dc"), CLIENT).output().unwrap();
    echo.kill().unwrap();
    echo.wait().unwrap();
    switch.stop();
    assert_success(&client);
}

/// Script of a server that reads a connection's octets and answers with their number and their checksum.
const SINK: &str = "
import socket, zlib
s = socket.create_server(('::', 9998), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    c, _ = s.accept()
    n = crc = 0
    while data := c.recv(1 << 20):
        n += len(data)
        crc = zlib.crc32(data, crc)
    c.sendall(f'{n} {crc}'.encode())
    c.close()
";

/// Script that sends 8 MB to each address, in calls that a sender's card would have to segment, and reads the server's answer.
const SOURCE: &str = "
import socket, sys, time, zlib
for address in sys.argv[1:]:
    data = bytes(i % 251 for i in range(1 << 20)) * 8
    for attempt in range(100):
        try:
            s = socket.create_connection((address, 9998), 0.3)
            break
        except OSError:
            time.sleep(0.05)
    else:
        sys.exit(f'{address}: no connection')
    s.settimeout(20)
    s.sendall(data)
    s.shutdown(socket.SHUT_WR)
    said = s.recv(100).decode()
    if said != f'{len(data)} {zlib.crc32(data)}':
        sys.exit(f'{address}: {said}')
print('all arrived')
";

/// Guards checksum and segmentation offloads (review of operators): in the lab of our own documents TCP and UDP failed silently, for a veth
/// leaves checksums, and segments larger than the MTU, to a card.
#[test]
fn tcp_passes_with_the_offloads_of_a_veth_as_they_are() {
    let _alone = alone();
    let net = two_hosts(1500, [2, 3]);
    let lab = lab(&net, "poll");
    let mut switch = Switch::start(lab);
    let mut sink = python(&net.space("wan"), SINK).spawn().unwrap();
    let mut source = python(&net.space("dc"), SOURCE);
    let source = source.args(["10.0.2.3", "2001:db8:2::3"]).output().unwrap();
    sink.kill().unwrap();
    sink.wait().unwrap();
    let stats = switch.stop();
    assert_success(&source);
    for port in &stats.ports {
        assert!(port.counts.checksums_completed > 1000, "{:?}", port.counts);
        // Two hosts with an RTT below a millisecond fill any queue; nothing else is lost.
        assert!(port.drops.named("oversize") == Some(&0), "{:?}", port.drops);
    }
}

/// Script that sends a datagram every 10 ms and prints the round-trip time of each, in us, shortest first.
const SELDOM: &str = "
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
def once():
    start = time.perf_counter()
    s.sendto(bytes(64), ('10.0.2.3', 9999))
    s.recv(65536)
    return round(1e6 * (time.perf_counter() - start))
while True:
    try:
        once()
        break
    except TimeoutError:
        pass
times = []
for _ in range(100):
    time.sleep(0.01)
    times.append(once())
print(*sorted(times))
";

/// Returns the CPU time of all threads of a process, in seconds.
fn cpu(process: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let used = |task: std::io::Result<std::fs::DirEntry>| {
        let account = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        let first = account.split_whitespace().next().unwrap();
        first.parse::<f64>().unwrap() / 1e9
    };
    tasks.map(used).sum()
}

/// Switch that gets a frame every 10 ms, and then none.
struct Idle {
    /// Round-trip times in us, shortest first.
    times: Vec<u32>,
    /// Share of a core of all threads with nothing to do, in percent.
    share: f64,
    worker: Worker,
}

/// Runs a switch with each setting of `cores.idle`: `poll` and `adaptive`.
fn idle() -> [Idle; 2] {
    let net = two_hosts(9100, [2, 3]);
    let _echo = Running::of(python(&net.space("wan"), ECHO).spawn().unwrap());
    ["poll", "adaptive"].map(|idle| {
        let lab = lab(&net, idle);
        let mut switch = Switch::start(lab);
        let client = python(&net.space("dc"), SELDOM).output().unwrap();
        assert_success(&client);
        let times = String::from_utf8(client.stdout).unwrap();
        let times = times.split_whitespace().map(|time| time.parse().unwrap());
        let times: Vec<u32> = times.collect();
        let quiet = Duration::from_secs(2);
        let before = cpu(switch.child.id());
        // The stimulus: nothing comes.
        std::thread::sleep(quiet);
        let share = 100.0 * (cpu(switch.child.id()) - before) / quiet.as_secs_f64();
        let worker = switch.stop().workers.swap_remove(0);
        println!(
            "{idle}: all threads {share:.1} % of a core with nothing to do; there and back p50 {} us, p90 {} us; {} naps, {} woken",
            times[50], times[90], worker.naps, worker.woken
        );
        Idle { times, share, worker }
    })
}

/// Guards `idle: adaptive` by what does not depend on the machine's speed: naps, and wake-ups for frames.
#[test]
fn a_switch_with_nothing_to_do_sleeps_until_a_frame_wakes_it() {
    let _alone = alone();
    let [poll, adaptive] = idle();
    assert_eq!((poll.worker.naps, poll.worker.slept_us), (0, 0));
    // A datagram of the client comes while the worker sleeps, unless the machine kept it from its core.
    let worker = &adaptive.worker;
    let slept = worker.naps > 0 && worker.slept_us > 0;
    assert!(slept && worker.woken > 0, "{worker:?}");
}

/// Guards the wake-up time of `idle: adaptive`: a frame that waits for the end of a nap waits for 4 ms at most, and 2 ms at the median. Idle
/// threads take next to no CPU time, and each datagram of the client wakes the worker.
#[test]
#[ignore = "a time of this machine: scripts/test-long idle"]
fn sleeping_adds_less_than_a_millisecond_to_a_frame() {
    let _alone = alone();
    let all = idle();
    let medians = all.each_ref().map(|idle| idle.times[50]);
    let [_, adaptive] = all;
    assert!(adaptive.share < 5.0, "{} % of a core", adaptive.share);
    let woken = adaptive.worker.woken;
    assert!(woken >= 90, "{woken} times");
    let added = medians[1].saturating_sub(medians[0]);
    println!("sleeping adds {added} us at the median");
    assert!(added < 1_000, "{added} us");
}
