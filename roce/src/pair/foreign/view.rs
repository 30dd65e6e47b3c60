//! View of peers for readers on other threads, and reports on their way to the control core.

use npcc_pipeline::counters;
use npcc_pipeline::counters::{ByName, Counter, Gauge};

use super::{PEERS, PeerId, RefusedEnd, Report};

counters! {
    /// Counters of one peer.
    pub struct PeerCounters => PeerCount {
        /// Ends of the peer in the table.
        held: Gauge => no_metric(),
        /// Reports taken.
        accepted: Counter => no_metric(),
        /// Reports refused, by reason.
        refused: ByName<RefusedEnd, Counter, { RefusedEnd::COUNT }> => no_metric(),
        /// Ends that made room for others.
        displaced: Counter => no_metric(),
        /// Flows whose sender became known by an end of the peer.
        pairs: Counter => no_metric(),
        /// CNPs to queue pairs known by an end of the peer.
        cnps: Counter => no_metric(),
        /// Time of the last report, in ns of the switch's clock; 0 for none.
        #[serde(skip)] heard: Gauge => no_metric(),
        /// 1 while nothing of the peer is believed.
        #[serde(skip)] distrusted: Gauge => no_metric(),
    }
}

/// Counters of all peers.
#[derive(Debug)]
pub struct PeerView(Box<[PeerCounters; PEERS]>);

impl Default for PeerView {
    fn default() -> PeerView {
        PeerView(Box::new(std::array::from_fn(|_| PeerCounters::default())))
    }
}

impl PeerView {
    /// Counters of one peer.
    #[must_use]
    #[expect(
        clippy::indexing_slicing,
        reason = "every number of a peer is below PEERS"
    )]
    pub const fn of(&self, peer: PeerId) -> &PeerCounters {
        &self.0[peer.0 as usize]
    }
}

/// Reports of one peer, and their outcome once the control core has taken them.
#[derive(Debug)]
pub struct Reports {
    /// The peer.
    pub peer: PeerId,
    /// Its reports.
    pub all: Box<[Report]>,
    /// Number of reports taken.
    pub accepted: Counter,
    /// Number of reports refused, by reason.
    pub refused: [Counter; RefusedEnd::COUNT],
}

impl Reports {
    /// Makes a list that nobody has taken yet.
    #[must_use]
    pub fn new(peer: PeerId, all: Box<[Report]>) -> Reports {
        Reports {
            peer,
            all,
            accepted: Counter::default(),
            refused: Default::default(),
        }
    }
}
