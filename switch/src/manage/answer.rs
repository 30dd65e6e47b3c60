//! Requests that have one answer: the change or the reading, its author, and the log of changes.
//!
//! Law: a panic while a request is carried out ends with that request. A change, or its refusal, is logged before it is answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use nix::sys::socket::UnixCredentials;
use npcc_api::audit::{self, Author, Cause, ChangedKey};
use npcc_api::operations::{Operation, Right};
use npcc_api::peers::PeerName;
use npcc_api::protocol::{ApiError, Reply, Request, status};
use npcc_config::{Difference, printable};
use signal_hook::consts::SIGTERM;

use super::http::problem::defect;
use super::management::Management;
use super::tables;
use super::view::View;
use crate::apply::outcome::ApplyError;
use npcc_engine::control::pairs;
use npcc_engine::fault;

/// Most characters of a request or its outcome in the log of changes.
const LONGEST_LINE: usize = 400;
/// Most lines of a change that are written to standard error.
const LINES: usize = 100;

/// Returns the author of what a client with these credentials requests.
pub(super) fn author(credentials: Option<&UnixCredentials>) -> Author {
    Author {
        cause: Cause::Client,
        uid: credentials.map(|client| client.uid()),
        login_uid: credentials.and_then(|client| login_uid(client.pid())),
        pid: credentials.map(|client| client.pid()),
    }
}

/// Returns the user whose login a process comes from; `None` without a login, as for processes that the system starts.
fn login_uid(pid: i32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/loginuid")).ok()?;
    text.trim().parse().ok().filter(|uid| *uid != u32::MAX)
}

/// Carries a request out that has one answer. A change is logged.
pub(super) fn reply(
    (operation, request): (&Operation, &Request),
    management: &Management,
    author: Author,
) -> Reply {
    let reply = guarded(|| carried_out(request, management, author.user()));
    // What peers report comes many times a second, and `show peers` counts it.
    if operation.right == Right::Change && !matches!(request, Request::EndCapture { .. }) {
        management.log_change(author, &request.name(), &reply);
    }
    reply
}

/// Returns the reply, or an error if `carry_out` panicked.
fn guarded(carry_out: impl FnOnce() -> Reply) -> Reply {
    // State that a panic left half-changed is behind locks, whose poisoning shows it.
    catch_unwind(AssertUnwindSafe(carry_out)).unwrap_or_else(|_| Reply::Refused(defect()))
}

fn carried_out(request: &Request, management: &Management, user: u32) -> Reply {
    match request {
        Request::Ready => management.ready(),
        Request::Snapshot => Reply::Snapshot(Box::new(management.view.shown_to(Some(user)))),
        Request::Show { table } => show(&management.view, table, user),
        Request::ClearCounters { port } => {
            fault::panics("request");
            done(management.clear_counters(user, port.as_deref()))
        }
        Request::ClearWatermarks => done(management.clear_watermarks()),
        Request::Set { key, value } => changed(management.set(key, value), Reply::Reloaded),
        Request::Unset { key } => changed(management.unset(key.as_deref()), Reply::Reloaded),
        Request::Config { diff } => changed(management.config(*diff), Reply::Text),
        Request::PlanReload => changed(management.reload(None, true), Reply::Reloaded),
        Request::Reload { confirm_ms } => {
            let confirm = confirm_ms.map(Duration::from_millis);
            changed(management.reload(confirm, false), Reply::Reloaded)
        }
        Request::Commit => changed(management.commit(), |()| Reply::Done),
        Request::Rollback => changed(management.rollback(), Reply::Reloaded),
        Request::Port { name, up } => done(management.set_admin(name, *up)),
        Request::EndCapture { id } => {
            management
                .view
                .ended_capture()
                .store(*id, Ordering::Relaxed);
            Reply::Done
        }
        Request::Suggest(all) => match management.suggest(all) {
            Ok(suggested) => Reply::Suggested(suggested),
            Err(why) => Reply::Refused(why),
        },
        Request::Trust { peer, trusted } => {
            done(management.trust(&PeerName::from(peer.as_str()), *trusted))
        }
        Request::Drain { on } => {
            management.drain(*on);
            Reply::Done
        }
        Request::Stop => {
            done(signal_hook::low_level::raise(SIGTERM).map_err(|error| error.to_string()))
        }
        Request::AddPair(pair) => done(management.pair(pairs::pair_command(pair, false))),
        Request::DeletePair { src, dst, dest_qp } => {
            done(management.pair(pairs::delete_command(*src, *dst, *dest_qp)))
        }
        Request::SendCnps(order) => done(management.send_cnps(order)),
        // Their answers are lines, which are written as they come.
        Request::Rows { .. } | Request::Ends { .. } | Request::Capture(_) => {
            let why = "this answer comes line by line";
            Reply::Refused(ApiError::new(status::INTERNAL_ERROR, why))
        }
    }
}

fn done<E: Into<ApiError>>(done: Result<(), E>) -> Reply {
    match done {
        Ok(()) => Reply::Done,
        Err(error) => Reply::Refused(error.into()),
    }
}

fn changed<T>(done: Result<T, ApplyError>, reply: impl FnOnce(T) -> Reply) -> Reply {
    match done {
        Ok(done) => reply(done),
        Err(error) => {
            let status = match error {
                ApplyError::Invalid(_) | ApplyError::NeedsRestart { .. } => status::UNPROCESSABLE,
                ApplyError::Refused(_) => status::CONFLICT,
            };
            Reply::Refused(ApiError::new(status, error.to_string()))
        }
    }
}

