//! Header fields that a filter tests, of any frame, even of one that the switch drops because a header is wrong.

use zerocopy::FromBytes;

use crate::bits::low16;
use crate::wire::bth::{self, Bth, RoceClass};
use crate::wire::ethernet::{self, Ethernet, Tag};
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};
use crate::wire::udp::{self, Udp};
use crate::wire::{mac_control, mac_control::ADDRESS};

/// IP protocol number of TCP.
const TCP: u8 = 6;
/// High three bits of the opcodes of datagrams: a DETH with the source queue pair follows their BTH.
const DATAGRAM: u8 = 0x60;

/// Fields of a frame, from its bytes alone. No checksum and no length is checked: a field is present if its bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields {
    /// Length of the frame in bytes, without FCS.
    pub len: u16,
    /// Destination MAC address.
    pub dst_mac: [u8; 6],
    /// Source MAC address.
    pub src_mac: [u8; 6],
    /// Tag control word of the outer VLAN tag.
    pub tci: Option<u16>,
    /// EtherType behind the tags.
    pub ethertype: u16,
    /// IP version: 4 or 6; 0 if it is not an IP packet.
    pub version: u8,
    /// Source address of an IP packet; IPv4 as `::ffff:a.b.c.d`.
    pub src: u128,
    /// Destination address of an IP packet; IPv4 as `::ffff:a.b.c.d`.
    pub dst: u128,
    /// DSCP (high six bits) and ECN (low two).
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    /// IP protocol behind extension headers.
    pub protocol: u8,
    /// Source and destination port of UDP or TCP; `None` for a later fragment.
    pub ports: Option<(u16, u16)>,
    /// Base transport header of RoCEv2.
    pub roce: Option<RoceFields>,
    /// Classes that a PFC frame names, one bit each; `None` for any other frame.
    pub pfc: Option<u8>,
}

/// Fields of a RoCEv2 packet that a filter tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoceFields {
    /// Opcode: transport and operation.
    pub opcode: u8,
    /// Class by which NPCC treats the packet.
    pub class: RoceClass,
    /// Destination queue pair.
    pub dest_qp: u32,
    /// Source queue pair, which only datagrams name.
    pub src_qp: Option<u32>,
    /// Packet sequence number.
    pub psn: u32,
    /// Backward congestion notification (BECN) bit.
    pub becn: bool,
}

/// Returns an IPv4 address as an IPv4-mapped IPv6 address.
#[must_use]
pub(super) const fn mapped(v4: u32) -> u128 {
    0xffff << 32 | v4 as u128
}

impl Fields {
    /// Reads a frame, in time bounded by the number of headers it steps over.
    #[must_use]
    pub fn of(frame: &[u8]) -> Fields {
        let mut fields = Fields {
            len: low16(frame.len().min(usize::from(u16::MAX))),
            ..Fields::default()
        };
        let Ok((header, mut rest)) = Ethernet::ref_from_prefix(frame) else {
            return fields;
        };
        (fields.dst_mac, fields.src_mac) = (header.dst, header.src);
        fields.ethertype = header.ethertype.get();
        for _ in 0..2 {
            if !matches!(fields.ethertype, ethernet::VLAN | ethernet::QINQ) {
                break;
            }
            let Ok((tag, behind)) = Tag::ref_from_prefix(rest) else {
                return fields;
            };
            fields.tci = fields.tci.or_else(|| Some(tag.tci.get()));
            (fields.ethertype, rest) = (tag.ethertype.get(), behind);
        }
        match fields.ethertype {
            ethernet::IPV4 => fields.ipv4(rest),
            ethernet::IPV6 => fields.ipv6(rest),
            ethernet::MAC_CONTROL if fields.dst_mac == ADDRESS.0 => {
                fields.pfc = mac_control::pfc_classes(rest);
            }
            _ => {}
        }
        fields
    }

    /// Returns the VLAN id of the outer tag.
    #[must_use]
    pub fn vlan(&self) -> Option<u16> {
        self.tci.map(ethernet::vlan_id)
    }

    fn ipv4(&mut self, packet: &[u8]) {
        let Ok((header, _)) = Ipv4::ref_from_prefix(packet) else {
            return;
        };
        self.version = 4;
        self.src = mapped(u32::from_be_bytes(header.src));
        self.dst = mapped(u32::from_be_bytes(header.dst));
        (self.tos, self.ttl, self.protocol) = (header.tos, header.ttl, header.protocol);
        let length = header.header_len().max(ipv4::MIN_LEN);
        if header.flags_fragment.get() & 0x1fff == 0 {
            self.layer4(packet.get(length..).unwrap_or_default());
        }
    }

