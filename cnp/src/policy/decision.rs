//! Input and output of a policy: the state of its queue, and its decision.

use npcc_pipeline::named;
use npcc_pipeline::units::{BitRate, Nanos};

use crate::detector::Reading;

named! {
    /// Amount of contributors that are signalled.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Amount {
        /// No contributor.
        #[default]
        None = "none",
        /// The heaviest few contributors.
        Few = "few",
        /// Every contributor.
        Many = "many",
    }
}

named! {
    /// Reason for a policy's decision.
    #[derive(Default)]
    pub enum Reason {
        /// The queue is idle.
        #[default]
        Idle = "idle",
        /// The rise is too short to count.
        Jitter = "jitter",
        /// The queue is shallow and falling.
        Emptying = "emptying",
        /// The queue is shallow and rising.
        Filling = "filling",
        /// The queue is deep and rising.
        Overfull = "overfull",
        /// The queue is deep and falling.
        Draining = "draining",
        /// The latest round of few is less than a `recovery` ago, the time in which its senders raise their rate once.
        Recovery = "recovery",
        /// The effect of the round before is still on its way.
        Feedback = "feedback",
        /// The arrival rate, or the backlog, exceeds what the queue drains.
        Overload = "overload",
        /// The arrival rate fits, once the senders signalled before have slowed down.
        Balanced = "balanced",
        /// A mark of the ECN curve is sent as a CNP; no policy decided it.
        Mark = "mark",
        /// NPCC is off for the queue: nothing is decided.
        Off = "off",
        /// A trial of the host's responsiveness; no policy decided it.
        Trial = "trial",
    }
}

/// Selection among the contributors of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Choice {
    /// All contributors that the amount reaches, heaviest first.
    #[default]
    All,
    /// Contributors above the max-min fair rate, heaviest first, until the sum of their expected cuts reaches this rate. The max-min fair rate is the one that each
    /// of them keeps when they give up the sum together, computed from the 256 heaviest contributors.
    Cut(BitRate),
}

/// Decision of a policy, made at each evaluation of its queue and, while the policy is urgent, also between two evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Amount before the policy's own pauses: that of its table, or for `model`, which has none, `Many` or `None`.
    pub wanted: Amount,
    /// Amount to signal now.
    pub amount: Amount,
    /// Selection among the contributors of the amount.
    pub choice: Choice,
    /// Share of the contributors that counts as few, in thousandths.
    pub few: u16,
    /// Shortest time between two CNPs to one flow.
    pub spacing: Nanos,
    /// Reason for the decision.
    pub reason: Reason,
}

impl Decision {
    /// Decision to signal nobody.
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
    /// Decision to send one CNP that no policy made: for a mark of the ECN curve, or in a trial.
    pub(crate) const fn of_one(reason: Reason, spacing: Nanos) -> Decision {
        Decision {
            amount: Amount::Few,
            spacing,
            ..Decision::none(Amount::Few, reason)
        }
    }
}

/// State of a policy's queue at one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueContext {
    /// Result of the detector's latest evaluation.
    pub reading: Reading,
    /// True if that evaluation is of this moment; between two ticks it is not.
    pub fresh: bool,
    /// Wire bytes waiting at this moment, without those that a pause kept ([`crate::control::queue_state`]).
    pub depth: u64,
    /// Wire bytes from which the queue is deep.
    pub deep: u64,
    /// Rate at which the queue drains while it stands: its own, or its share of the port where others are served before it or beside it.
    pub drain: BitRate,
    /// Arrival rate since the last evaluation, if the queue drained at its rate meanwhile.
    pub arrival: BitRate,
    /// Largest frame on the wire in bytes.
    pub mtu: u64,
    /// True if every flow of the queue is read often enough, while frames wait, for its rate to be known.
    pub rates_known: bool,
}

impl QueueContext {
    /// Context of a queue that was not evaluated yet.
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

/// Outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundOutcome {
    /// Number of CNPs given to the workers, which may still lose one; in a dry run, of those that would have been.
    pub sent: u32,
    /// Sum of the cuts expected of those signalled.
    pub cut: BitRate,
    /// Rate of the fastest contributor that was tried; 0 if none was.
    pub fastest: BitRate,
    /// Longest time until the effect shows in the queue, among those signalled.
    pub feedback: Nanos,
}

impl Default for RoundOutcome {
    /// Round in which nobody was signalled.
    fn default() -> RoundOutcome {
        RoundOutcome {
            sent: 0,
            cut: BitRate(0),
            fastest: BitRate(0),
            feedback: Nanos::ZERO,
        }
    }
}
