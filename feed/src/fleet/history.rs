//! `npcc-feed history`: what became of a host, from a stream that JetStream keeps.

use std::time::{Duration, UNIX_EPOCH};

use async_nats::Client;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamError, GetStreamErrorKind, RequestError,
    RequestErrorKind,
};
use async_nats::jetstream::{self, stream};
use futures_util::StreamExt;
use humantime::format_rfc3339_millis;
use npcc_config::printable;
use serde_json::Value;
use time::OffsetDateTime;

use super::identity::record;
use crate::bus::{ConnectFailure, connect};
use crate::settings::Settings;

/// Time without another record after which there are no more.
const QUIET: Duration = Duration::from_secs(1);
/// Most characters of a line.
const LONGEST: usize = 1024;
/// Most bytes that a stream keeps on disk: 4 GiB.
pub const MOST_BYTES: i64 = 4 << 30;
/// Longest time for an answer of JetStream.
const ANSWER: Duration = Duration::from_secs(5);

/// Time from which a record's time is not believed: the year 10,000, which has no usual form.
const LATEST: u64 = 253_402_300_800_000_000;

/// Reason why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// There is no connection to a server.
    #[error("cannot connect to the bus: {0}")]
    Connect(#[from] ConnectFailure),
    /// No server keeps a history, or this user may not use it.
    #[error(
        "the servers keep no history ({0}): it needs JetStream on one server or three, `npcc-feed history --set-up`, and a user that may publish to $JS.API.>"
    )]
    NoStream(String),
    /// The servers do not answer for the stream at this moment; it may be there.
    #[error(
        "the servers do not answer for the history now ({0}): while one of three is replaced, the two others need a moment to agree; try again, and see `npcc-feed doctor`; or this user may not publish to $JS.API.>"
    )]
    Silent(String),
    /// The stream failed while it was read.
    #[error("the stream failed: {0}")]
    Broken(String),
}

/// Selection of records.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Address of a host; `None` for all.
    pub host: Option<String>,
    /// Age of the oldest record.
    pub since: Duration,
}

/// Number of copies of the stream if at least three servers run JetStream; otherwise there is one.
const COPIES: usize = 3;

/// Makes the stream of a site, or changes how long it keeps records. Returns the number of its copies as the servers have them: three where
/// there are three servers with JetStream, one elsewhere.
///
/// # Errors
/// Fails without JetStream.
pub async fn set_up(settings: &Settings, kept: Duration) -> Result<usize, HistoryError> {
    let context = context(connect(&settings.bus, &settings.prefix()).await?);
    let subjects = ["decisions", "hosts", "events", "state"];
    let subjects = subjects.map(|kind| format!("npcc.{}.*.{kind}", settings.site));
    let config = stream::Config {
        name: stream_name(settings),
        subjects: subjects.to_vec(),
        max_age: kept,
        max_bytes: MOST_BYTES,
        discard: stream::DiscardPolicy::Old,
        ..Default::default()
    };
    let copies = |num_replicas| stream::Config {
        num_replicas,
        ..config.clone()
    };
    let mut made = context.create_or_update_stream(copies(COPIES)).await;
    // JetStream refuses more copies than there are servers. Other errors, such as no JetStream at all, would be the same for one copy.
    let refused =
        |error: &CreateStreamError| matches!(error.kind(), CreateStreamErrorKind::JetStream(_));
    if made.as_ref().is_err_and(refused) {
        made = context.create_or_update_stream(copies(1)).await;
    }
    match made {
        // A lone server accepts three copies of a stream that it has, and says so; it has no group.
        Ok(info) => Ok(info.cluster.map_or(1, |group| 1 + group.replicas.len())),
        Err(error) => Err(HistoryError::NoStream(error.to_string())),
    }
}

/// Passes the records that are wanted to `give`, oldest first; returns their number, and that of the records dropped: not readable, or of
/// another box than that under whose subject they came.
///
/// # Errors
/// Fails without JetStream or without the stream.
pub async fn history(
    settings: &Settings,
    wanted: &Wanted,
    mut give: impl FnMut(&Value),
) -> Result<(usize, usize), HistoryError> {
    let client = connect(&settings.bus, &settings.prefix()).await?;
    let config = pull::OrderedConfig {
        deliver_policy: since(OffsetDateTime::now_utc(), wanted.since),
        ..Default::default()
    };
    let (mut count, mut dropped) = (0, 0);
    let read = read(client, settings, config, |message| {
        match record(message.subject.as_str(), &message.payload) {
            Some(value) if concerns(&value, wanted.host.as_deref()) => {
                give(&value);
                count += 1;
            }
            Some(_) => {}
            None => dropped += 1,
        }
    });
    read.await?;
    Ok((count, dropped))
}

/// Returns the policy that begins `age` ago; with all there is if no date is that old.
fn since(now: OffsetDateTime, age: Duration) -> DeliverPolicy {
    let age = time::Duration::try_from(age).ok();
    match age.and_then(|age| now.checked_sub(age)) {
        // JetStream counts from 1970.
        Some(start_time) if start_time > OffsetDateTime::UNIX_EPOCH => {
            DeliverPolicy::ByStartTime { start_time }
        }
        _ => DeliverPolicy::All,
    }
}

