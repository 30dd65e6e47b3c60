//! Stage 1: headers, MAC and VLAN admission, priority.

use super::packet::{Packet, Packets, Places};
use crate::bits::low16;
use crate::classify::Classifier;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::{FlowSlot, FrameBuf, Meta, MetaFlags, wire_len};
use crate::parse::{Kind, Parsed, parse, parse_common};
use crate::units::{Mac, PortId, Priority, WorkerId};
use crate::wire::bth::{HEADER_LEN, RoceClass};
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
    /// The port's address, as the low octets of a frame's first word.
    mac: u64,
    by_dscp: [Priority; 64],
}

impl Entrance {
    /// Of a port.
    #[must_use]
    pub fn new(intake: Intake) -> Entrance {
        let [a, b, c, d, e, f] = intake.mac.0;
        Entrance {
            mac: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            by_dscp: intake.classifier.untagged(),
            intake,
        }
    }

    /// Classifies otherwise from now on.
    pub fn reclassify(&mut self, classifier: Classifier) {
        self.by_dscp = classifier.untagged();
        self.intake.classifier = classifier;
    }

    /// The port's address.
    #[must_use]
    pub const fn mac(&self) -> Mac {
        self.intake.mac
    }
}

/// Where and when a burst came in.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Whose it is.
    pub worker: WorkerId,
    /// By which port.
    pub port: PortId,
    /// Low 32 bits of the time in ns.
    pub time: u32,
}

/// What became of a burst.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Bytes of all frames.
    pub bytes: u64,
    /// Frames refused, and MAC control, which has no reason.
    pub gone: Places,
}

/// Fills `packets` from `frames`.
#[inline]
pub fn run<B: FrameBuf>(
    entrance: &Entrance,
    frames: &[B],
    packets: &mut Packets,
    arrival: Arrival,
    counters: &PortCounters,
) -> Taken {
    let mut taken = Taken::default();
    for frame in frames {
        frame.prefetch();
    }
    for (place, (buf, packet)) in frames.iter().zip(packets).enumerate() {
        let frame = buf.data();
        taken.bytes += frame.len() as u64;
        let common = parse_common(frame).filter(|parsed| {
            parsed.ip_len <= entrance.intake.mtu && first_six(frame) == entrance.mac
        });
        if let Some(parsed) = common {
            let dscp = usize::from(parsed.dscp());
            let priority = entrance.by_dscp.get(dscp).copied().unwrap_or_default();
            fill(packet, frame, parsed, priority, arrival, counters);
        } else if !take_any(&entrance.intake, frame, packet, arrival, counters) {
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

/// Writes down what is known of a frame that goes on.
#[inline(always)]
fn fill(
    packet: &mut Packet,
    frame: &[u8],
    parsed: Parsed,
    priority: Priority,
    arrival: Arrival,
    counters: &PortCounters,
) {
    packet.meta = Meta {
        arrived: arrival.time,
        slot: FlowSlot::NONE,
        wire_len: wire_len(frame.len()),
        worker: arrival.worker,
        ingress: arrival.port,
        egress: arrival.port,
        priority,
        l3_off: parsed.l3_off,
        flags: flags(&parsed),
    };
    packet.parsed = parsed;
    packet.len = low16(frame.len());
    if tells_something(&parsed) {
        hear(frame, packet, counters);
    }
}

/// Takes a frame of any kind; `false`, and a reason unless it is MAC control, when it goes no further.
#[inline(never)]
fn take_any(
    intake: &Intake,
    frame: &[u8],
    packet: &mut Packet,
    arrival: Arrival,
    counters: &PortCounters,
) -> bool {
    match admit(intake, frame) {
        Ok(parsed) => {
            let priority = intake.classifier.priority(&parsed);
            fill(packet, frame, parsed, priority, arrival, counters);
            true
        }
        Err(reason) => {
            packet.reason = reason;
            false
        }
    }
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

/// What may be done on its way out to a frame that may be marked.
#[inline]
fn flags(parsed: &Parsed) -> MetaFlags {
    /// By ECN field, Not-ECT in the low octet: ECT(1), ECT(0), CE.
    const BY_ECN: u32 = u32::from_le_bytes([
        0,
        MetaFlags::MARKABLE,
        MetaFlags::MARKABLE,
        MetaFlags::MARKED,
    ]);
    let family = if parsed.is_v6() { MetaFlags::IPV6 } else { 0 };
    let [mark, ..] = (BY_ECN >> (8 * parsed.ecn())).to_le_bytes();
    MetaFlags(family | mark)
}

/// Whether RoCEv2 says something about itself: all but data that was not marked on its way.
#[inline]
fn tells_something(parsed: &Parsed) -> bool {
    parsed
        .roce
        .is_some_and(|roce| roce.class != RoceClass::Data || parsed.ecn() == 3)
}

/// Counts it, CE, CNP and NAK, and keeps what must not be marked from it.
#[inline(never)]
fn hear(frame: &[u8], packet: &mut Packet, counters: &PortCounters) {
    let Some(roce) = packet.parsed.roce else {
        return;
    };
    if packet.parsed.ecn() == 3 {
        counters.ce_in.add(1);
    }
    if !roce.class.may_be_marked() {
        packet.meta.flags.0 &= MetaFlags::IPV6;
    }
    match roce.class {
        RoceClass::Cnp => counters.cnp_in.add(1),
        RoceClass::Unsupported => counters.roce_unsupported.add(1),
        RoceClass::Ack => {
            // AETH: bits 6..5 of the syndrome tell ACK, RNR NAK and NAK apart (IBTA 9.7.5.2.1).
            let syndrome = frame.get(usize::from(roce.bth_off) + HEADER_LEN);
            match syndrome.map(|syndrome| syndrome >> 5) {
                Some(0b001) => counters.rnr_in.add(1),
                Some(0b011) => counters.nak_in.add(1),
                _ => {}
            }
        }
        _ => {}
    }
}
