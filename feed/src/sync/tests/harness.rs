//! Two boxes and a channel between them, in steps of 10 ms.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use npcc_api::ends::{Cm, CmKind, End, EndRow, Key, Transport};
use npcc_pipeline::bits::mix;

use super::super::{LONGEST, Limits, Machine, Outgoing};
use crate::name::Name;

pub(super) const STEP: Duration = Duration::from_millis(10);

/// Generator of numbers for the channel's faults.
#[derive(Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % most.max(1)
    }

    pub(super) fn chance(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }
}

/// Faults of the channel.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Faults {
    /// Percent of messages lost, repeated.
    pub(super) lost: u8,
    pub(super) repeated: u8,
    /// Most steps of delay; different ones reorder.
    pub(super) delay: u8,
    pub(super) cut: bool,
}

pub(super) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

pub(super) fn end(number: u64, version: u64) -> End {
    End {
        from: IpAddr::from([10, 0, 2, (number % 5) as u8]),
        to: IpAddr::from([10, 0, 1, (number % 3) as u8]),
        queue_pair: number as u32,
        udp_port: 49152,
        transport: Transport::Rc,
        first_seen: 1,
        // Two versions are too far apart for a refresh.
        last_seen: version % 1_000_000_007 * 10_000_000,
        packets: version,
        acked_psn: version.is_multiple_of(2).then_some(7),
        acked_at: None,
    }
}

/// Box: its switch's table, its feed, and everything that it ever said.
#[derive(Debug)]
pub(super) struct Edge {
    pub(super) machine: Machine,
    pub(super) table: BTreeMap<Key, End>,
    pub(super) said: HashSet<EndRow>,
    /// Ends as the rows suggested to its switch leave them.
    pub(super) suggested: BTreeMap<Key, End>,
    name: Name,
    peer: Name,
}

impl Edge {
    fn new(own: &str, peer: &str, epoch: u64, limits: &Limits) -> Self {
        let (own, peer) = (name(own), name(peer));
        Self {
            machine: Machine::new(own.clone(), epoch, std::slice::from_ref(&peer), limits),
            table: BTreeMap::new(),
            said: HashSet::new(),
            suggested: BTreeMap::new(),
            name: own,
            peer,
        }
    }

    pub(super) fn say(&mut self, row: EndRow) {
        match row {
            EndRow::End(end) => _ = self.table.insert(end.key(), end),
            EndRow::Gone(key) => _ = self.table.remove(&key),
            _ => {}
        }
        self.said.insert(row);
        self.machine.row(row);
    }

    /// Sees the ends of these numbers, in a version.
    pub(super) fn sees(&mut self, numbers: impl IntoIterator<Item = u64>, version: u64) {
        for number in numbers {
            self.say(EndRow::End(end(number, version)));
        }
    }

    /// Gives the feed the whole table, as after `lost` or at a start.
    pub(super) fn snapshot(&mut self) {
        self.machine.row(EndRow::Begin);
        for end in self.table.values() {
            self.machine.row(EndRow::End(*end));
        }
        let count = self.table.len() as u64;
        self.machine.row(EndRow::Complete { count });
    }

    /// Replaces the feed by a new process.
    pub(super) fn restart(&mut self, epoch: u64, limits: &Limits) {
        let peers = std::slice::from_ref(&self.peer);
        self.machine = Machine::new(self.name.clone(), epoch, peers, limits);
        self.suggested.clear();
        self.snapshot();
    }

    /// Takes what is suggested to the switch.
    fn suggest(&mut self) {
        while let Some((_, rows)) = self.machine.suggestions(1024) {
            for row in rows {
                match row {
                    EndRow::End(end) => _ = self.suggested.insert(end.key(), end),
                    EndRow::Gone(key) => _ = self.suggested.remove(&key),
                    _ => {}
                }
            }
        }
    }

    pub(super) fn copy(&self) -> BTreeSet<End> {
        self.machine.ends_of(&self.peer).copied().collect()
    }
}

