//! Punt and inject in the packet path: treatment of frames that are not forwarded, and of frames from Linux.
//!
//! No forwarded frame reaches this code. Law: a frame that comes here is counted once, as punted or as dropped; an ICMP error
//! made of it is a frame of its own, counted as originated.

use std::net::IpAddr;

use zerocopy::FromBytes;

use super::capture_points::{self, StoppedFrame};
use super::{Datapath, of_chain};
use crate::bits::low16;
use crate::buffer::GroupId;
use crate::burst::{QueueKey, Record, Run};
use crate::counters::PuntCounters;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, MetaFlags};
use crate::parse::{Kind, Parsed, parse};
use crate::punt::classify::classify;
use crate::punt::icmp::{self, IcmpError};
use crate::punt::layer2::Layer2;
use crate::punt::{Ask, Place, Punt, PuntCandidate, PuntPort};
use crate::route::nexthop::{Kind as PathKind, Path, UNTAGGED};
use crate::stage::receive::mtu_of;
use crate::stage::rewrite;
use crate::stage::route::flow_hash;
use crate::tap::FlowTap;
use crate::units::{Nanos, PortId, Priority};
use crate::wire::ethernet;
use crate::wire::ipv6::Ipv6;

/// Greatest depth, in wire bytes, of the queue that Linux's BFD and routing-protocol frames enter.
const CONTROL_DEPTH: u64 = 256 << 10;

impl<B: FrameBuf, T: FlowTap> Datapath<B, T> {
    /// Attaches punt and inject, before the first frame.
    #[must_use]
    pub fn with_punt(mut self, punt: Punt<B>) -> Datapath<B, T> {
        self.attach_punt(punt);
        self
    }

    /// Attaches punt and inject to an existing path.
    pub fn attach_punt(&mut self, punt: Punt<B>) {
        self.punt = Some(Box::new(punt));
    }

    /// Replaces Linux's interfaces and addresses on a port.
    #[cold]
    pub fn set_punt_port(&mut self, port: PortId, interfaces: PuntPort) {
        if let Some(punt) = &mut self.punt {
            self.ingress[port].set_other_macs(&interfaces.macs);
            punt.set_port(port, interfaces);
        }
    }

    /// Queues a frame that Linux sends by `at`, with the tag of its VLAN. `control` frames, of BFD or of protocols that
    /// others' routes and neighbours depend on, go ahead of the data. Returns false if it is lost, which is counted.
    #[cold]
    pub fn inject(&mut self, at: Place, control: bool, mut buf: B, now: Nanos) -> bool {
        let Some(punt) = &self.punt else {
            return false;
        };
        let priority = if control {
            punt.control()
        } else {
            self.priority_of(at.port, buf.data(), punt.ordinary())
        };
        let len = buf.data().len() as u64;
        let longest = self.mtus.get(at.port.index()).copied().unwrap_or(0);
        let fits = len <= u64::from(longest) + ethernet::HEADER_LEN as u64
            && self.depth(at.port, priority) + len <= self.depth_for(control);
        let group = if control {
            GroupId::LINUX
        } else {
            GroupId::NONE
        };
        let to = (at.port, priority);
        let queued = fits
            && tag(&mut buf, at.vlan, priority)
            && self.originate_as(group, to, buf, now).is_ok();
        let counters = &self.counters.punt;
        if !queued {
            counters.inject_lost.add(1);
        } else if control {
            counters.injected_control.add(1, len);
        } else {
            counters.injected.add(1, len);
        }
        queued
    }

    /// Returns the greatest depth in wire bytes of a queue that a frame from Linux may enter.
    const fn depth_for(&self, control: bool) -> u64 {
        if control {
            CONTROL_DEPTH
        } else {
            // This is as a queue with alpha 1 while nothing waits elsewhere: never what the data depends on.
            self.egress_side.buffer.free().bytes / 2
        }
    }

    /// Returns the queue of a non-control frame from Linux: that of its own priority, unless that is lossless.
    fn priority_of(&self, port: PortId, frame: &[u8], ordinary: Priority) -> Priority {
        let own = match parse(frame) {
            Ok(parsed) if parsed.kind != Kind::MacControl => {
                self.ingress[port].classifier().priority(&parsed)
            }
            _ => ordinary,
        };
        if self.egress_side.ports[port].queue_config(own).lossless {
            ordinary
        } else {
            own
        }
    }

    /// Handles the frames of a burst that are not forwarded: punts, requests resolution, answers with an ICMP error, or drops.
    #[cold]
    #[inline(never)]
    pub(super) fn handle_punt_candidates(&mut self, port: PortId, now: Nanos) {
        let Some(mut punt) = self.punt.take() else {
            return;
        };
        let counters = std::sync::Arc::clone(&self.counters);
        for candidate in std::mem::take(&mut punt.aside) {
            let dropped = self.handle_one(&mut punt, (port, candidate), now, &counters.punt);
            if let Some(buf) = dropped {
                let _ = self.trash.try_push(buf);
            }
        }
        self.punt = Some(punt);
    }

