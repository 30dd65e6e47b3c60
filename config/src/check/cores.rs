//! Cores: who runs where.

use super::Check;
use crate::tree::Path;

pub(super) fn check(check: &mut Check<'_>) {
    let cores = &check.file.cores;
    let workers = Path::root("cores").key("workers");
    if cores.workers.is_empty() {
        check.error(
            &workers,
            "there are no workers",
            "name one core, such as [1]",
        );
    }
    for (i, core) in cores.workers.iter().enumerate() {
        if cores.workers[..i].contains(core) {
            let hint = "name each core once";
            check.error(
                &workers.index(i),
                format!("core {core} is listed twice"),
                hint,
            );
        }
        if *core == cores.control && check.certain(&Path::root("cores").key("control")) {
            let message = format!("core {core} is also the control core");
            let hint = "a worker never yields its core; choose different ones";
            check.error(&workers.index(i), message, hint);
        }
    }
}

/// EAL arguments that other keys decide, and which.
const OWNED: [(&str, &str); 6] = [
    ("-l", "cores"),
    ("-c", "cores"),
    ("--lcores", "cores"),
    ("--main-lcore", "cores.control"),
    ("--vdev", "ports, device"),
    ("--no-huge", "dpdk.hugepages: off"),
];

/// EAL arguments may not contradict what the file says elsewhere.
pub(super) fn eal_args(check: &mut Check<'_>) {
    let args = &check.file.dpdk.eal_args;
    for (i, arg) in args.iter().enumerate() {
        let name = arg.split('=').next().unwrap_or_default();
        if let Some((_, key)) = OWNED.iter().find(|(owned, _)| *owned == name) {
            let path = Path::root("dpdk").key("eal_args").index(i);
            let hint = format!("say it by {key}");
            check.error(
                &path,
                format!("`{name}` is not an EAL argument to give here"),
                hint,
            );
        }
    }
}
