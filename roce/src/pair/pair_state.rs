//! State of an address pair: number of queue pairs, behaviour of their ports, validity of the port hash.

use crate::fixed_map::MapKey;
use crate::key::FlowKey;

/// Key of an address pair: two addresses, in one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PairKey {
    low: [u64; 2],
    high: [u64; 2],
    v6: bool,
    /// True for unreliable datagrams, which are kept separately: they prove nothing about connections.
    datagrams: bool,
}

impl MapKey for PairKey {}

/// Direction between the two addresses: from the lower, or from the higher.
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

    /// Key for the datagrams between these addresses.
    pub(crate) const fn of_datagrams(self) -> PairKey {
        PairKey {
            datagrams: true,
            ..self
        }
    }
}

/// Verdict of the port hash on an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
    /// No endpoint of the other direction has this port, or too many to compare.
    #[default]
    Silent,
    /// Exactly one endpoint with the port fits.
    Agree,
    /// Endpoints have the port, but none fits.
    Disagree,
    /// More than one endpoint with the port fits.
    Ambiguous,
}

/// Endpoints of an address pair that follow the hash, and that do not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Score {
    agree: u32,
    disagree: u32,
}

impl Score {
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

    /// Returns true if more than 99 % of the endpoints that can be judged agree.
    pub(crate) const fn holds(self) -> bool {
        self.agree > self.disagree.saturating_mul(99)
    }

    /// Returns true if more endpoints follow the hash than not: enough for one that is alone with its partner on their port.
    pub(crate) const fn is_usual(self) -> bool {
        self.agree > self.disagree
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairState {
    /// Number of endpoints of each direction.
    up: u32,
    down: u32,
    /// Endpoints that follow the hash and that do not, by own ends alone.
    pub(crate) own: Score,
    /// The same by own ends and reported ones together.
    pub(crate) shared: Score,
    /// Number of UDP source ports of RC seen in any direction.
    pub(crate) ports: u32,
    /// Number of UDP source ports of RC seen in one direction only.
    pub(crate) lonely: u32,
    /// Number of queue pair numbers seen in both directions.
    pub(crate) common: u32,
}

impl PairState {
    /// Returns the number of endpoints of a direction.
    pub(crate) const fn endpoints(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }

    /// Adds one to the number of endpoints of a direction if `more`, else takes one off.
    pub(crate) const fn count(&mut self, direction: Direction, more: bool) {
        let count = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        *count = count.saturating_add_signed(if more { 1 } else { -1 });
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.up == 0 && self.down == 0
    }

    /// Returns true if two endpoints of opposite directions with the same UDP source port can only belong to one connection (see [`super::port`]).
    pub(crate) fn ports_match(&self) -> bool {
        let single = self.up == 1 && self.down == 1;
        single || self.common == 0 && self.lonely.saturating_mul(2) < self.ports
    }
}
