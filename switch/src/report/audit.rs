//! Who changed what on a running switch, and when by everybody's clock: a bounded log.
//!
//! Law: what one process does again and again, as `pair import` does, is one entry with a count, so it cannot push everything
//! else out.

use std::collections::VecDeque;
use std::fmt;
use std::time::SystemTime;

use npcc_pipeline::units::Nanos;
use serde::{Deserialize, Serialize};

/// Entries kept.
const KEPT: usize = 256;
/// The same change within this time of the last is one entry.
const TOGETHER: Nanos = Nanos::from_millis(1_000);

/// On whose behalf something changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A client of the management socket.
    #[default]
    Client,
    /// A signal.
    Signal,
    /// A time that ran out.
    Timer,
}

impl Cause {
    /// As JSON and the journal write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Client => "client",
            Cause::Signal => "signal",
            Cause::Timer => "timer",
        }
    }
}

/// Who changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Author {
    /// On whose behalf.
    pub cause: Cause,
    /// The client's user, where the system told.
    pub uid: Option<u32>,
    /// The client's process, where the system told.
    pub pid: Option<i32>,
}

impl Author {
    /// Not a client.
    #[must_use]
    pub const fn not_a_client(cause: Cause) -> Author {
        Author {
            cause,
            uid: None,
            pid: None,
        }
    }
}

impl fmt::Display for Author {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Cause::Signal => return write!(out, "SIGHUP"),
            Cause::Timer => return write!(out, "timer"),
            Cause::Client => {}
        }
        let number = |out: &mut fmt::Formatter<'_>, name, number: Option<i64>| match number {
            Some(number) => write!(out, "{name} {number}"),
            None => write!(out, "{name} unknown"),
        };
        number(out, "uid", self.uid.map(i64::from))?;
        number(out, ", pid", self.pid.map(i64::from))
    }
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// When it was first done, UTC.
    pub time: String,
    /// The same in us of the switch's clock, as in the CNPs' log.
    pub time_us: u64,
    /// Who.
    pub author: Author,
    /// What was asked for.
    pub what: String,
    /// What it came to: `done`, or why it was refused.
    pub outcome: String,
    /// How often.
    pub count: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry {
            time,
            time_us,
            author,
            what,
            outcome,
            count,
        } = self;
        write!(out, "{time_us} us: {time} {what} ({author}): {outcome}")?;
        if *count > 1 {
            write!(out, ", {count} times")?;
        }
        Ok(())
    }
}

/// The log.
#[derive(Debug, Default)]
pub struct AuditLog {
    /// Each with the time it was last done.
    log: VecDeque<(Entry, Nanos)>,
}

impl AuditLog {
    /// Takes a change in; the entry, if it is a new one.
    pub fn add(
        &mut self,
        (author, what): (Author, &str),
        outcome: &str,
        (wall, now): (SystemTime, Nanos),
    ) -> Option<&Entry> {
        if let Some((entry, last)) = self.log.back_mut()
            && (entry.author, entry.what.as_str()) == (author, what)
            && entry.outcome == outcome
            && now.since(*last).0 < TOGETHER.0
        {
            (entry.count, *last) = (entry.count + 1, now);
            return None;
        }
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        let entry = Entry {
            time: humantime::format_rfc3339_millis(wall).to_string(),
            time_us: now.0 / 1_000,
            author,
            what: what.to_owned(),
            outcome: outcome.to_owned(),
            count: 1,
        };
        self.log.push_back((entry, now));
        self.log.back().map(|(entry, _)| entry)
    }

    /// The latest changes, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Entry> {
        self.log.iter().map(|(entry, _)| entry.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ROOT: Author = Author {
        cause: Cause::Client,
        uid: Some(0),
        pid: Some(77),
    };

    fn at(ms: u64) -> (SystemTime, Nanos) {
        let day = Duration::from_secs(1_700_000_000);
        let wall = SystemTime::UNIX_EPOCH + day + Duration::from_millis(ms);
        (wall, Nanos::from_millis(ms))
    }

    #[test]
    fn a_change_bears_the_time_of_day_the_user_and_the_process() {
        let mut log = AuditLog::default();
        log.add((ROOT, "clear counters"), "done", at(5));
        let line = log.all()[0].to_string();
        assert_eq!(
            line,
            "5000 us: 2023-11-14T22:13:20.005Z clear counters (uid 0, pid 77): done"
        );
        let timer = Author::not_a_client(Cause::Timer);
        log.add((timer, "rollback"), "done", at(6));
        assert!(log.all()[1].to_string().contains("rollback (timer): done"));
    }

    #[test]
    fn a_long_import_is_one_entry_and_the_log_is_bounded() {
        let mut log = AuditLog::default();
        log.add((ROOT, "reload"), "done", at(0));
        for n in 0..10_000 {
            let new = log.add((ROOT, "pair add"), "done", at(1 + n)).is_some();
            assert_eq!(new, n == 0);
        }
        let all = log.all();
        assert_eq!(all.len(), 2);
        assert!(all[1].to_string().ends_with("done, 10000 times"));
        for n in 0..1_000u32 {
            let what = format!("set npcc.wan0.3.few {n}");
            log.add((ROOT, &what), "done", at(20_000));
        }
        assert_eq!(log.all().len(), KEPT);
    }
}
