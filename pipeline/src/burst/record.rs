//! Metadata of one frame on its way through the stages.

use super::QueueKey;
use crate::frame::{FlowSlot, MetaFlags};
use crate::parse::Parsed;
use crate::units::BURST;
use crate::wire::bth::Traits;

/// Metadata that each frame of a run has for itself, in half a cache line. Once the frame is rewritten it describes the
/// frame as it will be sent, except that marking may set or clear CE at dequeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// Source (high half) and destination of an IPv4 packet; [digest](crate::parse::digest::AddressDigest) of both of an IPv6
    /// packet.
    pub addresses: u64,
    /// Last word of the BTH of a RoCEv2 packet: AckReq in the highest bit, the packet sequence number in the low 24. Meaningless
    /// for any other packet.
    pub ack_psn: u32,
    /// Destination queue pair of a RoCEv2 packet in the low 24 bits, with [`Record::V6`] above. The queue pair of any other packet
    /// is meaningless.
    pub qp: u32,
    /// Flow-cache slot: before the frame is counted, the one where its flow is expected; then the one it was counted in.
    pub slot: FlowSlot,
    /// Length of the frame in bytes.
    pub len: u16,
    /// UDP source port of a RoCEv2 packet.
    pub src_port: u16,
    /// Traits of a RoCEv2 packet; none for any other frame.
    pub traits: Traits,
    /// DSCP (high six bits) and ECN (low two).
    pub tos: u8,
    /// IP version, tag, and the changes allowed on its way out.
    pub flags: MetaFlags,
    /// Queue it is to enter, once its path is known.
    pub queue: QueueKey,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// Flag of IPv6 in [`Record::qp`].
    pub const V6: u32 = 1 << 24;

    /// Record of a slot without a frame.
    pub const EMPTY: Record = Record {
        addresses: 0,
        ack_psn: 0,
        qp: 0,
        slot: FlowSlot::NONE,
        len: 0,
        src_port: 0,
        traits: Traits::NONE,
        tos: 0,
        flags: MetaFlags(0),
        queue: QueueKey(0),
    };

    /// Returns the record of a frame of `len` bytes whose headers are `parsed`.
    #[must_use]
    pub fn of(parsed: &Parsed, len: u16) -> Record {
        let record = Record {
            addresses: parsed.addresses_v4,
            len,
            tos: parsed.tos,
            flags: MetaFlags::of(parsed),
            ..Record::EMPTY
        };
        match parsed.roce {
            None => record,
            Some(roce) => {
                let family = if parsed.is_v6() { Traits::V6 } else { 0 };
                let traits = Traits::of(roce.opcode).with_class(roce.class).with(family);
                Record {
                    ack_psn: roce.ack_psn,
                    qp: roce.dest_qp | if parsed.is_v6() { Record::V6 } else { 0 },
                    src_port: roce.src_port,
                    traits,
                    flags: record.flags.of_class(traits),
                    ..record
                }
            }
        }
    }

    /// Returns the destination queue pair of a RoCEv2 packet.
    #[inline]
    #[must_use]
    pub const fn dest_qp(&self) -> u32 {
        self.qp & (Record::V6 - 1)
    }

    /// Returns true if it is a RoCEv2 packet.
    #[inline]
    #[must_use]
    pub fn is_roce(&self) -> bool {
        self.traits != Traits::NONE
    }

    /// Returns the ECN field (RFC 3168 section 5).
    #[inline]
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }
}

/// Set of the frames of a burst, by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Places(pub(super) u64);

const _: () = assert!(BURST <= 64);

impl Places {
    /// Empty set.
    pub const NONE: Places = Places(0);

    /// Adds a position below [`BURST`].
    #[inline]
    pub const fn add(&mut self, place: usize) {
        self.0 |= 1 << (place & 63);
    }

    /// Returns true if the set is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if this position is in the set.
    #[inline]
    #[must_use]
    pub const fn has(self, place: usize) -> bool {
        place < 64 && (self.0 >> (place & 63)) & 1 == 1
    }

    /// Iterates over the positions, lowest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (place < 64).then_some(place)
        })
    }
}
