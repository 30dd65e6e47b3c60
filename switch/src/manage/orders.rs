//! What an operator may order while the switch runs, and who is told.
//!
//! Law: what is shown as set is what the workers were given. An order that a worker cannot take is given to none, and nothing that is
//! shown changes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use npcc_cnp::control::command::Command as NpccCommand;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::units::PortId;

use super::capture::Captures;
use super::targets::{Routes, Running as Targets};
use super::view::View;
use crate::apply::desired::Link;
use crate::apply::outcome::{ApplyError, Outcome};
use crate::apply::running::Running;
use crate::control::order::{ListedPair, NpccOrder, OrderError};
use crate::control::orders::NpccOrders;
use crate::wiring::kernel::Kernel;
use crate::worker::command::{Command, Deaf, WorkerOrders};

/// What runs, and its routes.
#[derive(Debug)]
pub struct Live {
    /// The configuration.
    pub running: Running,
    /// Its routes.
    pub routes: Routes,
}

/// The management service: what it sees, and whom it gives orders.
#[derive(Debug)]
pub struct Management {
    /// What there is to see.
    pub view: View,
    /// Orders to the workers.
    pub workers: WorkerOrders,
    /// Orders to the control core.
    pub npcc: NpccOrders,
    /// What runs, and where it came from. Whoever changes it holds this lock, so that one change follows the other; nobody
    /// who only looks needs it.
    pub live: Mutex<Live>,
    /// The ports that the routes pass over.
    pub down: Arc<DownPorts>,
    /// The kernel, where Linux is integrated.
    pub kernel: Option<Kernel>,
    /// What the workers capture, for whoever asks first.
    pub captures: Mutex<Captures>,
}

impl Management {
    /// What runs, to be changed.
    ///
    /// # Errors
    /// [`Torn`]: a change before panicked half-way.
    pub(super) fn live(&self) -> Result<MutexGuard<'_, Live>, Torn> {
        self.live.lock().map_err(|_| Torn)
    }

    /// Number of the port of this name.
    pub(super) fn port(&self, name: &str) -> Option<PortId> {
        let mut ids = self.view.ports.iter().zip(0u8..);
        ids.find(|(port, _)| port.name == name)
            .map(|(_, id)| PortId(id))
    }

    /// Those who take a change.
    pub(super) fn targets<'a>(&'a self, routes: &'a mut Routes) -> Targets<'a> {
        Targets {
            view: &self.view,
            workers: &self.workers,
            npcc: &self.npcc,
            kernel: self.kernel.as_ref(),
            routes,
        }
    }

    /// What is known of the links.
    pub(super) fn links(&self) -> Vec<Link> {
        let states = self.view.links.all();
        let ports = states.iter().zip(&self.view.ports);
        ports.map(|(state, facts)| state.link(facts.mac)).collect()
    }

    /// Changes what runs, and shows it.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut Running, &[Link], &mut Targets<'_>) -> Result<T, ApplyError>,
    ) -> Result<T, ApplyError> {
        let mut live = self
            .live()
            .map_err(|torn| ApplyError::Refused(torn.to_string()))?;
        let Live { running, routes } = &mut *live;
        let mut targets = self.targets(routes);
        let changed = change(running, &self.links(), &mut targets)?;
        *self.view.config() = running.wanted().clone();
        Ok(changed)
    }

    /// Sets a value of what runs, as in the configuration.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed.
    pub fn set(&self, key: &str, value: &str) -> Result<(), ApplyError> {
        self.change(|running, links, targets| running.set((key, value), links, targets))
    }

    /// Has a key, or all that was set, be as in the file.
    ///
    /// # Errors
    /// [`ApplyError`]; nothing has changed.
    pub fn unset(&self, key: Option<&str>) -> Result<Outcome, ApplyError> {
        self.change(|running, links, targets| running.unset(key, links, targets))
    }

    /// The configuration that runs, as YAML, or how it differs from the file as it is now.
    ///
    /// # Errors
    /// The file has mistakes: the report.
    pub fn config(&self, diff: bool) -> Result<String, ApplyError> {
        let wanted = self.view.config().clone();
        if diff {
            wanted.against_file(self.view.path())
        } else {
            Ok(wanted.to_string())
        }
    }

    /// Notes that the switch's traffic is being taken away, or no more; the next process knows it too.
    pub fn drain(&self, on: bool) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        self.view.keep.change(|facts| {
            facts.draining = on.then(|| facts.draining.unwrap_or(now));
        });
    }

    /// Has the control core take in a list of pairs, or none of it.
    ///
    /// # Errors
    /// What is wrong with one of them, or that nobody listens.
    pub fn npcc_pairs(&self, pairs: &[ListedPair], suggested: bool) -> Result<(), String> {
        let commands = pairs.iter().map(|pair| pair.command(suggested));
        let commands: Result<Arc<[NpccCommand]>, OrderError> = commands.collect();
        let commands = commands.map_err(|error| error.to_string())?;
        let given = self.npcc.give_pairs(&commands);
        given.map_err(|error| format!("{error}: none of the list holds"))
    }

    /// Has the control core add or forget a pair.
    ///
    /// # Errors
    /// What is wrong with it, or that nobody listens.
    pub fn npcc_order(&self, order: &NpccOrder) -> Result<(), String> {
        let command = order.command();
        let given = command.and_then(|command| self.npcc.give(command));
        given.map_err(|error| error.to_string())
    }

    /// Starts the user watermarks, and what took how long, anew.
    ///
    /// # Errors
    /// When a worker does not listen.
    pub fn clear_watermarks(&self) -> Result<(), Deaf> {
        self.workers.give(&[Command::ClearWatermarks])?;
        self.view.timings().clear();
        Ok(())
    }
}

/// A change panicked half-way: nobody knows what holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change before ended half-way: restart the switch")]
pub struct Torn;
