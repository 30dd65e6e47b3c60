//! `npcc-switch techsupport [-o FILE]`: all that whoever helps wants to see, in one archive.
//!
//! Law: what cannot be had is named with the reason in the archive's MANIFEST, and the rest is there all the same: a switch
//! that does not answer is when it is wanted.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use npcc_appliance::manage::query::Query;
use npcc_appliance::manage::tables;
use npcc_doctor::Host;

use super::{Failure, doctor, say, show};

/// The package's configuration.
const CONFIG: &str = "/etc/npcc-switch/npcc-switch.yaml";
/// Rows of tables that may have very many.
const ROWS: usize = 10_000;
/// Bytes of a part at most, so that no log makes the archive too large to send.
const LONGEST: usize = 32 << 20;

#[derive(Debug, Args)]
pub(super) struct TechsupportArgs {
    /// Archive to write; default npcc-switch-HOST-TIME.tar.gz in this folder
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Configuration file of the switch
    #[arg(short = 'c', long, value_name = "FILE", default_value = CONFIG)]
    config: PathBuf,
    /// Management socket of the switch
    #[arg(long, value_name = "PATH", default_value = npcc_appliance::manage::DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// What the system tells beside the switch: the name in the archive, and the command.
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

/// An archive that is being written, and what is in it.
struct Bundle {
    archive: tar::Builder<GzEncoder<File>>,
    folder: String,
    manifest: String,
    time: u64,
}

impl Bundle {
    fn new(path: &Path, folder: String) -> anyhow::Result<Bundle> {
        // Addresses and routes are nobody else's business.
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let file = options
            .open(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Bundle {
            archive: tar::Builder::new(GzEncoder::new(file, Compression::default())),
            folder,
            manifest: String::new(),
            time: time.unwrap_or_default().as_secs(),
        })
    }

    /// Puts a part in, or says in the manifest why it is not there.
    fn add(&mut self, name: &str, part: Result<String, String>) -> anyhow::Result<()> {
        match part {
            Ok(text) => {
                let end = text.floor_char_boundary(LONGEST);
                let cut = if end < text.len() { ", cut off" } else { "" };
                let _ = writeln!(self.manifest, "{name}: {} bytes{cut}", text.len());
                self.put(name, text.get(..end).unwrap_or_default())
            }
            Err(why) => {
                let _ = writeln!(self.manifest, "{name}: absent: {}", why.trim());
                Ok(())
            }
        }
    }

    fn put(&mut self, name: &str, text: &str) -> anyhow::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(self.time);
        let path = format!("{}/{name}", self.folder);
        let put = self.archive.append_data(&mut header, path, text.as_bytes());
        put.context("cannot write the archive")
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let manifest = std::mem::take(&mut self.manifest);
        self.put("MANIFEST", &manifest)?;
        let file = self.archive.into_inner().and_then(GzEncoder::finish);
        let flushed = file.and_then(|mut file| file.flush());
        flushed.context("cannot write the archive")
    }
}

fn text_of(failure: Failure) -> String {
    match failure {
        Failure::Config(message) => message,
        Failure::Runtime(error) => format!("{error:#}"),
    }
}

/// What a command prints, on either stream.
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

pub(super) fn run(args: &TechsupportArgs) -> Result<(), Failure> {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let host = answer(&["uname", "-n"]).unwrap_or_default();
    let stamp: String = now.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let name = format!("npcc-switch-{}-{stamp}", host.trim());
    let path = args.output.clone();
    let path = path.unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    let mut bundle = Bundle::new(&path, name)?;
    bundle.add(
        "VERSION",
        Ok(format!("npcc-switch {}\n{now}\n", env!("NPCC_VERSION"))),
    )?;
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path);
        text.map_err(|error| format!("{}: {error}", path.display()))
    };
    let config = read(&args.config);
    let configured = config.is_ok().then(|| args.config.clone());
    bundle.add("npcc-switch.yaml", config)?;
    let query = Query {
        top: Some(ROWS),
        ..Query::default()
    };
    for table in tables::ALL {
        let json = show::json(&args.socket, table, &query).map_err(text_of);
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
    )?;
    for (name, command) in COMMANDS {
        bundle.add(name, answer(command))?;
    }
    for (name, path) in FILES {
        bundle.add(name, read(Path::new(path)))?;
    }
    bundle.finish()?;
    say(&format!("{}\n", path.display()))
}
