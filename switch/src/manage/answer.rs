//! Handling of one client: request, identity, answer.
//!
//! Law: a panic while a request is carried out ends with that request. A change, or its refusal, is logged before it is answered.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Gid;
use npcc_api::audit::{self, Author, Cause, ChangedKey};
use npcc_api::protocol::{Reply, Request};
use npcc_api::query::Query;
use npcc_api::rows::RowLine;
use npcc_config::Difference;
use signal_hook::consts::SIGTERM;

use super::access::{Access, ClientSlot};
use super::capture;
use super::ends::export;
use super::management::Management;
use super::patience::{Limits, Patience};
use super::tables;
use super::view::View;
use crate::apply::outcome::ApplyError;
use crate::fault;

/// Longest request, in bytes.
const LONGEST_REQUEST: u64 = 8 << 20;
/// Size of the pieces in which an answer is written.
const PIECE: usize = 64 << 10;

/// Longest time for which an idle client holds the slot that is kept for a change.
const KEPT_IDLE: Duration = Duration::from_millis(500);
/// Answer to a request in that slot that is no change.
const KEPT: &str =
    "as many others are being served as may, and the last place is kept for changes: try again";

/// Answer to a request that panicked.
const DEFECT: &str = "a defect: the request panicked; its message is in the switch's standard error, please report it";

/// Most characters of a request or its outcome in the log of changes.
const LONGEST_LINE: usize = 400;
/// Most lines of a change that are written to standard error.
const LINES: usize = 100;

