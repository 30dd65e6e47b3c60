//! Rows of the switch's `show ends --follow`, for as long as the feed runs.

use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;

use super::envelope;
use super::request;
use crate::row::Row;

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
    Rows(Vec<Row>),
    /// The switch does not answer, or no longer: the reason.
    Disconnected(String),
}

/// Follows the switch's ends and passes them to `to`. The socket is always read: where `to` is full rows are dropped, and a snapshot is
/// taken again. Ends when the receiver is gone.
pub async fn follow(socket: &Path, to: mpsc::Sender<FromSwitch>) {
    loop {
        let why = match follow_once(socket, &to).await {
            Ok(why) => why,
            Err(error) => error.to_string(),
        };
        if to.send(FromSwitch::Disconnected(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Follows one connection to its end; returns the reason.
async fn follow_once(socket: &Path, to: &mpsc::Sender<FromSwitch>) -> std::io::Result<String> {
    let mut lines = request::open(socket, envelope::FOLLOW).await?;
    let mut batch = Vec::new();
    let mut is_new = true;
    loop {
        // Rows that follow within 5 ms join the batch.
        let line = match tokio::time::timeout(Duration::from_millis(5), lines.next_line()).await {
            Ok(line) => line?,
            Err(_) if batch.is_empty() => lines.next_line().await?,
            Err(_) => {
                if !pass(to, FromSwitch::Rows(std::mem::take(&mut batch))) {
                    return Ok(TOO_SLOW.to_owned());
                }
                continue;
            }
        };
        let Some(line) = line else {
            return Ok("the switch closed the connection".to_owned());
        };
        let row = match envelope::row(&line) {
            Ok(row) => row,
            Err(why) => return Ok(format!("the switch refused: {why}")),
        };
        if is_new && !pass(to, FromSwitch::Connected) {
            return Ok(TOO_SLOW.to_owned());
        }
        is_new = false;
        batch.extend(row);
        if batch.len() >= BATCH && !pass(to, FromSwitch::Rows(std::mem::take(&mut batch))) {
            return Ok(TOO_SLOW.to_owned());
        }
    }
}

const TOO_SLOW: &str = "this feed took the rows too slowly";

/// Passes a message on if there is space for it; the last space is kept for the reason of an end.
fn pass(to: &mpsc::Sender<FromSwitch>, message: FromSwitch) -> bool {
    to.capacity() > 1 && to.try_send(message).is_ok()
}
