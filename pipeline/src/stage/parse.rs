//! Stage 1: headers, MAC and VLAN admission, priority. [`super::receive`] asks.

use zerocopy::FromBytes;

use super::rewrite::Packet;
use super::route::{FlowWords, fold_v6};
use crate::bits::low16;
use crate::burst::{QueueKey, Record};
use crate::classify::Classifier;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FlowSlot, LONGEST, MetaFlags};
use crate::parse::common::{Common, SHORTEST, Untagged, V4, V6};
use crate::parse::{Kind, Parsed, parse};
use crate::units::{Mac, PortId, Priority, WorkerId};
use crate::wire::bth::{GSI_QPN, HEADER_LEN, RoceClass, Traits};
use crate::wire::ethernet::{self, Tag};
use crate::wire::ipv6::Ipv6;

/// What a port takes in.
#[derive(Debug, Clone)]
pub struct IngressConfig {
    /// The port's address: unicast to any other is not for us.
    pub mac: Mac,
    /// Largest IP packet.
    pub mtu: u16,
    /// VLAN ids carried besides untagged frames.
    pub vlans: Box<[u16]>,
    /// Priority maps.
    pub classifier: Classifier,
}

impl IngressConfig {
    /// Of a port that is not configured: no frame is for it.
    pub(crate) fn nothing() -> IngressConfig {
        IngressConfig {
            mac: Mac::default(),
            mtu: 0,
            vlans: Box::default(),
            classifier: Classifier::all(Priority::new(0)),
        }
    }
}

/// An ingress port: [`IngressConfig`] made ready to be asked for every frame.
#[derive(Debug)]
pub struct IngressPort {
    intake: IngressConfig,
    /// The worker that takes its frames in here.
    pub(crate) worker: WorkerId,
    /// Which port it is.
    pub(crate) port: PortId,
    /// The port's address, as the low octets of a frame's first word.
    mac: u64,
    /// Longest untagged frame within the MTU.
    longest: usize,
    /// VLAN ids it carries, and 0, as a set.
    vlans: Box<[u64; 64]>,
    /// Priority of an IP packet by tag (8 without one, else its PCP), then by DSCP.
    priorities: Box<[[Priority; 64]; 9]>,
}

/// The place of untagged packets in [`IngressPort::priorities`].
const NO_TAG: usize = 8;

/// A frame that was admitted, before its path is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admitted {
    /// What is known of it; its length and tag are those it came with.
    pub(super) record: Record,
    pub(super) priority: Priority,
    /// Offset of the IP header.
    pub(super) l3_off: usize,
    /// Bytes of the IP packet.
    pub(super) ip_len: u16,
    /// Destination of an IPv6 packet.
    pub(super) dst_v6: Option<u128>,
    /// What tells its flow apart, but the addresses.
    pub(super) upper: u64,
    /// The octet behind its BTH, if it has one.
    pub(super) syndrome: u8,
}

impl Admitted {
    /// Where its packet stands.
    #[inline]
    pub(super) const fn packet(&self) -> Packet {
        Packet {
            l3_off: self.l3_off,
            len: self.ip_len,
            is_v6: self.dst_v6.is_some(),
        }
    }

    /// What tells its flow apart; `frame` is it as it came.
    #[inline]
    pub(super) fn flow(&self, frame: &[u8]) -> FlowWords {
        let addresses = if self.dst_v6.is_some() {
            let packet = frame.get(self.l3_off..).unwrap_or_default();
            Ipv6::ref_from_prefix(packet).map_or(0, |(header, _)| {
                fold_v6(
                    u128::from_be_bytes(header.src),
                    u128::from_be_bytes(header.dst),
                )
            })
        } else {
            self.record.addresses
        };
        FlowWords {
            addresses,
            upper: self.upper,
        }
    }
}

impl IngressPort {
    /// A port, for the worker who takes its frames in.
    #[must_use]
    pub fn new(intake: IngressConfig, worker: WorkerId, port: PortId) -> IngressPort {
        let [a, b, c, d, e, f] = intake.mac.0;
        let mut vlans = Box::new([0u64; 64]);
        for id in intake.vlans.iter().copied().chain([0]) {
            if let Some(word) = vlans.get_mut(usize::from(id) / 64) {
                *word |= 1 << (id % 64);
            }
        }
        IngressPort {
            mac: u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
            longest: LONGEST.min(usize::from(intake.mtu) + ethernet::HEADER_LEN),
            vlans,
            priorities: Box::new(intake.classifier.table()),
            intake,
            worker,
            port,
        }
    }

    /// Classifies by other maps from now on.
    pub fn reclassify(&mut self, classifier: Classifier) {
        *self.priorities = classifier.table();
        self.intake.classifier = classifier;
    }

    /// Its frames are another worker's from now on.
    pub const fn set_worker(&mut self, worker: WorkerId) {
        self.worker = worker;
    }

