//! Client side: requests to a running switch.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use npcc_api::ends::EndRow;
use npcc_api::protocol::{OTHER_ANSWER, Reply, Request};
use npcc_api::query::{End, Query};
use npcc_api::rows::RowLine;
use npcc_config::model::read_only_beside;
use serde_json::Value;

use super::connect;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time for a change of what runs: a large file is read, and threads are waited for.
const CHANGE: Duration = Duration::from_secs(60);

/// Sends one request and returns the reply. A request that changes nothing falls back to the read-only socket if the other is not
/// permitted.
///
/// # Errors
/// Fails if no switch listens there, or it does not answer; the error says what to do.
pub fn ask(socket: &Path, request: &Request) -> anyhow::Result<Reply> {
    let mut stream = connect_for(socket, request)?;
    let patience = if request.reads() { PATIENCE } else { CHANGE };
    stream
        .set_read_timeout(Some(patience))
        .context("cannot set a timeout")?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    // A switch with too many clients answers so without reading the request.
    let requested = stream.write_all(line.as_bytes());
    let mut answer = String::new();
    let answered = BufReader::new(stream).read_line(&mut answer);
    if answer.is_empty() {
        requested.context("cannot ask the switch")?;
        answered
            .with_context(|| format!("the switch did not answer in {} s", patience.as_secs()))?;
        return Err(anyhow!(
            "the switch closed the connection without an answer: it stops, or was too busy"
        ));
    }
    serde_json::from_str(&answer).context(OTHER_ANSWER)
}

/// Requests rows and passes each to `give`, with further requests where an answer ends before the last row. The error gives the switch's
/// reason for a refusal.
///
/// # Errors
/// Fails as [`ask`] does, and with the error of `give`.
pub fn ask_rows(
    socket: &Path,
    table: &str,
    query: &Query,
    mut give: impl FnMut(Value) -> anyhow::Result<()>,
) -> anyhow::Result<End> {
    let mut query = query.clone();
    let mut whole = End::default();
    loop {
        let request = Request::Rows {
            table: table.to_owned(),
            query: Box::new(query.clone()),
        };
        let end = ask_some(socket, &request, &mut give)?;
        whole.matched += end.matched;
        query.after = end.next;
        if end.next.is_none() {
            return Ok(whole);
        }
    }
}

/// Reads one answer of rows.
fn ask_some(
    socket: &Path,
    request: &Request,
    give: &mut impl FnMut(Value) -> anyhow::Result<()>,
) -> anyhow::Result<End> {
    let mut stream = connect_for(socket, request)?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .context("cannot set a timeout")?;
    let line = serde_json::to_string(request)? + "\n";
    let requested = stream.write_all(line.as_bytes());
    for line in BufReader::new(stream).lines() {
        let line = line.context("the switch did not go on with its answer")?;
        match serde_json::from_str(&line) {
            Ok(RowLine::Row(row)) => give(row)?,
            Ok(RowLine::End(end)) => return Ok(end),
            Ok(RowLine::Error(why)) => return Err(anyhow!("the switch refused: {why}")),
            Err(error) => {
                return Err(error).context(OTHER_ANSWER);
            }
        }
    }
    requested.context("cannot ask the switch")?;
    Err(anyhow!(
        "the switch closed the connection before its answer ended: it stops, or was too busy"
    ))
}

/// Requests ends and passes each row to `give`: one snapshot, or with `follow` also what changes after it, until the switch stops.
///
/// # Errors
/// Fails as [`ask`] does, and with the error of `give`.
pub fn ask_ends(
    socket: &Path,
    follow: bool,
    mut give: impl FnMut(EndRow) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let request = Request::Ends { follow };
    let mut stream = connect_for(socket, &request)?;
    // While it follows, a switch without news is silent.
    let patience = (!follow).then_some(PATIENCE);
    stream
        .set_read_timeout(patience)
        .context("cannot set a timeout")?;
    let requested = stream.write_all((serde_json::to_string(&request)? + "\n").as_bytes());
    for line in BufReader::new(stream).lines() {
        let line = line.context("the switch did not go on with its answer")?;
        match serde_json::from_str(&line) {
            Ok(row) => {
                let complete = matches!(row, EndRow::Complete { .. });
                give(row)?;
                if complete && !follow {
                    return Ok(());
                }
            }
            Err(error) => {
                let reply: Reply = serde_json::from_str(&line)
                    .map_err(|_| error)
                    .context(OTHER_ANSWER)?;
                return Err(reply.unexpected());
            }
        }
    }
    requested.context("cannot ask the switch")?;
    Err(anyhow!(
        "the switch closed the connection before its answer ended: it stops, or was too busy"
    ))
}

pub(super) fn connect_for(socket: &Path, request: &Request) -> anyhow::Result<UnixStream> {
    let error = match connect::within(socket, PATIENCE) {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let place = socket.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Err(anyhow!(
            "no switch listens on {place}: start one with `npcc-switch run -c FILE`, or name its telemetry.socket with --socket"
        )),
        ErrorKind::PermissionDenied => {
            let beside = socket.to_str().map(read_only_beside);
            let beside = beside.filter(|_| request.reads());
            let stream = beside.and_then(|path| connect::within(Path::new(&path), PATIENCE).ok());
            stream.ok_or_else(|| {
                anyhow!("not allowed to use {place}: become root or join the group named by telemetry.group (to look only: telemetry.read_only_group, and name telemetry.read_only_socket with --socket)")
            })
        }
        ErrorKind::TimedOut => Err(anyhow!(
            "the switch at {place} hangs: for {} s it has taken no client; `npcc-switch recorder` shows the thread that stands still, and a \
             restart mends it",
            PATIENCE.as_secs()
        )),
        _ => Err(anyhow!("cannot reach {place}: {error}")),
    }
}
