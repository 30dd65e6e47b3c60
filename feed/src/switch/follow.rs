//! Rows of the switch's `show ends --follow`, for as long as the feed runs.

use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

use npcc_api::ends::EndRow;
use npcc_api::protocol::Request;
use tokio::sync::mpsc;

use super::envelope;
use super::request;

/// Most rows of a batch.
const BATCH: usize = 1024;
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
    let mut lines = request::open(socket, &Request::Ends { follow: true }).await?;
    let mut batch = Vec::new();
    let mut is_new = true;
    loop {
        // Rows that follow within 5 ms join the batch.
        let line = match tokio::time::timeout(Duration::from_millis(5), lines.next_line()).await {
            Ok(line) => line?,
            Err(_) if batch.is_empty() => lines.next_line().await?,
            Err(_) => {
                pass(to, FromSwitch::Rows(std::mem::take(&mut batch)))?;
                continue;
            }
        };
        let Some(line) = line else {
            return Err(io::Error::other("the switch closed the connection"));
        };
        let refused = |why| io::Error::other(format!("the switch refused: {why}"));
        let row = envelope::row(&line).map_err(refused)?;
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
