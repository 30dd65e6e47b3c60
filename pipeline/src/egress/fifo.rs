//! Queues that share one fixed store: none has a limit of its own, and together they hold as much as the store.
//!
//! The store hands out segments of 32 slots; a queue is a chain of them. Consecutive pushes or pops touch consecutive
//! slots, which suits the cache, and the memory is bounded by the number of frames, not by queues times depth. Each item
//! has metadata, a copyable summary, in an array beside the slots: the scheduler counts the frames that may leave by their
//! metas, without touching the frames.

/// Number of slots in a segment.
pub(super) const SEGMENT: usize = 32;
const NONE: u32 = u32::MAX;

/// Cells for all queues of a worker.
#[derive(Debug)]
pub struct FifoStore<T, N> {
    slots: Box<[Option<T>]>,
    metas: Box<[N]>,
    next: Box<[u32]>,
    free: u32,
}

/// One queue; its items live in the store it is always used with.
#[derive(Debug)]
pub struct Fifo {
    head: u32,
    tail: u32,
    /// Index of the next item to pop, in the head segment.
    head_at: usize,
    /// Index of the next free slot, in the tail segment.
    tail_at: usize,
    len: usize,
}

impl<T, N: Copy> FifoStore<T, N> {
    /// Returns a store for `items` items in up to `queues` queues at once; `nothing` is the meta of a free slot.
    #[must_use]
    pub fn new(items: usize, queues: usize, nothing: N) -> FifoStore<T, N> {
        // A queue may waste most of its first and of its last segment.
        let segments = items.div_ceil(SEGMENT) + 2 * queues;
        let count = u32::try_from(segments).unwrap_or(NONE - 1).min(NONE - 1);
        FifoStore {
            slots: (0..count as usize * SEGMENT).map(|_| None).collect(),
            metas: vec![nothing; count as usize * SEGMENT].into_boxed_slice(),
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

    /// Returns `count` consecutive slots of a segment and their metas.
    #[inline]
    fn row(
        &mut self,
        segment: u32,
        at: usize,
        count: usize,
    ) -> Option<(&mut [Option<T>], &mut [N])> {
        let first = segment as usize * SEGMENT + at;
        Some((
            self.slots.get_mut(first..first + count)?,
            self.metas.get_mut(first..first + count)?,
        ))
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
    /// Returns the number of items in the queue.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the queue is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an item.
    ///
    /// # Errors
    /// Returns the item itself if the store is full.
    #[inline]
    pub fn push<T, N: Copy>(
        &mut self,
        store: &mut FifoStore<T, N>,
        item: T,
        meta: N,
    ) -> Result<(), T> {
        let mut one = std::iter::once(item);
        self.extend(store, &mut one, &mut std::iter::once(meta));
        one.next().map_or(Ok(()), Err)
    }

    /// Appends items, each with its meta, while the store has room, and returns their number; the others stay with the
    /// iterators.
    #[inline]
    pub fn extend<T, N: Copy>(
        &mut self,
        store: &mut FifoStore<T, N>,
        items: &mut impl ExactSizeIterator<Item = T>,
        metas: &mut impl Iterator<Item = N>,
    ) -> usize {
        let before = self.len;
        while items.len() > 0 {
            if (self.tail == NONE || self.tail_at == SEGMENT) && !self.grow(store) {
                break;
            }
            let room = (SEGMENT - self.tail_at).min(items.len());
            let Some((slots, places)) = store.row(self.tail, self.tail_at, room) else {
                break;
            };
            for (slot, item) in slots.iter_mut().zip(items.by_ref()) {
                // A free slot is `None`, so no item is forgotten.
                std::mem::forget(slot.replace(item));
            }
            for (place, meta) in places.iter_mut().zip(metas.by_ref()) {
                *place = meta;
            }
            self.tail_at += room;
            self.len += room;
        }
        self.len - before
    }

    #[cold]
    fn grow<T, N: Copy>(&mut self, store: &mut FifoStore<T, N>) -> bool {
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

    /// Returns the meta of the oldest item.
    #[inline]
    pub fn front<T, N: Copy>(&self, store: &FifoStore<T, N>) -> Option<N> {
        let first = self.head as usize * SEGMENT + self.head_at;
        (self.len > 0).then(|| store.metas.get(first).copied())?
    }

    /// Takes the oldest item and its meta.
    #[inline]
    pub fn pop<T, N: Copy>(&mut self, store: &mut FifoStore<T, N>) -> Option<(T, N)> {
        let (slots, metas) = self.oldest(store);
        let oldest = slots.first_mut()?.take()?;
        let meta = *metas.first()?;
        self.advance(store, 1);
        Some((oldest, meta))
    }

    /// Returns the slots of the oldest items, as many as are contiguous, and their metas. The caller reports the items it
    /// takes out to [`Fifo::advance`].
    #[inline]
    pub fn oldest<'a, T, N: Copy>(
        &self,
        store: &'a mut FifoStore<T, N>,
    ) -> (&'a mut [Option<T>], &'a [N]) {
        let count = self.len.min(SEGMENT - self.head_at);
        match store.row(self.head, self.head_at, count) {
            Some((slots, metas)) => (slots, metas),
            None => (&mut [], &[]),
        }
    }

    /// Calls `each` with the items of the queue at the positions from `from`, counted from the oldest, up to `to`, and their metas.
    #[inline]
    pub fn ahead<T, N: Copy>(
        &self,
        store: &FifoStore<T, N>,
        (from, to): (usize, usize),
        mut each: impl FnMut(&T, &N),
    ) {
        let (mut segment, mut at) = (self.head, self.head_at + from);
        let mut left = to.min(self.len).saturating_sub(from);
        while left > 0 {
            if at < SEGMENT {
                let (first, count) = (segment as usize * SEGMENT + at, left.min(SEGMENT - at));
                let slots = store.slots.get(first..first + count).unwrap_or_default();
                let metas = store.metas.get(first..first + count).unwrap_or_default();
                for (slot, meta) in slots.iter().zip(metas) {
                    if let Some(item) = slot {
                        each(item, meta);
                    }
                }
                left -= count;
                at += count;
            }
            at -= SEGMENT.min(at);
            segment = store.next.get(segment as usize).copied().unwrap_or(NONE);
        }
    }

    /// Removes the first `taken` of the [`Fifo::oldest`] items, which the caller took out.
    #[inline]
    pub fn advance<T, N: Copy>(&mut self, store: &mut FifoStore<T, N>, taken: usize) {
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
    fn shrink<T, N: Copy>(&mut self, store: &mut FifoStore<T, N>) {
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
        /// Several queues equal as many `VecDeque`s under any interleaving of pushes and pops, one by one and in runs, and no
        /// slot is ever lost.
        #[test]
        fn equals_a_deque_each(ops in prop::collection::vec((0usize..3, prop::bool::weighted(0.6), 1usize..70), 0..1000)) {
            let mut store = FifoStore::new(400, 3, 0);
            let mut queues: [Fifo; 3] = Default::default();
            let mut models: [VecDeque<usize>; 3] = Default::default();
            for (step, (queue, push, run)) in ops.into_iter().enumerate() {
                let total: usize = models.iter().map(VecDeque::len).sum();
                let items = step * 100..step * 100 + run;
                if push && run == 1 && total < 400 {
                    prop_assert_eq!(queues[queue].push(&mut store, step, !step), Ok(()));
                    models[queue].push_back(step);
                } else if push && total + run <= 400 {
                    let mut metas = items.clone().map(|item| !item);
                    prop_assert_eq!(queues[queue].extend(&mut store, &mut items.clone(), &mut metas), run);
                    models[queue].extend(items);
                } else if run == 1 {
                    prop_assert_eq!(queues[queue].front(&store), models[queue].front().map(|item| !item));
                    prop_assert_eq!(queues[queue].pop(&mut store), models[queue].pop_front().map(|item| (item, !item)));
                } else {
                    let (mut popped, mut expected) = (Vec::new(), Vec::new());
                    let stop = |item: &usize| item % 7 != 3;
                    let (slots, metas) = queues[queue].oldest(&mut store);
                    prop_assert!(!slots.is_empty() || models[queue].is_empty());
                    prop_assert!(slots.iter().zip(metas).all(|(slot, meta)| *slot == Some(!meta)));
                    let row = run.min(slots.len());
                    for slot in &mut slots[..row] {
                        popped.extend(slot.take_if(|item| stop(item)));
                        if slot.is_some() { break; }
                    }
                    queues[queue].advance(&mut store, popped.len());
                    while expected.len() < row && models[queue].front().is_some_and(stop) {
                        expected.extend(models[queue].pop_front());
                    }
                    prop_assert_eq!(popped, expected);
                }
                prop_assert_eq!(queues[queue].len(), models[queue].len());
                let (mut ahead, from) = (Vec::new(), run / 2);
                queues[queue].ahead(&store, (from, from + step % 80), |item, meta| {
                    assert_eq!(*meta, !*item);
                    ahead.push(*item);
                });
                prop_assert!(ahead.iter().eq(models[queue].iter().skip(from).take(step % 80)));
            }
        }
    }

    #[test]
    fn a_full_store_gives_the_item_back() {
        let mut store = FifoStore::new(0, 1, 0);
        let mut queue = Fifo::default();
        for item in 0..64 {
            assert_eq!(queue.push(&mut store, item, 0), Ok(()));
        }
        assert_eq!(queue.push(&mut store, 64, 0), Err(64));
        for item in 0..64 {
            assert_eq!(queue.pop(&mut store), Some((item, 0)));
        }
        assert_eq!(queue.pop(&mut store), None);
    }
}
