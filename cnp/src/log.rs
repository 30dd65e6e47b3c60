//! The last decisions about flows and what became of each, CNPs in one ring and refusals in another: rings of fixed size that others read and the data path never touches.
//!
//! The control core is its only writer; a reader takes each entry as it was at one moment, and skips one being overwritten.

use npcc_pipeline::counters::Counter;
use npcc_pipeline::units::Nanos;

use crate::detector::{Trend, Zone};
use crate::key::{Qpn, QueueFlow, low32};
use crate::pair::Evidence;
use crate::plan::Suppressed;
use crate::policy::Reason;
use crate::seqlock::SeqCell;

/// Entries kept.
pub const KEPT: usize = 4_096;
/// Words of an entry.
pub const WORDS: usize = 9;
const LIVE: u64 = 1 << 63;

/// What became of a decision to signal a flow's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A CNP left.
    Sent,
    /// A CNP would have left, where nothing is sent.
    WouldSend,
    /// Why none would.
    Refused(Suppressed),
}

impl Outcome {
    /// The stable name operators and JSON see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::WouldSend => "would-send",
            Outcome::Refused(_) => "refused",
        }
    }

    /// In seven bits.
    fn index(self) -> u64 {
        match self {
            Outcome::Sent => 0,
            Outcome::WouldSend => 1,
            Outcome::Refused(reason) => 2 + reason.index() as u64,
        }
    }

    fn from_index(index: u8) -> Outcome {
        match index {
            0 => Outcome::Sent,
            1 => Outcome::WouldSend,
            more => Suppressed::from_index(usize::from(more - 2))
                .map_or(Outcome::WouldSend, Outcome::Refused),
        }
    }
}

/// Why a CNP was sent, or was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub time: Nanos,
    /// The flow, and the queue it was signalled for.
    pub flow: QueueFlow,
    /// The queue pair at the sender; meaningful unless `evidence` is none.
    pub sender_qpn: Qpn,
    /// How it is known.
    pub evidence: Evidence,
    /// The policy's reason.
    pub reason: Reason,
    /// The queue's wire bytes at that moment.
    pub depth: u64,
    /// Its zone.
    pub zone: Zone,
    /// Its trend.
    pub trend: Trend,
    /// CNPs the flow has been signalled, this one included; where nothing is sent, those it would have been.
    pub cnps: u64,
    /// What became of it.
    pub outcome: Outcome,
}

impl std::fmt::Display for Entry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} us: ", self.time.0 / 1_000)?;
        match self.evidence {
            Evidence::None => write!(out, "QP ?")?,
            _ => write!(out, "QP {}", self.sender_qpn)?,
        }
        write!(out, " of {} ", self.flow.key.src())?;
        match self.outcome {
            Outcome::Sent => write!(out, "got CNP {}", self.cnps)?,
            Outcome::WouldSend => write!(out, "would have got CNP {} (observed)", self.cnps)?,
            Outcome::Refused(reason) => write!(out, "got no CNP ({})", reason.name())?,
        }
        write!(
            out,
            " because its flow to {} qp {} filled queue {} of port {}: {} ({} B, {}, {}), known by {}",
            self.flow.key.dst(),
            self.flow.key.dest_qp(),
            self.flow.priority.get(),
            self.flow.egress.0,
            self.reason.name(),
            self.depth,
            self.zone.name(),
            self.trend.name(),
            self.evidence.name(),
        )
    }
}

impl Entry {
    /// As words of memory, for whoever keeps it; [`Entry::from_words`] of the same version reads them.
    #[must_use]
    pub fn to_words(self) -> [u64; WORDS] {
        let [a, b, c, d, e] = self.flow.words();
        let meta = u64::from(self.sender_qpn.get())
            | (self.evidence as u64) << 24
            | (self.reason.index() as u64) << 32
            | (self.zone as u64) << 40
            | (self.trend as u64) << 48
            | self.outcome.index() << 56
            | LIVE;
        [a, b, c, d, e, meta, self.time.0, self.depth, self.cnps]
    }

    /// The inverse of [`Entry::to_words`]; none where no entry was written.
    #[must_use]
    pub fn from_words(words: [u64; WORDS]) -> Option<Entry> {
        let [a, b, c, d, e, meta, time, depth, cnps] = words;
        let [_, _, _, evidence, reason, zone, trend, outcome] = meta.to_le_bytes();
        (meta & LIVE != 0).then(|| Entry {
            time: Nanos(time),
            flow: QueueFlow::from_words([a, b, c, d, e]),
            sender_qpn: Qpn::new(low32(meta)),
            evidence: Evidence::from_index(usize::from(evidence)).unwrap_or_default(),
            reason: Reason::from_index(usize::from(reason)).unwrap_or_default(),
            depth,
            zone: Zone::from_index(usize::from(zone)).unwrap_or_default(),
            trend: Trend::from_index(usize::from(trend)).unwrap_or_default(),
            cnps,
            // The highest bit says that the entry was written.
            outcome: Outcome::from_index(outcome & 0x7f),
        })
    }
}

/// A ring of the last decisions.
#[derive(Debug)]
pub struct DecisionLog {
    cells: Box<[SeqCell<WORDS>]>,
    /// Decisions noted since the start.
    pub noted: Counter,
}

impl Default for DecisionLog {
    fn default() -> DecisionLog {
        DecisionLog {
            cells: (0..KEPT).map(|_| SeqCell::new()).collect(),
            noted: Counter::default(),
        }
    }
}

impl DecisionLog {
    /// Control core only.
    pub(crate) fn record(&self, entry: &Entry) {
        let at = usize::try_from(self.noted.get() % KEPT as u64).unwrap_or(0);
        if let Some(cell) = self.cells.get(at) {
            cell.write(&entry.to_words());
            self.noted.add(1);
        }
    }

    /// The last `n` entries that are kept, oldest first.
    pub fn last(&self, n: usize) -> impl Iterator<Item = Entry> + '_ {
        let noted = self.noted.get();
        let n = u64::try_from(n.min(KEPT)).unwrap_or(0).min(noted);
        (noted - n..noted).filter_map(|at| {
            let at = usize::try_from(at % KEPT as u64).unwrap_or(0);
            self.cells.get(at)?.read().and_then(Entry::from_words)
        })
    }
}
