//! Checks of the queues for contradictions.

use std::cmp::Ordering;

use super::ports::plausible;
use super::{Check, compare};
use crate::model::{EcnChoice, Priority, Scheduler, Trust};
use crate::resolved::{ResolvedPriority, ResolvedQos};
use crate::tree::Path;
use crate::units::{Percent, Threshold};

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let effective = ResolvedQos::new(&file.qos);
    for (n, own) in &file.qos.priorities {
        let path = Path::root("qos").key("priorities").key(n);
        priority(check, &path, own, &effective.priorities[n.index()]);
    }
    pcp(check, &effective);
}

/// Refuses a PCP that leads to a lossless priority of another number: PFC names the priority of the frame's tag on the link, so a pause of
/// the queue's number stops other frames of the sender (IEEE 802.1Q-2018, clause 36).
fn pcp(check: &mut Check<'_>, effective: &ResolvedQos) {
    let qos = Path::root("qos");
    let inputs = [
        "trust",
        "profile",
        "priorities",
        "default_priority",
        "pcp_to_priority",
    ];
    if effective.trust != Trust::Pcp || !inputs.iter().all(|key| check.certain(&qos.key(key))) {
        return;
    }
    let lossless = effective.lossless_mask();
    let wrong = (0u8..8)
        .zip(effective.pcp)
        .find(|(pcp, to)| pcp != to && lossless & 1 << to != 0);
    let Some((pcp, to)) = wrong else {
        return;
    };
    let own = qos.key("pcp_to_priority").key(pcp);
    let default = qos.key("default_priority");
    let path = [own, default]
        .into_iter()
        .find(|path| check.written(path))
        .unwrap_or_else(|| qos.key("trust"));
    let message = format!("PCP {pcp} leads to lossless priority {to}, which PFC cannot pause");
    let hint = format!(
        "a pause of class {to} stops what a sender tags {to}, not {pcp}: lead only PCP {to} to it, or write trust: dscp"
    );
    check.error(&path, message, hint);
}

fn priority(check: &mut Check<'_>, path: &Path, own: &Priority, resolved: &ResolvedPriority) {
    if own.weight.is_some() && resolved.scheduler == Scheduler::Strict {
        let hint = "remove weight, or write scheduler: dwrr";
        check.error(&path.key("weight"), "a strict queue has no weight", hint);
    }
    if own.max_rate.is_some_and(|r| r.0 == 0) {
        let hint = "write a rate such as 1G; leave it out for no bound";
        check.error(&path.key("max_rate"), "a queue cannot have rate 0", hint);
    }
    if own.min_rate.is_some_and(|r| r.0 == 0) {
        let hint = "write a rate such as 1G; leave it out for none";
        check.error(&path.key("min_rate"), "a minimum of 0 is none", hint);
    }
    plausible(check, &path.key("max_rate"), own.max_rate);
    plausible(check, &path.key("min_rate"), own.min_rate);
    if let (Some(min), Some(max)) = (own.min_rate, own.max_rate)
        && min > max
        && check.certain(&path.key("max_rate"))
    {
        let message = format!("min_rate ({min}) is above max_rate ({max})");
        check.error(
            &path.key("min_rate"),
            message,
            "lower it, or raise max_rate",
        );
    }
    if let Some(EcnChoice::On(ecn)) = own.ecn {
        ramp(
            check,
            &path.key("ecn"),
            [("kmin", ecn.kmin), ("kmax", ecn.kmax)],
            ("pmax", ecn.pmax),
        );
    }
    if let Some(wred) = own.wred {
        let path = path.key("wred");
        ramp(
            check,
            &path,
            [("min", wred.min), ("max", wred.max)],
            ("prob", wred.prob),
        );
        if resolved.lossless {
            let hint = "remove wred here, or write lossless: false";
            check.error_at_key(&path, "a lossless queue cannot drop early", hint);
        }
    }
}

/// Checks a ramp from one depth up to another, with a probability at the upper end.
fn ramp(check: &mut Check<'_>, path: &Path, ends: [(&str, Threshold); 2], top: (&str, Percent)) {
    let [(low_key, low), (high_key, high)] = ends;
    let certain = check.certain(&path.key(low_key)) && check.certain(&path.key(high_key));
    if !certain {
        return;
    }
    let drains: Vec<_> = check
        .file
        .ports
        .iter()
        .filter_map(|p| p.speed.map(|speed| (speed, p.mtu.short())))
        .collect();
    let above = |drain| compare(low, high, drain) == Some(Ordering::Greater);
    if above(None) || drains.into_iter().any(|d| above(Some(d))) {
        let written = if check.written(&path.key(low_key)) {
            low_key
        } else {
            high_key
        };
        let message = format!("{low_key} ({low}) is above {high_key} ({high})");
        let hint = format!("raise {high_key} or lower {low_key}; both may be equal");
        check.error(&path.key(written), message, hint);
    }
    let (key, share) = top;
    if share.basis_points() == 0 {
        let message = format!("with {key} 0% nothing happens below {high_key}");
        check.error(
            &path.key(key),
            message,
            "write a share such as 10%, or remove the setting",
        );
    }
}
