//! Checks of proactive congestion notification: intervals, queues, the CNPs themselves.

use npcc_cnp::defaults::{self, NIC_MIN_CNP_INTERVAL};

use super::{Check, port_path};
use crate::model::{Hosts, PortNpcc, Scheduler, Trust};
use crate::resolved::{Device, ResolvedQos};
use crate::suggest::nearest;
use crate::tree::Path;
use crate::units::{Bytes, Nanos, Written};

fn path(key: &str) -> Path {
    Path::root("npcc").key(key)
}

pub(super) fn check(check: &mut Check<'_>) {
    intervals(check);
    sizes(check);
    trusted(check);
    hosts(check);
    cnp(check);
    let file = check.file;
    for (i, port) in file.ports.iter().enumerate() {
        if let Some(npcc) = port.npcc.as_ref().filter(|n| n.enable) {
            on_port(check, i, npcc);
        }
    }
}

fn intervals(check: &mut Check<'_>) {
    let npcc = &check.file.npcc;
    if !(Nanos::from_micros(5)..=Nanos::from_millis(10)).contains(&npcc.tick) {
        let message = format!("a tick of {} is out of range", npcc.tick);
        let hint = format!("write 5us to 10ms; {} is usual", defaults::TICK);
        check.error(&path("tick"), message, hint);
    } else if npcc.recovery > Nanos::from_millis(1_000) {
        let message = format!("a recovery of {} is out of range", npcc.recovery);
        let hint = format!("write 1us to 1s; {} is usual", defaults::RECOVERY);
        check.error(&path("recovery"), message, hint);
    } else if npcc.recovery < npcc.tick && check.certain(&path("tick")) {
        let message = format!(
            "recovery ({}) is shorter than a tick ({})",
            npcc.recovery, npcc.tick
        );
        let hint = format!(
            "set it to the NIC's rate-increase timer, usually {}, above the tick",
            defaults::RECOVERY
        );
        let key = if check.written(&path("recovery")) {
            "recovery"
        } else {
            "tick"
        };
        check.error(&path(key), message, hint);
    }
    if npcc.min_cnp_interval < NIC_MIN_CNP_INTERVAL {
        let message = format!(
            "{} between CNPs to one flow is too little",
            npcc.min_cnp_interval
        );
        let hint = format!(
            "NICs ignore CNPs closer than {NIC_MIN_CNP_INTERVAL}; {} is usual",
            defaults::MIN_CNP_INTERVAL
        );
        check.error(&path("min_cnp_interval"), message, hint);
    }
    if npcc.feedback.0 == 0 || npcc.feedback > Nanos(1_000_000_000) {
        let message = format!("a feedback delay of {} cannot be", npcc.feedback);
        let hint = format!("write the near round trip, such as {}", defaults::FEEDBACK);
        check.error(&path("feedback"), message, hint);
    }
}

fn sizes(check: &mut Check<'_>) {
    let npcc = &check.file.npcc;
    let flows = npcc.flows.0;
    if !(64..=16 << 20).contains(&flows) {
        let message = format!("a flow table of {flows} entries cannot be");
        let hint = format!("write 64 to 16M; {} is usual", defaults::FLOWS);
        check.error(&path("flows"), message, hint);
    }
}

fn trusted(check: &mut Check<'_>) {
    let names = &check.file.npcc.trusted_ports;
    for (i, name) in names.iter().enumerate() {
        let path = path("trusted_ports").index(i);
        check.port_named(&path, name);
        if names[..i].contains(name) {
            check.error(&path, format!("port `{name}` is listed twice"), "keep one");
        }
    }
}

