//! Token bucket.

use std::time::Duration;

/// Token bucket that fills over time.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    tokens: f64,
    most: f64,
    a_second: f64,
    filled: Duration,
}

impl Budget {
    /// Makes a full bucket of `most` tokens that gets `a_second` a second.
    pub(super) fn new(most: f64, a_second: f64) -> Self {
        Self {
            tokens: most,
            most,
            a_second,
            filled: Duration::ZERO,
        }
    }

    fn fill(&mut self, now: Duration) {
        let since = now.saturating_sub(self.filled).as_secs_f64();
        self.tokens = (self.tokens + since * self.a_second).min(self.most);
        self.filled = self.filled.max(now);
    }

    /// Takes `count` tokens, or none if there are fewer; returns true if it took them.
    pub(super) fn take(&mut self, now: Duration, count: usize) -> bool {
        self.fill(now);
        let count = count as f64;
        let enough = self.tokens >= count;
        if enough {
            self.tokens -= count;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_the_bucket_holds_and_gets() {
        let mut budget = Budget::new(10.0, 5.0);
        assert!(budget.take(Duration::ZERO, 8) && !budget.take(Duration::ZERO, 3));
        assert!(budget.take(Duration::from_secs(1), 7) && !budget.take(Duration::from_secs(1), 1));
        assert!(
            !budget.take(Duration::from_secs(100), 11) && budget.take(Duration::from_secs(100), 10)
        );
    }
}
