//! Memory of one layout, left in the store for the next process.
//!
//! Law: it begins with a mark, a version and the number of its layout; what begins otherwise is of another program or version and is
//! not read. The mark is written last, so that memory whose maker ended half-way is not read either.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use npcc_heap::records::Words;
use npcc_heap::shared::SharedWords;
use npcc_pipeline::counters::Path;

use super::store::Store;

/// `npcckeep`.
const MARK: u64 = u64::from_be_bytes(*b"npcckeep");
/// Version of this memory layout.
const VERSION: u64 = 1;
/// Words before the layout's own.
const HEAD: usize = 4;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Memory(SharedWords);

/// The number of a layout: of the text that tells it.
fn number(layout: &str) -> u64 {
    Path::ROOT.then(layout).number()
}

impl Memory {
    /// What the process before left by this name; none if it left nothing.
    ///
    /// # Errors
    /// Why what it left is not read.
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

    /// New memory of so many words, all zero; `fill` writes what it begins with, and then it is left for the next process.
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
        store.keep(name, memory.0.as_fd())?;
        Ok(memory)
    }

    /// A second descriptor of it.
    #[cfg(test)]
    pub(super) fn descriptor(&self) -> std::os::fd::OwnedFd {
        self.0.as_fd().try_clone_to_owned().unwrap()
    }
}

impl Words for Memory {
    /// The layout's own words.
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
}
