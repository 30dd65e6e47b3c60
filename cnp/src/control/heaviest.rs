//! Contributors of a queue, heaviest first, sorted lazily.
//!
//! A round mostly signals about a hundred of several thousand contributors; those that it does not reach are never sorted.

/// Number of contributors sorted at first; each later step doubles it.
const FIRST: usize = 128;

/// Contributors as (bytes, flow index); the first `ordered` are sorted.
#[derive(Debug)]
pub(super) struct Heaviest<'a> {
    all: &'a mut [(u64, u32)],
    ordered: usize,
}

impl<'a> Heaviest<'a> {
    pub(super) const fn of(all: &'a mut [(u64, u32)]) -> Heaviest<'a> {
        Heaviest { all, ordered: 0 }
    }

    /// Returns the contributor at `place`, heaviest first; sorts more of them if need be.
    pub(super) fn at(&mut self, place: usize) -> Option<(u64, u32)> {
        while place >= self.ordered && self.ordered < self.all.len() {
            self.order_more();
        }
        self.all.get(place).copied()
    }

    fn order_more(&mut self) {
        let Some(rest) = self.all.get_mut(self.ordered..) else {
            return;
        };
        let more = self.ordered.max(FIRST).min(rest.len());
        if more < rest.len() {
            rest.select_nth_unstable_by(more - 1, |a, b| b.cmp(a));
        }
        if let Some(next) = rest.get_mut(..more) {
            next.sort_unstable_by(|a, b| b.cmp(a));
        }
        self.ordered += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_come_as_if_all_were_sorted(mut all in prop::collection::vec((0u64..50, any::<u32>()), 0..1_500)) {
            let mut sorted = all.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let mut heaviest = Heaviest::of(&mut all);
            let given: Vec<_> = (0..).map_while(|place| heaviest.at(place)).collect();
            prop_assert_eq!(given, sorted);
        }
    }

    #[test]
    fn contributors_not_reached_are_not_sorted() {
        let mut all: Vec<_> = (0..4_096u32).map(|flow| (u64::from(flow), flow)).collect();
        let mut heaviest = Heaviest::of(&mut all);
        assert_eq!(heaviest.at(FIRST - 1), Some((3_968, 3_968)));
        assert_eq!(heaviest.ordered, FIRST);
    }
}
