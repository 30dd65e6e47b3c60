//! Rings of records from a worker to the control core, one per ingress port: a flood at a port fills its own ring, and delays no other's records.

use arrayvec::ArrayVec;
use npcc_pipeline::units::{MAX_PORTS, Nanos, PortId};
use rtrb::chunks::ReadChunk;
use rtrb::{Consumer, Producer, RingBuffer};

use super::{RING_TURN, stamp};
use crate::sample::PacketSample;

/// Producer of one ring.
#[derive(Debug)]
struct Ring {
    records: Producer<PacketSample>,
    /// Turn of 16 age units ([`RING_TURN`]) in which the ring was last found full.
    full_in: u32,
}

const fn turn(now: Nanos) -> u32 {
    stamp(now) >> RING_TURN
}

/// Producers of all rings: the worker's end.
#[derive(Debug)]
pub(super) struct Rings(Box<[Ring]>);

impl Rings {
    /// Makes rings of `records` each; returns both ends.
    pub(super) fn new(records: usize) -> (Rings, Waiting) {
        let pairs = (0..MAX_PORTS).map(|_| RingBuffer::new(records.max(1)));
        let (producers, consumers): (Vec<_>, Vec<_>) = pairs.unzip();
        let ring = |records| Ring {
            records,
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

    /// Puts a record into its port's ring; returns false if that is full.
    pub(super) fn push(&mut self, record: PacketSample, now: Nanos) -> bool {
        let Some(ring) = self.0.get_mut(record.ingress.index()) else {
            return false;
        };
        let is_pushed = ring.records.push(record).is_ok();
        if !is_pushed {
            ring.full_in = turn(now);
        }
        is_pushed
    }
}

/// Maximum number of records of each port that are taken at once.
pub(crate) type Quotas = [usize; MAX_PORTS];

/// Consumers of all rings: the control core's end.
#[derive(Debug)]
pub(super) struct Waiting(Box<[Consumer<PacketSample>]>);

impl Waiting {
    /// Number of ports with waiting records.
    pub(super) fn ports(&self) -> usize {
        let waiting = self.0.iter().filter(|ring| !ring.is_empty());
        waiting.count()
    }

    /// Takes the next records of all ports in the order of time, up to `most` of them and `N`; of a port that has more than its quota, the
    /// rest comes later.
    pub(super) fn pop_together<const N: usize>(
        &mut self,
        most: usize,
        quotas: &Quotas,
    ) -> ArrayVec<PacketSample, N> {
        let most = most.min(N);
        let ports = self.0.iter_mut().zip(quotas);
        let chunks = ports.filter_map(|(ring, quota)| {
            let waiting = ring.slots().min(*quota).min(most);
            (waiting > 0).then(|| ring.read_chunk(waiting).ok())?
        });
        let mut ports: ArrayVec<_, MAX_PORTS> =
            chunks.map(|chunk| Merged { chunk, taken: 0 }).collect();
        let mut records = ArrayVec::new();
        while records.len() < most {
            let heads = ports
                .iter_mut()
                .filter_map(|port| Some((port.head()?, port)));
            let Some((head, port)) = heads.min_by_key(|(head, _)| head.time) else {
                break;
            };
            port.taken += 1;
            records.push(head);
        }
        for port in ports {
            port.chunk.commit(port.taken);
        }
        records
    }
}

/// Waiting records of one port, and the number taken of them.
struct Merged<'a> {
    chunk: ReadChunk<'a, PacketSample>,
    taken: usize,
}

impl Merged<'_> {
    fn head(&self) -> Option<PacketSample> {
        let (first, second) = self.chunk.as_slices();
        let rest = || second.get(self.taken - first.len());
        first.get(self.taken).or_else(rest).copied()
    }
}
