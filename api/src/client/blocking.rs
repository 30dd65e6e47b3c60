//! Client for callers that wait.

use std::future::Future;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::super::ends::EndRow;
use super::super::protocol::{OTHER_ANSWER, Reply, Request};
use super::super::query::{End, Query};
use super::{ClientError, Lines};

/// Makes a runtime that runs in the thread that calls.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    runtime.context("cannot wait for sockets")
}

fn wait<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    runtime()?.block_on(work)
}

/// Sends a request and returns its one answer. A request that reads uses the read-only socket if the other is not permitted.
///
/// # Errors
/// Fails if no switch listens there, or it does not answer; the error says what to do.
pub fn ask(socket: &Path, request: &Request) -> anyhow::Result<Reply> {
    wait(async { Ok(super::ask(socket, request).await?) })
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
    give: impl FnMut(Value) -> anyhow::Result<()>,
) -> anyhow::Result<End> {
    wait(super::rows(socket, table, query, give))
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
    wait(async {
        let mut lines: Lines = super::lines(socket, &Request::Ends { follow }).await?;
        // While it follows, a switch without news is silent.
        if follow {
            lines.patience = None;
        }
        while let Some(line) = lines.next().await? {
            let row = serde_json::from_slice(line).context(OTHER_ANSWER)?;
            let complete = matches!(row, EndRow::Complete { .. });
            give(row)?;
            if complete && !follow {
                return Ok(());
            }
        }
        Err(ClientError::Closed.into())
    })
}
