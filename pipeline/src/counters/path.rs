//! Stable number of a counter: a hash of the names that lead to it, so that it is the same in every version that has the
//! counter.

/// FNV-1a hash of the names, each followed by a separator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(u64);

const PRIME: u64 = 0x0100_0000_01b3;

impl Path {
    /// Path before any name.
    pub const ROOT: Path = Path(0xcbf2_9ce4_8422_2325);

    /// Returns the path extended by a name.
    #[must_use]
    pub const fn then(self, name: &str) -> Path {
        let (mut hash, mut at, name) = (self.0, 0, name.as_bytes());
        while at < name.len() {
            #[expect(
                clippy::indexing_slicing,
                reason = "below the length; `get` is not const"
            )]
            let octet = name[at];
            hash = (hash ^ octet as u64).wrapping_mul(PRIME);
            at += 1;
        }
        Path((hash ^ 0x2f).wrapping_mul(PRIME))
    }

    /// Returns the path extended by an array index.
    #[must_use]
    pub const fn at(self, place: usize) -> Path {
        Path((self.0 ^ 0x100 ^ place as u64).wrapping_mul(PRIME))
    }

    /// Returns the number, which is never 0.
    #[must_use]
    pub const fn number(self) -> u64 {
        if self.0 == 0 { 1 } else { self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_another_way_has_another_number() {
        let port = Path::ROOT.then("port").then("dc0");
        let all = [
            Path::ROOT,
            port,
            port.then("rx"),
            port.then("r").then("x"),
            port.at(0),
            port.at(1),
            Path::ROOT.then("port").then("dc").then("0"),
        ];
        for (n, one) in all.iter().enumerate() {
            assert!(all[..n].iter().all(|other| other.number() != one.number()));
        }
        assert_eq!(port.number(), Path::ROOT.then("port").then("dc0").number());
    }
}
