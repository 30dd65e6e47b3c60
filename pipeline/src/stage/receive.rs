//! Stages 1, 2 and 4 in one look at each frame: what it is, its path, and the frame as that path sends it.
//!
//! Frames one after the other often take the same path, and the common frame stays untagged IPv4 on most: those need one
//! lookup in the routes and three stores, and less in a [train](super::train). Law: any other way of the same frame through
//! [`parse`](super::parse), [`route`] and [`rewrite`] ends with the same bytes.

use super::packet::{Packet, Packets, Places};
use super::parse::Entrance;
use super::train::{Cars, Kin, Mark, Train, dress};
use super::{rewrite, route};
use crate::bits::low16;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::parse::common;
use crate::route::fib::FibReader;
use crate::route::image::View;
use crate::route::nexthop::{Path, UNTAGGED};
use crate::units::MAX_PORTS;
use crate::wire::ethernet;

/// Largest IP packet of each port, by its index.
pub type Mtus = [u16; MAX_PORTS];

/// What became of a burst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Bytes of all frames.
    pub bytes: u64,
    /// Frames refused, and MAC control, which has no reason.
    pub gone: Places,
    /// The burst is one train: its frames are in `cars`, and packets say nothing of them until they are
    /// [dressed](super::train::dress).
    pub train: Option<Kin>,
}

/// A train this short was not worth looking for: the rest of the burst is taken frame by frame.
const SHORT_TRAIN: usize = 4;

/// Fills `packets` (or `cars`) from `frames` and rewrites them; tells those that go no further. Tags put on and taken off are
/// counted.
#[inline(never)]
pub fn run<B: FrameBuf>(
    entrance: &mut Entrance,
    fib: &FibReader,
    mtus: &Mtus,
    frames: &mut [B],
    (packets, cars): (&mut Packets, &mut Cars),
    counters: &PortCounters,
) -> Taken {
    if fib.is_large() {
        fib.warm_v4(
            frames
                .iter()
                .filter_map(|frame| common::dst_of(frame.data())),
        );
    }
    let (mut taken, mut place, mut trains) = (Taken::default(), 0, true);
    let mut ways = Ways::new(fib, mtus);
    let mut train = entrance
        .last_train
        .and_then(|mark| ways.train(entrance, mark));
    loop {
        if let Some(train) = &train {
            let first = place;
            let cars = cars.get_mut(first..).unwrap_or_default();
            let followed = train.follow(frames.get_mut(first..).unwrap_or_default(), cars);
            taken.bytes += followed.bytes;
            place += followed.frames;
            trains = followed.frames >= SHORT_TRAIN || first == 0;
            if first == 0 && place == frames.len() && place > 0 {
                taken.train = Some(train.kin);
            } else {
                let packets = packets.get_mut(first..place).unwrap_or_default();
                dress(packets, cars, &train.kin);
            }
        }
        let (Some(buf), Some(packet)) = (frames.get_mut(place), packets.get_mut(place)) else {
            break;
        };
        taken.bytes += buf.data().len() as u64;
        train = None;
        match one(entrance, &mut ways, buf, packet, counters) {
            Ok(()) if trains => {
                if let Some(mark) = Mark::of(packet, ways.last.group) {
                    entrance.last_train = Some(mark);
                    train = ways.train(entrance, mark);
                }
            }
            Ok(()) => {}
            Err(reason) => {
                packet.reason = reason;
                taken.gone.add(place);
            }
        }
        place += 1;
    }
    taken
}

/// A frame by itself. The error is why it goes no further, none for MAC control.
#[inline]
fn one<B: FrameBuf>(
    entrance: &Entrance,
    ways: &mut Ways<'_>,
    buf: &mut B,
    packet: &mut Packet,
    counters: &PortCounters,
) -> Result<(), Option<Drop>> {
    let frame = buf.data_mut();
    let len = frame.len();
    let Some((head, common)) = entrance.common(frame) else {
        return any(entrance, ways, buf, packet, counters);
    };
    entrance.fill(packet, head, common, len, counters);
    let way = ways.of_v4(packet, &[]);
    packet.meta.egress = way.path.port();
    if packet.brief.len <= way.longest {
        rewrite::plain(head, way.path).map_err(Some)
    } else {
        other(*way, buf, packet, counters).map_err(Some)
    }
}

