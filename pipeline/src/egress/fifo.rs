//! Queues of any length out of one fixed store.
//!
//! The store hands out segments of 32 cells; a queue is a chain of them. A push or pop touches one cell in a row of cells,
//! so deep queues stay kind to the cache, and the memory is bounded by the frames there can be, not by queues times depth.

const SEGMENT: usize = 32;
const NONE: u32 = u32::MAX;

/// Cells for all queues of a worker.
#[derive(Debug)]
pub struct FifoStore<T> {
    cells: Box<[Option<T>]>,
    next: Box<[u32]>,
    free: u32,
}

/// One queue; its items live in the store it is always used with.
#[derive(Debug)]
pub struct Fifo {
    head: u32,
    tail: u32,
    /// Index in the head segment of the next item to pop.
    head_at: usize,
    /// Index in the tail segment of the next free cell.
    tail_at: usize,
    len: usize,
}

impl<T> FifoStore<T> {
    /// Room for `items` items in up to `queues` queues at once.
    #[must_use]
    pub fn new(items: usize, queues: usize) -> FifoStore<T> {
        // A queue may waste most of its first and of its last segment.
        let segments = items.div_ceil(SEGMENT) + 2 * queues;
        let count = u32::try_from(segments).unwrap_or(NONE - 1).min(NONE - 1);
        FifoStore {
            cells: (0..count as usize * SEGMENT).map(|_| None).collect(),
            next: (0..count)
                .map(|index| if index + 1 < count { index + 1 } else { NONE })
                .collect(),
            free: if count == 0 { NONE } else { 0 },
        }
    }

    fn take_segment(&mut self) -> Option<u32> {
        let segment = self.free;
        let next = self.next.get_mut(segment as usize)?;
        self.free = *next;
        *next = NONE;
        Some(segment)
    }

    fn give_segment(&mut self, segment: u32) {
        if let Some(next) = self.next.get_mut(segment as usize) {
            *next = self.free;
            self.free = segment;
        }
    }

    #[inline]
    fn cell(&mut self, segment: u32, at: usize) -> Option<&mut Option<T>> {
        self.cells.get_mut(segment as usize * SEGMENT + at)
    }
}

impl Default for Fifo {
    fn default() -> Fifo {
        Fifo {
            head: NONE,
            tail: NONE,
            head_at: 0,
            tail_at: 0,
            len: 0,
        }
    }
}

impl Fifo {
    /// Items waiting.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Nothing waits.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an item.
    ///
    /// # Errors
    /// The item itself, when the store is full.
    #[inline]
    pub fn push<T>(&mut self, store: &mut FifoStore<T>, item: T) -> Result<(), T> {
        if (self.tail == NONE || self.tail_at == SEGMENT) && !self.grow(store) {
            return Err(item);
        }
        match store.cell(self.tail, self.tail_at) {
            Some(cell) => *cell = Some(item),
            None => return Err(item),
        }
        self.tail_at += 1;
        self.len += 1;
        Ok(())
    }

    /// Appends items while the store has room, and returns how many; the others stay with the iterator.
    #[inline]
    pub fn extend<T>(
        &mut self,
        store: &mut FifoStore<T>,
        items: &mut impl ExactSizeIterator<Item = T>,
    ) -> usize {
        let before = self.len;
        while items.len() > 0 {
            if (self.tail == NONE || self.tail_at == SEGMENT) && !self.grow(store) {
                break;
            }
            let start = self.tail as usize * SEGMENT + self.tail_at;
            let room = (SEGMENT - self.tail_at).min(items.len());
            let Some(cells) = store.cells.get_mut(start..start + room) else {
                break;
            };
            for (cell, item) in cells.iter_mut().zip(items.by_ref()) {
                // A free cell holds nothing, so nothing is forgotten.
                std::mem::forget(cell.replace(item));
            }
            self.tail_at += room;
            self.len += room;
        }
        self.len - before
    }

    #[cold]
    fn grow<T>(&mut self, store: &mut FifoStore<T>) -> bool {
        let Some(segment) = store.take_segment() else {
            return false;
        };
        match store.next.get_mut(self.tail as usize) {
            Some(next) => *next = segment,
            None => {
                self.head = segment;
                self.head_at = 0;
            }
        }
        self.tail = segment;
        self.tail_at = 0;
        true
    }

