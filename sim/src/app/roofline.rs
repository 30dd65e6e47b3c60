//! Roofline of a step: the time that no network can beat, and what a run is measured against.

use std::collections::BTreeMap;

use npcc_config::units::Nanos;
use npcc_pipeline::frame::wire_len;

use super::graph::Work;
use super::make::Job;
use crate::wire::OVERHEAD;

/// Bytes of a RETH, which the first packet of a WRITE has.
const RETH: usize = 16;
/// Bytes of an AETH, which an acknowledgement has.
const AETH: usize = 4;

/// A link on a path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hop {
    /// Index of the link.
    pub(crate) link: usize,
    /// Femtoseconds per byte.
    pub(crate) fs_per_byte: u64,
    pub(crate) delay: Nanos,
}

/// Links from one host to another.
pub(crate) type Path = Vec<Hop>;

/// Wire bytes of a message, of its first packet and of its shortest.
fn wire(bytes: u64, mtu: u16) -> (u64, u64) {
    let packet = |payload: u64, extended: usize| {
        let payload = usize::try_from(payload.next_multiple_of(4)).unwrap_or(usize::MAX);
        u64::from(wire_len(OVERHEAD + extended + payload))
    };
    let mtu = u64::from(mtu);
    let packets = bytes.div_ceil(mtu).max(1);
    let rest = bytes - (packets - 1) * mtu;
    if packets == 1 {
        let only = packet(rest, RETH);
        return (only, only);
    }
    let total = packet(mtu, RETH) + (packets - 2) * packet(mtu, 0) + packet(rest, 0);
    (total, packet(rest, 0))
}

/// Returns the time from the first bit sent to the last received: all bytes at the slowest link, the shortest packet at each other.
fn crossing(path: &[Hop], (total, shortest): (u64, u64)) -> u64 {
    let Some(slowest) = path.iter().map(|hop| hop.fs_per_byte).max() else {
        return 0;
    };
    let others: u64 = path.iter().map(|hop| hop.fs_per_byte).sum::<u64>() - slowest;
    let delay: u64 = path.iter().map(|hop| hop.delay.0).sum();
    delay + (total * slowest + shortest * others) / 1_000_000
}

/// Use of a link by a step: its bytes as femtoseconds, the earliest time at which a message comes there, and the shortest time that one
/// still takes from there to the end of an operation.
#[derive(Debug, Clone, Copy)]
struct Use {
    bytes: u64,
    head: u64,
    tail: u64,
}

impl Use {
    const NONE: Use = Use {
        bytes: 0,
        head: u64::MAX,
        tail: u64::MAX,
    };

    /// Returns the shortest time of a step in which its bytes pass.
    const fn time(&self, barrier: bool) -> u64 {
        let around = if barrier { self.head + self.tail } else { 0 };
        around + self.bytes / 1_000_000
    }
}

/// Returns the time of a packet over links one after the other.
fn way(path: &[Hop], packet: u64) -> u64 {
    path.iter()
        .map(|hop| hop.delay.0 + packet * hop.fs_per_byte / 1_000_000)
        .sum()
}

