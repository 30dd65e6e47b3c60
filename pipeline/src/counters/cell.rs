//! Building blocks of counters: cells with one writer each, and the macro that declares their sums and differences.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::path::Path;
use super::show::{Kind, Show, Visit, value_of};

/// Monotonic count with a single writer.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may call this: with two writers, counts are lost.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }

    /// Publishes the total of a count that its owner keeps elsewhere.
    #[inline]
    pub fn publish(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// Returns the value as of a moment ago.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Value that goes up and down, with a single writer.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Publishes `value`.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Publishes `value` if it is higher than the current one.
    #[inline]
    pub fn raise(&self, value: u64) {
        if value > self.get() {
            self.set(value);
        }
    }

    /// Returns the value as of a moment ago.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the sum of parts modulo 2^64, each of which may be below zero; 0 if the sum is below zero, because the parts
    /// were read one after the other.
    pub fn total<'a>(parts: impl Iterator<Item = &'a Gauge>) -> u64 {
        let sum = parts.fold(0u64, |sum, part| sum.wrapping_add(part.get()));
        if sum.cast_signed() < 0 { 0 } else { sum }
    }
}

/// Gauge whose maximum over all workers counts: a time, or the longest of something.
#[derive(Debug, Default, derive_more::Deref)]
pub struct Highest(Gauge);

/// Gauge that is a set of bits, whose union over all workers counts.
#[derive(Debug, Default, derive_more::Deref)]
pub struct Mask(Gauge);

/// A cell, or a structure of cells, that one worker writes and others read.
pub trait Cell {
    /// Type that the cell is read into.
    type Count;

    /// Adds the cell's value to the sum over workers.
    fn add_to(&self, sum: &mut Self::Count);

    /// Subtracts the earlier reading `then`. Gauges are left as they are.
    fn since(now: &mut Self::Count, then: &Self::Count);

    /// Calls `show` for each counter with its path, `path` extended by the names below it. Gauges are skipped.
    fn each(count: &mut Self::Count, path: Path, show: &mut dyn FnMut(Path, &mut u64));

    /// Visits each count, shown as its field declares in `how`.
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

/// Implements `Cell` for gauges: how the workers' values combine, and how they are shown.
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
    // The parts may each be below zero, modulo 2^64.
    Gauge: |sum, own| sum.wrapping_add(own), |count, how, to| to.count(how, Kind::Gauge, *count);
    Highest: |sum, own| sum.max(own), |count, how, to| to.count(how, Kind::Gauge, *count);
    Mask: |sum, own| sum | own, |count, how, to| bits(*count, how, to);
}

/// Visits each of the eight bits of a mask, as 1 or 0.
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

/// Returns the sum of the cells over workers.
pub fn sum<'a, C: Cell<Count: Default> + 'a>(cells: impl IntoIterator<Item = &'a C>) -> C::Count {
    let mut sum = C::Count::default();
    for cell in cells {
        cell.add_to(&mut sum);
    }
    sum
}

/// Declares a structure of cells and the structure they are read into: `pub struct Cells => Counts { field: Cell => HOW, ...
/// }`.
///
/// `HOW` is a constructor of [`Show`] and its modifiers: `metric("npcc_x").column("X")`, or `no_metric()` for a count without
/// a metric. A field's documentation is the help text of its metric. A field is in the JSON report under its own name, unless
/// a serde attribute says otherwise.
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
                $(#[schemars $schema:tt])?
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
        #[cfg_attr(feature = "config", derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct $Counts {
            $( $(#[doc = $note])* $(#[serde $json])? $(#[cfg_attr(feature = "config", schemars $schema)])? pub $field: <$Cell as $crate::counters::Cell>::Count, )*
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
            /// Subtracts the earlier reading `then`; gauges are left as they are.
            pub fn since(&mut self, then: &$Counts) {
                <$Cells as $crate::counters::Cell>::since(self, then);
            }

            /// Calls `show` for each counter, with its path.
            pub fn each(
                &mut self,
                path: $crate::counters::Path,
                show: &mut dyn FnMut($crate::counters::Path, &mut u64),
            ) {
                <$Cells as $crate::counters::Cell>::each(self, path, show);
            }

            /// Visits each count with its declaration.
            pub fn show(&self, to: &mut dyn $crate::counters::Visit) {
                let how = $crate::counters::Show::nested().kept("");
                <$Cells as $crate::counters::Cell>::show(self, &how, to);
            }

            /// Returns heading and value of each table column that these fields declare.
            #[must_use]
            pub fn columns(&self) -> Vec<(&'static str, u64)> {
                let mut columns = $crate::counters::Columns::default();
                self.show(&mut columns);
                columns.0
            }
        }
    };
}
