//! Burst: up to `N` owned buffers in a row, in the layout drivers take.
//!
//! Law: the first `len` entries are owned buffers in order, the others are undefined. Buffers left in
//! a burst when it is dropped return to their pool in one call; a burst that was sent in part
//! keeps the rest at its front, in order.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use dpdk_sys::rte_mbuf;

use crate::frames::{self, Slots};
use crate::mbuf::Mbuf;

/// Burst of up to `N` owned buffers. `N` is at most 65,535; 32 or 64 is usual.
#[derive(derive_more::Debug)]
#[debug("{:?}", self.iter().collect::<Vec<_>>())]
pub struct Burst<const N: usize> {
    slots: [*mut rte_mbuf; N],
    len: usize,
}

// SAFETY: the pointers are owned buffers, and `Mbuf` is Send.
unsafe impl<const N: usize> Send for Burst<N> {}

impl<const N: usize> Burst<N> {
    const FITS: () = assert!(N <= 0xffff, "DPDK counts a burst in 16 bits");

    /// Creates an empty burst. Make it once and reuse it: it is `8 N` bytes.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        const { Self::FITS };
        Self {
            slots: [ptr::null_mut(); N],
            len: 0,
        }
    }

    /// Number of buffers held.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the burst holds no buffers.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if the burst holds `N` buffers.
    #[inline]
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len == N
    }

    /// Number of buffers that it can still take.
    #[inline]
    #[must_use]
    pub const fn remaining(&self) -> usize {
        N - self.len
    }

    /// Appends a buffer.
    ///
    /// # Errors
    /// Gives the buffer back when the burst is full.
    #[inline]
    pub fn push(&mut self, mbuf: Mbuf) -> Result<(), Mbuf> {
        match self.slots.get_mut(self.len) {
            Some(slot) => {
                *slot = mbuf.into_raw().as_ptr();
                self.len += 1;
                Ok(())
            }
            None => Err(mbuf),
        }
    }

    /// Removes and returns the last buffer.
    #[inline]
    pub fn pop(&mut self) -> Option<Mbuf> {
        let last = self.len.checked_sub(1)?;
        let raw = *self.slots.get(last)?;
        self.len = last;
        // SAFETY: the slot was the last owned one, and is beyond `len` now.
        Some(unsafe { own(raw) })
    }

    /// Removes and returns the buffer at `i`; the later ones move down, keeping their order (O(n): to take all,
    /// [`drain`](Self::drain)).
    #[inline]
    pub fn take(&mut self, i: usize) -> Option<Mbuf> {
        if i >= self.len {
            return None;
        }
        let raw = self.slots[i];
        self.slots.copy_within(i + 1..self.len, i);
        self.len -= 1;
        // SAFETY: the slot was owned, and the burst has forgotten it.
        Some(unsafe { own(raw) })
    }

    /// Removes all buffers, first to last. Those not consumed when the iterator is dropped are freed.
    #[inline]
    pub fn drain(&mut self) -> Drain<'_> {
        let len = std::mem::replace(&mut self.len, 0);
        // The burst is empty from here on, so that a forgotten iterator leaks and does not free
        // twice.
        Drain {
            slots: self.slots[..len].iter(),
            burst: PhantomData,
        }
    }

    /// Moves buffers from the front of `from` to the end of this burst until `from` is empty or this one full; returns
    /// their number.
    pub fn append<const M: usize>(&mut self, from: &mut Burst<M>) -> usize {
        let n = self.remaining().min(from.len);
        self.slots[self.len..self.len + n].copy_from_slice(&from.slots[..n]);
        self.len += n;
        from.slots.copy_within(n..from.len, 0);
        from.len -= n;
        n
    }

    /// Iterates over the buffers, first to last.
    #[inline]
    pub fn iter(&self) -> slice::Iter<'_, Mbuf> {
        self.as_slice().iter()
    }

    /// Iterates over the buffers for writing, first to last.
    #[inline]
    pub fn iter_mut(&mut self) -> slice::IterMut<'_, Mbuf> {
        self.as_mut_slice().iter_mut()
    }

    /// Returns the buffers as a slice.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[Mbuf] {
        // SAFETY: `Mbuf` is a transparent NonNull<rte_mbuf>, and the first `len` slots are owned,
        // so not null.
        unsafe { slice::from_raw_parts(self.slots.as_ptr().cast(), self.len) }
    }

    /// Returns the buffers as a slice for writing; swapping them is fine, for each stays owned once.
    #[inline]
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [Mbuf] {
        // SAFETY: as in `as_slice`; no value of type Mbuf can be moved out of a slice without
        // another put in its place.
        unsafe { slice::from_raw_parts_mut(self.slots.as_mut_ptr().cast(), self.len) }
    }

    /// Returns all buffers to their pools in one call; returns their number.
    pub fn free_all(&mut self) -> usize {
        frames::free_all(self)
    }
}

impl<const N: usize> Slots for Burst<N> {
    #[inline]
    fn spare(&mut self) -> (*mut *mut rte_mbuf, u16) {
        let spare = &mut self.slots[self.len..];
        // At most N, which fits.
        (
            spare.as_mut_ptr(),
            u16::try_from(spare.len()).unwrap_or(u16::MAX),
        )
    }

    #[inline]
    unsafe fn grow(&mut self, n: usize) {
        debug_assert!(n <= N - self.len);
        self.len += n;
    }

    #[inline]
    fn lend(&mut self) -> (*mut *mut rte_mbuf, u16) {
        let all = std::mem::replace(&mut self.len, 0);
        (
            self.slots.as_mut_ptr(),
            u16::try_from(all).unwrap_or(u16::MAX),
        )
    }

    #[inline]
    unsafe fn take_back(&mut self, lent: usize, taken: usize) {
        if taken < lent {
            self.slots.copy_within(taken..lent, 0);
            self.len = lent - taken;
        }
    }
}

/// Takes ownership of a pointer from a burst.
///
/// # Safety
/// The slot was one of the first `len` of its burst, which has forgotten it.
#[inline]
unsafe fn own(raw: *mut rte_mbuf) -> Mbuf {
    // SAFETY: an owned slot holds a live buffer, so it is not null, and the burst has no more claim
    // on it.
    unsafe { Mbuf::from_raw(NonNull::new_unchecked(raw)) }
}

impl<const N: usize> Drop for Burst<N> {
    fn drop(&mut self) {
        self.free_all();
    }
}

impl<const N: usize> Default for Burst<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, const N: usize> IntoIterator for &'a Burst<N> {
    type Item = &'a Mbuf;
    type IntoIter = slice::Iter<'a, Mbuf>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, const N: usize> IntoIterator for &'a mut Burst<N> {
    type Item = &'a mut Mbuf;
    type IntoIter = slice::IterMut<'a, Mbuf>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

/// Iterator that owns the buffers it yields, see [`Burst::drain`].
#[derive(derive_more::Debug)]
#[debug("Drain {{ left: {} }}", slots.len())]
pub struct Drain<'a> {
    slots: slice::Iter<'a, *mut rte_mbuf>,
    burst: PhantomData<&'a mut Mbuf>,
}

impl Iterator for Drain<'_> {
    type Item = Mbuf;

    #[inline]
    fn next(&mut self) -> Option<Mbuf> {
        // SAFETY: the slots were owned when the iterator was made, the burst forgot them then, and
        // each is seen once.
        self.slots.next().map(|&raw| unsafe { own(raw) })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl ExactSizeIterator for Drain<'_> {}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}
