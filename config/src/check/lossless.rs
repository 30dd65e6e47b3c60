//! Checks of lossless priorities: headroom that fits, pause that can be sent, marking below XOFF, the PFC watchdog's ranges.

use super::{Check, port_path};
use crate::model::{PfcBackend, PortPfc};
use crate::resolved::ResolvedQos;
use crate::sizing::{Link, Lossless, sends_pause};
use crate::tree::Path;
use crate::units::{Bytes, Nanos};

/// Minimum number of full frames for each lossless group in the shared part.
const FRAMES: u64 = 4;

pub(super) fn check(check: &mut Check<'_>) {
    watchdog(check);
    let effective = ResolvedQos::new(&check.file.qos);
    let mask = effective.lossless_mask();
    if mask == 0 || !inputs_certain(check) {
        return;
    }
    if !somebody_pauses(check, mask) {
        return;
    }
    let (room, links) = room(check, &effective);
    if fits(check, &room, &links) {
        marking_before_pause(check, &effective, &room);
    }
    shared_headroom(check, &room);
}

/// Divides the pool, and returns the link of each port that sends pause.
pub(super) fn room(check: &Check<'_>, effective: &ResolvedQos) -> (Lossless, Vec<Option<Link>>) {
    let file = check.file;
    let links: Vec<Option<Link>> = file
        .ports
        .iter()
        .map(|port| {
            sends_pause(port.pfc, file.pfc.backend, &port.device).then(|| {
                let (turn, workers) = (file.buffer.loop_time, file.cores.workers.len());
                Link::of_model(port, effective, turn, workers)
            })
        })
        .collect();
    let room = Lossless::new(&file.buffer, &links, file.linux.integrate);
    (room, links)
}

/// Returns true if all inputs of the headroom computation are the operator's.
pub(super) fn inputs_certain(check: &Check<'_>) -> bool {
    let qos = Path::root("qos");
    let buffer = Path::root("buffer");
    let ports = (0..check.file.ports.len()).all(|i| {
        [
            "device",
            "mtu",
            "speed",
            "cable",
            "peer_response",
            "tx_outstanding",
            "pfc",
        ]
        .iter()
        .all(|key| check.certain(&port_path(i).key(key)))
    });
    let pool = ["pool", "alpha", "shared_headroom", "loop_time"];
    ports
        && check.certain(&Path::root("ports"))
        && check.certain(&qos.key("profile"))
        && check.certain(&qos.key("priorities"))
        && pool.iter().all(|key| check.certain(&buffer.key(key)))
        && check.certain(&Path::root("pfc").key("backend"))
}

/// Refuses lossless priorities when no port sends pause, unless all have `pfc: off`; warns of each port that sends none.
fn somebody_pauses(check: &mut Check<'_>, mask: u8) -> bool {
    let file = check.file;
    let first = mask.trailing_zeros();
    let silent = |pfc: PortPfc| matches!(pfc, PortPfc::Off | PortPfc::Honour);
    let none = file.pfc.backend == PfcBackend::None;
    let all_off = file.ports.iter().all(|port| port.pfc == PortPfc::Off);
    if !file.ports.is_empty()
        && (none || !all_off && file.ports.iter().all(|port| silent(port.pfc)))
    {
        let message = format!("priority {first} is lossless, but no port sends pause");
        let hint = "write pfc: auto on the ports toward senders, or profile: roce-semi-lossless";
        let path = if none {
            Path::root("pfc").key("backend")
        } else {
            port_path(0).key("pfc")
        };
        check.error(&path, message, hint);
        return false;
    }
    for (i, port) in file
        .ports
        .iter()
        .enumerate()
        .filter(|(_, port)| silent(port.pfc))
    {
        let name = &port.name;
        let message = format!(
            "priority {first} is lossless, but `{name}` sends no pause: what arrives there can be lost"
        );
        let hint =
            "write pfc: auto if the peer obeys pause; else let the far end's buffer and NPCC do it";
        check.warn(&port_path(i).key("pfc"), message, hint);
    }
    true
}

