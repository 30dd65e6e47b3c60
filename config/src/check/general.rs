//! Checks of the file as a whole.

use super::{Check, port_path};
use crate::tree::Path;
use npcc_pipeline::units::MAX_PORTS;

/// Maximum length of a Unix socket's path, in bytes.
const MAX_SOCKET_PATH: usize = 107;

/// Maximum length of a DNS name, in characters.
const MAX_HOST_NAME: usize = 253;

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    if file.version != 1 {
        let message = format!("version {} of this format is not known", file.version);
        check.error(&Path::root("version"), message, "write version: 1");
    }
    if file.ports.is_empty() {
        let hint = "add `ports:` with a name and a device each";
        check.error_at_key(&Path::root("ports"), "there are no ports", hint);
    }
    if file.ports.len() > MAX_PORTS {
        let message = format!("{} ports are more than {MAX_PORTS}", file.ports.len());
        check.error(
            &port_path(MAX_PORTS),
            message,
            "DPDK as packaged knows no more",
        );
    }
    let scale = file.time_scale;
    if !(0.001..=1e6).contains(&scale) {
        let message = format!("a time scale of {scale} cannot be used");
        check.error(
            &Path::root("time_scale"),
            message,
            "write 0.001 to 1000000; 1 is real time",
        );
    }
    sockets(check);
}

fn sockets(check: &mut Check<'_>) {
    let telemetry = check.file.telemetry.clone();
    socket(check, "socket", &telemetry.socket);
    let read_only = telemetry.read_only_path();
    let own = telemetry.read_only_socket.is_some();
    let key = if own { "read_only_socket" } else { "socket" };
    let sound = telemetry.socket.starts_with('/') && telemetry.socket.len() <= MAX_SOCKET_PATH;
    if own || sound {
        socket(check, key, &read_only);
    }
    if read_only == telemetry.socket {
        let message = "the socket for reading is the one for changes";
        check.error(&Path::root("telemetry").key(key), message, "name another");
    }
    if let Some(http) = telemetry.http.filter(|http| !http.ip().is_loopback()) {
        let message = format!("whoever reaches {http} sees addresses and loads of hosts");
        let hint = "write 127.0.0.1, or keep others away by a firewall: there is no password";
        check.warn(&Path::root("telemetry").key("http"), message, hint);
    }
    for (n, name) in telemetry.http_hosts.iter().enumerate() {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if name.is_empty() || name.len() > MAX_HOST_NAME || !name.chars().all(is_part) {
            let path = Path::root("telemetry").key("http_hosts").index(n);
            let hint =
                "write a host's name without port, such as dci1.example.net; an address needs none";
            check.error(&path, format!("`{name}` is no name of a host"), hint);
        }
    }
    for (key, group) in [
        ("group", &telemetry.group),
        ("read_only_group", &telemetry.read_only_group),
    ] {
        if group.is_empty() {
            let hint = "name a group, such as npcc or root";
            let path = Path::root("telemetry").key(key);
            check.error(&path, "the group is empty", hint);
        }
    }
}

fn socket(check: &mut Check<'_>, key: &str, socket: &str) {
    let path = Path::root("telemetry").key(key);
    if !socket.starts_with('/') {
        let hint = "write it from the root, such as /run/npcc-switch.sock";
        check.error(&path, format!("`{socket}` is not an absolute path"), hint);
    } else if socket.len() > MAX_SOCKET_PATH {
        let message = format!("the path {socket} has {} bytes", socket.len());
        let hint = format!("a Unix socket's path has at most {MAX_SOCKET_PATH}");
        check.error(&path, message, hint);
    }
}
