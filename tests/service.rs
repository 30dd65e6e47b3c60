//! The switch as a service: its units, its notifications to the service manager, its journal entries, and the support archive.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::linux::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::manager::{Manager, fields};
use crate::common::net::Space;
use crate::common::switch::Switch;
use crate::common::{Lab, NULL_PORTS, Running, alone, assert_success, http, root};
use npcc_testkit::wait;

/// A running switch; the test acts as its service manager.
struct Service {
    lab: Lab,
    socket: UnixDatagram,
    child: Running,
}

impl Service {
    fn start(fault: Option<&str>) -> Service {
        let lab = Lab::with(NULL_PORTS);
        Service::of(lab, fault)
    }

    /// Starts the switch in a lab whose configuration is written.
    fn of(lab: Lab, fault: Option<&str>) -> Service {
        let socket = UnixDatagram::bind(lab.path("notify")).unwrap();
        let timeout = Some(Duration::from_millis(100));
        socket.set_read_timeout(timeout).unwrap();
        let mut command = lab.command(&["run", "-c", "switch.yaml"]);
        command.env("NOTIFY_SOCKET", lab.path("notify"));
        command.env("WATCHDOG_USEC", "2000000");
        if let Some(fault) = fault {
            command.env("NPCC_FAULT", fault);
            command.env("NPCC_FAULT_UNTIL", lab.path("goes-on"));
        }
        let said = std::fs::File::create(lab.path("stderr")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(said).spawn();
        Service {
            lab,
            socket,
            child: Running::of(child.unwrap()),
        }
    }

    /// Returns the notifications received for a time, or until a line begins with `until`.
    fn hear(&self, time: Duration, until: &str) -> Vec<String> {
        let deadline = Instant::now() + time;
        let mut lines = Vec::new();
        let mut buffer = [0; 4096];
        while Instant::now() < deadline {
            let Ok(length) = self.socket.recv(&mut buffer) else {
                continue;
            };
            let text = String::from_utf8_lossy(&buffer[..length]);
            lines.extend(text.lines().map(str::to_owned));
            if lines.iter().any(|line| line.starts_with(until)) {
                break;
            }
        }
        lines
    }

    /// Returns the lines of the notifications that are there.
    fn queued(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]);
            lines.extend(text.lines().map(str::to_owned));
        }
        lines
    }

    fn await_line(&self, start: &str) -> Vec<String> {
        let lines = self.hear(wait::LONG, start);
        let found = lines.iter().any(|line| line.starts_with(start));
        assert!(found, "no {start}: {lines:?}\n{}", self.said());
        lines
    }

    /// Waits until this is in what it wrote to standard error; its notifications are read meanwhile.
    fn until(&self, line: &str) {
        let awaited = || format!("{line}: {}", self.said());
        wait::value(wait::LONG, awaited, || {
            self.hear(wait::STEP, "never");
            self.said().contains(line).then_some(())
        });
    }

    /// Waits for so many heartbeats.
    fn heartbeats(&self, count: usize) {
        for _ in 0..count {
            self.await_line("WATCHDOG=1");
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.lab.path("stderr")).unwrap()
    }
}

#[test]
fn the_service_manager_is_notified_of_start_heartbeats_status_and_stop() {
    let _alone = alone();
    let mut service = Service::start(None);
    let lines = service.await_line("READY=1");
    assert!(!lines.iter().any(|line| line == "WATCHDOG=1"), "{lines:?}");
    // Ready means that the switch answers.
    service.lab.done(&["show", "ports"]);
    service.await_line("STATUS=2 ports up");
    service.heartbeats(4);
    service.child.signal("TERM");
    service.await_line("STOPPING=1");
    assert!(service.child.wait().unwrap().success());
}

/// Starts a switch with a thread that hangs at a place, and waits until the switch has named that thread.
fn stuck(lab: Lab, fault: &str, name: &str) -> Service {
    let service = Service::of(lab, Some(fault));
    service.await_line("READY=1");
    service.until(&format!("the {name} has not moved for 1 s"));
    service
}

fn null_ports(more: &str) -> Lab {
    Lab::with(&format!("{NULL_PORTS}{more}"))
}

/// Asserts that heartbeats stop while a thread hangs, that the thread is named, and that heartbeats resume when it does.
fn is_noticed(lab: Lab, fault: &str, name: &str) {
    let service = stuck(lab, fault, name);
    drop(service.queued());
    // The thread that sends heartbeats pauses for 10 ms a turn: eight are due in these.
    service.lab.turn("management", 200);
    let lines = service.queued();
    assert!(!lines.iter().any(|line| line == "WATCHDOG=1"), "{lines:?}");
    std::fs::write(service.lab.path("goes-on"), "").unwrap();
    service.await_line("WATCHDOG=1");
    // A thread of its own writes the log.
    service.until(&format!("the {name} moves again"));
}

