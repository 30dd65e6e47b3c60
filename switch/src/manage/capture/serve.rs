//! Server side of a capture: from the command to the workers until the client is gone.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, TryLockError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use npcc_api::capture::{CaptureEnd, CaptureLine, CaptureRequest, CaptureStart, CapturedFrame};
use npcc_api::protocol::{ApiError, Reply, status};
use npcc_pipeline::capture::{CaptureOrder, Event, Filter, Tracked};
use npcc_pipeline::units::{MAX_PORTS, PortId, Priority};

use super::rings::Captures;
use crate::manage::errors::of_worker;
use crate::manage::http::lines::{Lines, Unanswered};
use crate::manage::management::Management;
use npcc_engine::worker::command::{WorkerCommand, WorkerCommands};

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

/// Captures, and writes the lines of the answer. `log` gets whether it began.
pub(in crate::manage) fn write(
    wanted: &CaptureRequest,
    management: &Management,
    out: &mut Lines,
    log: impl FnOnce(&Reply),
) -> Result<(), Unanswered> {
    let begun = begin(wanted, management);
    let reply = begun
        .as_ref()
        .map_or_else(|why| Reply::Refused(why.clone()), |_| Reply::Done);
    log(&reply);
    let Begun {
        mut captures,
        start,
        id,
        on,
        lost,
    } = begun?;
    line(out, &CaptureLine::Start(start))?;
    out.flush()?;
    let mut run = Run {
        captures: &mut captures,
        id,
        written: 0,
        most: wanted.count.unwrap_or(u64::MAX),
    };
    let deadline = wanted
        .for_ms
        .and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
    let is_ended = || management.view.ended_capture().load(Ordering::Relaxed) == id;
    let why = run.until_ended(out, |out| {
        if out.is_stopping() {
            Some("stop")
        } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some("time")
        } else {
            (is_ended() || out.is_gone()).then_some("client")
        }
    })?;
    drop(on);
    run.rest(out)?;
    let end = CaptureEnd {
        captured: run.written,
        lost: run.captures.lost().wrapping_sub(lost),
        why: why.to_owned(),
    };
    Ok(line(out, &CaptureLine::End(end))?)
}

fn line(out: &mut Lines, line: &CaptureLine) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
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
) -> Result<CaptureOrder, ApiError> {
    let bad = |why: String| ApiError::new(status::BAD_REQUEST, why);
    let filter = Filter::parse(&wanted.filter).map_err(|error| bad(error.to_string()))?;
    if wanted.snaplen == 0 || wanted.priority.is_some_and(|queue| queue > 7) {
        return Err(bad(
            "write a snaplen of 1 to 65535 and a priority of 0 to 7".to_owned(),
        ));
    }
    let ports = match &wanted.port {
        None => u32::MAX,
        Some(name) => management
            .port(name)
            .map(PortId::bit)
            .ok_or_else(|| management.no_port(name))?,
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
fn begin<'a>(wanted: &CaptureRequest, management: &'a Management) -> Result<Begun<'a>, ApiError> {
    let mut captures = match management.captures.try_lock() {
        Ok(captures) => captures,
        Err(TryLockError::Poisoned(captures)) => captures.into_inner(),
        Err(TryLockError::WouldBlock) => {
            let why = "another capture runs";
            let hint = "end it first, one runs at a time";
            return Err(ApiError::with_hint(status::CONFLICT, why, hint));
        }
    };
    let (id, lost) = (captures.begin(), captures.lost());
    let order = order(wanted, id, management)?;
    let view = &management.view;
    let start = CaptureStart {
        id,
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
    given.map_err(of_worker)?;
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
        out: &mut Lines,
        ended: impl Fn(&Lines) -> Option<&'static str>,
    ) -> io::Result<&'static str> {
        loop {
            let more = self.batch(out)?;
            if self.written >= self.most {
                return Ok("count");
            }
            if let Some(why) = ended(out) {
                return Ok(why);
            }
            if !more {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Writes at most [`BATCH`] copied frames; returns true if there may be more.
    fn batch(&mut self, out: &mut Lines) -> io::Result<bool> {
        for _ in 0..BATCH {
            if self.written >= self.most {
                break;
            }
            let Some(record) = self.captures.next(self.id) else {
                out.flush()?;
                out.rests();
                return Ok(false);
            };
            let frame =
                Event::decode(record).map(|(event, octets)| CapturedFrame::of(&event, octets));
            // The rings have whole records only.
            let frame = frame.ok_or(ErrorKind::InvalidData)?;
            line(out, &CaptureLine::Frame(frame))?;
            self.written += 1;
        }
        Ok(true)
    }

    /// Writes the frames copied before the workers ended the capture.
    fn rest(&mut self, out: &mut Lines) -> io::Result<()> {
        let deadline = Instant::now() + STOP;
        while self.captures.is_on(self.id) && Instant::now() < deadline {
            while self.batch(out)? && self.written < self.most {}
            std::thread::sleep(NAP);
        }
        while self.written < self.most && self.batch(out)? {}
        Ok(())
    }
}
