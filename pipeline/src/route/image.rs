//! Lookup image: 24 bits at the root, 8 bits a level below (DIR-24-8 for IPv4, the same stride continued for IPv6).
//!
//! An entry is a word: the number of the 256-entry group one level down, or a value and the length of the prefix that put it
//! there. Readers use the value; the length is for the writer ([`super::edit`]), and is kept in the same word so that a change
//! touches one line and a copy is a copy of words.
//!
//! Entries are relaxed atomics: one thread writes while no worker reads this image ([`super::fib`]), and a relaxed load is
//! a plain load.

use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

pub(super) const ROOT_BITS: u8 = 24;
pub(super) const ROOT: usize = 1 << ROOT_BITS;
pub(super) const STRIDE: u8 = 8;
/// Number of entries of a group.
pub(super) const GROUP: usize = 256;
/// Flag of an entry that names a group, in the other bits.
pub(super) const EXTENDED: u32 = 1 << 31;
/// Mask of the value, in an entry that names no group.
const VALUE: u32 = 0xffff;
/// Shift of the length of the prefix the value came from, in 8 bits.
const LEN_SHIFT: u32 = 16;

/// A value and the length of the prefix it came from; (0, 0) is "no route".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Id of the next-hop group.
    pub value: u16,
    /// Length of the prefix in bits.
    pub len: u8,
}

impl Origin {
    /// Returns the entry with this value and length.
    pub(super) const fn entry(self) -> u32 {
        self.value as u32 | (self.len as u32) << LEN_SHIFT
    }
}

/// Returns the length of the prefix that an entry which names no group came from.
pub(super) const fn len_of(entry: u32) -> u32 {
    entry >> LEN_SHIFT
}

/// Readers' half of an image: the entries only.
#[derive(Debug)]
pub struct Image {
    pub(super) root: Box<[AtomicU32; ROOT]>,
    pub(super) groups: Box<[AtomicU32]>,
}

/// Resolved [`Image`], for many lookups: the addresses of its entries need not be loaded for each.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    root: &'a [AtomicU32; ROOT],
    groups: &'a [AtomicU32],
}

impl View<'_> {
    /// Returns the value for an IPv4 address; 0 if only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v4(&self, address: u32) -> u32 {
        let entry = load(self.root, (address >> 8) as usize);
        if entry & EXTENDED == 0 {
            return entry & VALUE;
        }
        self.longer(entry, address)
    }

    /// Returns the value of an address covered by prefixes of more than 24 bits.
    #[inline]
    fn longer(&self, entry: u32, address: u32) -> u32 {
        load(self.groups, slot(entry, (address & 0xff) as usize)) & VALUE
    }
}

/// Allocates zeroed memory that costs nothing until touched.
pub(super) fn zeroed<T: FromZeros>(n: usize) -> Box<[T]> {
    T::new_vec_zeroed(n).unwrap_or_default().into_boxed_slice()
}

impl Image {
    /// Returns a view for many lookups in a row.
    #[inline]
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            root: &self.root,
            groups: &self.groups,
        }
    }

    /// Returns the value for an IPv4 address; 0 if only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v4(&self, address: u32) -> u32 {
        self.view().lookup_v4(address)
    }

    /// Returns the value for an IPv6 address, 0 if only the default route covers it; and true if its first 64 bits alone decide.
    #[inline]
    #[must_use]
    pub fn lookup_v6(&self, address: u128) -> (u32, bool) {
        const BELOW_ROOT: usize = (64 - ROOT_BITS as usize) / STRIDE as usize;
        let mut entry = load(&*self.root, root_index(address));
        let [_, _, _, rest @ ..] = address.to_be_bytes();
        for (read, octet) in rest.into_iter().enumerate() {
            if entry & EXTENDED == 0 {
                return (entry & VALUE, read <= BELOW_ROOT);
            }
            entry = load(&self.groups, slot(entry, octet.into()));
        }
        (entry & VALUE, false)
    }
}

#[inline]
pub(super) fn load(entries: &[AtomicU32], index: usize) -> u32 {
    entries
        .get(index)
        .map_or(0, |entry| entry.load(Ordering::Relaxed))
}

/// Returns the index of the root entry at which an address or prefix begins.
#[inline]
pub(super) const fn root_index(bits: u128) -> usize {
    (bits >> (128 - ROOT_BITS)) as usize
}

/// Returns the index of entry `index` of the group that `entry` names.
#[inline]
pub(super) const fn slot(entry: u32, index: usize) -> usize {
    ((entry & !EXTENDED) as usize) * GROUP + index
}
