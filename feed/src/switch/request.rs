//! One request to the switch and its answer.

use std::io;
use std::path::Path;
use std::time::Duration;

use npcc_api::protocol::Request;
use npcc_api::query::Query;
use npcc_api::rows::RowLine;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;

use super::envelope;

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No switch answers at the socket.
    #[error("no switch answers at {0}: {1}")]
    Socket(String, io::Error),
    /// The switch took too long.
    #[error("the switch did not answer in {} s", PATIENCE.as_secs())]
    TooLate,
    /// The switch refused.
    #[error("the switch refused: {0}")]
    Refused(String),
    /// The answer ended early or is of another kind.
    #[error("{}", envelope::UNEXPECTED)]
    Other,
}

/// Connects and sends a request; returns the lines of the answer.
pub(super) async fn open(
    socket: &Path,
    request: &Request,
) -> io::Result<Lines<BufReader<UnixStream>>> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(envelope::line(request).as_bytes()).await?;
    Ok(BufReader::new(stream).lines())
}

/// Sends a request and returns the one line of its answer.
///
/// # Errors
/// Fails with [`RequestError`].
pub async fn ask(socket: &Path, request: &Request) -> Result<String, RequestError> {
    let failed = |error| RequestError::Socket(socket.display().to_string(), error);
    let answer = async {
        let mut lines = open(socket, request).await.map_err(failed)?;
        let line = lines.next_line().await.map_err(failed)?;
        line.ok_or(RequestError::Other)
    };
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.unwrap_or(Err(RequestError::TooLate))
}

/// Returns the rows of a table.
///
/// # Errors
/// Fails with [`RequestError`].
pub async fn ask_rows(
    socket: &Path,
    table: &str,
    query: Query,
) -> Result<Vec<Value>, RequestError> {
    let failed = |error| RequestError::Socket(socket.display().to_string(), error);
    let answer = async {
        let request = Request::Rows {
            table: table.to_owned(),
            query: Box::new(query),
        };
        let mut lines = open(socket, &request).await.map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(line) = lines.next_line().await.map_err(failed)? {
            match serde_json::from_str(&line) {
                Ok(RowLine::Row(row)) => rows.push(row),
                Ok(RowLine::End(_)) => return Ok(rows),
                Ok(RowLine::Error(why)) => return Err(RequestError::Refused(why)),
                Err(_) => return Err(RequestError::Other),
            }
        }
        Err(RequestError::Other)
    };
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.unwrap_or(Err(RequestError::TooLate))
}
