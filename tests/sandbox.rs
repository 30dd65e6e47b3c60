//! Sandbox: a running switch can do what it must and nothing more. Skips what needs root where the process has no capabilities.

use std::collections::BTreeMap;
use std::fs;

use crate::common::crash::Victim;
use crate::common::{Lab, NULL_PORTS, alone};

/// Bit of CAP_NET_ADMIN in a capability set.
const NET_ADMIN: u64 = 1 << 12;

fn victim(sandbox: &str) -> Victim {
    let lab = Lab::with(&format!("{NULL_PORTS}{sandbox}"));
    Victim::of(lab)
}

/// Returns the name of each thread, and its capabilities and other numbers from its status in /proc.
fn threads(pid: u32) -> Vec<(String, BTreeMap<String, u64>)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |text: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(":\t"));
        let all: BTreeMap<&str, &str> = lines.collect();
        let number = |name: &str, radix| u64::from_str_radix(all[name].trim(), radix).unwrap();
        let caps = ["CapEff", "CapPrm", "CapInh"].map(|name| (name.to_owned(), number(name, 16)));
        let rest = ["Seccomp", "NoNewPrivs"].map(|name| (name.to_owned(), number(name, 10)));
        let name = all["Name"].to_owned();
        (name, caps.into_iter().chain(rest).collect())
    };
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).ok();
    tasks
        .filter_map(|task| status(task.unwrap()))
        .map(|text| of(&text))
        .collect()
}

#[test]
fn every_thread_is_in_the_sandbox_those_of_dpdk_too() {
    let _alone = alone();
    let victim = victim("");
    let switch = victim.start(None, false);
    victim.lab.answers();
    victim.until("the sandbox is closed", || {
        victim.said().contains("the sandbox is closed")
    });
    let all = threads(switch.id());
    assert!(all.len() >= 5, "{all:?}");
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.iter().any(|name| name.contains("intr")), "{names:?}");
    for (name, status) in &all {
        assert_eq!((status["Seccomp"], status["NoNewPrivs"]), (2, 1), "{name}");
        for set in ["CapEff", "CapPrm", "CapInh"] {
            assert_eq!(
                status[set] & !NET_ADMIN,
                0,
                "{name}: {set} {:x}",
                status[set]
            );
        }
    }
}

#[test]
fn what_the_sandbox_forbids_is_refused_and_the_switch_runs_on() {
    let _alone = alone();
    let victim = victim("");
    let _switch = victim.start(Some("forbidden"), false);
    let said = victim.tries_what_is_forbidden("the sandbox is closed");
    for line in [
        "forbidden: a program: Err(PermissionDenied)",
        "forbidden: a packet socket: Err(EPERM)",
        "forbidden: a connection: Err(PermissionDenied)",
        "forbidden: another root: Err(PermissionDenied)",
    ] {
        assert!(said.contains(line), "{said}");
    }
    victim.lab.answers();
}

#[test]
fn a_sandbox_that_cannot_be_closed_ends_the_start_unless_it_is_only_tried() {
    let _alone = alone();
    // Both try for the same five seconds.
    let (strict, lenient) = (victim(""), victim("sandbox: try\n"));
    let _tried = lenient.start(Some("sandbox"), false);
    let mut switch = strict.start(Some("sandbox"), false);
    let status = switch.wait().unwrap();
    let said = strict.said();
    assert_eq!(status.code(), Some(1), "{said}");
    for part in [
        "error: cannot close the sandbox",
        "sandbox: try",
        "at `sandbox`",
    ] {
        assert!(said.contains(part), "{said}");
    }

    lenient.until("a note", || {
        lenient
            .said()
            .contains("note: the sandbox is not closed: privileges were not given away")
    });
    lenient.lab.answers();
}

#[test]
fn without_the_sandbox_the_same_is_let_through_and_the_switch_says_so() {
    let _alone = alone();
    let victim = victim("sandbox: off\n");
    let switch = victim.start(Some("forbidden"), false);
    let said = victim.tries_what_is_forbidden("note: the sandbox is off");
    assert!(said.contains("forbidden: a program: Ok("), "{said}");
    let all = threads(switch.id());
    assert!(
        all.iter().all(|(_, status)| status["Seccomp"] == 0),
        "{all:?}"
    );
}
