//! `npcc-switch top`: a screen of a running switch, once a second, from the management socket.
//!
//! Law: whatever ends it (a key, a signal, an error, a panic) leaves the terminal as it was.

mod draw;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use npcc_api::client::blocking as client;
use npcc_api::model::{Flow, Snapshot};
use npcc_api::protocol::{Reply, Request};
use npcc_api::query::Query;
use npcc_engine::fault;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use self::state::{Seen, State};
use super::socket::SocketArg;
use super::{Failure, terminal};

/// How often the switch is asked.
const EACH: Duration = Duration::from_secs(1);
/// How long a key may wait.
const GLANCE: Duration = Duration::from_millis(50);
/// Flows that are asked for: the heaviest.
const FLOWS: usize = 500;

#[derive(Debug, Args)]
pub(super) struct TopArgs {
    #[command(flatten)]
    socket: SocketArg,
}

/// Gives the terminal back.
struct Screen;

impl Drop for Screen {
    fn drop(&mut self) {
        // A panic has done so before it printed its message, which a second time would write over.
        if !std::thread::panicking() {
            restore();
        }
    }
}

/// Leaves the alternate screen and raw mode; a terminal that is gone needs neither.
fn restore() {
    let _ = ratatui::try_restore();
}

pub(super) fn run(args: &TopArgs) -> Result<(), Failure> {
    // A switch that is not there is told as by every other command, not on a screen.
    let state = State::new(ask(&args.socket.path)?);
    if !std::io::stdout().is_terminal() {
        return Err(anyhow!("top needs a terminal: to a file goes `show ... --watch`").into());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // In this order: the first signal finds the flag down, the second ends the process.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
            .context("cannot catch signals")?;
        flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
    }
    terminal::repeat(Arc::clone(&stop), restore, || screen(args, state, &stop))
}

/// Shows the switch until a key or `stop` ends it.
fn screen(args: &TopArgs, mut state: State, stop: &AtomicBool) -> Result<(), Failure> {
    let mut terminal = ratatui::try_init().context("cannot take the terminal")?;
    let _screen = Screen;
    let mut due = Instant::now() + EACH;
    while !stop.load(Ordering::Relaxed) {
        terminal
            .draw(|frame| draw::screen(frame, &mut state))
            .context("cannot draw")?;
        fault::panics("top");
        if event::poll(GLANCE).context("cannot read keys")? {
            let Event::Key(key) = event::read().context("cannot read keys")? else {
                continue;
            };
            if key.kind != KeyEventKind::Release && state.key(key) {
                break;
            }
        }
        if Instant::now() >= due {
            due = Instant::now() + EACH;
            match ask(&args.socket.path) {
                Ok(seen) => state.look(seen),
                Err(why) => state.lost(&why.to_string()),
            }
        }
    }
    Ok(())
}

/// Takes one look at the running switch.
fn ask(socket: &Path) -> anyhow::Result<Seen> {
    let snapshot: Snapshot = match client::ask(socket, &Request::Snapshot)? {
        Reply::Snapshot(snapshot) => *snapshot,
        other => return Err(other.unexpected()),
    };
    let query = Query {
        top: Some(FLOWS),
        ..Query::default()
    };
    let mut flows: Vec<Flow> = Vec::new();
    client::ask_rows(socket, "flows", &query, |row| {
        flows.push(serde_json::from_value(row)?);
        Ok(())
    })?;
    Ok(Seen { snapshot, flows })
}
