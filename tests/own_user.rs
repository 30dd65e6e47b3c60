//! A switch that becomes a user of its own when its start is over: it does all that a switch does, and root's files and sockets are closed
//! to it. The user is `nobody`, whom every host has.
//!
//! Needs root.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use nix::unistd::User;
use npcc_testkit::wait;

use crate::common::crash::{Victim, named};
use crate::common::manager::Manager;
use crate::common::net::{Space, strange_hosts};
use crate::common::rack::{Rack, text};
use crate::common::{Lab, NULL_PORTS, Running, alone, assert_success, root};

const USER: &str = "nobody";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns the capabilities that the table of docs/service.md lists for a switch without cards, as a set of the kernel's.
fn documented() -> u64 {
    let page = fs::read_to_string(root().join("docs/service.md")).unwrap();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| capability |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let numbers = BTreeMap::from([
        ("CAP_NET_ADMIN", 12),
        ("CAP_NET_RAW", 13),
        ("CAP_IPC_LOCK", 14),
    ]);
    let mut set = 0;
    for row in rows {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (name, when) = (
            cells.next().unwrap().trim_matches('`'),
            cells.next().unwrap(),
        );
        if when == "always" {
            set |= 1 << numbers[name];
        }
    }
    assert!(set != 0, "no table in docs/service.md");
    set
}

/// Checks each thread of a process: user, groups, capabilities, filters of system calls.
fn is_held(pid: u32) {
    let user = User::from_name(USER).unwrap().unwrap();
    let four = |id: u32| [id; 4].map(|id| id.to_string()).join("\t");
    let capabilities = format!("{:016x}", documented());
    let none = format!("{:016x}", 0);
    let expected = [
        ("Uid", four(user.uid.as_raw())),
        ("Gid", four(user.gid.as_raw())),
        ("Groups", user.gid.to_string()),
        ("CapInh", none.clone()),
        ("CapPrm", capabilities.clone()),
        ("CapEff", capabilities.clone()),
        ("CapBnd", capabilities),
        ("CapAmb", none),
        ("NoNewPrivs", "1".to_owned()),
        ("Seccomp", "2".to_owned()),
    ];
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let mut threads = 0;
    for task in tasks {
        // A thread of a client may have ended.
        let Ok(status) = fs::read_to_string(task.unwrap().path().join("status")) else {
            continue;
        };
        threads += 1;
        let lines = status.lines().filter_map(|line| line.split_once(":\t"));
        let lines: BTreeMap<&str, &str> = lines.collect();
        for (name, value) in &expected {
            assert_eq!(lines[name].trim(), value, "{name} of {}", lines["Name"]);
        }
    }
    assert!(threads >= 5, "{threads} threads");
}

/// Starts a switch with Linux integrated under a service manager that keeps its descriptors and a folder for crash reports.
fn managed() -> (Rack, Manager) {
    let net = strange_hosts();
    let space = Space::of("user");
    let more = format!("user: {USER}\n");
    let lab = Lab::with(&text(
        &net,
        &space,
        "10.0.2.1/24, '2001:db8:2::1/64'",
        &more,
    ));
    // The user reaches the service manager's socket, and not yet the configuration.
    mode(lab.dir.path(), 0o755);
    mode(&lab.path("switch.yaml"), 0o600);
    fs::create_dir(lab.path("state")).unwrap();
    let run = lab.command(&["run", "-c", "switch.yaml"]);
    let mut with_folder = Command::new("/usr/bin/env");
    with_folder.arg(format!("STATE_DIRECTORY={}", lab.path("state").display()));
    with_folder.arg(run.get_program()).args(run.get_args());
    let manager = Manager::start(lab.dir.path(), &with_folder);
    let switch = Running(None);
    let rack = Rack {
        net,
        space,
        lab,
        switch,
    };
    rack.lab.answers();
    (rack, manager)
}

fn until(manager: &Manager, what: &str) {
    wait::value(
        wait::LONG,
        || format!("{what}: {}", manager.said()),
        || manager.said().contains(what).then_some(()),
    );
}

