//! Export of ends and of messages of the connection manager, for boxes on whose path the answers to their flows do not come.
//!
//! ```text
//!   control core:  end that is new, or whose packets move (once a second); REQ, REP, DREQ; end forgotten  ->  record in the ring
//!   reader:        a cursor of its own; requests a walk, which exports the whole table once more
//! ```
//! Laws: without a reader the control core writes nothing. The ring is never full: records not read in time are overwritten, and the reader counts
//! them as lost. A worker does nothing for any of it.

use std::sync::Arc;

use npcc_heap::records::Ring;
use npcc_pipeline::sync::{AtomicU32, AtomicU64, Ordering};
use npcc_pipeline::units::{Nanos, PortId, Priority};

use super::transport::Transport;
use crate::key::{FlowKey, QueueFlow, low32};

/// Number of records kept for readers.
pub(super) const KEPT: usize = 16_384;
/// Number of words of a record.
const WORDS: usize = 9;

/// End as the switch saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenEnd {
    /// Addresses of its frames, and the queue pair that they name.
    pub key: FlowKey,
    /// UDP source port of its frames.
    pub udp_port: u16,
    /// Transport of the queue pair.
    pub transport: Transport,
    /// Times of the first and of the last frame shown.
    pub first_seen: Nanos,
    /// Time of the last frame shown.
    pub last_seen: Nanos,
    /// Number of frames.
    pub packets: u64,
    /// Sequence number that the last frame acknowledged, if it did.
    pub acked_psn: Option<u32>,
}

/// Kind of a message of the connection manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmKind {
    /// REQ; the queue pair is the requester's.
    Req,
    /// REP; the queue pair is the granter's.
    Rep,
    /// DREQ; the queue pair is the receiver's.
    Dreq,
}

/// Row of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// An end.
    End(SeenEnd),
    /// An end that was forgotten, or whose connection ended, and its UDP source port.
    Gone(FlowKey, u16),
    /// A message of the connection manager: its addresses and queue pair, local and remote comm ID, and its time.
    Cm(CmKind, FlowKey, [u32; 2], Nanos),
    /// End of the walk with this number.
    Walked(u64),
}

const END: u8 = 1;
const GONE: u8 = 2;
const CM: u8 = 3;
const WALKED: u8 = 4;
/// Flag that an acknowledged sequence number is there.
const ACKED: u64 = 1 << 56;

impl Row {
    fn to_words(self) -> [u64; WORDS] {
        let (key, meta, rest) = match self {
            Row::End(end) => {
                let acked = end.acked_psn.map_or(0, |psn| ACKED | u64::from(psn) << 32);
                let meta = u64::from(END)
                    | (end.transport as u64) << 8
                    | u64::from(end.udp_port) << 16
                    | acked;
                let times = [end.first_seen.0, end.last_seen.0, end.packets];
                (Some(end.key), meta, times)
            }
            Row::Gone(key, port) => (Some(key), u64::from(GONE) | u64::from(port) << 16, [0; 3]),
            Row::Cm(kind, key, [local, remote], at) => {
                let meta = u64::from(CM) | (kind as u64) << 8;
                let ids = u64::from(local) << 32 | u64::from(remote);
                (Some(key), meta, [at.0, ids, 0])
            }
            Row::Walked(number) => (None, u64::from(WALKED), [number, 0, 0]),
        };
        let [a, b, c, d, e] = key.map_or([0; 5], |key| anywhere(key).words());
        let [one, two, three] = rest;
        [a, b, c, d, e, meta, one, two, three]
    }

