//! `npcc-switch techsupport [-o FILE]`: all that whoever helps wants to see, in one archive.
//!
//! Law: what cannot be had is named with the reason in the archive's MANIFEST, and the rest is there all the same: a switch
//! that does not answer is when it is wanted.
//!
//! After a crash the next start has one written by itself (`--after-crash`), where the service manager gives a folder for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use clap::Args;
use npcc_api::query::Query;
use npcc_appliance::manage::tables;
use npcc_config::regular;
use npcc_doctor::Host;
use npcc_engine::recorder::place;
use npcc_engine::recorder::read::Reading;

use super::bundle::Bundle;
use super::socket::SocketArg;
use super::{CONFIG, Failure, core_file, doctor, reports, say, show};

/// Rows of tables that may have very many.
const ROWS: usize = 10_000;
/// How long a report of a crash waits for the switch that starts.
const START: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
pub(super) struct TechsupportArgs {
    /// Archive to write; default npcc-switch-HOST-TIME.tar.gz in this folder
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write to the service's folder, unless there is a recent report of a crash there
    #[arg(long, hide = true, conflicts_with = "output")]
    after_crash: bool,
    /// Configuration file of the switch
    #[arg(short = 'c', long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    #[command(flatten)]
    socket: SocketArg,
}

/// Commands that describe the system beside the switch: the name in the archive, and the command.
const COMMANDS: [(&str, &[&str]); 9] = [
    ("host/kernel.txt", &["uname", "-a"]),
    ("host/links.txt", &["ip", "-d", "-s", "link"]),
    ("host/addresses.txt", &["ip", "addr"]),
    ("host/pci.txt", &["lspci", "-nnk"]),
    ("host/cores.txt", &["lscpu", "-e"]),
    (
        "host/packages.txt",
        &[
            "dpkg-query",
            "-W",
            "npcc-switch",
            "librte-*",
            "libdpdk*",
            "linux-image-*",
        ],
    ),
    (
        "host/service.txt",
        &["systemctl", "--no-pager", "status", "npcc-switch"],
    ),
    (
        "log.txt",
        &[
            "journalctl",
            "--no-pager",
            "-u",
            "npcc-switch",
            "-n",
            "20000",
            "-o",
            "short-iso-precise",
        ],
    ),
    (
        "log.json",
        &[
            "journalctl",
            "--no-pager",
            "-u",
            "npcc-switch",
            "-n",
            "2000",
            "-o",
            "json",
        ],
    ),
];

/// Files of the system.
const FILES: [(&str, &str); 6] = [
    ("host/release.txt", "/etc/os-release"),
    ("host/cmdline.txt", "/proc/cmdline"),
    ("host/meminfo.txt", "/proc/meminfo"),
    ("host/mounts.txt", "/proc/self/mounts"),
    ("host/interrupts.txt", "/proc/interrupts"),
    ("host/sysctl.txt", "/etc/sysctl.d/80-npcc-switch.conf"),
];

fn text_of(failure: Failure) -> String {
    match failure {
        Failure::Config(message) => message,
        Failure::Runtime(error) => format!("{error:#}"),
    }
}

