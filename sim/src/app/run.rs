//! State of a running application: which operations have started, and what that makes the network and the clock do.
//!
//! A connection is what a pair of hosts has in one direction: queue pairs, and at most `in_flight` messages that are not acknowledged.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use npcc_config::units::Nanos;

use super::graph::Work;
use super::make::Job;

/// Order of an application to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Sends a message.
    Send(Message),
    /// Goes on at this time: call [`Running::happens`].
    At(Nanos, Moment),
}

/// A time at which a rank goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// The rank is there: its first step begins.
    Join(u32),
    /// The computing before the step is done: its operations may start.
    Open(u32),
    /// A calculation of the rank is done.
    Computed(u32, u32),
}

/// A message of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    /// Connection, and the queue pair of it that carries the message.
    pub(crate) connection: u32,
    pub(crate) queue_pair: u32,
    pub(crate) bytes: u64,
    /// Sender's operation.
    rank: u32,
    operation: u32,
    step: u32,
}

/// One direction of a pair of hosts.
#[derive(Debug)]
struct Connection {
    free: u32,
    next: u32,
    waiting: VecDeque<Message>,
}

/// A rank in one of its steps.
#[derive(Debug, Default)]
struct Rank {
    step: u32,
    begun: Nanos,
    open: bool,
    left: usize,
    /// Number of others that each operation waits for.
    waits: Vec<u32>,
    /// Receipts that wait for their message.
    posted: BTreeSet<u32>,
    /// Messages that arrived before their receipt started, as (step, operation).
    early: BTreeSet<(u32, u32)>,
    /// Time at which each processor is free.
    cpus: BTreeMap<u8, Nanos>,
}

/// How an application runs, besides its graph.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) gap: Nanos,
    pub(crate) steps: Option<u32>,
    pub(crate) barrier: bool,
    pub(crate) queue_pairs: u32,
    pub(crate) in_flight: u32,
}

/// A running application.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) job: Job,
    pub(crate) pace: Pace,
    ranks: Vec<Rank>,
    connections: Vec<Connection>,
    /// Ranks that have operations.
    members: Vec<u32>,
    /// Hosts of each connection, as the job numbers them.
    pairs: BTreeMap<(u32, u32), u32>,
    /// Ranks that have done each step, and the longest time of those that count.
    steps: Vec<(u32, Nanos)>,
    /// Times of the finished steps.
    pub(crate) times: Vec<Nanos>,
    /// Operations to look at, as (rank, operation, true if it is done and false if it may start).
    work: VecDeque<(u32, u32, bool)>,
}

impl Running {
    pub(crate) fn new(job: Job, pace: Pace) -> Running {
        let mut pairs = BTreeMap::new();
        for (from, to, _) in job.graph.messages() {
            let pair = (job.places[from as usize], job.places[to as usize]);
            let next = crate::num::small(pairs.len() as u64);
            pairs.entry(pair).or_insert(next);
        }
        let connection = || Connection {
            free: pace.in_flight,
            next: 0,
            waiting: VecDeque::new(),
        };
        let ranks = job.graph.ranks().iter().zip(0u32..);
        let members = ranks.filter(|(operations, _)| !operations.is_empty());
        Running {
            members: members.map(|(_, rank)| rank).collect(),
            ranks: job.graph.ranks().iter().map(|_| Rank::default()).collect(),
            connections: pairs.iter().map(|_| connection()).collect(),
            pairs,
            steps: Vec::new(),
            times: Vec::new(),
            work: VecDeque::new(),
            job,
            pace,
        }
    }

    /// Returns the hosts of each connection, in the order of the connections.
    pub(crate) fn pairs(&self) -> Vec<(u32, u32)> {
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_unstable_by_key(|(_, index)| **index);
        pairs.into_iter().map(|(pair, _)| *pair).collect()
    }

    /// Handles a time that was requested with [`Action::At`].
    pub(crate) fn happens(&mut self, moment: Moment, now: Nanos, out: &mut Vec<Action>) {
        match moment {
            Moment::Join(rank) => self.begin(rank, now, out),
            Moment::Open(rank) => {
                let state = &mut self.ranks[rank as usize];
                state.open = true;
                let free = state.waits.iter().zip(0u32..);
                let free = free.filter(|(waits, _)| **waits == 0);
                self.work
                    .extend(free.map(|(_, operation)| (rank, operation, false)));
                self.settle(now, out);
            }
            Moment::Computed(rank, operation) => {
                self.work.push_back((rank, operation, true));
                self.settle(now, out);
            }
        }
    }

