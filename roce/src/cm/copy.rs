//! Copy of a QP1 packet on its way from a worker to the control core, whole from its IP header on.

use npcc_pipeline::parse::{Kind, L3};
use npcc_pipeline::tap::Sighting;
use npcc_pipeline::units::{Nanos, PortId};

use super::message::Message;
use crate::key::FlowKey;
use npcc_pipeline::icrc::icrc;

/// Octets kept of a packet: an IPv6 packet with a connection manager's message and 8 to spare. Longer ones are not looked at.
const ROOM: usize = 336;
const UDP: usize = 8;
const ICRC: usize = 4;

/// A copy of a QP1 packet on its way from a worker to the control core.
#[derive(Debug, Clone, Copy)]
pub struct CmCopy {
    /// Addresses of the packet; the queue pair is 1.
    pub key: FlowKey,
    /// Time of enqueueing.
    pub time: Nanos,
    /// Ingress port.
    pub ingress: PortId,
    v6: bool,
    l4_off: u8,
    len: u16,
    bytes: [u8; ROOM],
}

impl CmCopy {
    /// Copies a sighting; `None` when it does not fit.
    #[must_use]
    pub fn of(sighting: &Sighting<'_>, key: FlowKey) -> Option<CmCopy> {
        let start = usize::from(sighting.parsed.l3_off);
        let end = start + usize::from(sighting.parsed.ip_len);
        let packet = sighting.data.get(start..end)?;
        let mut bytes = [0; ROOM];
        bytes.get_mut(..packet.len())?.copy_from_slice(packet);
        Some(CmCopy {
            key,
            time: sighting.now,
            ingress: sighting.meta.group.ingress(),
            v6: sighting.parsed.kind == Kind::Routed(L3::V6),
            l4_off: u8::try_from(usize::from(sighting.parsed.l4_off).checked_sub(start)?).ok()?,
            len: u16::try_from(packet.len()).ok()?,
            bytes,
        })
    }

    /// Parses the message; `None` if the packet carries none.
    #[must_use]
    pub fn message(&self) -> Option<Message> {
        let packet = self.bytes.get(..usize::from(self.len))?;
        Message::of(packet.get(usize::from(self.l4_off) + UDP..)?)
    }

    /// Returns true if the ICRC is right.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let family = if self.v6 { L3::V6 } else { L3::V4 };
        let packet = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        let Some((covered, carried)) = packet.split_last_chunk::<ICRC>() else {
            return false;
        };
        icrc(family, usize::from(self.l4_off), covered) == Some(*carried)
    }
}
