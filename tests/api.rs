//! The HTTP interface as its OpenAPI document describes it: what the sockets answer, what the TCP listener does not, and the commands of the
//! manual.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use npcc_testkit::{http, python};
use serde_json::{Value, json};

use crate::common::busy::busy;
use crate::common::http::{Watched, get_by};
use crate::common::switch::Switch;
use crate::common::{Lab, NULL_PORTS, alone, assert_success, root, switch};

/// Returns the document that `npcc-switch schema --api` prints.
fn document() -> Value {
    let output = switch().args(["schema", "--api"]).output().unwrap();
    assert_success(&output);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns each method, path and operation of a document.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            all.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    assert!(all.len() > 30, "{}", all.len());
    all
}

/// Claims that bodies have the form of their schema, which Python's jsonschema examines.
#[derive(Default)]
struct Claims {
    schemas: serde_json::Map<String, Value>,
    records: Vec<(String, Value)>,
}

impl Claims {
    fn add(&mut self, document: &Value, operation: &str, schema: &Value, body: Value) {
        let mut whole = schema.clone();
        whole["components"] = document["components"].clone();
        whole["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        self.schemas.insert(operation.to_owned(), whole);
        self.records.push((operation.to_owned(), body));
    }

    /// Returns the errors of each record.
    fn errors(&self) -> Vec<Vec<String>> {
        let valid = root().join("feed/tests/common/valid.py");
        let mut command = Command::new(python::python());
        command
            .arg(valid)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let given = json!({ "schemas": self.schemas, "records": self.records });
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(given.to_string().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_success(&output);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Returns the schema of an answer by its media type.
fn schema_of(answer: &Value) -> Option<(&str, &Value)> {
    let (media, content) = answer["content"].as_object()?.iter().next()?;
    Some((media, &content["schema"]))
}

/// Every operation that reads is answered with a body of its schema, and every other one, which gets no input here, with that or a problem.
#[test]
fn every_operation_answers_in_the_form_of_its_schema() {
    let _alone = alone();
    let mut lab = Switch::start_with(busy(), &[]);
    lab.forwards();
    lab.until("flows are seen", || {
        lab.show("flows")
            .as_array()
            .is_some_and(|all| !all.is_empty())
    });
    let document = document();
    let mut claims = Claims::default();
    let socket = lab.path("switch.sock");
    for (method, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap();
        if name == "post-stop" {
            continue;
        }
        let target = match path.as_str() {
            "/v1/capture" if method == "GET" => "/v1/capture?count=3",
            "/v1/capture" => "/v1/capture?id=0",
            other => other,
        };
        let (status, body) = http::ask(&socket, &method, target, "").unwrap();
        let success = operation["responses"].as_object().unwrap();
        let success = success.iter().find(|(code, _)| *code != "default").unwrap();
        if status.to_string() != *success.0 {
            assert_ne!(
                operation["x-right"], "read",
                "{method} {path}: {status} {body}"
            );
            assert!(status >= 400, "{method} {path}: {status}");
            let (_, problem) = schema_of(&operation["responses"]["default"]).unwrap();
            claims.add(
                &document,
                &format!("{name} refused"),
                problem,
                serde_json::from_str(&body).unwrap(),
            );
            continue;
        }
        match schema_of(success.1) {
            None => assert_eq!((status, body.as_str()), (204, ""), "{method} {path}"),
            Some(("application/json", schema)) => {
                let body = serde_json::from_str(&body).unwrap();
                claims.add(&document, name, schema, body);
            }
            Some(("application/jsonl", schema)) => {
                let lines = body.lines();
                let lines: Vec<Value> = lines
                    .map(|line| serde_json::from_str(line).unwrap())
                    .collect();
                assert!(!lines.is_empty(), "{method} {path}: {body}");
                for line in lines {
                    claims.add(&document, name, schema, line);
                }
            }
            Some((media, _)) => assert_eq!(media, "application/yaml", "{method} {path}"),
        }
    }
    // A claim that does not hold is found.
    let ports = &document["paths"]["/v1/ports"]["get"]["responses"]["200"];
    let (_, ports) = schema_of(ports).unwrap();
    claims.add(&document, "no ports", ports, json!([{ "name": 7 }]));
    let mut errors = claims.errors();
    assert!(!errors.pop().unwrap().is_empty());
    for ((name, body), errors) in claims.records.iter().zip(errors) {
        assert!(errors.is_empty(), "{name}: {errors:#?}\n{body:#}");
    }
    lab.stop();
}

/// The listener for a network has the page, its data, the metrics and the readiness, and nothing of the management sockets.
#[test]
fn the_tcp_listener_has_nothing_of_the_sockets_but_readiness() {
    let _alone = alone();
    let watched = Watched::new();
    let host = watched.address.to_string();
    for (method, path, _) in operations(&document()) {
        let status_of = |host: &str| ask_tcp(&watched, host, &method, &path);
        let status = status_of(&host);
        if path == "/ready" && method == "GET" {
            assert_eq!(status, 200);
        } else {
            assert!(matches!(status, 404 | 405), "{method} {path}: {status}");
        }
        assert_eq!(status_of("evil.example"), 403, "{method} {path}");
    }
    let (head, _) = get_by(watched.address, &host, "/metrics", "").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

fn ask_tcp(watched: &Watched, host: &str, method: &str, path: &str) -> u16 {
    use std::io::Read;
    let mut stream = std::net::TcpStream::connect(watched.address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The limits of a request, each with the status code that names it.
#[test]
fn a_request_that_is_too_long_or_has_no_length_is_refused() {
    let _alone = alone();
    let mut switch = Switch::start(Lab::with(NULL_PORTS));
    let socket = switch.path("switch.sock");
    let long = 9 << 20;
    let head = |more: &str| format!("PATCH /v1/config HTTP/1.1\r\nhost: localhost\r\n{more}\r\n");
    let declared = head(&format!("content-length: {long}\r\n"));
    let chunk = format!("{:x}\r\n{}\r\n0\r\n\r\n", long, "x".repeat(long));
    let chunked = head("transfer-encoding: chunked\r\n") + &chunk;
    for (octets, expected) in [
        (declared, 413),
        (chunked, 413),
        (head(""), 411),
        (head("transfer-encoding: chunked\r\n") + "0\r\n\r\n", 400),
        (head(&format!("x: {}\r\n", "x".repeat(100_000))), 431),
    ] {
        let (status, body) = http::exchange(&socket, octets.as_bytes()).unwrap();
        assert_eq!(status, expected, "{body}");
    }
    switch.stop();
}

/// Returns the commands of the manual that begin with `curl`, each with its page.
fn commands() -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for page in std::fs::read_dir(root().join("docs")).unwrap() {
        let page = page.unwrap().path();
        if page.extension().is_some_and(|kind| kind == "md") {
            let text = std::fs::read_to_string(&page).unwrap();
            let lines = text.lines().filter(|line| line.starts_with("    curl "));
            all.extend(lines.map(|line| (page.clone(), line.trim().to_owned())));
        }
    }
    assert!(all.len() >= 8, "{all:?}");
    all
}

/// Every `curl` command of the manual does what it says there.
#[test]
fn every_curl_command_of_the_manual_succeeds() {
    let _alone = alone();
    let watched = Watched::new();
    let socket = watched.lab.path("switch.sock");
    for (page, command) in commands() {
        let here = command
            .replace("/run/npcc-switch.sock", socket.to_str().unwrap())
            .replace(
                "/run/npcc-switch-ro.sock",
                watched.lab.path("switch-ro.sock").to_str().unwrap(),
            )
            .replace("127.0.0.1:9464", &watched.address.to_string());
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            &format!("set -e; {here} --fail-with-body --max-time 40"),
        ]);
        let output = shell.current_dir(watched.lab.dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{}: {command}: {said}",
            page.display()
        );
        assert!(Path::new(&page).exists());
    }
}