    fn ipv6(&mut self, packet: &[u8]) {
        let Ok((header, mut rest)) = Ipv6::ref_from_prefix(packet) else {
            return;
        };
        self.version = 6;
        self.src = u128::from_be_bytes(header.src);
        self.dst = u128::from_be_bytes(header.dst);
        (self.tos, self.ttl) = (header.traffic_class(), header.hop_limit);
        self.protocol = header.next_header;
        for _ in 0..ipv6::MAX_EXTENSIONS {
            let Some([next, length, high, low]) = rest.first_chunk() else {
                return;
            };
            let length = match self.protocol {
                ipv6::FRAGMENT if u16::from_be_bytes([*high, *low]) >> 3 != 0 => {
                    self.protocol = *next;
                    return;
                }
                ipv6::FRAGMENT => 8,
                option if ipv6::is_option_like(option) => 8 + usize::from(*length) * 8,
                _ => return self.layer4(rest),
            };
            self.protocol = *next;
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    fn layer4(&mut self, segment: &[u8]) {
        if !matches!(self.protocol, TCP | udp::PROTOCOL) {
            return;
        }
        let Some([a, b, c, d]) = segment.first_chunk() else {
            return;
        };
        let (src, dst) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        self.ports = Some((src, dst));
        if self.protocol == udp::PROTOCOL && dst == udp::ROCEV2_PORT {
            self.roce = RoceFields::of(segment.get(size_of::<Udp>()..).unwrap_or_default());
        }
    }
}

impl RoceFields {
    fn of(payload: &[u8]) -> Option<RoceFields> {
        let (bth, rest) = Bth::ref_from_prefix(payload).ok()?;
        // DETH: Q_Key (4 octets), reserved (1), source queue pair (3).
        let deth = rest
            .first_chunk()
            .filter(|_| bth.opcode & 0xe0 == DATAGRAM)
            .map(|[_, _, _, _, _, qp @ ..]: &[u8; 8]| bth::be24(*qp));
        Some(RoceFields {
            opcode: bth.opcode,
            class: RoceClass::of(bth.opcode, bth.dest_qp()),
            dest_qp: bth.dest_qp(),
            src_qp: deth,
            psn: bth.psn(),
            becn: bth.becn(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::craft::Craft;
    use proptest::prelude::*;

    #[test]
    fn what_a_frame_was_made_of_is_read_also_where_its_checksum_is_wrong() {
        let mut craft = Craft::roce(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.2".parse().unwrap(),
            0x64,
            1,
            64,
        );
        craft.tags = vec![3 << 13 | 100];
        craft.payload[5..8].copy_from_slice(&[0, 0x12, 0x34]);
        let mut frame = craft.frame();
        frame[14 + 4 + 10] ^= 1;
        let fields = Fields::of(&frame);
        assert_eq!((fields.vlan(), fields.version), (Some(100), 4));
        assert_eq!(fields.src, mapped(0x0a00_0103));
        assert_eq!(fields.ports, Some((49_560, 4791)));
        let roce = fields.roce.unwrap();
        assert_eq!((roce.dest_qp, roce.src_qp), (1, Some(0x1234)));
        assert_eq!(roce.class, RoceClass::Management);
    }

    proptest! {
        /// Both parsers agree on every frame that the switch's own parser reads.
        #[test]
        fn agrees_with_the_parser(
            opcode: u8, qp in 0u32..1 << 24, tos: u8, ttl: u8, payload in 0usize..64,
            tags in prop::collection::vec(any::<u16>(), 0..3), v6: bool,
        ) {
            let ends = if v6 { ("2001:db8::1", "2001:db8::2") } else { ("10.0.1.3", "10.0.2.2") };
            let mut craft = Craft::roce(ends.0.parse().unwrap(), ends.1.parse().unwrap(), opcode, qp, payload);
            (craft.tos, craft.ttl, craft.tags) = (tos, ttl, tags);
            let frame = craft.frame();
            let fields = Fields::of(&frame);
            if let Ok(parsed) = crate::parse::parse(&frame) {
                prop_assert_eq!(fields.tos, parsed.tos);
                prop_assert_eq!(fields.tci, parsed.tci);
                prop_assert_eq!(fields.protocol, parsed.protocol);
                prop_assert_eq!(fields.version == 6, parsed.is_v6());
                if let Some(roce) = parsed.roce {
                    let read = fields.roce.unwrap();
                    prop_assert_eq!((read.opcode, read.dest_qp, read.psn), (roce.opcode, roce.dest_qp, roce.psn()));
                    prop_assert_eq!(read.class, roce.class);
                }
            }
        }

        /// Any bytes get an answer.
        #[test]
        fn any_bytes_are_read(frame in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Fields::of(&frame);
        }
    }
}
