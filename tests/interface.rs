//! Stable interfaces that scripts and dashboards rely on: the command line, the schema, exit codes, and the keys of all JSON.
//!
//! Each is a file in tests/snapshots. Where a difference is intended, rewrite them with
//! `UPDATE_SNAPSHOTS=1 cargo nextest run -p npcc-switch --test process interface::`, read the difference, and describe it in CHANGELOG.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use npcc_api::lossless::Group;
use npcc_api::model::{Port, Snapshot};

use crate::common::busy::{BUSY, busy};
use crate::common::switch::Switch;
use crate::common::{Lab, NULL_PORTS, alone, assert_distribution, assert_success, root, switch};
use npcc_appliance::manage::tables;
use npcc_testkit::{http, wait};
use serde_json::Value;

fn file(name: &str) -> PathBuf {
    root().join("tests/snapshots").join(name)
}

fn updating() -> bool {
    std::env::var_os("UPDATE_SNAPSHOTS").is_some()
}

/// Asserts that the text equals the snapshot file, or updates the file.
fn check(name: &str, new: &str) {
    if updating() {
        std::fs::write(file(name), new).unwrap();
    }
    let old = std::fs::read_to_string(file(name)).unwrap_or_default();
    let lines = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
    let (old_lines, new_lines) = (lines(&old), lines(new));
    let mut difference = String::new();
    for gone in old_lines.difference(&new_lines) {
        let _ = writeln!(difference, "- {gone}");
    }
    for added in new_lines.difference(&old_lines) {
        let _ = writeln!(difference, "+ {added}");
    }
    assert!(
        old == new,
        "tests/snapshots/{name} differs (lines moved, if none is listed):\n{difference}"
    );
}

/// Objects whose keys are names of things (ports, reasons, stages), not of fields.
const MAPS: [&str; 12] = [
    "cnps_suppressed",
    "cycles",
    "decisions",
    "drops",
    "dscp_to_priority",
    "ecn",
    "paired",
    "pcp_to_priority",
    "reasons",
    "suppressed",
    "unmeasured",
    "wred",
];

/// Lists of priorities that are sometimes empty.
const PRIORITIES: [&str; 5] = ["asserted", "honour", "paused", "send", "storm"];

/// Paths of a JSON value, and the types seen there.
type Keys = BTreeMap<String, BTreeSet<String>>;

fn collect(value: &Value, path: &str, keys: &mut Keys) {
    let name = path.rsplit('.').next().unwrap_or_default();
    let mut seen = |kind: &str| {
        let at = if path.is_empty() { "." } else { path };
        keys.entry(at.to_owned())
            .or_default()
            .insert(kind.to_owned());
    };
    match value {
        Value::Null => seen("null"),
        Value::Bool(_) => seen("bool"),
        Value::String(_) => seen("string"),
        Value::Number(number) if number.is_f64() => seen("float"),
        Value::Number(_) => seen("integer"),
        Value::Array(all) if PRIORITIES.contains(&name) => {
            seen("priorities");
            assert!(
                all.iter().all(|one| one.as_u64() < Some(8)),
                "{path}: {value}"
            );
        }
        Value::Array(all) => {
            seen("array");
            for one in all {
                collect(one, &format!("{path}[]"), keys);
            }
        }
        // `conservation.drops` is a single count.
        Value::Object(all) if MAPS.contains(&name) && !path.starts_with("conservation") => {
            seen("map");
            for one in all.values() {
                collect(one, &format!("{path}{{}}"), keys);
            }
        }
        Value::Object(all) => {
            for (key, one) in all {
                let dot = if path.is_empty() { "" } else { "." };
                collect(one, &format!("{path}{dot}{key}"), keys);
            }
        }
    }
}

fn write(keys: &Keys) -> String {
    let mut text = String::new();
    for (path, kinds) in keys {
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let _ = writeln!(text, "{path} {}", kinds.join("|"));
    }
    text
}

