//! Stage 1: headers, MAC and VLAN admission, priority. MAC control is consumed here and tells [`crate::pause`].

use arrayvec::ArrayVec;

use super::lane::{Lane, Lanes, Trash, discard};
use crate::classify::Classifier;
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::FrameBuf;
use crate::parse::{Kind, L3, Parsed, parse};
use crate::pause::PortPause;
use crate::route::nexthop::Path;
use crate::units::{BURST, Mac, Nanos};
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

/// Fills `lanes` from `frames`.
#[inline]
pub fn run<B: FrameBuf>(
    intake: &Intake,
    frames: &mut ArrayVec<B, BURST>,
    lanes: &mut Lanes<B>,
    pause: &mut PortPause,
    now: Nanos,
    counters: &PortCounters,
    trash: &mut Trash<B>,
) {
    let mut bytes = 0;
    for frame in frames.iter() {
        frame.prefetch();
    }
    for buf in frames.drain(..) {
        let len = buf.data().len() as u64;
        bytes += len;
        match admit(intake, buf.data()) {
            Ok(parsed) if parsed.kind == Kind::MacControl => {
                counters.consumed.add(1, len);
                pause.receive(buf.data(), now, counters);
                trash.push(buf);
            }
            Ok(parsed) => lanes.push(Lane {
                buf: Some(buf),
                priority: intake.classifier.priority(&parsed),
                parsed,
                path: Path::NONE,
            }),
            Err(reason) => discard(buf, reason, counters, trash),
        }
    }
    counters.rx.bytes.add(bytes);
}

#[inline]
fn admit(intake: &Intake, frame: &[u8]) -> Result<Parsed, Drop> {
    let parsed = parse(frame)?;
    if parsed.kind == Kind::MacControl {
        return Ok(parsed);
    }
    let dst = frame
        .first_chunk()
        .map_or_else(Mac::default, |dst| Mac(*dst));
    if dst != intake.mac {
        return Err(if dst.is_group() {
            Drop::Multicast
        } else {
            Drop::NotForUs
        });
    }
    if parsed.ip_len > intake.mtu {
        return Err(Drop::Oversize);
    }
    match parsed.tci.map(ethernet::vlan_id) {
        // A priority tag (VLAN id 0) is as untagged.
        None | Some(0) if parsed.tags < 2 => Ok(parsed),
        Some(id) if parsed.tags == 1 && intake.vlans.contains(&id) => Ok(parsed),
        _ => Err(Drop::VlanUnknown),
    }
}

/// Whether the frame is IPv6.
#[must_use]
pub fn is_v6(parsed: &Parsed) -> bool {
    parsed.kind == Kind::Routed(L3::V6)
}
