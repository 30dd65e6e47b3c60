//! Commands to the control core while it runs. One at a time, between two ticks; nothing here allocates but
//! [`ControlCommand::Configure`].

use std::sync::Arc;

use npcc_pipeline::units::Nanos;

use super::ControlCore;
use super::settings::{Settings, WatchedQueueConfig};
use crate::action::Action;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::export::EndFeed;
use npcc_roce::pair::foreign::PeerId;
use npcc_roce::pair::foreign::view::Reports;

/// A command to the control core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlCommand {
    /// Adds a pair: these two queue pairs are one connection, and packets of `flow` are sent by `sender`. It counts as evidence `cm`, and
    /// is taken back like it: by REJ and DREQ of its queue pairs, when one of them is used anew, and when the UDP source
    /// port of its packets changes.
    AddPair {
        /// Addresses of the data direction and the receiver's queue pair.
        flow: FlowKey,
        /// Queue pair of the sender.
        sender: Qpn,
    },
    /// Suggests a pair, from a list that may be wrong, as it names no peer or is old. It counts as evidence `cm` only where packets agree: the UDP
    /// source port is the hash of both queue pairs, or packets to both have the same port. A pair that the connection manager or the operator
    /// gave for either queue pair takes precedence.
    SuggestPair {
        /// Addresses of the data direction and the receiver's queue pair.
        flow: FlowKey,
        /// Queue pair of the sender.
        sender: Qpn,
    },
    /// Deletes the pair to which packets of this flow belong, whatever its source.
    DeletePair {
        /// Addresses of either direction and the destination's queue pair.
        flow: FlowKey,
    },
    /// Believes nothing of a peer from now on: its ends are forgotten, and its reports refused.
    Distrust(PeerId),
    /// Believes a distrusted peer's reports again.
    Trust(PeerId),
    /// Replaces the settings. A queue starts with its state cleared if its policy changes, or if settings change from which its policy is made; a queue whose policy only gets other explicit parameters keeps its state. A queue that is left out is off.
    Configure(Box<Settings>),
}

/// Reason for refusing a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display, derive_more::Error)]
pub enum Refused {
    /// The table of named queue pairs is full.
    #[display("the table of pairs is full: raise npcc.flows")]
    Full,
    /// The pair is not known.
    #[display("no such pair is known")]
    UnknownPair,
    /// The queue is not watched.
    #[display("NPCC does not watch this queue")]
    UnknownQueue,
    /// A CNP would have no way to its host.
    #[display("no CNP can leave: {_0}")]
    NoPath(NoPath),
    /// The ring to the worker of the egress port is full.
    #[display("the ring of CNPs to the worker of the egress port is full: send fewer")]
    RingFull,
}

/// Reason why no CNP can reach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display, derive_more::Error)]
pub enum NoPath {
    /// No route matches the address.
    #[display("there is no route to the sender; add one (npcc-switch show routes)")]
    NoRoute,
    /// The neighbor's MAC address is not known.
    #[display(
        "the neighbor on the route to the sender is not resolved; see npcc-switch show neighbors"
    )]
    Unresolved,
    /// The route leads to the switch itself, or drops what takes it.
    #[display("the route to the sender leads to no neighbor; see npcc-switch show routes")]
    NotForwarded,
}