/// Two boxes, the messages on their way, and the time.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) boxes: [Edge; 2],
    pub(super) now: Duration,
    pub(super) faults: Faults,
    pub(super) dice: Dice,
    pub(super) limits: Limits,
    pub(super) bytes: usize,
    under_way: Vec<(Duration, usize, Vec<u8>)>,
}

impl Pair {
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, Limits::default())
    }

    pub(super) fn with(seed: u64, limits: Limits) -> Self {
        Self {
            boxes: [
                Edge::new("a", "b", mix(seed), &limits),
                Edge::new("b", "a", mix(!seed), &limits),
            ],
            now: Duration::ZERO,
            faults: Faults::default(),
            dice: Dice(seed),
            limits,
            bytes: 0,
            under_way: Vec::new(),
        }
    }

    fn send(&mut self, to: usize, out: &Outgoing) {
        assert!(out.bytes.len() <= LONGEST);
        self.bytes += out.bytes.len();
        if self.faults.cut || self.dice.chance(self.faults.lost) {
            return;
        }
        for _ in 0..=u8::from(self.dice.chance(self.faults.repeated)) {
            let late = self.dice.below(u64::from(self.faults.delay) + 1) as u32;
            let message = (self.now + STEP * late, to, out.bytes.clone());
            self.under_way.push(message);
        }
    }

    /// Injects bytes as if box `from` had published them.
    pub(super) fn inject(&mut self, from: usize, bytes: Vec<u8>) {
        self.under_way.push((self.now, 1 - from, bytes));
    }

    pub(super) fn step(&mut self) {
        self.now += STEP;
        for from in 0..2 {
            while let Some(out) = self.boxes[from].machine.publish(self.now) {
                self.send(1 - from, &out);
            }
        }
        let now = self.now;
        let (due, later) = std::mem::take(&mut self.under_way)
            .into_iter()
            .partition(|(at, _, _)| *at <= now);
        self.under_way = later;
        for (_, to, bytes) in due as Vec<(Duration, usize, Vec<u8>)> {
            let from = self.boxes[1 - to].name.clone();
            self.boxes[to].machine.receive(now, &from, &bytes);
        }
        self.boxes.iter_mut().for_each(Edge::suggest);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Checks that no box holds an end that its peer did not say, and that memory is bounded.
    pub(super) fn check(&self) {
        for (own, other) in [(0, 1), (1, 0)] {
            let (own, other) = (&self.boxes[own], &self.boxes[other]);
            for end in own.machine.ends_of(&own.peer) {
                assert!(
                    other.said.contains(&EndRow::End(*end)),
                    "never said: {end:?}"
                );
            }
            self.check_bounds(own);
        }
    }

    pub(super) fn check_bounds(&self, one: &Edge) {
        assert!(one.machine.ends_of(&one.peer).count() <= self.limits.ends);
        assert!(one.machine.own_ends() <= self.limits.ends);
        assert!(one.machine.waiting(&one.peer) <= 2 * self.limits.ends);
        assert!(one.machine.own().ends().changes() <= 2 * self.limits.ends);
    }

    pub(super) fn is_equal(&self) -> bool {
        [(0, 1), (1, 0)].into_iter().all(|(own, other)| {
            let table: BTreeSet<End> = self.boxes[other].table.values().copied().collect();
            let suggested: BTreeSet<End> = self.boxes[own].suggested.values().copied().collect();
            self.boxes[own].copy() == table && suggested == table
        })
    }
}

pub(super) fn cm(number: u64) -> EndRow {
    EndRow::Cm(Cm {
        message: CmKind::Req,
        from: IpAddr::from([10, 0, 2, 1]),
        to: IpAddr::from([10, 0, 1, 1]),
        local_comm_id: number as u32,
        remote_comm_id: 0,
        queue_pair: number as u32 & 0xff_ffff,
        at: number,
    })
}
