//! What a policy knows of its queue, and what it answers.

use npcc_pipeline::named;
use npcc_pipeline::units::{BitRate, Nanos};

use crate::detector::Reading;

named! {
    /// How many contributors are signalled.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Amount {
        /// Nobody.
        #[default]
        None = "none",
        /// The heaviest few.
        Few = "few",
        /// Every one.
        Many = "many",
    }
}

named! {
    /// Why a policy decided as it did.
    #[derive(Default)]
    pub enum Reason {
        /// The queue is idle.
        #[default]
        Idle = "idle",
        /// The rise is too short to count.
        Jitter = "jitter",
        /// Shallow and falling.
        Emptying = "emptying",
        /// Shallow and rising.
        Filling = "filling",
        /// Deep and rising.
        Overfull = "overfull",
        /// Deep and falling.
        Draining = "draining",
        /// The senders signalled before recover only once in this time.
        Recovery = "recovery",
        /// The effect of the round before is still on its way.
        Feedback = "feedback",
        /// More comes in, or is left from before, than the queue drains.
        Overload = "overload",
        /// What comes in fits, once those signalled before have slowed down.
        Balanced = "balanced",
        /// The depth is at the set-point, or on its way there.
        SetPoint = "set-point",
        /// A mark of the ECN curve is sent as a CNP; no policy decided it.
        Mark = "mark",
        /// NPCC is off for the queue: nothing is decided.
        Off = "off",
    }
}

/// Which of the contributors an amount means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Choice {
    /// All it reaches, heaviest first.
    #[default]
    All,
    /// Those above the water level, fastest first, until what they are expected to give up adds up to this: the level is what is left to
    /// each of them when they give up the sum together.
    Cut(BitRate),
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
    /// Nobody is signalled.
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

impl Decision {
    /// The CNP that stands for a mark: no policy decided it, and each queue has its own.
    pub(crate) const fn of_mark() -> Decision {
        Decision {
            amount: Amount::Few,
            ..Decision::none(Amount::Few, Reason::Mark)
        }
    }
}

/// What a policy knows of its queue at one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueContext {
    /// The detector's latest look.
    pub reading: Reading,
    /// Whether that look is of this moment; between two ticks it is not.
    pub fresh: bool,
    /// Wire bytes waiting at this moment, without those that a pause kept ([`crate::control::level`]).
    pub depth: u64,
    /// Wire bytes from which the queue is deep.
    pub deep: u64,
    /// The rate the queue drains at while it stands: its own, or its share of the port where others are served before it or beside it.
    pub drain: BitRate,
    /// What came in since the look before, if the queue drained at its rate meanwhile.
    pub arrival: BitRate,
    /// Largest frame on the wire in bytes.
    pub mtu: u64,
    /// Whether every flow of the queue is read often enough, while frames wait, for its rate to be known.
    pub rates_known: bool,
}

impl QueueContext {
    /// A queue that was not looked at yet.
    pub(crate) fn unseen() -> QueueContext {
        QueueContext {
            reading: Reading::default(),
            fresh: false,
            depth: 0,
            deep: u64::MAX,
            drain: BitRate(0),
            arrival: BitRate(0),
            mtu: 0,
            rates_known: false,
        }
    }
}

/// What became of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// CNPs that left.
    pub sent: u32,
    /// What those signalled are expected to give up together.
    pub cut: BitRate,
    /// The rate of the fastest contributor that was looked at; 0 when none was.
    pub fastest: BitRate,
    /// The longest time until the effect is seen in the queue, of those signalled.
    pub feedback: Nanos,
}

impl Default for Round {
    /// Nobody was signalled.
    fn default() -> Round {
        Round {
            sent: 0,
            cut: BitRate(0),
            fastest: BitRate(0),
            feedback: Nanos::ZERO,
        }
    }
}
