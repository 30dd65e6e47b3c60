//! Bound of log lines that somebody else can cause without end: by kind and time, so that no kind silences another, and none for good.

use std::time::{Duration, Instant};

/// Most lines of a kind in [`PERIOD`]: under a storm the first ones show the cause.
const LINES: u32 = 20;
/// Time after which lines of a kind are written again.
const PERIOD: Duration = Duration::from_mins(1);

/// Lines of each kind in the current period.
#[derive(Debug, Default)]
pub struct Lines {
    kinds: Vec<Kind>,
}

#[derive(Debug)]
struct Kind {
    name: &'static str,
    began: Instant,
    written: u32,
    left_out: u32,
}

impl Lines {
    /// Counts a line of a kind; returns true if it may be written.
    #[must_use]
    pub fn admit(&mut self, name: &'static str, now: Instant) -> bool {
        let index = self.kinds.iter().position(|kind| kind.name == name);
        let index = index.unwrap_or_else(|| {
            self.kinds.push(Kind {
                name,
                began: now,
                written: 0,
                left_out: 0,
            });
            self.kinds.len() - 1
        });
        let Some(kind) = self.kinds.get_mut(index) else {
            return true;
        };
        if now.duration_since(kind.began) >= PERIOD && kind.left_out == 0 {
            (kind.began, kind.written) = (now, 0);
        }
        if kind.written < LINES {
            kind.written += 1;
            return true;
        }
        kind.left_out = kind.left_out.saturating_add(1);
        false
    }

    /// Returns a line for each kind whose period is over and of which lines were left out; their period begins anew.
    pub fn left_out(&mut self, now: Instant) -> Vec<String> {
        let over = |kind: &&mut Kind| kind.left_out > 0 && now.duration_since(kind.began) >= PERIOD;
        let kinds = self.kinds.iter_mut().filter(over);
        let line = |kind: &mut Kind| {
            let left_out = std::mem::take(&mut kind.left_out);
            (kind.began, kind.written) = (now, 0);
            format!("{left_out} more lines about {} were left out", kind.name)
        };
        kinds.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: whatever was written before, a kind has its lines again a minute later, and none takes those of another.
    #[test]
    fn lines_are_bounded_by_kind_and_minute_and_never_for_good() {
        let begin = Instant::now();
        let second = |seconds| begin + Duration::from_secs(seconds);
        let mut lines = Lines::default();
        for minute in 0..50 {
            let now = second(minute * 61);
            let said = lines.left_out(now);
            let expected = ["10 more lines about routes without room were left out"];
            assert_eq!(said, &expected[..usize::from(minute > 0)]);
            let written = (0..30).filter(|_| lines.admit("routes without room", now));
            assert_eq!(written.count(), 20, "minute {minute}");
            assert!(lines.admit("differences", now), "minute {minute}");
            assert!(lines.left_out(second(minute * 61 + 59)).is_empty());
        }
    }
}
