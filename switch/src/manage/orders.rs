//! What an operator may order while the switch runs, and who is told.
//!
//! Law: what is shown as set is what the workers were given. An order that a worker cannot take is given to none, and nothing that is
//! shown changes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};

use npcc_cnp::control::command::{Command as NpccCommand, Refused};
use npcc_cnp::policy::PolicyName;
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::route::down_ports::DownPorts;
use npcc_pipeline::units::{PortId, Priority};

use super::capture::Captures;
use super::reload::{Running, Settings};
use super::view::View;
use crate::control::order::{ListedPair, NpccOrder, OrderError};
use crate::control::orders::NpccOrders;
use crate::report::qos::Qos;
use crate::wiring::kernel::Kernel;
use crate::wiring::live_routes::LiveRoutes;
use crate::worker::command::{Command, Deaf, WorkerOrders};

/// What runs, and its routes.
#[derive(Debug)]
pub struct Live {
    /// The configuration.
    pub running: Running,
    /// The table of routes; none where the routes are the kernel's.
    pub routes: Option<LiveRoutes>,
    /// What held before a reload that waits for its commit.
    pub before: Option<Settings>,
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

    /// Has the control core obey an order.
    ///
    /// # Errors
    /// What is wrong with it, or that nobody listens.
    pub fn npcc_order(&self, order: &NpccOrder) -> Result<(), String> {
        let said = |error: OrderError| error.to_string();
        if let Some(command) = order.command().map_err(said)? {
            return self.npcc.give(command).map_err(said);
        }
        let mut live = self.live().map_err(|torn| torn.to_string())?;
        let now = &mut live.running.now;
        let mut new = now.clone();
        self.set(&mut new, order).map_err(said)?;
        // Where `ecn` is off, queues of which nothing is told any more are marked again.
        let requeue = |from, to| self.requeue(from, to).map_err(|deaf| deaf.to_string());
        let settings = Box::new(self.npcc_settings(&new).map_err(said)?);
        requeue(&now.config, &new.config)?;
        if let Err(why) = self.npcc.give(NpccCommand::Configure(settings)) {
            requeue(&new.config, &now.config)?;
            return Err(why.to_string());
        }
        *now = new;
        Ok(())
    }

    /// Notes what an order changes.
    fn set(&self, settings: &mut Settings, order: &NpccOrder) -> Result<(), OrderError> {
        let config = &mut settings.config;
        if let NpccOrder::Action { action } = order {
            config.npcc.action = *action;
        }
        if let NpccOrder::Policy { port, priority, .. }
        | NpccOrder::Parameter { port, priority, .. }
        | NpccOrder::QueueAction { port, priority, .. } = order
        {
            let no_port = || OrderError::Port(port.clone());
            let index = self.port(port).ok_or_else(no_port)?.index();
            let plan = config.ports.get_mut(index).ok_or_else(no_port)?;
            let watch = plan.npcc.as_mut();
            let watch = watch.filter(|watch| watch.priorities().any(|one| one == *priority));
            let watch = watch.ok_or(OrderError::Refused(Refused::UnknownQueue))?;
            let at = usize::from(*priority);
            if let (NpccOrder::QueueAction { action, .. }, Some(own)) =
                (order, watch.actions.get_mut(at))
            {
                *own = *action;
            }
            if let (NpccOrder::Policy { name, .. }, Some(own), Some(written)) = (
                order,
                watch.policies.get_mut(at),
                watch.parameters.get_mut(at),
            ) {
                // They are those of the policy before.
                written.clear();
                *own = PolicyName::named(name).ok_or(OrderError::Policy)?;
            }
        }
        settings.ordered(order);
        Ok(())
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

    /// Gives a DWRR queue of every port another weight, 1 to 100.
    ///
    /// # Errors
    /// Why not; nothing has changed then.
    pub fn set_weight(&self, priority: u8, weight: u8) -> Result<(), String> {
        let mut live = self.live().map_err(|torn| torn.to_string())?;
        // Not held while workers are waited for: others look.
        let mut qos = self.view.qos().clone();
        let ports = self.view.ports.len();
        weigh(&mut qos, &self.workers, ports, (priority, weight))?;
        *self.view.qos() = qos;
        let now = &mut live.running.now;
        for port in &mut now.config.ports {
            if let Some(plan) = port.qos.priorities.get_mut(usize::from(priority)) {
                plan.weight = weight;
            }
        }
        let key = format!("qos.priorities.{priority}.weight");
        now.overrides.insert(key);
        Ok(())
    }
}

/// A change panicked half-way: nobody knows what holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change before ended half-way: restart the switch")]
pub struct Torn;

/// Orders another weight for a queue of all ports; what is shown follows once every worker was told.
fn weigh(
    qos: &mut Qos,
    workers: &WorkerOrders,
    ports: usize,
    (priority, weight): (u8, u8),
) -> Result<(), String> {
    let queue = qos.priorities.get_mut(usize::from(priority));
    let queue = queue.ok_or_else(|| format!("there is no priority {priority}: write 0 to 7"))?;
    if !(1..=100).contains(&weight) {
        return Err(format!("{weight} is no weight: write 1 to 100"));
    }
    if queue.weight.is_none() {
        return Err(format!(
            "priority {priority} is served strictly: it has no weight"
        ));
    }
    let orders = (0u8..).take(ports).map(|port| Command::Discipline {
        port: PortId(port),
        priority: Priority::new(priority),
        discipline: Discipline::Dwrr(weight),
    });
    let orders: Vec<Command> = orders.collect();
    workers.give(&orders).map_err(|deaf| deaf.to_string())?;
    queue.weight = Some(weight);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::qos::QosPriority;
    use crate::worker::command::ring;

    #[test]
    fn a_weight_is_shown_only_if_every_worker_was_told() {
        let (rings, mut workers): (Vec<_>, Vec<_>) = (0..2).map(|_| ring()).unzip();
        let orders = WorkerOrders::new(rings);
        let mut qos = Qos {
            priorities: vec![QosPriority {
                weight: Some(50),
                ..QosPriority::default()
            }],
            ..Qos::default()
        };
        assert_eq!(weigh(&mut qos, &orders, 2, (0, 20)), Ok(()));
        assert_eq!(qos.priorities[0].weight, Some(20));
        // The first worker stops listening, the second goes on.
        while orders.give(&[Command::ClearWatermarks]).is_ok() {
            while workers[1].pop().is_ok() {}
        }
        let refused = weigh(&mut qos, &orders, 2, (0, 30));
        assert!(refused.is_err_and(|why| why.contains("does not listen")));
        assert_eq!(qos.priorities[0].weight, Some(20), "as the workers have it");
        assert!(
            workers[1].pop().is_err(),
            "the listening one has it no other way"
        );
    }
}
