//! `npcc-switch trace packet`: the way of single packets through a running switch, stage by stage, and why.

mod steps;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, UNIX_EPOCH};

use clap::{Args, Subcommand};
use npcc_api::capture::CaptureRequest;
use npcc_api::client::blocking as client;
use npcc_api::client::recording::{Next, Recording};
use npcc_api::query::Query;
use npcc_api::routes::Route;
use npcc_config::ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;

use self::steps::{Route as Found, Seen, Step, steps};
use super::capture::{checked, millis, until_signalled};
use super::socket::SocketArg;
use super::{Failure, say, say_error};

/// Bytes of a frame that are looked at: headers, also of a long chain of IPv6.
const HEADERS: u16 = 512;

#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Follow the next packets that a filter chooses from port to port, and say what each stage made of them
    Packet(PacketArgs),
}

#[derive(Debug, Args)]
struct PacketArgs {
    /// Which packets, as they come in: as of `capture --filter`
    #[arg(
        long,
        value_name = "EXPRESSION",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// Only packets that come in by this port, or that the switch makes for it
    #[arg(long, value_name = "NAME")]
    port: Option<String>,
    /// Follow so many packets
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
    /// Wait so long for them, such as 10s or 500ms
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = super::duration)]
    duration: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

/// A packet's way.
#[derive(Debug, Serialize)]
struct Trace {
    /// Its number among those that were followed.
    packet: u32,
    /// Bytes of the frame as it came in, or as it was made.
    length: u16,
    /// Fate of the packet: `sent`, `dropped`, `punted`, `consumed`, or `waits` where it is still in the switch.
    outcome: &'static str,
    /// Result of each stage.
    steps: Vec<Step>,
}

pub(super) fn run(args: &TraceArgs) -> Result<(), Failure> {
    match &args.what {
        What::Packet(args) => packet(args),
    }
}

fn packet(args: &PacketArgs) -> Result<(), Failure> {
    checked(&args.filter)?;
    let (start, seen, lost) = follow(args)?;
    let traces: Vec<Trace> = seen
        .into_iter()
        .map(|(number, mut seen)| {
            // Workers tell what they saw in any order.
            seen.sort_by_key(|one| one.rank());
            let route = seen.first().and_then(Seen::destination);
            let route = route.and_then(|host| longest(&args.socket.path, host));
            let last = seen.last().filter(|one| one.event.kind.is_last());
            Trace {
                packet: number,
                length: seen.first().map_or(0, |one| one.event.len),
                outcome: last.map_or("waits", |one| one.event.kind.name()),
                steps: steps(&start, &seen, route.as_ref()),
            }
        })
        .collect();
    if lost > 0 {
        say_error(&format!("{lost} steps were lost for want of room"));
    }
    if args.json {
        let text = serde_json::to_string_pretty(&traces).map_err(anyhow::Error::from)?;
        return say(&(text + "\n"));
    }
    if traces.is_empty() {
        return Err(anyhow::anyhow!(
            "no packet that the filter chooses came in {:?}: see `npcc-switch show ports`, or wait longer with --for",
            args.duration
        )
        .into());
    }
    say(&traces.iter().map(shown).collect::<String>())
}

/// Events of each packet, by its number, and how much was lost.
type Followed = (
    npcc_api::capture::CaptureStart,
    BTreeMap<u32, Vec<Seen>>,
    u64,
);

/// Follows packets until as many as are wanted have left, or the time is over.
fn follow(args: &PacketArgs) -> Result<Followed, Failure> {
    let request = CaptureRequest {
        port: args.port.clone(),
        filter: args.filter.clone(),
        snaplen: HEADERS,
        for_ms: Some(millis(args.duration)),
        trace: Some(args.count),
        ..CaptureRequest::default()
    };
    let enough = until_signalled()?;
    let mut recording = Recording::begin(&args.socket.path, request, enough.clone())?;
    let start = recording.start.clone();
    let mut all: BTreeMap<u32, Vec<Seen>> = BTreeMap::new();
    let mut gone = 0;
    loop {
        match recording.read()? {
            Next::Frame(event, frame) => {
                gone += u32::from(event.kind.is_last());
                let of = all.entry(event.trace).or_default();
                of.push(Seen::new(event, frame));
                if gone == args.count {
                    enough.store(true, Ordering::Relaxed);
                }
            }
            Next::End(end) => return Ok((start, all, end.lost)),
        }
    }
}

/// The longest route to a host, from the table of the switch.
fn longest(socket: &Path, host: std::net::IpAddr) -> Option<Found> {
    let query = Query {
        host: Some(host.to_string()),
        ..Query::default()
    };
    let mut longest: Option<(u8, Route)> = None;
    let requested = client::ask_rows(socket, "routes", &query, |row| {
        let route: Route = serde_json::from_value(row)?;
        if let Ok(prefix) = route.prefix.parse::<IpNet>()
            && prefix.contains(&host)
            && longest
                .as_ref()
                .is_none_or(|(len, _)| *len <= prefix.prefix_len())
        {
            longest = Some((prefix.prefix_len(), route));
        }
        Ok(())
    });
    // A trace without the name of its route is still one.
    requested.ok()?;
    longest.map(|(_, route)| Found {
        prefix: route.prefix,
        next_hops: route.next_hops.len(),
    })
}

/// A fact for people: a time of day is written as such, and a text of several words in quotes.
fn fact<'a>(key: &'a str, value: &Value) -> (&'a str, String) {
    match value {
        Value::Number(ns) if key == "at_ns" => {
            let since = Duration::from_nanos(ns.as_u64().unwrap_or_default());
            let time = humantime::format_rfc3339_micros(UNIX_EPOCH + since);
            ("at", time.to_string())
        }
        Value::String(text) if text.contains(' ') => (key, format!("\"{text}\"")),
        Value::String(text) => (key, text.clone()),
        other => (key, other.to_string()),
    }
}

/// A packet's way for people.
fn shown(trace: &Trace) -> String {
    let mut text = format!(
        "packet {}, {} bytes: {}\n",
        trace.packet, trace.length, trace.outcome
    );
    let mut before = None;
    for step in &trace.steps {
        // All frames of a burst have one time: it stands where it is another.
        let after = match step.after_ns.filter(|ns| before != Some(*ns)) {
            None => String::new(),
            Some(ns) => format!("+{}.{:03} us", ns / 1_000, ns % 1_000),
        };
        before = step.after_ns.or(before);
        let _ = write!(text, "  {after:>14}  {:<11}", step.stage);
        for (key, value) in &step.facts {
            let (key, value) = fact(key, value);
            let _ = write!(text, " {key}={value}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_way_has_a_time_of_day_and_each_time_once() {
        let step = |stage, after_ns, facts: Value| Step {
            stage,
            after_ns,
            facts: facts.as_object().unwrap().clone(),
        };
        let text = shown(&Trace {
            packet: 1,
            length: 64,
            outcome: "sent",
            steps: vec![
                step(
                    "received",
                    Some(0),
                    json!({ "at_ns": 1_795_557_656_486_471_481_u64 }),
                ),
                step("parsed", None, json!({ "ttl": 64 })),
                step("queued", Some(0), json!({ "waits": "past the idle queue" })),
                step("sent", Some(1_250), json!({ "egress": "wan0" })),
            ],
        });
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            lines[1..],
            [
                "+0.000 us received at=2026-11-24T22:00:56.486471Z",
                "parsed ttl=64",
                "queued waits=\"past the idle queue\"",
                "+1.250 us sent egress=wan0",
            ]
        );
    }
}
