//! What is known of one frame on its way through the stages.

use super::QueueKey;
use crate::bits::low32;
use crate::frame::{FlowSlot, MetaFlags};
use crate::parse::Parsed;
use crate::units::BURST;
use crate::wire::bth::Traits;

/// One frame of a run: what it has of its own, in half a line of the cache. It describes the frame as it will be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Source (high half) and destination of an IPv4 packet; 0 of any other.
    pub addresses: u64,
    /// Of RoCEv2, the last two words of the BTH: destination queue pair in the low 24 bits of the first, AckReq, packet
    /// sequence number. Of any other packet nothing is meant by it.
    pub transport: u64,
    /// The flow-cache slot it was counted in, once it was.
    pub slot: FlowSlot,
    /// Bytes of the frame.
    pub len: u16,
    /// Of RoCEv2, the UDP source port.
    pub src_port: u16,
    /// What a RoCEv2 opcode says; nothing of any other frame.
    pub traits: Traits,
    /// DSCP (high six bits) and ECN (low two).
    pub tos: u8,
    /// IP version, tag, and what may be done to it on its way out.
    pub flags: MetaFlags,
    /// The queue it is to enter, once its path is known.
    pub queue: QueueKey,
}

const _: () = assert!(size_of::<Record>() == 32);

impl Record {
    /// A place without a frame.
    pub const EMPTY: Record = Record {
        addresses: 0,
        transport: 0,
        slot: FlowSlot::NONE,
        len: 0,
        src_port: 0,
        traits: Traits::NONE,
        tos: 0,
        flags: MetaFlags(0),
        queue: QueueKey(0),
    };

    /// The record of a frame of `len` bytes whose headers are `parsed`.
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
                    transport: u64::from(roce.dest_qp) << 32 | u64::from(roce.ack_psn),
                    src_port: roce.src_port,
                    traits,
                    flags: record.flags.of_class(traits),
                    ..record
                }
            }
        }
    }

    /// Destination queue pair of a RoCEv2 packet.
    #[inline]
    #[must_use]
    pub const fn dest_qp(&self) -> u32 {
        low32(self.transport >> 32) & 0x00ff_ffff
    }

    /// The last word of a RoCEv2 packet's BTH: AckReq in the highest bit, the packet sequence number in the low 24.
    #[inline]
    #[must_use]
    pub const fn ack_psn(&self) -> u32 {
        low32(self.transport)
    }

    /// Whether it is a RoCEv2 packet.
    #[inline]
    #[must_use]
    pub fn is_roce(&self) -> bool {
        self.traits != Traits::NONE
    }

    /// The ECN field (RFC 3168 section 5).
    #[inline]
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }
}

/// Frames of a burst by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Places(u64);

const _: () = assert!(BURST <= 64);

impl Places {
    /// No frame.
    pub const NONE: Places = Places(0);

    /// Adds a place, below [`BURST`].
    #[inline]
    pub const fn add(&mut self, place: usize) {
        self.0 |= 1 << (place & 63);
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this place is one of them.
    #[inline]
    #[must_use]
    pub const fn has(self, place: usize) -> bool {
        place < 64 && (self.0 >> (place & 63)) & 1 == 1
    }

    /// The first place from `place` on that is not one of these.
    #[inline]
    #[must_use]
    pub const fn absent_from(self, place: usize) -> usize {
        if place >= 64 {
            return place;
        }
        place + (self.0 >> place).trailing_ones() as usize
    }

    /// These places, lowest first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (place < 64).then_some(place)
        })
    }
}
