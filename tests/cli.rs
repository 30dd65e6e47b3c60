//! Command line as an operator meets it: every mistake with its place, exit codes, sockets, signals.

use std::process::Stdio;

use crate::common::switch::Switch;
use crate::common::{Lab, alone, assert_distribution, assert_success, switch};
use npcc_testkit::http;

const NULL_PORTS: &str = "version: 1
dpdk: { eal_args: [\"--no-pci\", \"--in-memory\"] }
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"net_null1,no-rx=1\", addresses: [10.0.2.1/24] }
buffer: { pool: 4MB }
qos: { profile: lossy }
";

/// Runs the switch for a tenth of a second.
fn short_run(lab: &Lab) -> std::process::Output {
    let args = ["run", "-c", "switch.yaml", "--for", "100ms"];
    lab.command(&args).output().unwrap()
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_bad_file_prints_every_mistake_with_its_place_and_exits_2() {
    let lab = Lab::with(
        "version: 1
ports:
  - { name: dc0, device: net_null0, mtu: 99999 }
  - { name: dc0, device: net_null1, speeed: 10G }
routes:
  - { prefix: 10.0.2.1/24, via: 10.9.9.9 }
npcc: { shallow: 100KB, deep: 20KB }
",
    );
    for command in ["run", "check"] {
        let output = lab
            .command(&[command, "-c", "switch.yaml"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        for place in [
            "switch.yaml:3:",
            "switch.yaml:4:",
            "switch.yaml:6:",
            "switch.yaml:7:",
        ] {
            assert!(text.contains(place), "{place} in\n{text}");
        }
        for part in ["speeed", "speed", "10.9.9.9", "hint:"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    }
}

#[test]
fn bad_usage_exits_2() {
    for args in [
        &["run"][..],
        &["frobnicate"],
        &["show", "nothing"],
        &["run", "-c", "x.yaml", "--for", "soon"],
        &["run", "-c", "x.yaml", "--for", "0s"],
    ] {
        let output = switch().args(args).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
    }
    let missing = switch()
        .args(["run", "-c", "does-not-exist.yaml"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("does-not-exist.yaml"));
}

#[test]
fn what_is_missing_on_the_machine_is_named_and_exits_1() {
    let _alone = alone();
    type Case = (&'static str, &'static str, &'static [&'static str]);
    let cases: &[Case] = &[
        (
            "net_null0",
            "net_nosuch0",
            &["port dc0", "net_nosuch0", "librte-net-nosuch"],
        ),
        (
            "net_null0",
            "\"net_pcap0,rx_pcap=absent.pcap\"",
            &["port dc0", "absent.pcap", "no such file"],
        ),
        (
            "net_null0",
            "\"net_af_packet0,iface=nosuchif,blocksz=73728,framesz=9216,framecnt=512\"",
            &["port dc0", "nosuchif"],
        ),
        (
            "net_null0",
            "\"0000:7f:1f.7\"",
            &["port dc0", "0000:7f:1f.7"],
        ),
        (
            "buffer: { pool: 4MB }",
            "buffer: { pool: 60GB }",
            &["buffer.pool"],
        ),
    ];
    for (from, to, parts) in cases {
        let lab = Lab::with(&NULL_PORTS.replace(from, to));
        let output = short_run(&lab);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{to}: {text}");
        for part in *parts {
            assert!(text.contains(part), "{to}: {part} in\n{text}");
        }
    }
}

#[test]
fn required_hugepages_that_are_not_there_are_named_with_the_command() {
    let _alone = alone();
    let lab = Lab::new();
    let text = NULL_PORTS
        .replace("\"--in-memory\"]", "\"--in-memory\"], hugepages: on")
        .replace("pool: 4MB", "pool: 8GB");
    lab.config(&text);
    let output = lab.command(&["run", "-c", "switch.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("/proc/sys/vm/nr_hugepages"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_signal_stops_gracefully_and_prints_totals() {
    let _alone = alone();
    for signal in ["TERM", "INT"] {
        let lab = Lab::with(NULL_PORTS);
        let child = lab.start(&[]);
        lab.answers();
        // Those that a daemon is sent by mistake change nothing.
        for mistake in [
            "USR1", "USR2", "ALRM", "VTALRM", "PROF", "IO", "PWR", "XFSZ",
        ] {
            child.signal(mistake);
            lab.answers();
        }
        child.signal(signal);
        let output = child.wait_with_output().unwrap();
        assert_success(&output);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("every frame accounted for"), "{text}");
        assert!(
            !lab.path("switch.sock").exists(),
            "the socket is taken away"
        );
    }
}

#[test]
fn a_living_switch_keeps_its_socket_and_a_dead_ones_is_replaced() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let mut first = lab.start(&[]);
    lab.answers();
    let second = short_run(&lab);
    assert_eq!(second.status.code(), Some(1));
    assert!(
        stderr(&second).contains("another switch listens on"),
        "{}",
        stderr(&second)
    );
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(
        lab.path("switch.sock").exists(),
        "a killed switch leaves its socket"
    );
    assert_success(&short_run(&lab));
}

#[test]
fn a_file_where_the_socket_should_be_is_left_alone() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    std::fs::write(lab.path("switch.sock"), "precious").unwrap();
    let output = short_run(&lab);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is no socket"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        std::fs::read_to_string(lab.path("switch.sock")).unwrap(),
        "precious"
    );
}

/// Law: a device has one switch, whose files somebody may have removed meanwhile.
#[test]
fn a_second_switch_on_the_same_device_is_refused_with_the_process_of_the_first() {
    let _alone = alone();
    let tap = NULL_PORTS.replace("net_null0", "'net_tap0,iface=npcc-lock0', mtu: 1500");
    let mut first = Switch::start(Lab::with(&tap));
    std::fs::remove_file(first.path("switch.sock")).unwrap();
    let other = tap.replace("net_tap0", "net_tap7");
    let second = short_run(&Lab::with(&other));
    let said = stderr(&second);
    assert_eq!(second.status.code(), Some(1), "{said}");
    let process = format!(
        "npcc-lock0 belongs to the switch that runs as process {}",
        first.child.id()
    );
    assert!(
        said.contains("port dc0") && said.contains(&process),
        "{said}"
    );
    first.signal("TERM");
    assert!(first.ended(npcc_testkit::wait::LONG).success());
    assert_success(&short_run(&Lab::with(&other)));
}

/// Law: small limits and odd paths are messages that name what to do, and no abort.
#[test]
fn limits_and_paths_that_do_not_do_are_named() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let run = lab.command(&["run", "-c", "switch.yaml", "--for", "100ms"]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 40; exec \"$@\"", "sh"]);
    limited.arg(run.get_program()).args(run.get_args());
    limited.current_dir(run.get_current_dir().unwrap());
    let output = limited.stdin(Stdio::null()).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("40 files may be open and 160 are needed"),
        "{said}"
    );

    std::os::unix::fs::symlink("nowhere", lab.path("switch.sock")).unwrap();
    let output = short_run(&lab);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("is a symbolic link to a file that does not exist"),
        "{said}"
    );

    let lab =
        Lab::with(&NULL_PORTS.replace("buffer:", "cores: { control: 700, workers: [1] }\nbuffer:"));
    let output = short_run(&lab);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("core 700 is not online"), "{said}");
}

