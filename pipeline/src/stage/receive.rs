//! Headers, path, rewrite for that path, and queue key of each frame of a received burst: [`parse`], [`route`] and
//! [`rewrite`] together.
//!
//! Most frames are untagged IPv4 and stay so: they are read in one loop, and routed and rewritten in a second, or in a
//! third where flows choose among several paths (ECMP). All other frames are handled after them, one by one. Law: handling
//! the same frame by [`parse`], [`route`] and [`rewrite`] in turn ends with the same bytes and the same record.

mod next_hop;

use next_hop::{Known, NextHop};

use super::parse::{self, Admitted, IngressPort, hear, is_marked};
use super::route::FlowWords;
use super::{rewrite, route};
use crate::bits::{low16, low32};
use crate::burst::{Places, QueueKey, Record};
use crate::counters::PortCounters;
use crate::drop::DropReason;
use crate::frame::{FrameBuf, MetaFlags};
use crate::parse::common::{self, NO_OCTETS, Untagged};
use crate::route::fib::FibReader;
use crate::route::image::View;
use crate::route::nexthop::UNTAGGED;
use crate::units::{BURST, MAX_PORTS};
use crate::wire::bth::Traits;
use crate::wire::{ethernet, ipv6};

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
    port: &IngressPort,
    (fib, mtus): (&FibReader, &Mtus),
    frames: &mut [B],
    (records, reasons): (&mut [Record; BURST], &mut Reasons),
    counters: &PortCounters,
) -> Received {
    let (bytes, unread) = read(port, frames, records, counters);
    if fib.is_large() {
        let known = records.iter().take(frames.len());
        fib.warm_v4(known.map(|record| low32(record.addresses)));
        if !unread.is_empty() {
            let v6 = unread
                .iter()
                .filter_map(|place| ipv6::network_of(frames.get(place)?.data()));
            fib.warm_v6(v6);
        }
    }
    let mut hops = Hops::new(fib, mtus);
    let (left, keys) = hops.send_on(port, unread, frames, records);
    let mut received = Received {
        bytes,
        gone: Places::NONE,
        queue: keys.only(),
        added: 0,
        removed: 0,
        trimmed: 0,
        unpadded: true,
    };
    if !left.is_empty() {
        let others = Others {
            left,
            unread,
            keys,
            port,
            counters,
        };
        hops.take_others(&others, frames, (records, reasons), &mut received);
    }
    received
}

/// Reads the untagged IPv4 packets of a burst. Returns the bytes of all its frames, and the set of frames that were not read.
#[inline]
fn read<B: FrameBuf>(
    port: &IngressPort,
    frames: &[B],
    records: &mut [Record; BURST],
    counters: &PortCounters,
) -> (u64, Places) {
    let (mut bytes, mut unread, mut octets) = (0, Places::NONE, NO_OCTETS);
    let mut place = 0;
    loop {
        let rest = frames.get(place..).unwrap_or_default();
        let known = records.get_mut(place..).unwrap_or_default();
        let (read, read_bytes) = read_stretch(port, (rest, known), &mut octets, counters);
        place += read;
        bytes += read_bytes;
        // Skip the frame that was not read, and those after it that are of another kind.
        loop {
            let Some(buf) = frames.get(place) else {
                return (bytes, unread);
            };
            bytes += buf.data().len() as u64;
            unread.add(place);
            place += 1;
            if frames
                .get(place)
                .is_none_or(|buf| may_be_untagged_v4(buf.data()))
            {
                break;
            }
        }
    }
}

/// Returns true if the EtherType of a frame is IPv4's, or there is none.
#[inline]
fn may_be_untagged_v4(frame: &[u8]) -> bool {
    let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk::<2>());
    ethertype.is_none_or(|ethertype| u16::from_be_bytes(*ethertype) == ethernet::IPV4)
}

