//! Changes while the switch runs: another configuration, and links that go and come. They go the way of a reload and of the link thread, from
//! the desired state to the workers' commands and the control core's inbox, but for the threads and locks of management.

use std::sync::Arc;

use npcc_appliance::apply::outcome::ApplyError;
use npcc_appliance::apply::running::{SwitchState, Target, Targets};
use npcc_appliance::wiring::routes;
use npcc_cnp::control::command::ControlCommand;
use npcc_engine::control::commands::Answer;
use npcc_engine::control::pairs::ControlCommandError;
use npcc_pipeline::units::PortId;

use super::build::loaded;
use super::{US, World};

/// Longest time in which the control core answers a command.
const ANSWER: u64 = 1_000 * US;

impl World {
    /// Reloads a configuration. Time passes until workers and control core have taken it.
    ///
    /// # Errors
    /// Fails as a reload does; nothing has changed.
    ///
    /// # Panics
    /// The configuration has mistakes.
    pub fn reload(&mut self, text: &str) -> Result<(), ApplyError> {
        let loaded = loaded(text);
        let mut running = self.running.take().expect("no change is under way");
        let links = self.links.clone();
        let done = running
            .plan_reload(loaded)
            .and_then(|(effective, _)| running.reload(effective, false, &links, self));
        self.resume(running);
        if done.is_ok() {
            text.clone_into(&mut self.text);
        }
        done
    }

    /// Takes the link of a port down or up, as the link thread does that finds it so.
    ///
    /// # Panics
    /// The workers do not take it.
    pub fn set_link(&mut self, port: usize, up: bool) {
        self.cards[port].borrow_mut().set_link(up);
        self.hosts[port].link_changed();
        let id = PortId(u8::try_from(port).unwrap());
        if !up {
            self.down.set(id, true);
        }
        self.links[port].up = up;
        let mut running = self.running.take().expect("no change is under way");
        let links = self.links.clone();
        running
            .apply_links(&links, self)
            .expect("the workers take it");
        self.resume(running);
        if up {
            self.down.set(id, false);
        }
        self.wake(port);
    }

    /// Waits for the control core's answer to a command.
    pub(super) fn answered(
        &mut self,
        answer: Result<Answer, ControlCommandError>,
    ) -> Result<(), ControlCommandError> {
        let answer = answer?;
        let until = self.now.max(self.settings.control.away_until) + ANSWER;
        loop {
            if let Some(answered) = answer.poll() {
                return Ok(answered?);
            }
            assert!(self.now < until, "the control core does not answer");
            self.run_to(self.now + 10 * US);
        }
    }

    /// Lets all workers and the control core take a turn, so that they have the newest routes.
    fn settle(&mut self) {
        let until = self
            .settings
            .workers
            .iter()
            .map(|pace| pace.away_until)
            .max();
        let until = until
            .max(Some(self.settings.control.away_until))
            .unwrap_or(0);
        self.run_to(until.max(self.now) + 100 * US);
    }
}

impl Targets for World {
    fn apply_to(
        &mut self,
        target: Target,
        (_, from): SwitchState<'_>,
        (config, to): SwitchState<'_>,
    ) -> Result<(), String> {
        match target {
            Target::Routes => {
                self.settle();
                let mut table = self.routes.take().ok_or("the routes are being changed")?;
                let done = table.become_of(routes::table(config, &self.macs));
                self.routes = Some(table);
                done.map(drop).map_err(|refused| refused.to_string())
            }
            Target::Workers => {
                let given = self.commands.enqueue(&from.commands(to));
                given.map_err(|stuck| stuck.to_string())
            }
            Target::Control => {
                let npcc = Arc::clone(&self.npcc);
                let (header, priority) = to.cnp_header;
                let headers = (from.cnp_header != to.cnp_header)
                    .then(|| npcc.give_cnp_header(header, priority));
                let settings = (from.control != to.control)
                    .then(|| npcc.give(ControlCommand::Configure(Box::new(to.control.clone()))));
                for answer in [headers, settings].into_iter().flatten() {
                    self.answered(answer).map_err(|error| error.to_string())?;
                }
                Ok(())
            }
        }
    }
}
