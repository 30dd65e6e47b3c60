//! Checks of relations between settings.

use std::net::IpAddr;
use std::path::Path;

use npcc_config::document::Findings;
use npcc_config::regular;

use super::{Bus, Settings, read_secret};

/// Schemes of a server's address, with and without TLS.
const SCHEMES: [&str; 2] = ["nats://", "tls://"];
/// Token of a subject that stands for all hosts, in place of a box.
const HOSTS: &str = "host";
/// Most ends of a box: a part of the exchange holds 200.
const MOST_ENDS: usize = 131_072;
const ROWS: std::ops::RangeInclusive<u64> = 1000..=1_000_000;

pub(super) fn check(settings: &Settings, found: &mut Findings<'_>) {
    if settings.version != 1 {
        let message = format!("version {} is not known", settings.version);
        found.error("version", message, "write 1");
    }
    check_bus(&settings.bus, found);
    if settings.name.as_str() == HOSTS {
        let hint = format!("choose another name: hosts' agents publish under npcc.SITE.{HOSTS}.");
        found.error("box", "this name is reserved and cannot name a box", hint);
    }
    for (at, peer) in settings.peers.iter().enumerate() {
        let path = format!("peers.{at}");
        if *peer == settings.name {
            found.error(&path, format!("{peer} is this box"), "name the other box");
        } else if settings.peers[..at].contains(peer) {
            found.error(&path, format!("{peer} is listed twice"), "remove one");
        }
    }
    if settings.peers.is_empty() {
        let hint = "name the other box of the pair; leave it empty only if this box just publishes its records";
        found.warn("peers", "no peer is named: no ends are imported", hint);
    }
    if !(1..=MOST_ENDS).contains(&settings.limits.ends) {
        let message = format!("{} ends are out of range", settings.limits.ends);
        found.error("limits.ends", message, format!("write 1 to {MOST_ENDS}"));
    }
    if !ROWS.contains(&settings.limits.rows_per_second) {
        let message = format!(
            "{} rows a second are out of range",
            settings.limits.rows_per_second
        );
        let hint = format!("write {} to {}", ROWS.start(), ROWS.end());
        found.error("limits.rows_per_second", message, hint);
    }
}

/// Checks the servers, and how this box or host is known to them.
pub(crate) fn check_bus(bus: &Bus, found: &mut Findings<'_>) {
    servers(bus, found);
    identity(bus, found);
    tls(bus, found);
}

fn servers(bus: &Bus, found: &mut Findings<'_>) {
    if bus.servers.is_empty() {
        let hint = "write the address of each, such as nats://10.0.0.1:4222";
        found.error("bus.servers", "no server is named", hint);
    }
    for (at, server) in bus.servers.iter().enumerate() {
        let path = format!("bus.servers.{at}");
        let rest = SCHEMES
            .iter()
            .find_map(|scheme| server.strip_prefix(scheme));
        if rest.is_none_or(|rest| rest.is_empty() || rest.contains(['/', ' '])) {
            let message = format!("`{server}` is not the address of a server");
            found.error(&path, message, "write nats://HOST:PORT or tls://HOST:PORT");
        } else if server.contains('@') {
            let hint = "remove everything up to `@`; set bus.user and bus.password_file";
            found.error(&path, "the address contains credentials", hint);
        } else if bus.servers[..at].contains(server) {
            found.error(&path, format!("{server} is listed twice"), "remove one");
        } else if bus.tls.is_none() && !is_encrypted(server) {
            let message = format!("passwords and records go to {server} in clear");
            let hint = "write tls:// and bus.tls.ca, unless this network is for management alone";
            found.warn(&path, message, hint);
        }
    }
}

/// Returns true if what is sent to a server is encrypted, or does not leave this host.
fn is_encrypted(server: &str) -> bool {
    let Some(clear) = server.strip_prefix("nats://") else {
        return true;
    };
    let host = clear.rsplit_once(':').map_or(clear, |(host, _)| host);
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

fn identity(bus: &Bus, found: &mut Findings<'_>) {
    let given = [
        ("password_file", &bus.password_file),
        ("nkey_file", &bus.nkey_file),
        ("credentials_file", &bus.credentials_file),
    ];
    for (key, path) in &given {
        if let Some(path) = path {
            secret(&format!("bus.{key}"), path, found);
        }
    }
    let given: Vec<&str> = given
        .iter()
        .filter(|(_, path)| path.is_some())
        .map(|(key, _)| *key)
        .collect();
    match (given.as_slice(), &bus.user) {
        (["password_file"], None) => {
            found.error("bus.password_file", "a password needs a user", "add user")
        }
        (["password_file"], Some(_)) | ([_], None) => {}
        ([], Some(_)) => found.error("bus.user", "a user needs a password", "add password_file"),
        ([], None) if bus.tls.as_ref().is_some_and(|tls| tls.key.is_some()) => {}
        ([], None) => {
            let hint = "set user and password_file, nkey_file, credentials_file, or tls.certificate and tls.key: otherwise any client may publish under this name";
            found.warn("bus", "no credentials are set", hint);
        }
        ([key], Some(_)) => {
            let message = format!("a user does not go with {key}");
            found.error(
                "bus.user",
                message,
                "remove user: the file already identifies the client",
            );
        }
        ([_, second, ..], _) => {
            let message = "more than one kind of credentials is set".to_owned();
            found.error(&format!("bus.{second}"), message, "keep one of them");
        }
    }
}

fn secret(path: &str, file: &Path, found: &mut Findings<'_>) {
    if let Err(error) = read_secret(file) {
        found.error(path, error.to_string(), error.hint());
    }
}

fn tls(bus: &Bus, found: &mut Findings<'_>) {
    let Some(tls) = &bus.tls else {
        if let Some(at) = bus
            .servers
            .iter()
            .position(|server| server.starts_with("tls://"))
        {
            let hint = "add tls: { ca: FILE }, or the system's authorities are trusted";
            found.warn(
                &format!("bus.servers.{at}"),
                "no authority is named for TLS",
                hint,
            );
        }
        return;
    };
    for (key, path) in [
        ("ca", Some(&tls.ca)),
        ("certificate", tls.certificate.as_ref()),
    ] {
        if let Some(path) = path
            && let Err(error) = regular::open(path)
        {
            let message = format!("cannot read {}: {error}", path.display());
            found.error(&format!("bus.tls.{key}"), message, "check the path");
        }
    }
    if let Some(key) = &tls.key {
        secret("bus.tls.key", key, found);
    }
    if tls.certificate.is_some() != tls.key.is_some() {
        found.error(
            "bus.tls",
            "a certificate and its key go together",
            "name both or none",
        );
    }
}
