//! Text from outside, made fit for a terminal, a log or an audit.

/// Returns the first `most` characters of a text from outside, on one line and without control characters: each is replaced by U+FFFD,
/// so that it neither moves a terminal's cursor nor begins a line that somebody else seems to have written.
#[must_use]
pub fn printable(text: &str, most: usize) -> String {
    let shown = |one: char| {
        // What reorders or hides text is no control character to Unicode: bidirectional marks, line and paragraph separators.
        let hidden = matches!(one, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if one.is_control() || hidden {
            char::REPLACEMENT_CHARACTER
        } else {
            one
        }
    };
    text.chars().take(most).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_moves_a_cursor_or_begins_a_line() {
        for (text, shown) in [
            ("dc0", "dc0"),
            ("x\nFORGED", "x\u{fffd}FORGED"),
            ("\u{1b}[2J\u{9b}2J\r", "\u{fffd}[2J\u{fffd}2J\u{fffd}"),
            ("a\u{202e}b\u{2028}c", "a\u{fffd}b\u{fffd}c"),
            ("abcdefghijkl", "abcdefghij"),
        ] {
            assert_eq!(printable(text, 10), shown);
        }
    }
}
