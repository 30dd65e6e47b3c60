//! Asking a running switch.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};

use super::protocol::{Reply, Request};

/// How long a switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One question, one answer.
///
/// # Errors
/// When no switch listens there, or it does not answer; says what to do.
pub fn ask(socket: &Path, request: &Request) -> anyhow::Result<Reply> {
    let mut stream = UnixStream::connect(socket).map_err(|error| {
        let place = socket.display();
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                anyhow!("no switch listens on {place}: start one with `npcc-switch run -c FILE`, or name its telemetry.socket with --socket")
            }
            ErrorKind::PermissionDenied => {
                anyhow!("not allowed to use {place}: become root or join the group named by telemetry.group")
            }
            _ => anyhow!("cannot reach {place}: {error}"),
        }
    })?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .context("cannot set a timeout")?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream
        .write_all(line.as_bytes())
        .context("cannot ask the switch")?;
    let mut answer = String::new();
    BufReader::new(stream)
        .read_line(&mut answer)
        .context("the switch did not answer in 5 s")?;
    serde_json::from_str(&answer)
        .context("the switch answered something else; are both the same version?")
}
