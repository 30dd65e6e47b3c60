//! Headers, path, rewrite for that path, and queue key of each frame of a received burst: [`parse`](super::parse), [`route`] and
//! [`rewrite`] together.
//!
//! Most frames are IPv4 or IPv6 behind one tag or none, and keep the length of their header: they are read in one loop
//! ([`super::heads`]), and routed and rewritten in a second, or in a third where flows choose among several paths (ECMP). Each
//! kind of frame has its own instance of these loops. All other frames are handled after them, one by one. Law: handling the
//! same frame by [`parse`](super::parse), [`route`] and [`rewrite`] in turn ends with the same bytes and the same record.
//!
//! One file of more than 400 lines: its loops are instances of the same parts, which are inlined into each.

mod half;
mod next_hop;

use half::Half;
pub(crate) use next_hop::mtu_of;
use next_hop::{ByFlow, ByGroup, ByOne, FindHop, HopKey, Known};
use zerocopy::FromBytes;

use super::heads::{self, VectorReader};
use super::kinds::{FrameKind, Kinds, l3_off, network_of};
use super::parse::{Admitted, IngressPort, hear, is_marked};
use super::route::FlowWords;
use super::{rewrite, route};
use crate::bits::{Octets, low16, low32};
use crate::burst::{Places, QueueKey, Record};
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, MetaFlags};
use crate::parse::common;
use crate::route::fib::FibReader;
use crate::route::image::View;
use crate::route::nexthop::UNTAGGED;
use crate::units::{BURST, MAX_PORTS, Priority};
use crate::wire::bth::Traits;

/// Largest IP packet of each port in bytes, by port index.
pub type Mtus = [u16; MAX_PORTS];

/// Drop reasons of the frames of a burst that go no further, by position; `None` for MAC control.
pub type Reasons = [Option<DropReason>; BURST];

/// Outcome of a received burst.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Bytes of all frames as they arrived.
    pub bytes: u64,
    /// Frames that go no further.
    pub gone: Places,
    /// Queue of all other frames, if they have the same.
    pub queue: Option<QueueKey>,
    /// Bytes of tags added.
    pub added: u64,
    /// Bytes of tags removed, except where padding replaced them.
    pub removed: u64,
    /// Bytes cut off behind packets.
    pub trimmed: u64,
    /// True if no frame is shorter than Ethernet pads to.
    pub unpadded: bool,
}

impl Received {
    /// Accounts for a frame that arrived with `came` bytes and had `whole` after retagging, of which `trimmed` were cut off.
    #[inline]
    const fn resized(&mut self, came: usize, whole: usize, trimmed: usize) {
        self.added += whole.saturating_sub(came) as u64;
        self.removed += came.saturating_sub(whole) as u64;
        self.trimmed += trimmed as u64;
    }
}

/// Receives a burst: fills `records`, and `reasons` of the frames that go no further, and rewrites the others.
#[inline]
pub fn run<B: FrameBuf>(
    (port, vectors): (&IngressPort, Option<&dyn VectorReader<B>>),
    (fib, mtus): (&FibReader, &Mtus),
    frames: &mut [B],
    (records, reasons): (&mut [Record; BURST], &mut Reasons),
    counters: &PortCounters,
) -> Received {
    let mut kinds = Kinds::new();
    let bytes = heads::read(
        (port, vectors),
        frames,
        (&mut *records, &mut kinds),
        counters,
    );
    if fib.is_large() {
        let known = records.iter().take(frames.len());
        let v4 = known.filter(|record| !record.flags.has(MetaFlags::IPV6));
        fib.warm_v4(v4.map(|record| low32(record.addresses)));
        if !kinds.are_v4() {
            fib.warm_v6(frames.iter().filter_map(|buf| network_of(buf.data())));
        }
    }
    let mut hops = Hops::new(fib, mtus);
    let (left, keys) = hops.forward_burst(port, &kinds, frames, records);
    let mut received = Received {
        bytes,
        gone: Places::NONE,
        queue: keys.only(u8::MAX).map(QueueKey),
        added: 0,
        removed: 0,
        trimmed: 0,
        unpadded: true,
    };
    if !left.is_empty() {
        let others = Others {
            left,
            unread: kinds.unread,
            keys,
            port,
            counters,
        };
        hops.take_others(&others, frames, (records, reasons), &mut received);
    }
    received
}

