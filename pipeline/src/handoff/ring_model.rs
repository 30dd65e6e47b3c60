//! Model of rtrb's ring for loom, with what a channel calls of it: the same two positions, loaded and stored at the same moments in the
//! same order. So the channel's own code meets every interleaving that it may meet over rtrb.
//!
//! Slots lie behind locks that loom does not see, so that only the positions order anything. An element that is read before it was
//! written, or overwritten before it was read, is a panic.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a model says what is wrong by panicking"
)]

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use loom::sync::atomic::{AtomicUsize, Ordering};

/// Error: fewer slots than requested.
#[derive(Debug)]
pub(super) struct TooFewSlots;

/// Memory of a ring. Positions count all elements that were ever read, and written.
#[derive(Debug)]
struct Memory<T> {
    read: AtomicUsize,
    written: AtomicUsize,
    slots: Box<[Mutex<Option<T>>]>,
}

impl<T> Memory<T> {
    /// Puts an element into the slot at a position, or takes it out, and returns what was there.
    fn exchange(&self, position: usize, element: Option<T>) -> Option<T> {
        let slot = &self.slots[position % self.slots.len()];
        std::mem::replace(&mut slot.try_lock().unwrap(), element)
    }
}

/// Maker of rings.
#[derive(Debug)]
pub(super) struct RingBuffer;

impl RingBuffer {
    pub(super) fn new<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
        let memory = Arc::new(Memory {
            read: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            slots: (0..capacity).map(|_| Mutex::new(None)).collect(),
        });
        let producer = Producer {
            memory: Arc::clone(&memory),
            read: Cell::new(0),
            written: 0,
        };
        let consumer = Consumer {
            memory,
            read: 0,
            written: Cell::new(0),
        };
        (producer, consumer)
    }
}

/// Writing end: its own position, and what it last saw of the reader's.
#[derive(Debug)]
pub(super) struct Producer<T> {
    memory: Arc<Memory<T>>,
    read: Cell<usize>,
    written: usize,
}

impl<T> Producer<T> {
    pub(super) fn cached_slots(&self) -> usize {
        self.memory.slots.len() - (self.written - self.read.get())
    }

    pub(super) fn slots(&self) -> usize {
        self.read.set(self.memory.read.load(Ordering::Acquire));
        self.cached_slots()
    }

    pub(super) fn write_chunk_uninit(
        &mut self,
        count: usize,
    ) -> Result<WriteChunk<'_, T>, TooFewSlots> {
        if self.cached_slots() < count && self.slots() < count {
            return Err(TooFewSlots);
        }
        Ok(WriteChunk {
            producer: self,
            count,
        })
    }

    pub(super) fn push(&mut self, element: T) -> Result<(), TooFewSlots> {
        self.write_chunk_uninit(1)?.fill_from_iter([element]);
        Ok(())
    }
}

/// Free slots that are about to be written.
pub(super) struct WriteChunk<'a, T> {
    producer: &'a mut Producer<T>,
    count: usize,
}

impl<T> WriteChunk<'_, T> {
    pub(super) fn fill_from_iter(self, elements: impl IntoIterator<Item = T>) {
        let Producer {
            memory, written, ..
        } = self.producer;
        for element in elements.into_iter().take(self.count) {
            let before = memory.exchange(*written, Some(element));
            assert!(before.is_none(), "overwritten before it was read");
            *written += 1;
        }
        memory.written.store(*written, Ordering::Release);
    }
}

/// Reading end: its own position, and what it last saw of the writer's.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    memory: Arc<Memory<T>>,
    read: usize,
    written: Cell<usize>,
}

impl<T> Consumer<T> {
    fn waiting(&self, wanted: usize) -> Result<(), TooFewSlots> {
        if self.written.get() - self.read < wanted {
            self.written
                .set(self.memory.written.load(Ordering::Acquire));
        }
        match self.written.get() - self.read {
            waiting if waiting < wanted => Err(TooFewSlots),
            _ => Ok(()),
        }
    }

    pub(super) fn read_chunk(
        &mut self,
        count: usize,
    ) -> Result<impl IntoIterator<Item = T>, TooFewSlots> {
        self.waiting(count)?;
        let elements = (0..count).map(|ahead| self.memory.exchange(self.read + ahead, None));
        let elements: Option<Vec<T>> = elements.collect();
        self.read += count;
        self.memory.read.store(self.read, Ordering::Release);
        Ok(elements.unwrap_or_else(|| panic!("read before it was written")))
    }

    pub(super) fn pop(&mut self) -> Result<T, TooFewSlots> {
        let mut element = self.read_chunk(1)?.into_iter();
        Ok(element.next().unwrap())
    }
}

impl<T: Copy> Consumer<T> {
    /// Returns a copy of the next element, where rtrb lends it.
    pub(super) fn peek(&self) -> Result<T, TooFewSlots> {
        self.waiting(1)?;
        let slot = &self.memory.slots[self.read % self.memory.slots.len()];
        let element = *slot.try_lock().unwrap();
        Ok(element.unwrap_or_else(|| panic!("read before it was written")))
    }
}
