//! Checks of the detector's depths: in order, apart, and within the buffer.

use std::cmp::Ordering;

use super::{Check, compare, port_path};
use crate::model::Port;
use crate::resolved::Thresholds;
use crate::tree::Path;
use crate::units::{BitRate, Threshold};

const KEYS: [&str; 2] = ["shallow", "deep"];

pub(super) fn check(check: &mut Check<'_>) {
    let file = check.file;
    let general = Thresholds::merge(&file.npcc, None);
    let both = [file.npcc.shallow, file.npcc.deep].map(Some);
    not_zero(check, &Path::root("npcc"), both);
    order(check, general, None, |key| Path::root("npcc").key(key));
    for (i, port) in file.ports.iter().enumerate() {
        if port.npcc.as_ref().is_some_and(|n| n.enable) {
            on_port(check, i, port);
        }
    }
}

fn not_zero(check: &mut Check<'_>, path: &Path, values: [Option<Threshold>; 2]) {
    for (key, value) in KEYS.into_iter().zip(values) {
        if value.is_some_and(|v| v.bytes(BitRate(u64::MAX)) == 0) {
            let hint = "write a size, such as 20KB, or a time, such as 30us";
            check.error(&path.key(key), format!("{key} is 0"), hint);
        }
    }
}

fn on_port(check: &mut Check<'_>, i: usize, port: &Port) {
    let Some(own) = &port.npcc else { return };
    let path = port_path(i).key("npcc");
    not_zero(check, &path, [own.shallow, own.deep]);
    let thresholds = Thresholds::merge(&check.file.npcc, Some(own));
    let place = |key: &str| {
        let written = match key {
            "shallow" => own.shallow.is_some(),
            _ => own.deep.is_some(),
        };
        if written {
            path.key(key)
        } else {
            Path::root("npcc").key(key)
        }
    };
    let drain = port
        .speed
        .filter(|s| s.0 > 0)
        .map(|speed| (speed, port.mtu.short()));
    // A mistake in the general thresholds has been reported already.
    let general = Thresholds::merge(&check.file.npcc, None);
    let said = in_order(general, None) == Some(false) && thresholds == general;
    if !said {
        order(check, thresholds, drain, place);
    }
    if let Some((speed, mtu)) = drain.filter(|_| in_order(thresholds, drain) != Some(false)) {
        let uncertain = KEYS.iter().any(|key| !check.certain(&place(key)));
        if !uncertain && check.certain(&port_path(i).key("speed")) {
            sizes(check, i, thresholds, (speed, mtu), place);
        }
    }
}

/// Returns true if the depths are in order; `None` if that cannot be determined.
fn in_order(t: Thresholds, drain: Option<(BitRate, u16)>) -> Option<bool> {
    Some(compare(t.shallow, t.deep, drain)? == Ordering::Less)
}

fn order(
    check: &mut Check<'_>,
    t: Thresholds,
    drain: Option<(BitRate, u16)>,
    place: impl Fn(&str) -> Path,
) {
    let [shallow, deep] = KEYS.map(&place);
    let at = drain.map_or_else(String::new, |(speed, _)| format!(" at {speed}"));
    let known = check.certain(&shallow) && check.certain(&deep);
    let floor = if drain.is_some() {
        "; as a time each is at least 4 mtu"
    } else {
        ""
    };
    let low = compare(t.shallow, t.deep, drain);
    if matches!(low, Some(Ordering::Greater | Ordering::Equal)) && known {
        let message = format!("deep ({}) is not above shallow ({}){at}", t.deep, t.shallow);
        let path = if check.written(&deep) {
            &deep
        } else {
            &shallow
        };
        check.error(path, message, format!("write shallow < deep{floor}"));
    }
}

/// Warns if `shallow` and `deep` coincide at a port's speed; refuses a `deep` beyond the buffer.
fn sizes(
    check: &mut Check<'_>,
    i: usize,
    t: Thresholds,
    (speed, mtu): (BitRate, u16),
    place: impl Fn(&str) -> Path,
) {
    let [shallow, deep, _] = t.bytes(speed, mtu);
    if shallow == deep {
        let message = format!(
            "at {speed} shallow ({}) and deep ({}) both come to {deep} bytes, 4 mtu",
            t.shallow, t.deep
        );
        let hint = "the shallow zone is empty; give sizes, such as shallow: 40KB and deep: 100KB";
        check.warn(&port_path(i).key("npcc"), message, hint);
    }
    let pool = check.file.buffer.pool;
    if deep > pool.0 && check.certain(&Path::root("buffer").key("pool")) {
        let message = format!(
            "deep ({}) comes to {deep} bytes at {speed}, the buffer has {pool}",
            t.deep
        );
        let hint = "lower deep or raise buffer.pool: the queue can never be so deep";
        let at = place("deep");
        let at = if check.written(&at) {
            at
        } else {
            port_path(i).key("npcc")
        };
        check.error(&at, message, hint);
    }
}
