//! Keys of NPCC that have no effect under the policies and modes in force: a warning where one is written with another value than its default.

use super::{Check, port_path};
use crate::model::{Cnp, EcnMode, Gate, Hosts, Npcc, PolicyName, PortNpcc, UpstreamCe};
use crate::tree::Path;

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let on_ports = file.ports.iter().enumerate();
    let ports: Vec<(usize, &PortNpcc)> = on_ports
        .filter_map(|(i, port)| Some((i, port.npcc.as_ref().filter(|npcc| npcc.enable)?)))
        .collect();
    let root = Path::root("npcc");
    let npcc = &file.npcc;
    if ports.is_empty() {
        if *npcc != Npcc::default() && check.certain(&Path::root("ports")) {
            let hint = "write `npcc: {}` on the port that feeds the long link";
            check.warn(&root, "no port has NPCC, so this has no effect", hint);
        }
        return;
    }
    if npcc.ecn != EcnMode::Divert {
        if npcc.cnp.interval != Cnp::default().interval {
            without_divert(check, &root.key("cnp").key("interval"), "interval");
        }
        if npcc.hosts.cnp_intervals != Hosts::default().cnp_intervals {
            let path = root.key("hosts").key("cnp_intervals");
            without_divert(check, &path, "cnp_intervals");
        }
        for (i, port) in &ports {
            if port.upstream_ce != UpstreamCe::Answer {
                let path = port_path(*i).key("npcc").key("upstream_ce");
                without_divert(check, &path, "upstream_ce");
            }
        }
    }
    if npcc.ecn == EcnMode::Off && npcc.gate != Gate::Auto {
        let hint =
            "leave it out: the gate chooses between CNPs and marks, and `ecn: off` marks nothing";
        check.warn(
            &root.key("gate"),
            "`gate` has no effect with `ecn: off`",
            hint,
        );
    }
    let has_table = ports.iter().any(|(_, port)| {
        let queues = port.queues.iter();
        queues
            .map(|queue| port.policy_of(queue.index()))
            .any(|policy| policy == PolicyName::Npcc)
    });
    if has_table {
        return;
    }
    let hint = "`parameters: { 3: { set_point: 200us } }` of a port is the depth that policy `model` aims at";
    let message = "`shallow` has no effect on policy `model`, which all watched queues have";
    if npcc.shallow != Npcc::default().shallow {
        check.warn(&root.key("shallow"), message, hint);
    }
    for (i, port) in &ports {
        if port.shallow.is_some() {
            check.warn(&port_path(*i).key("npcc").key("shallow"), message, hint);
        }
    }
    if npcc.ecn != EcnMode::Divert && npcc.min_cnp_interval != Npcc::default().min_cnp_interval {
        let message = "`min_cnp_interval` has no effect on policy `model` without `ecn: divert`";
        let hint = "leave it out: the model spaces CNPs by what they are expected to cut";
        check.warn(&root.key("min_cnp_interval"), message, hint);
    }
}

fn without_divert(check: &mut Check<'_>, path: &Path, key: &str) {
    let message = format!("`{key}` has no effect without `ecn: divert`");
    let hint = "leave it out: only diverted marks become CNPs in place of the receiver's";
    check.warn(path, message, hint);
}
