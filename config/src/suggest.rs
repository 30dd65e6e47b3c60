//! "Did you mean": the known word nearest to the one written.

/// Returns the candidate nearest to `word`, if it is near enough to be meant.
pub(crate) fn nearest<'a, S: AsRef<str>>(word: &str, candidates: &'a [S]) -> Option<&'a str> {
    // A third of the letters may be wrong: `shalow` and `prots` are meant, `x` is anything.
    let allowed = word.chars().count().max(3) / 3;
    // No known word is longer, and the time grows with the length.
    let word: String = word.to_lowercase().chars().take(64).collect();
    candidates
        .iter()
        .map(|c| (strsim::osa_distance(&word, c.as_ref()), c.as_ref()))
        .filter(|(d, _)| *d <= allowed)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
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
}
