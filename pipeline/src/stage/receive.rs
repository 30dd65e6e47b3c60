//! Stages 1, 2 and 4 in one look at each frame: what it is, its path, the frame as that path sends it, and its queue.
//!
//! Most frames are untagged IPv4 and stay so: they are read in one loop, routed and rewritten in a second. Each other frame is
//! taken after them, by itself. Law: the other way of the same frame, [`parse`](super::parse), [`route`] and [`rewrite`] one
//! after the other, ends with the same bytes and the same record.

use super::parse::{self, Admitted, IngressPort, hear, is_marked};
use super::route::FlowWords;
use super::{rewrite, route};
use crate::bits::{low16, low32};
use crate::burst::{Places, QueueKey, Record};
use crate::counters::PortCounters;
use crate::drop::Drop;
use crate::frame::{FrameBuf, MetaFlags};
use crate::parse::common::{self, NO_OCTETS, Untagged};
use crate::route::fib::FibReader;
use crate::route::image::View;
use crate::route::nexthop::{Path, UNTAGGED};
use crate::units::{BURST, MAX_PORTS};
use crate::wire::ethernet;

/// Largest IP packet of each port, by its index.
pub type Mtus = [u16; MAX_PORTS];

/// Why frames of a burst go no further, by place; none for MAC control.
pub type Reasons = [Option<Drop>; BURST];

/// What became of a burst.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Bytes of all frames as they came.
    pub bytes: u64,
    /// Frames that go no further.
    pub gone: Places,
    /// The queue of all the others, if it is one.
    pub queue: Option<QueueKey>,
    /// No frame changed its length, and none is shorter than Ethernet pads to.
    pub as_it_came: bool,
}

/// Takes a burst in: fills `records`, and `reasons` of the frames that go no further, and rewrites the others. Tags put on and
/// taken off are counted.
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
    }
    let mut hops = Hops {
        fib,
        v4: fib.images().v4.view(),
        mtus,
        last: NextHop::new(u32::MAX, Path::NONE, mtus),
    };
    let (left, mut keys) = hops.send_on(port, unread, frames, records);
    let mut received = Received {
        bytes,
        gone: Places::NONE,
        queue: None,
        as_it_came: true,
    };
    for place in left.iter() {
        let (Some(buf), Some(record)) = (frames.get_mut(place), records.get_mut(place)) else {
            break;
        };
        let heard = !unread.has(place);
        match hops.take_any(port, buf, (record, heard), counters) {
            Ok(as_it_came) => {
                keys.add(record.queue);
                received.as_it_came &= as_it_came;
            }
            Err(reason) => {
                received.gone.add(place);
                if let Some(told) = reasons.get_mut(place) {
                    *told = reason;
                }
            }
        }
    }
    received.queue = keys.only();
    received
}

/// Reads the untagged IPv4 packets of a burst. Returns the bytes of all its frames, and which of them were not read.
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
        // The frame that was not read, and those behind it that are of another kind.
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

/// Whether the EtherType of a frame is IPv4's.
#[inline]
fn may_be_untagged_v4(frame: &[u8]) -> bool {
    let ethertype = frame.get(12..).and_then(|rest| rest.first_chunk::<2>());
    ethertype.is_none_or(|ethertype| u16::from_be_bytes(*ethertype) == ethernet::IPV4)
}

/// Reads untagged IPv4 packets up to the first frame that is none; returns how many, and their bytes. A loop of its own, so
/// that what it needs stays in registers.
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
        // The lowest bit is set by CE alone.
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
            .ce_in
            .add(records.iter().take(read).map(is_marked).sum());
    }
    *octets = seen;
    (read, bytes)
}

/// The queues of a burst: which bits of their keys all have, and which any has.
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

    /// The key, if all are the same.
    fn only(self) -> Option<QueueKey> {
        (self.all == self.any).then_some(QueueKey(self.any))
    }
}

/// Where frames are sent on to.
#[derive(Debug)]
struct Hops<'a> {
    fib: &'a FibReader,
    v4: View<'a>,
    mtus: &'a Mtus,
    /// The next hop last found.
    last: NextHop,
}