fn read(text: &str) -> Keys {
    let line = |line: &str| {
        let (path, kinds) = line.split_once(' ').unwrap();
        (
            path.to_owned(),
            kinds.split('|').map(str::to_owned).collect(),
        )
    };
    text.lines().map(line).collect()
}

/// Asserts that the keys equal the snapshot file's. What is in a map or a list may be missing, as may an optional value; no key may
/// appear that the file does not have.
fn check_keys(name: &str, values: &[Value]) {
    let mut new = Keys::new();
    for value in values {
        collect(value, "", &mut new);
    }
    let old = read(&std::fs::read_to_string(file(name)).unwrap_or_default());
    let null = |kinds: &BTreeSet<String>| kinds.iter().all(|kind| kind == "null");
    if updating() {
        // A value that is absent now keeps the type it had, and an optional one stays optional.
        for (path, kinds) in &mut new {
            let absent = null(kinds);
            let known = old.get(path).into_iter().flatten();
            kinds.extend(known.filter(|kind| absent || *kind == "null").cloned());
        }
        std::fs::write(file(name), write(&new)).unwrap();
        return;
    }
    let mut difference = String::new();
    for (path, kinds) in &old {
        if !new.contains_key(path) && !path.contains("{}") {
            let _ = writeln!(difference, "- {path} {kinds:?}");
        }
    }
    for (path, kinds) in &new {
        let known = old.get(path);
        let fits = known.is_some_and(|known| {
            null(known)
                || kinds
                    .iter()
                    .all(|kind| known.contains(kind) || kind == "null")
        });
        if !fits {
            let _ = writeln!(difference, "+ {path} {kinds:?}, was {known:?}");
        }
    }
    assert!(
        difference.is_empty(),
        "tests/snapshots/{name} differs:\n{difference}"
    );
}

/// Appends the help of a command and of all its subcommands.
fn help(path: &[&str], text: &mut String) {
    let output = switch().args(path).arg("--help").output().unwrap();
    assert_success(&output);
    let help_text = String::from_utf8(output.stdout).unwrap();
    let _ = writeln!(text, "$ npcc-switch {} --help", path.join(" "));
    let _ = writeln!(text, "{help_text}");
    let commands = help_text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help");
    for command in commands {
        help(&[path, &[command]].concat(), text);
    }
}

#[test]
fn the_command_line() {
    let mut text = String::new();
    help(&[], &mut text);
    check("help.txt", &text);
}

#[test]
fn the_schema_of_the_configuration() {
    let output = switch().arg("schema").output().unwrap();
    assert_success(&output);
    check("schema.json", &String::from_utf8(output.stdout).unwrap());
}

/// Command lines whose exit codes are fixed: 0 success, 1 runtime failure, 2 bad usage or configuration.
const EXITS: &[&str] = &[
    "",
    "--help",
    "--version",
    "frobnicate",
    "run",
    "run -c absent.yaml",
    "run -c bad.yaml",
    "run -c switch.yaml --for soon",
    "run -c switch.yaml --for 100ms",
    "run -c switch.yaml --for 100ms --stats-json absent/stats.json",
    "run -c missing-device.yaml --for 100ms",
    "check",
    "check -c absent.yaml",
    "check -c bad.yaml",
    "check -c switch.yaml",
    "schema",
    "doctor absent.yaml",
    "doctor bad.yaml",
    "doctor --frobnicate",
    "techsupport --frobnicate",
    "techsupport -o absent/bundle.tar.gz",
    "generate",
    "show",
    "show nothing",
    "show ports",
    "show ports --socket absent.sock",
    "show port --socket absent.sock",
    "show qo --socket absent.sock",
    "top --socket absent.sock",
    "top --sort",
    "clear nothing",
    "clear counters --socket absent.sock",
    "set ports.dc0.speed 1G --socket absent.sock",
    "set qos.priorities.3.weight 101 --socket absent.sock",
    "set qos.priorities.3.weight 10 --socket absent.sock",
    "set npcc.wan0.3.policy npcc --socket absent.sock",
    "unset --socket absent.sock",
    "unset --all --socket absent.sock",
    "unset npcc.action --all --socket absent.sock",
    "show config --socket absent.sock",
    "show config --json --socket absent.sock",
    "reload --socket absent.sock",
    "reload --dry-run --exit-code --socket absent.sock",
    "reload --dry-run --confirm 60s --socket absent.sock",
    "reload --confirm soon --socket absent.sock",
    "reload --confirm 60s --socket absent.sock",
    "commit --socket absent.sock",
    "rollback --socket absent.sock",
    "pair",
    "pair add 10.0.1.3 10.0.2.2 0x11 --socket absent.sock",
    "pair add 10.0.1.3 10.0.2.2 0x11 0x12 --socket absent.sock",
    "pair del 10.0.1.3 10.0.2.2 0x11 --socket absent.sock",
    "cnp send --to 10.0.1.3 --from 10.0.2.2 --socket absent.sock",
    "cnp send --to 10.0.1.3 --from 10.0.2.2 --qp 0x18 --socket absent.sock",
    "cnp send --to 10.0.1.3 --from 10.0.2.2 --qp 0x18 --count 0 --socket absent.sock",
    "sim",
    "sim absent.yaml",
    "sim bad.yaml",
    "bench --frames 57",
    "bench --routes absent.gz",
    "gen-pcap",
    "gen-pcap absent/out.pcap",
    "gen-pcap --frobnicate out.pcap",
];

