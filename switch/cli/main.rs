//! `npcc-switch`: one binary, the appliance and its lab. The command line: arguments, exit codes, and one file for each subcommand.
//!
//! Exit codes: 0 fine, 1 runtime failure (a panic too), 2 bad usage or configuration; `run` ends with 130 or 143 at a second
//! SIGINT or SIGTERM.
#![forbid(unsafe_code)]

mod args;
mod bench;
mod bundle;
mod capture;
mod change;
mod check;
mod cnp;
mod core_file;
mod doctor;
mod drain;
mod ends;
mod gen_pcap;
mod generate;
mod manual;
mod output;
mod pair;
mod port;
mod recorder;
mod reports;
mod run;
mod schema;
mod show;
mod sim;
mod socket;
mod techsupport;
mod terminal;
mod top;
mod trace;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::{Args, CommandFactory, Parser, Subcommand};
use npcc_engine::log;

/// DPDK switch that tells RoCEv2 senders about congestion itself (NPCC), before the far receiver can.
#[derive(Debug, Parser)]
#[command(name = "npcc-switch", version = env!("NPCC_VERSION"), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Forward until signalled, then print totals
    Run(RunArgs),
    /// Validate a configuration; print what it needs
    Check(check::CheckArgs),
    /// Look at the host: what is wrong, where, and the command that mends it; exit code 1 if there is anything to mend
    Doctor(doctor::DoctorArgs),
    /// Show the state of a running switch
    Show(args::ShowArgs),
    /// Watch a running switch on a terminal screen: ports, queues with their zones, flows, CNPs a second
    Top(top::TopArgs),
    /// Start counters or watermarks anew
    Clear(change::ClearArgs),
    /// Change a value of a running switch, as its configuration has it; until `unset` or a restart
    Set(change::SetArgs),
    /// Have what `set` changed be as in the configuration file again
    Unset(change::UnsetArgs),
    /// Have the switch read its configuration file again: says what was applied and what needs a restart
    Reload(change::ReloadArgs),
    /// Take a port of a running switch up or down
    Port(port::PortArgs),
    /// Capture frames of a running switch, dropped ones with the reason, as pcapng for tshark and Wireshark
    Capture(capture::CaptureArgs),
    /// Follow packets through a running switch, stage by stage
    Trace(trace::TraceArgs),
    /// Have the neighbours send their traffic another way, wait until they do, and say so
    Drain(drain::DrainArgs),
    /// Have the neighbours send their traffic this way again
    Undrain(drain::UndrainArgs),
    /// Keep what `reload --confirm` applied
    Commit(change::CommitArgs),
    /// Take back what `reload --confirm` applied, now
    Rollback(change::RollbackArgs),
    /// Add or delete queue pairs known by other means
    Pair(pair::PairArgs),
    /// Send a congestion notification by hand, to find out how a card responds
    Cnp(cnp::CnpArgs),
    /// Run a scenario in simulated time; print a table, write CSV and HTML
    Sim(sim::SimArgs),
    /// Measure what a frame costs the dataplane on this machine: one line of figures per frame length
    Bench(bench::BenchArgs),
    /// Write a capture of valid RoCEv2 traffic, for pktgen, TRex and tests
    GenPcap(gen_pcap::GenPcapArgs),
    /// Print the JSON schema of the configuration, for editors
    Schema(schema::SchemaArgs),
    /// Write an archive for whoever helps: configuration, state, log, findings of `doctor`, versions
    Techsupport(techsupport::TechsupportArgs),
    /// Print the flight recorder: messages, decisions, odd frames and when each thread last moved, of this run or the last
    Recorder(recorder::RecorderArgs),
    /// Write manual pages and completions for shells
    #[command(hide = true)]
    Generate(generate::GenerateArgs),
}

/// The package's configuration.
const CONFIG: &str = "/etc/npcc-switch/npcc-switch.yaml";

