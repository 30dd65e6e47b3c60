//! The flow table for readers on other threads.

use npcc_pipeline::units::{Nanos, PortId};

use crate::admission::Suppressed;
use crate::response::Response;
use crate::seqlock::SeqCell;
use npcc_roce::key::{Qpn, QueueFlow, low32};
use npcc_roce::pair::Evidence;

/// Number of words of a snapshot.
pub(super) const WORDS: usize = 13;
const LIVE: u64 = 1 << 63;

/// Snapshot of one flow for readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowSnapshot {
    /// Addresses, the receiver's queue pair, egress port and queue.
    pub flow: QueueFlow,
    /// Queue pair of the sender; meaningful unless `evidence` is none.
    pub sender_qpn: Qpn,
    /// Evidence for the sender's queue pair.
    pub evidence: Evidence,
    /// Response of the flow to its last measured CNPs.
    pub response: Response,
    /// Ingress port.
    pub ingress: PortId,
    /// Wire bytes enqueued since it was first seen.
    pub bytes: u64,
    /// Number of CNPs that we sent for it.
    pub cnps: u64,
    /// Number of CNPs that would have been sent for it, while nothing was sent.
    pub would_send: u64,
    /// True if no packet has come back yet.
    pub cold: bool,
    /// Reason why it was not signalled when last considered.
    pub refused: Option<Suppressed>,
    /// Time of our latest CNP; zero if there was none.
    pub last_cnp: Nanos,
    /// Time of the first packet.
    pub first_seen: Nanos,
    /// Time of the latest packet.
    pub last_seen: Nanos,
    /// Time to the sender and back as replies show it, taken as one to ten times `feedback`; `feedback` until there was a reply.
    pub near: Nanos,
    /// Round trip from here to the receiver, where it was measured.
    pub far: Option<Nanos>,
    /// True if it is left to ECN because its receiver is near.
    pub gated: bool,
}

impl FlowSnapshot {
    pub(super) fn to_words(self) -> [u64; WORDS] {
        let [a, b, c, d, e] = self.flow.words();
        let meta = u64::from(self.sender_qpn.get())
            | (self.evidence as u64) << 24
            | (self.response as u64) << 32
            | u64::from(self.ingress.0) << 40
            | self.refused.map_or(0, |reason| reason.index() as u64 + 1) << 48
            | u64::from(self.cold) << 56
            | u64::from(self.gated) << 57
            | LIVE;
        [
            a,
            b,
            c,
            d,
            e,
            meta,
            self.bytes,
            self.cnps,
            self.last_cnp.0,
            self.first_seen.0,
            self.last_seen.0,
            self.near.0 << 32 | self.far.map_or(0, |far| far.0 & 0xffff_ffff),
            self.would_send,
        ]
    }

    pub(super) fn from_words(words: [u64; WORDS]) -> Option<FlowSnapshot> {
        let [
            a,
            b,
            c,
            d,
            e,
            meta,
            bytes,
            cnps,
            last_cnp,
            first_seen,
            last_seen,
            round_trips,
            would_send,
        ] = words;
        let [_, _, _, evidence, response, ingress, refused, flags] = meta.to_le_bytes();
        let refused = usize::from(refused).checked_sub(1);
        (meta & LIVE != 0).then(|| FlowSnapshot {
            flow: QueueFlow::from_words([a, b, c, d, e]),
            sender_qpn: Qpn::new(low32(meta)),
            evidence: Evidence::from_index(usize::from(evidence)).unwrap_or_default(),
            response: Response::from_index(usize::from(response)).unwrap_or_default(),
            ingress: PortId(ingress),
            bytes,
            cnps,
            would_send,
            cold: flags & 1 != 0,
            refused: refused.and_then(Suppressed::from_index),
            last_cnp: Nanos(last_cnp),
            first_seen: Nanos(first_seen),
            last_seen: Nanos(last_seen),
            near: Nanos(round_trips >> 32),
            far: (low32(round_trips) > 0).then(|| Nanos(low32(round_trips).into())),
            gated: flags & 2 != 0,
        })
    }
}

/// The readers' side of the flow table.
#[derive(Debug)]
pub struct FlowView {
    pub(super) cells: Box<[SeqCell<WORDS>]>,
}

impl FlowView {
    /// Number of places in the table.
    #[must_use]
    pub fn places(&self) -> usize {
        self.cells.len()
    }

    /// Snapshot of the flow at a place, if there is one.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<FlowSnapshot> {
        let words = self.cells.get(place)?.read();
        words.and_then(FlowSnapshot::from_words)
    }

    /// Snapshots of all flows, each as it was at one moment. A flow that is being written all the while is left out.
    pub fn flows(&self) -> impl Iterator<Item = FlowSnapshot> + '_ {
        self.cells
            .iter()
            .filter_map(|cell| cell.read().and_then(FlowSnapshot::from_words))
    }
}