impl ControlCore {
    /// Applies a command.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn execute(&mut self, command: &ControlCommand, now: Nanos) -> Result<(), Refused> {
        match command.clone() {
            ControlCommand::AddPair { flow, sender } => {
                let added = self.tracker.connections.add_pair(&flow, sender, now);
                added.then_some(()).ok_or(Refused::Full)
            }
            ControlCommand::SuggestPair { flow, sender } => {
                let added = self.tracker.connections.suggest_pair(&flow, sender, now);
                added.then_some(()).ok_or(Refused::Full)
            }
            ControlCommand::DeletePair { flow } => {
                let gone = self.tracker.connections.delete_pair(&flow);
                gone.then_some(()).ok_or(Refused::UnknownPair)
            }
            ControlCommand::Distrust(peer) => {
                self.tracker.distrust(peer, true);
                Ok(())
            }
            ControlCommand::Trust(peer) => {
                self.tracker.distrust(peer, false);
                Ok(())
            }
            ControlCommand::Configure(settings) => self.configure(*settings, now),
        }
    }

    /// Takes report `at` of a peer's list, and counts in the list what became of it; returns `false` if there is none.
    pub fn take_report(&mut self, reports: &Reports, at: usize, now: Nanos) -> bool {
        self.tracker.take_report(reports, at, now)
    }

    /// Export of ends, for readers on other threads.
    #[must_use]
    pub fn feed(&self) -> Arc<EndFeed> {
        self.tracker.connections.feed()
    }

    /// Validates all settings, then applies them.
    fn configure(&mut self, mut new: Settings, now: Nanos) -> Result<(), Refused> {
        let old = &self.tracker.settings.queues;
        let is_watched = |place| old.iter().any(|old| old.place() == place);
        if !new.queues.iter().all(|queue| is_watched(queue.place())) {
            return Err(Refused::UnknownQueue);
        }
        let of = |old: &WatchedQueueConfig| {
            let same = new.queues.iter().find(|new| new.place() == old.place());
            same.copied().unwrap_or(WatchedQueueConfig {
                action: Action::Off,
                ..*old
            })
        };
        let queues: Vec<WatchedQueueConfig> = old.iter().map(of).collect();
        for (index, to) in queues.iter().enumerate() {
            self.reconfigure_queue(index, to);
        }
        let intervals = self
            .queues
            .iter()
            .filter_map(|queue| queue.policy.interval());
        self.period = intervals.fold(self.tick, Nanos::min);
        for caps in [&mut self.caps, &mut self.dry_run_caps] {
            caps.reconfigure(&new, now);
        }
        new.queues = queues;
        let moved_to = new.hosts.unresponsive;
        if moved_to != self.tracker.settings.hosts.unresponsive {
            let view = &self.status.verdicts;
            self.tracker.verdicts.move_all_back(&self.moved, now, view);
            if let Some(queue) = moved_to.priority() {
                self.moved.set_priority(queue);
            }
        }
        self.tracker.reconfigure(new, self.period);
        self.show_actions();
        Ok(())
    }

    /// Applies to a watched queue whatever differs between `to` and its present configuration.
    fn reconfigure_queue(&mut self, index: usize, to: &WatchedQueueConfig) {
        let (Some(queue), Some(from), Some(status)) = (
            self.queues.get_mut(index),
            self.tracker.settings.queues.get(index),
            self.status.queues().get(index),
        ) else {
            return;
        };
        if from.detector != to.detector {
            queue.detector.reconfigure(to.detector);
            status.show_thresholds(&to.detector);
        }
        if !from.policy.keeps_state_of(&to.policy) {
            // It may look more or less often than the one before.
            queue.next_evaluation = Nanos::ZERO;
            queue.policy = to.policy.slot();
            status.change_policy(to.policy);
        } else if from.policy != to.policy {
            for parameter in to.policy.parameters() {
                // Within its range: it is one of this very policy.
                let _ = queue.policy.set(parameter.name, parameter.value);
            }
        }
        status.show_parameters(&queue.policy.parameters());
    }

    /// Publishes the action in force on the switch and on each queue.
    pub(super) fn show_actions(&self) {
        let settings = &self.tracker.settings;
        self.status.action.set(settings.action);
        for (index, queue) in self.status.queues().iter().enumerate() {
            queue.action.set(settings.action_of_queue(index));
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::policy::PolicyName;
    use crate::traffic_tests::rig::{Packet, Rig, config};
    use npcc_pipeline::units::PortId;
    use npcc_roce::pair::Evidence;

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

    const NPCC: PolicyName = PolicyName::Npcc;
    const MODEL: PolicyName = PolicyName::Model;

    /// Gives the queue a policy with its defaults, except for these parameters.
    fn put(rig: &mut Rig, policy: PolicyName, parameters: &[(&str, u64)]) {
        let mut policy = policy.defaults();
        for (name, value) in parameters {
            policy.set(name, *value).unwrap();
        }
        rig.configure(|settings| settings.queues[0].policy = policy)
            .unwrap();
    }

    fn shown(rig: &Rig, name: &str) -> u64 {
        let shown = rig.core.status().queues()[0].parameters();
        shown.iter().find(|one| one.name == name).unwrap().value
    }

    #[test]
    fn a_given_pair_is_signalled_until_it_is_deleted() {
        let mut rig = Rig::new(&config(TICK));
        let add = ControlCommand::AddPair {
            flow: flow(0x11),
            sender: Qpn::new(0x18),
        };
        assert_eq!(rig.core.execute(&add, rig.now), Ok(()));
        assert_eq!(rig.core.execute(&add, rig.now), Ok(()), "twice is once");
        rig.out(&DATA);
        assert_eq!(rig.tick(TICK, 900_000), 1);
        assert_eq!(
            (rig.sent[0].sender_qpn, rig.sent[0].evidence),
            (Qpn::new(0x18), Evidence::Cm)
        );
        let delete = ControlCommand::DeletePair { flow: flow(0x11) };
        assert_eq!(rig.core.execute(&delete, rig.now), Ok(()));
        assert_eq!(
            rig.core.execute(&delete, rig.now),
            Err(Refused::UnknownPair)
        );
        rig.out(&DATA);
        assert_eq!(rig.tick(Nanos::from_micros(200), 950_000), 0);
    }

    #[test]
    fn a_given_pair_whose_port_changes_is_no_longer_believed() {
        let mut rig = Rig::new(&config(TICK));
        let add = ControlCommand::AddPair {
            flow: flow(0x11),
            sender: Qpn::new(0x18),
        };
        rig.core.execute(&add, rig.now).unwrap();
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
        put(&mut rig, MODEL, &[("set_point", 500_000)]);
        assert_eq!(rig.core.status().queues()[0].policy_now().name(), "model");
        assert_eq!(shown(&rig, "set_point"), 500_000);
        put(&mut rig, MODEL, &[]);
        assert_eq!(
            shown(&rig, "set_point"),
            40_000,
            "that of the configuration"
        );
        let elsewhere = rig.configure(|settings| {
            settings.cap = 7;
            let other = settings.queues[0];
            settings.queues.push(WatchedQueueConfig {
                port: PortId(7),
                ..other
            });
        });
        assert_eq!(elsewhere, Err(Refused::UnknownQueue));
        assert_eq!(rig.core.settings().cap, 50, "nothing has changed");
    }

    #[test]
    fn a_queue_left_out_is_off_until_it_is_named_again() {
        let mut rig = Rig::new(&config(TICK));
        let queues = rig.core.tracker.settings.queues.clone();
        let action = |rig: &Rig| rig.core.status().queues()[0].action.get();
        rig.configure(|settings| settings.queues.clear()).unwrap();
        assert_eq!(action(&rig), Action::Off);
        rig.configure(|settings| settings.queues = queues).unwrap();
        assert_eq!(action(&rig), Action::Send);
    }

    /// Regression: every change of a parameter made the policy forget which round it was in.
    #[test]
    fn a_parameter_changes_without_a_round_out_of_turn() {
        let rounds = |change: fn(&mut Rig)| {
            let mut rig = Rig::new(&config(TICK));
            let add = ControlCommand::AddPair {
                flow: flow(0x11),
                sender: Qpn::new(0x18),
            };
            rig.core.execute(&add, rig.now).unwrap();
            let mut sent = 0;
            for tick in 0..12 {
                rig.out(&DATA);
                change(&mut rig);
                // Shallow and filling: a round of few, and none soon after it.
                sent += rig.tick(TICK, 150_000 + tick * 1_000);
            }
            sent
        };
        let undisturbed = rounds(|_| {});
        assert!(undisturbed > 0);
        let few = |rig: &mut Rig| {
            let value = 100 + rig.now.0 / TICK.0 % 2;
            put(rig, NPCC, &[("few", value)]);
        };
        assert_eq!(rounds(few), undisturbed);
        let anew = |rig: &mut Rig| {
            put(rig, MODEL, &[]);
            put(rig, NPCC, &[]);
        };
        let forgetful = rounds(anew);
        assert!(forgetful > undisturbed, "{forgetful} and {undisturbed}");
    }

    #[test]
    fn model_gets_its_shorter_interval_at_once_and_gives_it_back() {
        let mut rig = Rig::new(&config(TICK));
        assert_eq!(rig.core.period(), TICK);
        put(&mut rig, MODEL, &[]);
        assert_eq!(rig.core.period(), Nanos::from_micros(4));
        put(&mut rig, NPCC, &[]);
        assert_eq!(rig.core.period(), TICK);
    }

    #[test]
    fn parameters_are_shown_as_they_are_set() {
        let mut rig = Rig::new(&config(TICK));
        assert_eq!(shown(&rig, "few"), 50);
        put(&mut rig, NPCC, &[("few", 70)]);
        assert_eq!(shown(&rig, "few"), 70);
    }

    #[test]
    fn thresholds_and_the_floor_change_while_running() {
        let set_up = config(TICK);
        let mut rig = Rig::new(&set_up);
        let add = ControlCommand::AddPair {
            flow: flow(0x11),
            sender: Qpn::new(0x18),
        };
        rig.core.execute(&add, rig.now).unwrap();
        let thresholds = |rig: &mut Rig, times: u64| {
            rig.configure(|settings| {
                let detector = &mut settings.queues[0].detector;
                *detector = set_up.settings.queues[0].detector;
                detector.shallow *= times;
                detector.deep *= times;
                detector.hard *= times;
            })
            .unwrap();
            rig.core.status().queues()[0].thresholds()
        };
        let bounds = [100_000_000, 400_000_000, 800_000_000];
        assert_eq!(thresholds(&mut rig, 1_000), bounds);
        rig.out(&DATA);
        assert_eq!(rig.tick(TICK, 900_000), 0, "idle by the new thresholds");
        thresholds(&mut rig, 1);
        for (trusted, qpn, signalled) in [(0, 0x12, 0), (u32::MAX, 0x13, 1)] {
            rig.configure(|settings| settings.trusted_ports = trusted)
                .unwrap();
            let add = ControlCommand::AddPair {
                flow: flow(qpn),
                sender: Qpn::new(qpn + 7),
            };
            rig.core.execute(&add, rig.now).unwrap();
            rig.tick(Nanos::from_micros(200), 0);
            rig.out(&Packet { qpn, ..DATA });
            assert_eq!(rig.tick(TICK, 950_000), signalled, "trusted {trusted}");
        }
    }
}
