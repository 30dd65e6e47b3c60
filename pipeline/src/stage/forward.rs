//! Stages 2 and 4 in one look at each frame: its path, and the frame as that path sends it.
//!
//! Frames one after the other often take the same path, and the common frame stays untagged IPv4 on most: those need one
//! lookup in the routes and three stores. Law: any other way of the same frame through [`route`] and [`rewrite`] ends with
//! the same bytes.

use super::packet::{Packet, Places};
use super::{rewrite, route};
use crate::bits::low16;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::route::fib::FibReader;
use crate::route::nexthop::{Path, UNTAGGED};
use crate::units::MAX_PORTS;
use crate::wire::ethernet;

/// Largest IP packet of each port, by its index.
pub type Mtus = [u16; MAX_PORTS];

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
    const NOWHERE: Way = Way {
        group: u32::MAX,
        path: Path::NONE,
        mtu: 0,
        longest: 0,
    };

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

/// Finds the path of every frame in hand and rewrites it for that; tells those that cannot be sent. Tags put on and taken off
/// are counted.
#[inline(never)]
pub fn run<B: FrameBuf>(
    fib: &FibReader,
    mtus: &Mtus,
    frames: &mut [B],
    packets: &mut [Packet],
    counters: &PortCounters,
) -> Places {
    let mut gone = Places::NONE;
    let mut way = Way::NOWHERE;
    if fib.is_large() {
        fib.warm_v4(packets.iter().map(|packet| packet.brief.dst()));
    }
    let v4 = fib.images().v4.view();
    for (place, (buf, packet)) in frames.iter_mut().zip(packets).enumerate() {
        let group = if packet.is_v4() {
            v4.lookup_v4(packet.brief.dst())
        } else {
            route::lookup_v6(fib, buf.data(), packet)
        };
        if group != way.group {
            way = find(fib, mtus, group, buf.data(), packet);
        }
        packet.meta.egress = way.path.port();
        let done = if packet.brief.is_common() && packet.brief.len <= way.longest {
            rewrite::plain(buf, way.path)
        } else {
            other(way, buf, packet, counters)
        };
        if let Err(reason) = done {
            packet.reason = Some(reason);
            gone.add(place);
        }
    }
    gone
}

/// The way of a group, or of a flow in a group with a choice.
#[inline(never)]
fn find(fib: &FibReader, mtus: &Mtus, group: u32, data: &[u8], packet: &Packet) -> Way {
    match fib.hops().only(group) {
        Some(path) => Way::new(group, path, mtus),
        None => {
            let path = fib.hops().resolve(group, || route::hash(data, packet));
            Way::new(u32::MAX, path, mtus)
        }
    }
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

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