/// Reads untagged IPv4 packets up to the first frame that is none; returns their number and bytes. A loop of its own, so that
/// its variables stay in registers.
#[inline(never)]
fn read_stretch<B: FrameBuf>(
    port: &IngressPort,
    (frames, records): (&[B], &mut [Record]),
    octets: &mut u64,
    counters: &PortCounters,
) -> (usize, u64) {
    let (mut read, mut bytes, mut seen, mut marked) = (0, 0, *octets, 0);
    for (buf, record) in frames.iter().zip(records.iter_mut()) {
        let frame = buf.data();
        let Some(packet) = port.untagged(frame, &mut seen) else {
            break;
        };
        bytes += frame.len() as u64;
        read += 1;
        let known = parse::record(&packet, frame.len());
        // The lowest bit is set only by CE.
        marked |= packet.tos & packet.tos >> 1;
        let traits = hear(&known, packet.upper.syndrome, counters);
        *record = Record {
            traits,
            flags: MetaFlags::of_ecn(packet.tos).of_class(traits),
            ..known
        };
    }
    if marked & 1 != 0 {
        counters
            .roce
            .ce
            .add(records.iter().take(read).map(is_marked).sum());
    }
    *octets = seen;
    (read, bytes)
}

/// Summary of the queue keys of a burst: the bits set in all of them, and the bits set in any. Both are the same if all
/// keys are.
#[derive(Debug, Clone, Copy)]
struct Keys {
    all: u8,
    any: u8,
}

impl Keys {
    #[inline(always)]
    const fn add(&mut self, key: QueueKey) {
        self.all &= key.0;
        self.any |= key.0;
    }

    /// Returns the key, if all are the same.
    fn only(self) -> Option<QueueKey> {
        (self.all == self.any).then_some(QueueKey(self.any))
    }
}

/// Forwarding state of one burst: routes, MTUs, and the next hops looked up so far.
#[derive(Debug)]
struct Hops<'a> {
    fib: &'a FibReader,
    v4: View<'a>,
    mtus: &'a Mtus,
    known: Known,
}

/// Frames of a burst that are left for the second pass.
struct Others<'a> {
    left: Places,
    /// Frames whose headers were not read yet.
    unread: Places,
    /// Queue keys of the frames that are not left.
    keys: Keys,
    port: &'a IngressPort,
    counters: &'a PortCounters,
}

