//! Headers, MAC and VLAN admission, priority of a frame. Called by [`super::receive`].
//!
//! One file of more than 400 lines: the tables of a port are private to the checks that use them for each frame.

use zerocopy::FromBytes;

use super::kinds::l3_off;
use super::rewrite::Packet;
use super::route::{FlowWords, folded};
use crate::bits::{low16, low32};
use crate::burst::{QueueKey, Record};
use crate::classify::Classifier;
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FlowSlot, LONGEST, MetaFlags};
use crate::parse::common::{self, Common, NO_OCTETS, SHORTEST};
use crate::parse::digest::AddressDigest;
use crate::parse::{Kind, Parsed, parse};
use crate::units::{Mac, PortId, Priority, WorkerId};
use crate::wire::bth::{GSI_QPN, HEADER_LEN, RoceClass, Traits};
use crate::wire::ethernet::{self, Tag};
use crate::wire::ipv6::{self, Ipv6};

/// Frames that a port accepts, and how it classifies them.
#[derive(Debug, Clone)]
pub struct IngressConfig {
    /// MAC address of the port: unicast to any other address is not for us.
    pub mac: Mac,
    /// Largest IP packet in bytes.
    pub mtu: u16,
    /// VLAN ids carried in addition to untagged frames.
    pub vlans: Box<[u16]>,
    /// Priority maps of the port.
    pub classifier: Classifier,
}

impl IngressConfig {
    /// Returns the configuration of a port that is not configured: no frame is for it.
    pub(crate) fn nothing() -> IngressConfig {
        IngressConfig {
            mac: Mac::default(),
            mtu: 0,
            vlans: Box::default(),
            classifier: Classifier::all(Priority::new(0)),
        }
    }
}

/// An ingress port: [`IngressConfig`] compiled for use on every frame.
#[derive(Debug)]
pub struct IngressPort {
    intake: IngressConfig,
    /// Worker whose ingress groups its frames are charged to.
    pub(crate) worker: WorkerId,
    /// Number of the port.
    pub(crate) port: PortId,
    /// True if the port is administratively down: what it receives is dropped.
    pub(crate) admin_down: bool,
    /// MAC address of the port, as the low octets of a frame's first word.
    mac: u64,
    /// Length of the longest untagged frame within the MTU.
    longest: usize,
    /// Set of the VLAN ids it carries, 0 included.
    vlans: Box<[u64; 64]>,
    /// Priority of an IP packet by tag (8 without one, otherwise its PCP), then by DSCP.
    priorities: Box<[[Priority; 64]; 9]>,
    digest: AddressDigest,
    /// Other MAC addresses that are the switch's on a VLAN. Frames to them are read by the general parser.
    other_macs: Box<[(u16, Mac)]>,
}

/// Fields of the last frame that was accepted: a frame with the same ones needs no further check of them.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// First octets of the addresses: see [`common::V4::read_whole`].
    octets: u64,
    /// EtherType and VLAN id of the tag; no tag at first.
    tag: u32,
}

impl Seen {
    /// Returns EtherType and VLAN id of the last tag that was accepted, the former in the high half; 0 if there was none.
    #[inline]
    #[must_use]
    pub const fn tag(&self) -> u32 {
        self.tag
    }

    /// Nothing was accepted yet.
    pub(super) const NOTHING: Seen = Seen {
        octets: NO_OCTETS,
        tag: 0,
    };
}

/// A frame that was admitted, before its path is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admitted {
    /// Record of the frame; length and tag are those of arrival.
    pub(super) record: Record,
    pub(super) priority: Priority,
    /// Offset of the IP header.
    pub(super) l3_off: usize,
    /// Length of the IP packet in bytes.
    pub(super) ip_len: u16,
    /// Destination of an IPv6 packet; `None` for IPv4.
    pub(super) dst_v6: Option<u128>,
    /// Flow key without the addresses.
    pub(super) upper: u64,
    /// The octet after the BTH, if there is one: the syndrome where it is an AETH.
    pub(super) syndrome: u8,
}

impl Admitted {
    /// Returns the position of its IP packet.
    #[inline]
    pub(super) const fn packet(&self) -> Packet {
        Packet {
            l3_off: self.l3_off,
            len: self.ip_len,
            is_v6: self.dst_v6.is_some(),
        }
    }

