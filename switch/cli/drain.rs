//! `npcc-switch drain` and `undrain`: the traffic goes another way before the switch stops.
//!
//! The neighbours are told by a routing daemon, not by the switch: a command of the operator's, run with the operator's rights, or FRR's
//! `bgp graceful-shutdown` (RFC 8326). The switch forwards whatever still comes, and notes for all who look that it is being drained.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use npcc_api::client::blocking as client;
use npcc_api::model::Snapshot;
use npcc_api::protocol::{Reply, Request};

use super::socket::SocketArg;
use super::{Failure, change, say, say_error};

/// How often the traffic is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// For how long it has to stay below the rate: neighbours need a moment to choose anew.
const QUIET: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(super) struct DrainArgs {
    /// Command that tells the neighbours, given to a shell; FRR's `bgp graceful-shutdown` by vtysh, in the path space named as the switch's network namespace, if not given
    #[arg(long, value_name = "COMMAND")]
    by: Option<String>,
    /// Drained is what fewer frames a second come in to: those for Linux, such as BGP's own, do not count
    #[arg(long, value_name = "PPS", default_value_t = 10)]
    below: u64,
    /// Longest wait, such as 30s; the neighbours stay told after it
    #[arg(long, value_name = "TIME", value_parser = super::duration, default_value = "60s")]
    timeout: Duration,
    /// Stop the switch once it is drained
    #[arg(long)]
    stop: bool,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Debug, Args)]
pub(super) struct UndrainArgs {
    /// Command that tells the neighbours, given to a shell; FRR's `no bgp graceful-shutdown` if not given
    #[arg(long, value_name = "COMMAND")]
    by: Option<String>,
    #[command(flatten)]
    socket: SocketArg,
}

pub(super) fn drain(args: &DrainArgs) -> Result<(), Failure> {
    tell_neighbours(
        &args.socket.path,
        args.by.as_deref(),
        "bgp graceful-shutdown",
    )?;
    change::ask(&args.socket.path, &Request::Drain { on: true })?;
    let took = wait(args)?;
    say(&format!("drained after {} s\n", took.as_secs()))?;
    if args.stop {
        change::ask(&args.socket.path, &Request::Stop)?;
    }
    Ok(())
}

pub(super) fn undrain(args: &UndrainArgs) -> Result<(), Failure> {
    tell_neighbours(
        &args.socket.path,
        args.by.as_deref(),
        "no bgp graceful-shutdown",
    )?;
    change::ask(&args.socket.path, &Request::Drain { on: false })
}

/// Runs the operator's command, or has FRR change this.
fn tell_neighbours(socket: &Path, by: Option<&str>, change: &str) -> Result<(), Failure> {
    let mut command = match by {
        Some(by) => {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", by]);
            shell
        }
        None => vtysh(namespace(socket)?.as_deref(), change),
    };
    let ended = command
        .output()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    let said = said.trim();
    if !ended.status.success() {
        let error = anyhow!("the neighbours were not told ({}): {said}", ended.status);
        return Err(error.into());
    }
    if !said.is_empty() {
        say_error(said);
    }
    Ok(())
}

/// FRR of the switch's network namespace, if it runs in a path space of that name (docs/linux.md).
fn vtysh(namespace: Option<&str>, change: &str) -> Command {
    let mut vtysh = Command::new("vtysh");
    if let Some(namespace) = namespace {
        vtysh.args(["-N", namespace]);
    }
    for line in ["configure terminal", "router bgp", change] {
        vtysh.args(["-c", line]);
    }
    vtysh
}

/// The name of the switch's network namespace.
fn namespace(socket: &Path) -> Result<Option<String>, Failure> {
    let table = "linux".to_owned();
    let linux = match client::ask(socket, &Request::Show { table })? {
        Reply::Table(linux) => linux,
        other => return Err(other.unexpected().into()),
    };
    if linux["integrated"] != true {
        let error = "Linux is not integrated, so no routing daemon runs beside this switch: say by `--by` what tells the neighbours";
        return Err(anyhow!(error).into());
    }
    Ok(linux["namespace"].as_str().map(str::to_owned))
}

/// Frames that came in and were not for Linux, of all ports.
fn frames(socket: &Path) -> anyhow::Result<(u64, Instant)> {
    let now = match client::ask(socket, &Request::Snapshot)? {
        Reply::Snapshot(now) => now,
        other => return Err(other.unexpected()),
    };
    Ok((of(&now), Instant::now()))
}

fn of(snapshot: &Snapshot) -> u64 {
    let ports = snapshot.ports.iter();
    ports
        .map(|port| port.rx.packets.saturating_sub(port.punted.packets))
        .sum()
}

/// Waits until fewer frames come than asked for, and tells on the way how many do; how long it took.
fn wait(args: &DrainArgs) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let (mut before, mut at) = frames(&args.socket.path)?;
    let mut quiet_since: Option<Instant> = None;
    let mut reported = begun;
    loop {
        std::thread::sleep(LOOK);
        let (now, when) = frames(&args.socket.path)?;
        let rate = per_second(now.saturating_sub(before), when.duration_since(at));
        if rate < args.below {
            let since = *quiet_since.get_or_insert(at);
            if when.duration_since(since) >= QUIET {
                return Ok(begun.elapsed());
            }
        } else {
            quiet_since = None;
        }
        if begun.elapsed() >= args.timeout {
            let error = anyhow!(
                "{rate} frames a second still come after {} s, and {} or more are too many: the neighbours stay told, `undrain` takes it back",
                args.timeout.as_secs(),
                args.below
            );
            return Err(error.into());
        }
        if reported.elapsed() >= Duration::from_secs(1) {
            reported = Instant::now();
            say_error(&format!(
                "{} s: {rate} frames a second",
                begun.elapsed().as_secs()
            ));
        }
        (before, at) = (now, when);
    }
}

fn per_second(frames: u64, time: Duration) -> u64 {
    let millis = time.as_millis().max(1);
    u64::try_from(u128::from(frames) * 1_000 / millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frr_is_asked_in_the_path_space_of_the_switch() {
        let words = |command: &Command| -> Vec<String> {
            let words = command.get_args();
            words
                .map(|word| word.to_string_lossy().into_owned())
                .collect()
        };
        let own = words(&vtysh(Some("npcc"), "bgp graceful-shutdown"));
        assert_eq!(own[..2], ["-N", "npcc"]);
        assert_eq!(
            own[2..],
            [
                "-c",
                "configure terminal",
                "-c",
                "router bgp",
                "-c",
                "bgp graceful-shutdown"
            ]
        );
        assert_eq!(words(&vtysh(None, "x"))[0], "-c");
    }

    #[test]
    fn a_rate_is_of_a_second() {
        assert_eq!(per_second(30, Duration::from_millis(500)), 60);
        assert_eq!(per_second(30, Duration::ZERO), 30_000);
    }
}
