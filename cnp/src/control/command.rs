//! What an operator may change while the control core runs. One order at a time, between two ticks; nothing here allocates
//! but a new policy.

use arrayvec::ArrayString;
use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::ControlCore;
use super::config::{EcnMode, QueueConfig, Settings};
use crate::action::{Action, HostSet};
use crate::dcqcn::Measure;
use crate::host_rules::HostRules;
use crate::key::{FlowKey, Qpn};
use crate::policy::{self, BadParameter, PolicyKind};

/// Name of a policy or of a parameter.
pub type Name = ArrayString<24>;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// These two queue pairs are one connection: packets of `flow` are sent by `sender`. It counts as evidence `cm`, and
    /// is taken back like it: by REJ and DREQ of its queue pairs, when one of them is used anew, and when the UDP source
    /// port of its packets changes.
    AddPair {
        /// Addresses of the data direction and the receiver's queue pair.
        flow: FlowKey,
        /// The sender's.
        sender: Qpn,
    },
    /// These two queue pairs are said to be one connection by a list that may be wrong, as it names no peer or is old. It counts as evidence
    /// `cm` only where packets say the same: the UDP source port is the hash of both queue pairs, or packets to both have the same.
    /// What the connection manager or the operator says of either queue pair stands above it.
    SuggestPair {
        /// Addresses of the data direction and the receiver's queue pair.
        flow: FlowKey,
        /// The sender's.
        sender: Qpn,
    },
    /// Forgets the pair packets of this flow belong to, however it was named.
    DeletePair {
        /// Addresses of either direction and the destination's queue pair.
        flow: FlowKey,
    },
    /// Puts another policy in a queue's slot, with nothing having happened yet.
    Policy {
        /// The port.
        port: PortId,
        /// The queue.
        priority: Priority,
        /// Its name; see [`ControlCore::offer`].
        name: Name,
    },
    /// Changes a parameter of the policy in a queue's slot.
    Parameter {
        /// The port.
        port: PortId,
        /// The queue.
        priority: Priority,
        /// The parameter's name.
        name: Name,
        /// Its new value, in the parameter's unit.
        value: u64,
    },
    /// Makes a policy available to [`Command::Policy`], instead of one of the same name.
    Offer {
        /// The port.
        port: PortId,
        /// The queue.
        priority: Priority,
        /// The policy and its parameters.
        kind: PolicyKind,
    },
    /// Watches a queue by other thresholds and another policy, with nothing having happened yet to the policy.
    Queue(QueueConfig),
    /// Settings of all queues.
    Settings(Settings),
    /// Says whether CNPs leave.
    Action {
        /// Of one queue, or of the whole switch.
        queue: Option<(PortId, Priority)>,
        /// What becomes of decisions.
        action: Action,
    },
    /// These hosts are only observed, and no others.
    Observed(HostSet),
    /// These hosts may be told, and no others.
    Told(HostRules),
}

/// Why an order was not obeyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The table of named queue pairs is full.
    Full,
    /// No such pair is known.
    UnknownPair,
    /// This queue is not watched.
    UnknownQueue,
    /// No policy of this name was offered for the queue.
    UnknownPolicy,
    /// The policy in the slot does not take this.
    Parameter(BadParameter),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Full => write!(out, "the table of pairs is full: raise npcc.flows"),
            Refused::UnknownPair => write!(out, "no such pair is known"),
            Refused::UnknownQueue => write!(out, "NPCC does not watch this queue"),
            Refused::UnknownPolicy => {
                write!(out, "no such policy: write {}", policy::names())
            }
            Refused::Parameter(why) => why.fmt(out),
        }
    }
}

impl std::error::Error for Refused {}

impl ControlCore {
    /// Makes a policy available to [`Command::Policy`] for a queue, instead of one of the same name.
    pub fn offer(&mut self, port: PortId, priority: Priority, kind: PolicyKind) {
        let same = |(at, queue, old): &&mut (PortId, Priority, PolicyKind)| {
            (*at, *queue, old.which()) == (port, priority, kind.which())
        };
        match self.offers.iter_mut().find(same) {
            Some((_, _, old)) => *old = kind,
            None => self.offers.push((port, priority, kind)),
        }
    }

