//! TLS with certificates on both sides: the exchange, and what doctor says where the authority is another.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test fails by a panic"
)]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::nats::addresses;
use common::{Edge, FakeSwitch, Nats, Process, end, feed, is_exchanged, settings, text, wait};

/// Makes an authority, or a certificate signed by one, `NAME.pem` with the key `NAME.key`.
fn certificate(folder: &Path, name: &str, signed_by: Option<&str>) {
    let mut command = Command::new("openssl");
    command.current_dir(folder).args(["req", "-x509", "-nodes"]);
    command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    command.args([
        "-keyout",
        &format!("{name}.key"),
        "-out",
        &format!("{name}.pem"),
    ]);
    command.args(["-days", "2", "-subj", &format!("/CN={name}")]);
    if let Some(authority) = signed_by {
        command.args([
            "-CA",
            &format!("{authority}.pem"),
            "-CAkey",
            &format!("{authority}.key"),
        ]);
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        command.args(["-addext", "subjectAltName=IP:127.0.0.1"]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
}

/// Starts box `edge-NUMBER`, whose servers' certificates are signed by this authority.
fn edge(folder: &Path, number: usize, servers: &[Nats; 2], authority: &str) -> Edge {
    let switch = FakeSwitch::start(&folder.join(format!("switch-{number}.sock")));
    let secured = |address: String| address.replace("nats://", "tls://");
    let servers: Vec<String> = addresses(servers).into_iter().map(secured).collect();
    let password = format!("change-me-{number}");
    let settings = settings(folder, number, &servers, &password, &switch.socket);
    let file = |name: &str| folder.join(name).display().to_string();
    let tls = format!(
        "  tls: {{ ca: {}, certificate: {}, key: {} }}\nswitch:",
        file(authority),
        file("box.pem"),
        file("box.key")
    );
    let plain = std::fs::read_to_string(&settings).unwrap();
    common::write(&settings, &plain.replace("switch:", &tls));
    let mut command = Command::new(env!("CARGO_BIN_EXE_npcc-feed"));
    command.args(["run", "-c", settings.to_str().unwrap()]);
    let feed = Process(command.stdin(Stdio::null()).spawn().unwrap());
    Edge {
        switch,
        feed,
        settings,
    }
}

#[test]
fn boxes_with_certificates_exchange_over_tls_and_a_wrong_authority_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    certificate(at, "authority", None);
    certificate(at, "another", None);
    for name in ["server", "box"] {
        certificate(at, name, Some("authority"));
    }
    let tls = format!(
        "tls {{ cert_file: {at}/server.pem, key_file: {at}/server.key, ca_file: {at}/authority.pem, verify: true, timeout: 2 }}\n",
        at = at.display()
    );
    let servers = Nats::pair(at, |text| tls.clone() + &text);
    let pair = [1, 2].map(|number| edge(at, number, &servers, "authority.pem"));
    pair[0].switch.sees((0..1000).map(|number| end(number, 1)));
    wait("the exchange", Duration::from_secs(60), || {
        is_exchanged(&pair)
    });
    let doctor = |settings: &Path| {
        let out = feed(&["doctor", "-c", settings.to_str().unwrap()]);
        (out.status.success(), text(&out.stdout))
    };
    let (well, said) = doctor(&pair[0].settings);
    assert!(well, "{said}");
    let right = std::fs::read_to_string(&pair[1].settings).unwrap();
    common::write(
        &pair[1].settings,
        &right.replace("authority.pem", "another.pem"),
    );
    let (well, said) = doctor(&pair[1].settings);
    assert!(!well && said.matches("[tls]").count() == 2, "{said}");
}