/// Output of a command, on either stream.
fn answer(words: &[&str]) -> Result<String, String> {
    let (program, rest) = words.split_first().ok_or("no command")?;
    let output = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Path of the archive; `None` where it is a report of a crash and there is one.
fn output(args: &TechsupportArgs, name: &str, stamp: &str) -> anyhow::Result<Option<PathBuf>> {
    if !args.after_crash {
        let path = args.output.clone();
        return Ok(Some(
            path.unwrap_or_else(|| format!("{name}.tar.gz").into()),
        ));
    }
    let folder = reports::folder().context("STATE_DIRECTORY names no folder for reports")?;
    let due = reports::due(&folder, stamp, SystemTime::now());
    due.with_context(|| format!("cannot look at the reports in {}", folder.display()))
}

/// Waits until the switch answers, for a time; whether it does.
fn await_switch(socket: &Path) -> bool {
    let deadline = Instant::now() + START;
    let Some(table) = tables::named("ports") else {
        return false;
    };
    loop {
        if show::json(socket, table, &Query::default()).is_ok() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(super) fn run(args: &TechsupportArgs) -> Result<(), Failure> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let host = answer(&["uname", "-n"]).unwrap_or_default();
    let stamp: String = now.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let name = format!("npcc-switch-{}-{stamp}", host.trim());
    let Some(path) = output(args, &name, &stamp)? else {
        return Ok(());
    };
    // Under another name until it is whole.
    let written = if args.after_crash {
        path.with_extension("part")
    } else {
        path.clone()
    };
    let mut bundle = Bundle::new(&written, name)?;
    bundle.add(
        "VERSION",
        Ok(format!("npcc-switch {}\n{now}\n", env!("NPCC_VERSION"))),
    )?;
    // First of all what the next crash would write over.
    add_recorders(&mut bundle, &args.socket.path)?;
    // One that is stuck would have every table waited for.
    let answers = !args.after_crash || await_switch(&args.socket.path);
    add_state(&mut bundle, args, answers)?;
    for (name, command) in COMMANDS {
        bundle.add(name, answer(command))?;
    }
    for (name, path) in FILES {
        bundle.add(name, text(Path::new(path)))?;
    }
    bundle.finish()?;
    if args.after_crash {
        keep(&written, &path)?;
    }
    say(&format!("{}\n", path.display()))
}

/// Gives a report of a crash its name, and removes the oldest.
fn keep(written: &Path, path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("cannot keep {}", path.display());
    std::fs::rename(written, path).with_context(cannot)?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    reports::thin_out(folder).context("cannot remove old reports")
}

/// The flight recorders of this run and the last, and the last one's core.
fn add_recorders(bundle: &mut Bundle, socket: &Path) -> anyhow::Result<()> {
    let mut crashed = None;
    let previous = place::previous(socket);
    let kept = place::read(&previous);
    let both = [
        ("recorder", place::beside(socket), place::find(socket)),
        (
            "recorder-previous",
            previous.clone(),
            kept.map(|reading| (previous, reading)),
        ),
    ];
    for (name, path, found) in both {
        let (path, reading) = match found {
            Ok((found, reading)) => (found, Ok(reading)),
            Err(error) => {
                let why = format!("{}: {error}", path.display());
                (path, Err(why))
            }
        };
        let json = reading.as_ref().map_err(Clone::clone).and_then(|reading| {
            serde_json::to_string_pretty(reading).map_err(|error| error.to_string())
        });
        bundle.add(&format!("{name}.json"), json)?;
        let text = reading.as_ref().map(ToString::to_string);
        bundle.add(&format!("{name}.txt"), text.map_err(Clone::clone))?;
        // Another version reads its own.
        bundle.add_file(&format!("{name}.bin"), Ok(path))?;
        // The one that runs has left no core.
        let runs = |reading: &Reading| Path::new("/proc").join(reading.pid.to_string()).exists();
        crashed = crashed.or_else(|| reading.ok().filter(|reading| !runs(reading)));
    }
    let core = crashed.ok_or_else(|| "no run that has ended left a recorder".to_owned());
    let core = core.and_then(|reading| {
        let begun = humantime::parse_rfc3339(&reading.begun).map_err(|error| error.to_string())?;
        core_file::newest(begun, Path::new(&reading.folder))
    });
    let name = match core.as_ref().map(|path| path.extension()) {
        Ok(Some(end)) if end == "zst" || end == "lz4" || end == "xz" => {
            format!("core.{}", end.display())
        }
        _ => "core".to_owned(),
    };
    bundle.add_file(&name, core)
}

/// A file's text, or why it cannot be had.
fn text(path: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(path);
    text.map_err(|error| format!("{}: {error}", path.display()))
}

/// The configuration, what the switch shows, and what the doctor finds.
fn add_state(bundle: &mut Bundle, args: &TechsupportArgs, answers: bool) -> anyhow::Result<()> {
    let config = regular::read(&args.config);
    let config = config.map_err(|error| format!("{}: {error}", args.config.display()));
    let config = config.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let configured = config.is_ok().then(|| args.config.clone());
    bundle.add("npcc-switch.yaml", config)?;
    let query = Query {
        top: Some(ROWS),
        ..Query::default()
    };
    for table in tables::ALL {
        let json = if answers {
            show::json(&args.socket.path, table, &query).map_err(text_of)
        } else {
            Err("the switch does not answer".to_owned())
        };
        bundle.add(&format!("show/{}.json", table.name), json)?;
    }
    let diagnosis = doctor::diagnosis(configured, &Host::this()).map_err(text_of);
    let json = diagnosis
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|diagnosis| {
            serde_json::to_string_pretty(diagnosis).map_err(|error| error.to_string())
        });
    bundle.add("doctor.json", json)?;
    bundle.add(
        "doctor.txt",
        diagnosis.map(|diagnosis| diagnosis.to_string()),
    )
}