/// A frame of any kind. The error is why it goes no further, none for MAC control.
#[inline(never)]
fn any<B: FrameBuf>(
    entrance: &Entrance,
    ways: &mut Ways<'_>,
    buf: &mut B,
    packet: &mut Packet,
    counters: &PortCounters,
) -> Result<(), Option<Drop>> {
    entrance.take_any(buf.data(), packet, counters)?;
    let way = *if packet.is_v4() {
        ways.of_v4(packet, buf.data())
    } else {
        ways.of_v6(buf.data(), packet)
    };
    packet.meta.egress = way.path.port();
    other(way, buf, packet, counters).map_err(Some)
}

/// Any frame by any path.
#[inline(never)]
fn other<B: FrameBuf>(
    way: Way,
    buf: &mut B,
    packet: &mut Packet,
    counters: &PortCounters,
) -> Result<(), Drop> {
    if !way.path.forwards() {
        return Err(route::reason(way.path.kind()));
    }
    let parsed = packet.parsed(buf.data());
    if parsed.ip_len > way.mtu {
        return Err(Drop::MtuExceeded);
    }
    rewrite::any(buf, parsed, way.path, packet, counters)
}

/// A path and what it asks of a common frame.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// The group it is all of; none where the flow decides.
    group: u32,
    path: Path,
    mtu: u16,
    /// Longest common frame that is sent by it as it is but for addresses and TTL; 0 for none.
    longest: u16,
}

impl Way {
    fn new(group: u32, path: Path, mtus: &Mtus) -> Way {
        let mtu = mtus.get(path.port().index()).copied().unwrap_or(0);
        let plain = path.forwards() && path.vlan() == UNTAGGED;
        Way {
            group,
            path,
            mtu,
            longest: if plain {
                mtu.saturating_add(low16(ethernet::HEADER_LEN))
            } else {
                0
            },
        }
    }
}

/// The routes in hand, and the way last found.
#[derive(Debug)]
struct Ways<'a> {
    fib: &'a FibReader,
    v4: View<'a>,
    mtus: &'a Mtus,
    last: Way,
}

impl<'a> Ways<'a> {
    fn new(fib: &'a FibReader, mtus: &'a Mtus) -> Ways<'a> {
        Ways {
            fib,
            v4: fib.images().v4.view(),
            mtus,
            last: Way::new(u32::MAX, Path::NONE, mtus),
        }
    }

    /// `data` is the frame, unless it is common.
    #[inline(always)]
    fn of_v4(&mut self, packet: &Packet, data: &[u8]) -> &Way {
        let group = self.v4.lookup_v4(packet.brief.dst());
        if group != self.last.group {
            self.find(group, packet, data);
        }
        &self.last
    }

    /// The train of frames with this mark; `None` where a flow decides about its way, or a frame changes more than
    /// addresses and TTL.
    fn train(&self, entrance: &Entrance, mark: Mark) -> Option<Train<'a>> {
        let Way {
            group,
            path,
            longest,
            ..
        } = if mark.group == self.last.group {
            self.last
        } else {
            // Not kept as the last: it would be read back before the burst's own stores have drained.
            Way::new(mark.group, self.fib.hops().only(mark.group)?, self.mtus)
        };
        (group != u32::MAX && longest > 0)
            .then(|| Train::new(entrance, mark, (self.v4, self.fib.hops()), (path, longest)))
            .flatten()
    }

    fn of_v6(&mut self, data: &[u8], packet: &Packet) -> &Way {
        let group = route::lookup_v6(self.fib, data, packet);
        self.find(group, packet, data);
        &self.last
    }

    /// The way of a group, or of a flow in a group with a choice.
    #[inline(never)]
    fn find(&mut self, group: u32, packet: &Packet, data: &[u8]) {
        let hops = self.fib.hops();
        self.last = match hops.only(group) {
            Some(path) => Way::new(group, path, self.mtus),
            None => {
                let path = hops.resolve(group, || route::hash(data, packet));
                Way::new(u32::MAX, path, self.mtus)
            }
        };
    }
}

#[cfg(test)]
#[path = "receive_tests.rs"]
mod tests;