    /// Handles a message that arrived whole.
    pub(crate) fn arrived(&mut self, message: &Message, now: Nanos, out: &mut Vec<Action>) {
        let Work::Send { to, .. } = self.job.graph.work(message.rank, message.operation) else {
            return;
        };
        let receipt = self.job.graph.partner(message.rank, message.operation);
        let state = &mut self.ranks[to as usize];
        if state.step == message.step && state.posted.remove(&receipt) {
            self.work.push_back((to, receipt, true));
            self.settle(now, out);
        } else {
            state.early.insert((message.step, receipt));
        }
    }

    /// Handles the acknowledgement of a message.
    pub(crate) fn acknowledged(&mut self, message: &Message, now: Nanos, out: &mut Vec<Action>) {
        let connection = &mut self.connections[message.connection as usize];
        connection.free += 1;
        self.supply(message.connection, out);
        self.work.push_back((message.rank, message.operation, true));
        self.settle(now, out);
    }

    /// Sends what waits for a place among the messages in flight; each takes the connection's next queue pair.
    fn supply(&mut self, connection: u32, out: &mut Vec<Action>) {
        let state = &mut self.connections[connection as usize];
        while state.free > 0
            && let Some(message) = state.waiting.pop_front()
        {
            state.free -= 1;
            out.push(Action::Send(Message {
                queue_pair: state.next,
                ..message
            }));
            state.next = (state.next + 1) % self.pace.queue_pairs.max(1);
        }
    }

    /// Begins the rank's next step, unless it has none.
    fn begin(&mut self, rank: u32, now: Nanos, out: &mut Vec<Action>) {
        let operations = &self.job.graph.ranks()[rank as usize];
        let state = &mut self.ranks[rank as usize];
        if operations.is_empty() || self.pace.steps.is_some_and(|steps| state.step >= steps) {
            return;
        }
        // Even a step of nothing takes a nanosecond, so that time goes on.
        let least = state.begun + Nanos(u64::from(state.step > 0));
        state.begun = now;
        state.open = false;
        state.left = operations.len();
        state.waits.clear();
        state
            .waits
            .extend(operations.iter().map(super::Operation::waits));
        out.push(Action::At(
            (now + self.pace.gap).max(least),
            Moment::Open(rank),
        ));
    }

    /// Starts and ends operations until nothing more follows at this time.
    fn settle(&mut self, now: Nanos, out: &mut Vec<Action>) {
        while let Some((rank, operation, done)) = self.work.pop_front() {
            if done {
                self.end(rank, operation, now, out);
            } else {
                self.start(rank, operation, now, out);
            }
        }
    }

    fn start(&mut self, rank: u32, operation: u32, now: Nanos, out: &mut Vec<Action>) {
        self.release(rank, operation, false);
        let graph = &self.job.graph;
        let state = &mut self.ranks[rank as usize];
        match graph.work(rank, operation) {
            Work::Calc { time: Nanos(0), .. } => self.work.push_back((rank, operation, true)),
            Work::Calc { time, cpu } => {
                let free = state.cpus.entry(cpu).or_insert(now);
                *free = (*free).max(now) + time;
                out.push(Action::At(*free, Moment::Computed(rank, operation)));
            }
            Work::Receive { .. } => {
                if state.early.remove(&(state.step, operation)) {
                    self.work.push_back((rank, operation, true));
                } else {
                    state.posted.insert(operation);
                }
            }
            Work::Send { bytes, to, .. } => {
                let places = &self.job.places;
                let pair = (places[rank as usize], places[to as usize]);
                let Some(connection) = self.pairs.get(&pair).copied() else {
                    return;
                };
                let message = Message {
                    connection,
                    queue_pair: 0,
                    bytes,
                    rank,
                    operation,
                    step: state.step,
                };
                self.connections[connection as usize]
                    .waiting
                    .push_back(message);
                self.supply(connection, out);
            }
        }
    }

    fn end(&mut self, rank: u32, operation: u32, now: Nanos, out: &mut Vec<Action>) {
        self.release(rank, operation, true);
        let state = &mut self.ranks[rank as usize];
        state.left -= 1;
        if state.left == 0 {
            self.finish(rank, now, out);
        }
    }

