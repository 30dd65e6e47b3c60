//! Post-mortem of the previous run, and the start of this run's flight recorder.
//!
//! Law: a run that did not end in order is reported in the log. After a crash the reporting command is started once, in parallel with the
//! start: nothing waits for it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use core_affinity::CoreId;
use npcc_config::Config;
use npcc_dpdk::Eal;
use npcc_heap::mark::Mark;

use super::source::{Options, Source};
use npcc_engine::log::{self, note};
use npcc_engine::recorder::read::Ending;
use npcc_engine::recorder::start::{About, Recorder, keep_previous};

/// Core dump filter of this process, as bits of core(5): its own anonymous memory and the headers of its files. Shared memory, where
/// packets lie, and hugepages are left out.
const DUMPED: &str = "0x11";

/// Keeps packet memory out of a core dump of this process; logs a note if that fails.
pub(super) fn keep_packets_out_of_cores(eal: &Eal) {
    let advised = eal.keep_out_of_cores();
    let filtered = std::fs::write("/proc/self/coredump_filter", DUMPED);
    let advised = advised.map_err(|error| error.to_string());
    let why = advised
        .err()
        .or_else(|| filtered.err().map(|error| error.to_string()));
    if let Some(why) = why {
        note(&format!(
            "note: packet memory may be in a core of this process: {why}"
        ));
    }
}

/// Keeps the previous run's recorder and begins this run's, into which `signal` writes. Call it once the sockets are this process's.
/// Returns `None` if the recorder cannot be made: the switch runs without one.
pub(super) fn look_back(
    source: &Source,
    options: &Options,
    core: Option<CoreId>,
    signal: &Mark,
) -> Option<Recorder> {
    let config = &source.loaded.config;
    let socket = Path::new(&config.telemetry.socket);
    let last = keep_previous(socket, &options.store);
    let recorder = begin(source, (config, options), socket);
    if let Some(recorder) = &recorder {
        recorder.note_signal(signal);
    }
    match last {
        Some(Ending::Panicked) => crashed("panicked", options, core),
        Some(Ending::Unknown) => crashed("ended without a word", options, core),
        Some(Ending::SecondSignal) => {
            note("note: the last run was ended by a second signal before it had stopped");
        }
        Some(Ending::Ordered) | None => {}
    }
    recorder
}

fn begin(
    source: &Source,
    (config, options): (&Config, &Options),
    socket: &Path,
) -> Option<Recorder> {
    let ports: Vec<String> = config.ports.iter().map(|port| port.name.clone()).collect();
    let about = About {
        version: &source.version,
        ports: &ports,
        workers: config.cores.workers.len(),
        time_scale: config.time_scale,
    };
    let begun = Recorder::begin(socket, &about, &options.store);
    let refused = begun.map_err(|error| note(&format!("note: no flight recorder: {error}")));
    refused.ok()
}

/// Records that all threads ended without a panic.
pub(super) fn ends_in_order(recorder: Option<&Recorder>) {
    if let Some(recorder) = recorder {
        recorder.end();
    }
}

/// Logs a crash of the previous run, and starts the reporting command if one is configured.
fn crashed(how: &str, options: &Options, core: Option<CoreId>) {
    note(&format!(
        "note: the last run {how}: `npcc-switch recorder --previous` has what it did last"
    ));
    if options.after_crash.is_empty() {
        return;
    }
    let command = options.after_crash.clone();
    let waiter = std::thread::Builder::new().name("npcc-report".to_owned());
    let started = waiter.spawn(move || {
        // The thread inherits the core: one that no worker polls, if there is one.
        if let Some(core) = core {
            let _ = core_affinity::set_for_current(core);
        }
        // The command's end is awaited, so that it leaves no zombie.
        let ended = run_to_end(&command);
        let why = match ended {
            Ok(status) if status.success() => return,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        note(&format!("note: no report of the last run: {why}"));
    });
    if let Err(error) = started {
        note(&format!("note: no report of the last run: {error}"));
    }
}

fn run_to_end(command: &[OsString]) -> std::io::Result<ExitStatus> {
    let (program, arguments) = command
        .split_first()
        .ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log::stderr())
        .status()
}
