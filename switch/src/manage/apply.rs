//! Carrying a reload out: routes first, for they may be refused; then what the workers own; then what the control core owns.

use npcc_cnp::control::command::Command as NpccCommand;
use npcc_config::Config;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::units::{BitRate, Mac, PortId, Priority};

use super::orders::Management;
use super::reload::{Outcome, Plan, ReloadError};
use crate::control::orders::OrderError;
use crate::wiring;
use crate::worker::command::Command;

impl Management {
    /// Reads the configuration file again and applies what a running switch can take.
    ///
    /// # Errors
    /// [`ReloadError`]; nothing has changed, except when a thread did not obey.
    pub fn reload(&self) -> Result<Outcome, ReloadError> {
        let refused = |error: &dyn std::fmt::Display| ReloadError::Refused(error.to_string());
        let mut live = self
            .live
            .lock()
            .map_err(|_| refused(&"an earlier reload failed half-way: restart the switch"))?;
        let Plan {
            file,
            config,
            outcome,
        } = live.running.plan()?;
        let macs: Vec<Mac> = self.view.ports.iter().map(|port| port.mac).collect();
        let table = wiring::routes::table(&config, &macs);
        live.routes
            .become_of(table)
            .map_err(|error| refused(&error))?;
        let overridden = |prefix: &str| {
            let mut keys = live.running.overrides.iter();
            keys.any(|key| key.starts_with(prefix))
        };
        self.requeue(&live.running.config, &config, overridden("qos."))?;
        self.rewatch(&live.running.config, &config, overridden)
            .map_err(|error| refused(&error))?;
        live.running.file = file;
        live.running.config = config;
        live.running.overrides.clear();
        Ok(outcome)
    }

    fn rates(&self) -> Vec<Option<BitRate>> {
        self.view.links.rates()
    }

    /// Each port's settings by a configuration.
    fn settings(&self, config: &Config) -> Vec<PortConfig> {
        let ports = config.ports.iter().zip(&self.view.ports);
        ports
            .zip(self.view.links.rates())
            .map(|((plan, facts), rate)| wiring::path::port(config, plan, facts.mac, rate))
            .collect()
    }

    /// Queues, maps and marking.
    pub(crate) fn requeue(&self, old: &Config, new: &Config, all: bool) -> Result<(), ReloadError> {
        let (before, after) = (self.settings(old), self.settings(new));
        let mut orders = Vec::new();
        for ((id, before), after) in (0..).map(PortId).zip(&before).zip(&after) {
            let queues = before.egress.queues.iter().zip(&after.egress.queues);
            for (priority, (before, after)) in Priority::all().zip(queues) {
                if all || before != after {
                    orders.push(Command::Queue {
                        port: id,
                        priority,
                        config: after.clone(),
                    });
                }
            }
            if before.intake.classifier != after.intake.classifier {
                orders.push(Command::Classifier {
                    port: id,
                    classifier: after.intake.classifier.clone(),
                });
            }
            if before.ecn != after.ecn {
                orders.push(Command::Ecn {
                    port: id,
                    mode: after.ecn,
                });
            }
        }
        self.workers.give(&orders).map_err(|deaf| {
            ReloadError::Refused(format!("{deaf}: part of the file was applied"))
        })?;
        if let Ok(mut qos) = self.view.qos.lock() {
            *qos = crate::report::qos::effective(new, &after);
        }
        Ok(())
    }

    /// Watched queues, and what holds for all of them.
    fn rewatch(
        &self,
        old: &Config,
        new: &Config,
        overridden: impl Fn(&str) -> bool,
    ) -> Result<(), OrderError> {
        let rates = self.rates();
        let plan = |config: &Config| wiring::control::plan(config, &rates, 0);
        let (before, after) = (plan(old), plan(new));
        if before.settings() != after.settings() {
            self.npcc.give(NpccCommand::Settings(after.settings()))?;
        }
        if wiring::control::style(old) != wiring::control::style(new) {
            let (style, priority) = wiring::control::style(new);
            self.npcc.restyle(style, priority)?;
        }
        if wiring::control::offers(old, &rates) != wiring::control::offers(new, &rates) {
            for (port, priority, kind) in wiring::control::offers(new, &rates) {
                self.npcc.give(NpccCommand::Offer {
                    port,
                    priority,
                    kind,
                })?;
            }
        }
        for (before, after) in before.queues.iter().zip(&after.queues) {
            let name = self
                .view
                .ports
                .get(after.port.index())
                .map(|port| &port.name);
            let key = name.map(|name| format!("npcc.{name}.{}.", after.priority.get()));
            if before != after || key.is_some_and(|key| overridden(&key)) {
                self.npcc.give(NpccCommand::Queue(*after))?;
            }
        }
        Ok(())
    }
}
