//! Rows of closed applications: five kinds, by queue pairs and distance.

use super::Row;
use super::cell::{COMMON, FAR, Path, cell, review, row};
use super::rule::Rule;
use super::text::Text;
use crate::matrix::Cell;

/// Closed applications, with the duration of their cells at 100 km and at 500 km.
const APPLICATIONS: [(&str, &str, [&str; 2]); 5] = [
    ("checkpoint", review!("barrier-pfc"), ["60ms", "120ms"]),
    ("halving", review!("allreduce-halving"), ["60ms", "240ms"]),
    ("ring", review!("ring-dci"), ["60ms", "240ms"]),
    ("alltoall", review!("alltoall-closed"), ["60ms", "120ms"]),
    ("requests", review!("requests"), ["40ms", "100ms"]),
];
const QUEUE_PAIRS: [u64; 3] = [1, 4, 16];

fn applications(pool: &str, lengths: &[(&str, u64)], long: bool, rule: &Rule) -> Vec<(Cell, Rule)> {
    let mut cases = Vec::new();
    for (place, (kind, text, durations)) in APPLICATIONS.into_iter().enumerate() {
        for (at, queue_pairs) in QUEUE_PAIRS.into_iter().enumerate() {
            for (other, (length, round_trip_us)) in lengths.iter().enumerate() {
                let sender = COMMON[(place + at + other) % COMMON.len()];
                let name = format!("{kind} {queue_pairs}qp {sender} {length} {pool}");
                let text = Text::of(text)
                    .set("pool", pool)
                    .set("duration", durations[usize::from(long)]);
                let path = Path {
                    round_trip_us: *round_trip_us,
                    ..FAR.with(queue_pairs)
                };
                let vary = format!(", length: [{length}], qps: [{queue_pairs}]");
                cases.push((cell(text, &name, sender, &vary, path), rule.clone()));
            }
        }
    }
    cases
}

pub(super) fn steps() -> Row {
    let lengths = [("10km", 100), ("100km", 1_000)];
    row(
        "closed applications",
        "step time at most 1.03 (1.08) of the best of pfc, ecn, ecn-tuned; pauses at most 1 % of pfc's; no drop where they have none",
        applications("64MB", &lengths, false, &Rule::Steps),
    )
}

pub(super) fn small_pool() -> Row {
    row(
        "the same, 16 MB, 500 km",
        "no baseline has both a step time more than 3 % (8 %) better and no more pauses",
        applications("16MB", &[("500km", 5_000)], true, &Rule::Frontier),
    )
}
