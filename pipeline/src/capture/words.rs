//! Tokenizer of a filter's text.

/// Word of a filter, and the column where it begins, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

/// Returns a word as an error shows it: at most 40 characters.
pub(super) fn shown(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// Splits a text into words: parentheses, `!`, `&&` and `||` stand for themselves; everything else ends at whitespace or at
/// one of these.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let mut all = Vec::new();
    let (mut rest, mut column) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if first.is_whitespace() => first.len_utf8(),
            '(' | ')' | '!' => 1,
            _ if rest.starts_with("&&") || rest.starts_with("||") => 2,
            _ => {
                let ends = |at: &(usize, char)| {
                    at.1.is_whitespace() || matches!(at.1, '(' | ')' | '!' | '&' | '|')
                };
                let end = rest.char_indices().skip(1).find(ends);
                end.map_or(rest.len(), |(at, _)| at)
            }
        };
        let (word, behind) = rest.split_at(length);
        if !first.is_whitespace() {
            all.push(Word { text: word, column });
        }
        column += word.chars().count();
        rest = behind;
    }
    all
}