/// Forwarding state of one burst: routes, MTUs, and the next hops looked up so far.
#[derive(Debug)]
struct Hops<'a> {
    fib: &'a FibReader,
    v4: View<'a>,
    known: Known<'a>,
    half: Half,
}

/// Frames of a burst that are left for the second pass.
struct Others<'a> {
    left: Places,
    /// Frames whose headers were not read yet.
    unread: Places,
    /// Queue keys of the frames that are not left.
    keys: Octets,
    port: &'a IngressPort,
    counters: &'a PortCounters,
}

impl Others<'_> {
    /// Counts what a frame says that was not read before; `known` are its traits if it was. Returns it with its traits complete.
    #[inline(always)]
    fn counted(&self, mut read: Admitted, known: Option<Traits>) -> Admitted {
        read.record.traits = known.unwrap_or_else(|| {
            self.counters.roce.ce.add(is_marked(&read.record));
            hear(&read.record, read.syndrome, self.counters)
        });
        read
    }
}

impl<'a> Hops<'a> {
    fn new(fib: &'a FibReader, mtus: &'a Mtus) -> Hops<'a> {
        Hops {
            fib,
            v4: fib.images().v4.view(),
            known: Known::new(fib, mtus),
            half: Half::NONE,
        }
    }

    /// Routes and rewrites the packets that were read and keep the length of their header. Returns the set of frames that are
    /// left, and the queue keys of the others.
    #[inline]
    fn forward_burst<B: FrameBuf>(
        &mut self,
        port: &IngressPort,
        kinds: &Kinds,
        frames: &mut [B],
        records: &mut [Record; BURST],
    ) -> (Places, Octets) {
        let mut left = kinds.unread;
        let mut keys = Octets::NONE;
        for &(kind, first, after) in &kinds.stretches {
            let places = usize::from(first)..usize::from(after);
            let (Some(frames), Some(records)) =
                (frames.get_mut(places.clone()), records.get_mut(places))
            else {
                break;
            };
            let mut stretch = Stretch {
                port,
                first: first.into(),
                frames,
                records,
                tos: kinds.tos.only(DSCP),
            };
            let sums = (&mut left, &mut keys);
            match kind {
                FrameKind::V4 => self.forward_stretch::<false, false, B>(&mut stretch, sums),
                FrameKind::TaggedV4 => self.forward_stretch::<true, false, B>(&mut stretch, sums),
                FrameKind::V6 => self.forward_stretch::<false, true, B>(&mut stretch, sums),
                FrameKind::TaggedV6 => self.forward_stretch::<true, true, B>(&mut stretch, sums),
            }
        }
        (left, keys)
    }

    /// Routes and rewrites the packets of a stretch; adds those that are left to the set, and the keys of the others.
    #[inline(never)]
    fn forward_stretch<const TAGGED: bool, const V6: bool, B: FrameBuf>(
        &mut self,
        stretch: &mut Stretch<'_, B>,
        (left, keys): (&mut Places, &mut Octets),
    ) {
        let port = stretch.port;
        match stretch.tos {
            // A tag's PCP may decide too.
            Some(tos) if !TAGGED => {
                let one = port.priority(None, tos);
                self.forward_uniform::<TAGGED, V6, true, B>(move |_, _| one, stretch, (left, keys));
            }
            _ => {
                let of_each = |tci, tos| port.priority(tci, tos);
                self.forward_uniform::<TAGGED, V6, false, B>(of_each, stretch, (left, keys));
            }
        }
    }

    /// Does so, where `priority` returns that of a packet by the tag control word of its tag, if it has one, and its TOS. `ONE`: all
    /// have the same.
    #[inline(always)]
    fn forward_uniform<const TAGGED: bool, const V6: bool, const ONE: bool, B: FrameBuf>(
        &mut self,
        priority: impl Fn(Option<u16>, u8) -> Priority + Copy,
        stretch: &mut Stretch<'_, B>,
        (left, keys): (&mut Places, &mut Octets),
    ) {
        let (mut done, mut by_one) = (0, true);
        while let (Some(buf), Some(record)) = (stretch.frames.get(done), stretch.records.get(done))
        {
            let mut half = self.half;
            let group = group_of::<TAGGED, V6>((self.fib, self.v4), &mut half, buf.data(), record);
            let all = (&mut *stretch, done, &mut *keys);
            let rewritten = match self.fib.choice(group) {
                Some(choice) => {
                    let by = ByFlow { group, choice };
                    self.rewrite_prefix::<TAGGED, V6, ONE, _, B>((by, priority), all)
                }
                None if by_one => {
                    let by = ByOne(*self.known.of(HopKey::of_group(group)));
                    self.rewrite_prefix::<TAGGED, V6, ONE, _, B>((by, priority), all)
                }
                None => self.rewrite_prefix::<TAGGED, V6, ONE, _, B>((ByGroup, priority), all),
            };
            by_one = rewritten >= FEW;
            if rewritten == 0 {
                left.add(stretch.first + done);
            }
            done += rewritten.max(1);
        }
    }

    /// Rewrites packets of a stretch from `done` on, up to the first for which `by` finds no next hop or whose header does not keep
    /// its length; returns their number. `ONE`: all have one priority. A loop of its own, so that its variables stay in registers.
    #[inline(never)]
    fn rewrite_prefix<
        const TAGGED: bool,
        const V6: bool,
        const ONE: bool,
        H: FindHop,
        B: FrameBuf,
    >(
        &mut self,
        (by, priority): (H, impl Fn(Option<u16>, u8) -> Priority),
        (stretch, done, keys): (&mut Stretch<'_, B>, usize, &mut Octets),
    ) -> usize {
        let (mut rewritten, mut all, mut half) = (0, *keys, self.half);
        let (fib, v4, known) = (self.fib, self.v4, &mut self.known);
        let seed = fib.seed();
        for (buf, record) in stretch.rest(done) {
            let frame = buf.data_mut();
            let group = group_of::<TAGGED, V6>((fib, v4), &mut half, frame, record);
            let flow = || flow_of::<TAGGED, V6>(frame, record).hash(seed);
            let Some(hop) = by.find(known, group, flow) else {
                break;
            };
            if record.len > hop.longest::<TAGGED>() {
                break;
            }
            let find = |tci| priority(tci, record.tos);
            let Some(priority) = rewrite::in_place::<TAGGED, V6>(frame, hop.path, find) else {
                break;
            };
            record.queue = hop.queue(priority);
            if !(H::IS_ONE && ONE) {
                all.add(record.queue.0);
            }
            rewritten += 1;
        }
        if rewritten > 0
            && let Some(first) = stretch.records.get(done)
        {
            all.add(first.queue.0);
        }
        (*keys, self.half) = (all, half);
        rewritten
    }

    /// Handles the frames that are left, of any kind.
    #[inline(never)]
    fn take_others<B: FrameBuf>(
        &mut self,
        others: &Others<'_>,
        frames: &mut [B],
        (records, reasons): (&mut [Record; BURST], &mut Reasons),
        received: &mut Received,
    ) {
        let mut keys = others.keys;
        for place in others.left.iter() {
            let (Some(buf), Some(record)) = (frames.get_mut(place), records.get_mut(place)) else {
                break;
            };
            let came = buf.data().len();
            let known = (!others.unread.has(place)).then_some(record.traits);
            let outcome = match others.port.read(buf.data()) {
                Some(read) => self.forward(buf, record, others.counted(read, known)),
                None => self.forward_rare(others, buf, record, known),
            };
            match outcome {
                Ok(trimmed) => {
                    let after = buf.data().len();
                    let whole = after + trimmed;
                    if whole != came || trimmed != 0 {
                        received.resized(came, whole, trimmed);
                    }
                    received.unpadded &= after >= common::SHORTEST;
                    keys.add(record.queue.0);
                }
                Err(reason) => {
                    received.gone.add(place);
                    if let Some(reported) = reasons.get_mut(place) {
                        *reported = reason;
                    }
                }
            }
        }
        others.counters.tag_bytes_added.add(received.added);
        others.counters.tag_bytes_removed.add(received.removed);
        others.counters.trimmed_bytes.add(received.trimmed);
        received.queue = keys.only(u8::MAX).map(QueueKey);
    }

    /// Forwards a frame that only the general parser reads.
    #[inline(never)]
    fn forward_rare<B: FrameBuf>(
        &mut self,
        others: &Others<'_>,
        buf: &mut B,
        record: &mut Record,
        known: Option<Traits>,
    ) -> Result<usize, Option<DropReason>> {
        let read = others.port.admit_any(buf.data())?;
        self.forward(buf, record, others.counted(read, known))
    }

    /// Routes and rewrites a frame that was read, and makes its record. Returns the bytes cut off behind its packet; the error
    /// is its drop reason, `None` for MAC control.
    #[inline(always)]
    fn forward<B: FrameBuf>(
        &mut self,
        buf: &mut B,
        known: &mut Record,
        read: Admitted,
    ) -> Result<usize, Option<DropReason>> {
        let record = &read.record;
        let group = match read.dst_v6 {
            None => self.v4.lookup_v4(low32(record.addresses)),
            Some(dst) => self.half.group_of(self.fib, dst),
        };
        let key = match self.fib.choice(group) {
            Some(choice) => HopKey::of_path(choice.of(read.flow(buf.data()).hash(self.fib.seed()))),
            None => HopKey::of_group(group),
        };
        let hop = *self.known.of(key);
        if !hop.path.forwards() {
            return Err(Some(route::reason(hop.path.kind())));
        }
        if read.ip_len > hop.mtu {
            return Err(Some(DropReason::MtuExceeded));
        }
        let trimmed = rewrite::any(buf, read.packet(), hop.path, read.priority)?;
        let tag = if hop.path.vlan() == UNTAGGED {
            0
        } else {
            MetaFlags::TAGGED
        };
        let flags = MetaFlags(record.flags.0 & !MetaFlags::TAGGED | tag);
        *known = Record {
            len: low16(buf.data().len()),
            flags: flags.of_class(record.traits),
            queue: QueueKey::new(hop.path.port(), read.priority),
            ..*record
        };
        Ok(trimmed)
    }
}