#[test]
fn exit_codes() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let write = |name: &str, text: &str| std::fs::write(lab.path(name), text).unwrap();
    write("bad.yaml", "version: 1\nports: { dc0: [ }\n");
    write(
        "missing-device.yaml",
        &format!(
            "{}telemetry: {{ socket: {} }}\n",
            NULL_PORTS.replace("net_null0", "net_nosuch0"),
            lab.path("other.sock").display()
        ),
    );
    let mut text = String::new();
    for line in EXITS {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = lab.command(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked"), "{line}: {said}");
        let code = output.status.code().unwrap();
        assert!(code == 0 || !said.is_empty(), "{line}: {code}");
        let _ = writeln!(text, "{code} npcc-switch {line}");
    }
    check("exit-codes.txt", &text);
}

#[test]
fn keys_of_the_json() {
    let _alone = alone();
    let mut switch = Switch::start(busy());
    // A client gives up after 5 s, which a busy machine may need for an answer.
    let show = |what: &str| {
        let shown = || Some(switch.show(what)).filter(|shown| !shown.is_null());
        wait::value(wait::LONG, || format!("show {what}"), shown)
    };
    switch.done(&["pair", "add", "10.0.1.3", "10.0.2.2", "0x11", "0x31"]);
    // A row that is refused makes the peer known, too.
    std::fs::write(switch.path("ends.jsonl"), r#"{"kind":"end"}"#).unwrap();
    switch.done(&["pair", "suggest", "--peer", "edge-2", "ends.jsonl"]);
    switch.done(&["pair", "distrust", "edge-2"]);
    wait::until("a CNP is sent", wait::LONG, || {
        show("log").as_array().is_some_and(|log| !log.is_empty())
    });
    wait::until("a host is known", wait::LONG, || {
        show("hosts")
            .as_array()
            .is_some_and(|hosts| !hosts.is_empty())
    });
    wait::until("a storm is found", wait::LONG, || {
        show("pfc")[1]["flow"]["priorities"][4]["storms"].as_u64() > Some(0)
    });
    // Several tables print the ports.
    let row = |rows: &Value| -> Option<BTreeSet<String>> {
        Some(rows[0].as_object()?.keys().cloned().collect())
    };
    let ports = row(&show("ports"));
    assert!(ports.is_some());
    for table in tables::ALL {
        let shown = show(table.name);
        let of = match row(&shown) == ports {
            true => "ports",
            false => table.name,
        };
        check_keys(&format!("show-{of}.txt"), &[shown]);
    }
    // One change is applied, one needs a restart.
    switch.config(
        &BUSY
            .replace("recovery: 3ms", "recovery: 4ms")
            .replace("tick: 2ms", "tick: 3ms"),
    );
    switch.done(&["set", "npcc.wan0.3.few", "900"]);
    let reloaded = switch.done(&["reload", "--json"]);
    check_keys("reload.txt", &[serde_json::from_str(&reloaded).unwrap()]);

    switch.stop();
    let stats = std::fs::read_to_string(switch.path("stats.json")).unwrap();
    let mut stats: Value = serde_json::from_str(&stats).unwrap();
    assert!(!stats["events"].as_array().unwrap().is_empty());
    // A table that is printed as part of the totals has its keys in its own snapshot.
    for of in ["ports", "workers", "qos", "npcc", "punt"] {
        let mut part = stats.as_object_mut().unwrap().remove(of).unwrap();
        // The totals have the version once, at the top.
        if let Some(part) = part.as_object_mut() {
            part.insert("version".to_owned(), stats["version"].clone());
        }
        check_keys(&format!("show-{of}.txt"), &[part]);
    }
    check_keys("stats.txt", &[stats]);
}

#[test]
fn bench_measures_latency_at_shares_of_the_capacity_with_these_keys() {
    let _alone = alone();
    let args = ["--latency", "--frames", "62", "--seconds", "200ms"];
    let output = switch().args(["bench", "--json"]).args(args).output();
    let output = output.unwrap();
    assert_success(&output);
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    check_keys("bench.txt", &lines);
    let loads: Vec<_> = lines.iter().map(|line| line["load"].as_u64()).collect();
    assert_eq!(loads, [None, Some(10), Some(50), Some(90)]);
    for line in &lines[1..] {
        assert_distribution(&line["latency_us"]);
    }
    let mpps = |line: usize| lines[line]["mpps"].as_f64().unwrap();
    assert!(mpps(1) < mpps(3), "{lines:?}");
}

/// Answers requests, until the test ends, as a switch that lost frames of a lossless priority.
fn lossy(socket: &Path) {
    let listener = UnixListener::bind(socket).unwrap();
    let mut snapshot = Snapshot::default();
    let mut port = Port::default();
    port.counts.lossless_lost = 7;
    port.groups = vec![Group {
        lossless: true,
        ..Group::default()
    }];
    snapshot.ports = vec![port];
    let reply = serde_json::to_string(&snapshot).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            let request = http::read(&client).unwrap();
            assert_eq!(request.path, "/v1/snapshot");
            http::write(&client, 200, &reply).unwrap();
        }
    });
}

