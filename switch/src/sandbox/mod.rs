//! Sandbox of the running switch: drops what only its start needed: root, capabilities, system calls, files.
//!
//! The start needs much: devices, physical memory, namespaces, raw sockets, the sockets' groups. None of that is needed to forward, to
//! follow the kernel, to answer clients or to take a new configuration. An attacker who takes the switch over by a frame or a request thus
//! finds a process that can start no program, enter no namespace, load no executable code and open no raw socket, of a user ([`user`])
//! to whom neither root's files nor root's sockets are open: the service manager and D-Bus start no program for it.
//!
//! Law: it holds for every thread, DPDK's own included, and for threads started later; it cannot be undone.

mod calls;
mod files;
mod user;

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, anyhow};
use npcc_config::Config;
use npcc_config::model::Sandbox;
use npcc_config::resolved::Device;
use npcc_dpdk::{Capability, Privileges, filter_and_log, keep_privileges};
use seccompiler::{BpfProgram, apply_filter_all_threads};

use self::files::Places;
pub use self::user::Account;
use npcc_engine::fault;
use npcc_engine::log::note;

/// Longest time for which the system may refuse a part of the sandbox: on a loaded machine, threads that get no time drop no privileges
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

/// Closes the sandbox around the whole process, which becomes the user of `account`, unless the configuration says not to. `file` is the
/// configuration's.
///
/// # Errors
/// Gives the system's last error after 5 s of refusals, unless the configuration lets the switch run without (`sandbox: try`).
pub fn close(config: &Config, file: &Path, account: Option<&Account>) -> anyhow::Result<()> {
    if config.sandbox == Sandbox::Off {
        note(
            "note: the sandbox is off (sandbox): the switch may do all that whoever started it may",
        );
        return Ok(());
    }
    let kept = capabilities(config);
    let dropped = drop_privileges(config, file, account, &kept);
    let restricted = restrict_system_calls(config.sandbox == Sandbox::Log);
    match dropped.and_then(|has_landlock| restricted.map(|()| has_landlock)) {
        Ok(has_landlock) => {
            let names: Vec<&str> = kept.iter().map(|one| one.name()).collect();
            tracing::info!(
                "the sandbox is closed: {} kinds of system call, capabilities {}, user {}, {} Landlock",
                calls::allowed(),
                names.join(", "),
                account.map_or_else(own_user, |account| account.name.clone()),
                if has_landlock { "with" } else { "without" },
            );
            note_unreadable(file);
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

/// Returns the user that the process is.
fn own_user() -> String {
    let id = nix::unistd::geteuid();
    let user = nix::unistd::User::from_uid(id).ok().flatten();
    user.map_or_else(|| id.to_string(), |user| user.name)
}

/// Notes a configuration file that the process cannot read any more, as a reload will.
fn note_unreadable(file: &Path) {
    if let Err(error) = File::open(file) {
        let (path, user) = (file.display(), own_user());
        note(&format!(
            "note: a reload will be refused: user {user} cannot read {path}: {error}: chgrp {user} {path}; chmod g+r {path}; and g+x for its folders"
        ));
    }
}

/// Drops root, all capabilities but `kept`, and all files but those that are needed. Returns false where the kernel has no Landlock.
fn drop_privileges(
    config: &Config,
    file: &Path,
    account: Option<&Account>,
    kept: &[Capability],
) -> anyhow::Result<bool> {
    let notify = std::env::var_os("NOTIFY_SOCKET");
    let telemetry = &config.telemetry;
    let places = Places {
        config: file,
        sockets: [&telemetry.socket, &telemetry.read_only_path()].map(PathBuf::from),
        notify: notify.as_deref(),
    };
    let rules = files::rules(&places).context("files are not restricted")?;
    let ruleset = files::descriptor(rules);
    let privileges = Privileges {
        capabilities: kept,
        user: account.map(|account| &account.ids),
        ruleset: ruleset.as_ref().map(AsFd::as_fd),
    };
    retried(LIMIT, || {
        if fault::strikes("sandbox") {
            return Err(anyhow!("a fault was asked for at `sandbox`"));
        }
        keep_privileges(privileges).map_err(Error::msg)
    })
    .with_context(|| {
        let needs = account.map(|account| {
            let name = &account.name;
            format!(" (to become user {name} takes CAP_SETUID and CAP_SETGID; `user: root` needs neither)")
        });
        format!("privileges were not given away{}", needs.unwrap_or_default())
    })?;
    Ok(ruleset.is_some())
}

/// Applies each filter once: two of the same would cost time at each system call. `logs`: the kernel logs the calls that the list lacks.
fn restrict_system_calls(logs: bool) -> anyhow::Result<()> {
    let [threads, list] = calls::filters().map_err(|why| anyhow!(why))?;
    let apply = |filter: &BpfProgram, logs: bool| {
        retried(LIMIT, || {
            if logs {
                return filter_and_log(filter).map_err(Error::msg);
            }
            Ok(apply_filter_all_threads(filter)?)
        })
    };
    // Each new thread has its `clone3` refused.
    apply(&threads, false)
        .and_then(|()| apply(&list, logs))
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