    /// Handles and counts one frame. Returns the buffer, if nothing was made of it.
    fn handle_one(
        &mut self,
        punt: &mut Punt<B>,
        (port, candidate): (PortId, PuntCandidate<B>),
        now: Nanos,
        counters: &PuntCounters,
    ) -> Option<B> {
        let PuntCandidate { buf, reason } = candidate;
        let bytes = buf.data().len() as u64;
        let decision = match reason {
            DropReason::NotIp
            | DropReason::Multicast
            | DropReason::Martian
            | DropReason::LocalUnserved => self.punt_one(punt, (port, buf.data()), reason, now),
            DropReason::NoNeighbor => {
                if let Some(ask) = self.ask_about(buf.data()) {
                    punt.ask(ask, now, counters);
                }
                Err(DropReason::Unresolved)
            }
            // It would have gone no further in any case, and the TTL is tested first (RFC 1812 section 5.3.1).
            DropReason::MtuExceeded if is_last_hop(buf.data()) => Err(DropReason::TtlExpired),
            _ => Err(of_chain(reason, &buf)),
        };
        capture_points::stopped(
            &mut self.capture,
            StoppedFrame::classified(decision),
            (&buf, port),
            now,
        );
        match decision {
            Ok(()) => {
                self.counters.of(port).punted.add(1, bytes);
                Some(buf)
            }
            Err(reason) => {
                self.counters.of(port).drop(reason, bytes);
                self.tell(punt, (port, buf), reason, now)
            }
        }
    }

    /// Gives Linux a frame if it is for Linux.
    fn punt_one(
        &self,
        punt: &mut Punt<B>,
        (port, frame): (PortId, &[u8]),
        reason: DropReason,
        now: Nanos,
    ) -> Result<(), DropReason> {
        let layer2 = Layer2::read(&self.ingress[port], frame).ok_or(reason)?;
        let interfaces = punt.port(port).ok_or(reason)?;
        let is_local = |address| {
            let path = self.fib.resolve(self.fib.group(address), || 0);
            path.kind() == PathKind::Local
        };
        let found = classify(&layer2, frame, interfaces, is_local, reason)?;
        punt.give((port, &layer2), frame, found, now, &self.counters.punt)
    }

    /// Returns the request to resolve a packet's next hop.
    fn ask_about(&self, frame: &[u8]) -> Option<Ask> {
        let (parsed, destination) = ends(frame)?;
        let (path, _) = self.path_to(destination, || self.hash(frame, &parsed));
        Some(Ask {
            port: path.port(),
            vlan: path.vlan(),
            destination,
        })
    }

    fn path_to(&self, address: IpAddr, hash: impl FnOnce() -> u32) -> (Path, u16) {
        self.fib.resolve_with_mtu(self.fib.group(address), hash)
    }

    pub(super) fn hash(&self, frame: &[u8], parsed: &Parsed) -> u32 {
        flow_hash(frame, parsed, self.fib.seed())
    }

    /// Makes an ICMP error to the sender of a packet that was dropped for `reason`, if one may be sent: it goes with the runs
    /// of the burst. Returns the buffer if nothing is sent.
    fn tell(
        &mut self,
        punt: &mut Punt<B>,
        (port, mut buf): (PortId, B),
        reason: DropReason,
        now: Nanos,
    ) -> Option<B> {
        let Some(error) = IcmpError::about(reason, 0) else {
            return Some(buf);
        };
        let Some(answer) = self.answer(punt, (port, buf.data()), reason) else {
            self.counters.punt.icmp_unfit.add(1);
            return Some(buf);
        };
        if !punt.may_tell(error, (port, answer.ends.1), now) {
            self.counters.punt.icmp_over_rate.add(1);
            return Some(buf);
        }
        let Some(record) = answer.write(&mut buf, punt.ordinary()) else {
            self.counters.punt.icmp_unfit.add(1);
            return Some(buf);
        };
        let counters = &self.counters.punt;
        match error {
            IcmpError::TimeExceeded => counters.time_exceeded.add(1),
            IcmpError::TooBig(_) => counters.too_big.add(1),
            _ => counters.unreachable.add(1),
        }
        let egress = answer.back.port();
        let originated = &self.counters.of(egress).originated;
        originated.add(1, buf.data().len() as u64);
        let ingress_port = &self.ingress[port];
        let mut run: Box<Run<B>> = self.egress_side.spare_runs.take();
        run.head = record.queue.head(ingress_port.worker, ingress_port.port);
        run.push(buf, &record);
        // Runs are walked from the last to the first, so errors to one sender keep their order. There are no more runs than
        // received frames.
        let _ = self.runs.try_insert(0, run);
        None
    }

