//! A burst on its way through the stages: the buffers in a row, and beside each what is known of its frame.
//!
//! A stage tells which frames go no further; they are swept out before the next stage looks, so no stage meets a frame
//! that another has given up.

use arrayvec::ArrayVec;

use super::train::{Car, Kin};
use crate::bits::low32;
use crate::drop::Drop;
use crate::frame::{FrameBuf, Meta, MetaFlags, wire_len};
use crate::parse::{Kind, Parsed, common, parse};
use crate::units::BURST;
use crate::wire::bth::Traits;

/// One frame of the burst.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// What will travel with it.
    pub meta: Meta,
    /// What the stages ask of it.
    pub brief: Brief,
    /// Headers of a frame that is not the common one.
    other: Parsed,
    /// Why it goes no further; `None` when it was consumed. Nothing of it means anything before it is swept out.
    pub reason: Option<Drop>,
}

/// What the stages ask of a frame, in three words; of the common frame (untagged IPv4, RoCEv2), all there is to know.
#[derive(Debug, Clone, Copy)]
pub struct Brief {
    /// Source (high half) and destination of an IPv4 packet.
    pub addresses: u64,
    /// Of the common frame: the last two words of the BTH.
    pub transport: u64,
    /// Bytes of the frame.
    pub len: u16,
    /// Of the common frame: UDP source port.
    pub src_port: u16,
    /// What the opcode of the common frame says; nothing of any other frame.
    pub traits: Traits,
    /// DSCP (high six bits) and ECN (low two).
    pub tos: u8,
}

impl Brief {
    /// Destination of an IPv4 packet.
    #[inline]
    #[must_use]
    pub const fn dst(&self) -> u32 {
        low32(self.addresses)
    }

    /// Destination queue pair of the common frame.
    #[inline]
    #[must_use]
    pub const fn dest_qp(&self) -> u32 {
        common::dest_qp_of(self.transport)
    }

    /// The last word of the common frame's BTH: AckReq in the highest bit, the packet sequence number in the low 24.
    #[inline]
    #[must_use]
    pub const fn ack_psn(&self) -> u32 {
        low32(self.transport)
    }

    /// Whether it is of the kind this switch is built for: untagged IPv4, RoCEv2.
    #[inline]
    #[must_use]
    pub fn is_common(&self) -> bool {
        self.traits != Traits::NONE
    }

    /// The ECN field.
    #[inline]
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }
}

impl Packet {
    /// Its headers, read again from `frame`, the frame as it is now, where they were not kept.
    #[must_use]
    pub fn parsed(&self, frame: &[u8]) -> Parsed {
        let common = self.brief.is_common().then(|| common::parse(frame));
        common.flatten().unwrap_or(self.other)
    }

    /// Makes the headers known as they are from now on: the frame is no longer the common one, or never was.
    pub(crate) fn set_parsed(&mut self, parsed: Parsed, len: u16) {
        self.brief = Brief {
            addresses: parsed.addresses_v4,
            transport: 0,
            len,
            src_port: 0,
            traits: Traits::NONE,
            tos: parsed.tos,
        };
        self.other = parsed;
    }

    /// A frame on its way between two workers.
    pub(crate) fn arrived(&mut self, meta: Meta, brief: Brief, frame: &[u8]) {
        (self.meta, self.brief, self.reason) = (meta, brief, None);
        if !brief.is_common() {
            // It was read when it came in, and the rewritten frame is one that can be read.
            self.other = parse(frame).unwrap_or(Parsed::nothing(Kind::MacControl));
        }
    }

    /// Makes it a train's frame that was not counted in a flow.
    #[inline]
    pub fn dress(&mut self, car: &Car, kin: &Kin) {
        self.brief = Brief {
            addresses: car.addresses,
            transport: car.transport,
            len: car.len,
            src_port: car.src_port,
            traits: car.traits,
            tos: kin.tos,
        };
        self.meta = Meta {
            wire_len: wire_len(car.len.into()),
            ..kin.meta
        };
    }

    /// The same, of a frame that was counted in the flow its slot names.
    #[inline]
    pub fn dress_counted(&mut self, car: &Car, kin: &Kin) {
        self.dress(car, kin);
        self.meta.slot = car.slot;
    }

    /// IPv4; else IPv6, once MAC control was swept out.
    #[inline]
    #[must_use]
    pub const fn is_v4(&self) -> bool {
        !self.meta.flags.has(MetaFlags::IPV6)
    }
}

impl Packet {
    /// Of no frame.
    pub const NOTHING: Packet = Packet {
        meta: Meta::NOTHING,
        brief: Brief {
            addresses: 0,
            transport: 0,
            len: 0,
            src_port: 0,
            traits: Traits::NONE,
            tos: 0,
        },
        other: Parsed::nothing(Kind::MacControl),
        reason: None,
    };
}

/// What is known of each frame of the burst, in the order of the buffers.
pub type Packets = [Packet; BURST];

/// Frames to be freed together.
pub type Trash<B> = ArrayVec<B, BURST>;

/// Frames of a burst by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Places(u64);

const _: () = assert!(BURST <= 64 && size_of::<Packet>() <= 88);

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

    pub(super) const fn has(self, place: usize) -> bool {
        (self.0 >> (place & 63)) & 1 == 1
    }
}

/// Room for a burst.
#[must_use]
pub const fn packets() -> Packets {
    [Packet::NOTHING; BURST]
}

/// Takes the frames at `gone` out of the burst, shows each to `see`, and puts it into the trash; the others close up.
#[cold]
pub fn sweep<B: FrameBuf>(
    gone: Places,
    frames: &mut ArrayVec<B, BURST>,
    packets: &mut Packets,
    trash: &mut Trash<B>,
    mut see: impl FnMut(&B, &Packet),
) {
    let mut kept = ArrayVec::new();
    for (place, buf) in frames.drain(..).enumerate() {
        let Some(packet) = packets.get(place).copied() else {
            break;
        };
        if gone.has(place) {
            see(&buf, &packet);
            // At most a burst is given up in one walk.
            trash.push(buf);
        } else {
            if let Some(cell) = packets.get_mut(kept.len()) {
                *cell = packet;
            }
            kept.push(buf);
        }
    }
    *frames = kept;
}
