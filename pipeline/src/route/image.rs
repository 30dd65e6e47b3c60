//! One lookup image: 24 bits at the root, 8 bits a level below (DIR-24-8 for IPv4, the same stride on for IPv6).
//!
//! An entry is a word: the number of the 256-entry group one level down, or a value and the length of the prefix that put it
//! there. Readers look at the value; the length is the writer's ([`super::edit`]), and stands in the same word so that a
//! change touches one line and a copy is a copy of words.
//!
//! Entries are relaxed atomics: one thread writes while no worker reads this image ([`super::fib`]), and a relaxed load is
//! a plain load.

use std::sync::atomic::{AtomicU32, Ordering};

use zerocopy::FromZeros;

pub(super) const ROOT_BITS: u8 = 24;
pub(super) const ROOT: usize = 1 << ROOT_BITS;
pub(super) const STRIDE: u8 = 8;
/// Entries of a group.
pub(super) const GROUP: usize = 256;
/// The entry names a group, in the other bits.
pub(super) const EXTENDED: u32 = 1 << 31;
/// The value, in an entry that names no group.
const VALUE: u32 = 0xffff;
/// Above it, the length of the prefix it came from, in 8 bits.
const LEN_SHIFT: u32 = 16;

/// A value and the length of the prefix it came from; (0, 0) is "no route".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// Next-hop-group id.
    pub value: u16,
    /// Bits of the prefix.
    pub len: u8,
}

impl Origin {
    /// As an entry.
    pub(super) const fn entry(self) -> u32 {
        self.value as u32 | (self.len as u32) << LEN_SHIFT
    }
}

/// Bits of the prefix an entry that names no group came from.
pub(super) const fn len_of(entry: u32) -> u32 {
    entry >> LEN_SHIFT
}

/// The readers' half: entries only.
#[derive(Debug)]
pub struct Image {
    pub(super) root: Box<[AtomicU32; ROOT]>,
    pub(super) groups: Box<[AtomicU32]>,
}

/// [`Image`] in hand: where its entries lie need not be asked again for each lookup.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    root: &'a [AtomicU32; ROOT],
    groups: &'a [AtomicU32],
}

impl View<'_> {
    /// The value for an IPv4 address; 0 when only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v4(&self, address: u32) -> u32 {
        let entry = load(self.root, (address >> 8) as usize);
        if entry & EXTENDED == 0 {
            return entry & VALUE;
        }
        self.longer(entry, address)
    }

    /// The value where prefixes of more than 24 bits are about.
    #[inline]
    fn longer(&self, entry: u32, address: u32) -> u32 {
        load(self.groups, slot(entry, (address & 0xff) as usize)) & VALUE
    }
}

/// Zeroed memory that costs nothing until touched.
pub(super) fn zeroed<T: FromZeros>(n: usize) -> Box<[T]> {
    T::new_vec_zeroed(n).unwrap_or_default().into_boxed_slice()
}

impl Image {
    /// The image for many lookups in a row.
    #[inline]
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View {
            root: &self.root,
            groups: &self.groups,
        }
    }

    /// The value for an IPv4 address; 0 when only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v4(&self, address: u32) -> u32 {
        self.view().lookup_v4(address)
    }

    /// The value for an IPv6 address; 0 when only the default route covers it.
    #[inline]
    #[must_use]
    pub fn lookup_v6(&self, address: u128) -> u32 {
        let mut entry = load(&*self.root, root_index(address));
        let [_, _, _, rest @ ..] = address.to_be_bytes();
        for octet in rest {
            if entry & EXTENDED == 0 {
                break;
            }
            entry = load(&self.groups, slot(entry, octet.into()));
        }
        entry & VALUE
    }
}

#[inline]
pub(super) fn load(entries: &[AtomicU32], index: usize) -> u32 {
    entries
        .get(index)
        .map_or(0, |entry| entry.load(Ordering::Relaxed))
}

/// The entry of the root that an address or prefix begins at.
#[inline]
pub(super) const fn root_index(bits: u128) -> usize {
    (bits >> (128 - ROOT_BITS)) as usize
}

/// Where entry `index` of the group that `entry` names stands.
#[inline]
pub(super) const fn slot(entry: u32, index: usize) -> usize {
    ((entry & !EXTENDED) as usize) * GROUP + index
}
