//! Queues: what contradicts itself, and what a lossless queue does not yet get.

use std::cmp::Ordering;

use super::{Check, compare};
use crate::model::{EcnChoice, Priority, Scheduler};
use crate::plan::{EffectiveQos, PriorityPlan};
use crate::tree::Path;
use crate::units::{Percent, Threshold};

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let effective = EffectiveQos::new(&file.qos);
    for (n, own) in &file.qos.priorities {
        let path = Path::root("qos").key("priorities").key(n);
        priority(check, &path, own, &effective.priorities[n.index()]);
    }
    pause_is_missing(check, &effective);
}

fn priority(check: &mut Check<'_>, path: &Path, own: &Priority, plan: &PriorityPlan) {
    if own.weight.is_some() && plan.scheduler == Scheduler::Strict {
        let hint = "remove weight, or write scheduler: dwrr";
        check.error(&path.key("weight"), "a strict queue has no weight", hint);
    }
    if own.max_rate.is_some_and(|r| r.0 == 0) {
        let hint = "write a rate such as 1G; leave it out for no bound";
        check.error(&path.key("max_rate"), "a queue cannot have rate 0", hint);
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
        if plan.lossless {
            let hint = "remove wred here, or write lossless: false";
            check.error_at_key(&path, "a lossless queue cannot drop early", hint);
        }
    }
}

/// A ramp from one depth up to another, with a probability at the upper end.
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

/// Lossless queues are accepted, but pause is not there yet: the operator must know.
fn pause_is_missing(check: &mut Check<'_>, effective: &EffectiveQos) {
    let qos = Path::root("qos");
    let mut from_profile = false;
    for n in (0..8u8).filter(|n| effective.priorities[usize::from(*n)].lossless) {
        let path = qos.key("priorities").key(n).key("lossless");
        if check.written(&path) {
            let message = format!("priority {n} is lossless, but pause (PFC) is not available yet");
            check.warn(&path, message, ADVICE);
        } else {
            from_profile = true;
        }
    }
    if from_profile {
        let profile = qos.key("profile");
        let which = if check.written(&profile) {
            ""
        } else {
            " (the default)"
        };
        let message = format!(
            "profile roce-lossless{which}: queues, scheduling and ECN are set, but pause (PFC) is \
             not available yet"
        );
        check.warn(&profile, message, ADVICE);
    }
}

const ADVICE: &str = "frames can be lost under congestion until then; size buffer.pool for the \
                      bursts, or say profile: roce-semi-lossless";
