//! Policies in slots: how many senders are signalled, given what a queue is doing.
//!
//! A policy is one small file against [`Policy`]; one value of it serves one queue and keeps that queue's state. A policy
//! does not know flows: it says how many, how often and by how much, the planner ([`crate::plan`]) says who.
//!
//! To add one, six files change, CHANGELOG among them, and code that is left out does not compile or fails a test:
//!
//! 1. the new file: its parameters (`Default`, `From<&QueueSettings>`), its state with `new`, `impl Policy`, its tests;
//! 2. here: `pub mod`, and a line in [`policies!`](self) below, from which come the enums, the name, the slot, the
//!    parameters, what `set` offers, the sentence that refuses an unknown name, and the simulator's schemes;
//! 3. `config/src/model/npcc.rs`: a variant of `Policy` and its name, which `switch/src/wiring/control.rs` compares;
//! 4. `tests/operator.rs`: the sentence that an operator reads;
//! 5. `docs/npcc.md`: what it does, its name in the table of settings, its parameters.

mod decision;
mod in_flight;
pub mod model;
pub mod npcc;
mod parameter;
pub mod pi;
mod settings;

use npcc_pipeline::named;
use npcc_pipeline::units::Nanos;

pub use decision::{Amount, Choice, Decision, QueueContext, Reason, Round};
pub use parameter::{BadParameter, PARAMETERS, Parameter, Parameters, Unit};
pub use settings::{Mode, QueueSettings};

macro_rules! policies {
    ($( $(#[doc = $doc:literal])+ $Name:ident($law:ty, $config:ty) = $text:literal, )+) => {
        named! {
            /// The policies there are.
            pub enum PolicyName { $( $(#[doc = $doc])+ $Name = $text, )+ }
        }

        /// A policy and its parameters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum PolicyKind { $( $(#[doc = $doc])+ $Name($config), )+ }

        impl Default for PolicyName {
            /// The first of the table, which is also the configuration's default.
            fn default() -> PolicyName {
                let [first, ..] = PolicyName::ALL;
                first
            }
        }

        impl PolicyName {
            /// The policy with the defaults of its parameters.
            #[must_use]
            pub fn defaults(self) -> PolicyKind {
                match self { $( PolicyName::$Name => PolicyKind::$Name(<$config>::default()), )+ }
            }

            /// The policy with the parameters that the configuration gives a queue.
            #[must_use]
            pub fn for_queue(self, settings: &QueueSettings) -> PolicyKind {
                match self { $( PolicyName::$Name => PolicyKind::$Name(settings.into()), )+ }
            }
        }

        impl PolicyKind {
            /// Which policy it is.
            #[must_use]
            pub const fn which(self) -> PolicyName {
                match self { $( PolicyKind::$Name(_) => PolicyName::$Name, )+ }
            }

            /// A slot with this policy, nothing having happened yet.
            #[must_use]
            pub fn slot(self) -> Box<dyn Policy> {
                match self { $( PolicyKind::$Name(config) => Box::new(<$law>::new(config)), )+ }
            }
        }
    };
}

policies! {
    /// The table of depth and trend answers.
    Npcc(npcc::Npcc, npcc::NpccConfig) = "npcc",
    /// Rates are predicted and matched to the drain rate.
    Model(model::Model, model::ModelConfig) = "model",
    /// A controller keeps the depth at a set-point.
    Pi(pi::Pi, pi::PiConfig) = "pi",
}

/// The law of one queue.
pub trait Policy: std::fmt::Debug + Send {
    /// What to do now. Called once a look, also while idle.
    fn decide(&mut self, context: &QueueContext, now: Nanos) -> Decision;

    /// What became of the decision just made.
    fn sent(&mut self, context: &QueueContext, decision: &Decision, round: &Round, now: Nanos);

    /// Time between two looks, where that is less than a tick.
    fn look(&self) -> Option<Nanos> {
        None
    }

    /// Whether it wants to be asked again [`npcc::CLOSEST`] from now, between two looks.
    fn urgent(&self) -> bool {
        false
    }

    /// Whether another law answered in its stead at the last look, because it did not know enough.
    fn fell_back(&self) -> bool {
        false
    }

    /// Its parameters at this moment.
    fn parameters(&self) -> Parameters;

    /// Changes a parameter while running.
    ///
    /// # Errors
    /// There is none of this name, or the value is out of its range.
    fn set(&mut self, name: &str, value: u64) -> Result<(), BadParameter>;
}

/// The names of all policies as a sentence has them, such as `a, b or c`.
pub(crate) fn names() -> String {
    let all = PolicyName::ALL.map(PolicyName::name);
    match all.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_whole() {
        for which in PolicyName::ALL {
            let kind = which.defaults();
            assert_eq!(kind.which(), which);
            let mut slot = kind.slot();
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
}
