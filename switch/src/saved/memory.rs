//! Memory of one layout, left in the store for the next process.
//!
//! Law: it begins with a mark, a version and the number of its layout; memory that begins otherwise is of another program or version and
//! is not read. The mark is written last, so that memory whose maker ended half-way is not read either.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use npcc_heap::records::{self, Place, Ring, Words};
use npcc_heap::shared::SharedWords;
use npcc_pipeline::counters::Path;

use npcc_engine::store::Store;

/// Mark at the beginning of the memory: `npcckeep`.
const MARK: u64 = u64::from_be_bytes(*b"npcckeep");
/// Version of this memory layout.
const VERSION: u64 = 1;
/// Number of words before the layout's own.
const HEAD: usize = 4;

/// Memory of one layout, left in the store.
#[derive(Debug)]
pub(super) struct Memory(SharedWords);

/// Returns the number of a layout: the hash of the text that describes it.
fn number(layout: &str) -> u64 {
    Path::ROOT.then(layout).number()
}

impl Memory {
    /// Maps the memory that the process before left by this name; `None` if it left none.
    ///
    /// # Errors
    /// The reason why the memory is not read.
    pub(super) fn left(store: &Store, name: &str, layout: &str) -> Result<Option<Memory>, String> {
        let Some(fd) = store.take(name) else {
            return Ok(None);
        };
        let words = SharedWords::of(fd).map_err(|error| error.to_string())?;
        let head = |at: usize| {
            words
                .words()
                .get(at)
                .map(|word| word.load(Ordering::Acquire))
        };
        if head(0) != Some(MARK) {
            return Err("it was not finished, or is of another program".to_owned());
        }
        if head(1) != Some(VERSION) || head(2) != Some(number(layout)) {
            return Err("it is of another version".to_owned());
        }
        Ok(Some(Memory(words)))
    }

