//! One of each for every drop reason.

use std::ops::{Deref, DerefMut};

use super::cell::Cell;
use super::path::Path;
use crate::drop::{DropReason, REASONS};

/// One `T` for every drop reason, at its index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByReason<T>([T; REASONS]);

impl<T: Default> Default for ByReason<T> {
    fn default() -> ByReason<T> {
        ByReason(std::array::from_fn(|_| T::default()))
    }
}

impl<T> Deref for ByReason<T> {
    type Target = [T; REASONS];

    #[inline]
    fn deref(&self) -> &[T; REASONS] {
        &self.0
    }
}

impl<T> DerefMut for ByReason<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T; REASONS] {
        &mut self.0
    }
}

impl<C: Cell> Cell for ByReason<C> {
    type Count = ByReason<C::Count>;

    fn add_to(&self, sum: &mut ByReason<C::Count>) {
        self.0.add_to(&mut sum.0);
    }

    fn since(now: &mut ByReason<C::Count>, then: &ByReason<C::Count>) {
        <[C; REASONS]>::since(&mut now.0, &then.0);
    }

    /// By the names of the reasons: another version may have others between them.
    fn each(count: &mut ByReason<C::Count>, path: Path, show: &mut dyn FnMut(Path, &mut u64)) {
        for (reason, count) in DropReason::ALL.iter().zip(&mut count.0) {
            C::each(count, path.then(reason.name()), show);
        }
    }
}
