//! Prometheus metrics: lint, names in the documents, the dashboard and the alerts against a real scrape, and clients that are not
//! scrapers.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use crate::common::http::{Watched, get};
use crate::common::{alone, assert_success, root};
use npcc_testkit::wait;
use serde_json::Value;

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap()
}

/// Runs promtool in `contrib/prometheus`, with this standard input.
fn promtool(args: &[&str], input: &str) -> Output {
    let child = Command::new("promtool")
        .args(args)
        .current_dir(root().join("contrib/prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap_or_else(|error| {
        panic!("promtool does not run ({error}): scripts/test installs it")
    });
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

/// Returns the names of the families of a scrape in the classic text format.
fn families(scrape: &str) -> BTreeSet<String> {
    let types = scrape
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

/// Returns the names of metrics in queries; a histogram's series are named by the histogram.
fn named(text: &str) -> BTreeSet<String> {
    let word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !word(letter));
    let names = words.filter(|name| name.starts_with("npcc_"));
    names
        .map(|name| name.strip_suffix("_bucket").unwrap_or(name).to_owned())
        .collect()
}

/// Collects the text values of a key at any depth.
fn values(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| values(one, key, found)),
        Value::Object(all) => {
            for (name, one) in all {
                if name == key
                    && let Some(text) = one.as_str()
                {
                    found.push(text.to_owned());
                }
                values(one, key, found);
            }
        }
        _ => {}
    }
}

/// Returns the first cells, without their backticks, of the tables with this header.
fn first_column(text: &str, header: &str) -> BTreeSet<String> {
    let mut listed = BTreeSet::new();
    for table in text.split(header).skip(1) {
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let names = rows.filter_map(|row| row.split('`').nth(1));
        assert!(
            names.map(str::to_owned).all(|name| listed.insert(name)),
            "listed twice"
        );
    }
    listed
}

#[test]
fn a_scrape_is_clean_and_its_names_are_those_of_documents_dashboard_and_alerts() {
    let _alone = alone();
    let watched = Watched::new();
    wait::until("a storm is found", wait::LONG, || {
        watched.sample("npcc_pfc_storms_total{port=\"wan0\",priority=\"4\"}") > Some(0.0)
    });
    // Each peer has a sample in its families, whatever becomes of its reports.
    let report = serde_json::json!({
        "kind": "end", "from": "10.0.2.2", "to": "10.0.1.3", "queue_pair": 24, "udp_port": 49_560,
        "transport": "rc", "first_seen": 1, "last_seen": 2, "packets": 3,
    });
    std::fs::write(watched.lab.path("ends.jsonl"), format!("{report}\n")).unwrap();
    let suggest = ["pair", "suggest", "--peer", "edge-2", "ends.jsonl"];
    watched.lab.done(&suggest);
    wait::until("the peer is counted", wait::LONG, || {
        watched
            .sample("npcc_peer_reports_total{peer=\"edge-2\"}")
            .is_some()
    });
    let scrape = watched.scrape();
    let linted = promtool(&["check", "metrics"], &scrape);
    let said = String::from_utf8_lossy(&linted.stderr).into_owned()
        + &String::from_utf8_lossy(&linted.stdout);
    assert!(linted.status.success() && said.trim().is_empty(), "{said}");

    let there = families(&scrape);
    assert!(there.len() > 100, "{}", there.len());
    // Every family has a sample here; where it says that Linux is integrated and the like, the value is 0.
    let series: BTreeSet<&str> = scrape
        .lines()
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    for family in &there {
        let histogram = format!("{family}_count");
        let shown = series.contains(family.as_str()) || series.contains(histogram.as_str());
        assert!(shown, "{family} has no sample");
    }
    assert_eq!(
        first_column(
            &read("docs/metrics.md"),
            "| metric | labels | what it means |"
        ),
        there
    );

    let dashboard: Value = serde_json::from_str(&read("contrib/grafana/npcc-switch.json")).unwrap();
    let (mut queries, mut variables) = (Vec::new(), Vec::new());
    values(&dashboard, "expr", &mut queries);
    values(&dashboard, "query", &mut variables);
    assert!(queries.len() > 20, "{queries:?}");
    let shown = named(&(queries.join("\n") + &variables.join("\n")));
    let missing: Vec<_> = shown
        .difference(&there)
        .filter(|name| *name != "npcc_switch")
        .collect();
    assert!(missing.is_empty(), "the dashboard: {missing:?}");
    let rules: Value = serde_yaml::from_str(&read("contrib/prometheus/alerts.yml")).unwrap();
    let mut queries = Vec::new();
    values(&rules, "expr", &mut queries);
    let watched_by_alerts = named(&queries.join("\n"));
    let missing: Vec<_> = watched_by_alerts.difference(&there).collect();
    assert!(missing.is_empty(), "the alerts: {missing:?}");
}