    /// Obeys an order.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn obey(&mut self, command: &Command, now: Nanos) -> Result<(), Refused> {
        match command.clone() {
            Command::AddPair { flow, sender } => {
                let added = self.tracker.connections.give(&flow, sender, now);
                added.then_some(()).ok_or(Refused::Full)
            }
            Command::SuggestPair { flow, sender } => {
                let added = self.tracker.connections.suggest(&flow, sender, now);
                added.then_some(()).ok_or(Refused::Full)
            }
            Command::DeletePair { flow } => {
                let gone = self.tracker.connections.take_back(&flow);
                gone.then_some(()).ok_or(Refused::UnknownPair)
            }
            Command::Policy {
                port,
                priority,
                name,
            } => self.change_policy((port, priority), &name),
            Command::Parameter {
                port,
                priority,
                name,
                value,
            } => {
                let slot = self.slot((port, priority)).ok_or(Refused::UnknownQueue)?;
                let queue = self.queues.get_mut(slot).ok_or(Refused::UnknownQueue)?;
                let set = queue.policy.set(&name, value);
                if let Some(status) = self.status.queues().get(slot) {
                    status.show_parameters(&queue.policy.parameters());
                }
                set.map_err(Refused::Parameter)
            }
            Command::Offer {
                port,
                priority,
                kind,
            } => {
                self.offer(port, priority, kind);
                Ok(())
            }
            Command::Queue(config) => {
                let slot = self.slot((config.port, config.priority));
                let queue = slot.and_then(|slot| self.queues.get_mut(slot));
                let queue = queue.ok_or(Refused::UnknownQueue)?;
                queue.detector.reconfigure(config.detector);
                if let Some(status) = slot.and_then(|slot| self.status.queues().get(slot)) {
                    status.show_thresholds(&config.detector);
                }
                self.put((config.port, config.priority), config.policy)
            }
            Command::Settings(settings) => {
                self.resettle(&settings, now);
                Ok(())
            }
            Command::Action { queue, action } => self.act(queue, action),
            Command::Observed(hosts) => {
                self.tracker.actions.observed = hosts;
                Ok(())
            }
            Command::Told(rules) => {
                self.tracker.told = rules;
                Ok(())
            }
        }
    }

    fn slot(&self, (port, priority): (PortId, Priority)) -> Option<usize> {
        let mut queues = self.queues.iter();
        queues.position(|queue| (queue.port, queue.priority) == (port, priority))
    }

    fn change_policy(&mut self, place: (PortId, Priority), name: &str) -> Result<(), Refused> {
        self.slot(place).ok_or(Refused::UnknownQueue)?;
        let offered = self
            .offers
            .iter()
            .filter(|(port, priority, _)| (*port, *priority) == place);
        let kind = offered
            .map(|(_, _, kind)| *kind)
            .find(|kind| kind.which().name() == name)
            .ok_or(Refused::UnknownPolicy)?;
        self.put(place, kind)
    }

    /// Puts a policy in a slot. It may look more or less often than the one before.
    fn put(&mut self, place: (PortId, Priority), kind: PolicyKind) -> Result<(), Refused> {
        let slot = self.slot(place).ok_or(Refused::UnknownQueue)?;
        let queue = self.queues.get_mut(slot).ok_or(Refused::UnknownQueue)?;
        queue.policy = kind.slot();
        queue.next_look = Nanos::ZERO;
        if let Some(status) = self.status.queues().get(slot) {
            status.change_policy(kind);
            status.show_parameters(&queue.policy.parameters());
        }
        let looks = self.queues.iter().filter_map(|queue| queue.policy.look());
        self.period = looks.fold(self.tick, Nanos::min);
        self.tracker.measure = Measure::new(self.tracker.measure.feedback, self.period);
        Ok(())
    }

    /// CNPs leave or not from now on. What was told before keeps its time without marks, which is short.
    fn act(&mut self, queue: Option<(PortId, Priority)>, action: Action) -> Result<(), Refused> {
        let slot = queue.map(|place| self.slot(place).ok_or(Refused::UnknownQueue));
        let actions = &mut self.tracker.actions;
        let place = match slot {
            None => Some(&mut actions.all),
            Some(slot) => actions.queues.get_mut(slot?),
        };
        *place.ok_or(Refused::UnknownQueue)? = action;
        self.show_actions();
        Ok(())
    }

    /// Shows what becomes of decisions.
    pub(super) fn show_actions(&self) {
        let actions = &self.tracker.actions;
        self.status.acts(actions.all);
        for (index, queue) in self.status.queues().iter().enumerate() {
            queue.acts(actions.of_queue(index));
        }
    }

    fn resettle(&mut self, settings: &Settings, now: Nanos) {
        self.tracker.reconfigure(settings, self.period);
        for planner in [&mut self.planner, &mut self.would] {
            let caps = (settings.cap, settings.cap_per_second);
            planner.reconfigure(settings.evidence, &self.rates, caps, now);
        }
        self.notified = settings.notified;
        self.holds_marks = settings.ecn == EcnMode::MarkUnlessNotified;
        self.unpaired = settings.unpaired;
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::pair::Evidence;
    use crate::policy::PolicyName;
    use crate::traffic_tests::rig::{Packet, QUEUE, Rig, WAN, config};

    const TICK: Nanos = Nanos::from_micros(20);
    const DATA: Packet = Packet {
        src: [10, 0, 1, 3],
        dst: [10, 0, 2, 2],
        port: 50_000,
        opcode: 0x2a,
        qpn: 0x11,
        psn: 0,
        payload: 1024,
    };

    fn flow(qpn: u32) -> FlowKey {
        let address = |octets: [u8; 4]| std::net::IpAddr::from(octets);
        FlowKey::new(address(DATA.src), address(DATA.dst), Qpn::new(qpn))
    }

    fn name(name: &str) -> Name {
        Name::from(name).unwrap()
    }

    #[test]
    fn a_given_pair_is_told_until_it_is_taken_back() {
        let mut rig = Rig::new(&config(TICK));
        let add = Command::AddPair {
            flow: flow(0x11),
            sender: Qpn::new(0x18),
        };
        assert_eq!(rig.core.obey(&add, rig.now), Ok(()));
        assert_eq!(rig.core.obey(&add, rig.now), Ok(()), "twice is once");
        rig.out(&DATA);
        assert_eq!(rig.tick(TICK, 900_000), 1);
        assert_eq!(
            (rig.sent[0].sender_qpn, rig.sent[0].evidence),
            (Qpn::new(0x18), Evidence::Cm)
        );
        let delete = Command::DeletePair { flow: flow(0x11) };
        assert_eq!(rig.core.obey(&delete, rig.now), Ok(()));
        assert_eq!(rig.core.obey(&delete, rig.now), Err(Refused::UnknownPair));
        rig.out(&DATA);
        assert_eq!(rig.tick(Nanos::from_micros(200), 950_000), 0);
    }

    #[test]
    fn a_given_pair_whose_port_changes_is_no_longer_believed() {
        let mut rig = Rig::new(&config(TICK));
        let add = Command::AddPair {
            flow: flow(0x11),
            sender: Qpn::new(0x18),
        };
        rig.core.obey(&add, rig.now).unwrap();
        rig.out(&DATA);
        rig.tick(TICK, 0);
        rig.out(&Packet {
            port: 50_001,
            ..DATA
        });
        assert_eq!(rig.tick(TICK, 900_000), 0);
    }

    #[test]
    fn policies_and_parameters_change_while_running() {
        let mut rig = Rig::new(&config(TICK));
        let policy = |to: &str| Command::Policy {
            port: WAN,
            priority: QUEUE,
            name: name(to),
        };
        let parameter = |what: &str, value| Command::Parameter {
            port: WAN,
            priority: QUEUE,
            name: name(what),
            value,
        };
        assert_eq!(
            rig.core.obey(&policy("model"), rig.now),
            Err(Refused::UnknownPolicy)
        );
        for kind in [PolicyName::Npcc.defaults(), PolicyName::Model.defaults()] {
            rig.core.offer(WAN, QUEUE, kind);
        }
        assert_eq!(rig.core.obey(&parameter("few", 200), rig.now), Ok(()));
        assert_eq!(rig.core.obey(&policy("model"), rig.now), Ok(()));
        assert_eq!(rig.core.status().queues()[0].policy_now().name(), "model");
        assert_eq!(
            rig.core.obey(&parameter("horizon", 500_000), rig.now),
            Ok(())
        );
        assert_eq!(
            rig.core.obey(&parameter("few", 200), rig.now),
            Err(Refused::Parameter(BadParameter::Unknown))
        );
        let elsewhere = Command::Policy {
            port: PortId(7),
            priority: QUEUE,
            name: name("npcc"),
        };
        assert_eq!(
            rig.core.obey(&elsewhere, rig.now),
            Err(Refused::UnknownQueue)
        );
    }

    #[test]
    fn model_gets_its_faster_look_at_once_and_gives_it_back() {
        let mut rig = Rig::new(&config(TICK));
        rig.core.offer(WAN, QUEUE, PolicyName::Npcc.defaults());
        rig.core.offer(WAN, QUEUE, PolicyName::Model.defaults());
        let policy = |to: &str| Command::Policy {
            port: WAN,
            priority: QUEUE,
            name: name(to),
        };
        assert_eq!(rig.core.period(), TICK);
        rig.core.obey(&policy("model"), rig.now).unwrap();
        assert_eq!(rig.core.period(), Nanos::from_micros(4));
        rig.core.obey(&policy("npcc"), rig.now).unwrap();
        assert_eq!(rig.core.period(), TICK);
    }

    #[test]
    fn parameters_are_shown_as_they_are_set() {
        let mut rig = Rig::new(&config(TICK));
        let few = |rig: &Rig| {
            let shown = rig.core.status().queues()[0].parameters();
            shown.iter().find(|one| one.name == "few").unwrap().value
        };
        assert_eq!(few(&rig), 50);
        let set = Command::Parameter {
            port: WAN,
            priority: QUEUE,
            name: name("few"),
            value: 70,
        };
        rig.core.obey(&set, rig.now).unwrap();
        assert_eq!(few(&rig), 70);
    }

    #[test]
    fn thresholds_and_the_floor_change_while_running() {
        let set_up = config(TICK);
        let mut rig = Rig::new(&set_up);
        let add = Command::AddPair {
            flow: flow(0x11),
            sender: Qpn::new(0x18),
        };
        rig.core.obey(&add, rig.now).unwrap();
        let mut queue = set_up.queues[0];
        for bound in [
            &mut queue.detector.shallow,
            &mut queue.detector.deep,
            &mut queue.detector.hard,
        ] {
            *bound *= 1_000;
        }
        rig.core.obey(&Command::Queue(queue), rig.now).unwrap();
        let bounds = [
            queue.detector.shallow,
            queue.detector.deep,
            queue.detector.hard,
        ];
        assert_eq!(rig.core.status().queues()[0].thresholds(), bounds);
        rig.out(&DATA);
        assert_eq!(rig.tick(TICK, 900_000), 0, "idle by the new thresholds");
        rig.core
            .obey(&Command::Queue(set_up.queues[0]), rig.now)
            .unwrap();
        let mut settings = set_up.settings();
        for (trusted, qpn, told) in [(0, 0x12, 0), (u32::MAX, 0x13, 1)] {
            settings.trusted_ports = trusted;
            let change = Command::Settings(settings);
            rig.core.obey(&change, rig.now).unwrap();
            let add = Command::AddPair {
                flow: flow(qpn),
                sender: Qpn::new(qpn + 7),
            };
            rig.core.obey(&add, rig.now).unwrap();
            rig.tick(Nanos::from_micros(200), 0);
            rig.out(&Packet { qpn, ..DATA });
            assert_eq!(rig.tick(TICK, 950_000), told, "trusted {trusted}");
        }
        let elsewhere = QueueConfig {
            port: PortId(7),
            ..queue
        };
        assert_eq!(
            rig.core.obey(&Command::Queue(elsewhere), rig.now),
            Err(Refused::UnknownQueue)
        );
    }
}
