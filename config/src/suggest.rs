//! "Did you mean": the known word nearest to the one written.

/// The candidate nearest to `word`, if it is near enough to be meant.
pub(crate) fn nearest<'a, S: AsRef<str>>(word: &str, candidates: &'a [S]) -> Option<&'a str> {
    // A third of the letters may be wrong: `shalow` and `prots` are meant, `x` is anything.
    let allowed = word.chars().count().max(3) / 3;
    candidates
        .iter()
        .map(|c| (distance(&word.to_lowercase(), c.as_ref()), c.as_ref()))
        .filter(|(d, _)| *d <= allowed)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Edits (insert, delete, replace, swap neighbours) between two words, long ones cut.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let replace = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_else() {
        let keys = ["shallow", "deep", "hard", "filter"];
        assert_eq!(nearest("shalow", &keys), Some("shallow"));
        assert_eq!(nearest("Deep", &keys), Some("deep"));
        assert_eq!(nearest("fitler", &keys), Some("filter"));
        assert_eq!(nearest("bananas", &keys), None);
    }

    #[test]
    fn counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
