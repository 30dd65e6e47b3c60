//! Cells by which a law is tuned and judged: a covering design over queue pairs, distances, buffers, cards and loads.
//!
//! Every pair of values of two axes occurs in a cell, but for those that [`Load::is_at`] and [`Load::has`] exclude. A cell's name has its values as words; those of a load are dealt to the
//! two halves in the order of the names' hashes, which also decide whether queue pairs have windows. Cards have the unkind ends of
//! [`crate::acceptance::unkind`].
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
pub use judge::{Judged, baselines, judge, table};

use crate::hash::fnv;
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

/// Returns the points of the design.
#[must_use]
pub fn points() -> Vec<Point> {
    let sizes = [
        Load::ALL.len(),
        CARDS.len(),
        Distance::ALL.len(),
        Buffer::ALL.len(),
        QUEUE_PAIRS.len(),
    ];
    let allowed = |(first, load): design::At, (axis, value): design::At| {
        first != 0
            || match axis {
                2 => Load::ALL[load].is_at(Distance::ALL[value]),
                4 => Load::ALL[load].has(QUEUE_PAIRS[value]),
                _ => true,
            }
    };
    let rows = design::cover(&sizes, allowed);
    let point = |row: Vec<usize>| Point {
        load: Load::ALL[row[0]],
        cards: CARDS[row[1]],
        distance: Distance::ALL[row[2]],
        buffer: Buffer::ALL[row[3]],
        queue_pairs: QUEUE_PAIRS[row[4]],
    };
    rows.into_iter().map(point).collect()
}

/// Returns the points of a half, load by load.
#[must_use]
pub fn half(half: Half) -> Vec<Point> {
    let hash = |point: &Point| fnv(point.name().as_bytes());
    let mut dealt = Vec::new();
    for load in Load::ALL {
        let mut of_load: Vec<Point> = points();
        of_load.retain(|point| point.load == load);
        of_load.sort_by_key(hash);
        let first = usize::from(half == Half::Even);
        dealt.extend(of_load.into_iter().skip(first).step_by(2));
    }
    dealt
}

#[cfg(test)]
mod tests;
