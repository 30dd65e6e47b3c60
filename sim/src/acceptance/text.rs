//! Changes to the text of a scenario, so that a cell is a scenario file by itself.

use crate::hash::fnv;

/// Text of a scenario whose top-level keys can be replaced.
#[derive(Debug, Clone)]
pub struct Text(String);

impl Text {
    /// Takes the text of a scenario file.
    #[must_use]
    pub fn of(file: &str) -> Text {
        Text(file.to_owned())
    }

    /// Sets a top-level key: the old one goes, with the lines that belong to it.
    #[must_use]
    pub fn set(self, key: &str, value: &str) -> Text {
        let mut text = String::new();
        let mut is_old = false;
        for line in self.0.lines() {
            if !line.starts_with([' ', '-', '#', ']', '}']) {
                is_old = line
                    .strip_prefix(key)
                    .is_some_and(|rest| rest.starts_with(':'));
            }
            if !is_old {
                text.push_str(line);
                text.push('\n');
            }
        }
        text.push_str(&format!("{key}: {value}\n"));
        Text(text)
    }

    /// Returns the text.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

/// Returns the window of a queue pair in bytes: the bandwidth-delay product, shared by the queue pairs of a host, and never below 4 MB.
#[must_use]
pub fn window(gbps: u64, round_trip_us: u64, queue_pairs: u64) -> u64 {
    (gbps * round_trip_us * 125 / queue_pairs.max(1)).max(4_000_000)
}

/// Sets the unkind end of each parameter of cards that has only a range; the hash of the cell's name decides whether there is a window.
#[must_use]
pub fn unkind(text: Text, name: &str, window: u64) -> Text {
    let has_window = (fnv(name.as_bytes()) >> 16).is_multiple_of(2);
    let window = if has_window {
        format!("{window}B")
    } else {
        "unlimited".to_owned()
    };
    text.set("limiter_burst", "64KB")
        .set("reaction", "10us")
        .set("window", &window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_replaced_with_all_its_lines() {
        let text = "a: 1\nvary:\n  scheme: [pfc]\n  length: [1km]\npool: 64MB\nlist:\n- one\n";
        let changed = Text::of(text).set("vary", "{ x: 2 }").set("list", "[]");
        assert_eq!(
            changed.text(),
            "a: 1\npool: 64MB\nvary: { x: 2 }\nlist: []\n"
        );
        assert_eq!(Text::of("a: 1\n").set("b", "2").text(), "a: 1\nb: 2\n");
        assert_eq!(
            Text::of("pool: 1\n").set("po", "2").text(),
            "pool: 1\npo: 2\n"
        );
    }

    #[test]
    fn a_window_is_a_share_of_the_product_and_never_small() {
        assert_eq!(window(100, 1_000, 1), 12_500_000);
        assert_eq!(window(100, 5_000, 4), 15_625_000);
        assert_eq!(window(100, 1_000, 16), 4_000_000);
        assert_eq!(window(100, 10, 0), 4_000_000);
    }
}
