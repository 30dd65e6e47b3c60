//! Log of the last decisions about flows and the outcome of each: a ring of records for CNPs and one for refusals.
//!
//! The control core is the only writer; the data path never touches them. The rings may lie in memory that outlives the process
//! ([`npcc_heap::records`]).

use npcc_heap::records::{Record, Ring};
use npcc_pipeline::units::Nanos;

use crate::admission::Suppressed;
use crate::detector::{Trend, Zone};
use crate::policy::Reason;
use npcc_roce::key::{Qpn, QueueFlow, low32};
use npcc_roce::pair::Evidence;

/// Number of entries kept.
pub const KEPT: usize = 4_096;
/// Number of words of an entry.
pub const WORDS: usize = 9;

/// Outcome of a decision to signal a flow's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// A CNP was given to the worker, which may still lose it.
    Sent,
    /// A CNP would have left, where nothing is sent.
    WouldSend,
    /// No CNP left or would have, for this reason.
    Refused(Suppressed),
}

impl Outcome {
    /// Stable name that operators and JSON see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Sent => "sent",
            Outcome::WouldSend => "would-send",
            Outcome::Refused(_) => "refused",
        }
    }

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

/// Log entry: a CNP that was sent, or was not, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Time of the decision.
    pub time: Nanos,
    /// The flow, and the queue it was signalled for.
    pub flow: QueueFlow,
    /// Queue pair at the sender; meaningful unless `evidence` is none.
    pub sender_qpn: Qpn,
    /// Evidence for the queue pair.
    pub evidence: Evidence,
    /// Reason that the policy gave.
    pub reason: Reason,
    /// Wire bytes in the queue at that moment.
    pub depth: u64,
    /// Zone of the queue.
    pub zone: Zone,
    /// Trend of the queue.
    pub trend: Trend,
    /// Number of CNPs the flow has got, this one included; where nothing is sent, of those it would have got.
    pub cnps: u64,
    /// Outcome of the decision.
    pub outcome: Outcome,
}

impl Entry {
    /// Text of the entry for operators; `port` is the name of the egress port.
    #[must_use]
    pub fn text(&self, port: &str) -> String {
        let queue_pair = match self.evidence {
            Evidence::None => "?".to_owned(),
            _ => self.sender_qpn.to_string(),
        };
        let outcome = match self.outcome {
            Outcome::Sent => format!("got CNP {}", self.cnps),
            Outcome::WouldSend => format!("would have got CNP {} (observed)", self.cnps),
            Outcome::Refused(reason) => format!("got no CNP ({})", reason.name()),
        };
        let key = &self.flow.key;
        format!(
            "QP {queue_pair} of {} {outcome} because its flow to {} qp {} filled queue {} of {port}: {} ({} B, {}, {}), known by {}",
            key.src(),
            key.dst(),
            key.dest_qp(),
            self.flow.priority.get(),
            self.reason.name(),
            self.depth,
            self.zone.name(),
            self.trend.name(),
            self.evidence.name(),
        )
    }

    /// Entry as a record; [`Entry::from_words`] of the same version reads it.
    #[must_use]
    pub fn to_words(self) -> [u64; WORDS] {
        let [a, b, c, d, e] = self.flow.words();
        let meta = u64::from(self.sender_qpn.get())
            | (self.evidence as u64) << 24
            | (self.reason.index() as u64) << 32
            | (self.zone as u64) << 40
            | (self.trend as u64) << 48
            | self.outcome.index() << 56;
        [a, b, c, d, e, meta, self.time.0, self.depth, self.cnps]
    }

    /// Inverse of [`Entry::to_words`]; `None` if there are fewer words.
    #[must_use]
    pub fn from_words(words: &[u64]) -> Option<Entry> {
        let [a, b, c, d, e, meta, time, depth, cnps] = *words.first_chunk()?;
        let [_, _, _, evidence, reason, zone, trend, outcome] = meta.to_le_bytes();
        Some(Entry {
            time: Nanos(time),
            flow: QueueFlow::from_words([a, b, c, d, e]),
            sender_qpn: Qpn::new(low32(meta)),
            evidence: Evidence::from_index(usize::from(evidence)).unwrap_or_default(),
            reason: Reason::from_index(usize::from(reason)).unwrap_or_default(),
            depth,
            zone: Zone::from_index(usize::from(zone)).unwrap_or_default(),
            trend: Trend::from_index(usize::from(trend)).unwrap_or_default(),
            cnps,
            outcome: Outcome::from_index(outcome),
        })
    }
}

/// Ring of the last decisions.
#[derive(Debug)]
pub struct DecisionLog(Ring);

impl Default for DecisionLog {
    fn default() -> DecisionLog {
        DecisionLog(Ring::on_heap(KEPT, WORDS))
    }
}

impl DecisionLog {
    /// Makes a log in this ring, which should keep [`KEPT`] records of [`WORDS`] words.
    #[must_use]
    pub const fn new(ring: Ring) -> DecisionLog {
        DecisionLog(ring)
    }

    /// Appends an entry. Control core only.
    pub(crate) fn record(&self, entry: &Entry) {
        self.0.push(entry.to_words());
    }

    /// Number of decisions logged since the start.
    #[must_use]
    pub fn noted(&self) -> u64 {
        self.0.written()
    }

    /// Last `n` entries that are kept, oldest first.
    pub fn last(&self, n: usize) -> impl Iterator<Item = Entry> {
        let all = self.0.read().whole;
        let before = all.len().saturating_sub(n);
        let read = |record: Record| Entry::from_words(&record.words);
        all.into_iter().skip(before).filter_map(read)
    }
}
