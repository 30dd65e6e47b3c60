//! Answers of many lines: a thread writes them, and the connection sends them as fast as its client reads.
//!
//! Law: a writer never waits for a client longer than [`Limits::idle`](super::client::Limits); then the connection is closed, and the next
//! write fails.

use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::poll_fn;
use npcc_api::protocol::{ApiError, status};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use super::client::Client;
use super::problem;
use crate::manage::rows;

/// Size of the pieces in which lines are written.
const PIECE: usize = 64 << 10;
/// Pieces that may wait for the client.
const PIECES: usize = 4;

/// Writer of the lines of an answer.
#[derive(Debug)]
pub(in crate::manage) struct Lines {
    to: mpsc::Sender<io::Result<Bytes>>,
    /// Told once that the request is carried out, before the first piece.
    begins: Option<oneshot::Sender<Result<(), ApiError>>>,
    held: Vec<u8>,
    client: Arc<Client>,
}

impl Lines {
    /// Returns true if the client has gone away.
    pub(in crate::manage) fn is_gone(&self) -> bool {
        self.to.is_closed()
    }

    /// Returns true if the switch stops.
    pub(in crate::manage) fn is_stopping(&self) -> bool {
        self.client.is_stopping()
    }

    /// Restarts the client's time limit if it has read everything: there is nothing to send to it.
    pub(in crate::manage) fn rests(&self) {
        if self.to.capacity() == PIECES {
            self.client.answers(self.client.limits.idle);
        }
    }

    fn begin(&mut self, how: Result<(), ApiError>) {
        if let Some(begins) = self.begins.take() {
            // The client may be gone.
            let _ = begins.send(how);
            self.client.answers(self.client.limits.idle);
        }
    }
}

impl Write for Lines {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(from);
        if self.held.len() >= PIECE {
            self.flush()?;
        }
        Ok(from.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.begin(Ok(()));
        if !self.held.is_empty() {
            let piece = Bytes::from(std::mem::take(&mut self.held));
            let sent = self.to.blocking_send(Ok(piece));
            sent.map_err(|_| io::Error::from(ErrorKind::BrokenPipe))?;
            self.client.answers(self.client.limits.idle);
        }
        Ok(())
    }
}

impl From<rows::Unanswered> for Unanswered {
    fn from(why: rows::Unanswered) -> Unanswered {
        match why {
            rows::Unanswered::Refused(why) => ApiError::new(status::BAD_REQUEST, why).into(),
            rows::Unanswered::Gone(_) => Unanswered::Gone,
        }
    }
}

/// Reason why lines are missing.
#[derive(Debug)]
pub(in crate::manage) enum Unanswered {
    /// The request is refused, before the first line.
    Refused(ApiError),
    /// The client went away or was too slow.
    Gone,
}

impl From<ApiError> for Unanswered {
    fn from(why: ApiError) -> Unanswered {
        Unanswered::Refused(why)
    }
}

impl From<io::Error> for Unanswered {
    fn from(_: io::Error) -> Unanswered {
        Unanswered::Gone
    }
}

/// Answers with the lines that `write` writes in a thread of its own, or with its refusal.
pub(in crate::manage) async fn answer(
    media: &'static str,
    client: Arc<Client>,
    write: impl FnOnce(&mut Lines) -> Result<(), Unanswered> + Send + 'static,
) -> Response {
    client.works();
    let (to, mut from) = mpsc::channel(PIECES);
    let (begins, begun) = oneshot::channel();
    let mut lines = Lines {
        to,
        begins: Some(begins),
        held: Vec::new(),
        client,
    };
    spawn_blocking(move || {
        let written = catch_unwind(AssertUnwindSafe(|| -> Result<(), Unanswered> {
            write(&mut lines)?;
            Ok(lines.flush()?)
        }));
        match written {
            Ok(Ok(())) => return,
            Ok(Err(Unanswered::Refused(why))) => lines.begin(Err(why)),
            Ok(Err(Unanswered::Gone)) => {}
            Err(_) => lines.begin(Err(problem::defect())),
        }
        // Behind its first line an answer that is cut off must not look complete.
        let _ = lines.to.blocking_send(Err(ErrorKind::Other.into()));
    });
    match begun.await {
        Ok(Ok(())) => {
            let body = Body::from_stream(poll_fn(move |context| from.poll_recv(context)));
            let mut response = Response::new(body);
            let media = HeaderValue::from_static(media);
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            response
        }
        Ok(Err(why)) => problem::response(&why),
        Err(_) => problem::response(&problem::defect()),
    }
}
