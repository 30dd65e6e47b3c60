//! Policies in slots: how many senders are told, given what a queue is doing.
//!
//! A policy is one small file against [`Policy`]; one value of it serves one queue and keeps that queue's state. To add
//! one: write the file, add a variant to [`PolicyKind`], build it in [`PolicyKind::slot`], and test its table.
//! A policy does not know flows: it says how many and how often, the planner ([`crate::plan`]) says who.

pub mod npcc;

use npcc_pipeline::units::Nanos;

use crate::detector::Reading;

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
}

impl Reason {
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
        }
    }
}

/// A policy's answer for one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What the table says, before the policy's own pauses.
    pub wanted: Amount,
    /// What is to be done now.
    pub amount: Amount,
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
            few: 0,
            spacing: Nanos::ZERO,
            reason,
        }
    }
}

/// The law of one queue.
pub trait Policy: std::fmt::Debug + Send {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    /// What to do at this tick. Called once a tick, also while idle.
    fn decide(&mut self, reading: &Reading, now: Nanos) -> Decision;

    /// `sent` CNPs left on the decision just made.
    fn sent(&mut self, reading: &Reading, decision: &Decision, sent: u32, now: Nanos);
}

/// Which policy a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    /// The table.
    Npcc(npcc::NpccConfig),
}

impl PolicyKind {
    /// A slot with this policy, nothing having happened yet.
    #[must_use]
    pub fn slot(self) -> Box<dyn Policy> {
        match self {
            PolicyKind::Npcc(config) => Box::new(npcc::Npcc::new(config)),
        }
    }
}