impl<'a> Hops<'a> {
    fn new(fib: &'a FibReader, mtus: &'a Mtus) -> Hops<'a> {
        Hops {
            fib,
            v4: fib.images().v4.view(),
            mtus,
            known: Known::new(),
        }
    }

    /// Routes and rewrites the packets that were read and stay untagged IPv4. Returns the set of frames that are left, and the
    /// queue keys of the others.
    #[inline]
    fn send_on<B: FrameBuf>(
        &mut self,
        port: &IngressPort,
        unread: Places,
        frames: &mut [B],
        records: &mut [Record; BURST],
    ) -> (Places, Keys) {
        let (mut left, mut place) = (unread, 0);
        let mut keys = Keys {
            all: u8::MAX,
            any: 0,
        };
        for place in unread.iter() {
            if let Some(record) = records.get_mut(place) {
                // Too long for any next hop, so the fast path stops at it.
                record.len = u16::MAX;
            }
        }
        loop {
            place = unread.absent_from(place);
            let rest = frames.get_mut(place..).unwrap_or_default();
            let known = records.get_mut(place..).unwrap_or_default();
            place += send_stretch(self.v4, &self.known, port, (rest, known), &mut keys);
            if unread.has(place) {
                continue;
            }
            let Some(record) = records.get(place).filter(|_| place < frames.len()) else {
                return (left, keys);
            };
            if !self.learn(self.v4.lookup_v4(low32(record.addresses))) {
                let rest = frames.get_mut(place..).unwrap_or_default();
                let known = records.get_mut(place..).unwrap_or_default();
                let sent = self.send_by_flow(port, (rest, known), &mut keys);
                if sent == 0 {
                    left.add(place);
                }
                place += sent.max(1);
            }
        }
    }

    /// Looks up the next hop of a group, unless it is cached; returns true if it was not.
    #[inline]
    fn learn(&mut self, group: u32) -> bool {
        let new = self.known.of(group).group != group;
        if new {
            self.known.keep(match self.fib.only(group) {
                Some(path) => NextHop::new(group, path, self.mtus),
                None => NextHop::chosen(group),
            });
        }
        new
    }

    /// Rewrites the next packets of one ECMP group, each for the path that the hash of its flow chooses; returns their
    /// number. Stops at the first packet of another group, and at the first that [`Hops::take_others`] must handle.
    #[inline(never)]
    fn send_by_flow<B: FrameBuf>(
        &self,
        port: &IngressPort,
        (frames, records): (&mut [B], &mut [Record]),
        keys: &mut Keys,
    ) -> usize {
        let (mut sent, seed, mut all) = (0, self.fib.seed(), *keys);
        let of = |record: &Record| self.v4.lookup_v4(low32(record.addresses));
        let group = records.first().map_or(u32::MAX, of);
        for (buf, record) in frames.iter_mut().zip(records) {
            if of(record) != group {
                break;
            }
            let Some(head) = Untagged::of(buf.data_mut()) else {
                break;
            };
            let (addresses, upper) = head.words();
            let flow = || FlowWords::new(addresses, &upper).hash(seed);
            let path = self.fib.resolve(group, flow);
            let hop = NextHop::new(group, path, self.mtus);
            if record.len > hop.longest || rewrite::plain(head, path).is_err() {
                break;
            }
            record.queue = QueueKey::new(path.port(), port.untagged_priority(record.tos));
            all.add(record.queue);
            sent += 1;
        }
        *keys = all;
        sent
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
            let heard = (!others.unread.has(place)).then_some(record.traits);
            let came = buf.data().len();
            let outcome = match others.port.read(buf.data()) {
                Some(read) => self.take(others, buf, (record, heard), &read),
                None => self.take_rare(others, buf, (record, heard)),
            };
            match outcome {
                Ok(trimmed) => {
                    let after = buf.data().len();
                    let whole = after + trimmed;
                    if whole != came || trimmed != 0 {
                        received.resized(came, whole, trimmed);
                    }
                    received.unpadded &= after >= common::SHORTEST;
                    keys.add(record.queue);
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
        received.queue = keys.only();
    }

    /// Handles a frame that only the general parser reads.
    #[inline(never)]
    fn take_rare<B: FrameBuf>(
        &mut self,
        others: &Others<'_>,
        buf: &mut B,
        known: (&mut Record, Option<Traits>),
    ) -> Result<usize, Option<DropReason>> {
        let read = others.port.admit_any(buf.data())?;
        self.take(others, buf, known, &read)
    }

    /// Handles a frame that was read; `heard` are its traits, if they were counted already. Returns the bytes cut off behind
    /// its packet; the error is its drop reason, `None` for MAC control.
    #[inline(always)]
    fn take<B: FrameBuf>(
        &mut self,
        others: &Others<'_>,
        buf: &mut B,
        (known, heard): (&mut Record, Option<Traits>),
        read: &Admitted,
    ) -> Result<usize, Option<DropReason>> {
        let record = &read.record;
        let traits = match heard {
            Some(traits) => traits,
            None => {
                others.counters.roce.ce.add(is_marked(record));
                hear(record, read.syndrome, others.counters)
            }
        };
        let group = match read.dst_v6 {
            None => self.v4.lookup_v4(low32(record.addresses)),
            Some(dst) => route::lookup_v6(self.fib, dst),
        };
        self.learn(group);
        let mut hop = *self.known.of(group);
        if hop.is_chosen {
            let flow = || read.flow(buf.data()).hash(self.fib.seed());
            hop = NextHop::new(group, self.fib.resolve(group, flow), self.mtus);
        }
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
            traits,
            flags: flags.of_class(traits),
            queue: QueueKey::new(hop.path.port(), read.priority),
            ..*record
        };
        Ok(trimmed)
    }
}

/// Sends packets by cached next hops, up to the first that has none or cannot stay as it is; returns the number sent. A loop
/// of its own, so that its variables stay in registers.
#[inline(never)]
fn send_stretch<B: FrameBuf>(
    v4: View<'_>,
    known: &Known,
    port: &IngressPort,
    (frames, records): (&mut [B], &mut [Record]),
    keys: &mut Keys,
) -> usize {
    let (mut sent, mut all) = (0, *keys);
    for (buf, record) in frames.iter_mut().zip(records) {
        let group = v4.lookup_v4(low32(record.addresses));
        let hop = known.of(group);
        // A frame is no shorter than its packet.
        if hop.group != group || record.len > hop.longest {
            break;
        }
        let Some(head) = Untagged::of(buf.data_mut()) else {
            break;
        };
        if rewrite::plain(head, hop.path).is_err() {
            break;
        }
        record.queue = QueueKey::new(hop.path.port(), port.untagged_priority(record.tos));
        all.add(record.queue);
        sent += 1;
    }
    *keys = all;
    sent
}

#[cfg(test)]
#[path = "receive_tests.rs"]
mod tests;
