//! Carrying a change of settings out: routes first, for they may be refused; then what the workers own; then what the control
//! core owns.
//!
//! Law: all or nothing. When somebody does not obey, those before are given back what they had, the last first.

use npcc_cnp::control::command::Command as NpccCommand;
use npcc_cnp::control::settings::Settings as NpccSettings;
use npcc_config::Config;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::units::{BitRate, Mac, PortId, Priority};

use super::orders::Management;
use super::reload::{ReloadError, Settings};
use crate::control::order::{NpccOrder, OrderError};
use crate::fault;
use crate::keep::facts::Named;
use crate::wiring;
use crate::wiring::live_routes::LiveRoutes;
use crate::worker::command::{Command, Deaf};

/// Who must obey a change, in the order they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    /// The table of routes: takes all or nothing.
    Routes,
    /// The workers: take all or nothing.
    Workers,
    /// The control core: takes one order after the other.
    Control,
}

impl Party {
    const ALL: [Party; 3] = [Party::Routes, Party::Workers, Party::Control];
}

/// Has every party change from one to the other, or none: `tell` tells one.
pub(super) fn change(
    (from, to): (&Settings, &Settings),
    mut tell: impl FnMut(Party, &Settings, &Settings) -> Result<(), String>,
) -> Result<(), ReloadError> {
    let mut told = Vec::new();
    for party in Party::ALL {
        let Err(why) = tell(party, from, to) else {
            told.push(party);
            continue;
        };
        if party == Party::Control {
            // Some of its orders may hold.
            told.push(party);
        }
        let back = told.iter().rev().map(|party| tell(*party, to, from));
        let lost: Vec<String> = back.filter_map(Result::err).collect();
        if lost.is_empty() {
            return Err(ReloadError::Refused(format!("{why}: nothing was changed")));
        }
        let lost = lost.join("; ");
        return Err(ReloadError::Refused(format!(
            "{why}; taking back what had been changed failed too ({lost}): restart the switch"
        )));
    }
    Ok(())
}

