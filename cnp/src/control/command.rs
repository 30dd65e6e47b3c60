//! What an operator may change while the control core runs. One order at a time, between two ticks; nothing here allocates
//! but a new policy.

use arrayvec::ArrayString;
use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::ControlCore;
use crate::key::{FlowKey, Qpn};
use crate::policy::{BadParameter, PolicyKind};

/// Name of a policy or of a parameter.
pub type Name = ArrayString<24>;

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Refused::UnknownPolicy => write!(out, "no such policy: write npcc, model or pi"),
            Refused::Parameter(BadParameter::Unknown) => {
                write!(
                    out,
                    "the queue's policy has no such parameter; see show npcc"
                )
            }
            Refused::Parameter(BadParameter::Range(low, high)) => {
                write!(out, "out of range: write {low} to {high}")
            }
        }
    }
}

impl std::error::Error for Refused {}

impl ControlCore {
    /// Makes a policy available to [`Command::Policy`] for a queue.
    pub fn offer(&mut self, port: PortId, priority: Priority, kind: PolicyKind) {
        self.offers.push((port, priority, kind));
    }

    /// Obeys an order.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn obey(&mut self, command: &Command, now: Nanos) -> Result<(), Refused> {
        match *command {
            Command::AddPair { flow, sender } => {
                let added = self.ledger.book.give(&flow, sender, now);
                added.then_some(()).ok_or(Refused::Full)
            }
            Command::DeletePair { flow } => {
                let gone = self.ledger.book.take_back(&flow);
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
                queue.policy.set(&name, value).map_err(Refused::Parameter)
            }
        }
    }

    fn slot(&self, (port, priority): (PortId, Priority)) -> Option<usize> {
        let mut queues = self.queues.iter();
        queues.position(|queue| (queue.port, queue.priority) == (port, priority))
    }

    fn change_policy(&mut self, place: (PortId, Priority), name: &str) -> Result<(), Refused> {
        let slot = self.slot(place).ok_or(Refused::UnknownQueue)?;
        let offered = self
            .offers
            .iter()
            .filter(|(port, priority, _)| (*port, *priority) == place);
        let kind = offered
            .map(|(_, _, kind)| *kind)
            .find(|kind| kind.name() == name)
            .ok_or(Refused::UnknownPolicy)?;
        let queue = self.queues.get_mut(slot).ok_or(Refused::UnknownQueue)?;
        queue.policy = kind.slot();
        if let Some(status) = self.status.queues().get(slot) {
            status.change_policy(kind);
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::pair::Evidence;
    use crate::policy::model::ModelConfig;
    use crate::policy::npcc::NpccConfig;
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
        for kind in [
            PolicyKind::Npcc(NpccConfig::default()),
            PolicyKind::Model(ModelConfig::default()),
        ] {
            rig.core.offer(WAN, QUEUE, kind);
        }
        assert_eq!(rig.core.obey(&parameter("few", 200), rig.now), Ok(()));
        assert_eq!(rig.core.obey(&policy("model"), rig.now), Ok(()));
        assert_eq!(rig.core.status().queues()[0].policy_now(), "model");
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
}