/// Law: as another user than root the switch reloads, changes keys, takes ports down and up, follows Linux and sets sysctls back, serves
/// techsupport and captures, and leaves its descriptors, its report and its pairs to the next process.
#[test]
fn a_switch_with_a_user_of_its_own_does_all_that_a_switch_does() {
    let _alone = alone();
    let (rack, mut manager) = managed();
    until(&manager, &format!("capabilities net_admin, user {USER}"));
    is_held(manager.pid);
    rack.until("hosts reach each other", |rack| {
        rack.pings("dc", "10.0.2.3") && rack.pings("wan", "2001:db8:1::3")
    });

    // A file that the user cannot read is noted at the start; a reload of it is refused, and works once it can be read.
    until(
        &manager,
        "note: a reload will be refused: user nobody cannot read",
    );
    let refused = rack.lab.ask(&["reload"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("readable for this user"),
        "{said}"
    );
    let file = rack.lab.path("switch.yaml");
    mode(&file, 0o644);
    let yaml = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{yaml}npcc: {{ action: observe }}\nroutes: [{{ prefix: 10.9.0.0/16, via: [10.0.2.3] }}]\n")).unwrap();
    rack.order("reload");
    rack.until("the file's route is in the kernel", |rack| {
        rack.space.says("ip route").contains("10.9.0.0/16")
    });
    rack.order("set npcc.action off");

    // The port's device and its interface in Linux.
    rack.order("port wan0 down");
    rack.until("no carrier", |rack| {
        rack.space.says("ip link show wan0").contains("NO-CARRIER")
    });
    rack.order("port wan0 up");
    rack.until("hosts reach each other again", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    rack.space.says("sysctl -qw net.ipv6.conf.dc0.accept_ra=1");
    rack.until("the sysctl is set back", |rack| {
        rack.show("routes --diff");
        rack.space
            .says("sysctl -n net.ipv6.conf.dc0.accept_ra")
            .trim()
            == "0"
    });

    // Files that clients write.
    let socket = rack.lab.path("switch.sock");
    let socket = socket.to_str().unwrap();
    let written = [
        "techsupport -o bundle.tar.gz -c switch.yaml",
        "capture --for 200ms -w frames.pcapng",
    ];
    for (args, file) in written.iter().zip(["bundle.tar.gz", "frames.pcapng"]) {
        let args: Vec<&str> = args.split(' ').chain(["--socket", socket]).collect();
        assert_success(&rack.lab.command(&args).output().unwrap());
        assert!(
            fs::metadata(rack.lab.path(file)).unwrap().len() > 0,
            "{file}"
        );
    }

    // A kill, with a report by the next process, and an end in order.
    let names = manager.names();
    assert!(names.iter().any(|name| name == "tap.dc0"), "{names:?}");
    let links = rack.space.says("ip -o link");
    manager.kill();
    rack.lab.answers();
    until(&manager, "note: the last run ended without a word");
    rack.until("a report", |rack| {
        !named(&rack.lab.path("state"), "crash-").is_empty()
    });
    manager.restart();
    rack.lab.answers();
    rack.until("hosts reach each other after all", |rack| {
        rack.pings("dc", "10.0.2.3")
    });
    rack.until("the third is the user too", |_| {
        manager.said().matches("the sandbox is closed").count() == 3
    });
    is_held(manager.pid);
    assert_eq!(manager.names(), names);
    assert_eq!(rack.space.says("ip -o link"), links);
    let said = manager.said();
    manager.stop();
    assert!(!said.contains("not permitted"), "{said}");
    let mut denied = said.lines().filter(|line| line.contains("denied"));
    assert!(
        denied.all(|line| line.contains("switch.yaml") || line.contains("switch.recorder")),
        "{said}"
    );
}

/// Starts a switch as a user, which is to try what is forbidden; returns what it said about that.
fn forbidden(more: &str) -> (Victim, Running, String) {
    let victim = Victim::of(Lab::with(&format!("{NULL_PORTS}{more}")));
    mode(victim.lab.dir.path(), 0o755);
    mode(&victim.lab.path("notify"), 0o777);
    fs::write(victim.lab.path("secret"), "root's").unwrap();
    mode(&victim.lab.path("secret"), 0o600);
    let _listener = UnixListener::bind(victim.lab.path("secret.sock")).unwrap();
    mode(&victim.lab.path("secret.sock"), 0o600);
    let switch = victim.start(Some("forbidden"), false);
    let said = victim.tries_what_is_forbidden("the sandbox is closed");
    (victim, switch, said)
}

/// Earlier defect: who took the switch over wrote root's files and connected to root's sockets, the service manager's among them.
#[test]
fn files_and_sockets_of_root_are_closed_to_a_switch_with_a_user_of_its_own() {
    let _alone = alone();
    let (victim, switch, said) = forbidden(&format!("user: {USER}\n"));
    let denied = "Err(PermissionDenied)";
    for what in ["a file of root", "a socket of root"] {
        assert!(
            said.contains(&format!("forbidden: {what}: {denied}")),
            "{said}"
        );
    }
    let expected = if said.contains("with Landlock") {
        denied
    } else {
        "Ok(())"
    };
    let line = format!("forbidden: a file without need: {expected}");
    assert!(said.contains(&line), "{said}");
    is_held(switch.id());
    victim.lab.answers();
}

/// Law: with `user: root` the process stays root's, whose sockets are open to it.
#[test]
fn a_switch_that_stays_root_reaches_the_sockets_of_root() {
    let _alone = alone();
    let (_victim, _switch, said) = forbidden("user: root\n");
    assert!(said.contains("user root"), "{said}");
    assert!(
        said.contains("forbidden: a socket of root: Ok(())"),
        "{said}"
    );
    assert!(!said.contains("stays root's process"), "{said}");
}

#[test]
fn a_user_whom_the_host_lacks_ends_the_start() {
    let _alone = alone();
    let lab = Lab::with(&format!("{NULL_PORTS}user: npcc-no-such-user\n"));
    let output = lab.command(&["run", "-c", "switch.yaml"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the host has no user npcc-no-such-user (user)"),
        "{said}"
    );
}

/// Law: with `sandbox: log` the kernel logs the system calls that it refuses, and refuses them.
#[test]
fn refused_system_calls_are_in_the_kernels_log_where_that_is_configured() {
    let _alone = alone();
    let (victim, switch, said) = forbidden("sandbox: log\n");
    assert!(
        said.contains("forbidden: another root: Err(PermissionDenied)"),
        "{said}"
    );
    let pid = format!(" pid={} ", switch.id());
    victim.until("a line of the kernel", || {
        let log = Command::new("dmesg").output().unwrap();
        let log = String::from_utf8_lossy(&log.stdout).into_owned();
        let mut refused = log.lines().filter(|line| line.contains("type=1326"));
        refused.any(|line| line.contains(&pid))
    });
}
