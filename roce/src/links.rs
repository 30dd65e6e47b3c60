//! Intrusive lists, whose links lie in their entries: nothing is allocated, and every step is a few stores.

/// Index of no entry.
pub const NONE: u32 = u32::MAX;

/// Neighbours of an entry in a list; [`NONE`] where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Links {
    pub(crate) previous: u32,
    /// Index of the next entry of the list, or [`NONE`].
    pub next: u32,
}

impl Links {
    /// Links of an entry that is in no list, or alone in one.
    pub const NONE: Links = Links {
        previous: NONE,
        next: NONE,
    };
}

/// Store of entries by index.
pub trait Entries {
    /// Type of an entry.
    type Entry;

    /// Entry at this index.
    fn entry_mut(&mut self, index: u32) -> Option<&mut Self::Entry>;
}

/// Links an entry between two others, each of which may be [`NONE`]. `links` finds the links of this list in an entry.
pub(crate) fn link<E: Entries + ?Sized>(
    entries: &mut E,
    links: impl Fn(&mut E::Entry) -> &mut Links,
    index: u32,
    between: Links,
) {
    if let Some(entry) = entries.entry_mut(between.previous) {
        links(entry).next = index;
    }
    if let Some(entry) = entries.entry_mut(between.next) {
        links(entry).previous = index;
    }
    if let Some(entry) = entries.entry_mut(index) {
        *links(entry) = between;
    }
}

/// Unlinks an entry from between its neighbours, and returns these.
pub(crate) fn unlink<E: Entries + ?Sized>(
    entries: &mut E,
    links: impl Fn(&mut E::Entry) -> &mut Links,
    index: u32,
) -> Links {
    let entry = entries.entry_mut(index);
    let between = entry.map(|entry| std::mem::replace(links(entry), Links::NONE));
    let between = between.unwrap_or(Links::NONE);
    if let Some(entry) = entries.entry_mut(between.previous) {
        links(entry).next = between.next;
    }
    if let Some(entry) = entries.entry_mut(between.next) {
        links(entry).previous = between.previous;
    }
    between
}

/// A list: its first and its last entry, and its length.
#[derive(Debug, Clone, Copy)]
pub struct List {
    /// Index of the first entry, or [`NONE`].
    pub head: u32,
    /// Index of the last entry, or [`NONE`].
    pub tail: u32,
    /// Number of entries.
    pub len: u32,
}

impl Default for List {
    fn default() -> List {
        List::EMPTY
    }
}

impl List {
    /// List without entries.
    pub const EMPTY: List = List {
        head: NONE,
        tail: NONE,
        len: 0,
    };

    /// Adds an entry that is in no such list at the front.
    #[inline]
    pub fn push_front<E: Entries + ?Sized>(
        &mut self,
        entries: &mut E,
        links: impl Fn(&mut E::Entry) -> &mut Links,
        index: u32,
    ) {
        let next = std::mem::replace(&mut self.head, index);
        if next == NONE {
            self.tail = index;
        }
        self.len += 1;
        let previous = NONE;
        link(entries, links, index, Links { previous, next });
    }

    /// Adds an entry that is in no such list at the back.
    #[inline]
    pub fn push_back<E: Entries + ?Sized>(
        &mut self,
        entries: &mut E,
        links: impl Fn(&mut E::Entry) -> &mut Links,
        index: u32,
    ) {
        let previous = std::mem::replace(&mut self.tail, index);
        if previous == NONE {
            self.head = index;
        }
        self.len += 1;
        let next = NONE;
        link(entries, links, index, Links { previous, next });
    }

    /// Removes an entry of this list.
    #[inline]
    pub fn remove<E: Entries + ?Sized>(
        &mut self,
        entries: &mut E,
        links: impl Fn(&mut E::Entry) -> &mut Links,
        index: u32,
    ) {
        let Links { previous, next } = unlink(entries, links, index);
        if self.head == index {
            self.head = next;
        }
        if self.tail == index {
            self.tail = previous;
        }
        self.len = self.len.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Entries for Vec<Links> {
        type Entry = Links;

        fn entry_mut(&mut self, index: u32) -> Option<&mut Links> {
            self.get_mut(index as usize)
        }
    }

    /// Collects the entries of a list from its head, and checks every link back.
    fn walk(list: &List, entries: &[Links]) -> Vec<u32> {
        let (mut all, mut before, mut at) = (Vec::new(), NONE, list.head);
        while let Some(links) = entries.get(at as usize) {
            assert_eq!(links.previous, before);
            all.push(at);
            (before, at) = (at, links.next);
        }
        assert_eq!(list.tail, before);
        all
    }

    proptest! {
        #[test]
        fn a_list_is_what_was_put_in_and_not_taken_out(steps in prop::collection::vec((0u32..8, any::<bool>()), 0..100)) {
            let (mut list, mut entries, mut model) = (List::EMPTY, vec![Links::NONE; 8], Vec::new());
            for (index, front) in steps {
                if let Some(at) = model.iter().position(|one| *one == index) {
                    model.remove(at);
                    list.remove(&mut entries, |links| links, index);
                } else if front {
                    model.insert(0, index);
                    list.push_front(&mut entries, |links| links, index);
                } else {
                    model.push(index);
                    list.push_back(&mut entries, |links| links, index);
                }
                prop_assert_eq!(&walk(&list, &entries), &model);
                prop_assert_eq!(list.len as usize, model.len());
            }
        }
    }
}
