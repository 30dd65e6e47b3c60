//! TCP and UDP checksums that a sender left to its NIC, completed in software.
//!
//! A kernel host on a veth or virtio link writes only the sum of the pseudo-header into the checksum field
//! (`CHECKSUM_PARTIAL`) and leaves the rest to hardware that is not there. A driver over a packet socket passes such frames on
//! as they are, without an indication: they are recognized by that sum. A checksum that is right is never touched, nor is
//! UDP's 0 (none), a fragment (the kernel completes it first), or any other protocol.

use zerocopy::FromBytes;

use crate::parse::skip_extensions;
use crate::wire::ethernet;
use crate::wire::ipv4::{self, Ipv4};
use crate::wire::ipv6::{self, Ipv6};
use crate::wire::{checksum, udp};

const TCP: u8 = 6;

/// Completes the checksum of a frame whose sender left it to its NIC; returns true if it did. A frame that cannot be read is
/// left alone.
#[must_use]
pub fn complete(frame: &mut [u8]) -> bool {
    segment(frame).is_some_and(|segment| segment.complete(frame))
}

/// A TCP or UDP segment in a frame.
struct Segment {
    /// Offset of its first octet.
    start: usize,
    /// Offset after its last octet.
    end: usize,
    /// Offset of its checksum.
    checksum: usize,
    /// Sum of its pseudo-header.
    pseudo: u16,
}

impl Segment {
    fn complete(&self, frame: &mut [u8]) -> bool {
        let field = self.checksum..self.checksum + 2;
        if frame.get(field.clone()) != Some(&self.pseudo.to_be_bytes()) {
            return false;
        }
        // With the pseudo-header's sum in its checksum field, the segment's own sum is the sum of everything that is to be
        // covered.
        let all = checksum::sum(frame.get(self.start..self.end).unwrap_or_default());
        if checksum::add(self.pseudo, all) == 0xffff {
            return false;
        }
        // UDP reads 0 as none; 0xffff is the same sum.
        let complete = if all == 0xffff { all } else { !all };
        if let Some(field) = frame.get_mut(field) {
            field.copy_from_slice(&complete.to_be_bytes());
        }
        true
    }
}

