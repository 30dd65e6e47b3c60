//! Operator commands to the running switch, carried out in the thread that calls.
//!
//! Law: the settings shown are those that the workers were given. A command that one worker cannot take is given to none, and no shown
//! value changes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use npcc_api::cnps::CnpOrder;
use npcc_api::outcome::Outcome;
use npcc_api::pairs::ListedPair;
use npcc_api::protocol::{ApiError, Reply, status};
use npcc_cnp::control::command::ControlCommand;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::units::PortId;

use super::capture::Captures;
use super::errors::{of_control, of_worker};
use super::targets::{LiveTargets, Routes};
use super::view::View;
use crate::apply::desired::ObservedLink;
use crate::apply::outcome::ApplyError;
use crate::apply::running::RunningState;
use crate::wiring::kernel::Kernel;
use npcc_engine::control::commands::ControlCommands;
use npcc_engine::control::order;
use npcc_engine::control::pairs::{self, ControlCommandError};
use npcc_engine::worker::command::{WorkerCommand, WorkerCommands};

/// Running configuration and its routes.
#[derive(Debug)]
pub struct Live {
    /// The configuration.
    pub running: RunningState,
    /// Routes of that configuration.
    pub routes: Routes,
}

/// The management service: its view, and the targets of its commands.
#[derive(Debug)]
pub struct Management {
    /// State to be shown.
    pub view: View,
    /// Commands to the workers.
    pub workers: WorkerCommands,
    /// Commands to the control core.
    pub npcc: ControlCommands,
    /// Running configuration and its origin. A thread holds this lock to change it, so that changes are serialised. What `show` reads is published without it; a dry run of a reload needs it.
    pub live: Mutex<Live>,
    /// Ports that the routes pass over.
    pub down: Arc<DownPorts>,
    /// The kernel; `None` where Linux is not integrated.
    pub kernel: Option<Kernel>,
    /// Captured frames of the workers; the first client to lock them captures.
    pub captures: Mutex<Captures>,
}

