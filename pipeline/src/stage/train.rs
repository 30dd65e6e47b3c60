//! A packet train (Jain and Routhier 1986): common frames of plain data, one after the other, that leave by one port with one TOS.
//!
//! Between two sites most bursts are one train: many flows, but one port and one class, and mostly one next hop. What its frames have in common is
//! asked and written once; of each frame there is left what makes it valid, and what its flow is.
//!
//! Law: a frame that follows in a train would have been taken in, routed and rewritten with the same bytes by itself. A frame
//! that does not fit, for whatever reason, ends the train untouched.

use super::packet::Packet;
use super::parse::{CE, Entrance};
use super::rewrite;
use crate::bits::{low16, low32};
use crate::frame::{FlowSlot, FrameBuf, Meta};
use crate::parse::common::{Alike, Headers, SHORTEST, dest_qp_of};
use crate::route::image::View;
use crate::route::nexthop::{NextHops, Path};
use crate::units::BURST;
use crate::wire::bth::Traits;

/// What travels with every frame of a train.
#[derive(Debug, Clone, Copy)]
pub struct Kin {
    /// All but its length and slot.
    pub meta: Meta,
    /// DSCP (high six bits) and ECN (low two).
    pub tos: u8,
}

/// One frame of a train: what it has of its own, in half a line of the cache.
#[derive(Debug, Clone, Copy)]
pub struct Car {
    /// Source (high half) and destination address.
    pub addresses: u64,
    /// The last two words of the BTH.
    pub transport: u64,
    /// Bytes of the frame, no fewer than Ethernet pads to.
    pub len: u16,
    /// UDP source port.
    pub src_port: u16,
    /// What the opcode says: [`Traits::BULK`] and more.
    pub traits: Traits,
    /// The slot it was counted in, once it was.
    pub slot: FlowSlot,
}

const _: () = assert!(size_of::<Car>() == 32);

/// The frames of a burst that is one train.
pub type Cars = [Car; BURST];

/// Room for a train.
#[must_use]
pub const fn cars() -> Cars {
    let nothing = Car {
        addresses: 0,
        transport: 0,
        len: 0,
        src_port: 0,
        traits: Traits::NONE,
        slot: FlowSlot::NONE,
    };
    [nothing; BURST]
}

/// Makes packets of a train that was not counted.
#[inline]
pub fn dress(packets: &mut [Packet], cars: &[Car], kin: &Kin) {
    for (packet, car) in packets.iter_mut().zip(cars) {
        packet.dress(car, kin);
    }
}

/// Makes packets of a train that was counted.
#[inline]
pub fn dress_counted(packets: &mut [Packet], cars: &[Car], kin: &Kin) {
    for (packet, car) in packets.iter_mut().zip(cars) {
        packet.dress_counted(car, kin);
    }
}

impl Car {
    /// Destination queue pair.
    #[inline]
    #[must_use]
    pub const fn dest_qp(&self) -> u32 {
        dest_qp_of(self.transport)
    }

    /// The last word of the BTH: AckReq in the highest bit, the packet sequence number in the low 24.
    #[inline]
    #[must_use]
    pub const fn ack_psn(&self) -> u32 {
        low32(self.transport)
    }
}

/// What a port remembers of a train, so that the next burst may go on with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    tos: u8,
    /// Addresses of a frame of it.
    addresses: u64,
    /// Next-hop group.
    pub(super) group: u32,
}

impl Mark {
    /// Of the train that `first`, a frame of this group, may begin: it is plain data, and says nothing of congestion.
    #[inline]
    pub(super) fn of(first: &Packet, group: u32) -> Option<Mark> {
        let brief = &first.brief;
        (brief.traits.any(Traits::BULK) && brief.ecn() != CE).then_some(Mark {
            tos: brief.tos,
            addresses: brief.addresses,
            group,
        })
    }
}

/// How a train is known.
#[derive(Debug)]
pub(super) struct Train<'a> {
    routes: View<'a>,
    hops: &'a NextHops,
    /// The mark's: that of its first frames, as a rule.
    group: u32,
    /// Theirs, untagged; others differ in addresses only.
    path: Path,
    /// Longest frame that fits both ports.
    longest: usize,
    /// The port's address, as the high octets of a frame's first word.
    mac: u64,
    alike: Alike,
    pub(super) kin: Kin,
}

/// Frames that followed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Followed {
    pub(super) frames: usize,
    pub(super) bytes: u64,
}

impl<'a> Train<'a> {
    /// Of frames with this mark that are sent by `path`, as all frames of its group are that are at most `longest` bytes.
    #[inline]
    pub(super) fn new(
        entrance: &Entrance,
        of: Mark,
        (routes, hops): (View<'a>, &'a NextHops),
        (path, longest): (Path, u16),
    ) -> Option<Train<'a>> {
        Some(Train {
            routes,
            hops,
            group: of.group,
            path,
            longest: entrance.longest().min(longest.into()),
            mac: entrance.address() << 16,
            alike: Alike::to(of.tos, of.addresses),
            kin: Kin {
                meta: Meta {
                    egress: path.port(),
                    ..*entrance.meta(of.tos)?
                },
                tos: of.tos,
            },
        })
    }

    /// Takes in, routes and rewrites the frames that follow.
    #[inline(never)]
    pub(super) fn follow<B: FrameBuf>(&self, frames: &mut [B], cars: &mut [Car]) -> Followed {
        let mut followed = Followed::default();
        let (mut group, mut path) = (self.group, self.path);
        for (buf, car) in frames.iter_mut().zip(cars) {
            let frame = buf.data_mut();
            let len = frame.len();
            if !(SHORTEST..=self.longest).contains(&len) {
                break;
            }
            let Some(head) = Headers::of(frame) else {
                break;
            };
            if head.first_word() << 16 != self.mac {
                break;
            }
            let Some(common) = head.read_alike(len, &self.alike) else {
                break;
            };
            // Written while the words are in registers: a frame that does not follow leaves a car nobody counts on.
            car.addresses = common.addresses;
            car.transport = common.transport;
            car.len = low16(len);
            car.src_port = common.src_port;
            car.traits = Traits::of(common.opcode);
            if !car.traits.any(Traits::BULK) {
                break;
            }
            let to = low32(common.addresses);
            if !self.routes.leads_to(to, group) {
                let Some(other) = self.other_path(to) else {
                    break;
                };
                (group, path) = other;
            }
            if rewrite::plain(head, path).is_err() {
                break;
            }
            followed.frames += 1;
            followed.bytes += len as u64;
        }
        followed
    }

    /// Another group, and its path when all flows take it, and it differs in addresses only.
    #[inline(never)]
    fn other_path(&self, to: u32) -> Option<(u32, Path)> {
        let group = self.routes.lookup_v4(to);
        let path = self.hops.only(group)?;
        path.is_beside(self.path).then_some((group, path))
    }
}

#[cfg(test)]
#[path = "train_tests.rs"]
mod tests;
