//! Management under stress from an operator and his scripts: clients that hold their connections, changes that are rolled back, panics, and
//! signals.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::common::switch::Switch;
use crate::common::{Lab, alone, assert_success};
use npcc_testkit::{http, wait};
use serde_json::Value;

const CONFIG: &str = "version: 1
dpdk: { eal_args: [--no-pci], hugepages: off }
cores: { control: 0, workers: [1], idle: adaptive }
ports:
  - { name: dc0, device: \"net_null0,no-rx=1\", addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null1,no-rx=1\", speed: 10G, addresses: [10.0.12.1/24], npcc: { queues: [3], policy: npcc } }
routes: [ { prefix: 10.0.2.0/24, via: 10.0.12.2 } ]
neighbors: [ { address: 10.0.12.2, port: wan0, mac: \"02:00:00:00:02:02\" } ]
qos: { profile: lossy, priorities: { 3: { weight: 50 } } }
buffer: { pool: 4MB }
npcc: { tick: 2ms, recovery: 3ms }
";

/// Returns the configuration with another weight and another parameter of NPCC.
fn changed() -> String {
    CONFIG
        .replace("weight: 50", "weight: 20")
        .replace("recovery: 3ms", "recovery: 9ms")
}

/// Starts a switch without waiting until it answers; `fault` is injected in a debug build.
fn starting(fault: &str) -> Switch {
    let lab = Lab::with(CONFIG);
    Switch::starting(lab, &[("NPCC_FAULT", fault)])
}

fn with_fault(fault: &str) -> Switch {
    let switch = starting(fault);
    switch.answers();
    switch
}

fn start() -> Switch {
    with_fault("none")
}

impl Switch {
    /// Runs a command that must fail with code 1; returns its error text.
    fn error_by(&self, socket: &str, args: &[&str]) -> String {
        let output = self.ask_by(socket, args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Returns the weight, and the parameters `recovery` and `few`, as workers and control core have them.
    fn holds(&self) -> [u64; 3] {
        let queue = self.show("npcc")["queues"][0].clone();
        let parameter = |name: &str| {
            let all = queue["parameters"].as_array().unwrap();
            let one = all.iter().find(|one| one["name"] == name).unwrap();
            one["value"].as_u64().unwrap()
        };
        let weight = self.show("qos")["priorities"][3]["weight"]
            .as_u64()
            .unwrap();
        [weight, parameter("recovery"), parameter("few")]
    }

    /// Returns the entries of the audit log: the requested change, and its outcome.
    fn audit(&self) -> Vec<(String, String)> {
        let all = self.show("audit");
        let changes = all["changes"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        changes
            .map(|one| (text(&one["what"]), text(&one["outcome"])))
            .collect()
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.lab.path("switch.sock")).unwrap()
    }

    /// Returns the number of sockets of the switch once no client comes or goes.
    fn sockets(&self) -> usize {
        wait::value(
            wait::LONG,
            || "clients that stay".to_owned(),
            || {
                let before = self.open_sockets();
                // The time in which a client that has its answer is gone.
                std::thread::sleep(Duration::from_millis(50));
                (self.open_sockets() == before).then_some(before)
            },
        )
    }

    /// Returns the number of sockets of the switch: one more for each client that is connected.
    fn open_sockets(&self) -> usize {
        let files = format!("/proc/{}/fd", self.child.id());
        let is_socket = |file: std::io::Result<std::fs::DirEntry>| {
            let link = file.and_then(|file| std::fs::read_link(file.path()));
            link.is_ok_and(|link| link.to_string_lossy().starts_with("socket:"))
        };
        let all = std::fs::read_dir(files).unwrap();
        all.map(is_socket).filter(|is| *is).count()
    }

    /// Returns the number of threads that carry requests out, or did a moment ago.
    fn works(&self) -> usize {
        let threads = format!("/proc/{}/task", self.child.id());
        let is_client = |task: std::io::Result<std::fs::DirEntry>| {
            let name = task.and_then(|task| std::fs::read_to_string(task.path().join("comm")));
            name.is_ok_and(|name| name.starts_with("npcc-client"))
        };
        let all = std::fs::read_dir(&threads).unwrap();
        all.map(is_client).filter(|is| *is).count()
    }

    /// Waits until so many clients are connected beside the `sockets` there were.
    fn serves(&self, clients: usize, sockets: usize) {
        self.until(&format!("{clients} clients are served"), || {
            self.open_sockets() == sockets + clients
        });
    }
}

/// Head of a request whose body is long.
const LONG_BODY: &[u8] =
    b"PATCH /v1/config HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n";

/// Clients that send the body of their requests an octet at a time: a silent one is dropped after 5 s, but such a one holds its place for 30 s.
struct Slow {
    streams: Arc<Vec<UnixStream>>,
    stop: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

impl Slow {
    /// Connects so many clients beside those that are, and waits until they are served.
    fn connect(switch: &Switch, clients: usize) -> Slow {
        let sockets = switch.sockets();
        let streams: Arc<Vec<_>> = Arc::new((0..clients).map(|_| switch.connect()).collect());
        let stop = Arc::new(AtomicBool::new(false));
        let (all, ends) = (Arc::clone(&streams), Arc::clone(&stop));
        let sender = std::thread::spawn(move || {
            for mut stream in all.iter() {
                let _ = stream.write_all(LONG_BODY);
            }
            while !ends.load(Ordering::Relaxed) {
                for mut stream in all.iter() {
                    // The switch may have dropped it.
                    let _ = stream.write_all(b" ");
                }
                // The stimulus is an octet now and then.
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        switch.serves(clients, sockets);
        Slow {
            streams,
            stop,
            sender: Some(sender),
        }
    }

    /// Returns the number of clients that have neither an answer nor an end.
    fn held(&self) -> usize {
        self.streams.iter().filter(|stream| waits(stream)).count()
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.sender.take().unwrap().join().unwrap();
    }
}

/// Returns true if a client has neither an answer nor an end.
fn waits(mut stream: &UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn silent_and_slow_clients_delay_nobody_and_no_end() {
    let _alone = alone();
    let mut switch = start();
    let slow = Slow::connect(&switch, 3);
    // One client does not read the answer to its request, one is silent.
    let mut unresponsive = switch.connect();
    unresponsive
        .write_all(b"GET /v1/snapshot HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    let silent = switch.connect();
    switch.done(&["show", "ports"]);
    switch.signal("HUP");
    switch.until("SIGHUP is obeyed", || {
        let audit = switch.audit();
        audit.iter().any(|(what, _)| what == "reload")
    });
    assert_eq!(slow.held(), 3, "the others came after these clients");
    drop(silent);
    // No client keeps the switch from its end: it would take the 30 s of new ones.
    let new = Slow::connect(&switch, 3);
    switch.signal("TERM");
    let status = switch.ended(Duration::from_secs(20));
    assert!(status.success(), "{status}: {}", switch.log());
    drop((new, slow, unresponsive));
}

#[test]
fn clients_are_limited_and_a_change_has_a_reserved_place() {
    let _alone = alone();
    let mut switch = start();
    let set = ["set", "npcc.wan0.3.few", "900"];
    let sockets = switch.sockets();
    let slow = Slow::connect(&switch, 15);
    let why = switch.error_by("switch.sock", &["show", "ports"]);
    assert!(why.contains("the last place is kept for changes"), "{why}");
    switch.done(&set);
    // A client that is silent in the last place is dropped soon, so it may be gone when the change comes.
    let awaited = || "a client in the last place".to_owned();
    let last = wait::value(wait::LONG, awaited, || {
        let last = switch.connect();
        let output = switch.ask(&set);
        let why = String::from_utf8_lossy(&output.stderr);
        why.contains("16 others are being served").then_some(last)
    });
    switch.until("the last place is free again", || {
        switch.ask(&set).status.success()
    });
    assert!(
        switch
            .error_by("switch.sock", &["show", "ports"])
            .contains("kept"),
        "the others hold on"
    );
    drop((last, slow));
    switch.serves(0, sockets);
    // A silent client is dropped after 5 s.
    let silent: Vec<UnixStream> = (0..15).map(|_| switch.connect()).collect();
    let mut first = &silent[0];
    first.set_read_timeout(Some(wait::LONG)).unwrap();
    assert_eq!(first.read(&mut [0]).unwrap(), 0);
    switch.until("places are free again", || {
        switch.ask(&["show", "ports"]).status.success()
    });
    switch.stop();
}

/// Guards the log of changes: a name with a line's end in it made a line by itself, which could name another user and change.
#[test]
fn no_name_from_a_client_makes_a_line_of_the_log() {
    let _alone = alone();
    let mut switch = start();
    let port = "{\"name\":\"x\\nforged (uid 0): done\",\"up\":false}";
    let socket = switch.path("switch.sock");
    let (status, answer) = http::ask(&socket, "PATCH", "/v1/ports", port).unwrap();
    assert!(status == 404 && answer.contains("no port"), "{answer}");
    assert!(switch.audit()[0].0.contains("x\u{fffd}forged"));
    switch.stop();
    let log = switch.log();
    assert!(
        log.contains("port x\u{fffd}forged (uid 0): done down"),
        "{log}"
    );
    assert!(!log.lines().any(|line| line.starts_with("forged")), "{log}");
}

/// Guards against exhaustion of the read-only socket: one user held all its places, and 75 of 75 others were turned away.
#[test]
fn a_user_who_fills_the_read_only_socket_locks_nobody_else_out() {
    let _alone = alone();
    let mut switch = start();
    let path = switch.path("switch-ro.sock");
    let sockets = switch.sockets();
    let silent: Vec<UnixStream> = (0..16)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    // The others are cut off, as they do not read why they have no place.
    switch.serves(4, sockets);
    let why = switch.error_by("switch-ro.sock", &["show", "ports"]);
    assert!(why.contains("4 others of this user"), "{why}");
    switch.done(&["show", "ports"]);
    // Another user may use the socket and run the program beside it.
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(path.parent().unwrap(), 0o711);
    mode(&path, 0o666);
    let program = switch.path("program");
    std::fs::copy(env!("CARGO_BIN_EXE_npcc-switch"), &program).unwrap();
    let mut other = std::process::Command::new(&program);
    other.args(["show", "ports", "--socket"]).arg(&path);
    assert_success(&other.uid(65_534).gid(65_534).output().unwrap());
    drop(silent);
    switch.stop();
}

/// Guards against a blocking reload: a file that became a FIFO held the reload for ever, and every other change with it.
#[test]
fn a_reload_of_what_is_no_file_is_refused_at_once() {
    let _alone = alone();
    let mut switch = start();
    let path = switch.path("switch.yaml");
    std::fs::remove_file(&path).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(fifo.unwrap().success());
    // A command that waited for the FIFO would end with the client's patience of a minute, and another code.
    for args in [
        &["reload"][..],
        &["reload", "--dry-run"],
        &["show", "config", "--diff"],
    ] {
        let output = switch.ask(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let why = String::from_utf8(output.stderr).unwrap();
        assert!(why.contains("a FIFO and no regular file"), "{why}");
    }
    switch.done(&["set", "npcc.wan0.3.few", "900"]);
    let check = ["check", "-c", path.to_str().unwrap()];
    let check = switch.command(&check).output().unwrap();
    assert_eq!(check.status.code(), Some(2));
    switch.stop();
}

/// Guards changes against a reload that waits for its file, as on a network disk that does not answer.
#[test]
#[cfg(debug_assertions)]
fn a_reload_that_waits_for_its_file_holds_no_other_change() {
    let _alone = alone();
    let mut switch = with_fault("reload-reads");
    switch.until("no request is carried out", || switch.works() == 0);
    let reload = switch.connect();
    (&reload)
        .write_all(b"POST /v1/config/reload HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    switch.until("the reload is carried out", || switch.works() == 1);
    switch.done(&["set", "npcc.wan0.3.few", "900"]);
    switch.done(&["port", "dc0", "down"]);
    let why = switch.error_by("switch.sock", &["reload"]);
    assert!(why.contains("still reading"), "{why}");
    assert!(waits(&reload), "the others came after the reload");
    drop(reload);
    switch.stop();
}

#[test]
fn the_socket_for_reading_changes_nothing() {
    let _alone = alone();
    let mut switch = start();
    let mode = |name: &str| {
        let file = std::fs::metadata(switch.path(name)).unwrap();
        file.permissions().mode() & 0o007
    };
    assert_eq!((mode("switch.sock"), mode("switch-ro.sock")), (0, 0));
    let ports = switch.ask_by("switch-ro.sock", &["show", "ports", "--json"]);
    assert_success(&ports);
    // The same by the variable, and in the singular.
    let mut command = switch.command(&["show", "port", "--json"]);
    let output = command
        .env("NPCC_SOCKET", "switch-ro.sock")
        .output()
        .unwrap();
    assert_success(&output);
    for args in [
        &["set", "qos.priorities.3.weight", "7"][..],
        &["set", "npcc.wan0.3.few", "7"],
        &["set", "qos.priorities.3.ecn.kmin", "40KB"],
        &["unset", "--all"],
        &["clear", "counters"],
        &["clear", "watermarks"],
        &["reload"],
        &["reload", "--confirm", "1s"],
        &["commit"],
        &["rollback"],
        &["pair", "del", "10.0.1.3", "10.0.2.2", "0x11"],
        &["pair", "distrust", "edge-2"],
        &[
            "cnp", "send", "--to", "10.0.2.2", "--from", "10.0.1.3", "--qp", "17",
        ],
    ] {
        let why = switch.error_by("switch-ro.sock", args);
        assert!(why.contains("telemetry.socket"), "{args:?}: {why}");
    }
    assert_eq!(switch.audit(), []);
    switch.stop();
}

/// Ends of another box come by file and are counted, and the ends of this one come out by the socket for reading.
#[test]
fn reports_of_a_peer_are_taken_counted_and_forgotten() {
    let _alone = alone();
    let mut switch = start();
    let row = |from: &str, to: &str| {
        serde_json::json!({
            "kind": "end", "from": from, "to": to, "queue_pair": 24, "udp_port": 49_560,
            "transport": "rc", "first_seen": 1, "last_seen": 2, "packets": 3,
        })
    };
    let rows = [
        row("10.0.2.2", "10.0.1.3"),
        row("10.0.1.3", "10.0.2.2"),
        serde_json::json!({ "kind": "end" }),
    ];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(switch.path("ends.jsonl"), text).unwrap();
    let suggest = || {
        let outcome = switch.done(&["pair", "suggest", "--peer", "edge-2", "ends.jsonl"]);
        serde_json::from_str::<Value>(&outcome).unwrap()
    };
    let refused = serde_json::json!({ "malformed": 1, "not-behind-port": 1 });
    assert_eq!(
        suggest(),
        serde_json::json!({ "accepted": 1, "refused": refused })
    );
    let peer = |key: &str| switch.show("peers")["peers"][0][key].clone();
    switch.until("the end is held", || peer("held") == 1);
    assert_eq!(
        (peer("peer"), peer("distrusted")),
        ("edge-2".into(), false.into())
    );
    let peers = switch.show("peers");
    assert!(peers["routes_ready"].as_u64() > Some(0), "{peers}");
    assert_eq!(peers["pairs_ready"], Value::Null, "no flows");
    switch.done(&["pair", "distrust", "edge-2"]);
    switch.until("the end is forgotten", || peer("held") == 0);
    assert_eq!(suggest()["accepted"], 0);
    assert!(switch.done(&["show", "peers"]).contains("distrusted"));
    switch.done(&["pair", "trust", "edge-2"]);
    assert_eq!(suggest()["accepted"], 1);
    let ends = switch.ask_by("switch-ro.sock", &["show", "ends", "--json"]);
    assert_success(&ends);
    let ends = String::from_utf8(ends.stdout).unwrap();
    let lines: Vec<&str> = ends.lines().collect();
    let expected = [r#"{"kind":"begin"}"#, r#"{"kind":"complete","count":0}"#];
    assert_eq!(lines, expected);
    let made = switch.audit();
    let made: Vec<&str> = made.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(
        made,
        ["pair distrust edge-2", "pair trust edge-2"],
        "reports are not logged"
    );
    switch.stop();
}

#[test]
fn changes_are_logged_with_time_user_and_process() {
    let _alone = alone();
    let mut switch = start();
    // A login UID of 1234, where the system has login UIDs and lets them be set.
    let mut shell = std::process::Command::new("sh");
    let login = "echo 1234 > /proc/self/loginuid; cat /proc/self/loginuid > login; exec \"$@\"";
    let set = switch
        .lab
        .command(&["set", "npcc.wan0.3.few", "900", "--socket", "switch.sock"]);
    let set = shell
        .args(["-c", login, "sh"])
        .arg(set.get_program())
        .args(set.get_args());
    assert_success(&set.current_dir(switch.dir.path()).output().unwrap());
    let login = std::fs::read_to_string(switch.path("login")).unwrap_or_default();
    let login = login
        .trim()
        .parse::<u32>()
        .ok()
        .filter(|uid| *uid != u32::MAX);
    switch.error_by("switch.sock", &["set", "npcc.lan9.3.policy", "npcc"]);
    switch.done(&["pair", "add", "10.0.1.3", "10.0.2.2", "17", "17"]);
    switch.done(&["reload"]);
    let audit = switch.show("audit");
    let changes = audit["changes"].as_array().unwrap();
    let signalled = |index: usize, key: &str| changes[index][key].clone();
    assert_eq!(signalled(0, "what"), "set npcc.wan0.3.few 900");
    assert_eq!(signalled(0, "outcome"), "done");
    // The tests' user is whoever may start a switch; the author was another process.
    assert!(changes[0]["author"]["uid"].is_u64());
    assert!(changes[0]["author"]["pid"].as_u64() > Some(1));
    assert_eq!(changes[0]["author"]["login_uid"], Value::from(login));
    assert!(signalled(0, "time").as_str().unwrap().ends_with('Z'));
    assert!(
        signalled(1, "outcome")
            .as_str()
            .unwrap()
            .contains("no port")
    );
    assert_eq!(
        (signalled(2, "what"), signalled(2, "count")),
        ("pair add".into(), 1.into())
    );
    let log = switch.log();
    let line = log.lines().find(|line| line.contains("few 900")).unwrap();
    let pid = &changes[0]["author"]["pid"];
    assert!(
        login.is_none_or(|login| line.contains(&format!(", login uid {login}, pid")))
            && line.contains("T")
            && line.contains(&format!("pid {pid})")),
        "{line}"
    );
    assert!(
        log.contains("still set      ports.wan0.npcc.parameters.3"),
        "{log}"
    );
    assert!(
        switch
            .done(&["show", "log"])
            .contains("set npcc.wan0.3.few 900")
    );
    // The old value as well.
    let audit = switch.show("audit");
    let changes = audit["changes"].as_array().unwrap();
    let set = changes
        .iter()
        .find(|one| one["what"] == "set npcc.wan0.3.few 900");
    let key = &set.unwrap()["keys"][0];
    assert!(
        key["key"] == "ports.wan0.npcc.parameters.3" && key["new"].to_string().contains("900"),
        "{key}"
    );
    switch.stop();
}

#[test]
fn a_reload_that_is_not_confirmed_is_rolled_back() {
    let _alone = alone();
    let mut switch = start();
    switch.done(&["set", "npcc.wan0.3.few", "900"]);
    switch.done(&["set", "qos.priorities.3.weight", "40"]);
    let before = [40, 3_000_000, 900];
    assert_eq!(switch.holds(), before);
    switch.config(&changed());
    // The client exits as soon as it has its answer.
    let said = switch.done(&["reload", "--confirm", "2s"]);
    assert!(said.contains("rolled back in 2 s"), "{said}");
    assert_eq!(switch.holds(), [20, 9_000_000, 900]);
    let left = &switch.show("audit")["pending"]["seconds_left"];
    assert!((1..=2).contains(&left.as_u64().unwrap()));
    let why = switch.error_by("switch.sock", &["reload"]);
    assert!(why.contains("waits for its commit"), "{why}");
    switch.done(&["set", "npcc.wan0.3.few", "700"]);
    switch.until("it is rolled back", || switch.holds() == before);
    assert!(switch.show("audit")["pending"].is_null());
    let last = switch.audit().pop().unwrap();
    assert!(
        last.0 == "rollback" && last.1.starts_with("done"),
        "{last:?}"
    );

    // Rolled back at once.
    switch.done(&["reload", "--confirm", "60s"]);
    let undone = switch.done(&["rollback"]);
    assert!(undone.contains("npcc.recovery: 9ms -> 3ms"), "{undone}");
    assert_eq!(switch.holds(), before);

    // Committed for good.
    switch.done(&["reload", "--confirm", "1s"]);
    switch.done(&["commit"]);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(switch.holds(), [20, 9_000_000, 900]);
    for command in ["commit", "rollback"] {
        let why = switch.error_by("switch.sock", &[command]);
        assert!(why.contains("no reload waits"), "{why}");
    }
    switch.stop();
}

#[test]
#[cfg(debug_assertions)]
fn a_reload_that_fails_half_way_leaves_the_old_settings() {
    let _alone = alone();
    let mut switch = with_fault("reload");
    switch.done(&["set", "npcc.wan0.3.few", "900"]);
    let before = switch.holds();
    switch.config(&changed());
    let why = switch.error_by("switch.sock", &["reload", "--confirm", "60s"]);
    assert!(why.contains("nothing was changed"), "{why}");
    assert_eq!(switch.holds(), before);
    assert!(switch.show("audit")["pending"].is_null());
    // The control core takes commands again.
    switch.done(&["reload"]);
    assert_eq!(switch.holds(), [20, 9_000_000, 900]);
    switch.stop();
}

#[test]
#[cfg(debug_assertions)]
fn a_panic_of_any_thread_stops_all_in_order_and_exits_1() {
    let _alone = alone();
    for (place, said) in [
        ("control", "a panic: this is a defect"),
        ("manage", "the management thread panicked"),
        ("worker", "a worker panicked"),
        ("launch", "asked for at `launch`"),
    ] {
        let mut switch = starting(place);
        let status = switch.ended(Duration::from_secs(30));
        let log = switch.log();
        assert_eq!(status.code(), Some(1), "{place}: {status}\n{log}");
        assert!(log.contains(said), "{place}: {log}");
        for name in ["switch.sock", "switch-ro.sock"] {
            assert!(!switch.path(name).exists(), "{place}: {name} is left");
        }
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_request_that_panics_is_answered_and_the_switch_goes_on() {
    let _alone = alone();
    let mut switch = with_fault("request");
    let why = switch.error_by("switch.sock", &["clear", "counters"]);
    assert!(why.contains("the request panicked"), "{why}");
    switch.done(&["show", "ports"]);
    let why = switch.error_by("switch.sock", &["clear", "counters"]);
    assert!(why.contains("the request panicked"), "{why}");
    switch.stop();
}

#[test]
#[cfg(debug_assertions)]
fn a_second_signal_ends_at_once() {
    let _alone = alone();
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let mut switch = with_fault("stop");
        switch.signal("TERM");
        switch.until("the stop hangs", || switch.log().contains("`stop` hangs"));
        switch.signal(signal);
        // The stop hangs for longer.
        let status = switch.ended(wait::LONG);
        assert_eq!(status.code(), Some(code), "{signal}");
    }
}
