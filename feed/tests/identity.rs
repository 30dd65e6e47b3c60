//! Boxes that are known by a certificate or an NKey: the exchange, and what doctor says where the authority is another.

use std::path::Path;
use std::process::Command;

use crate::common::nats::addresses;
use crate::common::{Edge, Nats, end, feed, is_exchanged, text};
use npcc_testkit::wait::{LONG, until};

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

/// Starts a pair of boxes at these servers with their settings changed.
fn pair(folder: &Path, servers: &[String], change: impl Fn(String) -> String) -> [Edge; 2] {
    [1, 2].map(|number| {
        let password = format!("change-me-{number}");
        Edge::changed(folder, number, servers, &password, &change)
    })
}

/// Has the first box see ends, and waits until the other has them.
fn exchange(pair: &[Edge; 2]) {
    pair[0].switch.sees((0..1000).map(|number| end(number, 1)));
    until("the exchange", LONG, || is_exchanged(pair));
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
    let secured = |address: String| address.replace("nats://", "tls://");
    let addresses: Vec<String> = addresses(&servers).into_iter().map(secured).collect();
    let files = format!(
        "  tls: {{ ca: {at}/authority.pem, certificate: {at}/box.pem, key: {at}/box.key }}\nswitch:",
        at = at.display()
    );
    let with_tls = |text: String| text.replace("switch:", &files);
    let pair = pair(at, &addresses, with_tls);
    exchange(&pair);
    let doctor = |settings: &Path| {
        let out = feed(&["doctor", "-c", settings.to_str().unwrap()]);
        (out.status.success(), text(&out.stdout))
    };
    let (well, said) = doctor(&pair[0].settings);
    assert!(well, "{said}");
    let right = std::fs::read_to_string(&pair[1].settings).unwrap();
    crate::common::write(
        &pair[1].settings,
        &right.replace("authority.pem", "another.pem"),
    );
    let (well, said) = doctor(&pair[1].settings);
    assert!(!well && said.matches("[tls]").count() == 2, "{said}");
}

/// The server knows the public key of the first box, whose file has the seed; the second box has a password.
#[test]
fn a_box_with_an_nkey_needs_no_password() {
    // Example of NATS' documentation.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    crate::common::write(&at.join("seed"), SEED);
    let user = "user: edge-1, password: change-me-1";
    let servers = Nats::pair(at, |text| text.replace(user, &format!("nkey: {PUBLIC}")));
    let secret = at.join("edge-1.password").display().to_string();
    let seed = at.join("seed").display().to_string();
    let with_seed = |text: String| {
        text.replace("  user: edge-1\n", "").replace(
            &format!("password_file: {secret}"),
            &format!("nkey_file: {seed}"),
        )
    };
    let pair = pair(at, &addresses(&servers), with_seed);
    exchange(&pair);
}