#[derive(Debug, Args)]
struct RunArgs {
    /// Configuration file
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: PathBuf,
    /// Stop after this time, such as 10s or 500ms
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Write the final totals here, as JSON
    #[arg(long, value_name = "OUT")]
    stats_json: Option<PathBuf>,
    /// Route these prefixes too, dealt round the neighbours of the last port: for measurements
    #[arg(long, value_name = "FILE", hide = true)]
    routes: Option<PathBuf>,
    /// Make each frame the first port takes in the next flow's of this capture: for measurements
    #[arg(long, value_name = "FILE", hide = true)]
    stamps: Option<PathBuf>,
    /// Let the first port's endless source in by this timetable: for measurements
    #[arg(long, value_name = "FRAMES,GAP,PERIOD", hide = true)]
    timetable: Option<npcc_lab::pace::Schedule>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let time: npcc_config::units::Nanos = text.parse().map_err(|error| format!("{error}"))?;
    if time.0 == 0 {
        return Err("must be above 0".to_owned());
    }
    Ok(Duration::from_nanos(time.0))
}

/// Why a command failed, and with which exit code.
#[derive(Debug, derive_more::From)]
enum Failure {
    /// Code 2: the message is printed as it is.
    Config(String),
    /// Code 1.
    #[from]
    Runtime(anyhow::Error),
}

/// Route images, flow caches and ledgers in huge pages.
#[global_allocator]
static HEAP: npcc_heap::HugeHeap = npcc_heap::HugeHeap;

fn main() -> ExitCode {
    // They are known by their numbers, so before anything is opened.
    let handed = npcc_heap::inherited::claim();
    // clap prints its own mistakes and exits with 2, or help and exits with 0.
    let command = Cli::parse().command;
    // The panic has told where it was; whatever it passed on its way here has been taken down.
    let result = catch_unwind(AssertUnwindSafe(|| carry_out(command, handed)));
    let result = result
        .unwrap_or_else(|_| Err(anyhow!("a panic: this is a defect, please report it").into()));
    let code = match result {
        Ok(code) => code,
        Err(Failure::Config(message)) => {
            say_error(message.trim_end());
            ExitCode::from(2)
        }
        Err(Failure::Runtime(error)) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(Failure::Runtime(error)) => {
            say_error(&format!("error: {error:#}"));
            ExitCode::from(1)
        }
    };
    npcc_appliance::run::finish();
    code
}

/// Does what was asked for; `handed` are the descriptors a service manager gave.
fn carry_out(command: Command, handed: Vec<(String, OwnedFd)>) -> Result<ExitCode, Failure> {
    match command {
        Command::Doctor(args) => return doctor::run(&args),
        Command::Reload(args) => return change::reload(&args),
        Command::Run(args) => run::run(&args, handed),
        Command::Check(args) => check::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Clear(args) => change::clear(&args),
        Command::Set(args) => change::set(&args),
        Command::Unset(args) => change::unset(&args),
        Command::Drain(args) => drain::drain(&args),
        Command::Undrain(args) => drain::undrain(&args),
        Command::Commit(args) => change::commit(&args),
        Command::Rollback(args) => change::rollback(&args),
        Command::Top(args) => top::run(&args),
        Command::Port(args) => port::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Capture(args) => capture::run(&args),
        Command::Pair(args) => pair::run(&args),
        Command::Cnp(args) => cnp::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::GenPcap(args) => gen_pcap::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Techsupport(args) => techsupport::run(&args),
        Command::Recorder(args) => recorder::run(&args),
        Command::Generate(args) => generate::run(&args, Cli::command()),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn say_error(message: &str) {
    log::print_error(message);
}

/// The reader of our output went away, as `head` does.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Prints to stdout.
fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Runtime(error.into()))
}

/// Prints to stdout; colours are for a terminal only, and for none where `NO_COLOR` is set.
fn say_coloured(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Runtime(error.into()))
}

/// Reads a configuration; warnings go to stderr.
fn load(path: &Path) -> Result<npcc_config::Loaded, Failure> {
    let loaded = npcc_config::load(path).map_err(|report| Failure::Config(report.to_string()))?;
    for warning in &loaded.warnings {
        say_error(&warning.to_string());
    }
    Ok(loaded)
}
