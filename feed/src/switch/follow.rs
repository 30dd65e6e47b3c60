//! Rows of the switch's `show ends --follow`, for as long as the feed runs.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use npcc_api::client;
use npcc_api::ends::EndRow;
use npcc_api::protocol::Request;
use tokio::sync::mpsc;

/// Most rows of a batch.
const BATCH: usize = 1024;
/// Time within which rows that follow join a batch.
const TOGETHER: Duration = Duration::from_millis(5);
/// Time after which a lost connection is tried again.
const AGAIN: Duration = Duration::from_millis(200);

/// Message of the follower.
#[derive(Debug)]
pub enum FromSwitch {
    /// The switch answers: a snapshot follows.
    Connected,
    /// Rows, in order.
    Rows(Vec<EndRow>),
    /// The switch does not answer, or no longer: the reason.
    Disconnected(String),
}

/// Follows the switch's ends and passes them to `to`. The socket is always read: where `to` is full rows are dropped, and a snapshot is
/// taken again. Ends when the receiver is gone.
pub async fn follow(socket: &Path, to: mpsc::Sender<FromSwitch>) {
    loop {
        let Err(why) = follow_once(socket, &to).await;
        let why = FromSwitch::Disconnected(why.to_string());
        if to.send(why).await.is_err() {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Follows one connection to its end; returns the reason.
async fn follow_once(socket: &Path, to: &mpsc::Sender<FromSwitch>) -> io::Result<Infallible> {
    let follow = Request::Ends { follow: true };
    let mut lines = client::lines(socket, &follow)
        .await
        .map_err(io::Error::other)?;
    // A switch without news is silent.
    lines.patience = None;
    let mut batch = Vec::new();
    let mut is_new = true;
    loop {
        if !batch.is_empty() && !lines.has_line_within(TOGETHER).await {
            pass(to, FromSwitch::Rows(std::mem::take(&mut batch)))?;
        }
        let line = lines.next().await.map_err(io::Error::other)?;
        let line = line.ok_or_else(|| io::Error::other("the switch closed the connection"))?;
        // A kind of row of a later version is left out.
        let row: Option<EndRow> = serde_json::from_slice(line).ok();
        if is_new {
            pass(to, FromSwitch::Connected)?;
        }
        is_new = false;
        batch.extend(row);
        if batch.len() >= BATCH {
            pass(to, FromSwitch::Rows(std::mem::take(&mut batch)))?;
        }
    }
}

/// Passes a message on, or fails if there is no space for it; the last space is kept for the reason of an end.
fn pass(to: &mpsc::Sender<FromSwitch>, message: FromSwitch) -> io::Result<()> {
    if to.capacity() > 1 && to.try_send(message).is_ok() {
        return Ok(());
    }
    Err(io::Error::other("this feed took the rows too slowly"))
}