/// Passes the messages that the site's stream holds now to `each`, as a consumer selects them.
pub(super) async fn read(
    client: Client,
    settings: &Settings,
    config: pull::OrderedConfig,
    mut each: impl FnMut(&jetstream::Message),
) -> Result<(), HistoryError> {
    let stream = context(client).get_stream(stream_name(settings)).await;
    let stream = stream.map_err(|error| match error.kind() {
        GetStreamErrorKind::JetStream(why) if is_absent(why.error_code()) => {
            HistoryError::NoStream(error.to_string())
        }
        GetStreamErrorKind::Request if nobody_answers(&error) => {
            HistoryError::NoStream(error.to_string())
        }
        _ => HistoryError::Silent(error.to_string()),
    })?;
    let consumer = stream.create_consumer(config).await;
    let consumer = consumer.map_err(|error| HistoryError::Silent(error.to_string()))?;
    let broken = |error: String| HistoryError::Broken(error);
    let mut messages = consumer
        .messages()
        .await
        .map_err(|error| broken(error.to_string()))?;
    while let Ok(Some(message)) = tokio::time::timeout(QUIET, messages.next()).await {
        let message = message.map_err(|error| broken(error.to_string()))?;
        each(&message);
        if message.info().is_ok_and(|info| info.pending == 0) {
            break;
        }
    }
    Ok(())
}

/// Returns true if JetStream says that there is no such stream, or that it is not there itself.
const fn is_absent(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::STREAM_NOT_FOUND
            | ErrorCode::JETSTREAM_NOT_ENABLED
            | ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT
    )
}

/// Returns true if no server has JetStream for this user.
fn nobody_answers(error: &GetStreamError) -> bool {
    let request = std::error::Error::source(error).and_then(|why| why.downcast_ref());
    request.is_some_and(|why: &RequestError| why.kind() == RequestErrorKind::NoResponders)
}

fn context(client: Client) -> jetstream::Context {
    let mut context = jetstream::new(client);
    context.set_timeout(ANSWER);
    context
}

/// Returns the name of a site's stream.
fn stream_name(settings: &Settings) -> String {
    format!("NPCC-{}", settings.site)
}

/// Returns true if a record is about a host: its roll-up, or a decision from or to it. Without a host all but states are.
fn concerns(record: &Value, host: Option<&str>) -> bool {
    let Some(host) = host else {
        return record.get("host").is_some() || record.get("line").is_some();
    };
    let at = |path| record.pointer(path).and_then(Value::as_str) == Some(host);
    at("/host/address") || at("/line/src") || at("/line/dst")
}

/// Formats a record for people: time, box, and what it says, on one line.
#[must_use]
pub fn text(record: &Value) -> String {
    printable(&line(record), LONGEST)
}

fn line(record: &Value) -> String {
    let name = record["box"].as_str().unwrap_or("-");
    // A line of the log has its own time within its text, after that since the switch's start.
    let dated = record.get("line").and_then(|line| {
        let wall = line["wall"].as_str()?;
        let (_, said) = line["text"].as_str()?.split_once(wall)?;
        Some(format!("{wall} {name}{said}"))
    });
    if let Some(dated) = dated {
        return dated;
    }
    let said = match (record.get("line"), record.get("host")) {
        (Some(line), _) => line["text"].as_str().unwrap_or_default().to_owned(),
        (None, Some(host)) => format!(
            "host {} flows {} paired {} cnps {} unresponsive {} responsiveness {}",
            host["address"].as_str().unwrap_or("-"),
            host["flows"],
            host["paired"],
            host["cnps_sent"],
            host["unresponsive"],
            host["responsiveness"].as_str().unwrap_or("-"),
        ),
        (None, None) => record.to_string(),
    };
    let micros = record["at"].as_u64().filter(|micros| *micros < LATEST);
    let at = UNIX_EPOCH + Duration::from_micros(micros.unwrap_or_default());
    format!("{} {name} {said}", format_rfc3339_millis(at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_concerns_the_hosts_that_it_names() {
        let decision = json!({"at": 1_700_000_000_000_000i64, "box": "e", "line": {"src": "10.0.0.1", "dst": "10.0.0.2", "text": "cnp sent"}});
        let of_host = json!({"host": {"address": "10.0.0.1"}});
        for (record, host, expected) in [
            (&decision, Some("10.0.0.1"), true),
            (&decision, Some("10.0.0.2"), true),
            (&decision, Some("10.0.0.3"), false),
            (&of_host, Some("10.0.0.1"), true),
            (&of_host, None, true),
            (&json!({"switch": {}}), None, false),
        ] {
            assert_eq!(concerns(record, host), expected, "{record}");
        }
        assert_eq!(text(&decision), "2023-11-14T22:13:20.000Z e cnp sent");
        let of_no_time = json!({"at": u64::MAX, "box": "e", "line": {"text": "cnp sent"}});
        assert_eq!(text(&of_no_time), "1970-01-01T00:00:00.000Z e cnp sent");
        let (wall, said) = (
            "2026-11-26T04:47:48.308Z",
            "7 us: 2026-11-26T04:47:48.308Z QP 0x11",
        );
        let real = json!({"at": 1_700_000_000_000_000i64, "box": "e", "line": {"wall": wall, "text": said}});
        assert_eq!(text(&real), "2026-11-26T04:47:48.308Z e QP 0x11");
        let forged =
            json!({"box": "e", "line": {"text": "x\n2026-11-26T04:47:48.308Z edge-1 \u{1b}[2J"}});
        assert!(!text(&forged).contains(char::is_control));
    }

    #[test]
    fn any_age_has_a_beginning() {
        let now = OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
        for (age, all) in [
            (Duration::from_secs(3600), false),
            (Duration::from_secs(99_999 * 31_557_600), true),
            (Duration::MAX, true),
        ] {
            let policy = since(now, age);
            assert_eq!(matches!(policy, DeliverPolicy::All), all, "{policy:?}");
        }
    }
}
