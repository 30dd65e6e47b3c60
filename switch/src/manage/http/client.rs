//! Client of a management socket: its rights, its place and its time limits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use npcc_api::audit::Author;

use super::places::Place;
use crate::manage::access::Access;

/// Time left for an answer once the switch stops.
const GRACE: Duration = Duration::from_millis(300);

npcc_pipeline::defaults! {
    /// Time limits of a client.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::manage) struct Limits {
        /// Longest time for the head of a request.
        pub(in crate::manage) head: Duration = Duration::from_secs(5),
        /// Longest time for the head of a request in the place that is kept for a change.
        pub(in crate::manage) kept_head: Duration = Duration::from_millis(500),
        /// Longest time for the body of a request, and again for reading one answer.
        pub(in crate::manage) overall: Duration = Duration::from_secs(30),
        /// Longest time in which a client reads nothing of an answer of many lines.
        pub(in crate::manage) idle: Duration = Duration::from_secs(10),
    }
}

/// Phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The request arrives.
    Reads,
    /// The request is carried out, which has limits of its own.
    Works,
    /// The answer leaves.
    Answers,
}

/// Client that is connected.
#[derive(Debug)]
pub(in crate::manage) struct Client {
    /// Author of the changes that it requests.
    pub(in crate::manage) author: Author,
    /// Its rights.
    pub(in crate::manage) access: Access,
    /// Its place, or the reason why it has none.
    pub(in crate::manage) place: Result<Place, String>,
    /// Its time limits.
    pub(in crate::manage) limits: Limits,
    stop: Arc<AtomicBool>,
    /// Phase, and the time at which the connection is closed.
    state: Mutex<(Phase, Instant)>,
}

impl Client {
    /// Makes a client whose request arrives; `stop` is set when the switch stops.
    pub(in crate::manage) fn new(
        (author, access): (Author, Access),
        place: Result<Place, String>,
        limits: Limits,
        stop: Arc<AtomicBool>,
    ) -> Client {
        let deadline = Instant::now() + limits.head + limits.overall;
        Client {
            author,
            access,
            place,
            limits,
            stop,
            state: Mutex::new((Phase::Reads, deadline)),
        }
    }

    /// Returns the longest time for the head of its request: short where another client may need the place, or where it only gets a refusal.
    pub(in crate::manage) fn head(&self) -> Duration {
        match &self.place {
            Ok(place) if !place.is_kept => self.limits.head,
            _ => self.limits.kept_head,
        }
    }

    fn state(&self) -> MutexGuard<'_, (Phase, Instant)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to carry out the request.
    pub(in crate::manage) fn works(&self) {
        self.state().0 = Phase::Works;
    }

    /// Begins to answer: the client has so much time to read.
    pub(in crate::manage) fn answers(&self, within: Duration) {
        *self.state() = (Phase::Answers, Instant::now() + within);
    }

    /// Returns true if the switch stops.
    pub(in crate::manage) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns true if the connection must be closed: the client is too slow, or the switch stops.
    pub(in crate::manage) fn is_over(&self) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let (phase, deadline) = &mut *state;
        if self.is_stopping() {
            match phase {
                Phase::Reads => return true,
                Phase::Answers => *deadline = (*deadline).min(now + GRACE),
                Phase::Works => {}
            }
        }
        *phase != Phase::Works && now >= *deadline
    }
}
