//! Stage 1: headers, MAC and VLAN admission, priority. [`super::receive`] asks.

use super::packet::{Brief, Packet};
use super::train::Mark;
use crate::bits::{low8, low16};
use crate::buffer::GroupId;
use crate::classify::Classifier;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::{FlowSlot, LONGEST, Meta, MetaFlags, wire_len};
use crate::parse::common::{Common, Headers, L3_OFF, SHORTEST};
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
    /// The last train, with which the next burst may go on.
    pub(super) last_train: Option<Mark>,
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
            last_train: None,
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

    /// What travels with a common frame of this TOS, but its egress port and its length.
    #[inline]
    pub(super) fn meta(&self, tos: u8) -> Option<&Meta> {
        self.by_tos.get(usize::from(tos))
    }

    /// The port's address, as the low octets of a frame's first word.
    pub(super) const fn address(&self) -> u64 {
        self.mac
    }

    /// Longest frame whose packet certainly fits the MTU.
    pub(super) const fn longest(&self) -> usize {
        self.longest
    }
}

fn by_tos(classifier: &Classifier, worker: WorkerId, port: PortId) -> [Meta; 256] {
    let by_dscp = classifier.untagged();
    std::array::from_fn(|tos| {
        let tos = low8(tos);
        let priority = by_dscp.get(usize::from(tos >> 2));
        let priority = priority.copied().unwrap_or_default();
        Meta {
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

impl Entrance {
    /// Reads the common frame, to this port and within its MTU; `None`: another kind of frame.
    #[inline(always)]
    pub(super) fn common<'a>(&self, frame: &'a mut [u8]) -> Option<(&'a mut Headers, Common)> {
        let len = frame.len();
        if !(SHORTEST..=self.longest).contains(&len) {
            return None;
        }
        let head = Headers::of(frame)?;
        let common = head.read(len)?;
        (head.first_word() << 16 >> 16 == self.mac).then_some((head, common))
    }

    /// Writes down what is known of a common frame of `len` bytes.
    #[inline(always)]
    pub(super) fn fill(
        &self,
        packet: &mut Packet,
        head: &Headers,
        common: Common,
        len: usize,
        counters: &PortCounters,
    ) {
        let traits = Traits::of(common.opcode);
        if let Some(meta) = self.meta(common.tos) {
            packet.meta = Meta {
                wire_len: low16(len + WIRE_OVERHEAD as usize),
                ..*meta
            };
        }
        packet.brief = Brief {
            addresses: common.addresses,
            transport: common.transport,
            len: low16(len),
            src_port: common.src_port,
            traits,
            tos: common.tos,
        };
        // All but data that was not marked on its way says something about itself.
        if !traits.any(RoceClass::Data.bit()) || packet.brief.ecn() == CE {
            let class = RoceClass::of(common.opcode, common.dest_qp());
            packet.brief.traits = traits.with_class(class);
            hear(packet, class, Some(head.syndrome), counters);
        }
    }

    /// Takes a frame of any kind. The error is why it goes no further, none for MAC control.
    pub(super) fn take_any(
        &self,
        frame: &[u8],
        packet: &mut Packet,
        counters: &PortCounters,
    ) -> Result<(), Option<Drop>> {
        let parsed = admit(&self.intake, frame)?;
        let priority = self.intake.classifier.priority(&parsed);
        packet.meta = Meta {
            wire_len: wire_len(frame.len()),
            group: GroupId::new(self.worker, self.port, priority),
            egress: self.port,
            priority,
            l3_off: parsed.l3_off,
            flags: flags(parsed.is_v6(), parsed.ecn()),
            slot: FlowSlot::NONE,
        };
        packet.set_parsed(parsed, low16(frame.len()));
        if let Some(roce) = parsed.roce {
            let syndrome = frame.get(usize::from(roce.bth_off) + HEADER_LEN);
            hear(packet, roce.class, syndrome.copied(), counters);
        }
        Ok(())
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

/// Congestion experienced (RFC 3168 section 5).
pub(super) const CE: u8 = 3;

/// What may be done on its way out to a frame that may be marked.
const fn flags(is_v6: bool, ecn: u8) -> MetaFlags {
    let family = if is_v6 { MetaFlags::IPV6 } else { 0 };
    MetaFlags(match ecn {
        0 => family,
        CE => family | MetaFlags::MARKED,
        _ => family | MetaFlags::MARKABLE,
    })
}

/// Counts CE, CNP and NAK, and keeps what must not be marked from it. `syndrome` is the octet behind the BTH.
#[inline(never)]
fn hear(packet: &mut Packet, class: RoceClass, syndrome: Option<u8>, counters: &PortCounters) {
    if packet.brief.ecn() == CE {
        counters.ce_in.add(1);
    }
    if !class.may_be_marked() {
        packet.meta.flags.0 &= MetaFlags::IPV6;
    }
    match class {
        RoceClass::Cnp => counters.cnp_in.add(1),
        RoceClass::Unsupported => counters.roce_unsupported.add(1),
        // AETH: bits 6..5 of the syndrome tell ACK, RNR NAK and NAK apart (IBTA 9.7.5.2.1).
        RoceClass::Ack => match syndrome.map(|syndrome| syndrome >> 5) {
            Some(0b001) => counters.rnr_in.add(1),
            Some(0b011) => counters.nak_in.add(1),
            _ => {}
        },
        _ => {}
    }
}
