//! Cache of HTTP answers: each is reused for a moment, so that any number of clients costs at most a tenth of the thread's time per answer.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use hyper::body::Bytes;

/// Minimum time an answer stays fresh: a client that asks ten times a second gets a new one each time.
const FRESH: Duration = Duration::from_millis(90);
/// Time an answer stays fresh, as a multiple of the time it took to make, if that is longer than [`FRESH`].
const TIMES: u32 = 10;

/// Cached answer, and the time until which it is fresh.
#[derive(Debug)]
struct Answer {
    until: Instant,
    bytes: Bytes,
}

/// Cached answers by request.
#[derive(Debug)]
pub(super) struct Cache<K>(HashMap<K, Answer>);

impl<K> Default for Cache<K> {
    fn default() -> Cache<K> {
        Cache(HashMap::new())
    }
}

impl<K: Eq + Hash> Cache<K> {
    /// Returns the fresh answer to `requested`, or the one that `make` makes now. A failure is not cached: the next request calls `make` again.
    pub(super) fn get<E>(
        &mut self,
        requested: K,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<Bytes, E> {
        self.get_by(Instant::now, requested, make)
    }

    /// Does what [`Cache::get`] does, by this clock.
    fn get_by<E>(
        &mut self,
        clock: impl Fn() -> Instant,
        requested: K,
        make: impl FnOnce() -> Result<String, E>,
    ) -> Result<Bytes, E> {
        let begun = clock();
        if let Some(answer) = self.0.get(&requested)
            && begun < answer.until
        {
            return Ok(answer.bytes.clone());
        }
        let bytes = Bytes::from(make()?);
        let now = clock();
        let fresh = FRESH.max(now.duration_since(begun) * TIMES);
        let answer = Answer {
            until: now + fresh,
            bytes: bytes.clone(),
        };
        self.0.insert(requested, answer);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_answer_is_kept_for_a_moment_and_longer_if_it_took_long() {
        let mut cache = Cache::default();
        let mut made = 0;
        let now = Cell::new(Instant::now());
        let pass = |time: Duration| now.set(now.get() + time);
        let mut ask = |requested: &'static str, takes: Duration| {
            cache.get_by(
                || now.get(),
                requested,
                || {
                    made += 1;
                    pass(takes);
                    Ok::<_, ()>(made.to_string())
                },
            )
        };
        let (quick, slow) = (Duration::ZERO, Duration::from_millis(60));
        assert_eq!(ask("a", quick).unwrap(), "1");
        assert_eq!(ask("a", quick).unwrap(), "1");
        assert_eq!(ask("b", slow).unwrap(), "2");
        pass(Duration::from_millis(150));
        assert_eq!(ask("a", quick).unwrap(), "3");
        assert_eq!(ask("b", quick).unwrap(), "2", "fresh for 600 ms");
        pass(Duration::from_millis(450));
        assert_eq!(ask("b", quick).unwrap(), "4", "and no longer");
    }

    #[test]
    fn what_cannot_be_made_is_not_kept() {
        let mut cache = Cache::default();
        assert_eq!(cache.get(1, || Err("no")), Err("no"));
        assert_eq!(
            cache.get(1, || Ok::<_, &str>("yes".to_owned())).unwrap(),
            "yes"
        );
    }
}