#[test]
fn show_prints_tables_and_json_of_a_running_switch() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let mut switch = Switch::start(lab);
    for (what, part) in [
        ("hosts", "CNP SENT"),
        ("log", ""),
        ("ports", "dc0"),
        ("queues", "no queue has held a frame"),
        ("flows", "SENDER QP"),
        ("npcc", "CNPs sent"),
    ] {
        let shown = switch.done(&["show", what]);
        assert!(shown.contains(part), "show {what}");
        assert!(!switch.show(what).is_null(), "show {what} --json");
    }
    switch.stop();
    let nobody = switch.ask(&["show", "ports"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(
        stderr(&nobody).contains("no switch listens on"),
        "{}",
        stderr(&nobody)
    );
}

#[test]
fn nonsense_on_the_socket_gets_an_answer_and_harms_nothing() {
    let _alone = alone();
    let lab = Lab::with(NULL_PORTS);
    let mut switch = Switch::start(lab);
    let socket = switch.path("switch.sock");
    for nonsense in ["\u{fffd}\u{0}\n\r\n", "GET\r\n\r\n", "\"snapshot\"\n"] {
        let (status, _) = http::exchange(&socket, nonsense.as_bytes()).unwrap();
        assert_eq!(status, 400, "{nonsense:?}");
    }
    for (method, target, body, expected, part) in [
        ("GET", "/v1/marks", "", 404, "no such path"),
        ("PUT", "/v1/config", "{}", 405, "no such method"),
        ("GET", "/v1/flows?tpo=5", "", 400, "no `tpo`"),
        ("PATCH", "/v1/config", "{", 400, "EOF"),
        (
            "PATCH",
            "/v1/config",
            "{\"key\":\"npcc.action\"}",
            400,
            "missing field `value`",
        ),
        ("PATCH", "/v1/config", "", 411, "no body"),
        ("POST", "/v1/config/commit", "", 409, "no reload waits"),
        (
            "PATCH",
            "/v1/ports",
            "{\"name\":\"lan9\",\"up\":true}",
            404,
            "no port `lan9`",
        ),
        (
            "PATCH",
            "/v1/config",
            "{\"key\":\"npcc.action\",\"value\":\"no\"}",
            422,
            "npcc.action",
        ),
    ] {
        let (status, answer) = http::ask(&socket, method, target, body).unwrap();
        assert_eq!(status, expected, "{method} {target} {body}: {answer}");
        let problem: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert!(
            problem["error"].as_str().unwrap().contains(part),
            "{answer}"
        );
    }
    // A client that sends nothing and disconnects.
    drop(std::os::unix::net::UnixStream::connect(&socket).unwrap());
    switch.answers();
    switch.stop();
}

#[test]
fn schema_is_json_and_check_prints_what_is_needed() {
    let output = switch().arg("schema").output().unwrap();
    assert_success(&output);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(schema["properties"]["ports"].is_object());
    let lab = Lab::with(NULL_PORTS);
    let output = lab
        .command(&["check", "-c", "switch.yaml"])
        .output()
        .unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "buffers",
        "hugepages",
        "profile lossy, trust dscp\n  DSCP 26 to 3, 48 to 6, the rest to 0\n  PCP 3 to 3, 6 to 6, the rest to 0",
        "fine",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    // A reader that goes away is not a failure.
    let mut child = switch()
        .arg("schema")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn bench_refuses_what_it_cannot_measure() {
    for (args, part) in [
        (&["--frames", "57"][..], "58 to 9100"),
        (&["--frames", "1083"], "steps of 4"),
        (&["--frames", "big"], "no frame length"),
        (&["--flows", "0"], "1 to 262144"),
        (&["--flows", "1000001", "--stamped"], "1 to 1000000"),
        (&["--seconds", "0s"], "above 0"),
        (&["--rounds", "0"], "1 to 1000"),
        (&["--worker-core", "4000"], "core 4000"),
        (&["--worker-core", "0"], "core of its own"),
        (&["--routes", "absent.gz"], "absent.gz"),
    ] {
        let output = switch().arg("bench").args(args).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {part} in\n{text}");
    }
}

#[test]
fn bench_prints_a_line_of_figures_for_each_length() {
    let _alone = alone();
    let lab = Lab::new();
    std::fs::write(
        lab.path("table.txt"),
        "10.7.0.0/16\n10.8.0.0/24\n2001:db8::/32\n",
    )
    .unwrap();
    let args = ["--frames", "62,imix", "--flows", "16", "--seconds", "200ms"];
    let mut command = lab.command(&["bench", "--json", "--routes", "table.txt"]);
    let output = command.args(args).output().unwrap();
    assert_success(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(
        (&lines[0]["frame"], &lines[1]["frame"]),
        (&"62".into(), &"imix".into())
    );
    for line in &lines {
        assert!(
            line["frames"].as_u64() > Some(0) && line["ns_per_frame"].as_f64() > Some(1.0),
            "{line}"
        );
        // Frames beyond 400G at the sink's port may be dropped; none lacks a route or a neighbour.
        let drops = line["drops"].as_object().unwrap();
        assert!(
            !drops.contains_key("no_route") && !drops.contains_key("no_neighbor"),
            "{line}"
        );
        assert_eq!(line["routes"], 3);
    }
}

fn lines(output: &std::process::Output) -> Vec<serde_json::Value> {
    assert_success(output);
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
    parsed.collect()
}

#[test]
fn bench_measures_how_soon_cnps_answer_a_crossing() {
    let _alone = alone();
    // Beside other work few crossings are seen in time to be answered.
    let args = ["--json", "--reaction", "--crossings", "1000"];
    let output = switch().arg("bench").args(args).output().unwrap();
    let lines = lines(&output);
    let crossed: Vec<_> = lines.iter().map(|line| &line["crossed"]).collect();
    assert_eq!(crossed, ["hard", "hard", "shallow", "shallow"]);
    for (line, requested) in lines.iter().zip([false, true, false, true]) {
        assert_distribution(&line["reaction_us"]);
        assert_eq!(line["questions"].as_u64() > Some(0), requested, "{line}");
    }
}

/// Regression: bash completed the first word and nothing below it.
#[test]
fn bash_completes_every_word() {
    let lab = Lab::new();
    assert_success(&lab.command(&["generate", "made"]).output().unwrap());
    // As bash calls what the script registers: the program, the word to complete, and the one before.
    let script = "source made/npcc-switch.bash
        COMP_WORDS=(npcc-switch \"$@\") COMP_CWORD=$#
        [[ $(complete -p npcc-switch) =~ -F\\ ([^\\ ]+) ]]
        ${BASH_REMATCH[1]} npcc-switch \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"
        echo \"${COMPREPLY[@]}\"";
    let completed = |words: &[&str]| {
        let mut bash = std::process::Command::new("bash");
        bash.current_dir(lab.dir.path())
            .args(["-ec", script, "bash"]);
        let output = bash.args(words).output().unwrap();
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for (words, found) in [
        (&["sho"][..], "show"),
        (&["show", "ro"], "routes"),
        (&["show", "--out"], "--outcome"),
        (&["port", "wan0", "do"], "down"),
        (&["pair", "dis"], "distrust"),
        (&["pair", "suggest", "--pe"], "--peer"),
        (&["show", "routes", "--di"], "--diff"),
    ] {
        assert_eq!(completed(words), found, "{words:?}");
    }
    let options = completed(&["show", "--"]);
    assert!(
        options.split(' ').any(|option| option == "--json"),
        "{options}"
    );
}
