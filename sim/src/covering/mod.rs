//! Cells by which a law is tuned and judged: a covering design over queue pairs, distances, buffers, cards and loads.
//!
//! There are two designs, one for each half: in each, every pair of values of two axes occurs in a cell, but for those that [`Load::is_at`] and
//! [`Load::has`] exclude. A cell's name has its values as words, and the name's hash decides whether queue pairs have windows. Cards have the
//! unkind ends of [`crate::acceptance::unkind`].
//!
//! ```text
//!   tx-* - edge ==== dci ==== far - rx-*                         one distance
//!   tx-* - edge ==== dci ==== mid - rx-near ; mid ---- far - rx-far      near and far receivers
//!   tx-far - before ---- edge ==== dci ==== far - rx-* ; tx-near - edge  near and far senders
//! ```

mod axes;
mod design;
mod judge;
mod scenario;

pub use axes::{Buffer, CARDS, Cards, Distance, Load, QUEUE_PAIRS};
pub use judge::{ComparedCell, baselines, judge, table};

use crate::matrix::Half;

/// Values of the axes of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Load.
    pub load: Load,
    /// Cards of the hosts.
    pub cards: Cards,
    /// Distance or distances.
    pub distance: Distance,
    /// Buffer of each switch.
    pub buffer: Buffer,
    /// Connections between each pair of hosts.
    pub queue_pairs: u32,
}

/// Returns the points of both halves.
#[must_use]
pub fn points() -> Vec<Point> {
    let mut points = half(Half::Odd);
    points.extend(half(Half::Even));
    points
}

/// Returns the points of a half: a design of its own, with every pair of values. That of the judging half takes the values from last to first,
/// so that it combines others.
#[must_use]
pub fn half(half: Half) -> Vec<Point> {
    let sizes = [
        Load::ALL.len(),
        CARDS.len(),
        Distance::ALL.len(),
        Buffer::ALL.len(),
        QUEUE_PAIRS.len(),
    ];
    let place = |(axis, value): design::At| match half {
        Half::Odd => value,
        Half::Even => sizes[axis] - 1 - value,
    };
    let allowed = |first: design::At, other: design::At| {
        let (load, value) = (place(first), place(other));
        first.0 != 0
            || match other.0 {
                2 => Load::ALL[load].is_at(Distance::ALL[value]),
                4 => Load::ALL[load].has(QUEUE_PAIRS[value]),
                _ => true,
            }
    };
    let point = |row: Vec<usize>| {
        let at = |axis: usize| place((axis, row[axis]));
        Point {
            load: Load::ALL[at(0)],
            cards: CARDS[at(1)],
            distance: Distance::ALL[at(2)],
            buffer: Buffer::ALL[at(3)],
            queue_pairs: QUEUE_PAIRS[at(4)],
        }
    };
    let rows = design::cover(&sizes, allowed);
    rows.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests;
