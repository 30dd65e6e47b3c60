//! Server side of a capture: from the command to the workers until the client is gone.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::socket::{MsgFlags, recv};
use npcc_api::capture::{CaptureEnd, CaptureRequest, CaptureStart};
use npcc_api::protocol::Reply;
use npcc_pipeline::capture::{CaptureOrder, Filter, Tracked};
use npcc_pipeline::units::{MAX_PORTS, PortId, Priority};
use serde::Serialize;

use super::rings::{Captures, RECORD};
use crate::manage::management::Management;
use crate::manage::patience::{Limits, Patience};
use crate::worker::command::{WorkerCommand, WorkerCommands};

/// Longest time for which a client may read nothing before it is dropped.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for the workers at the end: less than an answer may take when the switch stops.
const STOP: Duration = Duration::from_millis(250);
/// Sleep between polls of empty rings: a third of the time in which 10 Gb/s fill a ring.
const NAP: Duration = Duration::from_millis(1);
/// Frames written between checks for the end.
const BATCH: usize = 256;

/// Guard: the workers capture until it is dropped.
struct On<'a>(&'a WorkerCommands);

impl Drop for On<'_> {
    fn drop(&mut self) {
        // A worker that timed out forwards nothing either.
        let _ = self.0.enqueue(&[WorkerCommand::Capture(None)]);
    }
}

/// Carries a request out, and answers it. `log` gets the first reply.
pub(in crate::manage) fn serve(
    wanted: &CaptureRequest,
    management: &Management,
    (stream, stop): (&UnixStream, &AtomicBool),
    log: impl FnOnce(&Reply),
) -> io::Result<()> {
    let limits = Limits {
        idle: PATIENCE,
        overall: PATIENCE,
    };
    let mut patience = Patience::new(stream, limits, stop)?;
    patience.answer();
    let mut out = Out(BufWriter::with_capacity(RECORD, patience));
    let Begun {
        mut captures,
        start,
        id,
        on,
        lost,
    } = match begin(wanted, management) {
        Ok(begun) => begun,
        Err(why) => {
            let refused = Reply::Error(why);
            log(&refused);
            return out.line(&refused);
        }
    };
    let reply = Reply::Capturing(Box::new(start));
    log(&reply);
    out.line(&reply)?;
    let mut run = Run {
        captures: &mut captures,
        id,
        written: 0,
        most: wanted.count.unwrap_or(u64::MAX),
    };
    let deadline = wanted
        .for_ms
        .and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
    let why = run.until_ended(&mut out, || {
        if stop.load(Ordering::Relaxed) {
            Some("stop")
        } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some("time")
        } else {
            is_gone(stream).then_some("client")
        }
    })?;
    drop(on);
    run.rest(&mut out)?;
    let end = CaptureEnd {
        captured: run.written,
        lost: run.captures.lost().wrapping_sub(lost),
        why: why.to_owned(),
    };
    out.end(&end)
}

/// Capture that has begun.
struct Begun<'a> {
    start: CaptureStart,
    id: u32,
    /// Frames lost by earlier captures.
    lost: u64,
    on: On<'a>,
    captures: MutexGuard<'a, Captures>,
}

/// Builds the command to the workers.
fn order(
    wanted: &CaptureRequest,
    id: u32,
    management: &Management,
) -> Result<CaptureOrder, String> {
    let filter = Filter::parse(&wanted.filter).map_err(|error| error.to_string())?;
    let ports = match &wanted.port {
        None => u32::MAX,
        Some(name) => management.port(name).map(PortId::bit).ok_or_else(|| {
            let names = management.view.ports.iter().map(|port| port.name.as_str());
            let names: Vec<&str> = names.collect();
            format!("there is no port `{name}`: {}", names.join(", "))
        })?,
    };
    Ok(CaptureOrder {
        id,
        filter,
        ports,
        priorities: wanted
            .priority
            .map_or(u8::MAX, |priority| Priority::new(priority).bit()),
        snaplen: wanted.snaplen,
        tracked: wanted.trace.map(|most| Arc::new(Tracked::new(most))),
    })
}