    /// Returns its flow key; `frame` is the frame as it arrived.
    #[inline]
    pub(super) fn flow(&self, frame: &[u8]) -> FlowWords {
        let addresses = if self.dst_v6.is_some() {
            folded(frame.get(self.l3_off..).unwrap_or_default())
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
    /// Returns a port whose frames `worker` receives. The keys of `digest` are unknown to those who send to it.
    #[must_use]
    pub fn new(
        intake: IngressConfig,
        worker: WorkerId,
        port: PortId,
        digest: AddressDigest,
    ) -> IngressPort {
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
            admin_down: false,
            digest,
            other_macs: Box::default(),
        }
    }

    /// Replaces the other MAC addresses that are the switch's, each on a VLAN (0 without a tag).
    pub fn set_other_macs(&mut self, macs: &[(u16, Mac)]) {
        self.other_macs = macs.into();
    }

    /// Returns true if a MAC address that is not the port's is the switch's on a VLAN.
    #[cold]
    #[must_use]
    pub fn has_other_mac(&self, vlan: u16, mac: Mac) -> bool {
        self.other_macs.contains(&(vlan, mac))
    }

    /// Replaces the priority maps.
    pub fn reclassify(&mut self, classifier: Classifier) {
        *self.priorities = classifier.table();
        self.intake.classifier = classifier;
    }

    /// Assigns the frames to another worker.
    pub const fn set_worker(&mut self, worker: WorkerId) {
        self.worker = worker;
    }

    /// Returns the MAC address of the port.
    #[must_use]
    pub const fn mac(&self) -> Mac {
        self.intake.mac
    }

    /// Returns the MAC address of the port as the low octets of a frame's first word.
    #[inline]
    #[must_use]
    pub const fn mac_word(&self) -> u64 {
        self.mac
    }

    /// Returns the length of the longest untagged frame within the MTU.
    #[inline]
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the digest of IPv6 addresses.
    #[inline]
    #[must_use]
    pub const fn digest(&self) -> &AddressDigest {
        &self.digest
    }

    /// Returns the priority maps.
    #[must_use]
    pub const fn classifier(&self) -> &Classifier {
        &self.intake.classifier
    }

    /// Returns the priority of an IP packet; `tci` is the tag control word of its tag, if it has one.
    #[inline(always)]
    pub(super) fn priority(&self, tci: Option<u16>, tos: u8) -> Priority {
        let by_dscp = match tci {
            Some(tci) => self.priorities.get(usize::from(ethernet::pcp(tci))),
            None => self.priorities.last(),
        };
        by_dscp
            .and_then(|priorities| priorities.get(usize::from(tos >> 2)))
            .copied()
            .unwrap_or_default()
    }

    /// Reads a packet of one kind to this port, within its MTU, in a frame that ends with it; `None` for any other frame.
    /// `seen`: see [`Seen`].
    #[inline(always)]
    pub(super) fn whole<const TAGGED: bool, const V6: bool>(
        &self,
        frame: &[u8],
        seen: &mut Seen,
    ) -> Option<Common> {
        let l3_off = l3_off::<TAGGED>();
        let least = if V6 {
            l3_off + size_of::<common::V6>()
        } else {
            SHORTEST
        };
        let len = frame.len();
        if !(least..=self.longest + l3_off - ethernet::HEADER_LEN).contains(&len) {
            return None;
        }
        let (head, packet) = frame.split_at_checked(l3_off)?;
        let expected = if V6 { ethernet::IPV6 } else { ethernet::IPV4 };
        if u64::from_le_bytes(*head.first_chunk()?) << 16 != self.mac << 16
            || u16::from_be_bytes(*head.last_chunk()?) != expected
        {
            return None;
        }
        if TAGGED {
            const ID: u32 = 0xffff_0fff;
            let tag = u32::from_be_bytes(*head.get(12..)?.first_chunk()?) & ID;
            if tag != seen.tag {
                if tag >> 16 != u32::from(ethernet::VLAN)
                    || !self.carries(ethernet::vlan_id(low16(tag as usize)))
                {
                    return None;
                }
                seen.tag = tag;
            }
        }
        if V6 {
            let (head, _) = common::V6::ref_from_prefix(packet).ok()?;
            head.read_whole(len - l3_off, &self.digest)
        } else {
            let (head, _) = common::V4::ref_from_prefix(packet).ok()?;
            head.read_whole(len - l3_off, &mut seen.octets)
        }
    }

    /// Returns true if frames of this VLAN are accepted; 0 is the id of a priority tag, and of frames without a tag.
    #[inline]
    #[must_use]
    pub fn carries(&self, vlan: u16) -> bool {
        let word = self.vlans.get(usize::from(vlan) / 64);
        word.is_some_and(|word| word >> (vlan % 64) & 1 == 1)
    }

    /// Reads IPv4 without options, or IPv6 without extension headers, behind at most one tag; `None` for any other kind of
    /// frame.
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
        let (ethertype, l3_off, tci) = if tagged {
            let tci = outer.tci.get();
            if !self.carries(ethernet::vlan_id(tci)) {
                return None;
            }
            (outer.ethertype.get(), l3_off::<true>(), Some(tci))
        } else {
            let ethertype = u16::from_be_bytes(*rest.first_chunk()?);
            (ethertype, l3_off::<false>(), None)
        };
        let packet = frame.get(l3_off..)?;
        let (common, dst_v6) = match ethertype {
            ethernet::IPV4 => {
                let (head, _) = common::V4::ref_from_prefix(packet).ok()?;
                (head.read(packet.len())?, None)
            }
            ethernet::IPV6 => {
                let (head, _) = common::V6::ref_from_prefix(packet).ok()?;
                (head.read(packet.len(), &self.digest)?, Some(head.dst()))
            }
            _ => return None,
        };
        if common.ip_len > self.intake.mtu {
            return None;
        }
        let family = if dst_v6.is_some() { MetaFlags::IPV6 } else { 0 };
        Some(Admitted {
            record: Record {
                flags: MetaFlags(MetaFlags::of_ecn(common.tos).0 | family),
                ..record(&common, frame.len(), dst_v6.is_some())
            },
            priority: self.priority(tci, common.tos),
            l3_off,
            ip_len: common.ip_len,
            dst_v6,
            upper: FlowWords::new(0, &common.upper).upper,
            syndrome: common.upper.syndrome,
        })
    }

