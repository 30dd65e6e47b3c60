//! Policies: each decides how many senders of its queue are signalled, by the state of that queue.
//!
//! A policy is one small file against [`Policy`]; one value of it, in the queue's slot, serves one queue and keeps that queue's state. A policy does
//! not know flows: it decides how many, how often and by how much; [`crate::control`] decides which.
//!
//! To add one, five files change, CHANGELOG among them, and code that is left out does not compile or fails a test:
//!
//! 1. the new file: its settings (`From<&PolicyInputs>`), the table of its parameters, its state with `new`, `impl Policy`,
//!    its tests;
//! 2. here: `pub mod`, and a line in [`policies!`](self) below, from which come its name in the configuration and in its
//!    schema, the slot, the parameters that `set` and the configuration take, and the simulator's schemes;
//! 3. `docs/npcc.md`: what it does, its name in the table of settings, its parameters;
//! 4. `tests/snapshots/schema.json`.

mod decision;
mod in_flight;
pub mod model;
pub mod npcc;
mod parameter;
pub mod settings;

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

pub use crate::dcqcn::NIC_MIN_CNP_INTERVAL;
pub use decision::{Amount, Choice, Decision, QueueContext, Reason, RoundOutcome};
pub use parameter::{BadParameter, PARAMETERS, Parameter, Parameters, Unit};
pub use settings::PolicyInputs;

macro_rules! policies {
    ($( $(#[doc = $doc:literal])+ $Name:ident($law:ty, $config:ty) = $text:literal, )+) => {
        named! {
            /// Policy that decides how many flows of a queue are signalled, how often, and by how much they are to slow down.
            #[cfg_attr(
                feature = "config",
                derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
                schemars(rename = "Policy")
            )]
            #[non_exhaustive]
            pub enum PolicyName {
                $( $(#[doc = $doc])+ #[cfg_attr(feature = "config", serde(rename = $text))] $Name = $text, )+
            }
        }

        impl Default for PolicyName {
            /// Returns the first policy of the table.
            fn default() -> PolicyName {
                let [first, ..] = PolicyName::ALL;
                first
            }
        }

        impl PolicyName {
            /// Makes the policy for a queue, in its initial state.
            fn make(self, settings: &PolicyInputs) -> Box<dyn Policy> {
                match self { $( PolicyName::$Name => Box::new(<$law>::new(settings.into())), )+ }
            }
        }

        $( impl Default for $config {
            fn default() -> Self {
                (&PolicyInputs::default()).into()
            }
        } )+
    };
}

policies! {
    /// A model of the senders' rates.
    Model(model::Model, model::ModelConfig) = "model",
    /// The table of depth and trend.
    Npcc(npcc::Npcc, npcc::NpccConfig) = "npcc",
}

impl PolicyName {
    /// Kind of this policy with the parameters that follow from a queue's settings.
    #[must_use]
    pub const fn new_policy(self, settings: &PolicyInputs) -> PolicyKind {
        PolicyKind {
            which: self,
            settings: *settings,
            written: 0,
            values: [0; PARAMETERS],
        }
    }

    /// Kind of this policy with the parameters that follow from [`PolicyInputs::default`].
    #[must_use]
    pub fn defaults(self) -> PolicyKind {
        self.new_policy(&PolicyInputs::default())
    }
}

/// A policy by its name, with the settings of its queue and its explicit parameters: all that is needed to make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyKind {
    which: PolicyName,
    settings: PolicyInputs,
    /// Bit n is set if the n-th parameter is explicit. The others follow from the settings.
    written: u8,
    values: [u64; PARAMETERS],
}

impl PolicyKind {
    /// Name of the policy.
    #[must_use]
    pub const fn which(&self) -> PolicyName {
        self.which
    }

    /// Returns true if it is the same policy with the same settings of its queue: only explicit parameters may differ.
    #[must_use]
    pub fn keeps_state_of(&self, other: &PolicyKind) -> bool {
        (self.which, self.settings) == (other.which, other.settings)
    }

    /// Makes a slot with this policy, in its initial state.
    #[must_use]
    pub fn slot(&self) -> Box<dyn Policy> {
        let mut slot = self.which.make(&self.settings);
        for (place, (parameter, value)) in slot.parameters().iter().zip(self.values).enumerate() {
            if self.written & (1 << place) != 0 {
                // Cannot fail: the same `set` accepted it before.
                let _ = slot.set(parameter.name, value);
            }
        }
        slot
    }

    /// Parameters of the policy: names, units, ranges and values.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        self.slot().parameters()
    }

    /// Sets an explicit parameter.
    ///
    /// # Errors
    /// No parameter has this name, or the value is out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), BadParameter> {
        let mut slot = self.slot();
        slot.set(name, value)?;
        let parameters = slot.parameters();
        let mut places = parameters.iter().zip(&mut self.values).enumerate();
        if let Some((place, (_, kept))) = places.find(|(_, (one, _))| one.name == name) {
            self.written |= 1 << place;
            *kept = value;
        }
        Ok(())
    }
}