/// Returns the shortest possible time of a step: the gap, then the longest of the critical path on idle links, of the bytes of each link
/// at its rate, and of each processor's calculations. With a `barrier` all ranks begin together, so that a link's bytes have the way
/// to it before them, and the way from it after; without one these hide behind another rank's step. `path` returns the links between
/// two of the job's hosts.
pub(crate) fn roofline(
    job: &Job,
    (gap, barrier): (Nanos, bool),
    mtu: u16,
    path: &dyn Fn(u32, u32) -> Path,
) -> Nanos {
    let graph = &job.graph;
    let mut paths: BTreeMap<(u32, u32), Path> = BTreeMap::new();
    let mut between = |from: u32, to: u32| {
        let pair = (job.places[from as usize], job.places[to as usize]);
        paths
            .entry(pair)
            .or_insert_with(|| path(pair.0, pair.1))
            .clone()
    };
    let acknowledgement = u64::from(wire_len(OVERHEAD + AETH));
    let mut links: BTreeMap<usize, Use> = BTreeMap::new();
    let mut processors: BTreeMap<(u32, u8), u64> = BTreeMap::new();
    // Earliest start of each operation, by rank.
    let starts = graph.ranks().iter();
    let mut starts: Vec<Vec<u64>> = starts.map(|rank| vec![0; rank.len()]).collect();
    let mut longest = 0;
    for (rank, operation) in graph.order().iter().copied() {
        let (at, place) = (rank as usize, operation as usize);
        let start = starts[at][place];
        let end = match graph.work(rank, operation) {
            Work::Calc { time, cpu } => {
                *processors.entry((rank, cpu)).or_default() += time.0;
                start + time.0
            }
            // Its start is where the message is there, too.
            Work::Receive { .. } => start,
            Work::Send { bytes, to, .. } => {
                let forth = between(rank, to);
                let (total, shortest) = wire(bytes, mtu);
                let arrives = start + crossing(&forth, (total, shortest));
                let back = crossing(&between(to, rank), (acknowledgement, acknowledgement));
                let after = if rank < job.counted { back } else { 0 };
                for (hop, place) in forth.iter().zip(1..) {
                    let used = links.entry(hop.link).or_insert(Use::NONE);
                    used.bytes += total * hop.fs_per_byte;
                    used.head = used.head.min(start + way(&forth[..place - 1], shortest));
                    used.tail = used
                        .tail
                        .min(hop.delay.0 + way(&forth[place..], shortest) + after);
                }
                let receipt = graph.partner(rank, operation) as usize;
                let there = &mut starts[to as usize][receipt];
                *there = (*there).max(arrives);
                arrives + back
            }
        };
        if rank < job.counted {
            longest = longest.max(end);
        }
        let dependents = graph.dependents(rank, operation);
        for other in &dependents.done {
            let start = &mut starts[at][*other as usize];
            *start = (*start).max(end);
        }
        for other in &dependents.started {
            let other = &mut starts[at][*other as usize];
            *other = (*other).max(start);
        }
    }
    let busiest = links.values().map(|used| used.time(barrier)).max();
    let computing = processors.values().max().copied().unwrap_or(0);
    gap + Nanos(longest.max(busiest.unwrap_or(0)).max(computing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Kind, Shape};

    /// Path over one switch: 100 Gb/s (80,000 fs per byte) and 1 us at each link; links are numbered by host and direction.
    fn star(from: u32, to: u32) -> Path {
        let hop = |link: u32| Hop {
            link: link as usize,
            fs_per_byte: 80_000,
            delay: Nanos(1_000),
        };
        vec![hop(2 * from), hop(2 * to + 1)]
    }

    fn shape(kind: Kind, ranks: u32, size: u64, chunk: u64) -> Shape {
        Shape {
            kind,
            ranks,
            peers: u32::from(kind == Kind::Checkpoint),
            size,
            chunk,
            channels: None,
            in_flight: 8,
        }
    }

    #[test]
    fn one_message_takes_its_bytes_a_packet_and_the_way_back() {
        let job = Job::of(&shape(Kind::Checkpoint, 1, 8_192, 8_192)).unwrap();
        // Two packets of 4,096: 58 of headers and 24 of Ethernet's each, 16 more in the first; an acknowledgement has 86.
        let (total, last, ack) = (2 * 4_178 + 16, 4_178, 86);
        let forth = 2_000 + (total + last) * 80 / 1_000;
        let back = 2_000 + 2 * ack * 80 / 1_000;
        let expected = 500 + forth + back;
        assert_eq!(
            roofline(&job, (Nanos(500), true), 4_096, &star),
            Nanos(expected)
        );
    }

    #[test]
    fn many_senders_are_bound_by_the_link_they_share() {
        let job = Job::of(&shape(Kind::Checkpoint, 4, 40_960_000, 40_960_000)).unwrap();
        let bytes = 4 * (10_000 * 4_178 + 16);
        let time = |barrier| roofline(&job, (Nanos(0), barrier), 4_096, &star);
        assert_eq!(time(false), Nanos(bytes * 80 / 1_000));
        // A frame over the sender's link, then the way back of the last acknowledgement.
        let (there, back) = (1_000 + 4_178 * 80 / 1_000, 2_000 + 2 * 86 * 80 / 1_000);
        assert_eq!(time(true), Nanos(there + bytes * 80 / 1_000 + 1_000 + back));
    }

    #[test]
    fn a_ring_of_one_chunk_has_all_its_phases_one_after_the_other() {
        let one = roofline(
            &Job::of(&shape(Kind::RingAllreduce, 4, 16_384, 4_096)).unwrap(),
            (Nanos(0), false),
            4_096,
            &star,
        );
        let phase = 2_000 + 2 * (4_178 + 16) * 80 / 1_000;
        let back = 2_000 + 2 * 86 * 80 / 1_000;
        assert_eq!(one, Nanos(6 * phase + back));
    }
}
