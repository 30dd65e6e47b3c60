//! Graphs of the usual applications: one step of a collective, a checkpoint or a request.

use std::sync::Arc;

use serde::Deserialize;

use super::graph::{Graph, MAX_OPERATIONS, Operation, Work};
use crate::num::small;

/// Payload of a request whose response is the data.
const REQUEST: u64 = 256;
/// Maximum number of ranks, and of outstanding requests.
const MAX_RANKS: u64 = 4_096;

/// Kind of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// All-reduce over a ring: reduce-scatter, then all-gather; `size` is reduced on each rank.
    RingAllreduce,
    /// All-reduce by recursive halving and doubling; a power of two of ranks.
    HalvingDoubling,
    /// Each rank sends `size` in equal parts to the others (and to itself, without the network).
    AllToAll,
    /// Each rank writes `size` to a storage host.
    Checkpoint,
    /// Each rank has `in_flight` requests outstanding; a server answers each with `size`.
    RequestResponse,
    /// Operations of a GOAL file.
    Goal,
}

/// Shape of an application: what its graph is made of.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Kind of the application.
    pub kind: Kind,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of storage hosts or servers.
    pub peers: u32,
    /// Payload of a step, by rank.
    pub size: u64,
    /// Payload of one message.
    pub chunk: u64,
    /// Chunks that go through a ring at a time; `None`: all.
    pub channels: Option<u32>,
    /// Outstanding requests of a client.
    pub in_flight: u32,
}

/// The graph of an application's step, with its ranks placed on hosts.
#[derive(Debug, Clone)]
pub struct Job {
    /// Operations of a step.
    pub graph: Arc<Graph>,
    /// Host of each rank: an index into the application's hosts, its ranks first, then its peers.
    pub places: Vec<u32>,
    /// Number of ranks, from the first, whose time for a step counts.
    pub counted: u32,
    /// True if each of these is a step by itself: requests are independent.
    pub independent: bool,
    /// Bytes that the bus bandwidth of a step counts, as nccl-tests does.
    pub bus: f64,
}

/// Operations under construction.
#[derive(Debug)]
struct Draft {
    ranks: Vec<Vec<Operation>>,
    chunk: u64,
}

impl Draft {
    fn new(ranks: u32, shape: &Shape) -> Draft {
        Draft {
            ranks: vec![Vec::new(); ranks as usize],
            chunk: shape.chunk,
        }
    }

    fn add(&mut self, rank: u32, work: Work, after: Vec<u32>) -> u32 {
        let operations = &mut self.ranks[rank as usize];
        operations.push(Operation::new(work, after));
        small(operations.len() as u64 - 1)
    }

    /// Returns the payloads of the messages that carry `bytes`.
    fn chunks(&self, bytes: u64) -> Vec<u64> {
        let count = bytes.div_ceil(self.chunk).max(1);
        let rest = bytes - (count - 1) * self.chunk;
        let full = (1..count).map(|_| self.chunk);
        full.chain([rest]).collect()
    }

    /// Adds messages that carry `bytes` and start after `after` at the sender; returns their receipts.
    fn transfer(&mut self, [from, to]: [u32; 2], bytes: u64, tag: u32, after: &[u32]) -> Vec<u32> {
        let receipts = self.chunks(bytes).into_iter().map(|bytes| {
            self.add(from, Work::Send { bytes, to, tag }, after.to_vec());
            self.add(to, Work::Receive { bytes, from, tag }, Vec::new())
        });
        receipts.collect()
    }
}

impl Job {
    /// Makes the graph of a step.
    ///
    /// # Errors
    /// The reason why this shape has no graph.
    pub fn of(shape: &Shape) -> Result<Job, String> {
        let collective = !matches!(shape.kind, Kind::Checkpoint | Kind::RequestResponse);
        if collective && shape.ranks < 2 {
            return Err("needs at least two ranks".to_owned());
        }
        if shape.size == 0 || shape.chunk == 0 || shape.in_flight == 0 {
            return Err("size, chunk and in_flight must be above 0".to_owned());
        }
        if collective == (shape.peers > 0) {
            return Err(
                "checkpoint and request-response need the hosts of `to`; the others have none"
                    .to_owned(),
            );
        }
        let ends = u64::from(shape.ranks) + u64::from(shape.peers);
        let lanes = if shape.kind == Kind::RequestResponse {
            shape.in_flight
        } else {
            1
        };
        if ends.saturating_mul(u64::from(lanes)) > MAX_RANKS {
            return Err(format!(
                "more than {MAX_RANKS} ranks or outstanding requests"
            ));
        }
        let pieces = shape.size.div_ceil(shape.chunk);
        if pieces.saturating_mul(u64::from(shape.ranks) * 4) > MAX_OPERATIONS as u64 {
            return Err(format!(
                "{} ranks with {pieces} chunks each make too many operations; write a larger chunk",
                shape.ranks
            ));
        }
        match shape.kind {
            Kind::RingAllreduce => ring(shape),
            Kind::HalvingDoubling => halving_doubling(shape),
            Kind::AllToAll => all_to_all(shape),
            Kind::Checkpoint => checkpoint(shape),
            Kind::RequestResponse => requests(shape),
            Kind::Goal => Err("goal: name the file".to_owned()),
        }
    }

