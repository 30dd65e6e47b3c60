//! Rings from a worker to the control core, one per ingress port, for records and for messages of the connection manager: a flood at a port
//! fills its own ring and takes no place of another's.

use arrayvec::ArrayVec;
use npcc_pipeline::units::{MAX_PORTS, Nanos, PortId};
use rtrb::chunks::ReadChunk;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{RING_TURN, stamp};
use npcc_roce::cm::copy::CmCopy;
use npcc_roce::sample::PacketSample;

/// Entry of the rings, made of one packet.
pub(super) trait Entry: Copy {
    /// Port by which the packet came in.
    fn ingress(&self) -> PortId;
    /// Time at which it was enqueued.
    fn time(&self) -> Nanos;
}

impl Entry for PacketSample {
    fn ingress(&self) -> PortId {
        self.ingress
    }

    fn time(&self) -> Nanos {
        self.time
    }
}

impl Entry for CmCopy {
    fn ingress(&self) -> PortId {
        self.ingress
    }

    fn time(&self) -> Nanos {
        self.time
    }
}

/// Producer of one ring.
#[derive(Debug)]
struct Ring<T> {
    entries: Producer<T>,
    /// Turn of 16 age units ([`RING_TURN`]) in which the ring was last found full.
    full_in: u32,
}

const fn turn(now: Nanos) -> u32 {
    stamp(now) >> RING_TURN
}

/// Producers of all rings: the worker's end.
#[derive(Debug)]
pub(super) struct Rings<T>(Box<[Ring<T>]>);

impl<T: Entry> Rings<T> {
    /// Makes rings of `entries` each; returns both ends.
    pub(super) fn new(entries: usize) -> (Rings<T>, Waiting<T>) {
        let pairs = (0..MAX_PORTS).map(|_| RingBuffer::new(entries.max(1)));
        let (producers, consumers): (Vec<_>, Vec<_>) = pairs.unzip();
        let ring = |entries| Ring {
            entries,
            full_in: u32::MAX,
        };
        let rings = producers.into_iter().map(ring).collect();
        (Rings(rings), Waiting(consumers.into()))
    }

    /// Returns true if a port's ring was found full in this turn ([`RING_TURN`]). Without that memory, every packet would try a full ring when there
    /// are more flows than the ring takes.
    #[inline]
    pub(super) fn is_full(&self, port: PortId, now: Nanos) -> bool {
        let ring = self.0.get(port.index());
        ring.is_none_or(|ring| ring.full_in == turn(now))
    }

    /// Puts an entry into its port's ring; returns false if that is full.
    pub(super) fn push(&mut self, entry: T, now: Nanos) -> bool {
        let Some(ring) = self.0.get_mut(entry.ingress().index()) else {
            return false;
        };
        let is_pushed = ring.entries.push(entry).is_ok();
        if !is_pushed {
            ring.full_in = turn(now);
        }
        is_pushed
    }
}

/// Maximum number of entries of each port that are taken at once.
pub(crate) type Quotas = [usize; MAX_PORTS];

/// Consumers of all rings: the control core's end.
#[derive(Debug)]
pub(super) struct Waiting<T>(Box<[Consumer<T>]>);

impl<T: Entry> Waiting<T> {
    /// Number of ports with waiting entries.
    pub(super) fn ports(&self) -> usize {
        let waiting = self.0.iter().filter(|ring| !ring.is_empty());
        waiting.count()
    }

    /// Takes the next entries of all ports in the order of time, up to `most` of them and `N`; of a port that has more than its quota, the
    /// rest comes later.
    pub(super) fn pop_together<const N: usize>(
        &mut self,
        most: usize,
        quotas: &Quotas,
    ) -> ArrayVec<T, N> {
        let most = most.min(N);
        let ports = self.0.iter_mut().zip(quotas);
        let chunks = ports.filter_map(|(ring, quota)| {
            let waiting = ring.slots().min(*quota).min(most);
            (waiting > 0).then(|| ring.read_chunk(waiting).ok())?
        });
        let mut ports: ArrayVec<_, MAX_PORTS> =
            chunks.map(|chunk| Merged { chunk, taken: 0 }).collect();
        let mut entries = ArrayVec::new();
        while entries.len() < most {
            let heads = ports
                .iter_mut()
                .filter_map(|port| Some((port.head()?.time(), port)));
            let Some((_, port)) = heads.min_by_key(|(time, _)| *time) else {
                break;
            };
            entries.extend(port.head().copied());
            port.taken += 1;
        }
        for port in ports {
            port.chunk.commit(port.taken);
        }
        entries
    }
}

/// Waiting entries of one port, and the number taken of them.
struct Merged<'a, T> {
    chunk: ReadChunk<'a, T>,
    taken: usize,
}

impl<T> Merged<'_, T> {
    fn head(&self) -> Option<&T> {
        let (first, second) = self.chunk.as_slices();
        let rest = || second.get(self.taken - first.len());
        first.get(self.taken).or_else(rest)
    }
}
