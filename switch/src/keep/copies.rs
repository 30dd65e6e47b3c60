//! A list of words that is written as a whole: a ring of two records in memory that outlives the process.
//!
//! Law: whenever the writer is killed, the newest whole record is the list it wrote last or the one before.

use std::io;
use std::sync::Arc;

use npcc_heap::records::{self, HEAD, Place, Ring, Words as _};

use super::memory::Memory;
use super::store::Store;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Copies {
    name: &'static str,
    layout: &'static str,
    ring: Ring,
}

impl Copies {
    /// The list that the process before left, if it left one, and where the next is written: with room for so many words at least.
    ///
    /// # Errors
    /// Nothing can be left. `note` gets the reason why what was left is not read.
    pub(super) fn open(
        store: &Store,
        (name, layout): (&'static str, &'static str),
        room: usize,
        note: &mut dyn FnMut(String),
    ) -> io::Result<(Copies, Option<Vec<u64>>)> {
        let left = Memory::left(store, name, layout).unwrap_or_else(|why| {
            note(format!(
                "what the switch before left as `{name}` is not used: {why}"
            ));
            None
        });
        let left = left.map(ring);
        let list = left.as_ref().map(|left| left.newest().map(|one| one.words));
        if let Some(None) = list {
            note(format!("the switch before left nothing whole as `{name}`"));
        }
        let list = list.flatten();
        let ring = match left.filter(|left| left.longest() >= room) {
            Some(left) => left,
            None => made(
                store,
                (name, layout),
                room,
                list.as_deref().unwrap_or_default(),
            )?,
        };
        let copies = Copies { name, layout, ring };
        Ok((copies, list))
    }

    /// Writes a list in the place of the older one; in more memory where it wants more.
    ///
    /// # Errors
    /// There is no more, or the service manager does not listen: what was written before stays.
    pub(super) fn write(&mut self, store: &Store, list: &[u64]) -> io::Result<()> {
        if list.len() > self.ring.longest() {
            self.ring = made(store, (self.name, self.layout), 2 * list.len(), list)?;
        } else {
            self.ring.push(list.iter().copied());
        }
        Ok(())
    }
}

/// The two records in so many words.
const fn place(words: usize) -> Place {
    Place {
        first: 0,
        slots: 2,
        width: words / 2,
    }
}

fn ring(memory: Memory) -> Ring {
    let place = place(memory.words().len());
    Ring::new(Arc::new(memory), place)
}

/// New memory that holds a list, with room for so many words.
fn made(store: &Store, what: (&str, &str), room: usize, list: &[u64]) -> io::Result<Ring> {
    let words = 2 * (HEAD + room.max(list.len()));
    let memory = Memory::new(store, what, words, |words| {
        records::write(words, place(words.len()), 1, list.iter().copied());
    })?;
    Ok(ring(memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Numbers, lengths and sums as the version wrote them that had no rings of records: its lists outlive the upgrade.
    #[test]
    fn lists_in_the_words_of_the_first_version_are_read_and_a_damaged_one_is_not() {
        let newest = |damage: usize| {
            let even = [2, 4, 0x4e01_8a82_c01f_47d7, 8, 9, 10, 11];
            let odd = [1, 3, 0x5cd1_e3ae_e1b4_6f7c, 5, 6, 7, 99];
            let mut words = [even, odd].concat();
            words[damage] ^= 1;
            let words: Vec<AtomicU64> = words.into_iter().map(AtomicU64::new).collect();
            let place = place(words.len());
            Ring::new(Arc::new(words), place).newest()
        };
        let list = |damage| newest(damage).unwrap().words;
        assert_eq!(
            list(13),
            [8, 9, 10, 11],
            "what lies behind the older list is no part of it"
        );
        assert_eq!(list(10), [8, 9, 10, 11]);
        assert_eq!(list(3), [5, 6, 7]);
    }

    #[test]
    fn memory_that_another_process_left_is_read_and_written_on() {
        let store = Store::default();
        let mut said = Vec::new();
        let memory = Memory::new(&store, ("t", "t 1"), 2 * (HEAD + 4), |words| {
            records::write(words, place(words.len()), 6, [1, 2]);
        });
        let left = Store::of(vec![("t".to_owned(), memory.unwrap().descriptor())]);
        let (mut copies, list) =
            Copies::open(&left, ("t", "t 1"), 4, &mut |line| said.push(line)).unwrap();
        assert_eq!((list, said.len()), (Some(vec![1, 2]), 0));
        copies.write(&store, &[3]).unwrap();
        let newest = copies.ring.newest().unwrap();
        assert_eq!((newest.number, newest.words), (7, vec![3]));
    }

    #[test]
    fn a_list_that_grows_gets_more_room_and_goes_on() {
        let store = Store::default();
        let mut said = Vec::new();
        let (mut copies, list) =
            Copies::open(&store, ("t", "t 1"), 2, &mut |line| said.push(line)).unwrap();
        assert_eq!((list, said.len()), (None, 0));
        for long in [1usize, 2, 2, 7, 3, 20] {
            let list: Vec<u64> = (0..long as u64).collect();
            copies.write(&store, &list).unwrap();
            assert_eq!(copies.ring.newest().unwrap().words, list);
        }
    }
}
