//! Graph of one step: operations of each rank, and what each waits for.

use std::collections::BTreeMap;

use npcc_config::units::Nanos;

/// Maximum number of operations of a graph.
pub(super) const MAX_OPERATIONS: usize = 1 << 20;

/// Work of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Computing on a processor, which does one thing at a time.
    Calc {
        /// Duration.
        time: Nanos,
        /// Processor of the rank.
        cpu: u8,
    },
    /// A message to another rank. It is done when the network card has its acknowledgement.
    Send {
        /// Payload of the message.
        bytes: u64,
        /// Receiving rank.
        to: u32,
        /// Tag, which the receiver names as well.
        tag: u32,
    },
    /// Receipt of a message. It is done when the whole message is there.
    Receive {
        /// Payload of the message.
        bytes: u64,
        /// Sending rank.
        from: u32,
        /// Tag, which the sender named as well.
        tag: u32,
    },
}

/// An operation of a rank; others are named by their place in the rank's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Work of the operation.
    pub work: Work,
    /// Operations that must be done before it starts (`requires`).
    pub after: Vec<u32>,
    /// Operations that must have started before it starts (`irequires`).
    pub with: Vec<u32>,
}

impl Operation {
    /// Creates an operation that starts when those in `after` are done.
    #[must_use]
    pub fn new(work: Work, after: Vec<u32>) -> Operation {
        Operation {
            work,
            after,
            with: Vec::new(),
        }
    }
}

/// Operations that wait for another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dependents {
    /// Operations that wait until it is done.
    pub(crate) done: Vec<u32>,
    /// Operations that wait until it has started.
    pub(crate) started: Vec<u32>,
}

/// Operations of every rank, where each message has one sender and one receiver, and nothing waits for itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    ranks: Vec<Vec<Operation>>,
    dependents: Vec<Vec<Dependents>>,
    /// Operation at the other end of each message; 0 for a calculation.
    partners: Vec<Vec<u32>>,
    /// Every operation, as (rank, operation), after all it waits for.
    order: Vec<(u32, u32)>,
}

/// Ends of one kind of message: the sends and the receipts with their bytes, in the order of their ranks' lists.
type Ends = [Vec<(u32, u64)>; 2];

impl Graph {
    /// Checks and connects the operations. The n-th message from one rank to another with a tag is the n-th receipt of such a message.
    ///
    /// # Errors
    /// The first mistake, by rank and place in the rank's list (from 0).
    pub fn new(ranks: Vec<Vec<Operation>>) -> Result<Graph, String> {
        if ranks.iter().map(Vec::len).sum::<usize>() > MAX_OPERATIONS {
            return Err(format!("more than {MAX_OPERATIONS} operations"));
        }
        let mut ends: BTreeMap<(u32, u32, u32), Ends> = BTreeMap::new();
        let mut dependents = Vec::new();
        for (operations, rank) in ranks.iter().zip(0u32..) {
            let mut of_rank = vec![Dependents::default(); operations.len()];
            for (operation, at) in operations.iter().zip(0u32..) {
                let (peer, end) = match operation.work {
                    Work::Calc { .. } => (None, None),
                    Work::Send { bytes, to, tag } => (Some(to), Some(((rank, to, tag), 0, bytes))),
                    Work::Receive { bytes, from, tag } => {
                        (Some(from), Some(((from, rank, tag), 1, bytes)))
                    }
                };
                if let Some(peer) = peer
                    && (peer as usize >= ranks.len() || peer == rank)
                {
                    return Err(format!(
                        "rank {rank}: a message to or from rank {peer}, which is itself or not there ({} ranks)",
                        ranks.len()
                    ));
                }
                if let Some((kind, end, bytes)) = end {
                    ends.entry(kind).or_default()[end].push((at, bytes));
                }
                let done = operation.after.iter().map(|other| (other, true));
                let started = operation.with.iter().map(|other| (other, false));
                for (other, done) in done.chain(started) {
                    let Some(other) = of_rank.get_mut(*other as usize) else {
                        return Err(format!(
                            "rank {rank}: operation {at} waits for {other}, which is not there"
                        ));
                    };
                    let list = if done {
                        &mut other.done
                    } else {
                        &mut other.started
                    };
                    list.push(at);
                }
            }
            dependents.push(of_rank);
        }
        let mut partners: Vec<Vec<u32>> = ranks.iter().map(|rank| vec![0; rank.len()]).collect();
        for ((from, to, tag), [sends, receipts]) in &ends {
            if sends.len() != receipts.len() {
                return Err(format!(
                    "rank {from} sends {} messages with tag {tag} to rank {to}, which receives {}",
                    sends.len(),
                    receipts.len()
                ));
            }
            for ((send, sent), (receipt, received)) in sends.iter().zip(receipts) {
                if sent != received {
                    return Err(format!(
                        "rank {from} sends {sent} bytes with tag {tag} to rank {to}, which receives {received}"
                    ));
                }
                partners[*from as usize][*send as usize] = *receipt;
                partners[*to as usize][*receipt as usize] = *send;
            }
        }
        let mut graph = Graph {
            ranks,
            dependents,
            partners,
            order: Vec::new(),
        };
        graph.order = graph.sorted()?;
        Ok(graph)
    }

