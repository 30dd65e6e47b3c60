//! Stage 1: headers, MAC and VLAN admission, priority.

use super::packet::{Brief, Packet, Packets, Places};
use crate::bits::{high32, low8, low16};
use crate::buffer::GroupId;
use crate::classify::Classifier;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::{FlowSlot, FrameBuf, LONGEST, Meta, MetaFlags, wire_len};
use crate::parse::common::{self, BTH_OFF, Common, L3_OFF};
use crate::parse::{Kind, Parsed, parse};
use crate::units::{Mac, PortId, WIRE_OVERHEAD, WorkerId};
use crate::wire::bth::{HEADER_LEN, RoceClass, Traits};
use crate::wire::ethernet;

/// What a port takes in.
#[derive(Debug, Clone)]
pub struct Intake {
    /// The port's address: unicast to any other is not for us.
    pub mac: Mac,
    /// Largest IP packet.
    pub mtu: u16,
    /// VLAN ids carried besides untagged frames.
    pub vlans: Box<[u16]>,
    /// Priority maps.
    pub classifier: Classifier,
}

/// What a port takes in, made ready for the common frame.
#[derive(Debug)]
pub struct Entrance {
    intake: Intake,
    worker: WorkerId,
    port: PortId,
    /// The port's address, as the low octets of a frame's first word.
    mac: u64,
    /// Longest frame whose packet certainly fits the MTU.
    longest: usize,
    /// By DSCP and ECN: what travels with a common frame, but time and length.
    by_tos: Box<[Meta; 256]>,
}

impl Entrance {
    /// Of a port, and of the worker who takes its frames in.
    #[must_use]
    pub fn new(intake: Intake, worker: WorkerId, port: PortId) -> Entrance {
        let [a, b, c, d, e, f] = intake.mac.0;
        Entrance {
            mac: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            longest: LONGEST.min(usize::from(intake.mtu) + ethernet::HEADER_LEN),
            by_tos: Box::new(by_tos(&intake.classifier, worker, port)),
            intake,
            worker,
            port,
        }
    }

    /// Classifies otherwise from now on.
    pub fn reclassify(&mut self, classifier: Classifier) {
        self.intake.classifier = classifier;
        self.prepare();
    }

    /// Its frames are another worker's from now on.
    pub fn set_worker(&mut self, worker: WorkerId) {
        self.worker = worker;
        self.prepare();
    }

    fn prepare(&mut self) {
        *self.by_tos = by_tos(&self.intake.classifier, self.worker, self.port);
    }

    /// The port's address.
    #[must_use]
    pub const fn mac(&self) -> Mac {
        self.intake.mac
    }
}

fn by_tos(classifier: &Classifier, worker: WorkerId, port: PortId) -> [Meta; 256] {
    let by_dscp = classifier.untagged();
    std::array::from_fn(|tos| {
        let tos = low8(tos);
        let priority = by_dscp.get(usize::from(tos >> 2));
        let priority = priority.copied().unwrap_or_default();
        Meta {
            arrived: 0,
            slot: FlowSlot::NONE,
            wire_len: 0,
            group: GroupId::new(worker, port, priority),
            egress: port,
            priority,
            l3_off: L3_OFF,
            flags: flags(false, tos & 3),
        }
    })
}

/// What became of a burst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Bytes of all frames.
    pub bytes: u64,
    /// Frames refused, and MAC control, which has no reason.
    pub gone: Places,
}

/// Fills `packets` from `frames`, which came in at `time`, the low 32 bits of the time in ns.
#[inline(never)]
pub fn run<B: FrameBuf>(
    entrance: &Entrance,
    frames: &[B],
    packets: &mut Packets,
    time: u32,
    counters: &PortCounters,
) -> Taken {
    let mut taken = Taken::default();
    for frame in frames {
        frame.prefetch();
    }
    let (mac, longest) = (entrance.mac, entrance.longest);
    for (place, (buf, packet)) in frames.iter().zip(packets).enumerate() {
        let frame = buf.data();
        taken.bytes += frame.len() as u64;
        let common = common::read(frame, longest).filter(|_| first_six(frame) == mac);
        if let Some(common) = common {
            let of_tos = entrance.by_tos.get(usize::from(common.tos));
            let Some(meta) = of_tos else { continue };
            fill(packet, frame, common, (*meta, time), counters);
        } else if !take_any(entrance, frame, packet, time, counters) {
            taken.gone.add(place);
        }
    }
    taken
}

#[inline]
fn first_six(frame: &[u8]) -> u64 {
    let word = frame
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word));
    word << 16 >> 16
}

