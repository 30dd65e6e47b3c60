//! A command that repeats ends with whoever reads it: its terminal hangs up, its pipe closes, or it is signalled.
//!
//! A thread watches standard output, because the command's own thread may be waiting for the switch, or in a read of the dead terminal that
//! never returns (crossterm 0.29 reads a hung-up terminal for ever).

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use npcc_engine::fault;

use super::Failure;

/// How often `stop` is looked at, in ms.
const POLL_MS: u8 = 200;
/// How long the command's own thread has to end once `stop` is set.
const GRACE: Duration = Duration::from_millis(500);

/// Runs `work` until it returns, standard output has no reader any more, or `stop` is set and `work` does not return in half a second; `restore`
/// gives the terminal back in that last case. A reader that is gone is no failure, as with a closed pipe.
///
/// # Errors
/// What `work` says, or that there is no thread to watch with.
pub(super) fn repeat(
    stop: Arc<AtomicBool>,
    restore: fn(),
    work: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let watch = std::thread::Builder::new().name("terminal".to_owned());
    watch
        .spawn(move || watch_output(&stop, restore))
        .context("cannot watch the terminal")?;
    let result = work();
    if has_hung_up(PollTimeout::ZERO) {
        return Ok(());
    }
    result
}

#[expect(
    clippy::exit,
    reason = "the command's own thread cannot be made to return"
)]
fn watch_output(stop: &AtomicBool, restore: fn()) {
    while !has_hung_up(PollTimeout::from(POLL_MS)) {
        if stop.load(Ordering::Relaxed) {
            fault::hangs("leave");
            std::thread::sleep(GRACE);
            restore();
            break;
        }
    }
    std::process::exit(0);
}

/// Returns true once standard output has no reader any more; waits so long for that.
fn has_hung_up(wait: PollTimeout) -> bool {
    let stdout = io::stdout();
    // Hang-ups and errors are reported without being requested.
    let mut ends = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    poll(&mut ends, wait).is_ok_and(|ready| ready > 0)
}
