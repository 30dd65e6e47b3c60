//! Sandbox of the running switch: drops the system calls and capabilities that only its start needed.
//!
//! The start needs much: devices, physical memory, namespaces, raw sockets, the sockets' groups. None of that is needed to forward, to
//! follow the kernel, to answer clients or to take a new configuration. An attacker who takes the switch over by a frame or a request thus
//! finds a process that can start no program, enter no namespace, load no executable code and open no raw socket.
//!
//! The process still runs as root: it may write root's files, and connect to sockets that only root may. The
//! unit hides the service manager's and D-Bus (`InaccessiblePaths=`), by which a program would be started outside, and most folders
//! (`ProtectSystem=strict`); without the unit nothing does.
//!
//! Law: it holds for every thread, DPDK's own included, and for threads started later; it cannot be undone.

mod calls;

use std::time::{Duration, Instant};

use anyhow::{Context, Error, anyhow};
use npcc_config::Config;
use npcc_config::model::Sandbox;
use npcc_config::resolved::Device;
use npcc_dpdk::{Capability, keep_capabilities};
use seccompiler::apply_filter_all_threads;

use npcc_engine::fault;
use npcc_engine::log::note;

/// Longest time for which the system may refuse a part of the sandbox: on a loaded machine, threads that get no time drop no capabilities
/// within the 2 s that one attempt takes.
const LIMIT: Duration = Duration::from_secs(5);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Returns the capabilities still needed once all runs.
fn capabilities(config: &Config) -> Vec<Capability> {
    // To switch links, and to change routes and addresses in Linux.
    let mut all = vec![Capability::NetAdmin];
    let cards = |device: &Device| matches!(device, Device::Pci { .. });
    if config.ports.iter().any(|port| cards(&port.device)) {
        // A card's queues are set up again when its link is taken up; its memory is pinned.
        all.extend([Capability::NetRaw, Capability::IpcLock]);
    }
    all
}

/// Closes the sandbox around the whole process, unless the configuration says not to.
///
/// # Errors
/// Gives the system's last error after 5 s of refusals, unless the configuration lets the switch run without (`sandbox: try`).
pub fn close(config: &Config) -> anyhow::Result<()> {
    if config.sandbox == Sandbox::Off {
        note(
            "note: the sandbox is off (sandbox): the switch may do all that whoever started it may",
        );
        return Ok(());
    }
    let kept = capabilities(config);
    let dropped = drop_capabilities(&kept);
    let restricted = restrict_system_calls();
    match dropped.and(restricted) {
        Ok(()) => {
            let names: Vec<&str> = kept.iter().map(|one| one.name()).collect();
            tracing::info!(
                "the sandbox is closed: {} kinds of system call, capabilities {}",
                calls::allowed(),
                names.join(", ")
            );
        }
        Err(why) if config.sandbox == Sandbox::Try => {
            note(&format!("note: the sandbox is not closed: {why:#}"));
        }
        Err(why) => {
            return Err(why.context(
                "cannot close the sandbox: start again, or write `sandbox: try` to run without it where the system refuses it",
            ));
        }
    }
    Ok(())
}

fn drop_capabilities(kept: &[Capability]) -> anyhow::Result<()> {
    retried(LIMIT, || {
        if fault::strikes("sandbox") {
            return Err(anyhow!("a fault was asked for at `sandbox`"));
        }
        keep_capabilities(kept).map_err(Error::msg)
    })
    .context("capabilities were not given away")
}

/// Applies each filter once: two of the same would cost time at each system call.
fn restrict_system_calls() -> anyhow::Result<()> {
    let filters = calls::filters().map_err(|why| anyhow!(why))?;
    filters
        .iter()
        .try_for_each(|filter| retried(LIMIT, || Ok(apply_filter_all_threads(filter)?)))
        .context("system calls are not restricted")
}

/// Restricts the system calls of the calling thread, for tests of what a running switch does.
#[cfg(test)]
pub(crate) fn around_this_thread() {
    for filter in calls::filters().unwrap() {
        seccompiler::apply_filter(&filter).unwrap();
    }
}

/// Repeats an attempt that a loaded machine refuses for a moment, as a thread that gets no time does not drop its capabilities.
fn retried(limit: Duration, mut attempt: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let deadline = Instant::now() + limit;
    loop {
        let result = attempt();
        if result.is_ok() || Instant::now() >= deadline {
            return result;
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_fails_is_repeated_until_it_works_or_the_time_is_over() {
        let mut left = 3;
        let works_late = retried(Duration::from_secs(60), || {
            left -= 1;
            if left == 0 {
                Ok(())
            } else {
                Err(anyhow!("busy"))
            }
        });
        assert!(works_late.is_ok());
        assert_eq!(left, 0, "it is not called again once it has worked");

        let mut calls = 0;
        let never = retried(Duration::from_millis(100), || {
            calls += 1;
            Err(anyhow!("busy"))
        });
        assert_eq!(never.unwrap_err().to_string(), "busy");
        assert!(calls > 1, "{calls}");
    }
}