    /// Makes a job of a GOAL graph: rank i on host i.
    #[must_use]
    pub fn of_goal(graph: Arc<Graph>) -> Job {
        let count = small(graph.ranks().len() as u64);
        // The bus bandwidth of a mixture has no definition; this is what the busiest rank sends.
        let mut sent = vec![0u64; count as usize];
        for (from, _, bytes) in graph.messages() {
            sent[from as usize] += bytes;
        }
        let bus = sent.into_iter().max().unwrap_or(0) as f64;
        Job {
            graph,
            places: (0..count).collect(),
            counted: count,
            independent: false,
            bus,
        }
    }

    fn collective(draft: Draft, bus: f64) -> Result<Job, String> {
        let count = small(draft.ranks.len() as u64);
        Ok(Job {
            graph: Arc::new(Graph::new(draft.ranks)?),
            places: (0..count).collect(),
            counted: count,
            independent: false,
            bus,
        })
    }
}

/// Share of a rank's data that crosses the network in a reduce-scatter, an all-gather or an all-to-all.
fn others(ranks: u32) -> f64 {
    f64::from(ranks - 1) / f64::from(ranks)
}

/// Writes a ring: in each of 2(N-1) phases, rank i sends to i+1 the part that it received in the phase before.
fn ring(shape: &Shape) -> Result<Job, String> {
    let (ranks, mut draft) = (shape.ranks, Draft::new(shape.ranks, shape));
    let phases = 2 * (ranks - 1);
    let chunks = draft.chunks(shape.size.div_ceil(u64::from(ranks)));
    for rank in 0..ranks {
        let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        // Last receipt of each chunk.
        let mut last: Vec<u32> = Vec::new();
        for (bytes, chunk) in chunks.iter().copied().zip(0u32..) {
            let before = shape
                .channels
                .and_then(|channels| chunk.checked_sub(channels));
            let mut after: Vec<u32> = before
                .map(|before| last[before as usize])
                .into_iter()
                .collect();
            for phase in 0..phases {
                let tag = chunk * phases + phase;
                draft.add(rank, Work::Send { bytes, to, tag }, after);
                after = vec![draft.add(rank, Work::Receive { bytes, from, tag }, Vec::new())];
            }
            last.extend(after);
        }
    }
    Job::collective(draft, shape.size as f64 * 2.0 * others(ranks))
}

/// Writes recursive halving (reduce-scatter), then doubling (all-gather): each phase waits for all that the one before received.
fn halving_doubling(shape: &Shape) -> Result<Job, String> {
    let (ranks, mut draft) = (shape.ranks, Draft::new(shape.ranks, shape));
    if !ranks.is_power_of_two() {
        return Err(format!(
            "halving-doubling needs a power of two of ranks, not {ranks}"
        ));
    }
    let rounds = ranks.trailing_zeros();
    let halving = (1..=rounds).map(|round| (ranks >> round, shape.size >> round));
    let doubling: Vec<_> = halving.clone().rev().collect();
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); ranks as usize];
    for ((distance, bytes), tag) in halving.chain(doubling).zip(0u32..) {
        let mut received = vec![Vec::new(); ranks as usize];
        for rank in 0..ranks {
            let to = rank ^ distance;
            let receipts = draft.transfer([rank, to], bytes.max(1), tag, &after[rank as usize]);
            received[to as usize] = receipts;
        }
        for (rank, receipts) in (0u32..).zip(received) {
            let join = Work::Calc {
                time: npcc_config::units::Nanos(0),
                cpu: 0,
            };
            after[rank as usize] = vec![draft.add(rank, join, receipts)];
        }
    }
    Job::collective(draft, shape.size as f64 * 2.0 * others(ranks))
}

fn all_to_all(shape: &Shape) -> Result<Job, String> {
    let (ranks, mut draft) = (shape.ranks, Draft::new(shape.ranks, shape));
    let part = shape.size.div_ceil(u64::from(ranks));
    // Each rank begins with another peer.
    for turn in 1..ranks {
        for rank in 0..ranks {
            draft.transfer([rank, (rank + turn) % ranks], part, 0, &[]);
        }
    }
    Job::collective(draft, shape.size as f64 * others(ranks))
}