    /// Creates memory of `words` words, all zero; `fill` writes the initial contents, and then it is left for the next process.
    ///
    /// # Errors
    /// There is no room, or the service manager does not listen.
    pub(super) fn new(
        store: &Store,
        (name, layout): (&str, &str),
        words: usize,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> io::Result<Memory> {
        let memory = Memory(SharedWords::new(&format!("npcc-{name}"), HEAD + words)?);
        fill(memory.words());
        let head = [MARK, VERSION, number(layout)];
        for (word, value) in memory.0.words().iter().zip(head).rev() {
            word.store(value, Ordering::Release);
        }
        store.save(name, memory.0.as_fd())?;
        Ok(memory)
    }

    fn ring(self, slots: usize) -> Ring {
        let place = place(slots, self.words().len());
        Ring::new(Arc::new(self), place)
    }

    /// Returns a second descriptor of the memory.
    #[cfg(test)]
    pub(super) fn descriptor(&self) -> std::os::fd::OwnedFd {
        self.0.as_fd().try_clone_to_owned().unwrap()
    }
}

/// Returns the ring of records of this name that the process before left, or a new one, for records of at most `longest` words. `note`
/// receives the reason why an old one is not used.
///
/// # Errors
/// There is no room, or the service manager does not listen.
pub(super) fn ring(
    store: &Store,
    (name, layout): (&str, &str),
    (slots, longest): (usize, usize),
    note: &mut dyn FnMut(String),
) -> io::Result<Ring> {
    let left = Memory::left(store, name, layout).unwrap_or_else(|why| {
        note(format!(
            "what the switch before left as `{name}` is not used: {why}"
        ));
        None
    });
    let left = left.map(|memory| memory.ring(slots));
    let newest = left.as_ref().and_then(Ring::newest);
    if newest.is_none()
        && left
            .as_ref()
            .is_some_and(|left| left.read().inconsistent > 0)
    {
        note(format!("the switch before left nothing whole as `{name}`"));
    }
    // A ring left by an older version has shorter records: its newest record is copied to a new ring.
    if let Some(left) = left.filter(|left| left.longest() >= longest) {
        return Ok(left);
    }
    let place = place(slots, slots * (records::HEAD + longest));
    let memory = Memory::new(store, (name, layout), place.words(), |words| {
        if let Some(newest) = newest {
            records::write(words, place, 1, newest.words);
        }
    })?;
    Ok(memory.ring(slots))
}

/// Returns the place of a ring of `slots` records that fills `words` words.
const fn place(slots: usize, words: usize) -> Place {
    Place {
        first: 0,
        slots,
        width: words / slots,
    }
}

impl Words for Memory {
    /// Returns the words of the layout itself.
    fn words(&self) -> &[AtomicU64] {
        self.0.words().get(HEAD..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    fn given(memory: &Memory) -> Store {
        let fd = memory.0.as_fd().try_clone_to_owned().unwrap();
        Store::of(vec![("t".to_owned(), fd)])
    }

    #[test]
    fn what_is_of_another_layout_version_or_half_made_is_not_read() {
        let none = Store::default();
        let memory = Memory::new(&none, ("t", "a 1"), 10, |words| {
            words[9].store(7, Ordering::Relaxed);
        });
        let memory = memory.unwrap();
        let left = Memory::left(&given(&memory), "t", "a 1").unwrap().unwrap();
        assert_eq!(left.words().len(), 10);
        assert_eq!(left.words()[9].load(Ordering::Relaxed), 7);
        let of = |why: Result<Option<Memory>, String>| why.map(|left| left.is_some());
        assert_eq!(of(Memory::left(&none, "t", "a 1")), Ok(false));
        let other = of(Memory::left(&given(&memory), "t", "a 2"));
        assert!(other.is_err_and(|why| why.contains("another version")));
        memory.0.words()[1].store(VERSION + 1, Ordering::Relaxed);
        let other = of(Memory::left(&given(&memory), "t", "a 1"));
        assert!(other.is_err_and(|why| why.contains("another version")));
        memory.0.words()[0].store(0, Ordering::Relaxed);
        let torn = of(Memory::left(&given(&memory), "t", "a 1"));
        assert!(torn.is_err_and(|why| why.contains("not finished")));
        let file: OwnedFd = tempfile::tempfile().unwrap().into();
        let file = Store::of(vec![("t".to_owned(), file)]);
        assert!(of(Memory::left(&file, "t", "a 1")).is_err());
    }

    /// Numbers, lengths and sums as written by the version that had no rings of records: its lists outlive the upgrade.
    #[test]
    fn lists_in_the_words_of_the_first_version_are_read_and_a_damaged_one_is_not() {
        let list = |damage: usize| {
            let even = [2, 4, 0x4e01_8a82_c01f_47d7, 8, 9, 10, 11];
            let odd = [1, 3, 0x5cd1_e3ae_e1b4_6f7c, 5, 6, 7, 99];
            let mut words = [even, odd].concat();
            words[damage] ^= 1;
            let words: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
            let place = place(2, words.len());
            Ring::new(Arc::new(words), place).newest().unwrap().words
        };
        // Words after the end of the older list are no part of it.
        assert_eq!(list(13), [8, 9, 10, 11]);
        assert_eq!(list(10), [8, 9, 10, 11]);
        assert_eq!(list(3), [5, 6, 7]);
    }

    #[test]
    fn a_ring_that_another_process_left_goes_on_in_more_room_where_it_needs_more() {
        let memory = Memory::new(&Store::default(), ("t", "a 1"), 14, |words| {
            records::write(words, place(2, 14), 6, [1, 2]);
        });
        let memory = memory.unwrap();
        let open = |longest| {
            let mut said = Vec::new();
            let note = &mut |line| said.push(line);
            let ring = ring(&given(&memory), ("t", "a 1"), (2, longest), note).unwrap();
            assert_eq!((ring.newest().unwrap().words, said), (vec![1, 2], vec![]));
            ring
        };
        let same = open(4);
        same.push([3]);
        assert_eq!((same.written(), same.longest()), (7, 4));
        same.push([1, 2]);
        let more = open(5);
        more.push(0..5);
        assert_eq!((more.newest().unwrap().words.len(), more.written()), (5, 2));
        // Two numbers without lists.
        for word in [0, 7] {
            memory.words()[word].store(9, Ordering::Relaxed);
        }
        let mut said = Vec::new();
        let ring = ring(&given(&memory), ("t", "a 1"), (2, 4), &mut |line| {
            said.push(line)
        });
        assert_eq!(ring.unwrap().newest(), None);
        assert!(said[0].contains("nothing whole"), "{said:?}");
    }
}
