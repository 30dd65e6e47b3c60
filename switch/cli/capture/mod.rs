//! `npcc-switch capture`: frames of a running switch as pcapng, with what became of each as its comment.

mod pcapng;
pub(super) mod words;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use npcc_api::capture::{CaptureEnd, CaptureRequest};
use npcc_api::client::recording::{Next, Recording};
use npcc_pipeline::capture::Filter;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use self::pcapng::Pcapng;
use super::socket::SocketArg;
use super::{Failure, output};

#[derive(Debug, Args)]
pub(super) struct CaptureArgs {
    /// Only frames that come in by this port or leave by it
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Only frames of this queue: the priority of what comes in, the queue of what leaves
    #[arg(long, visible_alias = "priority", value_name = "N", value_parser = clap::value_parser!(u8).range(0..8))]
    queue: Option<u8>,
    /// Which frames: roce, cnp, pfc, dropped, or an expression such as `dropped and host 10.0.1.3 and not dscp 0`
    #[arg(
        long,
        value_name = "EXPRESSION",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// Write pcapng to this file, or to standard output where it is `-`
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    write: PathBuf,
    /// Keep so many bytes of each frame
    #[arg(long, value_name = "BYTES", default_value_t = u16::MAX, hide_default_value = true, value_parser = clap::value_parser!(u16).range(1..))]
    snaplen: u16,
    /// End after so many frames
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time, such as 10s or 500ms
    #[arg(long = "for", value_name = "TIME", value_parser = super::duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    socket: SocketArg,
}

pub(super) fn run(args: &CaptureArgs) -> Result<(), Failure> {
    checked(&args.filter)?;
    let request = CaptureRequest {
        port: args.port.clone(),
        priority: args.queue,
        filter: args.filter.clone(),
        snaplen: args.snaplen,
        count: args.count,
        for_ms: args.duration.map(millis),
        trace: None,
    };
    let recording = Recording::begin(&args.socket.path, request, until_signalled()?)?;
    let end = if args.write == Path::new("-") {
        write(recording, args, BufWriter::new(std::io::stdout().lock()))?
    } else {
        let file = output::create(&args.write, true)?;
        write(recording, args, BufWriter::new(file))
            .with_context(|| format!("cannot write {}", args.write.display()))?
    };
    super::say_error(&summary(&end));
    Ok(())
}

/// Refuses a filter that is none, and shows where.
pub(super) fn checked(filter: &str) -> Result<(), Failure> {
    let Err(error) = Filter::parse(filter) else {
        return Ok(());
    };
    // On one line, so that the mark stands under its character.
    let line: String = filter
        .chars()
        .map(|one| if one.is_whitespace() { ' ' } else { one })
        .collect();
    let mark = " ".repeat(error.column - 1);
    Err(Failure::Config(format!(
        "error: --filter: {error}\n  {line}\n  {mark}^"
    )))
}

/// Set by the first SIGINT or SIGTERM; the second ends the process.
pub(super) fn until_signalled() -> anyhow::Result<Arc<AtomicBool>> {
    let enough = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&enough))
            .and_then(|_| flag::register(signal, Arc::clone(&enough)))
            .context("cannot catch signals")?;
    }
    Ok(enough)
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Writes a capture to its end.
fn write(
    mut recording: Recording,
    args: &CaptureArgs,
    out: impl Write,
) -> anyhow::Result<CaptureEnd> {
    let mut file = Pcapng::new(out, &recording.start, (&args.filter, args.snaplen))?;
    file.flush()?;
    loop {
        if recording.waits() {
            file.flush()?;
        }
        match recording.read()? {
            Next::Frame(event, frame) => file.frame(&event, frame)?,
            Next::End(end) => {
                file.end(&end)?;
                file.flush()?;
                return Ok(end);
            }
        }
    }
}

/// How a capture ended, in a sentence.
fn summary(end: &CaptureEnd) -> String {
    let why = match end.why.as_str() {
        "stop" => "; the switch stopped",
        _ => "",
    };
    format!(
        "{} frames captured, {} lost for want of room in the capture{why}",
        end.captured, end.lost
    )
}
