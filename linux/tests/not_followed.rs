//! Routes and rules that are not followed: each has a row with its reason while the kernel of this machine has it.

use std::process::Command;

use crate::common::live::Live;
use npcc_linux::wire::not_followed::Reason;
use npcc_testkit::wait;

/// Returns the reasons of a prefix's rows.
fn reasons(live: &Live, prefix: &str) -> Vec<String> {
    let rows = live.handle().routes().unwrap();
    let of = rows
        .into_iter()
        .filter(|row| row.prefix.to_string() == prefix);
    of.filter_map(|row| row.reason).collect()
}

/// Waits until a prefix has rows with these reasons.
fn until(live: &Live, prefix: &str, expected: &[&str]) {
    let awaited = || format!("{expected:?}: {:?}", reasons(live, prefix));
    let holds = || (reasons(live, prefix) == expected).then_some(());
    wait::value(wait::LONG, awaited, holds);
}

const ALL: [(&str, &str, &str); 7] = [
    (
        "-6 route add 2001:db8:9::/48 from 2001:db8:1::/64 via 2001:db8::2",
        "2001:db8:9::/48",
        "for packets from a prefix only: 2001:db8:1::/64",
    ),
    (
        "route add 10.9.0.0/16 tos 0x10 via 10.0.0.2",
        "10.9.0.0/16",
        "for packets with a TOS only: 0x10",
    ),
    (
        "route add 10.10.0.0/16 via 10.0.0.2 table default",
        "10.10.0.0/16",
        "in table default",
    ),
    (
        "rule add to 10.8.0.0/16 lookup 200",
        "10.8.0.0/16",
        "by a rule of policy routing: 32765: lookup 200",
    ),
    (
        "rule add from 10.7.0.0/16 iif p0 fwmark 7 lookup main priority 5",
        "0.0.0.0/0",
        "by a rule of policy routing: 5: from 10.7.0.0/16 iif p0 fwmark 0x7 lookup main",
    ),
    (
        "-6 rule add to 2001:db8:8::/48 prohibit priority 9",
        "2001:db8:8::/48",
        "by a rule of policy routing: 9: Prohibit",
    ),
    (
        "route add 10.11.0.0/16 nexthop via 10.0.0.2 nexthop dev veth0",
        "10.11.0.0/16",
        "some next hops not behind a port of the switch: 1 of 2",
    ),
];

#[test]
fn what_is_not_followed_has_a_row_with_its_reason() {
    let live = Live::open("left");
    live.ip("link add veth0 type veth peer name veth1");
    live.ip("link set veth0 up");
    live.ip("link set veth1 up");
    live.settle();
    for (command, prefix, reason) in ALL {
        assert_eq!(reasons(&live, prefix), Vec::<String>::new(), "{prefix}");
        live.ip(command);
        until(&live, prefix, &[reason]);
    }
    live.ip("route add 10.12.0.0/16 dev veth0");
    until(&live, "10.12.0.0/16", &["none behind a port of the switch"]);
    // A comparison neither loses the rows nor takes them for differences.
    live.equal("with all");
    for (_, prefix, reason) in ALL {
        assert_eq!(reasons(&live, prefix), [reason]);
    }
    for (command, prefix, _) in ALL {
        live.ip(&command.replacen(" add ", " del ", 1));
        until(&live, prefix, &[]);
    }
    live.equal("at the end");
}

#[test]
fn what_was_there_before_the_switch_has_a_row_too() {
    let name = format!("npcc-left-before-{}", std::process::id());
    for arguments in [
        format!("netns add {name}"),
        format!("-n {name} rule add to 10.8.0.0/16 lookup 200"),
        format!("-n {name} -6 rule add from 2001:db8:8::/48 lookup 200"),
        format!("-n {name} link set lo up"),
        format!("-n {name} route add 10.10.0.0/16 dev lo table default"),
    ] {
        let done = Command::new("ip")
            .args(arguments.split_whitespace())
            .status();
        assert!(done.unwrap().success(), "{arguments}");
    }
    let live = Live::open("left-before");
    for (prefix, reason) in [
        (
            "10.8.0.0/16",
            "by a rule of policy routing: 32765: lookup 200",
        ),
        (
            "::/0",
            "by a rule of policy routing: 32765: from 2001:db8:8::/48 lookup 200",
        ),
        ("10.10.0.0/16", "in table default"),
    ] {
        assert_eq!(reasons(&live, prefix), [reason]);
    }
}

#[test]
fn next_hops_beyond_the_buckets_are_said() {
    let live = Live::open("left-many");
    let hops: Vec<String> = (2..142)
        .map(|host| format!("nexthop via 10.0.0.{host}"))
        .collect();
    live.ip(&format!("route add 10.9.0.0/16 {}", hops.join(" ")));
    until(
        &live,
        "10.9.0.0/16",
        &["more next hops than take packets: 12 of 140 take none"],
    );
}

/// Every prefix of the kernel is installed, left out, refused, or none that is forwarded by; the switch has hosts beside them.
#[test]
fn the_account_of_prefixes_closes() {
    let live = Live::open("left-account");
    live.ip("route add 10.9.0.0/16 via 10.0.0.2");
    live.ip("route add 10.12.0.0/16 dev lo");
    live.ip("neigh replace 10.0.0.9 lladdr 02:00:00:00:02:01 dev p0 nud permanent");
    live.settle();
    live.equal("with all");
    let status = live.handle().status();
    let figures = status.figures;
    let [v4, v6] = status.kernel;
    assert!(status.hosts >= 1 && status.aside >= 1 && figures.left_out == 1);
    let of_the_switch = figures.routes + figures.left_out + figures.refused;
    assert_eq!(
        v4 + v6 + status.hosts,
        of_the_switch + status.aside,
        "{status:?}"
    );
}

#[test]
fn the_guide_to_linux_lists_every_reason() {
    let guide = include_str!("../../docs/linux.md");
    let table = guide
        .lines()
        .skip_while(|line| !line.starts_with("| reason in"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let listed: Vec<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .map(str::trim)
        .collect();
    assert_eq!(listed, Reason::ALL.map(Reason::name));
}
