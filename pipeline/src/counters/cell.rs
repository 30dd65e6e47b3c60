//! What counters are made of: cells with one writer each, and the declaration that makes their sums and differences.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::path::Path;
use super::show::{Kind, Show, Visit, value_of};

/// A monotonic count with a single writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may call this: two writers lose counts.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }

    /// Publishes the whole of a count that its owner keeps elsewhere.
    #[inline]
    pub fn publish(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// The value a moment ago.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A value that goes up and down, with a single writer.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Publishes a value.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Publishes a value when it is higher.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }

    /// The value a moment ago.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The sum of parts modulo 2^64, which may each be below zero; nothing where parts that were read one after the other
    /// do not make a whole.
    pub fn total<'a>(parts: impl Iterator<Item = &'a Gauge>) -> u64 {
        let sum = parts.fold(0u64, |sum, part| sum.wrapping_add(part.get()));
        if sum.cast_signed() < 0 { 0 } else { sum }
    }
}

/// A gauge of which the highest value of all workers counts: a time, or the longest of something.
#[derive(Debug, Default, derive_more::Deref)]
pub struct Highest(Gauge);

/// A gauge that is a set of bits, of which all workers' together count.
#[derive(Debug, Default, derive_more::Deref)]
pub struct Mask(Gauge);

/// A cell, or a structure of cells, that a worker writes and others read.
pub trait Cell {
    /// What it reads as.
    type Count;

    /// Adds what the cell holds to the sum over workers.
    fn add_to(&self, sum: &mut Self::Count);

    /// Takes off what had been counted `then`. A gauge stays as it is.
    fn since(now: &mut Self::Count, then: &Self::Count);

    /// Shows each count that only grows, and which it is: `path` with the names behind it. A gauge is not shown.
    fn each(count: &mut Self::Count, path: Path, show: &mut dyn FnMut(Path, &mut u64));

    /// Shows each count, which its field declares to be shown like this.
    fn show(count: &Self::Count, how: &Show, to: &mut dyn Visit);
}

impl Cell for Counter {
    type Count = u64;

    fn add_to(&self, sum: &mut u64) {
        *sum = sum.wrapping_add(self.get());
    }

    fn since(now: &mut u64, then: &u64) {
        *now = now.saturating_sub(*then);
    }

    fn each(count: &mut u64, path: Path, show: &mut dyn FnMut(Path, &mut u64)) {
        show(path, count);
    }

    fn show(count: &u64, how: &Show, to: &mut dyn Visit) {
        to.count(how, Kind::Counter, *count);
    }
}

/// Cells that go up and down: how the workers' come together, and how they are shown.
macro_rules! gauges {
    ($($Gauge:ident: |$sum:ident, $own:ident| $add:expr, |$count:ident, $how:ident, $to:ident| $show:expr;)*) => {$(
        impl Cell for $Gauge {
            type Count = u64;

            fn add_to(&self, sum: &mut u64) {
                let ($sum, $own) = (*sum, self.get());
                *sum = $add;
            }

            fn since(_: &mut u64, _: &u64) {}

            fn each(_: &mut u64, _: Path, _: &mut dyn FnMut(Path, &mut u64)) {}

            fn show($count: &u64, $how: &Show, $to: &mut dyn Visit) {
                $show;
            }
        }
    )*};
}

gauges! {
    // Parts may each be below zero, modulo 2^64.
    Gauge: |sum, own| sum.wrapping_add(own), |count, how, to| to.count(how, Kind::Gauge, *count);
    Highest: |sum, own| sum.max(own), |count, how, to| to.count(how, Kind::Gauge, *count);
    Mask: |sum, own| sum | own, |count, how, to| bits(*count, how, to);
}

/// Each of the eight bits of a mask, as 1 or 0.
fn bits(mask: u64, how: &Show, to: &mut dyn Visit) {
    let (label, below) = how.below();
    for bit in 0..8 {
        let label = label.map(|label| (label.0, value_of(label, bit)));
        to.within(label, &mut |to| {
            to.count(&below, Kind::Gauge, mask >> bit & 1)
        });
    }
}

impl<C: Cell> Cell for CachePadded<C> {
    type Count = C::Count;

    fn add_to(&self, sum: &mut C::Count) {
        (**self).add_to(sum);
    }

    fn since(now: &mut C::Count, then: &C::Count) {
        C::since(now, then);
    }

    fn each(count: &mut C::Count, path: Path, show: &mut dyn FnMut(Path, &mut u64)) {
        C::each(count, path, show);
    }

    fn show(count: &C::Count, how: &Show, to: &mut dyn Visit) {
        C::show(count, how, to);
    }
}

impl<C: Cell, const N: usize> Cell for [C; N] {
    type Count = [C::Count; N];

    fn add_to(&self, sum: &mut [C::Count; N]) {
        for (cell, sum) in self.iter().zip(sum) {
            cell.add_to(sum);
        }
    }

