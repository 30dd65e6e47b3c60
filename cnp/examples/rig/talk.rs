//! Connections that talk both ways, each of a host of 10.0.0.0/24 and a queue pair there; its other end's queue pair has one bit changed.

use npcc_cnp::flow_cache::FlowCache;
use npcc_pipeline::units::Nanos;
use npcc_pipeline::wire::checksum;
use npcc_roce::key::Qpn;
use npcc_roce::pair::port_hash::port_of;

use crate::rig::{DEST_QP, NEAR, Packets, READ_RESPONSE_MIDDLE, WAN};

const ACKNOWLEDGE: u8 = 0x11;
/// Offsets of the UDP source port in a crafted IPv4 frame, and of the last octet of each address.
const PORT: usize = 34;
const SOURCE: usize = 29;
const DESTINATION: usize = 33;

/// Data of the connections, and its acknowledgements.
pub(crate) struct Talk {
    forth: Packets,
    back: Packets,
}

impl Talk {
    pub(crate) fn new() -> Talk {
        let mut back = Packets::new(ACKNOWLEDGE, 0, WAN, NEAR);
        back.frame[26..30].copy_from_slice(&[10, 9, 2, 2]);
        back.frame[30..34].copy_from_slice(&[10, 0, 0, 0]);
        Talk {
            forth: Packets::new(READ_RESPONSE_MIDDLE, 4_096, NEAR, WAN),
            back,
        }
    }

    pub(crate) fn send(&mut self, cache: &mut FlowCache, (host, qp): (u32, u32), now: Nanos) {
        show(&mut self.forth, (qp, qp), (SOURCE, host), cache, now);
    }

    pub(crate) fn answer(&mut self, cache: &mut FlowCache, (host, qp): (u32, u32), now: Nanos) {
        show(
            &mut self.back,
            (qp ^ 1, qp),
            (DESTINATION, host),
            cache,
            now,
        );
    }
}

fn show(
    packets: &mut Packets,
    (to, qp): (u32, u32),
    (at, host): (usize, u32),
    cache: &mut FlowCache,
    now: Nanos,
) {
    let port = port_of(Qpn::new(qp ^ 1), Qpn::new(qp));
    packets.put::<3>(DEST_QP, to);
    packets.put::<2>(PORT, port.into());
    let frame = &mut packets.frame;
    frame[at] = host.to_le_bytes()[0];
    frame[24..26].fill(0);
    let sum = !checksum::sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    packets.show(cache, now);
}