#[test]
fn every_alert_is_valid_tested_and_documented() {
    let checked = promtool(&["check", "rules", "alerts.yml"], "");
    assert_success(&checked);
    assert_success(&promtool(&["test", "rules", "alerts_test.yml"], ""));
    let rules: Value = serde_yaml::from_str(&read("contrib/prometheus/alerts.yml")).unwrap();
    let mut alerts = Vec::new();
    values(&rules, "alert", &mut alerts);
    let tried = read("contrib/prometheus/alerts_test.yml");
    for alert in &alerts {
        assert!(
            tried.contains(&format!("alertname=\"{alert}\"")),
            "{alert} is not tried"
        );
    }
    let explained = first_column(&read("docs/metrics.md"), "| alert | symptom | look at |");
    assert_eq!(explained, alerts.into_iter().collect());
}

#[test]
fn openmetrics_is_served_on_request_and_counters_never_go_back() {
    let _alone = alone();
    let watched = Watched::new();
    let accept =
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n";
    let (head, body) = get(watched.address, "/metrics", accept).unwrap();
    assert!(
        head.to_lowercase()
            .contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"), "{body}");
    let series = "npcc_port_receive_frames_total{port=\"dc0\"}";
    let before = watched.sample(series).unwrap();
    watched.lab.done(&["clear", "counters"]);
    wait::until("frames come in", wait::LONG, || {
        watched.sample(series).unwrap() > before
    });
}

#[test]
fn the_rows_of_show_come_as_json_and_hostile_clients_end_nothing() {
    let _alone = alone();
    let watched = Watched::new();
    for table in npcc_appliance::manage::tables::ALL {
        let (head, body) = get(watched.address, &format!("/api/{}", table.name), "").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{}: {head}", table.name);
        let json: Value = serde_json::from_str(&body).unwrap();
        let shown = watched.lab.show(table.name);
        // A row of the log has the keys of its kind, and another row may be the first by the second read.
        let kinds = |value: &Value| -> BTreeSet<Vec<String>> {
            let rows = match value {
                Value::Array(rows) => rows.as_slice(),
                one => std::slice::from_ref(one),
            };
            let keys = |row: &Value| row.as_object().unwrap().keys().cloned().collect();
            rows.iter().map(keys).collect()
        };
        let (json, shown) = (kinds(&json), kinds(&shown));
        let same = json == shown || table.name == "log" && !json.is_disjoint(&shown);
        assert!(same, "{}: {json:?}, {shown:?}", table.name);
    }
    assert!(
        get(watched.address, "/api/marks", "")
            .unwrap()
            .0
            .starts_with("HTTP/1.1 404")
    );
    // No data, half a request, and far too long a request.
    let mut held = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(watched.address).unwrap();
        let _ = match n % 3 {
            0 => Ok(()),
            1 => stream.write_all(b"GET /metrics HTTP/1.1\r\nHost"),
            _ => stream.write_all(&vec![b'x'; 100_000]),
        };
        held.push(stream);
    }
    assert!(watched.sample("npcc_uptime_seconds").is_some());
    let frames = "npcc_port_receive_frames_total{port=\"dc0\"}";
    let before = watched.sample(frames).unwrap();
    wait::until("it forwards", wait::LONG, || {
        watched.sample(frames).unwrap() > before
    });
    drop(held);
}