impl Hops<'_> {
    /// Routes and rewrites the packets that were read and stay untagged IPv4. Returns which frames are left, and the queues of
    /// the others.
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
                // It has no next hop here: too long for any.
                record.len = u16::MAX;
            }
        }
        loop {
            place = unread.absent_from(place);
            let rest = frames.get_mut(place..).unwrap_or_default();
            let known = records.get_mut(place..).unwrap_or_default();
            place += send_stretch(self.v4, &self.last, port, (rest, known), &mut keys);
            if unread.has(place) {
                continue;
            }
            let Some(record) = records.get(place).filter(|_| place < frames.len()) else {
                return (left, keys);
            };
            let group = self.v4.lookup_v4(low32(record.addresses));
            if group != self.last.group && record.len != u16::MAX {
                let sent = self.send_by_another(group, port, (frames, records), place, &mut keys);
                if sent > 0 {
                    place += sent;
                    continue;
                }
            }
            left.add(place);
            place += 1;
        }
    }

    /// Sends packets from `place` on by the next hops of this group, not the last one; returns how many went.
    #[inline(never)]
    fn send_by_another<B: FrameBuf>(
        &mut self,
        group: u32,
        port: &IngressPort,
        (frames, records): (&mut [B], &mut [Record; BURST]),
        place: usize,
        keys: &mut Keys,
    ) -> usize {
        let rest = frames.get_mut(place..).unwrap_or_default();
        let known = records.get_mut(place..).unwrap_or_default();
        match self.fib.hops().only(group) {
            Some(path) => {
                self.last = NextHop::new(group, path, self.mtus);
                send_stretch(self.v4, &self.last, port, (rest, known), keys)
            }
            None => self.send_by_flow(group, port, (rest, known), keys),
        }
    }

    /// Sends packets of this group each by the next hop that its flow chooses, up to the first that does not stay as it is or
    /// is of another group; returns how many.
    #[inline]
    fn send_by_flow<B: FrameBuf>(
        &self,
        group: u32,
        port: &IngressPort,
        (frames, records): (&mut [B], &mut [Record]),
        keys: &mut Keys,
    ) -> usize {
        let (mut sent, hops) = (0, self.fib.hops());
        for (buf, record) in frames.iter_mut().zip(records) {
            if self.v4.lookup_v4(low32(record.addresses)) != group {
                break;
            }
            let Some(head) = Untagged::of(buf.data_mut()) else {
                break;
            };
            let (addresses, upper) = head.words();
            let path = hops.resolve(group, || FlowWords::new(addresses, &upper).hash());
            let hop = NextHop::new(group, path, self.mtus);
            if record.len > hop.longest || rewrite::plain(head, path).is_err() {
                break;
            }
            record.queue = QueueKey::new(path.port(), port.untagged_priority(record.tos));
            keys.add(record.queue);
            sent += 1;
        }
        sent
    }

    /// Takes a frame of any kind; `heard`: its record was read, and what it says was counted. Tells whether it has the length
    /// it came with and is not padded. The error is why it goes no further, none for MAC control.
    #[inline(never)]
    fn take_any<B: FrameBuf>(
        &mut self,
        port: &IngressPort,
        buf: &mut B,
        (known, heard): (&mut Record, bool),
        counters: &PortCounters,
    ) -> Result<bool, Option<Drop>> {
        let (admitted, syndrome) = port.admit(buf.data())?;
        let Admitted {
            record,
            priority,
            l3_off,
            ip_len,
            dst_v6,
            flow,
        } = admitted;
        let traits = if heard {
            known.traits
        } else {
            counters.ce_in.add(is_marked(&record));
            hear(&record, syndrome, counters)
        };
        let group = match dst_v6 {
            None => self.v4.lookup_v4(low32(record.addresses)),
            Some(dst) => route::lookup_v6(self.fib, dst),
        };
        if group != self.last.group {
            self.last = self.find(group, || flow);
        }
        let hop = self.last;
        if !hop.path.forwards() {
            return Err(Some(route::reason(hop.path.kind())));
        }
        if ip_len > hop.mtu {
            return Err(Some(Drop::MtuExceeded));
        }
        rewrite::any(buf, (l3_off, dst_v6.is_some()), hop.path, priority)?;
        let (before, after) = (usize::from(record.len), buf.data().len());
        if after != before {
            let (added, removed) = (after.saturating_sub(before), before.saturating_sub(after));
            counters.tag_bytes_added.add(added as u64);
            counters.tag_bytes_removed.add(removed as u64);
        }
        let tag = if hop.path.vlan() == UNTAGGED {
            0
        } else {
            MetaFlags::TAGGED
        };
        let flags = MetaFlags(record.flags.0 & !MetaFlags::TAGGED | tag);
        *known = Record {
            len: low16(after),
            traits,
            flags: flags.of_class(traits),
            queue: QueueKey::new(hop.path.port(), priority),
            ..record
        };
        Ok(after == before && after >= common::SHORTEST)
    }

    /// The next hop of a group, or of a flow in a group with a choice.
    #[inline]
    fn find(&self, group: u32, flow: impl FnOnce() -> FlowWords) -> NextHop {
        let hops = self.fib.hops();
        match hops.only(group) {
            Some(path) => NextHop::new(group, path, self.mtus),
            None => NextHop::new(u32::MAX, hops.resolve(group, || flow().hash()), self.mtus),
        }
    }
}

/// Sends packets on by one next hop, up to the first that needs another or does not stay as it is; returns how many. A loop of
/// its own, so that what it needs stays in registers.
#[inline(never)]
fn send_stretch<B: FrameBuf>(
    v4: View<'_>,
    hop: &NextHop,
    port: &IngressPort,
    (frames, records): (&mut [B], &mut [Record]),
    keys: &mut Keys,
) -> usize {
    let (mut sent, mut all, hop) = (0, *keys, *hop);
    for (buf, record) in frames.iter_mut().zip(records) {
        // A frame is no shorter than its packet.
        if v4.lookup_v4(low32(record.addresses)) != hop.group || record.len > hop.longest {
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

/// A path and what it asks of a packet.
#[derive(Debug, Clone, Copy)]
struct NextHop {
    /// The group all of whose flows take it; none where the flow decides.
    group: u32,
    path: Path,
    /// Largest IP packet.
    mtu: u16,
    /// Longest untagged frame that is sent as it is but for addresses and TTL; 0 for none.
    longest: u16,
}

impl NextHop {
    #[inline]
    fn new(group: u32, path: Path, mtus: &Mtus) -> NextHop {
        let mtu = mtus.get(path.port().index()).copied().unwrap_or(0);
        let plain = path.forwards() && path.vlan() == UNTAGGED;
        NextHop {
            group,
            path,
            mtu,
            longest: if plain {
                mtu.saturating_add(low16(ethernet::HEADER_LEN))
                    .min(u16::MAX - 1)
            } else {
                0
            },
        }
    }
}

#[cfg(test)]
#[path = "receive_tests.rs"]
mod tests;
