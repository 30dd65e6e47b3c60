//! Policies in slots: how many senders are told, given what a queue is doing.
//!
//! A policy is one small file against [`Policy`]; one value of it serves one queue and keeps that queue's state. To add
//! one: write the file, add a variant to [`PolicyKind`], build it in [`PolicyKind::slot`], and test its table.
//! A policy does not know flows: it says how many, how often and by how much, the planner ([`crate::plan`]) says who.

mod in_flight;
pub mod model;
pub mod npcc;
mod parameter;
pub mod pi;

use npcc_pipeline::units::{BitRate, Nanos};

use crate::detector::Reading;
pub use parameter::{BadParameter, PARAMETERS, Parameter, Parameters, Unit};

/// How many contributors are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Amount {
    /// Nobody.
    #[default]
    None,
    /// The heaviest few.
    Few,
    /// Every one.
    Many,
}

impl Amount {
    /// All, smallest first.
    pub const ALL: [Amount; 3] = [Amount::None, Amount::Few, Amount::Many];

    /// The stable name operators and JSON see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Amount::None => "none",
            Amount::Few => "few",
            Amount::Many => "many",
        }
    }

    /// As an index into an array of three.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Why a policy decided as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The queue is idle.
    Idle,
    /// The rise is too short to count.
    Jitter,
    /// Shallow and falling.
    Emptying,
    /// Shallow and rising.
    Filling,
    /// Deep and rising.
    Overfull,
    /// Deep and falling.
    Draining,
    /// The senders told before recover only once in this time.
    Recovery,
    /// The effect of the round before is still on its way.
    Feedback,
    /// More comes in, or is left from before, than the queue drains.
    Overload,
    /// What comes in fits, once those told before have slowed down.
    Balanced,
    /// The depth is at the set-point, or on its way there.
    SetPoint,
}

/// Number of reasons.
pub const REASONS: usize = Reason::ALL.len();

impl Reason {
    /// All, in the order of their counters.
    pub const ALL: [Reason; 11] = [
        Reason::Idle,
        Reason::Jitter,
        Reason::Emptying,
        Reason::Filling,
        Reason::Overfull,
        Reason::Draining,
        Reason::Recovery,
        Reason::Feedback,
        Reason::Overload,
        Reason::Balanced,
        Reason::SetPoint,
    ];

    /// As an index into an array of all reasons.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The inverse of [`Reason::index`]; out of range is [`Reason::Idle`].
    #[must_use]
    pub fn from_index(index: usize) -> Reason {
        Reason::ALL.get(index).copied().unwrap_or(Reason::Idle)
    }

    /// The stable name operators and JSON see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Idle => "idle",
            Reason::Jitter => "jitter",
            Reason::Emptying => "emptying",
            Reason::Filling => "filling",
            Reason::Overfull => "overfull",
            Reason::Draining => "draining",
            Reason::Recovery => "recovery",
            Reason::Feedback => "feedback",
            Reason::Overload => "overload",
            Reason::Balanced => "balanced",
            Reason::SetPoint => "set-point",
        }
    }
}

/// Which of the contributors an amount means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Choice {
    /// All it reaches, heaviest first.
    #[default]
    All,
    /// Heaviest first, until what they are expected to give up adds up to this. Who would give up more than twice what is
    /// left is passed over.
    Cut {
        /// The sum.
        sum: BitRate,
        /// Whether those are left out who send less than the mean and would give up little.
        spare: bool,
    },
    /// Those that send faster than this.
    Above(BitRate),
}

/// A policy's answer for one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What the table says, before the policy's own pauses.
    pub wanted: Amount,
    /// What is to be done now.
    pub amount: Amount,
    /// Which of those an amount reaches.
    pub choice: Choice,
    /// Share of the contributors that are few, in thousandths.
    pub few: u16,
    /// Shortest time between two CNPs to one flow.
    pub spacing: Nanos,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    /// Nobody is told.
    #[must_use]
    pub const fn none(wanted: Amount, reason: Reason) -> Decision {
        Decision {
            wanted,
            amount: Amount::None,
            choice: Choice::All,
            few: 0,
            spacing: Nanos::ZERO,
            reason,
        }
    }
}

/// What a policy is told of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueContext {
    /// The detector's latest look.
    pub reading: Reading,
    /// Whether that look is of this moment; between two ticks it is not.
    pub fresh: bool,
    /// Wire bytes waiting at this moment.
    pub depth: u64,
    /// Wire bytes from which the queue is deep.
    pub deep: u64,
    /// The queue's drain rate.
    pub drain: BitRate,
    /// What came in since the look before, if the queue drained at its rate meanwhile.
    pub arrival: BitRate,
    /// Largest frame on the wire in bytes.
    pub mtu: u64,
    /// Whether every flow of the queue is read often enough, while frames wait, for its rate to be known.
    pub rates_known: bool,
}

/// What became of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// CNPs that left.
    pub sent: u32,
    /// What those told are expected to give up together.
    pub cut: BitRate,
    /// The longest time until the effect is seen in the queue, of those told.
    pub feedback: Nanos,
}

impl Default for Round {
    /// Nobody was told.
    fn default() -> Round {
        Round {
            sent: 0,
            cut: BitRate(0),
            feedback: Nanos::ZERO,
        }
    }
}

/// The law of one queue.
pub trait Policy: std::fmt::Debug + Send {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

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

/// Which policy a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// The table.
    Npcc(npcc::NpccConfig),
    /// Rates predicted and matched to the drain rate.
    Model(model::ModelConfig),
    /// A set-point.
    Pi(pi::PiConfig),
}

impl PolicyKind {
    /// The names of all, in the order of their indices.
    pub const NAMES: [&'static str; 3] = ["npcc", "model", "pi"];

    /// As an index into an array of three.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            PolicyKind::Npcc(_) => 0,
            PolicyKind::Model(_) => 1,
            PolicyKind::Pi(_) => 2,
        }
    }

    /// The name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let [npcc, model, pi] = PolicyKind::NAMES;
        match self {
            PolicyKind::Npcc(_) => npcc,
            PolicyKind::Model(_) => model,
            PolicyKind::Pi(_) => pi,
        }
    }

    /// The parameters of the policy of this name, at their defaults.
    #[must_use]
    pub fn parameters_of(name: &str) -> Parameters {
        let kinds = [
            PolicyKind::Npcc(npcc::NpccConfig::default()),
            PolicyKind::Model(model::ModelConfig::default()),
            PolicyKind::Pi(pi::PiConfig::default()),
        ];
        let named = kinds.into_iter().find(|kind| kind.name() == name);
        named.map_or_else(Parameters::new, |kind| kind.slot().parameters())
    }

    /// A slot with this policy, nothing having happened yet.
    #[must_use]
    pub fn slot(self) -> Box<dyn Policy> {
        match self {
            PolicyKind::Npcc(config) => Box::new(npcc::Npcc::new(config)),
            PolicyKind::Model(config) => Box::new(model::Model::new(config)),
            PolicyKind::Pi(config) => Box::new(pi::Pi::new(config)),
        }
    }
}