fn checkpoint(shape: &Shape) -> Result<Job, String> {
    let mut draft = Draft::new(shape.ranks + shape.peers, shape);
    for rank in 0..shape.ranks {
        let storage = shape.ranks + rank % shape.peers;
        draft.transfer([rank, storage], shape.size, 0, &[]);
    }
    let job = Job::collective(draft, shape.size as f64)?;
    // A storage host's time is that of its slowest writer.
    Ok(Job {
        counted: shape.ranks,
        ..job
    })
}

/// Writes each outstanding request as a rank of its own, on its client's host, with one of its own on the server's.
fn requests(shape: &Shape) -> Result<Job, String> {
    let count = shape.ranks * shape.in_flight;
    let mut draft = Draft::new(2 * count, shape);
    for client in 0..count {
        let server = count + client;
        let request = |bytes| Work::Send {
            bytes,
            to: server,
            tag: 0,
        };
        draft.add(client, request(REQUEST), Vec::new());
        let request = Work::Receive {
            bytes: REQUEST,
            from: client,
            tag: 0,
        };
        let request = draft.add(server, request, Vec::new());
        let answer = Work::Send {
            bytes: shape.size,
            to: client,
            tag: 1,
        };
        draft.add(server, answer, vec![request]);
        let answer = Work::Receive {
            bytes: shape.size,
            from: server,
            tag: 1,
        };
        draft.add(client, answer, Vec::new());
    }
    let clients = (0..count).map(|client| client / shape.in_flight);
    let servers = (0..count).map(|client| shape.ranks + client % shape.peers);
    Ok(Job {
        graph: Arc::new(Graph::new(draft.ranks)?),
        places: clients.chain(servers).collect(),
        counted: count,
        independent: true,
        bus: shape.size as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kind: Kind, ranks: u32, peers: u32) -> Shape {
        Shape {
            kind,
            ranks,
            peers,
            size: 1_000_000,
            chunk: 60_000,
            channels: None,
            in_flight: 4,
        }
    }

    fn sent(job: &Job) -> Vec<u64> {
        let mut sent = vec![0; job.places.len()];
        for (from, _, bytes) in job.graph.messages() {
            sent[from as usize] += bytes;
        }
        sent
    }

    /// Law: every rank sends what the collective's definition says: 2(N-1)/N of its data for an all-reduce, (N-1)/N for an all-to-all.
    #[test]
    fn ranks_send_what_the_collective_needs() {
        for (kind, each) in [
            (Kind::RingAllreduce, 1_750_000),
            (Kind::HalvingDoubling, 1_750_000),
            (Kind::AllToAll, 875_000),
        ] {
            let job = Job::of(&shape(kind, 8, 0)).unwrap();
            assert_eq!(sent(&job), [each; 8], "{kind:?}");
            assert!((job.bus - each as f64).abs() < 1.0, "{kind:?}");
        }
        let job = Job::of(&shape(Kind::Checkpoint, 3, 2)).unwrap();
        assert_eq!(sent(&job), [1_000_000, 1_000_000, 1_000_000, 0, 0]);
        let job = Job::of(&shape(Kind::RequestResponse, 2, 1)).unwrap();
        assert_eq!(job.places.len(), 16);
        assert_eq!(job.places[7..9], [1, 2], "the last client, the server");
    }

    #[test]
    fn shapes_without_a_graph_are_refused() {
        let ring = shape(Kind::RingAllreduce, 4, 0);
        for (shape, said) in [
            (shape(Kind::HalvingDoubling, 6, 0), "not 6"),
            (shape(Kind::RingAllreduce, 1, 0), "two ranks"),
            (shape(Kind::AllToAll, 4, 1), "`to`"),
            (shape(Kind::Checkpoint, 4, 0), "`to`"),
            (shape(Kind::Goal, 4, 0), "file"),
            (Shape { chunk: 0, ..ring }, "above 0"),
            (
                Shape {
                    size: 1 << 40,
                    ..ring
                },
                "larger chunk",
            ),
        ] {
            let error = Job::of(&shape).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_channel_sends_a_chunk_when_the_one_before_is_through() {
        let shape = Shape {
            channels: Some(1),
            ..shape(Kind::RingAllreduce, 4, 0)
        };
        let job = Job::of(&shape).unwrap();
        // Each chunk is six sends and six receipts; the first send of the second waits for the last receipt of the first.
        assert_eq!(job.graph.ranks()[0][12].after, [11]);
    }
}