#[test]
fn a_worker_that_is_stuck_is_named_and_no_keep_alive_is_sent() {
    let _alone = alone();
    is_noticed(null_ports(""), "worker-stuck", "worker on core 1");
}

#[test]
fn a_control_thread_that_is_stuck_is_named_and_no_keep_alive_is_sent() {
    let _alone = alone();
    is_noticed(null_ports(""), "control-stuck", "control thread");
}

#[test]
fn a_link_thread_that_is_stuck_is_named_and_no_keep_alive_is_sent() {
    let _alone = alone();
    is_noticed(null_ports(""), "link-stuck", "link thread");
}

/// Asserts [`is_noticed`] of a thread between the switch and Linux.
fn is_noticed_with_linux(fault: &str, name: &str) {
    let _alone = alone();
    let space = Space::of(fault);
    let linux = format!("linux: {{ integrate: true, netns: {} }}\n", space.0);
    is_noticed(null_ports(&linux), fault, name);
}

#[test]
fn a_linux_thread_that_is_stuck_is_named_and_no_keep_alive_is_sent() {
    is_noticed_with_linux("linux-stuck", "linux thread");
}

#[test]
fn a_netlink_thread_that_is_stuck_is_named_and_no_keep_alive_is_sent() {
    is_noticed_with_linux("netlink-stuck", "netlink thread");
}

/// Law: no frame is forwarded before the kernel's routes are known, nor later than 5 s after all else is up.
#[test]
fn a_kernel_that_gives_no_routes_holds_the_start_back_for_five_seconds() {
    let _alone = alone();
    let space = Space::of("noroutes");
    let linux = format!("linux: {{ integrate: true, netns: {} }}\n", space.0);
    let began = Instant::now();
    let service = Service::of(null_ports(&linux), Some("netlink-stuck"));
    service.await_line("READY=1");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(5), "{took:?}");
    service.until("the kernel's routes take longer to be read: forwarding starts without them");
    std::fs::write(service.lab.path("goes-on"), "").unwrap();
}

/// Asserts that a thread that forwarding does without is named while it hangs, and that heartbeats go on: a restart would cost frames.
fn is_named_only(fault: &str, name: &str) {
    let _alone = alone();
    let lab = Lab::new();
    lab.config(&format!(
        "{NULL_PORTS}telemetry: {{ socket: {}, http: \"{}\" }}\n",
        lab.path("switch.sock").display(),
        http::free()
    ));
    let service = stuck(lab, fault, name);
    drop(service.queued());
    service.heartbeats(4);
    std::fs::write(service.lab.path("goes-on"), "").unwrap();
    service.until(&format!("the {name} moves again"));
}

#[test]
fn an_http_thread_that_is_stuck_is_named_and_keep_alives_go_on() {
    is_named_only("http-stuck", "HTTP thread");
}

#[test]
fn a_checkpoint_thread_that_is_stuck_is_named_and_keep_alives_go_on() {
    is_named_only("keeping-stuck", "keeping thread");
}

/// Sends to a service manager's socket until it takes no more.
fn fill(socket: &Path) {
    let full = UnixDatagram::unbound().unwrap();
    full.set_nonblocking(true).unwrap();
    full.connect(socket).unwrap();
    while full.send(b"X_FULL=1\n").is_ok() {}
}

/// Earlier defect: the start waited for the manager, and once it ran, clients and signals did.
#[test]
fn a_service_manager_that_does_not_read_stops_nothing_and_gets_each_descriptor_when_it_reads() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let mut command = Command::new("sh");
    let waits = "until [ -e go ]; do sleep 0.01; done; exec \"$0\" run -c switch.yaml";
    command.args(["-c", waits, env!("CARGO_BIN_EXE_npcc-switch")]);
    let mut manager = Manager::start(lab.dir.path(), &command);
    manager.signal("STOP");
    fill(&lab.path("notify"));
    std::fs::write(lab.path("go"), "").unwrap();
    lab.answers();
    lab.done(&["port", "wan0", "down"]);
    manager.signal("CONT");
    wait::until("each descriptor is in the store", wait::LONG, || {
        manager.names() == ["audit", "counters", "facts", "pairs"]
    });
    manager.restart();
    lab.answers();
    let audit = lab.done(&["show", "audit"]);
    assert!(audit.contains("port wan0 down"), "{audit}");
    manager.stop();
}

