//! A burst on its way through the stages: the buffers in a row, and beside each what is known of its frame.
//!
//! A stage tells which frames go no further; they are swept out before the next stage looks, so no stage meets a frame
//! that another has given up.

use arrayvec::ArrayVec;

use crate::drop::Drop;
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags};
use crate::parse::{Kind, Parsed};
use crate::route::nexthop::Path;
use crate::units::{BURST, PortId, Priority, WorkerId};

/// One frame of the burst.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// What will travel with it.
    pub meta: Meta,
    /// Where it goes; "no route" until the route stage.
    pub path: Path,
    /// Its headers.
    pub parsed: Parsed,
    /// Bytes of the frame.
    pub len: u16,
    /// Why it goes no further; `None` when it was consumed. Nothing of it means anything before it is swept out.
    pub reason: Option<Drop>,
}

impl Packet {
    /// IPv4; else IPv6, once MAC control was swept out.
    #[inline]
    #[must_use]
    pub const fn is_v4(&self) -> bool {
        !self.meta.flags.has(MetaFlags::IPV6)
    }
}

/// What is known of each frame of the burst, in the order of the buffers.
pub type Packets = [Packet; BURST];

/// Frames to be freed together.
pub type Trash<B> = ArrayVec<B, BURST>;

/// Frames of a burst by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Places(u32);

const _: () = assert!(BURST <= 32 && size_of::<Packet>() <= 80);

impl Places {
    /// No frame.
    pub const NONE: Places = Places(0);

    /// Adds a place, below [`BURST`].
    #[inline]
    pub const fn add(&mut self, place: usize) {
        self.0 |= 1 << (place & 31);
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn has(self, place: usize) -> bool {
        (self.0 >> (place & 31)) & 1 == 1
    }
}

/// Room for a burst.
#[must_use]
pub const fn packets() -> Packets {
    let nothing = Packet {
        meta: Meta {
            arrived: 0,
            slot: FlowSlot::NONE,
            wire_len: 0,
            worker: WorkerId::FIRST,
            ingress: PortId(0),
            egress: PortId(0),
            priority: Priority::new(0),
            l3_off: 0,
            flags: MetaFlags(0),
        },
        path: Path::NONE,
        parsed: Parsed::nothing(Kind::MacControl),
        len: 0,
        reason: None,
    };
    [nothing; BURST]
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