/// Starts the capture in the workers, if no other capture runs.
fn begin<'a>(wanted: &CaptureRequest, management: &'a Management) -> Result<Begun<'a>, String> {
    let mut captures = match management.captures.try_lock() {
        Ok(captures) => captures,
        Err(TryLockError::Poisoned(captures)) => captures.into_inner(),
        Err(TryLockError::WouldBlock) => {
            return Err("another capture runs: end it first, one runs at a time".to_owned());
        }
    };
    let (id, lost) = (captures.begin(), captures.lost());
    let order = order(wanted, id, management)?;
    let view = &management.view;
    let start = CaptureStart {
        version: view.version.clone(),
        ports: view
            .ports
            .iter()
            .take(MAX_PORTS)
            .map(|port| (port.name.clone(), port.mac.to_string()))
            .collect(),
        epoch_ns: since_1970(),
        clock_ns: view.clock.now().0,
        scale: view.clock.scale(),
    };
    let given = management
        .workers
        .enqueue(&[WorkerCommand::Capture(Some(Box::new(order)))]);
    given.map_err(|unresponsive| unresponsive.to_string())?;
    Ok(Begun {
        start,
        id,
        lost,
        on: On(&management.workers),
        captures,
    })
}

fn since_1970() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    time.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Returns true if a client has gone away, or requests the end.
pub(in crate::manage) fn is_gone(stream: &UnixStream) -> bool {
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
    match recv(stream.as_raw_fd(), &mut [0], flags) {
        Ok(_) => true,
        Err(error) => error != nix::errno::Errno::EAGAIN,
    }
}

/// Running capture.
struct Run<'a> {
    captures: &'a mut Captures,
    id: u32,
    written: u64,
    most: u64,
}

impl Run<'_> {
    /// Writes captured frames until `most` are written or `ended` returns a reason; returns the reason.
    fn until_ended(
        &mut self,
        out: &mut Out<'_>,
        ended: impl Fn() -> Option<&'static str>,
    ) -> io::Result<&'static str> {
        loop {
            let more = self.batch(out)?;
            if self.written >= self.most {
                return Ok("count");
            }
            if let Some(why) = ended() {
                return Ok(why);
            }
            if !more {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Writes at most [`BATCH`] copied frames; returns true if there may be more.
    fn batch(&mut self, out: &mut Out<'_>) -> io::Result<bool> {
        for _ in 0..BATCH {
            if self.written >= self.most {
                break;
            }
            let Some(record) = self.captures.next(self.id) else {
                out.0.flush()?;
                return Ok(false);
            };
            out.record(record)?;
            self.written += 1;
        }
        Ok(true)
    }

    /// Writes the frames copied before the workers ended the capture.
    fn rest(&mut self, out: &mut Out<'_>) -> io::Result<()> {
        let deadline = Instant::now() + STOP;
        while self.captures.is_on(self.id) && Instant::now() < deadline {
            while self.batch(out)? && self.written < self.most {}
            std::thread::sleep(NAP);
        }
        while self.written < self.most && self.batch(out)? {}
        Ok(())
    }
}

/// Buffered stream of the answer.
struct Out<'a>(BufWriter<Patience<'a>>);

impl Out<'_> {
    fn line(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.0.get_mut().answer();
        serde_json::to_writer(&mut self.0, what)?;
        self.0.write_all(b"\n")?;
        self.0.flush()
    }

    /// Writes a record behind its length.
    fn record(&mut self, record: &[u8]) -> io::Result<()> {
        let length = u32::try_from(record.len()).map_err(|_| ErrorKind::InvalidData)?;
        // The client's time limits restart with each record.
        self.0.get_mut().answer();
        self.0.write_all(&length.to_le_bytes())?;
        self.0.write_all(record)
    }

    fn end(&mut self, end: &CaptureEnd) -> io::Result<()> {
        self.0.write_all(&0u32.to_le_bytes())?;
        self.line(end)
    }
}