impl Management {
    /// Locks the running configuration, to change it.
    ///
    /// # Errors
    /// Fails with [`Torn`] if an earlier change panicked half-way.
    pub(super) fn live(&self) -> Result<MutexGuard<'_, Live>, Torn> {
        self.live.lock().map_err(|_| Torn)
    }

    /// Returns the number of the port with this name.
    pub(super) fn port(&self, name: &str) -> Option<PortId> {
        let mut ids = self.view.ports.iter().zip(0u8..);
        ids.find(|(port, _)| port.name == name)
            .map(|(_, id)| PortId(id))
    }

    /// Returns the targets of a change.
    pub(super) fn targets<'a>(&'a self, routes: &'a mut Routes) -> LiveTargets<'a> {
        LiveTargets {
            view: &self.view,
            workers: &self.workers,
            npcc: &self.npcc,
            kernel: self.kernel.as_ref(),
            routes,
        }
    }

    /// Returns the links as the desired state needs them.
    pub(super) fn links(&self) -> Vec<ObservedLink> {
        let states = self.view.links.all();
        let ports = states.iter().zip(&self.view.ports);
        ports.map(|(state, facts)| state.link(facts.mac)).collect()
    }

    /// Changes the running configuration, and publishes it.
    ///
    /// # Errors
    /// Fails with [`ApplyError`], and all is as before, unless the error asks for a restart.
    pub(super) fn with_running<T>(
        &self,
        change: impl FnOnce(
            &mut RunningState,
            &[ObservedLink],
            &mut LiveTargets<'_>,
        ) -> Result<T, ApplyError>,
    ) -> Result<T, ApplyError> {
        let mut live = self
            .live()
            .map_err(|torn| ApplyError::Refused(torn.to_string()))?;
        let Live { running, routes } = &mut *live;
        let mut targets = self.targets(routes);
        let changed = change(running, &self.links(), &mut targets)?;
        *self.view.config() = running.in_force().clone();
        Ok(changed)
    }

    /// Sets a value of the running configuration, by its key.
    ///
    /// # Errors
    /// Fails with [`ApplyError`], and all is as before, unless the error asks for a restart.
    pub fn set(&self, key: &str, value: &str) -> Result<Outcome, ApplyError> {
        self.with_running(|running, links, targets| running.set((key, value), links, targets))
    }

    /// Resets a key, or all that was set, to the file's value.
    ///
    /// # Errors
    /// Fails with [`ApplyError`], and all is as before, unless the error asks for a restart.
    pub fn unset(&self, key: Option<&str>) -> Result<Outcome, ApplyError> {
        self.with_running(|running, links, targets| running.unset(key, links, targets))
    }

    /// Returns the running configuration as YAML, or its differences from the file as it is now.
    ///
    /// # Errors
    /// Fails with the report if the file has mistakes.
    pub fn config(&self, diff: bool) -> Result<String, ApplyError> {
        let effective = self.view.config().clone();
        if diff {
            effective.against_file(self.view.path())
        } else {
            Ok(effective.to_string())
        }
    }

    /// Records that the switch is being drained, or no longer; the next process knows it too.
    pub fn drain(&self, on: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        self.view.saved.change(|facts| {
            facts.draining = on.then(|| facts.draining.unwrap_or(now));
        });
    }

    /// Suggests pairs to the control core, which packets must confirm. Those before one that is refused are kept.
    ///
    /// # Errors
    /// Says what is wrong with one of them, or that the control core does not listen.
    pub fn suggest_pairs(&self, listed: &[ListedPair]) -> Result<(), ControlCommandError> {
        let commands = listed.iter().map(|pair| pairs::pair_command(pair, true));
        let commands: Arc<[ControlCommand]> = commands.collect::<Result<_, _>>()?;
        self.npcc.send_pairs_and_wait(&commands)
    }

    /// Has the control core carry out an operator's command about a pair.
    ///
    /// # Errors
    /// Says what is wrong with it, or that the control core does not listen.
    pub fn pair(
        &self,
        command: Result<ControlCommand, ControlCommandError>,
    ) -> Result<(), ApiError> {
        let given = command.and_then(|command| self.npcc.send_and_wait(command));
        given.map_err(|error| of_control(&error))
    }

    /// Has the control core send the CNPs of an order, [`order::GAP`] apart.
    ///
    /// # Errors
    /// Says what is wrong with the order, or why a CNP cannot leave and how many have left.
    pub fn send_cnps(&self, order: &CnpOrder) -> Result<(), ApiError> {
        order::check_count(order).map_err(|why| ApiError::new(status::BAD_REQUEST, why))?;
        for sent in 0..order.count {
            if sent > 0 {
                std::thread::sleep(order::GAP);
            }
            let given = self.npcc.send_cnp(order);
            given.map_err(|error| {
                let mut error = of_control(&error);
                if sent > 0 {
                    error.problem.error += &format!("; {sent} of {} CNPs have left", order.count);
                }
                error
            })?;
        }
        Ok(())
    }

    /// Shows the counters of a port, or of all, to a user relative to now.
    ///
    /// # Errors
    /// Fails if there is no such port.
    pub fn clear_counters(&self, user: u32, port: Option<&str>) -> Result<(), ApiError> {
        let port = match port {
            Some(name) => Some(self.port(name).ok_or_else(|| self.no_port(name))?),
            None => None,
        };
        self.view.clear_counters(user, port);
        Ok(())
    }

    /// Returns the error for a port that does not exist.
    pub(super) fn no_port(&self, name: &str) -> ApiError {
        let ports = self.view.ports.iter();
        let names: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
        let why = format!("there is no port `{name}`");
        let hint = format!("write one of {}", names.join(", "));
        ApiError::with_hint(status::NOT_FOUND, why, &hint)
    }

    /// Restarts the user watermarks and the timings.
    ///
    /// # Errors
    /// Fails if a worker timed out.
    pub fn clear_watermarks(&self) -> Result<(), ApiError> {
        let cleared = self.workers.enqueue(&[WorkerCommand::ClearWatermarks]);
        cleared.map_err(of_worker)?;
        self.view.restart_watermarks();
        Ok(())
    }

    /// Returns since when the switch forwards, or that it does not yet.
    pub(super) fn ready(&self) -> Reply {
        self.view.forwarding().map_or_else(
            || {
                let why = "the switch does not forward yet";
                let hint = "try again in a second";
                Reply::Refused(ApiError::with_hint(status::UNAVAILABLE, why, hint))
            },
            Reply::Ready,
        )
    }
}

/// An earlier change panicked half-way: the running state is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change before ended half-way: restart the switch")]
pub struct Torn;
