//! Which frames are marked CE on their way out, and which lose the mark they came with.

use super::ecn::{self, Red};
use super::rng::Xorshift;
use crate::counters::QueueCounters;
use crate::frame::{FrameBuf, Meta, MetaFlags};
use crate::tap::FlowTap;
use crate::units::Nanos;

crate::named! {
    /// How ECN marking and our CNPs go together.
    #[derive(Default)]
    #[cfg_attr(
        feature = "config",
        derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
    )]
    #[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
    pub enum EcnMode {
        /// Both.
        Mark = "mark",
        /// No mark while a CNP of ours is at work.
        #[default]
        MarkUnlessNotified = "mark-unless-notified",
        /// Marks of others are taken back while a CNP of ours is at work.
        ClearAfterCnp = "clear-after-cnp",
        /// No marking in watched queues.
        Off = "off",
    }
}

impl EcnMode {
    /// Whether the worker has to know whose senders have been told.
    #[must_use]
    pub const fn minds_notified(self) -> bool {
        matches!(self, EcnMode::MarkUnlessNotified | EcnMode::ClearAfterCnp)
    }
}

/// What decides about a mark besides the queue's own curve.
#[derive(Debug)]
pub struct Marking<'a, T> {
    /// The mode of the port.
    pub mode: EcnMode,
    /// Knows whose senders have been told.
    pub tap: &'a T,
    /// When.
    pub now: Nanos,
}

/// The frames of one queue that have to be looked at, the quick way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The curve.
    red: Option<&'a Red>,
    /// Depth from which it does not count who was told.
    hard: u64,
    /// Depth up to which no frame is marked.
    kmin: i64,
    /// Flags of frames that may lose a mark.
    marked: u8,
}

impl Scope<'_> {
    /// Whether any frame that leaves less than `depth` behind may be changed.
    #[inline]
    pub(super) const fn concerns_any(self, depth: i64) -> bool {
        depth > self.kmin || self.marked != 0
    }

    /// Whether a frame with these flags, which leaves `depth` behind, may be changed.
    #[inline]
    pub(super) const fn concerns(self, depth: i64, flags: MetaFlags) -> bool {
        let deep = if depth > self.kmin {
            MetaFlags::MARKABLE
        } else {
            0
        };
        flags.0 & (deep | self.marked) != 0
    }
}

impl<T: FlowTap> Marking<'_, T> {
    /// For a queue with this curve, and with the depth from which it does not count who was told.
    #[inline]
    pub(super) fn scope<'a>(&self, red: Option<&'a Red>, hard: u64) -> Scope<'a> {
        let marks = self.mode != EcnMode::Off;
        Scope {
            red,
            hard,
            kmin: red
                .filter(|_| marks)
                .and_then(|red| i64::try_from(red.kmin).ok())
                .unwrap_or(i64::MAX),
            marked: if self.mode == EcnMode::ClearAfterCnp {
                MetaFlags::MARKED
            } else {
                0
            },
        }
    }

    /// Marks a frame just taken off the queue by the depth it leaves behind, or takes its mark back.
    ///
    /// Law: from `hard` on nobody is spared and no mark is taken back, whatever the sender was told: a
    /// queue that telling does not hold is a queue as it is without NPCC.
    #[inline(never)]
    pub(super) fn apply<B: FrameBuf>(
        &self,
        scope: Scope<'_>,
        buf: &mut B,
        meta: &Meta,
        depth: i64,
        rng: &mut Xorshift,
        counters: &QueueCounters,
    ) {
        let (flags, slot) = (meta.flags, meta.slot);
        let told = || depth.unsigned_abs() < scope.hard && self.tap.notified(slot, self.now);
        let change = if flags.has(MetaFlags::MARKABLE) {
            let spared = || self.mode != EcnMode::Mark && told();
            if !scope
                .red
                .is_some_and(|red| red.strikes(depth.unsigned_abs(), rng))
                || spared()
            {
                return;
            }
            counters.ecn_marked.add(1);
            ecn::set_ce
        } else {
            // It was told, and would be told again by the mark it came with.
            if !told() {
                return;
            }
            ecn::clear_ce
        };
        let l3 = buf.data_mut().get_mut(flags.l3_off()..);
        change(l3.unwrap_or_default(), flags.has(MetaFlags::IPV6));
    }
}
