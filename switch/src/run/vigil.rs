//! Who has stopped moving: pure, over counters that only grow while their thread is well.

use std::time::{Duration, Instant};

/// A thread that is watched.
#[derive(Debug)]
struct Watched {
    name: String,
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
    /// Who stands still since the last look, by name.
    pub(super) stuck: Vec<String>,
    /// Who goes on again.
    pub(super) well: Vec<String>,
}

impl Vigil {
    /// Of threads with these names, all of them well at `now`.
    pub(super) fn new(names: Vec<String>, patience: Duration, now: Instant) -> Vigil {
        let watched = |name| Watched {
            name,
            progress: 0,
            since: now,
            stuck: false,
        };
        Vigil {
            patience,
            watched: names.into_iter().map(watched).collect(),
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
                found.stuck.push(one.name.clone());
            }
        }
        found
    }

    /// Whether nobody stands still.
    pub(super) fn all_well(&self) -> bool {
        self.watched.iter().all(|one| !one.stuck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_stands_still_is_named_once_and_again_when_he_goes_on() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let names = vec!["worker on core 1".to_owned(), "control".to_owned()];
        let mut vigil = Vigil::new(names, Duration::from_secs(5), begin);
        assert_eq!(vigil.look([7, 9].into_iter(), at(1)), Found::default());
        assert_eq!(vigil.look([7, 10].into_iter(), at(5)), Found::default());
        let found = vigil.look([7, 11].into_iter(), at(6));
        assert_eq!(found.stuck, ["worker on core 1"]);
        assert!(!vigil.all_well());
        assert_eq!(vigil.look([7, 12].into_iter(), at(9)), Found::default());
        let found = vigil.look([8, 13].into_iter(), at(10));
        assert_eq!((found.well.len(), found.stuck.len()), (1, 0));
        assert!(vigil.all_well());
        // Nobody moved from the beginning.
        let mut vigil = Vigil::new(vec!["control".to_owned()], Duration::from_secs(5), begin);
        assert_eq!(vigil.look([0].into_iter(), at(5)).stuck, ["control"]);
    }
}