    /// The port's address.
    #[must_use]
    pub const fn mac(&self) -> Mac {
        self.intake.mac
    }

    /// Whether frames of this VLAN are taken in; 0 is that of frames without a tag.
    #[must_use]
    pub fn carries(&self, vlan: u16) -> bool {
        vlan == 0 || self.intake.vlans.contains(&vlan)
    }

    /// How its frames are classified.
    #[must_use]
    pub const fn classifier(&self) -> &Classifier {
        &self.intake.classifier
    }

    /// Priority of an untagged IP packet.
    #[inline(always)]
    pub(super) fn untagged_priority(&self, tos: u8) -> Priority {
        let [.., untagged] = &*self.priorities;
        untagged
            .get(usize::from(tos >> 2))
            .copied()
            .unwrap_or_default()
    }

    /// Reads an untagged IPv4 packet to this port and within its MTU, in a frame that ends with it; `None`: another kind of
    /// frame. `octets`: see [`V4::read_whole`].
    #[inline(always)]
    pub(super) fn untagged(&self, frame: &[u8], octets: &mut u64) -> Option<Common> {
        let len = frame.len();
        if !(SHORTEST..=self.longest).contains(&len) {
            return None;
        }
        let (head, _) = Untagged::ref_from_prefix(frame).ok()?;
        if head.first_word() << 16 != self.mac << 16 || head.ethertype.get() != ethernet::IPV4 {
            return None;
        }
        head.ip.read_whole(len - ethernet::HEADER_LEN, octets)
    }

    /// Reads IPv4 without options and IPv6 without extension headers behind no tag or one; `None`: another kind of frame.
    #[inline(always)]
    pub(super) fn read(&self, frame: &[u8]) -> Option<Admitted> {
        if !(SHORTEST..=LONGEST).contains(&frame.len()) {
            return None;
        }
        let (macs, rest) = frame.split_first_chunk::<12>()?;
        let [a, b, c, d, e, f, ..] = *macs;
        if u64::from_le_bytes([a, b, c, d, e, f, 0, 0]) != self.mac {
            return None;
        }
        let (outer, _) = Tag::ref_from_prefix(rest.get(2..)?).ok()?;
        let tagged = u16::from_be_bytes(*rest.first_chunk()?) == ethernet::VLAN;
        let (ethertype, l3_off, table) = if tagged {
            let tci = outer.tci.get();
            let id = usize::from(ethernet::vlan_id(tci));
            let carried = self
                .vlans
                .get(id / 64)
                .is_some_and(|word| word >> (id % 64) & 1 == 1);
            if !carried {
                return None;
            }
            let l3_off = ethernet::HEADER_LEN + ethernet::TAG_LEN;
            (
                outer.ethertype.get(),
                l3_off,
                usize::from(ethernet::pcp(tci)),
            )
        } else {
            let ethertype = u16::from_be_bytes(*rest.first_chunk()?);
            (ethertype, ethernet::HEADER_LEN, NO_TAG)
        };
        let packet = frame.get(l3_off..)?;
        let (common, dst_v6) = match ethertype {
            ethernet::IPV4 => {
                let (head, _) = V4::ref_from_prefix(packet).ok()?;
                (head.read(packet.len())?, None)
            }
            ethernet::IPV6 => {
                let (head, _) = V6::ref_from_prefix(packet).ok()?;
                (head.read(packet.len())?, Some(head.dst()))
            }
            _ => return None,
        };
        if common.ip_len > self.intake.mtu {
            return None;
        }
        let priorities = self.priorities.get(table)?;
        let family = if dst_v6.is_some() { MetaFlags::IPV6 } else { 0 };
        let traits = common.upper.traits.with_v6_if(dst_v6.is_some());
        Some(Admitted {
            record: Record {
                flags: MetaFlags(MetaFlags::of_ecn(common.tos).0 | family),
                traits,
                ..record(&common, frame.len())
            },
            priority: priorities
                .get(usize::from(common.tos >> 2))
                .copied()
                .unwrap_or_default(),
            l3_off,
            ip_len: common.ip_len,
            dst_v6,
            upper: FlowWords::new(0, &common.upper).upper,
            syndrome: common.upper.syndrome,
        })
    }