/// Reads a request, carries it out and answers.
pub(super) fn serve(
    stream: &UnixStream,
    management: &Management,
    (access, slot): (Access, ClientSlot),
    stop: &AtomicBool,
) -> io::Result<()> {
    // Before the request is read: if the client process ends meanwhile, another may get its number.
    let author = author(stream);
    let mut patience = Patience::new(stream, limits(slot), stop)?;
    let mut line = String::new();
    BufReader::new(Read::take(&mut patience, LONGEST_REQUEST)).read_line(&mut line)?;
    if line.is_empty() {
        // A client that only checks that the socket accepts connections.
        return Ok(());
    }
    let request = serde_json::from_str(&line);
    if is_refused(slot, &request) {
        refuse(stream, KEPT);
        return Ok(());
    }
    if let Ok(Request::Rows { table, query }) = &request {
        patience.answer();
        let mut out = BufWriter::with_capacity(PIECE, patience);
        write_rows(&management.view, table, query, &mut out)?;
        return out.flush();
    }
    if let Ok(Request::Ends { follow }) = &request {
        let view = &management.view;
        return export::serve(*follow, (&view.ends, view.clock), (stream, stop));
    }
    if let Ok(Request::Capture(wanted)) = &request
        && access == Access::ReadWrite
    {
        return capture::serve(wanted, management, (stream, stop), |reply| {
            management.log_change(author, &wanted.name(), reply);
        });
    }
    let reply = match request {
        Ok(request) => reply(&request, management, access, author),
        Err(error) => Reply::Error(format!("not a request: {error}")),
    };
    patience.answer();
    let mut out = BufWriter::with_capacity(PIECE, patience);
    serde_json::to_writer(&mut out, &reply)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Returns the time limits of a client in this slot.
fn limits(slot: ClientSlot) -> Limits {
    match slot {
        ClientSlot::Shared => Limits::default(),
        ClientSlot::Reserved => Limits {
            idle: KEPT_IDLE,
            ..Limits::default()
        },
    }
}

/// Returns true if a client in this slot may not make this request.
fn is_refused(slot: ClientSlot, request: &serde_json::Result<Request>) -> bool {
    slot == ClientSlot::Reserved && !request.as_ref().is_ok_and(is_change)
}

/// Returns true if a request changes something and ends soon (a capture does not).
const fn is_change(request: &Request) -> bool {
    !request.reads() && !matches!(request, Request::Capture(_))
}

/// Writes the rows of a table, or an error line.
fn write_rows(view: &View, name: &str, query: &Query, out: &mut dyn Write) -> io::Result<()> {
    let written = catch_unwind(AssertUnwindSafe(|| {
        tables::named(name).and_then(|table| table.answer(view, query, &mut *out))
    }));
    let why = match written {
        Ok(Some(written)) => return written,
        Ok(None) => format!("there is no table `{name}` that comes row by row"),
        Err(_) => DEFECT.to_owned(),
    };
    serde_json::to_writer(&mut *out, &RowLine::Error(why))?;
    out.write_all(b"\n")
}

/// Tells a client why it is not served, if that takes no waiting.
pub(super) fn refuse(stream: &UnixStream, why: &str) {
    let Ok(mut text) = serde_json::to_string(&Reply::Error(why.to_owned())) else {
        return;
    };
    text.push('\n');
    // Otherwise the client learns it from the end of the stream.
    let _ = stream.set_nonblocking(true);
    let _ = (&*stream).write(text.as_bytes());
}

/// Returns the user ID of the client.
pub(super) fn user(stream: &UnixStream) -> Option<u32> {
    let credentials = getsockopt(stream, PeerCredentials).ok();
    credentials.map(|client| client.uid())
}

/// Returns the group of the process at the other end; `None` if the system does not report it.
pub(super) fn group(stream: &UnixStream) -> Option<Gid> {
    let credentials = getsockopt(stream, PeerCredentials).ok()?;
    Some(Gid::from_raw(credentials.gid()))
}

fn author(stream: &UnixStream) -> Author {
    let credentials = getsockopt(stream, PeerCredentials).ok();
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

fn reply(request: &Request, management: &Management, access: Access, author: Author) -> Reply {
    if !access.may(request) {
        return Reply::Error(format!(
            "`{}` changes something, and this socket is for reading: use that of telemetry.socket",
            request.name()
        ));
    }
    let reply = guarded(|| carried_out(request, management, author.user()));
    // What peers report comes many times a second, and `show peers` counts it.
    if !request.reads() && !request.reports() {
        management.log_change(author, &request.name(), &reply);
    }
    reply
}

/// Returns the reply, or an error if `carry_out` panicked.
fn guarded(carry_out: impl FnOnce() -> Reply) -> Reply {
    // State that a panic left half-changed is behind locks, whose poisoning shows it.
    catch_unwind(AssertUnwindSafe(carry_out)).unwrap_or_else(|_| Reply::Error(DEFECT.to_owned()))
}

fn carried_out(request: &Request, management: &Management, user: u32) -> Reply {
    match request {
        Request::Snapshot => Reply::Snapshot(Box::new(management.view.shown_to(Some(user)))),
        Request::Show { table } | Request::Rows { table, .. } => {
            show(&management.view, table, user)
        }
        Request::ClearCounters => {
            fault::panics("request");
            management.view.clear_counters(user, None);
            Reply::Done
        }
        Request::ClearPortCounters { port } => done(management.clear_port_counters(user, port)),
        Request::ClearWatermarks => done(management.clear_watermarks()),
        Request::Set { key, value } => changed(management.set(key, value), Reply::Reloaded),
        Request::Unset { key } => changed(management.unset(key.as_deref()), Reply::Reloaded),
        Request::Config { diff } => changed(management.config(*diff), Reply::Text),
        Request::Reload {
            confirm_ms,
            dry_run,
        } => {
            let confirm = confirm_ms.map(Duration::from_millis);
            changed(management.reload(confirm, *dry_run), Reply::Reloaded)
        }
        Request::Commit => changed(management.commit(), |()| Reply::Done),
        Request::Rollback => changed(management.rollback(), Reply::Reloaded),
        Request::Port { name, up } => done(management.set_admin(name, *up)),
        // A capture is answered frame by frame, and only on the socket that may change things.
        Request::Capture(_) => Reply::Error("this is not where frames are captured".to_owned()),
        // Rows are written as they come.
        Request::Ends { .. } => Reply::Error("this is not where ends are exported".to_owned()),
        Request::Suggest(of_peer) => match management.suggest(of_peer) {
            Ok(suggested) => Reply::Suggested(suggested),
            Err(why) => Reply::Error(why),
        },
        Request::SuggestAll(all) => match management.suggest_all(all) {
            Ok(suggested) => Reply::SuggestedAll(suggested),
            Err(why) => Reply::Error(why),
        },
        Request::Distrust(name) => done(management.trust(name, false)),
        Request::Trust(name) => done(management.trust(name, true)),
        Request::Drain { on } => {
            management.drain(*on);
            Reply::Done
        }
        Request::Stop => done(signal_hook::low_level::raise(SIGTERM)),
        Request::Pairs { pairs, suggested } => done(management.npcc_pairs(pairs, *suggested)),
        Request::Npcc(request) => done(management.pair_request(request)),
        Request::SendCnps(order) => done(management.send_cnps(order)),
    }
}

fn done<E: std::fmt::Display>(done: Result<(), E>) -> Reply {
    match done {
        Ok(()) => Reply::Done,
        Err(error) => Reply::Error(error.to_string()),
    }
}

fn changed<T>(done: Result<T, ApplyError>, reply: impl FnOnce(T) -> Reply) -> Reply {
    match done {
        Ok(done) => reply(done),
        Err(error @ (ApplyError::Invalid(_) | ApplyError::NeedsRestart { .. })) => {
            Reply::Invalid(error.to_string())
        }
        Err(error) => Reply::Error(error.to_string()),
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
    let found = tables::named(name).and_then(|table| table.collect(view, Some(user)));
    let Some(collected) = found else {
        return Reply::Error(format!("there is no table `{name}` that comes as a whole"));
    };
    match collected {
        Ok(data) => Reply::Table(data),
        Err(error) => Reply::Error(error.to_string()),
    }
}

impl Management {
    /// Reads the configuration file again, as SIGHUP requests.
    pub fn reload_at_signal(&self) {
        let request = Request::Reload {
            confirm_ms: None,
            dry_run: false,
        };
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
    fn log_change(&self, author: Author, what: &str, reply: &Reply) {
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
            Reply::Invalid(report) => (refused(report), report.clone()),
            Reply::Error(why) => (format!("refused: {why}"), String::new()),
            _ => ("done".to_owned(), String::new()),
        };
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
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

/// Returns a text with names from clients in one line: with a line's end in it, a name would make an entry of the log by itself.
fn one_line(text: &str) -> String {
    let shown = |letter: char| match letter.is_control() {
        true => letter.escape_debug().to_string(),
        false => letter.to_string(),
    };
    text.chars().take(LONGEST_LINE).map(shown).collect()
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
        assert!(matches!(reply, Reply::Error(why) if why.contains("defect")));
        assert_eq!(guarded(|| Reply::Done), Reply::Done);
    }

    #[test]
    fn the_reserved_slot_is_for_changes() {
        let set = || Request::Set {
            key: "npcc.action".to_owned(),
            value: "off".to_owned(),
        };
        let odd = || serde_json::from_str::<Request>("{}");
        assert!(!is_refused(ClientSlot::Reserved, &Ok(set())));
        assert!(is_refused(ClientSlot::Reserved, &Ok(Request::Snapshot)));
        assert!(is_refused(ClientSlot::Reserved, &odd()));
        for request in [Ok(set()), Ok(Request::Snapshot), odd()] {
            assert!(!is_refused(ClientSlot::Shared, &request));
        }
    }

    #[test]
    fn control_characters_of_a_name_are_shown_in_its_line() {
        assert_eq!(one_line("port ä\n\u{1b}[2J up"), "port ä\\n\\u{1b}[2J up");
        assert_eq!(one_line(&"x".repeat(100_000)).len(), LONGEST_LINE);
    }

    #[test]
    fn a_long_change_is_shortened() {
        assert_eq!(shortened("one\ntwo\n"), "one\ntwo");
        let long = shortened(&"line\n".repeat(LINES + 7));
        assert_eq!(long.lines().count(), LINES + 1);
        assert!(long.ends_with("... and 7 lines more"));
    }
}
