//! What is known of two addresses: how many queue pairs, how their ports behave, whether the hash holds.

use crate::fixed_map::MapKey;
use crate::key::FlowKey;
use crate::links::List;

/// Two addresses, in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PairKey {
    low: [u64; 2],
    high: [u64; 2],
    v6: bool,
    /// Whether these are unreliable datagrams: a world apart, which tells nothing of connections.
    datagrams: bool,
}

impl MapKey for PairKey {}

/// The two directions: from the lower address, and from the higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Direction {
    pub(crate) const fn back(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }
}

impl PairKey {
    pub(crate) fn of(key: &FlowKey) -> (PairKey, Direction) {
        let up = key.src <= key.dst;
        let (low, high) = if up {
            (key.src, key.dst)
        } else {
            (key.dst, key.src)
        };
        let pair = PairKey {
            low,
            high,
            v6: key.is_ipv6(),
            datagrams: false,
        };
        (pair, if up { Direction::Up } else { Direction::Down })
    }

    /// The key of these addresses' datagrams.
    pub(crate) const fn of_datagrams(self) -> PairKey {
        PairKey {
            datagrams: true,
            ..self
        }
    }
}

/// What the hash says of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
    /// Nobody in the other direction has this port, or too many to compare.
    #[default]
    Silent,
    /// Exactly one fits.
    Agree,
    /// Somebody has the port, nobody fits.
    Disagree,
    /// More than one fits.
    Ambiguous,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairState {
    /// Ends of each direction, the latest first.
    up: List,
    down: List,
    agree: u32,
    disagree: u32,
    /// UDP source ports of RC seen in any direction.
    pub(crate) ports: u32,
    /// UDP source ports of RC seen in one direction only.
    pub(crate) lonely: u32,
    /// Queue pair numbers seen in both directions.
    pub(crate) common: u32,
}

impl PairState {
    pub(crate) fn side(&self, direction: Direction) -> &List {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    pub(crate) fn side_mut(&mut self, direction: Direction) -> &mut List {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.up.len == 0 && self.down.len == 0
    }

    pub(crate) fn count(&mut self, old: Verdict, new: Verdict) {
        for (verdict, step) in [(old, -1), (new, 1)] {
            let counter = match verdict {
                Verdict::Agree => &mut self.agree,
                Verdict::Disagree => &mut self.disagree,
                Verdict::Silent | Verdict::Ambiguous => continue,
            };
            *counter = counter.saturating_add_signed(step);
        }
    }

    /// More than 99 % of the ends that can be judged agree.
    pub(crate) fn hash_holds(&self) -> bool {
        self.agree > self.disagree.saturating_mul(99)
    }

    /// More ends follow the hash than not: enough for one that is alone with its partner on their port.
    pub(crate) fn hash_usual(&self) -> bool {
        self.agree > self.disagree
    }

    /// Whether equal ports can only mean equal connections (see [`super::port`]).
    pub(crate) fn ports_match(&self) -> bool {
        let single = self.up.len == 1 && self.down.len == 1;
        single || self.common == 0 && self.lonely.saturating_mul(2) < self.ports
    }
}