    /// Admits a frame of any kind. The error is its drop reason, or `None` for MAC control.
    #[inline(never)]
    pub(super) fn admit_any(&self, frame: &[u8]) -> Result<Admitted, Option<DropReason>> {
        let parsed = admit_parsed(self, frame)?;
        let l3_off = usize::from(parsed.l3_off);
        let packet = frame.get(l3_off..).unwrap_or_default();
        let mut record = Record::of(&parsed, low16(frame.len()));
        let dst_v6 = parsed.is_v6().then(|| {
            let header = Ipv6::ref_from_prefix(packet);
            record.addresses = packet
                .get(ipv6::ADDRESSES..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |addresses| self.digest.of(addresses));
            header.map_or(0, |(header, _)| u128::from_be_bytes(header.dst))
        });
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

/// Returns the record of an unfragmented packet in a frame of `len` bytes, without flags and queue. For a packet that is not
/// RoCEv2, the fields above IP mean nothing.
#[inline(always)]
pub(super) fn record(common: &Common, len: usize, is_v6: bool) -> Record {
    Record {
        addresses: common.addresses,
        ack_psn: low32(common.upper.transport),
        qp: low32(common.upper.transport >> 32) & (Record::V6 - 1)
            | if is_v6 { Record::V6 } else { 0 },
        slot: FlowSlot::NONE,
        len: low16(len),
        src_port: common.upper.src_port,
        traits: common.upper.traits.with_v6_if(is_v6),
        tos: common.tos,
        flags: MetaFlags(0),
        queue: QueueKey(0),
    }
}

/// Parses a frame and refuses what this port does not accept; the error is `None` for MAC control.
fn admit_parsed(port: &IngressPort, frame: &[u8]) -> Result<Parsed, Option<DropReason>> {
    let parsed = match parse(frame) {
        // What is longer than the MTU although its end is missing was cut by the ring of the driver, and not by its sender.
        Err(DropReason::IpTruncated) if frame.len() >= port.longest => {
            return Err(Some(DropReason::DriverTruncated));
        }
        parsed => parsed?,
    };
    if parsed.kind == Kind::MacControl {
        return Err(None);
    }
    let dst = frame
        .first_chunk()
        .map_or_else(Mac::default, |dst| Mac(*dst));
    let vlan = || parsed.tci.map_or(0, ethernet::vlan_id);
    if dst != port.mac() && !port.has_other_mac(vlan(), dst) {
        return Err(Some(if dst.is_group() {
            DropReason::Multicast
        } else {
            DropReason::NotForUs
        }));
    }
    if parsed.ip_len > port.intake.mtu {
        return Err(Some(DropReason::Oversize));
    }
    if parsed.tags > 1 {
        return Err(Some(DropReason::VlanDepth));
    }
    match parsed.tci.map(ethernet::vlan_id) {
        None => Ok(parsed),
        // The VLAN of a service tag is the provider's, whatever its id, and never one of this port's.
        Some(_) if has_service_tag(frame) => Err(Some(DropReason::VlanUnknown)),
        // A priority tag (VLAN id 0) names no VLAN; its PCP may still determine the priority.
        Some(id) if port.carries(id) => Ok(parsed),
        Some(_) => Err(Some(DropReason::VlanUnknown)),
    }
}

/// Returns true if a frame's outer tag is that of IEEE 802.1ad.
fn has_service_tag(frame: &[u8]) -> bool {
    let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk());
    ethertype == Some(&ethernet::QINQ.to_be_bytes())
}

/// ECN codepoint CE, congestion experienced (RFC 3168 section 5).
pub(super) const CE: u8 = 3;

/// Classes that [`hear`] looks at closely: CNPs and unsupported packets are counted, and of a datagram the QP determines
/// the class.
const SPEAK: u16 = RoceClass::Cnp.bit() | RoceClass::Datagram.bit() | RoceClass::Unsupported.bit();

/// Returns 1 if a packet is RoCEv2 and arrived marked CE, otherwise 0.
#[inline(always)]
pub(super) fn is_marked(record: &Record) -> u64 {
    u64::from((record.tos & 3 == CE) & record.is_roce())
}

/// Counts CNPs, NAKs and unsupported packets; returns the complete traits of the packet. `syndrome` is the octet after the BTH.
#[inline(always)]
pub(super) fn hear(record: &Record, syndrome: u8, counters: &PortCounters) -> Traits {
    let traits = record.traits;
    // Both are tested at once, because one frame does not predict the next.
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
