//! Checks of the cores: which thread runs where.

use npcc_pipeline::num::real;

use super::{Check, port_path};
use crate::model::{ConfigFile, Idle};
use crate::resolved::ResolvedQos;
use crate::tree::Path;

pub(super) fn check(check: &mut Check<'_>) {
    idle(check);
    let cores = &check.file.cores;
    let workers = Path::root("cores").key("workers");
    if cores.workers.is_empty() {
        check.error(
            &workers,
            "there are no workers",
            "name one core, such as [1]",
        );
    }
    check.once(&workers, &cores.workers, "core", "name each core once");
    for (i, core) in cores.workers.iter().enumerate() {
        let shared = *core == cores.control && check.certain(&Path::root("cores").key("control"));
        if shared && real_tick(check.file) < SHARED_TICK {
            let message = format!("core {core} is also the control core");
            let hint = "a worker never yields its core; choose different ones, or widen npcc.tick to 1ms or more";
            check.error(&workers.index(i), message, hint);
        }
    }
    if let Some(core) = cores.housekeeping.written()
        && cores.workers.contains(&core)
        && check.certain(&workers)
    {
        let message = format!("core {core} is a worker's");
        let hint =
            "a worker never yields its core: write auto, or a core that is not in cores.workers";
        check.error(&Path::root("cores").key("housekeeping"), message, hint);
    }
    for (i, port) in check.file.ports.iter().enumerate() {
        let known = |core| check.file.cores.workers.contains(&core);
        if let Some(core) = port.worker.filter(|core| !known(*core)) {
            let message = format!("core {core} is no worker");
            let names: Vec<String> = check
                .file
                .cores
                .workers
                .iter()
                .map(ToString::to_string)
                .collect();
            let hint = format!("cores.workers has {}", names.join(", "));
            check.error(&port_path(i).key("worker"), message, hint);
        }
    }
}

/// Refuses `adaptive` with lossless priorities: a sleeping worker reacts to a filling queue and a peer's pause later than the headroom allows for.
fn idle(check: &mut Check<'_>) {
    let qos = Path::root("qos");
    let known = ["profile", "priorities"]
        .iter()
        .all(|key| check.certain(&qos.key(key)));
    let lossless = ResolvedQos::new(&check.file.qos).lossless_mask();
    if check.file.cores.idle != Idle::Adaptive || lossless == 0 || !known {
        return;
    }
    let first = lossless.trailing_zeros();
    let message = format!(
        "idle: adaptive does not go with lossless priority {first}: a worker that sleeps sends pause later than headroom allows for"
    );
    let hint = "write idle: poll, or a qos.profile without lossless priorities: lossy or roce-semi-lossless";
    check.error(&Path::root("cores").key("idle"), message, hint);
}

/// Shortest tick, in ns of real time, of a control thread that shares its core with a worker: the scheduler gives it the core for some time every
/// few milliseconds, or as it wakes.
const SHARED_TICK: f64 = 1e6;

/// Returns the tick in ns of real time.
fn real_tick(file: &ConfigFile) -> f64 {
    real(file.npcc.tick.0) * file.time_scale
}

/// EAL arguments that other keys determine, with those keys.
const OWNED: [(&str, &str); 10] = [
    ("-l", "cores"),
    ("-c", "cores"),
    ("--lcores", "cores"),
    ("--main-lcore", "cores.control"),
    ("--vdev", "ports, device"),
    ("-a", "ports, device"),
    ("--allow", "ports, device"),
    ("-b", "ports, device"),
    ("--block", "ports, device"),
    ("--no-huge", "dpdk.hugepages: off"),
];

/// Refuses EAL arguments that contradict other keys of the file.
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