/// Law by which one queue is controlled.
pub trait Policy: std::fmt::Debug + Send {
    /// Decides what to do now. Called at every evaluation, also while idle, and between two evaluations while the policy is urgent.
    fn decide(&mut self, context: &QueueContext, now: Nanos) -> Decision;

    /// Takes the outcome of the decision just made.
    fn sent(
        &mut self,
        context: &QueueContext,
        decision: &Decision,
        round: &RoundOutcome,
        now: Nanos,
    );

    /// Takes CNPs that left for the queue without its decision: marks sent as CNPs.
    fn guard_sent(&mut self, _round: &RoundOutcome, _now: Nanos) {}

    /// Depth that the policy holds the queue at, as a time of the drain rate: marks below it are not congestion.
    fn holds(&self) -> Nanos {
        Nanos::ZERO
    }

    /// Time between two evaluations, if that is less than a tick.
    fn interval(&self) -> Option<Nanos> {
        None
    }

    /// Returns true if it wants another call 4 us from now, between two evaluations.
    fn urgent(&self) -> bool {
        false
    }

    /// Returns true if another law decided in its stead at the last evaluation, because it did not know enough.
    fn fell_back(&self) -> bool {
        false
    }

    /// Parameters at this moment.
    fn parameters(&self) -> Parameters;

    /// Changes a parameter while running.
    ///
    /// # Errors
    /// No parameter has this name, or the value is out of its range.
    fn set(&mut self, name: &str, value: u64) -> Result<(), BadParameter>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_whole() {
        for which in PolicyName::ALL {
            let mut slot = which.defaults().slot();
            let parameters = slot.parameters();
            assert!(!parameters.is_empty(), "{which:?} has nothing to set");
            for parameter in &parameters {
                let (low, high) = parameter.range;
                assert!(
                    (low..=high).contains(&parameter.value),
                    "{which:?} {parameter:?}"
                );
                assert_eq!(slot.set(parameter.name, high), Ok(()), "{which:?}");
            }
            let set = slot.parameters();
            assert!(
                set.iter()
                    .all(|parameter| parameter.value == parameter.range.1),
                "{which:?}"
            );
        }
    }

    /// Law: a parameter that the configuration sets reaches the policy, and one that it leaves out follows from the queue.
    #[test]
    fn a_written_parameter_reaches_the_policy_and_a_wrong_one_changes_nothing() {
        for which in PolicyName::ALL {
            let mut kind = which.defaults();
            let last = *kind.parameters().last().unwrap();
            let (low, high) = last.range;
            let out = BadParameter::Range(last.unit, low, high);
            assert_eq!(kind.set(last.name, high + 1), Err(out));
            assert_eq!(kind.set("colour", low), Err(BadParameter::Unknown));
            assert_eq!(kind, which.defaults());
            assert_eq!(kind.set(last.name, low), Ok(()));
            let slot = kind.slot().parameters();
            for (one, default) in slot.iter().zip(which.defaults().parameters()) {
                let value = if one.name == last.name {
                    low
                } else {
                    default.value
                };
                assert_eq!(one.value, value, "{which:?} {}", one.name);
            }
        }
    }
}