/// Writes down what is known of a common frame.
#[inline(always)]
fn fill(
    packet: &mut Packet,
    frame: &[u8],
    common: Common,
    (meta, arrived): (Meta, u32),
    counters: &PortCounters,
) {
    let traits = Traits::of(common.opcode);
    packet.meta = Meta {
        arrived,
        wire_len: common_wire_len(frame.len()),
        ..meta
    };
    packet.brief = Brief {
        addresses: common.addresses,
        transport: common.transport,
        len: low16(frame.len()),
        src_port: common.src_port,
        traits,
        tos: common.tos,
    };
    // All but data that was not marked on its way says something about itself.
    if !traits.any(RoceClass::Data.bit()) || packet.brief.ecn() == CE {
        let class = RoceClass::of(common.opcode, high32(common.transport));
        packet.brief.traits = traits.with_class(class);
        hear(frame, packet, class, BTH_OFF, counters);
    }
}

/// [`wire_len`] of a frame that is no longer than [`LONGEST`].
#[inline]
fn common_wire_len(len: usize) -> u16 {
    low16(len.max(60)).wrapping_add(low16(WIRE_OVERHEAD as usize))
}

/// Takes a frame of any kind; `false`, and a reason unless it is MAC control, when it goes no further.
#[inline(never)]
fn take_any(
    entrance: &Entrance,
    frame: &[u8],
    packet: &mut Packet,
    time: u32,
    counters: &PortCounters,
) -> bool {
    let intake = &entrance.intake;
    let parsed = match admit(intake, frame) {
        Ok(parsed) => parsed,
        Err(reason) => {
            packet.reason = reason;
            return false;
        }
    };
    let priority = intake.classifier.priority(&parsed);
    packet.meta = Meta {
        arrived: time,
        slot: FlowSlot::NONE,
        wire_len: wire_len(frame.len()),
        group: GroupId::new(entrance.worker, entrance.port, priority),
        egress: entrance.port,
        priority,
        l3_off: parsed.l3_off,
        flags: flags(parsed.is_v6(), parsed.ecn()),
    };
    packet.set_parsed(parsed, low16(frame.len()));
    if let Some(roce) = parsed.roce {
        hear(frame, packet, roce.class, roce.bth_off, counters);
    }
    true
}

/// No reason is MAC control's.
fn admit(intake: &Intake, frame: &[u8]) -> Result<Parsed, Option<Drop>> {
    let parsed = parse(frame)?;
    if parsed.kind == Kind::MacControl {
        return Err(None);
    }
    let dst = frame
        .first_chunk()
        .map_or_else(Mac::default, |dst| Mac(*dst));
    if dst != intake.mac {
        return Err(Some(if dst.is_group() {
            Drop::Multicast
        } else {
            Drop::NotForUs
        }));
    }
    if parsed.ip_len > intake.mtu {
        return Err(Some(Drop::Oversize));
    }
    match parsed.tci.map(ethernet::vlan_id) {
        // A priority tag (VLAN id 0) is as untagged.
        None | Some(0) if parsed.tags < 2 => Ok(parsed),
        Some(id) if parsed.tags == 1 && intake.vlans.contains(&id) => Ok(parsed),
        _ => Err(Some(Drop::VlanUnknown)),
    }
}

/// Congestion experienced (RFC 3168 section 5).
const CE: u8 = 3;

/// What may be done on its way out to a frame that may be marked.
const fn flags(is_v6: bool, ecn: u8) -> MetaFlags {
    let family = if is_v6 { MetaFlags::IPV6 } else { 0 };
    MetaFlags(match ecn {
        0 => family,
        CE => family | MetaFlags::MARKED,
        _ => family | MetaFlags::MARKABLE,
    })
}

/// Counts CE, CNP and NAK, and keeps what must not be marked from it.
#[inline(never)]
fn hear(
    frame: &[u8],
    packet: &mut Packet,
    class: RoceClass,
    bth_off: u16,
    counters: &PortCounters,
) {
    if packet.brief.ecn() == CE {
        counters.ce_in.add(1);
    }
    if !class.may_be_marked() {
        packet.meta.flags.0 &= MetaFlags::IPV6;
    }
    match class {
        RoceClass::Cnp => counters.cnp_in.add(1),
        RoceClass::Unsupported => counters.roce_unsupported.add(1),
        RoceClass::Ack => {
            // AETH: bits 6..5 of the syndrome tell ACK, RNR NAK and NAK apart (IBTA 9.7.5.2.1).
            let syndrome = frame.get(usize::from(bth_off) + HEADER_LEN);
            match syndrome.map(|syndrome| syndrome >> 5) {
                Some(0b001) => counters.rnr_in.add(1),
                Some(0b011) => counters.nak_in.add(1),
                _ => {}
            }
        }
        _ => {}
    }
}
