//! Covering design: few combinations of axis values in which every pair of values of two axes occurs.

use std::collections::BTreeSet;

/// A value of an axis, as (axis, value).
pub(super) type At = (usize, usize);

/// Returns combinations, one value for each axis, in which every pair occurs that `allowed` permits; no combination has another. Greedy: each
/// combination begins with the first pair that is missing, and takes axis by axis the value that adds most missing pairs; among equal ones
/// the value that was taken least.
pub(super) fn cover(sizes: &[usize], allowed: impl Fn(At, At) -> bool) -> Vec<Vec<usize>> {
    let axes = 0..sizes.len();
    let values = axes
        .clone()
        .flat_map(|axis| (0..sizes[axis]).map(move |value| (axis, value)));
    let values: Vec<At> = values.collect();
    let pairs = values.iter().flat_map(|one| {
        let later = values.iter().filter(|other| other.0 > one.0);
        later.map(move |other| (*one, *other))
    });
    let mut missing: BTreeSet<(At, At)> =
        pairs.filter(|(one, other)| allowed(*one, *other)).collect();
    let mut taken: Vec<Vec<u32>> = sizes.iter().map(|size| vec![0; *size]).collect();
    let mut rows = Vec::new();
    while let Some((one, other)) = missing.first().copied() {
        let mut row: Vec<Option<usize>> = vec![None; sizes.len()];
        row[one.0] = Some(one.1);
        row[other.0] = Some(other.1);
        for axis in axes.clone() {
            if row[axis].is_some() {
                continue;
            }
            let chosen: Vec<At> = row
                .iter()
                .enumerate()
                .filter_map(|(axis, value)| Some((axis, (*value)?)))
                .collect();
            let fits = |value: &usize| {
                let at = (axis, *value);
                chosen
                    .iter()
                    .all(|other| allowed(*other.min(&at), at.max(*other)))
            };
            let gain = |value: usize| {
                let at = (axis, value);
                let adds = |other: &&At| missing.contains(&(**other.min(&&at), at.max(**other)));
                chosen.iter().filter(adds).count()
            };
            let best = (0..sizes[axis]).filter(fits).max_by_key(|value| {
                let rarely = std::cmp::Reverse(taken[axis][*value]);
                (gain(*value), rarely, std::cmp::Reverse(*value))
            });
            row[axis] = best;
        }
        let Some(row) = row.into_iter().collect::<Option<Vec<usize>>>() else {
            // No value of an axis fits: `allowed` permits a pair that no combination can have.
            missing.remove(&(one, other));
            continue;
        };
        for (axis, value) in row.iter().enumerate() {
            taken[axis][*value] += 1;
            for (later, other) in row.iter().enumerate().skip(axis + 1) {
                missing.remove(&((axis, *value), (later, *other)));
            }
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves coverage by looking for each pair that is allowed.
    fn missing(sizes: &[usize], rows: &[Vec<usize>], allowed: impl Fn(At, At) -> bool) -> usize {
        let mut missing = 0;
        for (axis, size) in sizes.iter().enumerate() {
            for (later, others) in sizes.iter().enumerate().skip(axis + 1) {
                for value in 0..*size {
                    for other in 0..*others {
                        let is_there = rows
                            .iter()
                            .any(|row| row[axis] == value && row[later] == other);
                        let wanted = allowed((axis, value), (later, other));
                        assert!(wanted || !is_there, "a pair that is not allowed");
                        missing += usize::from(wanted && !is_there);
                    }
                }
            }
        }
        missing
    }

    #[test]
    fn every_pair_occurs_in_few_combinations() {
        for (sizes, most) in [
            (vec![2, 2], 4),
            (vec![3, 3, 3], 12),
            (vec![4, 6, 5, 8, 13], 125),
            (vec![2; 10], 12),
        ] {
            let rows = cover(&sizes, |_, _| true);
            assert_eq!(missing(&sizes, &rows, |_, _| true), 0, "{sizes:?}");
            assert!(rows.len() <= most, "{sizes:?}: {}", rows.len());
            assert_eq!(rows, cover(&sizes, |_, _| true), "the same at each call");
        }
    }

    #[test]
    fn no_combination_has_a_pair_that_is_not_allowed() {
        let sizes = [4, 6, 5];
        let allowed = |one: At, other: At| !(one.0 == 0 && one.1 > 1 && other == (1, 2));
        let rows = cover(&sizes, allowed);
        assert_eq!(missing(&sizes, &rows, allowed), 0);
        // A value that fits with nothing of another axis is left out.
        let rows = cover(&sizes, |one, other| one != (0, 3) || other.0 != 1);
        assert!(rows.iter().all(|row| row[0] != 3));
    }
}