    /// The oldest item.
    #[inline]
    pub fn front<'a, T>(&self, store: &'a FifoStore<T>) -> Option<&'a T> {
        store
            .cells
            .get(self.head as usize * SEGMENT + self.head_at)?
            .as_ref()
    }

    /// Takes the oldest item.
    #[inline]
    pub fn pop<T>(&mut self, store: &mut FifoStore<T>) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let item = store.cell(self.head, self.head_at)?.take();
        self.advance(store, 1);
        item
    }

    /// The cells of the oldest items, as many as lie in a row. What is taken out of them is to be told to
    /// [`Fifo::advance`].
    #[inline]
    pub fn oldest<'a, T>(&self, store: &'a mut FifoStore<T>) -> &'a mut [Option<T>] {
        let first = self.head as usize * SEGMENT + self.head_at;
        let count = self.len.min(SEGMENT - self.head_at);
        let cells = store.cells.get_mut(first..first + count);
        cells.unwrap_or_default()
    }

    /// The first `taken` of the [`Fifo::oldest`] items were taken.
    #[inline]
    pub fn advance<T>(&mut self, store: &mut FifoStore<T>, taken: usize) {
        self.head_at += taken;
        self.len -= taken;
        if self.len == 0 {
            // The last segment is kept and filled again from its start: an almost empty queue stays in one cache line.
            self.head_at = 0;
            self.tail_at = 0;
        } else if self.head_at == SEGMENT {
            self.shrink(store);
        }
    }

    #[cold]
    fn shrink<T>(&mut self, store: &mut FifoStore<T>) {
        let used_up = self.head;
        if let Some(next) = store.next.get(used_up as usize) {
            self.head = *next;
            self.head_at = 0;
        }
        store.give_segment(used_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Any interleaving of pushes and pops on several queues, one by one and in runs, equals as many `VecDeque`s, and no
        /// cell is ever lost.
        #[test]
        fn equals_a_deque_each(ops in prop::collection::vec((0usize..3, prop::bool::weighted(0.6), 1usize..70), 0..1000)) {
            let mut store = FifoStore::new(400, 3);
            let mut queues: [Fifo; 3] = Default::default();
            let mut models: [VecDeque<usize>; 3] = Default::default();
            for (step, (queue, push, run)) in ops.into_iter().enumerate() {
                let total: usize = models.iter().map(VecDeque::len).sum();
                let items = step * 100..step * 100 + run;
                if push && run == 1 && total < 400 {
                    prop_assert_eq!(queues[queue].push(&mut store, step), Ok(()));
                    models[queue].push_back(step);
                } else if push && total + run <= 400 {
                    prop_assert_eq!(queues[queue].extend(&mut store, &mut items.clone()), run);
                    models[queue].extend(items);
                } else if run == 1 {
                    prop_assert_eq!(queues[queue].front(&store).copied(), models[queue].front().copied());
                    prop_assert_eq!(queues[queue].pop(&mut store), models[queue].pop_front());
                } else {
                    let (mut popped, mut expected) = (Vec::new(), Vec::new());
                    let stop = |item: &usize| item % 7 != 3;
                    let cells = queues[queue].oldest(&mut store);
                    prop_assert!(!cells.is_empty() || models[queue].is_empty());
                    let row = run.min(cells.len());
                    for cell in &mut cells[..row] {
                        popped.extend(cell.take_if(|item| stop(item)));
                        if cell.is_some() { break; }
                    }
                    queues[queue].advance(&mut store, popped.len());
                    while expected.len() < row && models[queue].front().is_some_and(stop) {
                        expected.extend(models[queue].pop_front());
                    }
                    prop_assert_eq!(popped, expected);
                }
                prop_assert_eq!(queues[queue].len(), models[queue].len());
            }
        }
    }

    #[test]
    fn a_full_store_gives_the_item_back() {
        let mut store = FifoStore::new(0, 1);
        let mut queue = Fifo::default();
        for item in 0..64 {
            assert_eq!(queue.push(&mut store, item), Ok(()));
        }
        assert_eq!(queue.push(&mut store, 64), Err(64));
        for item in 0..64 {
            assert_eq!(queue.pop(&mut store), Some(item));
        }
        assert_eq!(queue.pop(&mut store), None);
    }
}