fn hosts(check: &mut Check<'_>) {
    let Hosts {
        allow,
        deny,
        observe,
        answering,
        cnp_intervals,
        unresponsive: _,
    } = &check.file.npcc.hosts;
    let lists = [
        ("allow", allow),
        ("deny", deny),
        ("observe", observe),
        ("answering", answering),
    ];
    for (key, prefixes) in lists {
        for (i, prefix) in prefixes.iter().enumerate() {
            let at = path("hosts").key(key).index(i);
            if prefix.0.trunc() != prefix.0 {
                let message = format!("`{prefix}` has bits set beyond its length");
                check.error(&at, message, format!("write {}", prefix.0.trunc()));
            } else if prefixes[..i].contains(prefix) {
                check.error(&at, format!("`{prefix}` is listed twice"), "keep one");
            }
        }
    }
    for (prefix, interval) in cnp_intervals {
        let at = path("hosts").key("cnp_intervals").key(prefix.to_string());
        if prefix.0.trunc() != prefix.0 {
            let message = format!("`{prefix}` has bits set beyond its length");
            check.error(&at, message, format!("write {}", prefix.0.trunc()));
        }
        cnp_interval(check, &at, *interval);
    }
    for (i, prefix) in allow.iter().enumerate() {
        if deny.iter().any(|denied| denied.0.contains(&prefix.0)) {
            let message = format!("`{prefix}` is allowed and denied");
            let at = path("hosts").key("allow").index(i);
            check.error(&at, message, "who is denied is never told: keep one");
        }
    }
}

/// Checks the minimum interval of CNPs sent instead of marks: 1 us to 10 ms.
fn cnp_interval(check: &mut Check<'_>, at: &Path, interval: Nanos) {
    if !(Nanos::from_micros(1)..=Nanos::from_millis(10)).contains(&interval) {
        let message = format!("no network card keeps CNPs {interval} apart");
        let hint = "write 1us to 10ms, as the receiver's card is set; 4us is NVIDIA's, 50us DCQCN's as published";
        check.error(at, message, hint);
    }
}

fn cnp(check: &mut Check<'_>) {
    let cnp = &check.file.npcc.cnp;
    let at = |key: &str| path("cnp").key(key);
    cnp_interval(check, &at("interval"), cnp.interval);
    if cnp.earned.0 > 16 << 20 {
        let message = format!(
            "{} between two CNPs is more than most flows ever send",
            cnp.earned
        );
        let hint = format!("write 0 to 16MiB; {} is usual", Bytes(defaults::EARNED));
        check.error(&at("earned"), message, hint);
    }
    let cap = cnp.cap.basis_points();
    if cap == 0 {
        let hint = "write a share such as 5%; to send none, set enable: false on the port";
        check.error(&at("cap"), "with a cap of 0% no CNP is ever sent", hint);
    } else if !cap.is_multiple_of(10) {
        let message = format!("a cap of {} is finer than it is kept", cnp.cap);
        let hint = "write tenths of a percent, such as 0.1% or 5%";
        check.error(&at("cap"), message, hint);
    }
    let resolved = ResolvedQos::new(&check.file.qos).priorities[cnp.priority.index()];
    let enabled = check
        .file
        .ports
        .iter()
        .any(|p| p.npcc.as_ref().is_some_and(|n| n.enable));
    if enabled && resolved.scheduler != Scheduler::Strict {
        let message = format!(
            "CNPs leave by priority {}, which is not strict",
            cnp.priority
        );
        let hint = "they wait behind data there; choose a strict priority, such as 6";
        check.warn(&at("priority"), message, hint);
    }
    if enabled {
        cnp_dscp(check, &at("dscp"));
    }
}

/// Checks where the maps of this switch lead the DSCP of CNPs, by which those of hosts, and its own at the next switch, get their queue.
fn cnp_dscp(check: &mut Check<'_>, at: &Path) {
    let qos = ResolvedQos::new(&check.file.qos);
    let inputs = [
        "trust",
        "profile",
        "priorities",
        "default_priority",
        "dscp_to_priority",
    ];
    let certain = |key: &&str| check.certain(&Path::root("qos").key(key));
    let by_dscp = matches!(qos.trust, Trust::Dscp | Trust::Both);
    if !by_dscp || !inputs.iter().all(certain) {
        return;
    }
    let cnp = &check.file.npcc.cnp;
    let (dscp, own) = (cnp.dscp, cnp.priority);
    let to = qos.dscp[dscp.index()];
    let mut ports = check.file.ports.iter();
    let watched = ports.any(|port| {
        let npcc = port.npcc.as_ref().filter(|npcc| npcc.enable);
        npcc.is_some_and(|npcc| npcc.queues.iter().any(|queue| queue.byte() == to))
    });
    if to == own.byte() {
        return;
    }
    let map = Path::root("qos").key("dscp_to_priority").key(dscp);
    let at = if check.written(at) { at } else { &map };
    let lossless = qos.priorities[usize::from(to)].lossless;
    if lossless || watched {
        let message = format!("CNPs with DSCP {dscp} would wait with the data of priority {to}");
        let hint = format!(
            "qos.dscp_to_priority leads it there: choose one of priority {own}, such as 48"
        );
        check.error(at, message, hint);
    } else if check.written(at) {
        let message = format!(
            "DSCP {dscp} of CNPs leads to priority {to}; this switch sends its own by priority {own}"
        );
        let hint = format!(
            "write qos: {{ dscp_to_priority: {{ {dscp}: {own} }} }}, so that hosts' CNPs and those of a switch like this one go ahead of data too"
        );
        check.warn(at, message, hint);
    }
}