    /// Inverse of [`Row::to_words`]; `None` for words of no row.
    fn from_words(words: &[u64]) -> Option<Row> {
        let [a, b, c, d, e, meta, one, two, three] = *words.first_chunk()?;
        let key = QueueFlow::from_words([a, b, c, d, e]).key;
        let [kind, detail, low, high, ..] = meta.to_le_bytes();
        let udp_port = u16::from_le_bytes([low, high]);
        Some(match kind {
            END => Row::End(SeenEnd {
                key,
                udp_port,
                transport: match detail {
                    0 => Transport::Rc,
                    1 => Transport::Uc,
                    _ => Transport::Ud,
                },
                first_seen: Nanos(one),
                last_seen: Nanos(two),
                packets: three,
                acked_psn: (meta & ACKED != 0).then(|| low32(meta >> 32) & 0xff_ffff),
            }),
            GONE => Row::Gone(key, udp_port),
            CM => {
                let kind = match detail {
                    0 => CmKind::Req,
                    1 => CmKind::Rep,
                    _ => CmKind::Dreq,
                };
                Row::Cm(kind, key, [low32(two >> 32), low32(two)], Nanos(one))
            }
            WALKED => Row::Walked(one),
            _ => return None,
        })
    }
}

/// Key in no queue.
const fn anywhere(key: FlowKey) -> QueueFlow {
    QueueFlow {
        key,
        egress: PortId(0),
        priority: Priority::new(0),
    }
}

/// Memory that the control core and the readers of the export share.
#[derive(Debug)]
pub struct EndFeed {
    pub(super) ring: Ring,
    pub(super) readers: AtomicU32,
    /// Number of walks requested; the readers write it.
    pub(super) wanted: AtomicU64,
}

impl Default for EndFeed {
    fn default() -> EndFeed {
        EndFeed {
            ring: Ring::on_heap(KEPT, WORDS),
            readers: AtomicU32::new(0),
            wanted: AtomicU64::new(0),
        }
    }
}

impl EndFeed {
    /// Begins to read, from now on. While there is a reader the control core exports.
    #[must_use]
    pub fn read(self: &Arc<EndFeed>) -> EndReader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        EndReader {
            feed: Arc::clone(self),
            taken: self.ring.written(),
            lost: 0,
        }
    }
}

/// Reader of the export, at its own pace.
#[derive(Debug)]
pub struct EndReader {
    feed: Arc<EndFeed>,
    /// Number of the last record taken.
    taken: u64,
    /// Number of records that were overwritten before they were taken.
    pub lost: u64,
}

impl EndReader {
    /// Requests all ends once more. They are all there when the returned row has come.
    #[must_use]
    pub fn walk(&self) -> Row {
        Row::Walked(self.feed.wanted.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Takes the next row; `None` if there is none yet.
    pub fn take(&mut self) -> Option<Row> {
        loop {
            let waiting = self.feed.ring.written().saturating_sub(self.taken);
            if waiting == 0 {
                return None;
            }
            let kept = self.feed.ring.kept() as u64;
            let skipped = if waiting > kept {
                // The oldest ones left may be overwritten while they are read: an eighth of the ring is skipped too.
                waiting - kept / 8 * 7
            } else {
                let record = self.feed.ring.record(self.taken + 1);
                let row = record.and_then(|record| Row::from_words(&record.words));
                if row.is_some() {
                    self.taken += 1;
                    return row;
                }
                if waiting <= kept / 8 * 7 {
                    // The record is not written yet.
                    return None;
                }
                1
            };
            self.taken += skipped;
            self.lost += skipped;
        }
    }
}

impl Drop for EndReader {
    fn drop(&mut self) {
        self.feed.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Walk through the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    pub(super) number: u64,
    /// Index of the next endpoint.
    pub(super) next: u32,
    /// Time of the next step.
    pub(super) due: Nanos,
}

/// The control core's side.
#[derive(Debug, Default)]
pub(super) struct Export {
    pub(super) feed: Arc<EndFeed>,
    /// True while there is a reader.
    pub(super) on: bool,
    pub(super) walk: Option<Walk>,
    /// Number of the last walk that is complete.
    pub(super) walked: u64,
}

impl Export {
    pub(super) fn write(&self, row: Row) {
        self.feed.ring.push(row.to_words());
    }
}
