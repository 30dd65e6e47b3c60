//! ECN marking of a frame as it leaves its queue: CE on the frame, or a near CNP owed to its sender.
//!
//! RED strikes according to the depth that a frame leaves behind. In the mode `divert` a strike on a flow whose sender can be
//! signalled from here is not written on the frame: the tap owes it to the control core, which pays with a CNP or returns it.
//! A returned strike is written on the flow's next frame that may carry CE.
//!
//! Law, per queue, of its counters ([`QueueCounters`]): `ecn_struck + ce_diverted + ecn_redeemed = ecn_marked + ecn_diverted`: each strike, mark
//! of an earlier switch or returned strike is written or owed, and none is added. An owed one may still be lost: its flow may be gone, or send no
//! frame that may carry CE for 10 ms after it was returned.

use super::ecn::{self, Red};
use super::rng::Xorshift;
use crate::burst::Record;
use crate::counters::QueueCounters;
use crate::frame::{FrameBuf, Meta, MetaFlags};
use crate::tap::FlowTap;
use crate::units::Nanos;

crate::named! {
    /// Destination of the marks of the ECN curve.
    #[derive(Default)]
    #[cfg_attr(
        feature = "config",
        derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
    )]
    #[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
    pub enum EcnMode {
        /// CE on the frame, as any switch does.
        Mark = "mark",
        /// A near CNP to the sender where one can be sent, CE on the frame otherwise.
        #[default]
        Divert = "divert",
        /// No marks, neither CE nor a near CNP. Set by `npcc.ecn` it holds for watched queues whose senders get CNPs; other
        /// queues keep CE.
        Off = "off",
    }
}

crate::named! {
    /// Treatment of frames that an earlier switch marked CE.
    #[derive(Default)]
    #[cfg_attr(
        feature = "config",
        derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
    )]
    #[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
    pub enum UpstreamCe {
        /// The mark counts as a strike of this queue: a near CNP instead, and the frame leaves without CE.
        #[default]
        Answer = "answer",
        /// The mark goes on to the receiver.
        Leave = "leave",
    }
}

/// ECN configuration of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcnConfig {
    /// Destination of strikes.
    pub mode: EcnMode,
    /// Treatment of frames that arrive marked; effective only in the mode [`EcnMode::Divert`].
    pub upstream_ce: UpstreamCe,
}

impl EcnConfig {
    /// Plain ECN: every strike is written as CE on the frame.
    pub const MARK: EcnConfig = EcnConfig {
        mode: EcnMode::Mark,
        upstream_ce: UpstreamCe::Leave,
    };
    /// Configuration without marking.
    pub const OFF: EcnConfig = EcnConfig {
        mode: EcnMode::Off,
        upstream_ce: UpstreamCe::Leave,
    };

    /// Returns true if marks of earlier switches count as strikes here.
    const fn answers_upstream(self) -> bool {
        matches!(
            (self.mode, self.upstream_ce),
            (EcnMode::Divert, UpstreamCe::Answer)
        )
    }
}

/// Marker of one port for one call: its configuration, the tap that takes debts, and the time.
#[derive(Debug)]
pub struct Marking<'a, T> {
    /// ECN configuration of the port.
    pub config: EcnConfig,
    /// Tap of NPCC.
    pub tap: &'a mut T,
    /// Time of the call.
    pub now: Nanos,
}

/// Quick test that finds, among the frames of one queue, those that [`Marking::apply`] may change; all others may skip it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    /// RED curve of the queue.
    red: Option<&'a Red>,
    /// Depth up to which no frame is struck.
    kmin: i64,
    /// Flags of frames that arrive marked and may lose the mark.
    marked: u8,
    /// True if strikes on some flows are owed instead of written.
    owes: bool,
    /// True if returned strikes wait for a frame.
    returned: bool,
}

impl Scope<'_> {
    /// Returns true if [`Marking::apply`] may change any frame of the queue, which is `depth` deep now.
    #[inline]
    pub(super) const fn concerns_any(self, depth: i64) -> bool {
        self.concerns_unmarked(depth) || self.marked != 0
    }

    /// Returns true if [`Marking::apply`] may change any frame of the queue that arrived without CE; the queue is `depth`
    /// deep now.
    #[inline]
    pub(super) const fn concerns_unmarked(self, depth: i64) -> bool {
        depth > self.kmin || self.returned
    }

    /// Returns true if [`Marking::apply`] may change any frame of a run that bypasses the queue, which is `depth` deep with
    /// it.
    #[inline]
    pub(super) fn concerns_run(self, depth: i64, records: &[Record]) -> bool {
        let flags = || {
            records
                .iter()
                .fold(0, |flags, record| flags | record.flags.0)
        };
        self.concerns_unmarked(depth) || self.marked != 0 && flags() & self.marked != 0
    }

    /// Returns true if [`Marking::apply`] may change a frame with these flags that leaves the queue `depth` deep.
    #[inline]
    pub(super) const fn concerns(self, depth: i64, flags: MetaFlags) -> bool {
        let deep = if depth > self.kmin || self.returned {
            MetaFlags::MARKABLE
        } else {
            0
        };
        flags.0 & (deep | self.marked) != 0
    }
}

impl<T: FlowTap> Marking<'_, T> {
    /// Returns the scope of a queue with this curve.
    #[inline]
    pub(super) fn scope<'a>(&self, red: Option<&'a Red>) -> Scope<'a> {
        let marks = self.config.mode != EcnMode::Off;
        let owes = self.config.mode == EcnMode::Divert && self.tap.may_owe();
        Scope {
            red,
            kmin: red
                .filter(|_| marks)
                .and_then(|red| i64::try_from(red.kmin).ok())
                .unwrap_or(i64::MAX),
            owes,
            marked: if self.config.answers_upstream() && owes {
                MetaFlags::MARKED
            } else {
                0
            },
            returned: self.config.mode == EcnMode::Divert && self.tap.has_returned(self.now),
        }
    }

    /// Strikes a frame just dequeued according to the depth it leaves behind, and writes or diverts the strike.
    #[inline(never)]
    pub(super) fn apply<B: FrameBuf>(
        &mut self,
        scope: Scope<'_>,
        buf: &mut B,
        meta: &Meta,
        depth: i64,
        rng: &mut Xorshift,
        counters: &QueueCounters,
    ) {
        let flags = meta.flags;
        let change = if flags.has(MetaFlags::MARKABLE) {
            let struck = scope
                .red
                .is_some_and(|red| red.strikes(depth.unsigned_abs(), rng));
            let diverted = struck && scope.owes && self.tap.owe(meta);
            counters.ecn_struck.add(u64::from(struck));
            counters.ecn_diverted.add(u64::from(diverted));
            if !struck || diverted {
                // One frame carries one mark: a returned strike waits for a frame that has none.
                if !scope.returned || !self.tap.redeem(meta.slot) {
                    return;
                }
                counters.ecn_redeemed.add(1);
            }
            counters.ecn_marked.add(1);
            ecn::set_ce
        } else {
            if !self.tap.owe(meta) {
                return;
            }
            counters.ecn_diverted.add(1);
            counters.ce_diverted.add(1);
            ecn::clear_ce
        };
        let l3 = buf.data_mut().get_mut(flags.l3_off()..);
        change(l3.unwrap_or_default(), flags.has(MetaFlags::IPV6));
    }
}

#[cfg(test)]
#[path = "marking_tests.rs"]
mod tests;