fn on_port(check: &mut Check<'_>, i: usize, npcc: &PortNpcc) {
    let file = check.file;
    let port = &file.ports[i];
    let queues = port_path(i).key("npcc").key("queues");
    if npcc.queues.is_empty() {
        let hint = "name the lossless priority, such as [3]";
        check.error(&queues, "npcc is enabled but watches no queue", hint);
    }
    check.once(&queues, &npcc.queues, "queue", "keep one");
    for (n, queue) in npcc.queues.iter().enumerate() {
        if *queue == file.npcc.cnp.priority {
            let message = format!("queue {queue} carries the CNPs themselves");
            let hint = "watch the queues of the data; see npcc.cnp.priority";
            check.error(&queues.index(n), message, hint);
        }
    }
    let actions = npcc
        .queue_actions
        .keys()
        .map(|queue| ("queue_actions", queue));
    let policies = npcc
        .queue_policies
        .keys()
        .map(|queue| ("queue_policies", queue));
    for (key, queue) in actions.chain(policies) {
        if !npcc.queues.contains(queue) {
            let path = port_path(i).key("npcc").key(key);
            let message = format!("queue {queue} is not watched");
            check.error(
                &path,
                message,
                "name one of the port's `queues`, or add it there",
            );
        }
    }
    parameters(check, i, npcc);
    let speed = port_path(i).key("speed");
    let vdev = Device::parse(&port.device).is_some_and(|d| d.is_virtual());
    if vdev && port.speed.is_none() && check.certain(&speed) {
        let message = format!("npcc on `{}` needs a speed", port.name);
        let hint = "a virtual device is unlimited, so no queue builds up; write speed: 10G";
        check.error_at_key(&port_path(i).key("npcc"), message, hint);
    }
}

/// Checks the parameters of the port's policy against those that the policy declares.
fn parameters(check: &mut Check<'_>, i: usize, npcc: &PortNpcc) {
    let at = port_path(i).key("npcc");
    for (queue, written) in &npcc.parameters {
        let policy = npcc.policy_of(queue.index());
        let mut kind = policy.new_policy(&check.file.npcc.queue());
        let (policy, declared) = (policy.name(), kind.parameters());
        let at_queue = at.key("parameters").key(queue);
        if !npcc.queues.contains(queue) && check.certain(&at.key("queues")) {
            let message = format!("queue {queue} is not watched");
            let hint = "name one of the port's `queues`, or add it there";
            check.error_at_key(&at_queue, message, hint);
        }
        if !check.certain(&at.key("policy")) || !check.certain(&path("tick")) {
            continue;
        }
        for (name, Written(text)) in written {
            let at = at_queue.key(name);
            let Some(parameter) = declared.iter().find(|one| one.name == name) else {
                let names: Vec<&str> = declared.iter().map(|one| one.name).collect();
                let hint = match nearest(name, &names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its parameters are {}", names.join(", ")),
                };
                let message = format!("policy `{policy}` has no parameter `{name}`");
                check.error_at_key(&at, message, hint);
                continue;
            };
            match parameter.unit.parse(text) {
                Ok(value) if kind.set(name, value).is_err() => {
                    let (low, high) = parameter.range;
                    let [value, low, high] = [value, low, high].map(|n| parameter.unit.text(n));
                    let message = format!("{value} is out of range for `{name}`");
                    check.error(&at, message, format!("write {low} to {high}"));
                }
                Ok(_) => {}
                Err(why) => check.error(&at, why.to_string(), format!("{why:#}")),
            }
        }
    }
}
