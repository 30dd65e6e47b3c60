//! Client of the switch: HTTP over a management socket. The command line uses it by [`blocking`].

pub mod blocking;
pub mod connect;
pub mod recording;

use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use npcc_config::model::read_only_beside;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::operations::Right;
use super::protocol::{ApiError, OTHER_ANSWER, Problem, Reply, Request};
use super::query::{End, Query};
use super::rows::RowLine;

/// Longest time for a connection, for an answer, and for the next line of one.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time for a change of what runs: a large file is read, and threads are waited for.
const CHANGE: Duration = Duration::from_secs(60);

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No switch listens.
    #[error(
        "no switch listens on {0}: start one with `npcc-switch run -c FILE`, or name its telemetry.socket with --socket"
    )]
    NoSwitch(String),
    /// This user may not use the socket.
    #[error(
        "not allowed to use {0}: become root or join the group named by telemetry.group (to look only: telemetry.read_only_group, and name telemetry.read_only_socket with --socket)"
    )]
    NotAllowed(String),
    /// The switch accepts no client.
    #[error(
        "the switch at {0} hangs: for {secs} s it has taken no client; `npcc-switch recorder` shows the thread that stands still, and a restart mends it",
        secs = PATIENCE.as_secs()
    )]
    Hangs(String),
    /// The system refuses a connection.
    #[error("cannot reach {0}: {1}")]
    Connect(String, io::Error),
    /// The switch took too long.
    #[error("the switch did not answer in {} s", .0.as_secs())]
    Late(Duration),
    /// The connection ended before the answer did.
    #[error("the switch closed the connection before its answer ended: it stops, or was too busy")]
    Closed,
    /// The switch refused.
    #[error("the switch refused: {0}")]
    Refused(ApiError),
    /// The answer is of another kind.
    #[error("{}", OTHER_ANSWER)]
    Other,
}

/// Answer whose lines arrive one after the other.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    /// Octets that have arrived.
    held: Vec<u8>,
    /// Number of its octets that are read.
    read: usize,
    /// Longest time for the next octets; `None` where the switch may have nothing to say.
    pub patience: Option<Duration>,
}

impl Lines {
    /// Returns true if a whole line has arrived.
    #[must_use]
    pub fn has_line(&self) -> bool {
        self.held[self.read..].contains(&b'\n')
    }

    /// Returns true if a whole line, or the end of the answer, arrives within this time.
    pub async fn has_line_within(&mut self, within: Duration) -> bool {
        let arrives = async {
            while !self.has_line() {
                if !matches!(self.receive().await, Ok(true)) {
                    break;
                }
            }
        };
        timeout(within, arrives).await.is_ok()
    }

    /// Returns the next line without its end; `None` behind the last.
    ///
    /// # Errors
    /// Fails if the answer is broken off, or takes too long.
    pub async fn next(&mut self) -> Result<Option<&[u8]>, ClientError> {
        let mut searched = self.read;
        let end = loop {
            let new = self.held.get(searched..).unwrap_or_default();
            if let Some(at) = new.iter().position(|octet| *octet == b'\n') {
                break searched + at;
            }
            self.held.drain(..self.read);
            self.read = 0;
            searched = self.held.len();
            if !self.receive().await? {
                return if self.held.is_empty() {
                    Ok(None)
                } else {
                    Err(ClientError::Closed)
                };
            }
        };
        let line = self.read..end;
        self.read = end + 1;
        Ok(self.held.get(line))
    }

    /// Adds the octets that arrive next; returns false behind the last.
    async fn receive(&mut self) -> Result<bool, ClientError> {
        let frame = match self.patience {
            Some(patience) => timeout(patience, self.body.frame())
                .await
                .map_err(|_| ClientError::Late(patience))?,
            None => self.body.frame().await,
        };
        match frame {
            None => Ok(false),
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.held.extend_from_slice(data);
                }
                Ok(true)
            }
            Some(Err(_)) => Err(ClientError::Closed),
        }
    }
}

/// Sends a request and returns the lines of its answer.
///
/// # Errors
/// Fails with [`ClientError`].
pub async fn lines(socket: &Path, request: &Request) -> Result<Lines, ClientError> {
    let body = send(socket, request, PATIENCE).await?.into_body();
    Ok(Lines {
        body,
        held: Vec::new(),
        read: 0,
        patience: Some(PATIENCE),
    })
}

