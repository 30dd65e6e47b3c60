//! Places of a socket's clients: so many are served at a time, and so many of one user.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places of a socket.
#[derive(Debug)]
pub(in crate::manage) struct Places {
    most: usize,
    /// Most places of one user.
    each: usize,
    /// True if the last place is kept for a change: other clients, however slow, cannot lock an operator out.
    keeps_last: bool,
    /// Users of the places that are taken.
    taken: Mutex<Vec<u32>>,
}

/// Place of a client, free again once it is dropped.
#[derive(Debug)]
pub(in crate::manage) struct Place {
    places: Arc<Places>,
    user: u32,
    /// True for the place that is kept for a change.
    pub(in crate::manage) is_kept: bool,
}

impl Places {
    /// Makes places that nobody has taken.
    pub(in crate::manage) const fn new(most: usize, each: usize, keeps_last: bool) -> Places {
        Places {
            most,
            each,
            keeps_last,
            taken: Mutex::new(Vec::new()),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<u32>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if no place is taken.
    pub(in crate::manage) fn are_free(&self) -> bool {
        self.taken().is_empty()
    }

    /// Takes a place for a user.
    ///
    /// # Errors
    /// Says which limit is reached.
    pub(in crate::manage) fn take(self: &Arc<Places>, user: u32) -> Result<Place, String> {
        let mut taken = self.taken();
        if taken.len() >= self.most {
            return Err(format!("{} others are being served", self.most));
        }
        let own = taken.iter().filter(|owner| **owner == user).count();
        if own >= self.each {
            return Err(format!("{own} others of this user are being served"));
        }
        taken.push(user);
        Ok(Place {
            places: Arc::clone(self),
            user,
            is_kept: self.keeps_last && taken.len() == self.most,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        if let Some(at) = taken.iter().position(|user| *user == self.user) {
            taken.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One user once held all places, and everybody else was turned away.
    #[test]
    fn a_user_has_some_places_and_the_others_the_rest() {
        let places = Arc::new(Places::new(5, 2, false));
        let take = |user| places.take(user);
        let held: Vec<Place> = [7, 7, 8]
            .into_iter()
            .map(|user| take(user).unwrap())
            .collect();
        assert_eq!(
            take(7).unwrap_err(),
            "2 others of this user are being served"
        );
        let more = [take(8).unwrap(), take(0).unwrap()];
        assert_eq!(take(9).unwrap_err(), "5 others are being served");
        drop(held);
        assert!(take(7).is_ok() && take(9).is_ok());
        drop(more);
        assert!(places.are_free());
    }

    #[test]
    fn the_last_place_is_kept_where_changes_are_made() {
        for (keeps_last, expected) in [(true, [false, false, true]), (false, [false; 3])] {
            let places = Arc::new(Places::new(3, 3, keeps_last));
            let all = [(); 3].map(|()| places.take(0).unwrap());
            assert_eq!(all.each_ref().map(|one| one.is_kept), expected);
        }
    }
}