/// Returns the TCP or UDP segment of a frame; `None` for a fragment, behind more than two VLAN tags, or if the lengths do not
/// agree.
fn segment(frame: &[u8]) -> Option<Segment> {
    let mut l3 = ethernet::HEADER_LEN;
    let ether_type = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut kind = ether_type(l3 - 2)?;
    for _ in 0..2 {
        if matches!(kind, ethernet::VLAN | ethernet::QINQ) {
            l3 += ethernet::TAG_LEN;
            kind = ether_type(l3 - 2)?;
        }
    }
    let packet = frame.get(l3..)?;
    let (protocol, off, len, addresses) = match kind {
        ethernet::IPV4 => {
            let (header, _) = Ipv4::ref_from_prefix(packet).ok()?;
            if header.version() != 4 || header.is_fragment() {
                return None;
            }
            let addresses = checksum::add(checksum::sum(&header.src), checksum::sum(&header.dst));
            let off = header.header_len().max(ipv4::MIN_LEN);
            (
                header.protocol,
                off,
                header.total_len.get().into(),
                addresses,
            )
        }
        ethernet::IPV6 => {
            let (header, _) = Ipv6::ref_from_prefix(packet).ok()?;
            let len = ipv6::HEADER_LEN + usize::from(header.payload_len.get());
            let upper = skip_extensions(packet.get(..len)?, header.next_header)?;
            if header.version() != 6 || upper.is_fragment {
                return None;
            }
            let addresses = checksum::add(checksum::sum(&header.src), checksum::sum(&header.dst));
            (upper.protocol, upper.off, len, addresses)
        }
        _ => return None,
    };
    let (least, checksum) = match protocol {
        TCP => (20, 16),
        udp::PROTOCOL => (udp::HEADER_LEN, 6),
        _ => return None,
    };
    let length = len.checked_sub(off).filter(|length| *length >= least)?;
    packet.get(..len)?;
    let length = u16::try_from(length).ok()?;
    let pseudo = checksum::add(addresses, checksum::add(protocol.into(), length));
    Some(Segment {
        start: l3 + off,
        end: l3 + len,
        checksum: l3 + off + checksum,
        pseudo,
    })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    struct Made {
        v6: bool,
        tcp: bool,
        tags: u8,
        addresses: [u8; 32],
        ports: (u16, u16),
        payload: Vec<u8>,
        padding: usize,
    }

    fn made() -> impl Strategy<Value = Made> {
        let payload = prop::collection::vec(any::<u8>(), 0..1400);
        let shape = (any::<bool>(), any::<bool>(), 0u8..3, 0usize..8);
        (shape, any::<[u8; 32]>(), any::<(u16, u16)>(), payload).prop_map(
            |((v6, tcp, tags, padding), addresses, ports, payload)| Made {
                v6,
                tcp,
                tags,
                addresses,
                ports,
                payload,
                padding,
            },
        )
    }

    impl Made {
        /// Returns the frame with the checksum that etherparse gives it, and the offset of the checksum.
        fn frame(&self) -> (Vec<u8>, usize) {
            let [src, dst]: [[u8; 16]; 2] =
                [&self.addresses[..16], &self.addresses[16..]].map(|part| part.try_into().unwrap());
            let four = |address: [u8; 16]| address[..4].try_into().unwrap();
            let packet = if self.v6 {
                PacketBuilder::ethernet2([2; 6], [4; 6]).ipv6(src, dst, 64)
            } else {
                PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(four(src), four(dst), 64)
            };
            let mut frame = Vec::new();
            if self.tcp {
                let packet = packet.tcp(self.ports.0, self.ports.1, 7, 1024).psh().ack(9);
                packet.write(&mut frame, &self.payload).unwrap();
            } else {
                let packet = packet.udp(self.ports.0, self.ports.1);
                packet.write(&mut frame, &self.payload).unwrap();
            }
            for tag in 0..self.tags {
                let kind = if tag == 0 {
                    ethernet::VLAN
                } else {
                    ethernet::QINQ
                };
                let [high, low] = kind.to_be_bytes();
                frame.splice(12..12, [high, low, 0x60, 100]);
            }
            frame.extend(std::iter::repeat_n(0xa5, self.padding));
            let header = if self.v6 { 40 } else { 20 };
            let checksum = if self.tcp { 16 } else { 6 };
            let at = 14 + 4 * usize::from(self.tags) + header + checksum;
            (frame, at)
        }

        /// Returns the pseudo-header's sum (RFC 9293 section 3.1, RFC 8200 section 8.1), word by word.
        fn pseudo(&self) -> u16 {
            let addresses = if self.v6 {
                self.addresses.to_vec()
            } else {
                [&self.addresses[..4], &self.addresses[16..20]].concat()
            };
            let header = if self.tcp { 20 } else { 8 };
            let words = addresses
                .chunks(2)
                .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
            let protocol = if self.tcp { 6 } else { 17 };
            let mut sum: u32 = words.sum::<u32>() + protocol + (header + self.payload.len()) as u32;
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            sum as u16
        }
    }

    proptest! {
        #[test]
        fn a_partial_checksum_becomes_the_one_etherparse_computes(made in made()) {
            let (whole, at) = made.frame();
            let mut frame = whole.clone();
            frame[at..at + 2].copy_from_slice(&made.pseudo().to_be_bytes());
            // A partial one may be right by chance; then there is nothing to do.
            prop_assert_eq!(complete(&mut frame), whole[at..at + 2] != made.pseudo().to_be_bytes());
            if whole[at..at + 2] == [0, 0] {
                prop_assert_eq!(&frame[at..at + 2], &[0xff, 0xff]);
                frame[at..at + 2].fill(0);
            }
            prop_assert_eq!(frame, whole);
        }

        #[test]
        fn a_whole_checksum_and_none_stay(made in made(), none in any::<bool>()) {
            let (mut frame, at) = made.frame();
            if none {
                frame[at..at + 2].fill(0);
            }
            let before = frame.clone();
            prop_assert!(!complete(&mut frame));
            prop_assert_eq!(frame, before);
        }

        #[test]
        fn fragments_and_cut_frames_stay(made in made(), offset in 1u16..0x2000, cut in 1usize..40) {
            let (mut frame, at) = made.frame();
            frame[at..at + 2].copy_from_slice(&made.pseudo().to_be_bytes());
            let l3 = 14 + 4 * usize::from(made.tags);
            let mut short = frame[..frame.len() - made.padding - cut.min(made.payload.len() + 8)].to_vec();
            let before = short.clone();
            prop_assert!(!complete(&mut short));
            prop_assert_eq!(short, before);
            if made.v6 {
                let inner = std::mem::replace(&mut frame[l3 + 6], ipv6::FRAGMENT);
                let [high, low] = (offset << 3).to_be_bytes();
                frame.splice(l3 + 40..l3 + 40, [inner, 0, high, low, 0, 0, 0, 1]);
                let len = u16::from_be_bytes([frame[l3 + 4], frame[l3 + 5]]) + 8;
                frame[l3 + 4..l3 + 6].copy_from_slice(&len.to_be_bytes());
            } else {
                frame[l3 + 6..l3 + 8].copy_from_slice(&offset.to_be_bytes());
            }
            let before = frame.clone();
            prop_assert!(!complete(&mut frame));
            prop_assert_eq!(frame, before);
        }

        #[test]
        fn any_bytes_at_all_are_read(mut bytes in prop::collection::vec(any::<u8>(), 0..128), kind in 0usize..4) {
            let kinds = [[8, 0, 0x45, 0], [0x86, 0xdd, 0x60, 0], [0x81, 0, 0, 0], [8, 0, 0x4f, 0]];
            if let Some(start) = bytes.get_mut(12..16) {
                start.copy_from_slice(&kinds[kind]);
            }
            let _ = complete(&mut bytes);
        }
    }

    /// RoCEv2 over a veth keeps no checksum: the sender's stack writes no UDP checksum, and the switch adds none.
    #[test]
    fn a_rocev2_packet_without_a_checksum_stays() {
        let mut frame = Vec::new();
        let packet =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 1, 2], [10, 0, 2, 2], 64);
        packet
            .udp(49152, udp::ROCEV2_PORT)
            .write(&mut frame, &[4; 64])
            .unwrap();
        frame[40..42].fill(0);
        let before = frame.clone();
        assert!(!complete(&mut frame));
        assert_eq!(frame, before);
    }
}