/// Bits of the DSCP in [`Record::tos`].
const DSCP: u8 = 0xfc;

/// Number of packets to one next hop, one after the other, below which the next hop of each is looked up in the cache.
const FEW: usize = 8;

/// Packets of one kind that follow one another in a burst, with their records.
struct Stretch<'a, B> {
    port: &'a IngressPort,
    /// Position of the first in the burst.
    first: usize,
    /// DSCP of all of them, as in [`Record::tos`], if it is the same.
    tos: Option<u8>,
    frames: &'a mut [B],
    records: &'a mut [Record],
}

impl<B> Stretch<'_, B> {
    /// Iterates over the packets from `done` on.
    #[inline(always)]
    fn rest(&mut self, done: usize) -> impl Iterator<Item = (&mut B, &mut Record)> {
        let frames = self.frames.get_mut(done..).unwrap_or_default();
        let records = self.records.get_mut(done..).unwrap_or_default();
        frames.iter_mut().zip(records)
    }
}

/// Returns the next-hop group of a packet's destination.
#[inline(always)]
fn group_of<const TAGGED: bool, const V6: bool>(
    (fib, v4): (&FibReader, View<'_>),
    half: &mut Half,
    frame: &[u8],
    record: &Record,
) -> u32 {
    if !V6 {
        return v4.lookup_v4(low32(record.addresses));
    }
    let packet = frame.get(l3_off::<TAGGED>()..).unwrap_or_default();
    common::V6::ref_from_prefix(packet).map_or(0, |(head, _)| half.group_of(fib, head.dst()))
}

/// Returns the flow key of a packet that was read: that of [`FlowWords::of`].
#[inline(always)]
fn flow_of<const TAGGED: bool, const V6: bool>(frame: &[u8], record: &Record) -> FlowWords {
    let packet = frame.get(l3_off::<TAGGED>()..).unwrap_or_default();
    if V6 {
        common::V6::ref_from_prefix(packet).map_or_else(
            |_| FlowWords::default(),
            |(head, _)| {
                let addresses = route::fold_v6(head.src(), head.dst());
                FlowWords::of_record(addresses, record, || head.words())
            },
        )
    } else {
        common::V4::ref_from_prefix(packet).map_or_else(
            |_| FlowWords::default(),
            |(head, _)| FlowWords::of_record(record.addresses, record, || head.words()),
        )
    }
}

#[cfg(test)]
#[path = "receive_tests.rs"]
mod tests;
