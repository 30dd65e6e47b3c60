//! Checks of queue depths against what a queue can hold: thresholds that no queue reaches, thresholds below one frame, and lossy queues
//! that may hold more than any sender waits for.

use super::{Check, lossless, port_path};
use crate::model::ConfigFile;
use crate::resolved::{ResolvedPriority, ResolvedQos};
use crate::sizing::LINK_HEADERS;
use crate::tree::Path;
use crate::units::{Bytes, Nanos, Threshold};

/// Longest time that frames should wait in a lossy queue: ten times the round trip of 500 km of fibre. Transports take longer ones for loss.
const LONGEST: Nanos = Nanos::from_millis(50);

pub(super) fn check(check: &mut Check<'_>) {
    if !lossless::inputs_certain(check) {
        return;
    }
    let effective = ResolvedQos::new(&check.file.qos);
    let (room, _) = lossless::room(check, &effective);
    let deepest = room.deepest_lossy(check.file.buffer.alpha_256());
    if deepest == 0 {
        return;
    }
    for (n, resolved) in (0u8..8).zip(&effective.priorities) {
        let path = Path::root("qos").key("priorities").key(n);
        if let Some(ecn) = resolved.ecn {
            let ends = [("kmin", ecn.kmin), ("kmax", ecn.kmax)];
            ramp(check, &path.key("ecn"), ends, (resolved, deepest), "marked");
        }
        if let Some(wred) = resolved.wred {
            let ends = [("min", wred.min), ("max", wred.max)];
            ramp(
                check,
                &path.key("wred"),
                ends,
                (resolved, deepest),
                "dropped early",
            );
        }
    }
    npcc(check, deepest);
    wait(check, &effective, deepest);
}

/// Returns the length of the longest frame of all ports.
fn longest_frame(file: &ConfigFile) -> u64 {
    let mtus = file.ports.iter().map(|port| u64::from(port.mtu.get()));
    mtus.max().unwrap_or(0) + LINK_HEADERS
}

/// Warns of a ramp that written values put where no depth ever is, or below one frame.
fn ramp(
    check: &mut Check<'_>,
    path: &Path,
    [low, high]: [(&str, Threshold); 2],
    (resolved, deepest): (&ResolvedPriority, u64),
    done: &str,
) {
    let file = check.file;
    // A depth in bytes is the same at every port; one that is a time is looked at where its rate is known.
    let depths = |depth: Threshold| -> Vec<u64> {
        let rates = file.ports.iter().filter_map(|port| {
            let drain = resolved.drain(port.speed.or_else(|| port.link_speed.written()))?;
            Some(depth.bytes_floored(drain, port.mtu.short()))
        });
        match depth {
            Threshold::Bytes(bytes) => vec![bytes.0],
            Threshold::Time(_) => rates.collect(),
        }
    };
    let (low_key, low) = low;
    if !resolved.lossless
        && check.written(&path.key(low_key))
        && let Some(least) = depths(low).into_iter().min().filter(|l| *l >= deepest)
    {
        let message = format!(
            "{low_key} ({low}) comes to {}, and the queue never holds more than {}: no frame is {done}",
            Bytes(least),
            Bytes(deepest / 1_000 * 1_000)
        );
        let hint = "lower it, or raise buffer.pool or buffer.alpha";
        check.warn(&path.key(low_key), message, hint);
    }
    let (high_key, high) = high;
    let frame = longest_frame(file);
    if check.written(&path.key(high_key))
        && let Some(most) = depths(high).into_iter().max().filter(|m| *m < frame)
    {
        let message = format!(
            "{high_key} ({high}) is less than a frame of {frame} bytes: whatever waits behind one is {done}"
        );
        let hint = format!("write some frames, such as {}", Bytes(most.max(8 * frame)));
        check.warn(&path.key(high_key), message, hint);
    }
}

/// Warns of NPCC's depths, in bytes, that no queue reaches or that one frame exceeds.
fn npcc(check: &mut Check<'_>, deepest: u64) {
    let file = check.file;
    let general = (Path::root("npcc"), Some(file.npcc.deep));
    let own = file.ports.iter().enumerate().map(|(i, port)| {
        let npcc = port.npcc.as_ref();
        (port_path(i).key("npcc"), npcc.and_then(|npcc| npcc.deep))
    });
    let frame = longest_frame(file);
    for (path, deep) in std::iter::once(general).chain(own) {
        let path = path.key("deep");
        let Some(Threshold::Bytes(deep)) = deep.filter(|_| check.written(&path)) else {
            continue;
        };
        // More than the pool is an error of its own.
        if (deepest..=file.buffer.pool.0).contains(&deep.0) {
            let message = format!(
                "deep ({deep}) is more than the {} that a lossy queue ever holds",
                Bytes(deepest)
            );
            let hint = "lower it, or raise buffer.pool or buffer.alpha";
            check.warn(&path, message, hint);
        } else if deep.0 > 0 && deep.0 < frame {
            let message = format!("deep ({deep}) is less than a frame of {frame} bytes");
            let hint = format!("write some frames, such as {}", Bytes(8 * frame));
            check.warn(&path, message, hint);
        }
    }
}

/// Warns once, at the slowest port, where a lossy queue that nothing but its limit bounds (no ECN, no WRED) may hold what it sends in more
/// than [`LONGEST`].
fn wait(check: &mut Check<'_>, effective: &ResolvedQos, deepest: u64) {
    let lossy = (0u8..8).zip(&effective.priorities).filter(|(n, p)| {
        let used = effective.dscp.contains(n) || effective.pcp.contains(n);
        used && !p.lossless && !p.is_control() && p.wred.is_none() && p.ecn.is_none()
    });
    let longest = check.file.ports.iter().enumerate().flat_map(|(i, port)| {
        let rate = port.speed.or_else(|| port.link_speed.written());
        lossy.clone().filter_map(move |(n, resolved)| {
            let drain = resolved.drain(rate).filter(|drain| drain.0 > 0)?;
            let ms = u128::from(deepest) * 8_000 / u128::from(drain.0);
            Some((ms, std::cmp::Reverse((i, n)), drain))
        })
    });
    let Some((ms, std::cmp::Reverse((i, n)), drain)) = longest.max() else {
        return;
    };
    if ms <= u128::from(LONGEST.0 / Nanos::from_millis(1).0) {
        return;
    }
    let port = &check.file.ports[i];
    let message = format!(
        "queue {n} of `{}` may hold {}, {ms}ms at {drain}, before it drops",
        port.name,
        Bytes(deepest / 1_000 * 1_000)
    );
    let key = if port.speed.is_some() {
        "speed"
    } else {
        "link_speed"
    };
    let hint = format!("lower buffer.pool or buffer.alpha, or give priority {n} a wred or ecn");
    check.warn(&port_path(i).key(key), message, hint);
}