    /// Takes a frame of any kind. The error is why it goes no further, none for MAC control.
    #[inline(never)]
    pub(super) fn admit_any(&self, frame: &[u8]) -> Result<Admitted, Option<DropReason>> {
        let parsed = admit_parsed(&self.intake, frame)?;
        let l3_off = usize::from(parsed.l3_off);
        let packet = frame.get(l3_off..).unwrap_or_default();
        let dst_v6 = parsed.is_v6().then(|| {
            let header = Ipv6::ref_from_prefix(packet);
            header.map_or(0, |(header, _)| u128::from_be_bytes(header.dst))
        });
        let record = Record::of(&parsed, low16(frame.len()));
        let syndrome = parsed
            .roce
            .and_then(|roce| frame.get(usize::from(roce.bth_off) + HEADER_LEN));
        Ok(Admitted {
            record: Record {
                traits: parsed
                    .roce
                    .map_or(Traits::NONE, |roce| Traits::of(roce.opcode))
                    .with_v6_if(parsed.is_v6()),
                ..record
            },
            priority: self.intake.classifier.priority(&parsed),
            l3_off,
            ip_len: parsed.ip_len,
            dst_v6,
            upper: FlowWords::of(frame, &parsed).upper,
            syndrome: syndrome.copied().unwrap_or(0),
        })
    }
}

/// What an unfragmented packet in a frame of `len` bytes says, but what may be done to it. Of a packet that is not RoCEv2
/// what stands above IP means nothing.
#[inline(always)]
pub(super) fn record(common: &Common, len: usize) -> Record {
    Record {
        addresses: common.addresses,
        transport: common.upper.transport,
        slot: FlowSlot::NONE,
        len: low16(len),
        src_port: common.upper.src_port,
        traits: common.upper.traits,
        tos: common.tos,
        flags: MetaFlags(0),
        queue: QueueKey(0),
    }
}

/// Parses a frame and refuses what this port does not take; no reason is MAC control's.
fn admit_parsed(intake: &IngressConfig, frame: &[u8]) -> Result<Parsed, Option<DropReason>> {
    let parsed = parse(frame)?;
    if parsed.kind == Kind::MacControl {
        return Err(None);
    }
    let dst = frame
        .first_chunk()
        .map_or_else(Mac::default, |dst| Mac(*dst));
    if dst != intake.mac {
        return Err(Some(if dst.is_group() {
            DropReason::Multicast
        } else {
            DropReason::NotForUs
        }));
    }
    if parsed.ip_len > intake.mtu {
        return Err(Some(DropReason::Oversize));
    }
    if parsed.tags > 1 {
        return Err(Some(DropReason::VlanDepth));
    }
    match parsed.tci.map(ethernet::vlan_id) {
        None => Ok(parsed),
        // The VLAN of a service tag is a provider's, whatever its id: it is none of this port's.
        Some(_) if has_service_tag(frame) => Err(Some(DropReason::VlanUnknown)),
        // A priority tag (VLAN id 0) is as untagged.
        Some(0) => Ok(parsed),
        Some(id) if intake.vlans.contains(&id) => Ok(parsed),
        Some(_) => Err(Some(DropReason::VlanUnknown)),
    }
}

/// Whether a frame's outer tag is that of IEEE 802.1ad.
fn has_service_tag(frame: &[u8]) -> bool {
    let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk());
    ethertype == Some(&ethernet::QINQ.to_be_bytes())
}

/// Congestion experienced (RFC 3168 section 5).
pub(super) const CE: u8 = 3;

/// Classes that say something about themselves, or that their opcode does not tell.
const SPEAK: u16 = RoceClass::Cnp.bit() | RoceClass::Datagram.bit() | RoceClass::Unsupported.bit();

/// Whether a packet is RoCEv2 and was marked on its way, as a number.
#[inline(always)]
pub(super) fn is_marked(record: &Record) -> u64 {
    u64::from((record.tos & 3 == CE) & record.is_roce())
}

/// Counts CNP, NAK and what is not supported; returns all that is known of the packet. `syndrome` is the octet behind the
/// BTH.
#[inline(always)]
pub(super) fn hear(record: &Record, syndrome: u8, counters: &PortCounters) -> Traits {
    let traits = record.traits;
    // One question of both, as what one frame says foretells nothing about the next.
    if traits.of_negative(SPEAK, syndrome) != 0 {
        return hear_closely(traits, record.dest_qp(), syndrome, counters);
    }
    traits
}

#[inline(never)]
fn hear_closely(traits: Traits, dest_qp: u32, syndrome: u8, counters: &PortCounters) -> Traits {
    if traits.any(RoceClass::Cnp.bit()) {
        counters.roce.cnp.add(1);
    } else if traits.any(RoceClass::Unsupported.bit()) {
        counters.roce.unsupported.add(1);
    } else if traits.is_negative(syndrome) {
        // AETH: bits 6..5 of the syndrome tell RNR NAK and NAK apart (IBTA 9.7.5.2.1).
        match syndrome >> 5 & 3 {
            0b01 => counters.roce.rnr.add(1),
            0b11 => counters.roce.nak.add(1),
            _ => {}
        }
        return traits.with(Traits::NEGATIVE);
    } else if traits.any(RoceClass::Datagram.bit()) && dest_qp == GSI_QPN {
        return traits.with_class(RoceClass::Management);
    }
    traits
}