    /// Returns the ICMP error to the sender of a packet, and its path; `None` if none is sent.
    fn answer(
        &self,
        punt: &Punt<B>,
        (port, frame): (PortId, &[u8]),
        reason: DropReason,
    ) -> Option<Answer> {
        let (parsed, destination) = ends(frame)?;
        let (l3_off, len) = (usize::from(parsed.l3_off), usize::from(parsed.ip_len));
        let sender = icmp::sender(frame.get(l3_off..l3_off + len)?)?;
        let back = self.path_to(sender, || self.hash(frame, &parsed));
        if !back.0.forwards() {
            return None;
        }
        let vlan = parsed.tci.map_or(0, ethernet::vlan_id);
        // Routers pass on no packet from a link-local address, so it serves where the error leaves on the link of its packet
        // only (RFC 4443 section 2.2, RFC 4291 section 2.5.6).
        let same_link = (back.0.port(), back.0.vlan()) == (port, vlan);
        let link_local = || punt.link_local(port, vlan).filter(|_| same_link);
        let source = punt.source(port, vlan, sender).or_else(link_local)?;
        let onward = self.path_to(destination, || self.hash(frame, &parsed));
        let mtu = |path: (Path, u16)| mtu_of(path, &self.mtus);
        Some(Answer {
            error: IcmpError::about(reason, mtu(onward))?,
            packet: (l3_off, len),
            ends: (source, sender),
            back: back.0,
            mtu: mtu(back),
        })
    }
}

/// Description of an ICMP error to be written.
struct Answer {
    error: IcmpError,
    /// Offset and length of the packet it is about.
    packet: (usize, usize),
    /// Source and destination of the error.
    ends: (IpAddr, IpAddr),
    /// Path of the error.
    back: Path,
    /// Largest IP packet on that path in bytes.
    mtu: u16,
}

impl Answer {
    /// Writes the error over the frame it is about.
    fn write<B: FrameBuf>(&self, buf: &mut B, priority: Priority) -> Option<Record> {
        let (source, sender) = self.ends;
        if !icmp::make(buf, self.packet, self.error, (source, self.mtu)) {
            return None;
        }
        let (is_v6, addresses) = match (source, sender) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let addresses = u64::from(src.to_bits()) << 32 | u64::from(dst.to_bits());
                (false, addresses)
            }
            _ => (true, 0),
        };
        let tag = rewrite::tag_len(self.back);
        if !buf.prepend(ethernet::HEADER_LEN + tag) {
            return None;
        }
        rewrite::header(buf.data_mut(), self.back, priority, is_v6);
        let tagged = if tag == 0 { 0 } else { MetaFlags::TAGGED };
        let family = if is_v6 { MetaFlags::IPV6 } else { 0 };
        Some(Record {
            addresses,
            len: low16(buf.data().len()),
            tos: icmp::TOS,
            flags: MetaFlags(tagged | family),
            queue: QueueKey::new(self.back.port(), priority),
            ..Record::EMPTY
        })
    }
}

/// Returns true if an IP packet has no hops left.
fn is_last_hop(frame: &[u8]) -> bool {
    let Ok(parsed) = parse(frame) else {
        return false;
    };
    // Offset of TTL or hop limit.
    let at = usize::from(parsed.l3_off) + if parsed.is_v6() { 7 } else { 8 };
    frame.get(at).is_some_and(|hops| *hops <= 1)
}

/// Returns a packet's headers and its destination.
pub(super) fn ends(frame: &[u8]) -> Option<(Parsed, IpAddr)> {
    let parsed = parse(frame).ok()?;
    if parsed.kind == Kind::MacControl {
        return None;
    }
    if !parsed.is_v6() {
        let destination = std::net::Ipv4Addr::from_bits(parsed.dst_v4());
        return Some((parsed, destination.into()));
    }
    let packet = frame.get(usize::from(parsed.l3_off)..)?;
    let (header, _) = Ipv6::ref_from_prefix(packet).ok()?;
    Some((parsed, std::net::Ipv6Addr::from(header.dst).into()))
}

/// Adds the tag of a VLAN to a frame without one; returns false if the buffer has no room.
fn tag<B: FrameBuf>(buf: &mut B, vlan: u16, priority: Priority) -> bool {
    const MACS: usize = ethernet::HEADER_LEN - 2;
    if vlan == UNTAGGED {
        return true;
    }
    if !buf.prepend(ethernet::TAG_LEN) {
        return false;
    }
    let frame = buf.data_mut();
    if frame.len() < MACS + ethernet::TAG_LEN {
        return false;
    }
    frame.copy_within(ethernet::TAG_LEN..MACS + ethernet::TAG_LEN, 0);
    let tci = u32::from(priority.get()) << 13 | u32::from(vlan & 0x0fff);
    let tag = (u32::from(ethernet::VLAN) << 16 | tci).to_be_bytes();
    match frame.get_mut(MACS..).and_then(<[u8]>::first_chunk_mut) {
        Some(place) => {
            *place = tag;
            true
        }
        None => false,
    }
}