#[test]
fn colour_is_for_terminals_and_obeys_no_color() {
    let lab = Lab::new();
    let socket = lab.path("lossy.sock");
    lossy(&socket);
    let show = |variables: &[(&str, &str)]| {
        let mut command = switch();
        command.args(["show", "buffer", "--socket", socket.to_str().unwrap()]);
        command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    let forced = show(&[("CLICOLOR_FORCE", "1")]);
    assert!(forced.contains("\x1b[31m7\x1b[0m"), "{forced:?}");
    let piped = show(&[]);
    assert!(
        piped.contains("LOSSLESS LOST") && !piped.contains('\x1b'),
        "{piped:?}"
    );
    assert_eq!(piped, forced.replace("\x1b[31m", "").replace("\x1b[0m", ""));
    // `script` gives the command a terminal.
    let on_terminal = |variable: &str| {
        let command = format!(
            "env -u CLICOLOR_FORCE {variable} {} show buffer --socket {}",
            env!("CARGO_BIN_EXE_npcc-switch"),
            socket.display()
        );
        let script = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output();
        String::from_utf8(script.unwrap().stdout).unwrap()
    };
    assert!(on_terminal("-u NO_COLOR").contains("\x1b[31m7\x1b[0m"));
    let plain = on_terminal("NO_COLOR=1");
    assert!(
        plain.contains("LOSSLESS LOST") && !plain.contains('\x1b'),
        "{plain:?}"
    );
}
