//! Rows of frames that drivers fill and take from in place: a [`Burst`](crate::Burst), or an `ArrayVec` of a type of the
//! caller's own around an [`Mbuf`].
//!
//! Law: a driver is lent pointers only; frames that it did not take return to the row, at its front and in order. A conversion that
//! panics leaks frames, and frees none twice.

use std::ptr::NonNull;

use arrayvec::ArrayVec;
use dpdk_sys::rte_mbuf;

use crate::mbuf::Mbuf;

/// Row of frames, see the module's text. Implemented in this package only.
pub trait Frames: Slots {}

impl<R: Slots> Frames for R {}

/// Row of frames as C sees it.
pub trait Slots {
    /// Returns start and number of the free places, for C to write buffers into.
    fn spare(&mut self) -> (*mut *mut rte_mbuf, u16);

    /// Takes ownership of buffers in the first `n` free places.
    ///
    /// # Safety
    /// C has written `n` owned buffers into the places of [`spare`](Self::spare), and there were that many.
    unsafe fn grow(&mut self, n: usize);

    /// Returns start and number of the frames, for C to take buffers from, until they are [taken back](Self::take_back). Meanwhile the row is
    /// empty: frames that are not taken back leak.
    fn lend(&mut self) -> (*mut *mut rte_mbuf, u16);

    /// Forgets the first `taken` of `lent` frames, which have another owner now, and moves the rest to the front.
    ///
    /// # Safety
    /// `lent` is the number that [`lend`](Self::lend) returned just before, and `taken` is no more.
    unsafe fn take_back(&mut self, lent: usize, taken: usize);
}

impl<T: From<Mbuf> + Into<Mbuf>, const N: usize> Slots for ArrayVec<T, N> {
    #[inline]
    fn spare(&mut self) -> (*mut *mut rte_mbuf, u16) {
        const { fits::<T>(N) };
        let (len, room) = (self.len(), self.remaining_capacity());
        let first = self.as_mut_ptr().wrapping_add(len);
        (first.cast(), u16::try_from(room).unwrap_or(u16::MAX))
    }

    #[inline]
    unsafe fn grow(&mut self, n: usize) {
        let len = self.len();
        // SAFETY: the places behind the last element hold `n` owned buffers, which become elements.
        unsafe {
            let first = self.as_mut_ptr().add(len);
            adopt(first.cast(), first, n);
            self.set_len(len + n);
        }
    }

    #[inline]
    fn lend(&mut self) -> (*mut *mut rte_mbuf, u16) {
        const { fits::<T>(N) };
        let all = self.len();
        // SAFETY: shorter. The row forgets its elements here, so that none is dropped twice should a conversion panic.
        unsafe { self.set_len(0) };
        let first = self.as_mut_ptr();
        for place in 0..all {
            // SAFETY: the element was initialised, and nobody else reads it again; a pointer fits its place.
            unsafe {
                let mbuf: Mbuf = first.add(place).read().into();
                first
                    .add(place)
                    .cast::<*mut rte_mbuf>()
                    .write(mbuf.into_raw().as_ptr());
            }
        }
        (first.cast(), u16::try_from(all).unwrap_or(u16::MAX))
    }

    #[inline]
    unsafe fn take_back(&mut self, lent: usize, taken: usize) {
        if taken >= lent {
            return;
        }
        let first = self.as_mut_ptr();
        // SAFETY: the places from `taken` on still hold owned buffers, and those before hold nothing any more; each is read before
        // the place is written.
        unsafe {
            adopt(first.add(taken).cast(), first, lent - taken);
            self.set_len(lent - taken);
        }
    }
}

/// Asserts that a place of a row of `T` has the size of a pointer, and that `places` fit 16 bits.
const fn fits<T>(places: usize) {
    assert!(places <= 0xffff, "DPDK counts a burst in 16 bits");
    assert!(
        size_of::<T>() == size_of::<Mbuf>() && align_of::<T>() == align_of::<Mbuf>(),
        "an element must be a pointer to a buffer and no more"
    );
}

/// Converts `n` buffers to elements. An identity conversion costs nothing.
///
/// # Safety
/// `from` points to `n` owned buffers, which are the elements' from now on; `to` to as many places, which may be the same or before.
#[inline]
unsafe fn adopt<T: From<Mbuf>>(from: *const *mut rte_mbuf, to: *mut T, n: usize) {
    for place in 0..n {
        // SAFETY: an owned buffer is not null; the element is written after it was read.
        unsafe {
            let raw = NonNull::new_unchecked(from.add(place).read());
            to.add(place).write(T::from(Mbuf::from_raw(raw)));
        }
    }
}

/// Returns all frames of a row to their pools in one call; returns their number.
#[inline]
pub fn free_all(row: &mut impl Frames) -> usize {
    let (slots, count) = row.lend();
    if count > 0 {
        // SAFETY: `count` owned chains were lent, all of them are freed, and the array is only read.
        unsafe { dpdk_sys::rte_pktmbuf_free_bulk(slots, count.into()) };
    }
    let count = usize::from(count);
    // SAFETY: all that was lent.
    unsafe { row.take_back(count, count) };
    count
}
