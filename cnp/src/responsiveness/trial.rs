//! One trial of a host: measures a flow, drives it down with CNPs, and measures it again.
//!
//! ```text
//!   before: until 16 KiB came, 10 to 100 ms   drive: 15 ms and the feedback delay   after: as long as before
//!   CNPs as the policy sends them             one in a tick of 20 us                one in a tick
//! ```
//! In 15 ms of CNPs 20 us apart a card with NVIDIA's defaults falls to e^-19 of its rate, and to e^-4 with half of them lost; the published card falls sooner.
//! Both raise their rate only after a time without a CNP, of 300 us or 55 us: NVIDIA's wins back half of the line then, so that CNPs go on
//! while the flow is measured. So a host with a tenth of its card's rate in use and half of its CNPs lost still passes.

use npcc_pipeline::units::Nanos;

use super::{Outcome, Unmeasured};

/// Shortest and longest time over which the flow is measured, before and after.
const MEASURED: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_millis(100));
/// Bytes that it must send before; they end the measurement, if it has lasted long enough.
const ENOUGH: u64 = 16 << 10;
/// Time for which the flow is driven down, beside the feedback delay.
const DRIVE: Nanos = Nanos::from_millis(15);
/// Shortest time between two CNPs: less than a tick, so that none is left out where one comes early.
pub(crate) const SPACING: Nanos = Nanos::from_micros(16);
/// Longest interval of CNPs, as configured, at which a trial tells something: cards with NVIDIA's defaults still lose nine tenths of their rate.
pub(crate) const LONGEST_SPACING: Nanos = Nanos::from_micros(60);
/// Longest time between two calls: cards increase their rate 300 us after a CNP.
const LATE: Nanos = Nanos::from_micros(250);

#[derive(Debug, Clone, Copy)]
enum Phase {
    Before,
    Drive,
    After,
}

/// Step that a trial asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Wait,
    /// A CNP is due, unless the flow had one within [`SPACING`].
    Signal,
    End(Outcome),
}

/// A trial of the host of one flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    pub(crate) flow: u32,
    phase: Phase,
    /// Time and running total of bytes at which the phase began.
    began: (Nanos, u64),
    /// Time of the last call.
    called: Nanos,
    /// Time and bytes of the measurement before.
    before: (Nanos, u64),
    /// Time at which the flow began to be driven down.
    driven: Nanos,
    /// Number of CNPs of the trial.
    pub(crate) cnps: u64,
}

impl Trial {
    /// Begins a trial of a flow with this running total of bytes.
    pub(crate) const fn new(flow: u32, now: Nanos, bytes: u64) -> Trial {
        Trial {
            flow,
            phase: Phase::Before,
            began: (now, bytes),
            called: now,
            before: (Nanos::ZERO, 0),
            driven: now,
            cnps: 0,
        }
    }

    /// Takes the flow's running total of `bytes`, its `feedback` delay, and the time at which its senders were last `paused`. To be called at every tick.
    pub(crate) fn step(&mut self, now: Nanos, bytes: u64, feedback: Nanos, paused: Nanos) -> Step {
        let passed = now.since(self.began.0);
        let sent = bytes.saturating_sub(self.began.1);
        let is_late = now.since(self.called) > LATE;
        self.called = now;
        match self.phase {
            Phase::Before => {
                if sent >= ENOUGH && passed >= MEASURED.0 {
                    self.before = (passed, sent);
                    (self.phase, self.began, self.driven) = (Phase::Drive, (now, bytes), now);
                } else if passed >= MEASURED.1 {
                    return Step::End(Outcome::Unmeasured(Unmeasured::TooSlow));
                }
                Step::Wait
            }
            _ if is_late => Step::End(Outcome::Unmeasured(Unmeasured::Late)),
            Phase::Drive => {
                if passed >= DRIVE + feedback {
                    (self.phase, self.began) = (Phase::After, (now, bytes));
                }
                Step::Signal
            }
            Phase::After if passed < self.before.0 => Step::Signal,
            Phase::After => {
                let (time, before) = self.before;
                // Quarters of the rate before that the flow still has.
                let quarters = u128::from(sent) * u128::from(time.0) * 4
                    / (u128::from(before) * u128::from(passed.0)).max(1);
                Step::End(match quarters {
                    // A pause slows down whoever ignores CNPs.
                    0..3 if paused >= self.driven => Outcome::Unmeasured(Unmeasured::Paused),
                    0..2 => Outcome::Passed,
                    2 => Outcome::Unmeasured(Unmeasured::Weak),
                    _ => Outcome::Failed,
                })
            }
        }
    }
}