    /// Returns every operation after all it waits for.
    fn sorted(&self) -> Result<Vec<(u32, u32)>, String> {
        let mut waits: Vec<Vec<u32>> = self
            .ranks
            .iter()
            .map(|rank| rank.iter().map(Operation::waits).collect())
            .collect();
        for (rank, waits) in self.ranks.iter().zip(&mut waits) {
            for (operation, waits) in rank.iter().zip(waits) {
                *waits += u32::from(matches!(operation.work, Work::Receive { .. }));
            }
        }
        let mut order = Vec::new();
        for (rank, at) in waits.iter().zip(0u32..) {
            let free = rank.iter().zip(0u32..).filter(|(waits, _)| **waits == 0);
            order.extend(free.map(|(_, operation)| (at, operation)));
        }
        let mut next = 0;
        while let Some((rank, operation)) = order.get(next).copied() {
            next += 1;
            let dependents = self.dependents(rank, operation);
            let own = dependents.done.iter().chain(&dependents.started);
            let mut opened: Vec<(u32, u32)> = own.map(|other| (rank, *other)).collect();
            if let Work::Send { to, .. } = self.work(rank, operation) {
                opened.push((to, self.partner(rank, operation)));
            }
            for (rank, operation) in opened {
                let waits = &mut waits[rank as usize][operation as usize];
                *waits -= 1;
                if *waits == 0 {
                    order.push((rank, operation));
                }
            }
        }
        let stuck = waits.iter().zip(0u32..).find_map(|(rank, at)| {
            let stuck = rank.iter().position(|waits| *waits > 0)?;
            Some((at, stuck))
        });
        match stuck {
            Some((rank, operation)) => Err(format!(
                "rank {rank}: operation {operation} waits for itself, over others"
            )),
            None => Ok(order),
        }
    }

    /// Returns the operations of each rank.
    #[must_use]
    pub fn ranks(&self) -> &[Vec<Operation>] {
        &self.ranks
    }

    pub(crate) fn work(&self, rank: u32, operation: u32) -> Work {
        self.ranks[rank as usize][operation as usize].work
    }

    pub(crate) fn dependents(&self, rank: u32, operation: u32) -> &Dependents {
        &self.dependents[rank as usize][operation as usize]
    }

    /// Returns the operation at the other end of a message.
    pub(crate) fn partner(&self, rank: u32, operation: u32) -> u32 {
        self.partners[rank as usize][operation as usize]
    }

    pub(crate) fn order(&self) -> &[(u32, u32)] {
        &self.order
    }

    /// Returns every message as (sending rank, receiving rank, bytes).
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        let of_rank = |(rank, at): (&Vec<Operation>, u32)| {
            let sends = rank
                .iter()
                .filter_map(move |operation| match operation.work {
                    Work::Send { bytes, to, .. } => Some((at, to, bytes)),
                    _ => None,
                });
            sends.collect::<Vec<_>>()
        };
        self.ranks.iter().zip(0u32..).flat_map(of_rank)
    }
}

impl Operation {
    /// Returns the number of operations that must be done or have started before it starts.
    pub(crate) fn waits(&self) -> u32 {
        crate::num::small((self.after.len() + self.with.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(to: u32, bytes: u64, after: &[u32]) -> Operation {
        Operation::new(Work::Send { bytes, to, tag: 7 }, after.to_vec())
    }

    fn receive(from: u32, bytes: u64, after: &[u32]) -> Operation {
        Operation::new(
            Work::Receive {
                bytes,
                from,
                tag: 7,
            },
            after.to_vec(),
        )
    }

    #[test]
    fn messages_find_their_receipts_in_order() {
        let ranks = vec![
            vec![send(1, 10, &[]), send(1, 20, &[0])],
            vec![receive(0, 10, &[1]), receive(0, 20, &[])],
        ];
        let graph = Graph::new(ranks).unwrap();
        assert_eq!((graph.partner(0, 1), graph.partner(1, 0)), (1, 0));
        assert_eq!(graph.order().len(), 4);
    }

    #[test]
    fn mistakes_are_named() {
        for (ranks, said) in [
            (vec![vec![send(0, 1, &[])]], "itself"),
            (vec![vec![send(3, 1, &[])], vec![]], "rank 3"),
            (vec![vec![send(1, 1, &[])], vec![]], "receives 0"),
            (
                vec![vec![send(1, 1, &[])], vec![receive(0, 2, &[])]],
                "receives 2",
            ),
            (
                vec![vec![send(1, 1, &[9])], vec![receive(0, 1, &[])]],
                "waits for 9",
            ),
            (
                vec![
                    vec![send(1, 1, &[1]), receive(1, 1, &[])],
                    vec![send(0, 1, &[1]), receive(0, 1, &[])],
                ],
                "waits for itself",
            ),
        ] {
            let error = Graph::new(ranks).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
