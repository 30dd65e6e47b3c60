//! Waiting for something that must come: attempts at an interval, until a deadline.

use std::time::{Duration, Instant};

/// Deadline for what takes a second on an idle machine: a busy one may stand still for a while.
pub const LONG: Duration = Duration::from_secs(40);

/// Interval of the attempts of [`until`] and [`value`].
pub const STEP: Duration = Duration::from_millis(10);

/// Repeats `attempt` at an interval until it returns a value.
///
/// # Panics
///
/// Panics with the text of `awaited` when `most` has passed.
#[allow(clippy::panic, reason = "a test says what is wrong by panicking")]
pub fn every<T>(
    step: Duration,
    most: Duration,
    awaited: impl FnOnce() -> String,
    mut attempt: impl FnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + most;
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        if Instant::now() >= deadline {
            panic!("not within {most:?}: {}", awaited());
        }
        std::thread::sleep(step);
    }
}

/// Repeats `attempt` until it returns a value; see [`every`].
pub fn value<T>(
    most: Duration,
    awaited: impl FnOnce() -> String,
    attempt: impl FnMut() -> Option<T>,
) -> T {
    every(STEP, most, awaited, attempt)
}

/// Waits until `holds` returns true, and returns the time that took; see [`every`].
pub fn until(awaited: &str, most: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    value(most, || awaited.to_owned(), || holds().then_some(()));
    began.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_with_the_attempt_that_has_it() {
        let mut attempts = 0;
        let value = every(
            Duration::ZERO,
            LONG,
            || unreachable!("it comes"),
            || {
                attempts += 1;
                (attempts == 3).then_some(7)
            },
        );
        assert_eq!((value, attempts), (7, 3));
    }

    #[test]
    #[should_panic(expected = "not within 0ns: the link is up")]
    fn a_deadline_that_has_passed_names_what_was_awaited() {
        until("the link is up", Duration::ZERO, || false);
    }
}
