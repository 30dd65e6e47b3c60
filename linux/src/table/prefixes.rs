//! Map by prefix: IPv4's in a map of its own, as a full table has a million of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use npcc_pipeline::route::prefix::{Family, Prefix};

/// Map by prefix that also counts the prefixes of each length.
#[derive(Debug)]
pub struct Prefixes<T> {
    v4: HashMap<(u32, u8), T, RandomState>,
    v6: HashMap<(u64, u64, u8), T, RandomState>,
    /// Number of prefixes of each family and length.
    lengths: [[usize; 129]; 2],
}

impl<T> Default for Prefixes<T> {
    fn default() -> Prefixes<T> {
        Prefixes {
            v4: HashMap::default(),
            v6: HashMap::default(),
            lengths: [[0; 129]; 2],
        }
    }
}

fn v4(prefix: Prefix) -> (u32, u8) {
    let top = u32::try_from(prefix.bits() >> 96).unwrap_or_default();
    (top, prefix.len())
}

fn v6(prefix: Prefix) -> (u64, u64, u8) {
    let [a, b, c, d, e, f, g, h, rest @ ..] = prefix.bits().to_be_bytes();
    let high = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    (high, u64::from_be_bytes(rest), prefix.len())
}

fn of_v4((bits, len): (u32, u8)) -> Option<Prefix> {
    Prefix::new(IpAddr::V4(Ipv4Addr::from_bits(bits)), len)
}

fn of_v6((high, low, len): (u64, u64, u8)) -> Option<Prefix> {
    let bits = u128::from(high) << 64 | u128::from(low);
    Prefix::new(IpAddr::V6(Ipv6Addr::from_bits(bits)), len)
}

impl<T> Prefixes<T> {
    /// Returns the value of a prefix.
    #[must_use]
    pub fn get(&self, prefix: Prefix) -> Option<&T> {
        match prefix.family() {
            Family::V4 => self.v4.get(&v4(prefix)),
            Family::V6 => self.v6.get(&v6(prefix)),
        }
    }

    /// Returns the value of a prefix for writing.
    pub fn get_mut(&mut self, prefix: Prefix) -> Option<&mut T> {
        match prefix.family() {
            Family::V4 => self.v4.get_mut(&v4(prefix)),
            Family::V6 => self.v6.get_mut(&v6(prefix)),
        }
    }

    /// Inserts or replaces the value of a prefix; returns the previous one.
    pub fn insert(&mut self, prefix: Prefix, value: T) -> Option<T> {
        let before = match prefix.family() {
            Family::V4 => self.v4.insert(v4(prefix), value),
            Family::V6 => self.v6.insert(v6(prefix), value),
        };
        if before.is_none() {
            self.count(prefix, 1);
        }
        before
    }

    /// Removes a prefix; returns its value.
    pub fn remove(&mut self, prefix: Prefix) -> Option<T> {
        let before = match prefix.family() {
            Family::V4 => self.v4.remove(&v4(prefix)),
            Family::V6 => self.v6.remove(&v6(prefix)),
        };
        if before.is_some() {
            self.count(prefix, -1);
        }
        before
    }

    /// Iterates over all prefixes with their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Prefix, &T)> {
        let v4 = self.v4.iter();
        let v4 = v4.filter_map(|(key, value)| Some((of_v4(*key)?, value)));
        let v6 = self.v6.iter();
        v4.chain(v6.filter_map(|(key, value)| Some((of_v6(*key)?, value))))
    }

    /// Number of prefixes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Number of prefixes of a family.
    #[must_use]
    pub fn len_of(&self, family: Family) -> usize {
        match family {
            Family::V4 => self.v4.len(),
            Family::V6 => self.v6.len(),
        }
    }

    /// Returns true if there are no prefixes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the prefixes that contain `prefix`, itself included, the longest first.
    pub fn covering(&self, prefix: Prefix) -> impl Iterator<Item = (Prefix, &T)> {
        let lengths = self.lengths.get(family_index(prefix.family()));
        let lengths = lengths.map_or(&[][..], |all| all.as_slice());
        let upto = lengths
            .iter()
            .enumerate()
            .take(usize::from(prefix.len()) + 1);
        upto.rev()
            .filter(|(_, count)| **count > 0)
            .filter_map(move |(len, _)| {
                let cover = prefix.covering(u8::try_from(len).ok()?);
                Some((cover, self.get(cover)?))
            })
    }

    fn count(&mut self, prefix: Prefix, change: isize) {
        let lengths = self.lengths.get_mut(family_index(prefix.family()));
        if let Some(count) = lengths.and_then(|all| all.get_mut(usize::from(prefix.len()))) {
            *count = count.saturating_add_signed(change);
        }
    }
}

const fn family_index(family: Family) -> usize {
    match family {
        Family::V4 => 0,
        Family::V6 => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> Prefix {
        let (address, len) = text.split_once('/').unwrap();
        Prefix::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_prefix_is_found_as_it_was_put_and_below_those_it_covers() {
        let mut all = Prefixes::default();
        let texts = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.0.0/16",
            "::/0",
            "2001:db8::/32",
        ];
        for (n, text) in texts.iter().enumerate() {
            assert_eq!(all.insert(prefix(text), n), None);
        }
        let mut back: Vec<_> = all
            .iter()
            .map(|(prefix, n)| (*n, prefix.to_string()))
            .collect();
        back.sort();
        assert_eq!(
            back.iter()
                .map(|(_, text)| text.as_str())
                .collect::<Vec<_>>(),
            texts
        );
        let covers =
            |text: &str| -> Vec<usize> { all.covering(prefix(text)).map(|(_, n)| *n).collect() };
        assert_eq!(covers("10.1.2.3/32"), [2, 1, 0]);
        assert_eq!(covers("10.0.0.0/8"), [1, 0]);
        assert_eq!(covers("2001:db8::1/128"), [4, 3]);
        assert_eq!(all.remove(prefix("10.1.0.0/16")), Some(2));
        assert_eq!(all.covering(prefix("10.1.2.3/32")).count(), 2);
    }
}
