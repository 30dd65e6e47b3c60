//! Restarts under a service manager that keeps descriptors: the state that stays in Linux, and the descriptors that are closed.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::alone;
use crate::common::frr::{Frr, bgp_host};
use crate::common::manager::Manager;
use crate::common::net::{Space, run};
use crate::common::rack::{Rack, text};
use npcc_testkit::wait;

/// Returns links, addresses and routes of the switch's namespace, as `ip` prints them without lifetimes and counters.
fn linux(rack: &Rack) -> String {
    let links = rack.space.says("ip -o link");
    let addresses = rack.space.says("ip -o addr");
    let routes = rack.space.says("ip -d route show table all");
    let routes6 = rack.space.says("ip -6 -d route show table main");
    format!("{links}\n{addresses}\n{routes}\n{routes6}")
}

/// Returns the names that the store keeps, with these TAPs.
fn kept(taps: [&'static str; 2]) -> Vec<&'static str> {
    let memory = ["audit", "counters", "facts", "pairs"];
    memory.into_iter().chain(taps).collect()
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
    assert_eq!(manager.names(), kept(["tap.dc0", "tap.wan0"]));
    let before = linux(&rack);
    assert!(before.contains("10.7.99.0/24"), "{before}");
    for kill in [true, false, true] {
        if kill {
            manager.kill();
        } else {
            manager.restart();
        }
        assert_eq!(linux(&rack), before, "without a switch");
        rack.lab.answers();
        rack.until("hosts reach each other", |rack| {
            rack.pings("dc", "10.0.2.3")
        });
        assert_eq!(linux(&rack), before, "killed: {kill}");
        rack.agrees("after a restart");
        assert_eq!(manager.names(), kept(["tap.dc0", "tap.wan0"]));
    }
    manager.stop();
    assert!(
        !rack.space.says("ip -o link").contains("dc0"),
        "a stop for good takes all"
    );
}

/// Number of prefixes that one host announces.
const ROUTES: u32 = 10_000;

/// Times of BGP between two keep-alives and until a silent session ends, in s: longer than the test waits for answers, so that a session ends if the
/// switch loses something, and not because the machine is slow.
const TIMERS: &str = "60 180";

/// BGP configuration of the switch's namespace, with a host on either side.
const SWITCH: &str = "router bgp 65000
 bgp router-id 10.0.1.1
 no bgp ebgp-requires-policy
 timers bgp 60 180
 neighbor 10.0.1.3 remote-as 65101
 neighbor 10.0.1.3 timers connect 1
 neighbor 10.0.1.3 advertisement-interval 0
 neighbor 10.0.2.3 remote-as 65102
 neighbor 10.0.2.3 timers connect 1
 neighbor 10.0.2.3 advertisement-interval 0
";

/// Returns the number of times a session was established, and its uptime in ms.
fn uptime(frr: &Frr, neighbor: &str) -> (u64, u64) {
    let all = frr.json("show bgp neighbors json");
    let up = all[neighbor]["bgpTimerUpMsec"].as_u64().unwrap_or(0);
    (frr.times(neighbor), up)
}

/// Kills the switch while a host pings another every 10 ms, until there are answers again; returns the longest time in ms without an answer.
fn gap_of_a_kill(rack: &Rack, manager: &mut Manager, to: &str) -> u64 {
    let mut ping = Command::new("ip");
    ping.args(["netns", "exec", &rack.net.space("dc")]);
    ping.args(["ping", "-n", "-i", "0.01"]).args(to.split(' '));
    let ping = ping
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The stimulus: answers come for a while before it.
    std::thread::sleep(Duration::from_secs(1));
    manager.kill();
    let once = format!("ping -n -c 1 -W 1 {to}");
    rack.until("answers again", |rack| rack.host("dc", &once).0);
    // The stimulus: they go on for a while.
    std::thread::sleep(Duration::from_millis(500));
    run(&format!("kill -INT {}", ping.id()));
    let output = ping.wait_with_output().unwrap();
    longest_gap(&String::from_utf8_lossy(&output.stdout), 10)
}

/// Returns the longest time without an answer, in ms, in the output of a ping at this interval.
fn longest_gap(said: &str, every_ms: u64) -> u64 {
    let sequence = |line: &str| {
        // Error lines have sequence numbers too.
        let rest = line.contains("bytes from").then_some(line)?;
        let rest = rest.split("icmp_seq=").nth(1)?;
        rest.split(' ').next()?.parse::<u64>().ok()
    };
    let answered: Vec<u64> = said.lines().filter_map(sequence).collect();
    assert!(answered.len() > 2, "{said}");
    // A gap that lasts to the end would not be seen.
    let sent = said.split(" packets transmitted").next();
    let sent = sent.and_then(|before| before.rsplit('\n').next()?.parse::<u64>().ok());
    let last = answered.last().unwrap() + 50;
    assert!(sent.is_some_and(|sent| sent <= last), "{said}");
    let gaps = answered
        .windows(2)
        .map(|two| two[1].saturating_sub(two[0]) - 1);
    gaps.max().unwrap_or(0) * every_ms
}

/// Returns the routes of the switch's kernel, sorted.
fn kernel_routes(rack: &Rack) -> BTreeSet<String> {
    let all = rack.space.says("ip route show table main");
    all.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn bgp_with_ten_thousand_routes_does_not_notice_a_kill() {
    let _alone = alone();
    let _ = gaps_of_kills();
}

#[test]
#[ignore = "a time of this machine: scripts/test-long restarts"]
fn a_kill_leaves_hosts_without_answers_for_less_than_a_second() {
    let _alone = alone();
    let mut gaps = gaps_of_kills();
    // The machine may be busy once.
    gaps.sort_unstable();
    assert!(gaps[1] <= 1_000, "{gaps:?} ms");
}

/// Kills a switch with ten thousand routes three times; asserts that BGP does not notice it, and returns the times in ms without an answer.
fn gaps_of_kills() -> Vec<u64> {
    let (rack, mut manager) = Rack::managed("bgp", "");
    let own = Frr::start(&rack.space.0, "! none\n", SWITCH, "");
    let host = |side, number, peer: &str| {
        let remote = format!("remote-as 65000\n neighbor {peer} timers {TIMERS}");
        bgp_host(&rack, side, number, peer, &remote)
    };
    let dc = host("dc", 101, "10.0.1.1");
    let wan = host("wan", 102, "10.0.2.1");
    let long = Duration::from_secs(60);
    wait::until("BGP is established", long, || {
        own.established(&["10.0.1.3", "10.0.2.3"])
    });
    let networks = (0..ROUTES).map(|n| format!("  network 20.{}.{}.0/24", n / 250, n % 250));
    let head = ["router bgp 65102", " address-family ipv4 unicast"].map(str::to_owned);
    let many = wan.write("many", head.into_iter().chain(networks));
    wan.vtysh_file(&many);
    // Exactly: what came after the routes were noted would differ for ever.
    wait::until("the kernel has all routes", long, || {
        let all = kernel_routes(&rack);
        all.iter().filter(|route| route.starts_with("20.")).count() == ROUTES as usize
    });
    wait::until("the switch has all routes", long, || {
        rack.show("linux")["installed"].as_u64() > Some(u64::from(ROUTES))
    });
    wait::until("a host reaches one of them", long, || {
        rack.host("dc", "ping -n -c 1 -W 1 -I 10.101.0.1 10.102.0.1")
            .0
    });
    let before = (
        kernel_routes(&rack),
        uptime(&own, "10.0.1.3"),
        uptime(&dc, "10.0.1.1"),
        uptime(&wan, "10.0.2.1"),
    );
    let mut gaps = Vec::new();
    for round in 0..3 {
        let gap = gap_of_a_kill(&rack, &mut manager, "-I 10.101.0.1 10.102.0.1");
        println!("round {round}: {gap} ms without an answer");
        assert!(gap > 20, "nothing was killed: {}", manager.said());
        gaps.push(gap);
        let differ = || {
            let now = kernel_routes(&rack);
            let differ = before.0.symmetric_difference(&now).take(5);
            differ.cloned().collect::<Vec<_>>()
        };
        let awaited = || format!("the kernel's routes as before: {:?}", differ());
        wait::value(wait::LONG, awaited, || differ().is_empty().then_some(()));
        rack.agrees("after a kill");
    }
    let after = (
        uptime(&own, "10.0.1.3"),
        uptime(&dc, "10.0.1.1"),
        uptime(&wan, "10.0.2.1"),
    );
    for ((times, up), (times_now, up_now)) in [
        (before.1, after.0),
        (before.2, after.1),
        (before.3, after.2),
    ] {
        assert_eq!(times, times_now, "a session was established anew");
        assert!(up_now > up, "{up} ms, and then {up_now}");
    }
    drop((own, dc, wan));
    manager.stop();
    gaps
}

/// Counts what a restart could leak: descriptors of the switch, TAPs, namespaces, files of huge pages, names in the store.
fn belongings(rack: &Rack, manager: &mut Manager) -> Vec<(&'static str, usize)> {
    let files = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
    let links = rack.space.says("ip -o link");
    let own: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", manager.pid))
        .unwrap()
        .filter_map(|entry| {
            Some(
                std::fs::read_link(entry.ok()?.path())
                    .ok()?
                    .display()
                    .to_string(),
            )
        })
        .collect();
    let of = |what: &str| own.iter().filter(|target| target.contains(what)).count();
    // Other processes of this machine create namespaces too.
    let mine = format!("-{}", std::process::id());
    let spaces = std::fs::read_dir("/run/netns").unwrap();
    let spaces = spaces
        .filter_map(Result::ok)
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(&mine))
        .count();
    vec![
        ("descriptors", own.len()),
        ("memory", of("memfd:npcc")),
        ("TAPs", of("/dev/net/tun")),
        ("links", links.lines().count()),
        ("namespaces", spaces),
        ("huge pages", files("/dev/hugepages")),
        ("names", manager.names().len()),
    ]
}

/// Guards against leaks over `NPCC_RESTARTS` restarts (default 5), every third a clean one.
#[test]
fn nothing_is_left_over_after_many_restarts() {
    let _alone = alone();
    let times = std::env::var("NPCC_RESTARTS").map_or(5, |text| text.parse().unwrap());
    let (rack, mut manager) = Rack::managed("many", "");
    rack.until("hosts reach each other", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    // Use huge pages in files, as in production, from the first restart on.
    let file = rack.lab.path("switch.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let with_files = text.replace(", hugepages: off", "");
    assert_ne!(text, with_files);
    std::fs::write(&file, with_files).unwrap();
    let mut first = None;
    for round in 0..times {
        if round % 3 == 2 {
            manager.restart();
        } else {
            manager.kill();
        }
        rack.lab.answers();
        // The first restart that inherits state is the reference.
        let first = first.get_or_insert_with(|| {
            // A client's socket is closed a moment after its answer.
            rack.lab.turn("management", 50);
            belongings(&rack, &mut manager)
        });
        // A client's socket is closed a moment after its answer.
        let said = rack.lab.path("stderr");
        let mut now = Vec::new();
        let awaited = || {
            format!(
                "as at first after {round} restarts: {:?}",
                std::fs::read_to_string(said)
            )
        };
        wait::value(wait::LONG, awaited, || {
            now = belongings(&rack, &mut manager);
            (now == *first).then_some(())
        });
    }
    let first = first.unwrap();
    println!("{first:?}");
    assert!(first.contains(&("TAPs", 2)) && first.contains(&("memory", 4)));
    rack.until("hosts reach each other", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    manager.stop();
}

#[test]
fn what_the_new_file_lacks_is_removed_and_foreign_descriptors_are_refused() {
    let _alone = alone();
    let routes = "routes: [ { prefix: 10.9.1.0/24, via: 10.0.2.3 }, { prefix: 10.9.2.0/24, via: 10.0.2.3 } ]\n";
    let (rack, mut manager) = Rack::managed("other", routes);
    let kernel = |what: &str| rack.space.says(&format!("ip {what}"));
    assert!(kernel("route").contains("10.9.2.0/24"));
    run(&format!(
        "ip -n {} route add 10.9.7.0/24 via 10.0.2.3 dev wan0 proto bgp",
        rack.space.0
    ));
    // Another address, one route fewer, a renamed port, and descriptors that are not a TAP, or are another TAP.
    let new = text(
        &rack.net,
        &rack.space,
        "10.0.2.1/24, 10.0.22.1/24",
        "routes: [ { prefix: 10.9.1.0/24, via: 10.0.2.3 } ]\n",
    );
    rack.lab.config(&new.replace("name: dc0", "name: lan0"));
    manager.put("tap.lan0", "/dev/null");
    manager.put("odd", "/dev/null");
    manager.kill();
    rack.lab.answers();
    rack.until("hosts reach each other", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    let links = kernel("-o link");
    assert!(links.contains("lan0") && !links.contains("dc0"), "{links}");
    let addresses = kernel("-o addr show dev wan0");
    assert!(
        addresses.contains("10.0.22.1") && !addresses.contains("2001:db8:2::1"),
        "{addresses}"
    );
    let routes = kernel("route");
    for (prefix, stays) in [
        ("10.9.1.0/24", true),
        ("10.9.2.0/24", false),
        ("10.9.7.0/24", true),
    ] {
        assert_eq!(routes.contains(prefix), stays, "{prefix}: {routes}");
    }
    assert_eq!(manager.names(), kept(["tap.lan0", "tap.wan0"]));
    let said = manager.said();
    for line in [
        "TAP lan0: taking it over: the descriptor is not of a TAP",
        "TAP dc0 is of no port any more",
        "which is closed: odd",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }

    // Another namespace: the TAPs of the first go.
    let second = Space::of("second");
    let there = std::fs::read_to_string(rack.lab.path("switch.yaml")).unwrap();
    std::fs::write(
        rack.lab.path("switch.yaml"),
        there.replace(
            &format!("netns: {}", rack.space.0),
            &format!("netns: {}", second.0),
        ),
    )
    .unwrap();
    manager.restart();
    rack.lab.answers();
    wait::until("the TAPs are in the other namespace", wait::LONG, || {
        second.says("ip -o link").contains("wan0") && !kernel("-o link").contains("wan0")
    });
    assert!(
        manager
            .said()
            .contains("it is in another network namespace"),
        "{}",
        manager.said()
    );
    assert_eq!(manager.names(), kept(["tap.lan0", "tap.wan0"]));
    manager.stop();
}

/// Guards a restart with a full table: `NPCC_ROUTES` routes of the kernel, a million by default.
#[test]
#[ignore = "takes minutes and gigabytes: scripts/test-long restarts"]
fn a_full_table_is_read_again() {
    let _alone = alone();
    let routes =
        std::env::var("NPCC_ROUTES").map_or(1_000_000, |text| text.parse::<u32>().unwrap());
    let (rack, mut manager) = Rack::managed(
        "full",
        &format!("routing: {{ ipv4_routes: {} }}\n", routes + 10_000),
    );
    rack.until("hosts reach each other", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    let lines = (0..routes).map(|n| {
        let n = n + (20 << 16);
        format!(
            "route add {}.{}.{}.0/24 via 10.0.2.3 dev wan0 proto bgp\n",
            n >> 16,
            n >> 8 & 255,
            n & 255
        )
    });
    let batch = rack.lab.path("batch");
    std::fs::write(&batch, lines.collect::<String>()).unwrap();
    run(&format!(
        "ip -n {} -batch {}",
        rack.space.0,
        batch.display()
    ));
    wait::until(
        "the switch has all routes",
        Duration::from_secs(300),
        || rack.show("linux")["installed"].as_u64() > Some(u64::from(routes)),
    );
    for round in 0..3 {
        let gap = gap_of_a_kill(&rack, &mut manager, "10.0.2.3");
        let steps = manager.said();
        let steps = steps.lines().rfind(|line| line.starts_with("forwarding"));
        println!(
            "{routes} routes, round {round}: {gap} ms without an answer; {}",
            steps.unwrap()
        );
        assert!(gap < 10_000, "{gap} ms");
        wait::until(
            "the switch has all routes again",
            Duration::from_secs(60),
            || rack.show("linux")["installed"].as_u64() > Some(u64::from(routes)),
        );
    }
    manager.stop();
}
