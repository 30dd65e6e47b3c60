//! Ethernet header of a frame that may be for Linux: destination, VLAN and payload type.

use zerocopy::FromBytes;

use crate::stage::parse::IngressPort;
use crate::units::Mac;
use crate::wire::ethernet::{self, Ethernet, Tag};

/// Fields of the Ethernet header of a frame that may be for Linux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer2 {
    /// True for broadcast or multicast; otherwise the frame is to the port's own address.
    pub is_group: bool,
    /// VLAN id; 0 without a tag, or with a priority tag.
    pub vlan: u16,
    /// EtherType of the payload.
    pub ethertype: u16,
    /// Offset of the payload.
    pub l3_off: usize,
    /// Length of the longest untagged frame within the port's MTU.
    pub longest: usize,
}

impl Layer2 {
    /// Reads a frame received on `port`; `None` if it is to another station, or of a VLAN that the port does not carry.
    #[must_use]
    pub fn read(port: &IngressPort, frame: &[u8]) -> Option<Layer2> {
        let (header, rest) = Ethernet::ref_from_prefix(frame).ok()?;
        let dst = Mac(header.dst);
        let (vlan, ethertype, l3_off) = match header.ethertype.get() {
            ethernet::VLAN => {
                let (tag, _) = Tag::ref_from_prefix(rest).ok()?;
                let vlan = ethernet::vlan_id(tag.tci.get());
                let l3_off = ethernet::HEADER_LEN + ethernet::TAG_LEN;
                (vlan, tag.ethertype.get(), l3_off)
            }
            untagged => (0, untagged, ethernet::HEADER_LEN),
        };
        let is_ours = dst == port.mac() || dst.is_group() || port.has_other_mac(vlan, dst);
        let taken =
            is_ours && port.carries(vlan) && ![ethernet::VLAN, ethernet::QINQ].contains(&ethertype);
        taken.then_some(Layer2 {
            is_group: dst.is_group(),
            vlan,
            ethertype,
            l3_off,
            longest: port.longest(),
        })
    }
}
