//! Memory of a program: a heap whose large allocations lie in huge pages where the kernel has them ([`HugeHeap`]); resources that outlive
//! a process: memory ([`shared`], [`mark`]) and descriptors ([`inherited`], [`tap`]); text that is written before its end ([`unwritten`]);
//! and rings of records in either ([`records`]).
//!
//! Route images, flow caches and ledgers are read at random. In pages of 4 KiB nearly every such read also misses the TLB, and
//! filling a table costs a fault for every 4 KiB. An allocation of [`LARGE`] bytes or more therefore gets a mapping of its own that
//! starts at a boundary of 2 MiB, and the kernel is asked for transparent huge pages in it (`madvise`, which works with
//! `/sys/kernel/mm/transparent_hugepage/enabled` at `madvise` or `always`; where it is `never`, the pages are
//! ordinary ones). Smaller allocations are the system allocator's.
//!
//! A few freed mappings are kept for the next allocation of their size: an unmapping interrupts every core, those that poll for
//! packets included, and a client that requests a long list frees dozens.
//!
//! Large allocations are left out of core dumps: they are tables, of which a core would be hundreds of megabytes, with the addresses of
//! the network's hosts in it.
//!
//! Laws: memory costs nothing until it is touched, zeroed allocations included where they are newly mapped; an allocation is freed the way
//! its size says it was made; at most [`KEPT`] x [`KEPT_BYTES`] stay mapped and unused.

pub mod inherited;
pub mod mark;
pub mod records;
pub mod shared;
pub mod sync;
pub mod tap;
pub mod unwritten;

use std::alloc::{GlobalAlloc, Layout, System};
use std::num::NonZeroUsize;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// Minimum size in bytes of an allocation with a mapping of its own: one huge page (2 MiB).
pub const LARGE: usize = 2 << 20;
/// Granularity of a mapping's size, in bytes.
const PAGE: usize = 4096;
/// Maximum number of freed mappings that are kept for the next allocation of their size.
pub const KEPT: usize = 4;
/// Size in bytes of the largest mapping that is kept.
pub const KEPT_BYTES: usize = 16 << 20;

/// Freed mappings that are kept; the first word of each holds its size in bytes.
static FREED: [AtomicPtr<u8>; KEPT] = [const { AtomicPtr::new(null_mut()) }; KEPT];

/// Allocator for `#[global_allocator]`: large allocations in huge pages, see the module's text.
#[derive(Debug, Default, Clone, Copy)]
pub struct HugeHeap;

const fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= LARGE
}

// SAFETY: a piece is either the system allocator's or a private anonymous mapping of at least its size, aligned to `LARGE`,
// which covers every alignment `is_large` lets through; which of the two is a function of the layout alone, so `dealloc` gives
// it back to where it came from. Nothing here unwinds or allocates from itself.
unsafe impl GlobalAlloc for HugeHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            return take(mapped(layout.size())).unwrap_or_else(|| map(layout.size()));
        }
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout) {
            // An anonymous mapping is zero; one that was used is not.
            return take(mapped(layout.size())).map_or_else(
                || map(layout.size()),
                |piece| {
                    // SAFETY: the mapping has at least this many bytes, and nobody else knows it.
                    unsafe { piece.write_bytes(0, layout.size()) };
                    piece
                },
            );
        }
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        if is_large(layout) {
            if let Some(piece) = NonNull::new(piece) {
                // SAFETY: the piece is a mapping of this many bytes that `map` made, and the caller is done with it.
                unsafe { keep(piece, mapped(layout.size())) };
            }
            return;
        }
        // SAFETY: the piece is the system allocator's, by its layout; the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(piece, layout) }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `size`, rounded up to the alignment, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if !is_large(layout) && !is_large(wanted) {
            // SAFETY: the piece is the system allocator's and stays so; the caller keeps `realloc`'s contract.
            return unsafe { System.realloc(piece, layout, size) };
        }
        if is_large(layout) && is_large(wanted) && mapped(layout.size()) == mapped(size) {
            return piece;
        }
        // SAFETY: `wanted` is not of size 0, by `realloc`'s contract.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both pieces hold the lesser size and are apart; the old one goes as it came.
            unsafe {
                moved.copy_from_nonoverlapping(piece, layout.size().min(size));
                self.dealloc(piece, layout);
            }
        }
        moved
    }
}

