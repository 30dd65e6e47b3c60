//! State of one flow.

use npcc_pipeline::units::{Nanos, PortId};

use super::lists::Places;
use crate::admission::Suppressed;
use crate::dcqcn::DcqcnModel;
use crate::window::Window;
use npcc_roce::holdings::Holder;
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;
use npcc_roce::pair::connections::EndpointId;
use npcc_roce::sample::SlotRef;

/// Private state of one flow.
///
/// In the order of use, a line of 64 bytes a paragraph: fields that every record and every reading needs, further fields that are shown and
/// listed, and fields that readings alone need.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    pub(crate) endpoint: Option<EndpointId>,
    /// Index of the worker's cache (`reader`), and the flow's slot in it.
    pub(crate) reader: usize,
    pub(crate) slot: SlotRef,
    /// Byte count of the slot when last read.
    pub(crate) slot_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) last_seen: Nanos,
    /// Time at which its pairing was last judged.
    pub(crate) pairing_checked: Nanos,
    /// [`Flow::bytes`] at its last CNP.
    pub(crate) bytes_at_cnp: u64,

    pub(crate) first_seen: Nanos,
    pub(crate) cnps: u64,
    pub(crate) last_cnp: Nanos,
    pub(crate) ingress: PortId,
    /// Holder of the entry while it has no evidence.
    pub(crate) holder: Holder,
    /// Number of strikes returned to the worker, modulo 256.
    pub(crate) returned: u8,
    pub(crate) trusted: bool,
    /// True if its receiver is near: it is left to ECN.
    pub(crate) gated: bool,
    pub(crate) cold: bool,
    pub(crate) evidence: Evidence,
    pub(crate) sender: Qpn,
    pub(super) places: Places,

    /// Place of its host in the table of responsiveness.
    pub(crate) host: u32,
    /// Time until which it is not tried again, and the reason (`backoff_reason`).
    pub(crate) backoff_until: Nanos,
    pub(crate) backoff_reason: Suppressed,
    /// Times that the gate compares. `near`: time to the sender and back as replies show it, taken as one to ten times the default feedback delay.
    /// `far`: round trip to the receiver, where it was measured.
    pub(crate) near: Nanos,
    pub(crate) far: Option<Nanos>,
    /// True if it had paused when last read, and nothing was left to be read.
    pub(crate) asleep: bool,
    pub(crate) window: Window,
    pub(crate) dcqcn: DcqcnModel,
    pub(crate) dry_run: WouldBe,
    /// Reason why it was not signalled when last considered, and the time at which that was last logged.
    pub(crate) refused: Option<(Suppressed, Nanos)>,
}

/// Count and time of the CNPs that would have been sent, where nothing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WouldBe {
    pub(crate) cnps: u64,
    pub(crate) last: Nanos,
}

impl Flow {
    pub(crate) fn new(reader: usize, slot: SlotRef, ingress: PortId, now: Nanos) -> Flow {
        Flow {
            endpoint: None,
            reader,
            slot,
            slot_bytes: 0,
            bytes: 0,
            ingress,
            holder: Holder::NOBODY,
            trusted: true,
            cold: true,
            sender: Qpn::default(),
            evidence: Evidence::None,
            first_seen: now,
            last_seen: now,
            pairing_checked: Nanos::ZERO,
            bytes_at_cnp: 0,
            returned: 0,
            near: Nanos::ZERO,
            far: None,
            gated: false,
            cnps: 0,
            last_cnp: Nanos::ZERO,
            window: Window::starting(now),
            host: u32::MAX,
            backoff_until: Nanos::ZERO,
            backoff_reason: Suppressed::Cold,
            asleep: false,
            dcqcn: DcqcnModel::new(now),
            dry_run: WouldBe::default(),
            refused: None,
            places: Places::NOWHERE,
        }
    }
}
