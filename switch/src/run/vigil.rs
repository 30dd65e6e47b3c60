//! Who has stopped moving: pure, over counters that only grow while their thread is well.

use std::time::{Duration, Instant};

/// A thread that is watched.
#[derive(Debug)]
struct Watched {
    name: String,
    is_needed: bool,
    progress: u64,
    since: Instant,
    stuck: bool,
}

/// Threads, and for how long each may stand still.
#[derive(Debug)]
pub(super) struct Vigil {
    patience: Duration,
    watched: Vec<Watched>,
}

/// What a look found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Who stands still since the last look, by name, and whether it is needed.
    pub(super) stuck: Vec<(String, bool)>,
    /// Who goes on again.
    pub(super) well: Vec<String>,
}

impl Vigil {
    /// Of threads with these names, needed or not, all of them well at `now`.
    pub(super) fn new(
        threads: impl Iterator<Item = (String, bool)>,
        patience: Duration,
        now: Instant,
    ) -> Vigil {
        let watched = |(name, is_needed)| Watched {
            name,
            is_needed,
            progress: 0,
            since: now,
            stuck: false,
        };
        Vigil {
            patience,
            watched: threads.map(watched).collect(),
        }
    }

    /// Looks at each one's counter, in the order of the names.
    pub(super) fn look(&mut self, progress: impl Iterator<Item = u64>, now: Instant) -> Found {
        let mut found = Found::default();
        for (one, progress) in self.watched.iter_mut().zip(progress) {
            if one.progress != progress {
                (one.progress, one.since) = (progress, now);
                if std::mem::take(&mut one.stuck) {
                    found.well.push(one.name.clone());
                }
            } else if !one.stuck && now.duration_since(one.since) >= self.patience {
                one.stuck = true;
                found.stuck.push((one.name.clone(), one.is_needed));
            }
        }
        found
    }

    /// Whether nobody stands still who is needed.
    pub(super) fn all_well(&self) -> bool {
        self.watched.iter().all(|one| !one.stuck || !one.is_needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_still_is_named_once_and_again_when_he_goes_on() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let names = |names: &[&str]| {
            let all = names.iter().map(|name| ((*name).to_owned(), true));
            all.collect::<Vec<_>>().into_iter()
        };
        let both = names(&["worker on core 1", "control"]);
        let mut vigil = Vigil::new(both, Duration::from_secs(5), begin);
        assert_eq!(vigil.look([7, 9].into_iter(), at(1)), Found::default());
        assert_eq!(vigil.look([7, 10].into_iter(), at(5)), Found::default());
        let found = vigil.look([7, 11].into_iter(), at(6));
        assert_eq!(found.stuck, [("worker on core 1".to_owned(), true)]);
        assert!(!vigil.all_well());
        assert_eq!(vigil.look([7, 12].into_iter(), at(9)), Found::default());
        let found = vigil.look([8, 13].into_iter(), at(10));
        assert_eq!((found.well.len(), found.stuck.len()), (1, 0));
        assert!(vigil.all_well());
        // Nobody moved from the beginning.
        let mut vigil = Vigil::new(names(&["control"]), Duration::from_secs(5), begin);
        assert_eq!(vigil.look([0].into_iter(), at(5)).stuck.len(), 1);
    }

    #[test]
    fn who_is_not_needed_is_named_and_all_is_well_without_it() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let threads = [("HTTP thread", false), ("link thread", true)];
        let threads = threads.map(|(name, is_needed)| (name.to_owned(), is_needed));
        let mut vigil = Vigil::new(threads.into_iter(), Duration::from_secs(5), begin);
        let found = vigil.look([0, 1].into_iter(), at(5));
        assert_eq!(found.stuck, [("HTTP thread".to_owned(), false)]);
        assert!(vigil.all_well());
        let found = vigil.look([0, 1].into_iter(), at(10));
        assert_eq!(found.stuck, [("link thread".to_owned(), true)]);
        assert!(!vigil.all_well());
        let found = vigil.look([1, 2].into_iter(), at(11));
        assert_eq!(found.well, ["HTTP thread", "link thread"]);
    }
}
