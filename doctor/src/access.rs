//! Checks of the management sockets: their folder, their groups, and sockets left by dead switches.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use npcc_config::Config;

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;

/// Socket path, its group, and the configuration key that names the group.
type Socket<'a> = (&'a str, &'a str, &'static str);

pub(crate) fn examine(host: &Host, config: &Config, found: &mut Vec<Finding>) {
    let telemetry = &config.telemetry;
    let read_only = telemetry.read_only_path();
    let sockets: [Socket<'_>; 2] = [
        (&telemetry.socket, &telemetry.group, "telemetry.group"),
        (
            &read_only,
            &telemetry.read_only_group,
            "telemetry.read_only_group",
        ),
    ];
    examine_recorder(host, Path::new(&telemetry.socket), found);
    let mut folders = Vec::new();
    for socket in sockets {
        let folder = Path::new(socket.0).parent().map(Path::to_owned);
        if let Some(folder) = folder.filter(|folder| !folders.contains(folder)) {
            examine_folder(host, &folder, found);
            folders.push(folder);
        }
        let gid = group(host, socket, found);
        examine_socket(host, socket, gid, found);
    }
}

/// Returns true if a process listens on a socket; `None` if the host does not report it.
pub(crate) fn listens(host: &Host, path: &str) -> Option<bool> {
    // Every open Unix socket is listed there by its path.
    let open = host.read("/proc/net/unix")?;
    let mut lines = open.lines();
    Some(lines.any(|line| line.split_whitespace().last() == Some(path)))
}

fn examine_folder(host: &Host, folder: &Path, found: &mut Vec<Finding>) {
    // A relative path is relative to the folder the switch is started in.
    if folder.as_os_str().is_empty() || host.exists(folder) {
        return;
    }
    found.push(Finding {
        check: Check::SocketFolder,
        severity: Severity::Error,
        place: folder.display().to_string(),
        what: "the folder of the management socket does not exist: the switch does not start"
            .to_owned(),
        mend: Mend::Now(format!("mkdir -p {}", folder.display())),
    });
}

/// Returns the type of the file system of a folder, if the host reports it and it is not one in memory.
fn on_disk(host: &Host, folder: &str) -> Option<String> {
    let found = host.ask(&["findmnt", "-n", "-o", "FSTYPE", "-T", folder])?;
    // Of several mounts at one place the last one counts.
    let found = found.lines().last()?.trim();
    (!["tmpfs", "ramfs"].contains(&found)).then(|| found.to_owned())
}

/// Checks where the flight recorder of a running switch lies: workers write it as memory, so never on a disk.
fn examine_recorder(host: &Host, socket: &Path, found: &mut Vec<Finding>) {
    let folder = socket.parent().filter(|folder| folder.is_absolute());
    let Some(folder) = folder.map(|folder| folder.display().to_string()) else {
        return;
    };
    let Some(disk) = on_disk(host, &folder) else {
        return;
    };
    let (severity, consequence) = match on_disk(host, "/dev/shm") {
        None => (
            Severity::Note,
            "the flight recorder of a running switch is in /dev/shm",
        ),
        Some(_) => (
            Severity::Warning,
            "and /dev/shm is no tmpfs, so the flight recorder is in the process's memory: without a service manager a report after \
             SIGKILL is lost",
        ),
    };
    found.push(Finding {
        check: Check::RecorderMemory,
        severity,
        place: folder.clone(),
        what: format!(
            "the folder of the management socket is on {disk} and not on a tmpfs: {consequence}"
        ),
        mend: Mend::ByHand(format!("findmnt -T {folder}")),
    });
}

/// Returns the group's number, if the group exists.
fn group(host: &Host, (path, group, key): Socket<'_>, found: &mut Vec<Finding>) -> Option<u32> {
    let groups = host.read("/etc/group")?;
    let mut lines = groups.lines().map(|line| line.split(':'));
    let line = lines.find_map(|mut fields| (fields.next() == Some(group)).then(|| fields.nth(1)));
    if line.is_none() {
        found.push(Finding {
            check: Check::GroupMissing,
            severity: Severity::Note,
            place: format!("group {group} ({key})"),
            what: format!("there is no such group, so only root may use {path}"),
            mend: Mend::Now(format!("groupadd --system {group}")),
        });
    }
    line??.parse().ok()
}

fn examine_socket(
    host: &Host,
    (path, group, _): Socket<'_>,
    gid: Option<u32>,
    found: &mut Vec<Finding>,
) {
    let Ok(metadata) = std::fs::symlink_metadata(host.path(path)) else {
        return;
    };
    let Some(listens) = listens(host, path) else {
        return;
    };
    if !listens {
        let is_socket = metadata.file_type().is_socket();
        found.push(Finding {
            check: Check::SocketLeftover,
            severity: if is_socket { Severity::Note } else { Severity::Error },
            place: path.to_owned(),
            what: if is_socket {
                "nobody listens on this socket: a switch that was killed left it, and the next start replaces it".to_owned()
            } else {
                "this is no socket, so the switch does not start".to_owned()
            },
            mend: if is_socket { Mend::Now(format!("rm -f {path}")) } else { Mend::ByHand(format!("ls -l {path}   # and rm, or another telemetry.socket")) },
        });
        return;
    }
    let mode = metadata.permissions().mode() & 0o777;
    let Some(gid) = gid else { return };
    if metadata.gid() != gid || mode != 0o660 {
        found.push(Finding {
            check: Check::SocketRights,
            severity: Severity::Warning,
            place: path.to_owned(),
            what: format!("the socket of the running switch is not for the group {group} (mode {mode:o}): the group was made after the start, or somebody changed it"),
            mend: Mend::Now(format!("chgrp {group} {path} && chmod 660 {path}")),
        });
    }
}