impl Management {
    /// Has all who must obey change from one to the other, or none.
    pub(super) fn change(
        &self,
        routes: &mut Option<LiveRoutes>,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), ReloadError> {
        change((from, to), |party, from, to| match party {
            Party::Routes => self.reroute(routes.as_mut(), from, to),
            Party::Workers => self
                .requeue(&from.config, &to.config)
                .map_err(|deaf| deaf.to_string()),
            Party::Control => self.rewatch(from, to).map_err(|error| error.to_string()),
        })
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

    fn reroute(
        &self,
        routes: Option<&mut LiveRoutes>,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), String> {
        let Some(routes) = routes else {
            return self.reroute_linux(from, to);
        };
        let macs: Vec<Mac> = self.view.ports.iter().map(|port| port.mac).collect();
        let mut table = wiring::routes::table(&to.config, &macs);
        wiring::routes::deal(&to.config, &macs, &to.prefixes, &mut table);
        let done = routes.become_of(table);
        done.map(drop).map_err(|refused| refused.to_string())
    }

    /// Has the kernel take addresses, neighbours and routes, or gives it back what it had.
    fn reroute_linux(&self, from: &Settings, to: &Settings) -> Result<(), String> {
        let gone = || "the kernel is not followed any more: restart the switch".to_owned();
        let kernel = self.kernel.as_ref().ok_or_else(gone)?.handle();
        let (before, after) = (
            wiring::hosts::wanted(&from.config),
            wiring::hosts::wanted(&to.config),
        );
        if before == after {
            return Ok(());
        }
        let named = Named::of(&after);
        let refused = kernel.want(after).ok_or_else(gone)?;
        if refused.is_empty() {
            self.view.keep.change(|facts| facts.wanted = Some(named));
            return Ok(());
        }
        // What it had before it took then.
        let _ = kernel.want(before);
        let refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
        Err(refused.join("; "))
    }

    /// Queues, maps, and marking.
    pub(crate) fn requeue(&self, old: &Config, new: &Config) -> Result<(), Deaf> {
        let (before, after) = (self.settings(old), self.settings(new));
        let mut orders = Vec::new();
        for ((id, before), after) in (0..).map(PortId).zip(&before).zip(&after) {
            let queues = before.egress.queues.iter().zip(&after.egress.queues);
            for (priority, (before, after)) in Priority::all().zip(queues) {
                if before != after {
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
        self.workers.give(&orders)?;
        *self.view.qos() = crate::report::qos::effective(new, &after);
        Ok(())
    }

    /// What NPCC is to go by: the configuration, and what `set` has changed of policies' parameters.
    ///
    /// # Errors
    /// A policy does not take one.
    pub(super) fn npcc_settings(&self, of: &Settings) -> Result<NpccSettings, OrderError> {
        let mut all = wiring::control::settings(&of.config, &self.rates());
        for queue in &mut all.queues {
            let port = self.view.ports.get(queue.port.index());
            let slot = port.map(|port| (port.name.as_str(), queue.priority.get()));
            let orders = of.orders.iter().filter(|order| order.slot() == slot);
            for (name, value) in orders.filter_map(NpccOrder::parameter) {
                let set = queue.policy.set(name, value);
                set.map_err(OrderError::Parameter)?;
            }
        }
        Ok(all)
    }

    /// Watched queues, what holds for all of them, and what `set` gave them.
    fn rewatch(&self, from: &Settings, to: &Settings) -> Result<(), OrderError> {
        let (old, new) = (&from.config, &to.config);
        if wiring::control::style(old) != wiring::control::style(new) {
            let (style, priority) = wiring::control::style(new);
            self.npcc.restyle(style, priority)?;
        }
        let settings = self.npcc_settings(to)?;
        if settings != self.npcc_settings(from)? {
            self.view.hosts().clone_from(&settings.hosts);
            self.npcc.give(NpccCommand::Configure(Box::new(settings)))?;
        }
        if old != new && fault::strikes_once("reload") {
            return Err(OrderError::Deaf);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(weight: u8) -> Settings {
        let text = format!(
            "version: 1
ports: [ {{ name: dc0, device: net_null0 }} ]
qos: {{ priorities: {{ 0: {{ weight: {weight} }} }} }}
"
        );
        let loaded = npcc_config::parse("t.yaml", &text).unwrap();
        Settings::of(loaded.file, loaded.config)
    }

    /// What each party holds after a change of which the `fails`-th order fails.
    fn tried(fails: usize) -> (Result<(), String>, [u8; 3]) {
        let weight = |settings: &Settings| settings.config.ports[0].qos.priorities[0].weight;
        let (old, new) = (settings(10), settings(20));
        let mut holds = [10; 3];
        let mut orders = 0;
        let done = change((&old, &new), |party, _, to| {
            orders += 1;
            // The control core has taken a part when it fails.
            if orders != fails || party == Party::Control {
                holds[party as usize] = weight(to);
            }
            if orders == fails {
                return Err(format!("{party:?} is deaf"));
            }
            Ok(())
        });
        (done.map_err(|error| error.to_string()), holds)
    }

    #[test]
    fn a_reload_that_fails_half_way_leaves_nothing_applied() {
        assert_eq!(tried(0), (Ok(()), [20; 3]));
        for (fails, who) in [(1, "Routes"), (2, "Workers"), (3, "Control")] {
            let (done, holds) = tried(fails);
            assert_eq!(holds, [10; 3], "{who} failed");
            let why = done.unwrap_err();
            assert_eq!(why, format!("{who} is deaf: nothing was changed"));
        }
    }

    #[test]
    fn what_cannot_be_taken_back_is_said() {
        let (old, new) = (settings(10), settings(20));
        let done = change((&old, &new), |party, _, _| match party {
            Party::Routes => Ok(()),
            _ => Err("nobody listens".to_owned()),
        });
        let clean = done.unwrap_err().to_string();
        assert_eq!(clean, "nobody listens: nothing was changed");
        let done = change((&old, &new), |party, _, _| match party {
            Party::Control => Err("nobody listens".to_owned()),
            _ => Ok(()),
        });
        let torn = done.unwrap_err().to_string();
        assert!(torn.contains("restart the switch"), "{torn}");
    }
}