    fn since(now: &mut [C::Count; N], then: &[C::Count; N]) {
        for (now, then) in now.iter_mut().zip(then) {
            C::since(now, then);
        }
    }

    fn each(count: &mut [C::Count; N], path: Path, show: &mut dyn FnMut(Path, &mut u64)) {
        for (place, count) in count.iter_mut().enumerate() {
            C::each(count, path.at(place), show);
        }
    }

    fn show(count: &[C::Count; N], how: &Show, to: &mut dyn Visit) {
        let (label, below) = how.below();
        for (place, count) in count.iter().enumerate() {
            let label = label.map(|label| (label.0, value_of(label, place)));
            to.within(label, &mut |to| C::show(count, &below, to));
        }
    }
}

/// The sum over workers of what these cells hold.
pub fn sum<'a, C: Cell<Count: Default> + 'a>(cells: impl IntoIterator<Item = &'a C>) -> C::Count {
    let mut sum = C::Count::default();
    for cell in cells {
        cell.add_to(&mut sum);
    }
    sum
}

/// Declares cells, and what they read as: `pub struct Cells => Counts { field: Cell => HOW, ... }`.
///
/// `HOW` is a function of [`Show`] and what follows it: `metric("npcc_x").column("X")`, or `no_metric()` for a count that is none. A field's documentation
/// is the help text of its metric. A field is in the JSON report under its own name, unless an attribute of serde's says otherwise.
///
/// ```
/// npcc_pipeline::counters! {
///     /// Some.
///     pub struct Cells => Counts {
///         /// Frames.
///         frames: npcc_pipeline::counters::Counter => metric("npcc_frames").column("FRAMES"),
///     }
/// }
/// assert_eq!(Counts::default().columns(), [("FRAMES", 0)]);
/// ```
///
/// A field that does not say how it is shown does not compile:
/// ```compile_fail
/// npcc_pipeline::counters! {
///     /// Some.
///     pub struct Cells => Counts {
///         /// Frames.
///         frames: npcc_pipeline::counters::Counter,
///     }
/// }
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])*
        pub struct $Cells:ident => $Counts:ident {
            $(
                $(#[doc = $note:literal])*
                $(#[serde $json:tt])?
                $field:ident: $Cell:ty => $show:ident $with:tt $(. $also:ident $more:tt)*
            ),* $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $Cells {
            $( $(#[doc = $note])* pub $field: $Cell, )*
        }

        #[doc = concat!("What [`", stringify!($Cells), "`] read as.")]
        #[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct $Counts {
            $( $(#[doc = $note])* $(#[serde $json])? pub $field: <$Cell as $crate::counters::Cell>::Count, )*
        }

        impl $crate::counters::Cell for $Cells {
            type Count = $Counts;

            fn add_to(&self, sum: &mut $Counts) {
                $( $crate::counters::Cell::add_to(&self.$field, &mut sum.$field); )*
            }

            fn since(now: &mut $Counts, then: &$Counts) {
                $( <$Cell as $crate::counters::Cell>::since(&mut now.$field, &then.$field); )*
            }

            fn each(
                count: &mut $Counts,
                path: $crate::counters::Path,
                show: &mut dyn FnMut($crate::counters::Path, &mut u64),
            ) {
                $( <$Cell as $crate::counters::Cell>::each(
                    &mut count.$field,
                    $crate::counters::Show::$show $with $(.$also $more)*.path(path, stringify!($field)),
                    show,
                ); )*
            }

            fn show(
                count: &$Counts,
                how: &$crate::counters::Show,
                to: &mut dyn $crate::counters::Visit,
            ) {
                how.enter(to, &mut |to| { $( {
                    const HOW: $crate::counters::Show =
                        $crate::counters::Show::$show $with $(.$also $more)*.of_field(concat!($($note),*));
                    <$Cell as $crate::counters::Cell>::show(&count.$field, &how.over(&HOW), to);
                } )* });
            }
        }

        impl $Counts {
            /// Takes off what had been counted `then`; gauges stay as they are.
            pub fn since(&mut self, then: &$Counts) {
                <$Cells as $crate::counters::Cell>::since(self, then);
            }

            /// Shows each count that only grows, and which it is.
            pub fn each(
                &mut self,
                path: $crate::counters::Path,
                show: &mut dyn FnMut($crate::counters::Path, &mut u64),
            ) {
                <$Cells as $crate::counters::Cell>::each(self, path, show);
            }

            /// Shows each count with its declaration.
            pub fn show(&self, to: &mut dyn $crate::counters::Visit) {
                let how = $crate::counters::Show::nested().kept("");
                <$Cells as $crate::counters::Cell>::show(self, &how, to);
            }

            /// The columns of its owner's table that are declared here.
            #[must_use]
            pub fn columns(&self) -> Vec<(&'static str, u64)> {
                let mut columns = $crate::counters::Columns::default();
                self.show(&mut columns);
                columns.0
            }
        }
    };
}
