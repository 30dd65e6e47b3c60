//! Reading of the headers of a burst into its records. Each kind of frame has its own instance of one loop, so that what the
//! loop needs stays in registers.
//!
//! Law: the records are those that [`super::parse`] makes of the same frames one by one, whatever reads them.

use std::fmt::Debug;

use super::kinds::{FrameKind, Kinds, flags_of};
use super::parse::{self, CE, IngressPort, Seen, hear, is_marked};
use crate::bits::{Octets, low8};
use crate::burst::Record;
use crate::counters::PortCounters;
use crate::frame::{FrameBuf, MetaFlags};
use crate::units::BURST;

/// Number of frames that a [`VectorReader`] reads at a time.
pub const FOUR: usize = 4;

/// Reader of the headers of several frames at a time. The scalar reader reads what it leaves.
pub trait VectorReader<B>: Debug + Send + Sync {
    /// Reads packets of one kind as the scalar reader does, and makes their records, up to the first group of [`FOUR`] that it
    /// leaves. `seen`: see [`Seen`].
    ///
    /// Leaves all groups in which any frame is not of the kind, is not for the port, or speaks: a CNP, a NAK, a datagram, a
    /// packet that is not supported.
    fn read(
        &self,
        kind: FrameKind,
        port: (&IngressPort, &Seen),
        frames: &[B],
        records: &mut [Record],
    ) -> HeadsRead;
}

/// Frames that were read one after the other.
#[derive(Debug, Clone, Copy)]
pub struct HeadsRead {
    /// Number of frames.
    pub frames: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their DSCPs and ECN fields: see [`Record::tos`].
    pub tos: Octets,
}

impl HeadsRead {
    /// No frames.
    pub const NONE: HeadsRead = HeadsRead {
        frames: 0,
        bytes: 0,
        tos: Octets::NONE,
    };

    fn add(&mut self, more: HeadsRead) {
        self.frames += more.frames;
        self.bytes += more.bytes;
        self.tos = self.tos.and(more.tos);
    }
}

/// Reads the packets of a burst that are of a kind, and notes their kinds in `kinds`. Returns the bytes of all its frames.
#[inline]
pub(super) fn read<B: FrameBuf>(
    (port, vectors): (&IngressPort, Option<&dyn VectorReader<B>>),
    frames: &[B],
    (records, kinds): (&mut [Record; BURST], &mut Kinds),
    counters: &PortCounters,
) -> u64 {
    let (mut bytes, mut place, mut seen) = (0, 0, Seen::NOTHING);
    while let Some(buf) = frames.get(place) {
        let kind = FrameKind::of(buf.data());
        let rest = frames.get(place..).unwrap_or_default();
        let known = records.get_mut(place..).unwrap_or_default();
        let read = kind.map_or(HeadsRead::NONE, |kind| {
            read_kind(kind, (port, vectors), (rest, known), &mut seen, counters)
        });
        if let Some(kind) = kind.filter(|_| read.frames > 0) {
            let after = place + read.frames;
            // There are no more stretches than frames.
            let _ = kinds.stretches.try_push((kind, low8(place), low8(after)));
            kinds.tos = kinds.tos.and(read.tos);
            bytes += read.bytes;
            place = after;
        } else {
            kinds.unread.add(place);
            bytes += buf.data().len() as u64;
            place += 1;
        }
    }
    bytes
}

/// Reads packets of one kind up to the first frame that is none.
#[inline]
fn read_kind<B: FrameBuf>(
    kind: FrameKind,
    (port, vectors): (&IngressPort, Option<&dyn VectorReader<B>>),
    (frames, records): (&[B], &mut [Record]),
    seen: &mut Seen,
    counters: &PortCounters,
) -> HeadsRead {
    let Some(vectors) = vectors else {
        return read_scalar(kind, port, (frames, records), seen, counters);
    };
    let mut all = HeadsRead::NONE;
    loop {
        let rest = frames.get(all.frames..).unwrap_or_default();
        let known = records.get_mut(all.frames..).unwrap_or_default();
        let read = vectors.read(kind, (port, &*seen), rest, known);
        count_marked(known, read, counters);
        let left = rest.get(read.frames..).unwrap_or_default();
        let known = known.get_mut(read.frames..).unwrap_or_default();
        let group = left.get(..FOUR).unwrap_or(left);
        let by_one = read_scalar(kind, port, (group, known), seen, counters);
        all.add(read);
        all.add(by_one);
        if by_one.frames < FOUR {
            return all;
        }
    }
}

#[inline]
fn read_scalar<B: FrameBuf>(
    kind: FrameKind,
    port: &IngressPort,
    all: (&[B], &mut [Record]),
    seen: &mut Seen,
    counters: &PortCounters,
) -> HeadsRead {
    match kind {
        FrameKind::V4 => read_stretch::<false, false, B>(port, all, seen, counters),
        FrameKind::TaggedV4 => read_stretch::<true, false, B>(port, all, seen, counters),
        FrameKind::V6 => read_stretch::<false, true, B>(port, all, seen, counters),
        FrameKind::TaggedV6 => read_stretch::<true, true, B>(port, all, seen, counters),
    }
}

#[inline(never)]
fn read_stretch<const TAGGED: bool, const V6: bool, B: FrameBuf>(
    port: &IngressPort,
    (frames, records): (&[B], &mut [Record]),
    before: &mut Seen,
    counters: &PortCounters,
) -> HeadsRead {
    let (mut read, mut seen) = (HeadsRead::NONE, *before);
    for (buf, record) in frames.iter().zip(records.iter_mut()) {
        let frame = buf.data();
        let Some(packet) = port.whole::<TAGGED, V6>(frame, &mut seen) else {
            break;
        };
        read.bytes += frame.len() as u64;
        read.frames += 1;
        read.tos.add(packet.tos);
        let known = parse::record(&packet, frame.len(), V6);
        let traits = hear(&known, packet.upper.syndrome, counters);
        let flags = MetaFlags(MetaFlags::of_ecn(packet.tos).0 | flags_of::<TAGGED, V6>());
        *record = Record {
            traits,
            flags: flags.of_class(traits),
            ..known
        };
    }
    count_marked(records, read, counters);
    *before = seen;
    read
}

/// Counts the packets marked CE among the first, which were read.
#[inline]
fn count_marked(records: &[Record], read: HeadsRead, counters: &PortCounters) {
    if read.tos.any & CE == CE {
        let marked = records.iter().take(read.frames).map(is_marked).sum();
        counters.roce.ce.add(marked);
    }
}
