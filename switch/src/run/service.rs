//! Notifications to the service manager ([`npcc_engine::notify`]): start, readiness, status, keep-alives, stop.
//!
//! Law: the keep-alive is sent only while every essential thread makes progress ([`npcc_engine::threads`]). The management thread sends it, so
//! that thread is watched too. An auxiliary thread that is stuck is logged only: a restart would cost frames.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;

use crate::manage::view::View;
use npcc_engine::log::note;
use npcc_engine::notify::{self, tell};
use npcc_engine::threads::{Role, Watchdog};

/// Interval between status lines.
const STATUS: Duration = Duration::from_secs(5);

/// Connection to the service manager.
#[derive(Debug)]
pub(super) struct Service {
    listens: bool,
    /// Half the service manager's watchdog timeout.
    patience: Option<Duration>,
    /// True once readiness was signalled.
    is_ready: bool,
    keep_alive_due: Instant,
    status_due: Instant,
}

/// Reports the step that the start waits for.
pub(super) fn starting(text: &str) {
    tell(&[NotifyState::Status(text)]);
}

/// Reports that the switch stops on purpose.
pub(super) fn stopping() {
    notify::owe(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

impl Service {
    /// Reads the service manager's socket and watchdog timeout from the environment.
    pub(super) fn new(now: Instant) -> Service {
        Service {
            listens: notify::listens(),
            patience: sd_notify::watchdog_enabled().map(|time| time / 2),
            is_ready: false,
            keep_alive_due: now,
            status_due: now,
        }
    }

    /// Sends due notifications, once per turn of the management thread; the first call signals readiness.
    pub(super) fn turn(&mut self, view: &View, watchdog: &mut Watchdog, now: Instant) {
        if !self.listens {
            return;
        }
        notify::retry();
        if !self.is_ready {
            self.is_ready = true;
            watchdog.begin(now);
            notify::owe(&[NotifyState::Ready]);
        }
        if now >= self.status_due {
            self.status_due = now + STATUS;
            tell(&[NotifyState::Status(&status(view))]);
        }
        self.keep_alive(watchdog, now);
    }

    fn keep_alive(&mut self, watchdog: &mut Watchdog, now: Instant) {
        let Some(patience) = self.patience else {
            return;
        };
        if now < self.keep_alive_due {
            return;
        }
        self.keep_alive_due = now + patience / 4;
        for thread in watchdog.changes(patience, now) {
            let name = thread.name.as_str();
            if !thread.is_stuck {
                note(&format!("the {name} moves again"));
                continue;
            }
            let seconds = patience.as_secs_f64();
            let follows = match thread.role {
                Role::Essential => {
                    "the service manager gets no keep-alive and will restart the switch"
                }
                Role::Auxiliary => "frames are forwarded without it, a restart mends it",
            };
            tracing::error!(
                thread = name,
                "the {name} has not moved for {seconds} s: {follows}"
            );
        }
        if watchdog.is_well() {
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// Returns one line for `systemctl status`.
fn status(view: &View) -> String {
    let snapshot = view.snapshot();
    let down = snapshot.ports.iter().filter(|port| !port.up);
    let down: Vec<&str> = down.map(|port| port.name.as_str()).collect();
    let ports = snapshot.ports.len();
    let links = match down.len() {
        0 => format!("{ports} ports up"),
        _ => format!(
            "{} of {ports} ports up, down: {}",
            ports - down.len(),
            down.join(", ")
        ),
    };
    let drained = view.draining().map_or_else(String::new, |since| {
        format!("draining since {} s; ", since.as_secs())
    });
    format!(
        "{drained}{links}; {} flows, {} CNPs sent",
        snapshot.npcc.flows, snapshot.npcc.cnps_sent
    )
}