/// Requires that headroom and reserves leave buffer for traffic.
fn fits(check: &mut Check<'_>, room: &Lossless, links: &[Option<Link>]) -> bool {
    let frame = links.iter().flatten().map(Link::frame).max().unwrap_or(0);
    let least = room.groups * FRAMES * frame;
    if room.shared >= least {
        return true;
    }
    let needed = Bytes(room.headroom + room.reserved + least);
    let (pool, headroom) = (check.file.buffer.pool, Bytes(room.headroom));
    let message = format!(
        "a pool of {pool} does not hold {headroom} of headroom for {} lossless groups",
        room.groups
    );
    let hint = format!(
        "{needed} is the least, some times that is useful; or shorten cable, lower mtu, or share it with shared_headroom"
    );
    check.error(&Path::root("buffer").key("pool"), message, hint);
    false
}

/// Requires that a queue is marked before its senders are paused; otherwise congestion control never acts.
fn marking_before_pause(check: &mut Check<'_>, effective: &ResolvedQos, room: &Lossless) {
    if room.groups == 0 {
        return;
    }
    let file = check.file;
    for (n, resolved) in (0u8..8).zip(&effective.priorities) {
        let Some(ecn) = resolved.ecn.filter(|_| resolved.lossless) else {
            continue;
        };
        let deepest = file.ports.iter().filter_map(|port| {
            // A link whose speed is not known yet is checked when it comes up.
            let speed = port.speed.or_else(|| port.link_speed.written())?;
            let drain = resolved.drain(Some(speed))?;
            Some((ecn.kmax.bytes_floored(drain, port.mtu.short()), &port.name))
        });
        let Some((kmax, name)) = deepest.max() else {
            continue;
        };
        if kmax <= room.least_xoff {
            continue;
        }
        let message = format!(
            "kmax ({}) of priority {n} comes to {} on `{name}`, above the least XOFF of {}",
            ecn.kmax,
            Bytes(kmax),
            Bytes(room.least_xoff)
        );
        let hint =
            "senders would be paused before they are marked; lower kmax or raise buffer.pool";
        let own = Path::root("qos")
            .key("priorities")
            .key(n)
            .key("ecn")
            .key("kmax");
        let path = if check.written(&own) {
            own
        } else {
            Path::root("buffer").key("pool")
        };
        check.error(&path, message, hint);
    }
}

fn shared_headroom(check: &mut Check<'_>, room: &Lossless) {
    let shared = check.file.buffer.shared_headroom;
    let largest = room.ports.iter().flatten().map(|room| room.headroom).max();
    let Some(largest) = largest.filter(|largest| shared.0 != 0 && shared.0 < *largest) else {
        return;
    };
    let message = format!(
        "a shared headroom of {shared} is less than the {} one group needs",
        Bytes(largest)
    );
    let hint = "raise it, or write 0 to give each group its own";
    check.error(&Path::root("buffer").key("shared_headroom"), message, hint);
}

/// Checks the watchdog against SONiC's ranges: detect 100 ms to 5 s, restore 100 ms to 60 s, poll at most 1 s and not longer than detect.
fn watchdog(check: &mut Check<'_>) {
    let watchdog = &check.file.pfc.watchdog;
    let path = |key: &str| Path::root("pfc").key("watchdog").key(key);
    let ms = Nanos::from_millis;
    let ranges = [
        ("detect", watchdog.detect, ms(100), ms(5_000)),
        ("restore", watchdog.restore, ms(100), ms(60_000)),
        ("poll", watchdog.poll, ms(1), ms(1_000)),
    ];
    for (key, value, least, most) in ranges {
        if value < least || value > most {
            let message = format!("{key} {value} is out of range");
            check.error(&path(key), message, format!("write {least} to {most}"));
        }
    }
    let share = watchdog.share;
    if !share.basis_points().is_multiple_of(100) || share.basis_points() <= 5_000 {
        let hint = "write 51% to 100%, without decimals; half of the time is a warning";
        check.error(
            &path("share"),
            format!("share {share} is out of range"),
            hint,
        );
    }
    if watchdog.poll > watchdog.detect && check.certain(&path("detect")) {
        let message = format!(
            "poll ({}) is above detect ({})",
            watchdog.poll, watchdog.detect
        );
        let hint = "a storm is found up to one poll late; half of detect is usual";
        let at = if check.written(&path("poll")) {
            "poll"
        } else {
            "detect"
        };
        check.error(&path(at), message, hint);
    }
}
