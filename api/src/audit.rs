//! Change of a running switch: its author, its wall-clock time, and the keys it changed.

use std::fmt;

use npcc_config::Difference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

npcc_pipeline::named! {
    /// Origin of a change.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Cause {
        /// A client of the management socket.
        #[default]
        Client = "client",
        /// A signal.
        Signal = "signal",
        /// A timer that expired.
        Timer = "timer",
    }
}

/// Author of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Author {
    /// Origin of the change.
    pub cause: Cause,
    /// User id of the client, where the system gives it.
    pub uid: Option<u32>,
    /// User id of the login that became that user, by sudo(8) or su(1), where the system gives it.
    pub login_uid: Option<u32>,
    /// Process id of the client, where the system gives it.
    pub pid: Option<i32>,
}

impl Author {
    /// Returns the user by its login, or, without one, by its process; `u32::MAX` where the system gives neither.
    #[must_use]
    pub fn user(&self) -> u32 {
        self.login_uid.or(self.uid).unwrap_or(u32::MAX)
    }

    /// Returns an author that is not a client.
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

/// Key that a change changed, or will change at a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangedKey {
    /// Effect: `applied`, or `needs restart`.
    pub effect: String,
    /// Key, with its old and its new value.
    #[serde(flatten)]
    pub change: Difference,
}

/// Change of the running switch, or the refusal of one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Change {
    /// Time at which the change was first made, UTC.
    pub time: String,
    /// Time of the change in us of the switch's clock, as in the CNPs' log.
    pub time_us: u64,
    /// Author of the change.
    pub author: Author,
    /// Request of the author.
    pub what: String,
    /// Outcome: `done`, or the reason for the refusal.
    pub outcome: String,
    /// Number of times the same change was made.
    pub count: u64,
    /// Keys that the change changed, as far as they are kept.
    pub keys: Vec<ChangedKey>,
    /// Number of further changed keys that are not kept.
    pub keys_left_out: u64,
}

impl Change {
    /// Returns true if the author, the request, the outcome and the keys are equal.
    #[must_use]
    pub fn is_same(&self, other: &Change) -> bool {
        let of = |one: &Change| (one.author, one.what.clone(), one.outcome.clone());
        of(self) == of(other) && self.keys == other.keys
    }
}

/// Writes the change in one line; `{:#}` adds a line for each key.
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

/// Output of `show audit --json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Version of the program.
    #[serde(default)]
    pub version: String,
    /// Reload that waits for its commit.
    pub pending: Option<PendingReload>,
    /// Latest changes, oldest first.
    pub changes: Vec<Change>,
}

/// Pending reload as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingReload {
    /// Seconds until the rollback.
    pub seconds_left: u64,
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
        // JSON as the version before wrote it.
        let old = r#"{"cause":"client","uid":0,"pid":7}"#;
        let old: Author = serde_json::from_str(old).unwrap();
        assert_eq!(old.to_string(), "uid 0, pid 7");
    }
}
