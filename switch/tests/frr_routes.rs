//! Many routes of FRR's over a group of two next hops, one of which goes with its link. Root and FRR are needed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test says what is wrong by panicking"
)]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::rack::{Rack, v4};
use npcc_linux::tap::namespace;
use npcc_pipeline::units::PortId;
use npcc_testkit::wait;
use tempfile::TempDir;

/// FRR's zebra and bgpd in a namespace, and BIRD in another, which tells them of routes by two sessions. When this is dropped they end.
struct Frr {
    beside: String,
    daemons: Vec<Child>,
    #[expect(dead_code, reason = "kept until the daemons have ended")]
    folder: TempDir,
}

/// A group that nobody uses is forgotten after a second. FRR 8.4 keeps it for three minutes and takes it for whole when it needs it
/// again, though the kernel took the member out whose link was lost.
const ZEBRA: &str = "zebra nexthop-group keep 1\n";

/// Two sessions with BIRD, and both of their paths.
const BGPD: &str = "router bgp 65000
 bgp router-id 10.0.0.1
 neighbor 10.9.0.2 remote-as 65000
 neighbor 10.9.0.2 timers connect 1
 neighbor 10.9.0.3 remote-as 65000
 neighbor 10.9.0.3 update-source 10.9.0.4
 neighbor 10.9.0.3 timers connect 1
 address-family ipv4 unicast
  maximum-paths ibgp 2
 exit-address-family
";

/// So many prefixes, by 10.0.0.2 in one session and by 10.0.1.2 in the other.
fn bird(routes: u32) -> String {
    let session = |n: u32| {
        format!(
            "protocol bgp s{n} {{ local 10.9.0.{} as 65000; neighbor 10.9.0.{} as 65000; strict bind on; connect delay time 1;
ipv4 {{ import none; export all; next hop address 10.0.{n}.2; }}; }}\n",
            n + 2,
            1 + 3 * n,
        )
    };
    let prefixes = (0..routes).map(|n| format!("route {} blackhole;\n", v4(n)));
    format!(
        "router id 10.0.0.9;\nprotocol device {{}}\nprotocol static {{ ipv4;\n{}}}\n{}{}",
        prefixes.collect::<String>(),
        session(0),
        session(1)
    )
}

impl Frr {
    /// Starts them, with so many prefixes.
    fn start(space: &str, routes: u32) -> Frr {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("zebra", ZEBRA), ("bgpd", BGPD), ("bird", &bird(routes))] {
            std::fs::write(at(&format!("{name}.conf")), text).unwrap();
        }
        let owner = Command::new("chown")
            .args(["-R", "frr:frr"])
            .arg(folder.path())
            .status();
        assert!(owner.unwrap().success());
        let beside = format!("{space}-bird");
        for command in [
            format!("netns add {beside}"),
            format!("-n {space} link add feed type veth peer name feed netns {beside}"),
            format!("-n {space} addr add 10.9.0.1/24 dev feed"),
            format!("-n {space} addr add 10.9.0.4/24 dev feed"),
            format!("-n {space} link set feed up"),
            format!("-n {beside} addr add 10.9.0.2/24 dev feed"),
            format!("-n {beside} addr add 10.9.0.3/24 dev feed"),
            format!("-n {beside} link set feed up"),
        ] {
            let done = Command::new("ip").args(command.split_whitespace()).status();
            assert!(done.unwrap().success(), "ip {command}");
        }
        let inside = |space: &str, program: &str| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", space, program]);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command
        };
        let mut daemons = vec![];
        for (daemon, more) in [("zebra", &["-s", "16777216"]), ("bgpd", &["-p", "179"])] {
            let mut command = inside(space, &format!("/usr/lib/frr/{daemon}"));
            command
                .args(["-u", "frr", "-g", "frr", "-P", "0"])
                .args(more);
            command.arg("-f").arg(at(&format!("{daemon}.conf")));
            command.arg("-i").arg(at(&format!("{daemon}.pid")));
            command.arg("-z").arg(at("zserv.api"));
            command.arg("--vty_socket").arg(folder.path());
            daemons.push(command.spawn().unwrap());
            let socket = at(&format!("{daemon}.vty"));
            wait::until(daemon, wait::LONG, || socket.exists());
        }
        let mut command = inside(&beside, "bird");
        command.arg("-f").arg("-c").arg(at("bird.conf"));
        command
            .arg("-s")
            .arg(at("bird.ctl"))
            .arg("-P")
            .arg(at("bird.pid"));
        daemons.push(command.spawn().unwrap());
        Frr {
            beside,
            daemons,
            folder,
        }
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        for child in self.daemons.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = namespace::remove(&self.beside);
    }
}

/// The link goes by its carrier or by its switch. Returns how soon lookups took the other, and prints what was read until then.
fn a_member_goes_with_its_link(test: &str, routes: u32) -> [Duration; 2] {
    let mut rack = Rack::new(test, 64 << 20);
    let _frr = Frr::start(&rack.space, routes);
    let last = v4(routes - 1).replace(".0/24", ".1");
    let learned = rack.until(|rack| rack.ports(&last) == [0, 1]);
    rack.settle();
    println!("{routes} routes of bgpd's by two next hops: learned in {learned:?}");
    ["carrier", "switch"].map(|how| {
        let counts = |rack: &Rack| rack.handle().status().counts;
        let before = counts(&rack);
        match how {
            "carrier" => rack.handle().carrier(PortId(1), false),
            _ => rack.ip("link set p1 down"),
        }
        let moved = rack.until(|rack| rack.ports(&last) == [0]);
        let then = counts(&rack);
        rack.settle();
        let after = counts(&rack);
        println!(
            "{how}: the other path within {moved:?}, after {} messages and {} routes; {} messages and {} routes in all",
            then.messages - before.messages,
            then.routes - before.routes,
            after.messages - before.messages,
            after.routes - before.routes,
        );
        for n in [0, routes / 2, routes - 1] {
            assert_eq!(rack.ports(&v4(n).replace(".0/24", ".1")), [0]);
        }
        rack.agrees();
        // The stimulus: FRR forgets its group.
        std::thread::sleep(Duration::from_secs(2));
        match how {
            "carrier" => rack.handle().carrier(PortId(1), true),
            _ => rack.ip("link set p1 up"),
        }
        for host in ["10.0.1.2", "2001:db8:1::2"] {
            rack.ip(&format!(
                "neigh replace {host} dev p1 lladdr 02:00:00:00:01:11 nud permanent"
            ));
        }
        rack.until(|rack| rack.ports(&last) == [0, 1]);
        rack.settle();
        rack.agrees();
        moved
    })
}

#[test]
fn routes_of_frr_move_when_a_member_goes_with_its_link() {
    a_member_goes_with_its_link("frrmember", 5_000);
}

#[test]
#[ignore = "takes a minute: scripts/test-long linux"]
fn two_hundred_thousand_routes_of_frr_move_when_a_member_goes_with_its_link() {
    let moved = a_member_goes_with_its_link("frrmembers", 200_000);
    // The kernel takes a loss of carrier at once, or a second after the one before, whichever device had that
    // (Linux, `linkwatch_schedule_work()`). Workers pass over the port before, by themselves.
    let most = Duration::from_secs(3);
    assert!(moved.iter().all(|moved| *moved < most), "{moved:?}");
}