/// Returns the number of bytes that `map` maps for an allocation.
const fn mapped(size: usize) -> usize {
    size.next_multiple_of(PAGE)
}

/// Maps `size` zeroed bytes at a boundary of [`LARGE`]; null when there is no memory.
fn map(size: usize) -> *mut u8 {
    let size = mapped(size);
    let Some(room) = size.checked_add(LARGE).and_then(NonZeroUsize::new) else {
        return null_mut();
    };
    let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice replaces nothing.
    let Ok(start) = (unsafe { mmap_anonymous(None, room, protection, flags) }) else {
        return null_mut();
    };
    let start = start.cast::<u8>();
    let before = start.align_offset(LARGE);
    let after = LARGE - before;
    // SAFETY: `before + size + after` bytes were mapped just now. The outer parts, whole pages of which nobody knows, go; a
    // refusal to take them back leaves address space unused. The advice changes no content.
    unsafe {
        let piece = start.add(before);
        unmap(start, before);
        unmap(piece.add(size), after);
        let _ = madvise(piece.cast(), size, MmapAdvise::MADV_HUGEPAGE);
        let _ = madvise(piece.cast(), size, MmapAdvise::MADV_DONTDUMP);
        piece.as_ptr()
    }
}

/// Takes a kept mapping of exactly `bytes` bytes, if there is one.
fn take(bytes: usize) -> Option<*mut u8> {
    if bytes > KEPT_BYTES {
        return None;
    }
    for place in &FREED {
        let Some(piece) = NonNull::new(place.swap(null_mut(), Ordering::Acquire)) else {
            continue;
        };
        // SAFETY: taken out, the mapping is this thread's alone; `keep` wrote its size into its first word, before it released it.
        let size = unsafe { piece.cast::<usize>().read() };
        if size == bytes {
            return Some(piece.as_ptr());
        }
        // SAFETY: a mapping of so many bytes that nobody uses.
        unsafe { put(place, piece) };
    }
    None
}

/// Keeps a mapping for the next allocation of its size, replacing an older one if no slot is free; unmaps
/// it if it is too large.
///
/// # Safety
/// It is a mapping of so many bytes, and nobody uses it any more.
unsafe fn keep(piece: NonNull<u8>, bytes: usize) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    if bytes > KEPT_BYTES {
        // SAFETY: as the caller says.
        unsafe { unmap(piece, bytes) };
        return;
    }
    // SAFETY: the caller's mapping is at least a page, aligned to one.
    unsafe { piece.cast::<usize>().write(bytes) };
    let is_free = |place: &&AtomicPtr<u8>| place.load(Ordering::Relaxed).is_null();
    let oldest = || FREED.get(NEXT.fetch_add(1, Ordering::Relaxed) % KEPT);
    if let Some(place) = FREED.iter().find(is_free).or_else(oldest) {
        // SAFETY: a mapping that nobody uses, with its size in its first word.
        unsafe { put(place, piece) };
    }
}

/// Puts a mapping into a slot; unmaps the one that another thread put there meanwhile.
///
/// # Safety
/// Nobody uses it, and its first word has its size.
unsafe fn put(place: &AtomicPtr<u8>, piece: NonNull<u8>) {
    if let Some(before) = NonNull::new(place.swap(piece.as_ptr(), Ordering::AcqRel)) {
        // SAFETY: taken out, it is this thread's alone, with its size in its first word.
        unsafe { unmap(before, before.cast::<usize>().read()) };
    }
}

/// Unmaps `bytes` bytes from `start`.
///
/// # Safety
/// They are mapped, or none, and nobody uses them any more.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: as the caller says. A refusal would leave memory mapped that nobody uses.
        let _ = unsafe { munmap(start.cast(), bytes) };
    }
}
