//! Journal: events of ports and lossless queues, and changes by operators, in the order in which they were noted.
//!
//! `show log` and `show audit` are filters of it. It keeps the newest [`KEPT`] events and as many changes: neither displaces the other.
//! Changes outlive the process if they are also written into a ring of records.
//!
//! Law: a change that one process makes again and again is one entry with a count, and so are counts of one kind and port within a second.

use std::collections::VecDeque;
use std::time::SystemTime;

use npcc_api::audit::Change;
use npcc_api::events::Event;
use npcc_heap::records::{Ring, octets_of, words_of};
use npcc_pipeline::units::Nanos;

use crate::saved::SavedState;

/// Number of events that are kept, and of changes.
pub const KEPT: usize = 256;
/// Words of a change's record: 4 KiB of JSON.
pub const WORDS: usize = 512;
/// Number of changed keys that are kept of one change; [`WORDS`] has room for them at a usual length.
const KEYS: usize = 24;
/// Name and layout of the ring that keeps changes.
const WHAT: (&str, &str) = ("audit", "JSON of a change and zeros");
/// Time within which equal entries are merged into one.
const TOGETHER: Nanos = Nanos::from_millis(1_000);

/// Entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// An event of a port or a lossless queue.
    Event(Event),
    /// A change, or the refusal of one.
    Change(Change),
}

impl Entry {
    /// Returns the time of the entry, in us of the switch's clock.
    #[must_use]
    pub const fn time_us(&self) -> u64 {
        match self {
            Entry::Event(event) => event.time_us,
            Entry::Change(change) => change.time_us,
        }
    }

    const fn is_event(&self) -> bool {
        matches!(self, Entry::Event(_))
    }
}

/// Journal of events and changes; see the module's documentation.
#[derive(Debug, Default)]
pub struct Journal {
    /// Entries, each with the time until which an equal change is counted there, and an equal event waits to be counted.
    entries: VecDeque<(Entry, Nanos)>,
    /// Ring that keeps the changes for the next process.
    kept: Option<Ring>,
    /// Events that are counted together, each with the time at which it becomes an entry.
    waiting: Vec<(Event, Nanos)>,
}

impl Journal {
    /// Creates a journal with the changes that `kept` holds; new changes are written there too. Kept changes have time 0, as the clock of
    /// this process begins at 0 and they are older than all that it notes.
    #[must_use]
    pub fn new(kept: Option<Ring>) -> Journal {
        let before = kept.iter().flat_map(|ring| ring.read().whole);
        let read = |words: &[u64]| {
            let octets = octets_of(words);
            let end = octets.iter().rposition(|octet| *octet != 0)?;
            serde_json::from_slice(octets.get(..=end)?).ok()
        };
        let changes = before.filter_map(|record| read(&record.words));
        let older = |change| {
            let change = Change {
                time_us: 0,
                ..change
            };
            (Entry::Change(change), Nanos::ZERO)
        };
        Journal {
            entries: changes.map(older).collect(),
            kept,
            waiting: Vec::new(),
        }
    }

    /// Creates a journal with the changes that the process before left, whose new ones are left too.
    #[must_use]
    pub fn kept(saved: &SavedState) -> Journal {
        Journal::new(saved.ring(WHAT, (KEPT, WORDS)))
    }

    /// Yields all entries, in the order in which they were noted.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(entry, _)| entry)
    }

    /// Returns the events, oldest first.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        let event = |entry: &Entry| match entry {
            Entry::Event(event) => Some(event.clone()),
            Entry::Change(_) => None,
        };
        self.entries().filter_map(event).collect()
    }

    /// Returns the changes, oldest first.
    #[must_use]
    pub fn changes(&self) -> Vec<Change> {
        let change = |entry: &Entry| match entry {
            Entry::Change(change) => Some(change.clone()),
            Entry::Event(_) => None,
        };
        self.entries().filter_map(change).collect()
    }

    /// Notes an event. Returns it if it is a new entry, and `None` if an equal one was noted in the last second: then it is counted, and an
    /// entry once the second is over ([`due`](Self::due)), so that an entry has the value with which it is logged. The caller logs new ones,
    /// once no lock is held.
    pub fn event(&mut self, event: Event) -> Option<Event> {
        let now = Nanos(event.time_us.saturating_mul(1_000));
        let same = self.entries.iter().rev().find_map(|(entry, until)| {
            let Entry::Event(earlier) = entry else {
                return None;
            };
            earlier.is_same(&event).then_some(*until)
        });
        if let Some(until) = same
            && event.kind.is_count()
            && now < until
        {
            match self.waiting.iter_mut().find(|(one, _)| one.is_same(&event)) {
                Some((one, _)) => one.count_in(&event),
                None => self.waiting.push((event, until)),
            }
            return None;
        }
        Some(self.note(event, now))
    }

    /// Notes what was counted in the second after an event of its kind, once that is over, and returns the entries, which the caller logs.
    pub fn due(&mut self, now: Nanos) -> Vec<Event> {
        let due = self.waiting.extract_if(.., |(_, until)| *until <= now);
        let due: Vec<_> = due.collect();
        let note = |(event, _)| self.note(event, now);
        due.into_iter().map(note).collect()
    }

    /// Adds an event, which is counted together with equal ones until a second after `now`.
    fn note(&mut self, event: Event, now: Nanos) -> Event {
        let event = Event {
            wall: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            ..event
        };
        self.push(Entry::Event(event.clone()), now + TOGETHER);
        event
    }

    /// Notes a change made at `now`. Returns true if it is a new entry, and false if it is counted with the last change.
    pub fn change(&mut self, mut change: Change, now: Nanos) -> bool {
        let until = now + TOGETHER;
        let mut last = self.entries.iter_mut().rev();
        let last = last.find(|(entry, _)| !entry.is_event());
        if let Some((Entry::Change(last), their_until)) = last
            && last.is_same(&change)
            && now < *their_until
        {
            last.count += 1;
            *their_until = until;
            if let Some(ring) = &self.kept {
                ring.replace(words(last));
            }
            return false;
        }
        change.keys_left_out = change.keys.len().saturating_sub(KEYS) as u64;
        change.keys.truncate(KEYS);
        if let Some(ring) = &self.kept {
            ring.push(words(&change));
        }
        self.push(Entry::Change(change), until);
        true
    }

    /// Adds an entry; with [`KEPT`] of its kind it replaces the oldest of them.
    fn push(&mut self, entry: Entry, until: Nanos) {
        let of_kind = |(other, _): &(Entry, Nanos)| other.is_event() == entry.is_event();
        if self.entries.iter().filter(|other| of_kind(other)).count() >= KEPT
            && let Some(oldest) = self.entries.iter().position(of_kind)
        {
            self.entries.remove(oldest);
        }
        self.entries.push_back((entry, until));
    }
}

