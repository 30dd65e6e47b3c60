//! Log messages for the operator: lines on standard error, or entries of the journal with fields where systemd started the switch.
//!
//! Code logs by `tracing`, off the packet path. A line is the message alone; the journal has the fields beside it, each with the prefix
//! `NPCC_`. A thread of its own (`npcc-log`) writes all text of the process ([`queue`]): messages, DPDK's log, panics, the totals, and
//! what a library prints. Nobody else waits for whoever reads it, except the end of the process, for a second.

mod entry;
pub mod lines;
mod queue;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use core_affinity::CoreId;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::stat::fstat;
use nix::unistd::{Pid, dup2_stderr, dup2_stdout, gettid};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

use self::queue::{Queue, Sink, Stream};
use crate::recorder::said::Recorded;

/// Socket on which the journal takes entries.
const JOURNAL: &str = "/run/systemd/journal/socket";
/// Longest time for which the end of the process waits until all is written.
const LIMIT: Duration = Duration::from_secs(1);

/// Log of this process, once it has one.
static LOG: OnceLock<&Log> = OnceLock::new();

/// Log of a process.
#[derive(Debug)]
struct Log {
    queue: Queue,
    /// Thread that writes.
    writer: OnceLock<Pid>,
    /// Standard error as the process was given it.
    stderr: OwnedFd,
    /// True if that is a terminal.
    terminal: bool,
}

/// Has a thread of its own write all text of this process from now on: messages go to the journal if standard error leads there, else to
/// standard error. Call it before anything is said.
///
/// # Errors
/// The system gives no descriptors or no thread.
pub fn init() -> anyhow::Result<()> {
    let log = Log::new().context("cannot make the log's queue")?;
    // The thread uses it until the process ends.
    let log: &'static Log = Box::leak(Box::new(log));
    let writer = std::thread::Builder::new().name("npcc-log".to_owned());
    let started = writer.spawn(|| {
        let _ = log.writer.set(gettid());
        log.queue.write()
    });
    started.context("cannot start the log's thread")?;
    // It can be moved from here on.
    log.writer.wait();
    LOG.set(log)
        .map_err(|_| anyhow!("this process has a log already"))?;
    if let Some(inlet) = log.queue.inlet(Stream::Error) {
        dup2_stderr(inlet)?;
    }
    if let Some(inlet) = log.queue.inlet(Stream::Output) {
        dup2_stdout(inlet)?;
    }
    log.queue.unwritten().before_abort(LIMIT)?;
    std::panic::set_hook(Box::new(panicked));
    npcc_dpdk::log_to(|text| say(Stream::Error, text)).map_err(|error| anyhow!(error))?;
    if log.queue.inlet(Stream::Journal).is_some() {
        tracing::subscriber::set_global_default(registry().with(Entries).with(Recorded))?;
    } else {
        tracing::subscriber::set_global_default(registry().with(Lines).with(Recorded))?;
    }
    Ok(())
}

/// Moves the thread that writes to a core.
pub fn move_to(core: CoreId) {
    let writer = LOG.get().and_then(|log| log.writer.get());
    let mut cores = CpuSet::new();
    if let Some(writer) = writer
        && cores.set(core.id).is_ok()
    {
        // If pinning fails, it costs some reaction time and nothing else.
        let _ = sched_setaffinity(*writer, &cores);
    }
}

impl Log {
    fn new() -> io::Result<Log> {
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        let mut sinks = vec![
            (Stream::Error, Sink::File(stderr.try_clone()?)),
            (Stream::Output, Sink::File(stdout)),
        ];
        let mut log = Stream::Error;
        if leads_to_the_journal()
            && let Ok(from) = journal(Path::new(JOURNAL))
        {
            log = Stream::Journal;
            sinks.insert(1, (log, Sink::Journal(from, PathBuf::from(JOURNAL))));
        }
        Ok(Log {
            terminal: stderr.is_terminal(),
            queue: Queue::new(sinks, log)?,
            writer: OnceLock::new(),
            stderr,
        })
    }
}

/// Returns a socket to send to the journal from, if something listens there.
fn journal(path: &Path) -> io::Result<UnixDatagram> {
    // Connecting waits for nobody. The socket that stays is not connected: a journal that starts anew has another socket by this path.
    UnixDatagram::unbound()?.connect(path)?;
    UnixDatagram::unbound()
}

/// Logs a line for the operator.
pub fn note(text: &str) {
    tracing::warn!("{text}");
}

/// Prints text to standard output.
pub fn print(text: &str) {
    say(Stream::Output, text.as_bytes());
}

/// Prints a line to standard error.
pub fn print_error(line: &str) {
    say(Stream::Error, format!("{line}\n").as_bytes());
}

/// Returns standard error for a child process: as this process was given it.
#[must_use]
pub fn stderr() -> Stdio {
    let own = LOG.get().and_then(|log| log.stderr.try_clone().ok());
    own.map_or_else(Stdio::inherit, Stdio::from)
}

/// Returns true if standard error is a terminal.
#[must_use]
pub fn is_terminal() -> bool {
    LOG.get()
        .map_or_else(|| io::stderr().is_terminal(), |log| log.terminal)
}

/// Waits until all that was said is written, a second at most; called last in the process.
pub fn finish() {
    if let Some(log) = LOG.get() {
        log.queue.report();
        log.queue.unwritten().wait(LIMIT);
    }
}

/// Queues text; a process without a log, as of a command, writes it itself.
fn say(stream: Stream, text: &[u8]) {
    // If the stream is closed the text is lost.
    let _ = match (LOG.get(), stream) {
        (Some(log), _) => {
            log.queue.say(stream, text);
            Ok(())
        }
        (None, Stream::Output) => io::stdout().write_all(text),
        (None, _) => io::stderr().write_all(text),
    };
}

/// Says that a thread panics, in one message.
fn panicked(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("without a name");
    let mut text = format!("thread {name}: {panic}\n");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        // Writing to a string does not fail.
        let _ = write!(text, "{trace}");
    }
    say(Stream::Error, text.as_bytes());
}

/// Returns true if standard error is the stream that systemd made for the journal, by `JOURNAL_STREAM`.
fn leads_to_the_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    fstat(io::stderr()).is_ok_and(|file| stream == format!("{}:{}", file.st_dev, file.st_ino))
}

/// Layer that sends messages as entries to the journal.
struct Entries;

impl<S: Subscriber> Layer<S> for Entries {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        say(Stream::Journal, &entry::of(event));
    }
}

/// Layer that writes messages as lines to standard error.
struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        if is_terminal() {
            // Erases the progress line, which is written again later.
            line.0.insert_str(0, "\r\x1b[K");
        }
        print_error(&line.0);
    }

    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        // Debug messages are for the journal's readers, who enable them.
        *metadata.level() <= tracing::Level::INFO
    }
}

/// Message of an event.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Layer that keeps the lines instead of writing them.
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }

    #[test]
    fn a_line_is_the_message_without_its_fields() {
        let kept = Arc::default();
        let subscriber = registry().with(Kept(Arc::clone(&kept)));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(uid = 0, port = "wan0", "{}", "a change");
            note("note: none");
        });
        assert_eq!(*kept.lock().unwrap(), ["a change", "note: none"]);
    }
}