#[test]
fn a_switch_whose_service_manager_never_reads_ends_and_names_what_it_could_not_leave() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let _manager = UnixDatagram::bind(lab.path("notify")).unwrap();
    fill(&lab.path("notify"));
    let notify = lab.path("notify");
    let mut switch = Switch::start_with(lab, &[("NOTIFY_SOCKET", notify.to_str().unwrap())]);
    switch.signal("TERM");
    let status = switch.ended(wait::LONG);
    assert!(status.success(), "{status}: {}", switch.log());
    let left = "did not take what the next start continues with: counters, facts, pairs, audit\n";
    assert!(switch.log().ends_with(left), "{}", switch.log());
}

/// Starts a switch whose log leads to a journal, in a mount namespace of its own, whose /run is the test's. Returns the journal's socket, too.
fn with_journal(variables: &[(&str, &str)]) -> (Service, UnixDatagram) {
    let lab = Lab::with(NULL_PORTS);
    std::fs::create_dir_all(lab.path("run/systemd/journal")).unwrap();
    let journal = UnixDatagram::bind(lab.path("run/systemd/journal/socket")).unwrap();
    journal.set_read_timeout(Some(wait::LONG)).unwrap();
    let stderr = std::fs::File::create(lab.path("stderr")).unwrap();
    let stream = stderr.metadata().unwrap();
    let script = "mount --bind run /run && exec \"$0\" run -c switch.yaml";
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        script,
        env!("CARGO_BIN_EXE_npcc-switch"),
    ]);
    command.current_dir(lab.dir.path());
    command.envs(variables.iter().copied());
    command.env(
        "JOURNAL_STREAM",
        format!("{}:{}", stream.st_dev(), stream.st_ino()),
    );
    let child = command
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let service = Service {
        socket: UnixDatagram::bind(lab.path("notify")).unwrap(),
        lab,
        child: Running::of(child),
    };
    (service, journal)
}

#[test]
fn under_systemd_a_stuck_thread_is_named_in_a_field_of_its_journal_entry() {
    let _alone = alone();
    let variables = [
        ("NOTIFY_SOCKET", "notify"),
        ("WATCHDOG_USEC", "2000000"),
        ("NPCC_FAULT", "link-stuck"),
        ("NPCC_FAULT_UNTIL", "goes-on"),
    ];
    let (service, journal) = with_journal(&variables);
    let mut buffer = [0; 65536];
    let entry = loop {
        let length = journal.recv(&mut buffer).unwrap();
        let entry = fields(&buffer[..length]);
        if entry.contains_key("NPCC_THREAD") {
            break entry;
        }
    };
    let named = (entry["NPCC_THREAD"].as_str(), entry["PRIORITY"].as_str());
    assert_eq!(named, ("link thread", "3"));
    assert!(entry["MESSAGE"].contains("the link thread has not moved for 1 s"));
    std::fs::write(service.lab.path("goes-on"), "").unwrap();
}

#[test]
fn under_systemd_a_change_is_a_journal_entry_with_its_user_and_process() {
    let _alone = alone();
    let (mut service, journal) = with_journal(&[]);
    let lab = &service.lab;
    let socket = lab.path("switch.sock");
    let port = ["port", "wan0", "down", "--socket", socket.to_str().unwrap()];
    lab.answers();
    let mut client = lab.command(&port).spawn().unwrap();
    assert!(client.wait().unwrap().success());
    let client = client.id();
    let mut buffer = [0; 65536];
    let (mut change, mut link) = (None, None);
    while change.is_none() || link.is_none() {
        let length = journal.recv(&mut buffer).unwrap();
        let entry = fields(&buffer[..length]);
        match entry.get("NPCC_REQUEST").map(String::as_str) {
            Some("port wan0 down") => change = Some(entry),
            _ if entry.get("NPCC_KIND").map(String::as_str) == Some("link-down") => {
                link = Some(entry)
            }
            _ => {}
        }
    }
    let (change, link) = (change.unwrap(), link.unwrap());
    assert_eq!(change["NPCC_PID"], client.to_string(), "{change:?}");
    assert_eq!(
        (change["NPCC_UID"].as_str(), change["NPCC_CAUSE"].as_str()),
        ("0", "client")
    );
    assert_eq!(change["SYSLOG_IDENTIFIER"], "npcc-switch");
    assert!(change["MESSAGE"].contains("port wan0 down (uid 0, pid "));
    assert_eq!(
        (link["NPCC_PORT"].as_str(), link["PRIORITY"].as_str()),
        ("wan0", "4")
    );
    service.child.signal("TERM");
    assert!(service.child.wait().unwrap().success());
    // The entry went to the journal only.
    assert!(
        !service.said().contains("port wan0 down"),
        "{}",
        service.said()
    );
}

