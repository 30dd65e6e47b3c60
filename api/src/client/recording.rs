//! Capture from a running switch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow};
use npcc_pipeline::capture::Event;
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::super::capture::{CaptureEnd, CaptureLine, CaptureRequest, CaptureStart};
use super::super::protocol::{OTHER_ANSWER, Request};
use super::{Lines, PATIENCE, ask, blocking};

/// Interval at which the request to stop is checked.
const SLICE: Duration = Duration::from_millis(50);

/// Running capture, until it is read to its end or dropped.
#[derive(Debug)]
pub struct Recording {
    runtime: Runtime,
    lines: Lines,
    socket: PathBuf,
    enough: Arc<AtomicBool>,
    is_ended: bool,
    frame: Vec<u8>,
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
        let runtime = blocking::runtime()?;
        let request = Request::Capture(Box::new(request));
        let (lines, start) = runtime.block_on(async {
            let mut lines = super::lines(socket, &request).await?;
            let line = lines.next().await?.ok_or_else(|| anyhow!(OTHER_ANSWER))?;
            let CaptureLine::Start(start) = serde_json::from_slice(line).context(OTHER_ANSWER)?
            else {
                return Err(anyhow!(OTHER_ANSWER));
            };
            // No frame may come for long.
            lines.patience = None;
            Ok((lines, start))
        })?;
        Ok(Recording {
            runtime,
            lines,
            socket: socket.to_owned(),
            enough,
            is_ended: false,
            frame: Vec::new(),
            start,
        })
    }

    /// Returns true if the next frame has not arrived in full: time to show what was read.
    #[must_use]
    pub fn waits(&self) -> bool {
        !self.lines.has_line()
    }

    /// Returns the next item; waits for it.
    ///
    /// # Errors
    /// Fails if the switch went away, or sends what is no capture.
    pub fn read(&mut self) -> anyhow::Result<Next<'_>> {
        let gone = "the switch went away before the capture ended";
        let id = self.start.id;
        let line: CaptureLine = self.runtime.block_on(async {
            if !self.is_ended && !self.lines.has_line() {
                tokio::select! {
                    line = self.lines.next() => {
                        let line = line?.ok_or_else(|| anyhow!(gone))?;
                        return Ok(serde_json::from_slice(line)?);
                    }
                    () = until(&self.enough) => {}
                }
            }
            if !self.is_ended && self.enough.load(Ordering::Relaxed) {
                self.is_ended = true;
                self.lines.patience = Some(PATIENCE);
                // A switch that is gone, or ends the capture by itself, is found by the next line.
                let _ = ask(&self.socket, &Request::EndCapture { id }).await;
            }
            let line = self.lines.next().await.context(gone)?;
            let line = line.ok_or_else(|| anyhow!(gone))?;
            anyhow::Ok(serde_json::from_slice(line)?)
        })?;
        match line {
            CaptureLine::Frame(frame) => {
                let (event, octets) = frame.event(id).ok_or_else(|| {
                    anyhow!("the switch sent no frame; are both the same version?")
                })?;
                self.frame = octets;
                Ok(Next::Frame(event, &self.frame))
            }
            CaptureLine::End(end) => Ok(Next::End(end)),
            CaptureLine::Start(_) => Err(anyhow!(OTHER_ANSWER)),
        }
    }
}

/// Waits for the request to stop.
async fn until(enough: &AtomicBool) {
    while !enough.load(Ordering::Relaxed) {
        sleep(SLICE).await;
    }
}