/// Returns the record of a change. If that is too long, the keys and the end of the outcome are dropped.
fn words(change: &Change) -> Vec<u64> {
    // A change without its keys is better than none.
    let json = serde_json::to_vec(change).unwrap_or_default();
    if json.len() <= WORDS * 8 {
        return words_of(&json).collect();
    }
    let short = Change {
        outcome: change.outcome.chars().take(WORDS).collect(),
        keys: Vec::new(),
        keys_left_out: change.keys.len() as u64 + change.keys_left_out,
        ..change.clone()
    };
    words_of(&serde_json::to_vec(&short).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_api::audit::{Author, Cause, ChangedKey};
    use npcc_api::events::Kind;

    const ROOT: Author = Author {
        cause: Cause::Client,
        uid: Some(0),
        login_uid: Some(1000),
        pid: Some(77),
    };

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn change(what: &str) -> Change {
        let all = Change {
            author: ROOT,
            what: what.to_owned(),
            outcome: "done".to_owned(),
            ..Change::default()
        };
        Change { count: 1, ..all }
    }

    #[test]
    fn a_long_import_is_one_entry_and_changes_are_bounded() {
        let mut journal = Journal::default();
        journal.change(change("reload"), ms(0));
        for n in 0..10_000 {
            let new = journal.change(change("pair add"), ms(1 + n));
            assert_eq!(new, n == 0);
        }
        let all = journal.changes();
        assert_eq!(all.len(), 2);
        assert!(all[1].to_string().ends_with("done, 10000 times"));
        for n in 0..1_000u32 {
            journal.change(change(&format!("set npcc.wan0.3.few {n}")), ms(20_000));
        }
        assert_eq!(journal.changes().len(), KEPT);
    }

    #[test]
    fn events_are_bounded_and_displace_no_change() {
        let mut journal = Journal::default();
        journal.change(change("reload"), ms(0));
        for n in 1..1_000 {
            let _ = journal.event(Event {
                time_us: 2_000_000 * n,
                kind: Kind::LateRefresh,
                port: "dc0".to_owned(),
                count: 1,
                ..Event::default()
            });
        }
        let events = journal.events();
        assert_eq!((events.len(), journal.changes().len()), (KEPT, 1));
        assert_eq!(events[KEPT - 1].time_us, 1_998_000_000);
        let times: Vec<u64> = journal.entries().map(Entry::time_us).collect();
        assert!(times.is_sorted(), "in the order in which they were noted");
    }

    #[test]
    fn changes_come_back_from_their_ring_with_keys_and_counts() {
        let (kept, next) = {
            // Both processes map the same memory.
            let memory = std::sync::Arc::new(
                npcc_heap::shared::SharedWords::new("t", KEPT * (3 + WORDS)).unwrap(),
            );
            let place = npcc_heap::records::Place {
                first: 0,
                slots: KEPT,
                width: 3 + WORDS,
            };
            (Ring::new(memory.clone(), place), move || {
                Ring::new(memory, place)
            })
        };
        let mut journal = Journal::new(Some(kept));
        let key = |n: usize| ChangedKey {
            effect: "applied".to_owned(),
            change: npcc_config::Difference {
                key: format!("npcc.deep.{n}"),
                old: Some("100KB".to_owned()),
                new: None,
            },
        };
        let mut reload = change("reload");
        reload.keys = (0..KEYS + 7).map(key).collect();
        journal.change(reload, ms(0));
        for n in 0..3 {
            journal.change(change("pair add"), ms(n));
        }
        // The outcome of a refusal may be longer than a record.
        let mut refused = change("set npcc.wan0.3.few 9");
        refused.outcome = "\u{e9}".repeat(100_000);
        refused.keys = vec![key(0)];
        refused.time_us = 9_000;
        journal.change(refused, ms(9));
        let mut before = journal.changes();
        drop(journal);
        let after = Journal::new(Some(next())).changes();
        assert_eq!((before[0].keys.len(), before[0].keys_left_out), (KEYS, 7));
        assert_eq!(before[1].count, 3);
        let long = &mut before[2];
        long.outcome = "\u{e9}".repeat(WORDS);
        (long.keys, long.keys_left_out) = (vec![], 1);
        // The next process's clock begins anew.
        long.time_us = 0;
        assert_eq!(after, before);
    }
}