    /// Lets those go on that waited for this operation to start, or to be done.
    fn release(&mut self, rank: u32, operation: u32, done: bool) {
        let dependents = self.job.graph.dependents(rank, operation);
        let list = if done {
            &dependents.done
        } else {
            &dependents.started
        };
        let waits = &mut self.ranks[rank as usize].waits;
        for other in list {
            let waits = &mut waits[*other as usize];
            *waits -= 1;
            if *waits == 0 {
                self.work.push_back((rank, *other, false));
            }
        }
    }

    /// Ends the rank's step, and begins the next: its own, or with a barrier that of all ranks.
    fn finish(&mut self, rank: u32, now: Nanos, out: &mut Vec<Action>) {
        let state = &mut self.ranks[rank as usize];
        let (step, time) = (state.step as usize, now.since(state.begun));
        state.step += 1;
        if self.steps.len() <= step {
            self.steps.resize(step + 1, (0, Nanos(0)));
        }
        let (finished, longest) = &mut self.steps[step];
        *finished += 1;
        if rank < self.job.counted {
            *longest = (*longest).max(time);
            if self.job.independent {
                self.times.push(time);
            }
        }
        let is_last = *finished as usize == self.members.len();
        if is_last && !self.job.independent {
            self.times.push(*longest);
        }
        if !self.pace.barrier {
            self.begin(rank, now, out);
        } else if is_last {
            for place in 0..self.members.len() {
                self.begin(self.members[place], now, out);
            }
        }
    }

