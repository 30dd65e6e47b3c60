//! A change of a running switch: who made it, when by everybody's clock, and which keys it changed.

use std::fmt;

use npcc_config::Difference;
use serde::{Deserialize, Serialize};

npcc_pipeline::named! {
    /// On whose behalf something changes.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Cause {
        /// A client of the management socket.
        #[default]
        Client = "client",
        /// A signal.
        Signal = "signal",
        /// A time that ran out.
        Timer = "timer",
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
    /// The user who logged in and then became that one, by sudo(8) or su(1), where the system told.
    pub login_uid: Option<u32>,
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
            login_uid: None,
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
        if let Some(login) = self.login_uid {
            write!(out, ", login uid {login}")?;
        }
        number(out, ", pid", self.pid.map(i64::from))
    }
}

/// A key that a change changed, or will change at a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChangedKey {
    /// `applied`, or `needs restart`.
    pub effect: String,
    /// The key, and its values.
    #[serde(flatten)]
    pub change: Difference,
}

/// A change, or the refusal of one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Change {
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
    /// The keys that it changed, as far as they are kept.
    pub keys: Vec<ChangedKey>,
    /// How many keys more it changed.
    pub keys_left_out: u64,
}

impl Change {
    /// Whether the same author did the same, with the same outcome.
    pub(super) fn is_same(&self, other: &Change) -> bool {
        let of = |one: &Change| (one.author, one.what.clone(), one.outcome.clone());
        of(self) == of(other) && self.keys == other.keys
    }
}

/// In one line; `{:#}` has a line more for each key.
impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change {
            time,
            time_us,
            author,
            what,
            outcome,
            count,
            keys,
            keys_left_out,
        } = self;
        write!(out, "{time_us} us: {time} {what} ({author}): {outcome}")?;
        if *count > 1 {
            write!(out, ", {count} times")?;
        }
        if out.alternate() {
            for ChangedKey { effect, change } in keys {
                write!(out, "\n    {effect} {change}")?;
            }
            if *keys_left_out > 0 {
                write!(out, "\n    ... and {keys_left_out} keys more")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_the_time_of_day_the_users_the_process_and_the_keys() {
        let author = Author {
            cause: Cause::Client,
            uid: Some(0),
            login_uid: Some(1000),
            pid: Some(77),
        };
        let key = |effect: &str, key: &str, old: &str, new: Option<&str>| ChangedKey {
            effect: effect.to_owned(),
            change: Difference {
                key: key.to_owned(),
                old: Some(old.to_owned()),
                new: new.map(str::to_owned),
            },
        };
        let change = Change {
            time: "2023-11-14T22:13:20.005Z".to_owned(),
            time_us: 5_000,
            author,
            what: "reload".to_owned(),
            outcome: "done".to_owned(),
            count: 2,
            keys: vec![
                key("applied", "npcc.deep", "100KB", Some("120KB")),
                key("needs restart", "ports.wan0.speed", "50M", None),
            ],
            keys_left_out: 3,
        };
        let line = "5000 us: 2023-11-14T22:13:20.005Z reload (uid 0, login uid 1000, pid 77): done, 2 times";
        assert_eq!(change.to_string(), line);
        let keys = "
    applied npcc.deep: 100KB -> 120KB
    needs restart ports.wan0.speed: 50M -> none
    ... and 3 keys more";
        assert_eq!(format!("{change:#}"), format!("{line}{keys}"));
        let timer = Author::not_a_client(Cause::Timer);
        let rollback = Change {
            author: timer,
            what: "rollback".to_owned(),
            ..Change::default()
        };
        assert!(rollback.to_string().contains("rollback (timer): "));
        // As the version before wrote it.
        let old = r#"{"cause":"client","uid":0,"pid":7}"#;
        let old: Author = serde_json::from_str(old).unwrap();
        assert_eq!(old.to_string(), "uid 0, pid 7");
    }
}
