//! Client side of a capture from a running switch ([`super::capture`]).

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use npcc_api::capture::{CaptureEnd, CaptureRequest, CaptureStart};
use npcc_api::protocol::{OTHER_ANSWER, Reply, Request};
use npcc_pipeline::capture::Event;

use super::client::connect_for;

/// Longest wait of one read before the request to stop is checked.
const SLICE: Duration = Duration::from_millis(50);
/// Time limit for the switch's answer, and for its end once it was asked to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// Running capture, until it is read to its end or dropped.
#[derive(Debug)]
pub struct Recording {
    from: BufReader<Source>,
    record: Vec<u8>,
    /// Data needed to interpret the frames.
    pub start: CaptureStart,
}

/// Next item of a capture.
#[derive(Debug)]
pub enum Next<'a> {
    /// A frame: its event, and as many of its bytes as were requested.
    Frame(Event, &'a [u8]),
    /// The end: no more frames follow.
    End(CaptureEnd),
}

impl Recording {
    /// Begins a capture. Once `enough` is set the client requests its end.
    ///
    /// # Errors
    /// Fails if no switch listens there, or it refuses; the error says why.
    pub fn begin(
        socket: &Path,
        request: CaptureRequest,
        enough: Arc<AtomicBool>,
    ) -> anyhow::Result<Recording> {
        let request = Request::Capture(Box::new(request));
        let mut stream = connect_for(socket, &request)?;
        stream
            .set_read_timeout(Some(SLICE))
            .context("cannot set a timeout")?;
        let line = serde_json::to_string(&request)? + "\n";
        // A switch with too many clients answers so without reading the request.
        let requested = std::io::Write::write_all(&mut stream, line.as_bytes());
        let mut from = BufReader::with_capacity(
            1 << 20,
            Source {
                stream,
                enough,
                waited: Some(Duration::ZERO),
                requested_to_end: false,
            },
        );
        let mut answer = String::new();
        let answered = from.read_line(&mut answer);
        if answer.is_empty() {
            requested.context("cannot ask the switch")?;
            answered.context("the switch did not answer")?;
        }
        let reply = serde_json::from_str(&answer).context(OTHER_ANSWER)?;
        from.get_mut().waited = None;
        match reply {
            Reply::Capturing(start) => Ok(Recording {
                from,
                record: Vec::new(),
                start: *start,
            }),
            other => Err(other.unexpected()),
        }
    }

    /// Returns true if the next frame has not arrived in full: time to show what was read.
    #[must_use]
    pub fn waits(&self) -> bool {
        let here = self.from.buffer();
        let length = here.first_chunk().map(|length| u32::from_le_bytes(*length));
        length.is_none_or(|length| here.len() - 4 < usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// Returns the next item; waits for it.
    ///
    /// # Errors
    /// Fails if the switch went away, or sends what is no capture.
    pub fn read(&mut self) -> anyhow::Result<Next<'_>> {
        let mut length = [0; 4];
        let gone = "the switch went away before the capture ended";
        self.from.read_exact(&mut length).context(gone)?;
        let length = usize::try_from(u32::from_le_bytes(length))?;
        if length == 0 {
            let mut line = String::new();
            self.from.read_line(&mut line).context(gone)?;
            return Ok(Next::End(serde_json::from_str(&line)?));
        }
        self.record.resize(length.min(1 << 16), 0);
        self.from.read_exact(&mut self.record).context(gone)?;
        let (event, frame) = Event::decode(&self.record)
            .ok_or_else(|| anyhow!("the switch sent no frame; are both the same version?"))?;
        Ok(Next::Frame(event, frame))
    }
}

/// Capture stream, with the flag that ends it.
#[derive(Debug)]
struct Source {
    stream: UnixStream,
    enough: Arc<AtomicBool>,
    /// Time without data, where that is limited.
    waited: Option<Duration>,
    requested_to_end: bool,
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            if self.enough.load(Ordering::Relaxed) && !self.requested_to_end {
                self.requested_to_end = true;
                self.waited = Some(Duration::ZERO);
                // The next read detects a switch that is gone.
                let _ = self.stream.shutdown(Shutdown::Write);
            }
            match self.stream.read(into) {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    if let Some(waited) = &mut self.waited {
                        *waited += SLICE;
                        if *waited > PATIENCE {
                            return Err(ErrorKind::TimedOut.into());
                        }
                    }
                }
                other => return other,
            }
        }
    }
}
