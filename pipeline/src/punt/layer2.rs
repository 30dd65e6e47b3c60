//! The Ethernet header of a frame that may be for Linux: to whom it is, of which VLAN, and what it carries.

use zerocopy::FromBytes;

use crate::stage::parse::IngressPort;
use crate::units::Mac;
use crate::wire::ethernet::{self, Ethernet, Tag};

/// What the Ethernet header of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer2 {
    /// Broadcast or multicast; else it is to the port's own address.
    pub is_group: bool,
    /// Its VLAN; 0 without a tag, or with one that says a priority only.
    pub vlan: u16,
    /// What it carries.
    pub ethertype: u16,
    /// Where that starts.
    pub l3_off: usize,
}

impl Layer2 {
    /// Reads a frame that came in by `port`; `None`: it is to somebody else, or of a VLAN that the port does not carry.
    #[must_use]
    pub fn read(port: &IngressPort, frame: &[u8]) -> Option<Layer2> {
        let (header, rest) = Ethernet::ref_from_prefix(frame).ok()?;
        let dst = Mac(header.dst);
        if dst != port.mac() && !dst.is_group() {
            return None;
        }
        let (vlan, ethertype, l3_off) = match header.ethertype.get() {
            ethernet::VLAN => {
                let (tag, _) = Tag::ref_from_prefix(rest).ok()?;
                let vlan = ethernet::vlan_id(tag.tci.get());
                let l3_off = ethernet::HEADER_LEN + ethernet::TAG_LEN;
                (vlan, tag.ethertype.get(), l3_off)
            }
            untagged => (0, untagged, ethernet::HEADER_LEN),
        };
        let taken = port.carries(vlan) && ![ethernet::VLAN, ethernet::QINQ].contains(&ethertype);
        taken.then_some(Layer2 {
            is_group: dst.is_group(),
            vlan,
            ethertype,
            l3_off,
        })
    }
}