/// Returns the names in an archive, without its folder, and their texts.
fn unpacked(path: &std::path::Path) -> BTreeMap<String, String> {
    let file = std::fs::File::open(path).unwrap();
    let output = Command::new("tar")
        .args(["-xzf", "-", "--to-stdout"])
        .stdin(file)
        .output();
    assert_success(&output.unwrap());
    let list = Command::new("tar").arg("-tzf").arg(path).output().unwrap();
    let text_of = |name: &str| {
        let mut child = Command::new("tar")
            .args(["-xOzf", path.to_str().unwrap(), name])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The recorder is included as a binary file, too.
        let mut bytes = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut bytes).unwrap();
        assert!(child.wait().unwrap().success());
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let names = String::from_utf8(list.stdout).unwrap();
    let names = names.lines().map(|name| {
        let (_, inside) = name.split_once('/').unwrap();
        (inside.to_owned(), text_of(name))
    });
    names.collect()
}

#[test]
fn techsupport_has_every_table_the_configuration_and_the_doctors_findings() {
    let _alone = alone();
    let mut service = Service::start(None);
    service.await_line("READY=1");
    let socket = service.lab.path("switch.sock");
    let collect = |output: &str| {
        let args = ["techsupport", "-o", output, "-c", "switch.yaml", "--socket"];
        let mut command = service.lab.command(&args);
        let output = command.arg(&socket).output().unwrap();
        assert_success(&output);
        output
    };
    let signalled = collect("bundle.tar.gz");
    assert_eq!(signalled.stdout, b"bundle.tar.gz\n");
    let parts = unpacked(&service.lab.path("bundle.tar.gz"));
    for table in npcc_appliance::manage::tables::ALL {
        let text = &parts[&format!("show/{}.json", table.name)];
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert!(!json.is_null());
    }
    assert!(parts["VERSION"].contains("npcc-switch 0."));
    assert_eq!(
        parts["npcc-switch.yaml"],
        std::fs::read_to_string(service.lab.path("switch.yaml")).unwrap()
    );
    let doctor: serde_json::Value = serde_json::from_str(&parts["doctor.json"]).unwrap();
    assert_eq!(doctor["configured"], true);
    assert!(parts["MANIFEST"].contains("show/ports.json: "));
    assert!(parts.contains_key("host/meminfo.txt"));
    let recorder: serde_json::Value = serde_json::from_str(&parts["recorder.json"]).unwrap();
    assert_eq!(recorder["pid"], service.child.id());
    assert!(parts["recorder.txt"].contains("worker on core 1"));
    assert!(parts["MANIFEST"].contains("recorder-previous.txt: absent: "));

    // The archive is needed most when the switch does not answer.
    service.child.signal("TERM");
    assert!(service.child.wait().unwrap().success());
    collect("dead.tar.gz");
    let parts = unpacked(&service.lab.path("dead.tar.gz"));
    assert!(!parts.contains_key("show/ports.json"));
    assert!(
        parts["MANIFEST"].contains("show/ports.json: absent: "),
        "{}",
        parts["MANIFEST"]
    );
    assert!(parts.contains_key("doctor.txt"));
}

/// Returns the value of a key in a section of a unit; the last one counts.
fn setting(unit: &str, section: &str, key: &str) -> Option<String> {
    let heading = format!("[{section}]");
    let lines = unit.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.last().map(str::to_owned)
}

/// Regression: a device that came a few seconds late left the unit failed for good, as systemd gives up after five starts in ten seconds.
#[test]
fn every_unit_that_restarts_after_a_failure_does_so_however_often() {
    let mut checked = Vec::new();
    for folder in ["packaging/systemd", "packaging/feed"] {
        for file in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = file.unwrap().path();
            let unit = std::fs::read_to_string(&path).unwrap();
            if setting(&unit, "Service", "Restart").as_deref() != Some("on-failure") {
                continue;
            }
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            // The default of 100 ms restarts it ten times a second.
            let pause = setting(&unit, "Service", "RestartSec").unwrap_or_else(|| panic!("{name}"));
            let pause: u32 = pause.parse().unwrap();
            let limit = setting(&unit, "Unit", "StartLimitIntervalSec");
            assert!(pause >= 1, "{name}: RestartSec={pause}");
            assert!(
                limit.as_deref() == Some("0") || 5 * pause > 10,
                "{name}: {limit:?}"
            );
            checked.push(name);
        }
    }
    checked.sort();
    assert_eq!(
        checked,
        [
            "npcc-agent.service",
            "npcc-feed.service",
            "npcc-lldpd@.service",
            "npcc-switch.service"
        ]
    );
}

/// Guards the switch against the memory of others: without this it is the largest process of the host, and the kernel's first choice.
#[test]
fn the_switch_is_not_the_first_that_the_kernel_ends_for_memory() {
    let unit = root().join("packaging/systemd/npcc-switch.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let adjust = setting(&unit, "Service", "OOMScoreAdjust");
    assert_eq!(adjust.as_deref(), Some("-900"));
}