/// Sends a request and returns its one answer. A request that reads uses the read-only socket if the other is not permitted.
///
/// # Errors
/// Fails with [`ClientError`] if there is no answer; a refusal is a reply.
pub async fn ask(socket: &Path, request: &Request) -> Result<Reply, ClientError> {
    let changes = request
        .operation()
        .is_some_and(|one| one.right == Right::Change);
    let patience = if changes { CHANGE } else { PATIENCE };
    let answer = match send(socket, request, patience).await {
        Err(ClientError::Refused(error)) => return Ok(Reply::Refused(error)),
        other => other?,
    };
    let whole = timeout(patience, answer.into_body().collect());
    let body = whole.await.map_err(|_| ClientError::Late(patience))?;
    let body = body.map_err(|_| ClientError::Closed)?.to_bytes();
    reply(request, &body)
}

/// Reads the answer to a request.
fn reply(request: &Request, body: &[u8]) -> Result<Reply, ClientError> {
    Ok(match request {
        Request::Ready => Reply::Ready(json(body)?),
        Request::Snapshot => Reply::Snapshot(json(body)?),
        Request::Show { .. } => Reply::Table(json(body)?),
        Request::Config { .. } => {
            let text = String::from_utf8(body.to_vec());
            Reply::Text(text.map_err(|_| ClientError::Other)?)
        }
        Request::Set { .. }
        | Request::Unset { .. }
        | Request::PlanReload
        | Request::Reload { .. }
        | Request::Rollback => Reply::Reloaded(json(body)?),
        Request::Suggest(_) => Reply::Suggested(json(body)?),
        _ => Reply::Done,
    })
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|_| ClientError::Other)
}

/// Requests rows and passes each to `give`, with further requests where an answer ends before the last row.
///
/// # Errors
/// Fails with [`ClientError`], and with the error of `give`.
pub async fn rows<E: From<ClientError>>(
    socket: &Path,
    table: &str,
    query: &Query,
    mut give: impl FnMut(serde_json::Value) -> Result<(), E>,
) -> Result<End, E> {
    let mut query = query.clone();
    let mut whole = End::default();
    loop {
        let request = Request::Rows {
            table: table.to_owned(),
            query: Box::new(query.clone()),
        };
        let mut lines = lines(socket, &request).await?;
        let end = loop {
            let line = lines.next().await?.ok_or(ClientError::Closed)?;
            match json(line)? {
                RowLine::Row(row) => give(row)?,
                RowLine::End(end) => break end,
            }
        };
        whole.matched += end.matched;
        query.after = end.next;
        if end.next.is_none() {
            return Ok(whole);
        }
    }
}

/// Sends a request and returns the answer, of which the head has arrived.
async fn send(
    socket: &Path,
    request: &Request,
    patience: Duration,
) -> Result<hyper::Response<Incoming>, ClientError> {
    let unknown = || {
        let table = match request {
            Request::Show { table } | Request::Rows { table, .. } => table.as_str(),
            _ => "",
        };
        ClientError::Refused(ApiError::new(404, format!("there is no table `{table}`")))
    };
    let call = request.call().ok_or_else(unknown)?;
    let stream = connected(socket, call.operation.right == Right::Read).await?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|_| ClientError::Closed)?;
    // It ends with the answer, or when that is dropped.
    tokio::spawn(connection);
    let message = hyper::Request::builder()
        .method(call.operation.method.name())
        .uri(&call.target)
        .header(HOST, "localhost");
    let message = match call.body {
        Some(body) => message
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body))),
        None => message.body(Full::default()),
    };
    let message = message.map_err(|_| ClientError::Other)?;
    let answer = timeout(patience, sender.send_request(message)).await;
    let answer = answer
        .map_err(|_| ClientError::Late(patience))?
        .map_err(|_| ClientError::Closed)?;
    if answer.status().is_success() {
        return Ok(answer);
    }
    let status = answer.status().as_u16();
    let body = timeout(patience, answer.into_body().collect()).await;
    let body = body
        .map_err(|_| ClientError::Late(patience))?
        .map_err(|_| ClientError::Closed)?;
    let problem: Problem = json(&body.to_bytes())?;
    Err(ClientError::Refused(ApiError { status, problem }))
}

/// Connects to a socket; to the read-only one beside it if the request only `reads` and the first is not permitted.
async fn connected(socket: &Path, reads: bool) -> Result<UnixStream, ClientError> {
    let error = match connect::within(socket, PATIENCE).await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let place = socket.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Err(ClientError::NoSwitch(place))
        }
        io::ErrorKind::PermissionDenied => {
            let beside = socket.to_str().map(read_only_beside).filter(|_| reads);
            if let Some(path) = beside
                && let Ok(stream) = connect::within(Path::new(&path), PATIENCE).await
            {
                return Ok(stream);
            }
            Err(ClientError::NotAllowed(place))
        }
        io::ErrorKind::TimedOut => Err(ClientError::Hangs(place)),
        _ => Err(ClientError::Connect(place, error)),
    }
}
