use std::os::unix::fs::PermissionsExt;

use super::*;

fn said(text: &str) -> String {
    Settings::parse("feed.yaml", text).unwrap_err().to_string()
}

#[test]
fn a_short_file_is_enough() {
    let text =
        "site: dc1\nbox: edge-1\nbus: { servers: ['nats://127.0.0.1:4222'] }\npeers: [edge-2]\n";
    let read = Settings::parse("feed.yaml", text).unwrap();
    let settings = read.model;
    assert_eq!(settings.subject("state"), "npcc.dc1.edge-1.state");
    assert_eq!(settings.switch, Switch::default());
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(read.warnings.len(), 1, "{:?}", read.warnings);
}

#[test]
fn every_mistake_has_its_place_and_a_hint() {
    let text = "\
version: 2
site: dc1
box: edge-1
bus:
  servers: [http://a, 'nats://u:p@b:4222', nats://c, nats://c]
  user: me
peers: [edge-1, edge-2, edge-2]
limits: { ends: 0, rows_per_second: 5 }
";
    let said = said(text);
    for expected in [
        "1:10: error: version 2 is not known",
        "5:13: error: `http://a` is not the address of a server",
        "5:23: error: the address contains credentials",
        "5:54: error: nats://c is listed twice",
        "6:9: error: a user needs a password",
        "7:9: error: edge-1 is this box",
        "7:25: error: edge-2 is listed twice",
        "8:17: error: 0 ends are out of range",
        "8:37: error: 5 rows a second are out of range",
        "hint: write 1000 to 1000000",
    ] {
        assert!(said.contains(expected), "{expected} is not in\n{said}");
    }
}

#[test]
fn a_site_is_a_name() {
    let said = said("site: DC1\nbox: a\nbus: { servers: [nats://a] }\n");
    assert!(
        said.contains("1:7: error: `DC1` is not a name: write 1 to 32 of a-z, 0-9 and -"),
        "{said}"
    );
}

#[test]
fn missing_and_unknown_keys_are_named() {
    let said = said("site: a\nbus: { servers: [nats://a], usre: b }\n");
    assert!(said.contains("`box` is missing"), "{said}");
    assert!(said.contains("did you mean `user`?"), "{said}");
}

#[test]
fn a_secret_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "secret\n").unwrap();
    let text = format!(
        "site: a\nbox: b\npeers: [c]\nbus:\n  servers: [nats://localhost:4222]\n  user: u\n  password_file: {}\n",
        path.display()
    );
    let mode =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    for open in [0o640, 0o604, 0o610] {
        mode(open);
        let said = said(&text);
        assert!(
            said.contains(&format!("may be read by others (mode {open:04o})")),
            "{said}"
        );
        assert!(
            said.contains("7:18: error:") && said.contains("hint: chmod 0600 "),
            "{said}"
        );
    }
    mode(0o600);
    assert!(
        Settings::parse("feed.yaml", &text)
            .unwrap()
            .warnings
            .is_empty()
    );
    assert_eq!(read_secret(&path).unwrap(), "secret");
    std::fs::write(&path, "\n").unwrap();
    assert!(said(&text).contains("holds no text"));
    std::fs::remove_file(&path).unwrap();
    assert!(said(&text).contains("cannot read"));
}

#[test]
fn a_server_elsewhere_without_tls_is_warned_of() {
    for (server, warned) in [
        ("nats://10.0.0.1:4222", true),
        ("nats://edge-1", true),
        ("nats://127.0.0.1:4222", false),
        ("nats://[::1]:4222", false),
        ("nats://localhost", false),
        ("tls://10.0.0.1:4222", false),
    ] {
        let text = format!("site: a\nbox: b\npeers: [c]\nbus:\n  servers: [\"{server}\"]\n");
        let warnings = Settings::parse("feed.yaml", &text).unwrap().warnings;
        let said = warnings
            .iter()
            .any(|warning| warning.to_string().contains("in clear"));
        assert_eq!(said, warned, "{server}");
    }
}