/// Returns a refusal with the first error of its report, before which warnings may stand; else with its first line.
fn refused(report: &str) -> String {
    let lines = || report.lines().filter(|line| !line.trim().is_empty());
    let error = lines().find(|line| line.contains(": error: "));
    let first = error.or_else(|| lines().next());
    format!("refused: {}", first.unwrap_or("see its report").trim())
}

fn show(view: &View, name: &str, user: u32) -> Reply {
    let found = tables::named(name).and_then(|table| table.data(view, Some(user)));
    match found {
        Some(Ok(data)) => Reply::Table(data),
        Some(Err(error)) => Reply::Refused(error.to_string().into()),
        None => {
            let why = format!("there is no table `{name}` that comes as a whole");
            Reply::Refused(ApiError::new(status::NOT_FOUND, why))
        }
    }
}

impl Management {
    /// Reads the configuration file again, as SIGHUP requests.
    pub fn reload_at_signal(&self) {
        let request = Request::Reload { confirm_ms: None };
        let author = Author::not_a_client(Cause::Signal);
        let reply = guarded(|| carried_out(&request, self, author.user()));
        self.log_change(author, &request.name(), &reply);
    }

    /// Rolls back a reload that was not committed in time.
    pub fn expire_confirmation(&self) {
        let mut nothing = false;
        let reply = guarded(|| {
            let outcome = self.rollback_if_overdue();
            nothing = outcome.is_none();
            outcome.map_or(Reply::Done, |outcome| changed(outcome, Reply::Reloaded))
        });
        if !nothing {
            let author = Author::not_a_client(Cause::Timer);
            self.log_change(author, &Request::Rollback.name(), &reply);
        }
    }

    /// Logs a change and its author, for `show` and on standard error.
    pub(super) fn log_change(&self, author: Author, what: &str, reply: &Reply) {
        let (outcome, more) = match reply {
            // One key, whose values the change lists.
            Reply::Reloaded(outcome)
                if outcome.restart.is_empty()
                    && outcome.reset.is_empty()
                    && what.starts_with("set ") =>
            {
                ("done".to_owned(), outcome.to_string())
            }
            Reply::Reloaded(outcome) => (
                format!(
                    "done: {} applied, {} as in the file again, {} wait for a restart",
                    outcome.applied.len(),
                    outcome.reset.len(),
                    outcome.restart.len()
                ),
                outcome.to_string(),
            ),
            Reply::Refused(why) if why.status == status::UNPROCESSABLE => {
                let report = &why.problem.error;
                (refused(report), report.clone())
            }
            Reply::Refused(why) => (format!("refused: {why}"), String::new()),
            _ => ("done".to_owned(), String::new()),
        };
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        // With a line's end in it, a name from a client would make an entry of the log by itself.
        let one_line = |text: &str| printable(text, LONGEST_LINE);
        let (what, outcome) = (one_line(what), one_line(&outcome));
        let more: Vec<String> = more.lines().map(one_line).collect();
        let line = format!("{time} {what} ({author}): {outcome}\n{}", more.join("\n"));
        let (request, now) = (what.as_str(), self.view.clock.now());
        let change = audit::Change {
            time,
            time_us: now.0 / 1_000,
            author,
            what: what.clone(),
            outcome: outcome.clone(),
            count: 1,
            keys: keys(reply),
            keys_left_out: 0,
        };
        let is_new = self.view.journal().change(change, now);
        if is_new {
            tracing::info!(
                cause = author.cause.name(),
                uid = author.uid,
                login_uid = author.login_uid,
                pid = author.pid,
                request,
                outcome = outcome.as_str(),
                "{}",
                shortened(&line)
            );
        }
    }
}

/// Returns the keys that a reload, a rollback or `unset` changed.
fn keys(reply: &Reply) -> Vec<ChangedKey> {
    let Reply::Reloaded(outcome) = reply else {
        return Vec::new();
    };
    let key = |effect: &str, change| ChangedKey {
        effect: effect.to_owned(),
        change,
    };
    let applied = outcome.applied.iter().cloned();
    let reset = outcome.reset.iter().map(|one| Difference {
        key: one.clone(),
        old: Some("as set".to_owned()),
        new: Some("as in the file".to_owned()),
    });
    let applied = applied.chain(reset).map(|one| key("applied", one));
    let restart = outcome.restart.iter().cloned();
    applied
        .chain(restart.map(|one| key("needs restart", one)))
        .collect()
}

/// Returns the first [`LINES`] lines and the number of those left out: a table of routes may come to very many.
fn shortened(text: &str) -> String {
    let mut lines = text.trim_end().lines();
    let mut shown: Vec<&str> = lines.by_ref().take(LINES).collect();
    let more = format!("... and {} lines more", lines.count());
    if text.trim_end().lines().count() > LINES {
        shown.push(&more);
    }
    shown.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_panics_is_answered_with_an_error() {
        let reply = guarded(|| panic!("as if there were a defect"));
        assert!(matches!(reply, Reply::Refused(why) if why.status == status::INTERNAL_ERROR));
        assert_eq!(guarded(|| Reply::Done), Reply::Done);
    }

    #[test]
    fn a_long_change_is_shortened() {
        assert_eq!(shortened("one\ntwo\n"), "one\ntwo");
        let long = shortened(&"line\n".repeat(LINES + 7));
        assert_eq!(long.lines().count(), LINES + 1);
        assert!(long.ends_with("... and 7 lines more"));
    }
}