    /// Returns the ages of the steps that are not finished: of the first one that some rank has not done, or of each rank's.
    pub(crate) fn unfinished(&self, now: Nanos) -> Vec<Nanos> {
        let counted = self.ranks.iter().take(self.job.counted as usize);
        let joined = counted.filter(|rank| rank.left > 0);
        let ages = joined.map(|rank| (rank.step, now.since(rank.begun)));
        if self.job.independent {
            return ages.map(|(_, age)| age).collect();
        }
        let ages: Vec<_> = ages.collect();
        let first = ages.iter().map(|(step, _)| *step).min();
        let of_first = ages.iter().filter(|(step, _)| Some(*step) == first);
        of_first.map(|(_, age)| *age).max().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::app::{Graph, Operation};

    const PACE: Pace = Pace {
        gap: Nanos(100),
        steps: Some(2),
        barrier: false,
        queue_pairs: 2,
        in_flight: 2,
    };

    /// Event of the small network: a moment (0), an arrival (1) or an acknowledgement (2).
    type Next = (u8, Option<Moment>, Option<Message>);

    /// Runs a graph over a network that takes `way` in each direction, and returns the time and the queue pair of each message.
    fn run(ranks: Vec<Vec<Operation>>, pace: Pace, way: u64) -> (Running, Vec<(u64, u32)>) {
        let job = Job::of_goal(Arc::new(Graph::new(ranks).unwrap()));
        let mut running = Running::new(job, pace);
        let count = crate::num::small(running.ranks.len() as u64);
        let mut events: BTreeMap<(u64, u64), Next> = BTreeMap::new();
        let (mut number, mut sent) = (0, Vec::new());
        for rank in 0..count {
            number += 1;
            events.insert((0, number), (0, Some(Moment::Join(rank)), None));
        }
        while let Some(((now, _), (kind, moment, message))) = events.pop_first() {
            let mut out = Vec::new();
            let at = Nanos(now);
            match (kind, moment, message) {
                (0, Some(moment), _) => running.happens(moment, at, &mut out),
                (1, _, Some(message)) => running.arrived(&message, at, &mut out),
                (_, _, Some(message)) => running.acknowledged(&message, at, &mut out),
                _ => {}
            }
            for action in out {
                number += 3;
                match action {
                    Action::At(at, moment) => {
                        events.insert((at.0, number), (0, Some(moment), None));
                    }
                    Action::Send(message) => {
                        sent.push((now, message.queue_pair));
                        events.insert((now + way, number), (1, None, Some(message)));
                        events.insert((now + 2 * way, number + 1), (2, None, Some(message)));
                    }
                }
            }
        }
        (running, sent)
    }

    fn calc(time: u64, after: &[u32]) -> Operation {
        let work = Work::Calc {
            time: Nanos(time),
            cpu: 0,
        };
        Operation::new(work, after.to_vec())
    }

    fn send(to: u32, after: &[u32]) -> Operation {
        let work = Work::Send {
            bytes: 1,
            to,
            tag: 0,
        };
        Operation::new(work, after.to_vec())
    }

    fn receive(from: u32, after: &[u32]) -> Operation {
        let work = Work::Receive {
            bytes: 1,
            from,
            tag: 0,
        };
        Operation::new(work, after.to_vec())
    }

    /// Law: a rank waits for what it depends on. The answer is sent when the request is there; each step has its gap before it.
    #[test]
    fn a_rank_waits_for_its_dependency() {
        let ranks = vec![
            vec![calc(50, &[]), send(1, &[0]), receive(1, &[])],
            vec![receive(0, &[]), send(0, &[0])],
        ];
        let (running, sent) = run(ranks, PACE, 1_000);
        // Gap 100, calculation 50, then there and back; the second rank's step ends with the acknowledgement of its answer.
        let answer = |begun: u64| begun + 1_000;
        assert_eq!(sent[..2], [(150, 0), (answer(150), 0)]);
        let first = 150 + 2 * 1_000;
        assert_eq!(
            sent[2],
            (first + 150, 1),
            "the first rank goes on without the second"
        );
        assert_eq!(running.times, [Nanos(3_150), Nanos(2_150)]);
        assert!(running.unfinished(Nanos(9_999)).is_empty());
    }

    /// Law: with a barrier no rank begins a step before all have done the last.
    #[test]
    fn a_barrier_holds_all_ranks() {
        let ranks = vec![vec![send(1, &[])], vec![receive(0, &[]), calc(10_000, &[])]];
        let barrier = Pace {
            barrier: true,
            ..PACE
        };
        let (held, sent) = run(ranks.clone(), barrier, 1_000);
        assert_eq!(sent, [(100, 0), (10_200, 1)]);
        assert_eq!(held.times, [Nanos(10_100); 2]);
        let (_, sent) = run(ranks, PACE, 1_000);
        assert_eq!(sent, [(100, 0), (2_200, 1)], "the sender runs ahead");
    }

    /// Law: a message that arrives before its receipt starts waits for it, also one of a later step.
    #[test]
    fn an_early_message_waits_for_its_receipt() {
        let ranks = vec![vec![send(1, &[])], vec![calc(5_000, &[]), receive(0, &[0])]];
        let (running, sent) = run(ranks, PACE, 1_000);
        assert_eq!(sent, [(100, 0), (2_200, 1)]);
        assert_eq!(running.times, [Nanos(5_100); 2]);
    }

    /// Law: at most `in_flight` messages of a connection are not acknowledged; queue pairs take turns.
    #[test]
    fn messages_in_flight_are_limited() {
        let sends = vec![send(1, &[]); 5];
        let (_, sent) = run(vec![sends, vec![receive(0, &[]); 5]], PACE, 1_000);
        let first: Vec<u64> = sent[..5].iter().map(|(time, _)| *time).collect();
        assert_eq!(first, [100, 100, 2_100, 2_100, 4_100]);
        let pairs: Vec<u32> = sent[..5].iter().map(|(_, pair)| *pair).collect();
        assert_eq!(pairs, [0, 1, 0, 1, 0]);
    }

    /// Law: `irequires` waits for the start, `requires` for the end; calculations of one processor do not overlap.
    #[test]
    fn a_start_is_enough_for_irequires() {
        let with = Operation {
            with: vec![0],
            ..send(1, &[])
        };
        let ranks = vec![
            vec![calc(500, &[]), with, calc(40, &[]), send(1, &[2])],
            vec![receive(0, &[]), receive(0, &[])],
        ];
        let (_, sent) = run(
            ranks,
            Pace {
                steps: Some(1),
                ..PACE
            },
            1_000,
        );
        assert_eq!(sent, [(100, 0), (640, 1)]);
    }

    /// Law: a step of nothing does not hold up time.
    #[test]
    fn a_step_of_nothing_takes_a_nanosecond() {
        let pace = Pace {
            gap: Nanos(0),
            steps: Some(1_000),
            ..PACE
        };
        let (running, _) = run(vec![vec![calc(0, &[])], vec![]], pace, 1);
        assert_eq!(running.times.len(), 1_000);
    }
}
