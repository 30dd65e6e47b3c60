//! Counters that continue where the process before ended.
//!
//! A count that is shown is the sum of the counts of this process and of those before: [`Ledger::settle`] adds them, and writes down the
//! sum *before* anybody sees it. The counters themselves, which the workers write, are in ordinary memory, begin at 0 and know nothing
//! of it.
//!
//! Law: the shown value of a counter is never less than an earlier shown value, in this process or in one that left its ledger; counts
//! since it was last shown or read ([`crate::saved::EVERY`]) may be missing after a kill. A place holds one number, written in one store,
//! so that it is never torn; it belongs to the counter's name ([`Path`]), so that another version or another configuration finds the
//! counters it has in common.

use std::sync::atomic::{AtomicU64, Ordering};

use npcc_heap::records::Words as _;
use npcc_pipeline::counters::Path;

use super::memory::Memory;
use npcc_engine::store::Store;

/// Number of places: 32 ports have some 8,000 counters.
const PLACES: usize = 1 << 16;
/// Description of the layout; its hash tells layouts apart.
const LAYOUT: &str = "places of 2 words: FNV-1a of the counter's names, its count; open addressing";
const NAME: &str = "counters";

/// Ledger of the counts that were shown. By default it keeps nothing.
#[derive(Debug, Default)]
pub struct Ledger {
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    memory: Memory,
    /// Counts of the processes before, by place.
    before: Vec<u64>,
}

impl Ledger {
    /// Opens the ledger that the process before left, or an empty one. `note` receives the reason why an old one is not used, or that nothing
    /// is kept.
    pub(super) fn open(store: &Store, note: &mut dyn FnMut(String)) -> Ledger {
        let left = Memory::left(store, NAME, LAYOUT).and_then(|left| match left {
            Some(memory) if memory.words().len() != 2 * PLACES => {
                Err("it has another size".to_owned())
            }
            left => Ok(left),
        });
        let left = left.unwrap_or_else(|why| {
            note(format!(
                "counters begin at 0: what the switch before left is not used: {why}"
            ));
            None
        });
        let made = || Memory::new(store, (NAME, LAYOUT), 2 * PLACES, |_| {});
        let memory = left.map_or_else(made, Ok);
        let kept = memory.map(|memory| {
            let (places, _) = memory.words().as_chunks::<2>();
            let before = places
                .iter()
                .map(|[_, count]| count.load(Ordering::Acquire));
            let before = before.collect();
            Kept { memory, before }
        });
        let kept =
            kept.map_err(|error| note(format!("counters do not outlive the switch: {error}")));
        Ledger { kept: kept.ok() }
    }

    /// Adds the counts of the processes before to `count`, and writes the sum down. Any thread may call it, at any time.
    pub fn settle(&self, path: Path, count: &mut u64) {
        let Some(kept) = &self.kept else { return };
        // Without a free place the shown count begins at 0 in each process.
        let Some((at, place)) = kept.place(path.number()) else {
            return;
        };
        *count = count.saturating_add(kept.before.get(at).copied().unwrap_or_default());
        place.fetch_max(*count, Ordering::Release);
    }
}

impl Kept {
    /// Returns the place of a number, allocated if it has none yet; `None` when all are taken.
    fn place(&self, number: u64) -> Option<(usize, &AtomicU64)> {
        let (places, _) = self.memory.words().as_chunks::<2>();
        let first = usize::try_from(number % PLACES as u64).unwrap_or_default();
        let around = (first..PLACES).chain(0..first);
        for at in around {
            let [owner, count] = places.get(at)?;
            let found = match owner.load(Ordering::Acquire) {
                0 => {
                    let taken =
                        owner.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
                    taken.err().unwrap_or(number)
                }
                found => found,
            };
            if found == number {
                return Some((at, count));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ledger(left: Option<&Ledger>) -> Ledger {
        let handed = left.map(|ledger| {
            let fd = ledger.kept.as_ref().unwrap().memory.descriptor();
            (NAME.to_owned(), fd)
        });
        let mut said = Vec::new();
        let store = Store::of(handed.into_iter().collect());
        let ledger = Ledger::open(&store, &mut |line| said.push(line));
        assert_eq!(said, [""; 0]);
        ledger
    }

    proptest! {
        /// Checks the law for counters that grow, are shown or not, in processes that end at any time, some in the middle of showing.
        #[test]
        fn what_is_shown_never_goes_back(
            steps in proptest::collection::vec((0usize..40, 0u64..1000, 0u8..8), 1..200)
        ) {
            let mut now = ledger(None);
            let (mut live, mut shown) = ([0u64; 40], [0u64; 40]);
            for (counter, more, what) in steps {
                live[counter] += more;
                if what == 0 {
                    now = ledger(Some(&now));
                    live = [0; 40];
                }
                // Some or all counters are shown: the process may end half-way.
                let looked = if what < 3 { counter } else { 40 };
                for (n, live) in live.iter().enumerate().take(looked) {
                    let mut count = *live;
                    now.settle(Path::ROOT.at(n), &mut count);
                    prop_assert!(count >= shown[n] && count >= *live);
                    shown[n] = count;
                }
            }
        }
    }

    /// Law: counters whose names fall on one place are kept apart.
    #[test]
    fn a_place_is_one_counters() {
        let place = |n: usize| Path::ROOT.at(n).number() % PLACES as u64;
        let met = |n: &usize| (0..*n).find(|other| place(*other) == place(*n));
        let (one, other) = (0..).find_map(|n| Some((n, met(&n)?))).unwrap();
        let show = |ledger: &Ledger, n: usize, live: u64| {
            let mut count = live;
            ledger.settle(Path::ROOT.at(n), &mut count);
            count
        };
        let first = ledger(None);
        assert_eq!((show(&first, one, 10), show(&first, other, 500)), (10, 500));
        let second = ledger(Some(&first));
        assert_eq!((show(&second, one, 1), show(&second, other, 2)), (11, 502));
    }

    #[test]
    fn what_was_counted_before_is_added_once() {
        let path = Path::ROOT.then("port").then("dc0").then("rx");
        let first = ledger(None);
        let show = |ledger: &Ledger, live: u64| {
            let mut count = live;
            ledger.settle(path, &mut count);
            count
        };
        assert_eq!((show(&first, 10), show(&first, 25)), (10, 25));
        let second = ledger(Some(&first));
        assert_eq!(
            (show(&second, 0), show(&second, 5), show(&second, 5)),
            (25, 30, 30)
        );
        let third = ledger(Some(&second));
        assert_eq!(show(&third, 1), 31);
        assert_eq!(show(&Ledger::default(), 7), 7, "without a store");
    }
}
