//! What the format knows and this version cannot do: refused, never silently ignored.

use super::{Check, port_path};
use crate::model::{EcnMode, Evidence, Idle, PfcBackend, PortPfc, Unpaired};
use crate::tree::Path;

fn refuse(check: &mut Check<'_>, path: &Path, what: &str, hint: &str) {
    check.error(path, format!("{what} is not available yet"), hint);
}

pub(super) fn check(check: &mut Check<'_>) {
    cores(check);
    ports(check);
    pfc(check);
    npcc(check);
    let file = check.file;
    if file.linux.integrate {
        let hint = "write integrate: false, and list static routes and neighbors";
        let path = Path::root("linux").key("integrate");
        refuse(check, &path, "integration with Linux", hint);
    }
    if file.telemetry.prometheus.is_some() {
        let hint = "remove it; use npcc-switch show --json on the socket";
        let path = Path::root("telemetry").key("prometheus");
        refuse(check, &path, "the metrics endpoint", hint);
    }
    if file.buffer.shared_headroom.0 != 0 {
        let path = Path::root("buffer").key("shared_headroom");
        refuse(check, &path, "shared headroom", "remove it or write 0");
    }
}

fn cores(check: &mut Check<'_>) {
    let cores = &check.file.cores;
    let path = Path::root("cores");
    if cores.workers.len() > 1 {
        let hint = "name one core, such as [1]";
        refuse(
            check,
            &path.key("workers").index(1),
            "more than one worker",
            hint,
        );
    }
    if cores.idle == Idle::Adaptive {
        refuse(
            check,
            &path.key("idle"),
            "idle: adaptive",
            "write idle: poll",
        );
    }
}

fn ports(check: &mut Check<'_>) {
    let file = check.file;
    for (i, port) in file.ports.iter().enumerate() {
        let pause = match port.pfc {
            PortPfc::Send => Some("pfc: send"),
            PortPfc::Honour => Some("pfc: honour"),
            PortPfc::Auto | PortPfc::Off => None,
        };
        if let Some(what) = pause {
            let hint = "write pfc: auto, which takes what is available, or pfc: off";
            refuse(check, &port_path(i).key("pfc"), what, hint);
        }
    }
}

fn pfc(check: &mut Check<'_>) {
    let path = Path::root("pfc");
    if check.file.pfc.backend != PfcBackend::Auto {
        refuse(
            check,
            &path.key("backend"),
            "the choice of a PFC backend",
            "write backend: auto",
        );
    }
    let watchdog = path.key("watchdog");
    if check.written(&watchdog) {
        let what = "the PFC watchdog";
        if check.certain(&watchdog) {
            let message = format!("{what} is not available yet");
            check.error_at_key(
                &watchdog,
                message,
                "remove it: without pause there is no storm",
            );
        }
    }
}

fn npcc(check: &mut Check<'_>) {
    let npcc = &check.file.npcc;
    let path = |key: &str| Path::root("npcc").key(key);
    let evidence = match npcc.evidence {
        Evidence::Cm => Some("evidence: cm"),
        Evidence::Psn => Some("evidence: psn"),
        Evidence::PortHash | Evidence::Port | Evidence::Only => None,
    };
    if let Some(what) = evidence {
        let hint = "write port-hash (strict), port (usual) or only (lenient)";
        refuse(check, &path("evidence"), what, hint);
    }
    if npcc.unpaired == Unpaired::AllQps {
        refuse(
            check,
            &path("unpaired"),
            "unpaired: all-qps",
            "write mark or none",
        );
    }
    if npcc.ecn == EcnMode::ClearAfterCnp {
        let hint = "write mark-unless-notified (usual), mark or off";
        refuse(check, &path("ecn"), "ecn: clear-after-cnp", hint);
    }
}
