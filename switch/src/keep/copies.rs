//! A list of words that is written as a whole: two copies in memory that outlives the process, the newer one whole.
//!
//! Law: whenever the writer ends, at whatever word, the copy it did not write to is as it was, and the one it wrote to is either
//! whole or not read: its number is taken away first and given last, and its sum is over all of it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::memory::Memory;
use super::store::Store;

/// Words of a copy before its list: its number, the words of the list, their sum.
const HEAD: usize = 3;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Copies {
    name: &'static str,
    layout: &'static str,
    memory: Memory,
    /// The number of the newest copy.
    newest: u64,
}

impl Copies {
    /// The list that the process before left, if it left one, and where the next is written: with room for so many words at least.
    ///
    /// # Errors
    /// Nothing can be left. `note` is told why what was left is not read.
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
        let found = left.as_ref().map(|memory| newest(memory.words()));
        if let Some(None) = found {
            note(format!("the switch before left nothing whole as `{name}`"));
        }
        let (newest, list) = found.flatten().unzip();
        let of = |memory, newest| Copies {
            name,
            layout,
            memory,
            newest,
        };
        if let Some(memory) = left.filter(|left| left.words().len() >= 2 * (HEAD + room)) {
            return Ok((of(memory, newest.unwrap_or(0)), list));
        }
        let memory = made(
            store,
            (name, layout),
            room,
            list.as_deref().unwrap_or_default(),
        )?;
        Ok((of(memory, 1), list))
    }

    /// Writes a list in the place of the older one; in more memory where it wants more.
    ///
    /// # Errors
    /// There is no more, or the service manager does not listen: what was written before stays.
    pub(super) fn write(&mut self, store: &Store, list: &[u64]) -> io::Result<()> {
        let half = self.memory.words().len() / 2;
        if HEAD + list.len() > half {
            self.memory = made(store, (self.name, self.layout), 2 * list.len(), list)?;
            self.newest = 1;
            return Ok(());
        }
        let copies = self.memory.words().split_at_checked(half);
        let Some((even, odd)) = copies else {
            return Ok(());
        };
        let next = self.newest + 1;
        write(if next.is_multiple_of(2) { even } else { odd }, next, list);
        self.newest = next;
        Ok(())
    }
}

fn made(store: &Store, what: (&str, &str), room: usize, list: &[u64]) -> io::Result<Memory> {
    let room = HEAD + room.max(list.len());
    Memory::new(store, what, 2 * room, |words| {
        write(words.get(room..).unwrap_or_default(), 1, list);
    })
}

/// Writes a copy.
fn write(copy: &[AtomicU64], number: u64, list: &[u64]) {
    let Some(([own, length, sum], place)) = copy.split_first_chunk::<HEAD>() else {
        return;
    };
    own.store(0, Ordering::Relaxed);
    // Nothing of the list is seen by whoever does not see that the number is gone.
    fence(Ordering::SeqCst);
    length.store(list.len() as u64, Ordering::Relaxed);
    sum.store(sum_of(number, list.iter().copied()), Ordering::Relaxed);
    for (word, value) in place.iter().zip(list) {
        word.store(*value, Ordering::Relaxed);
    }
    own.store(number, Ordering::Release);
}

/// The newest whole copy: its number and its list.
fn newest(words: &[AtomicU64]) -> Option<(u64, Vec<u64>)> {
    let (even, odd) = words.split_at_checked(words.len() / 2)?;
    let both = [read(even), read(odd)].into_iter().flatten();
    both.max_by_key(|(number, _)| *number)
}

/// A copy, if it is whole.
fn read(copy: &[AtomicU64]) -> Option<(u64, Vec<u64>)> {
    let (head, list) = copy.split_first_chunk::<HEAD>()?;
    let [number, length, sum] = head.each_ref().map(|word| word.load(Ordering::Acquire));
    let list = list.get(..usize::try_from(length).ok()?)?;
    let list: Vec<u64> = list
        .iter()
        .map(|word| word.load(Ordering::Relaxed))
        .collect();
    let whole = number != 0 && sum == sum_of(number, list.iter().copied());
    whole.then_some((number, list))
}

/// A sum that another list, another order or another number does not have, but by a chance of 1 in 2^64.
fn sum_of(number: u64, list: impl Iterator<Item = u64>) -> u64 {
    let mix = |sum: u64, word: u64| {
        let mixed = (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    };
    list.fold(mix(!0, number), mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    fn seen(words: &[AtomicU64]) -> Vec<u64> {
        words
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect()
    }

    /// Every word of a copy in its turn is the last that is written; then the list before it holds, or the new one if all was.
    #[test]
    fn whoever_ends_in_the_middle_of_a_list_leaves_the_one_before() {
        let all = words(2 * (HEAD + 4));
        let (even, odd) = all.split_at(HEAD + 4);
        write(odd, 1, &[5, 6, 7]);
        write(even, 2, &[8, 9, 10, 11]);
        let (before, old) = (seen(odd), vec![8, 9, 10, 11]);
        write(odd, 3, &[1, 2]);
        let after = seen(odd);
        // In the order of the writer: number taken away, length, sum, list, number.
        let order = [0, 1, 2, 3, 4];
        for last in 0..order.len() {
            let torn: Vec<AtomicU64> = before.iter().map(|word| AtomicU64::new(*word)).collect();
            torn[0].store(0, Ordering::Relaxed);
            for at in order.iter().skip(1).take(last) {
                torn[*at].store(after[*at], Ordering::Relaxed);
            }
            let both: Vec<AtomicU64> = seen(even)
                .into_iter()
                .chain(seen(&torn))
                .map(AtomicU64::new)
                .collect();
            assert_eq!(newest(&both), Some((2, old.clone())), "{last}");
        }
        assert_eq!(newest(&all), Some((3, vec![1, 2])));
        // A word that changed by itself.
        odd[HEAD].store(9, Ordering::Relaxed);
        assert_eq!(newest(&all), Some((2, old)));
        odd[1].store(u64::MAX, Ordering::Relaxed);
        even[0].store(0, Ordering::Relaxed);
        assert_eq!(newest(&all), None);
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
            assert_eq!(newest(copies.memory.words()).unwrap().1, list);
        }
    }
}
