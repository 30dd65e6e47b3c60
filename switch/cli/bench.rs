//! `npcc-switch bench`: what a frame costs the dataplane on this machine.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use npcc_config::ipnet::IpNet;

use super::gen_pcap::sizes;
use super::{Failure, duration, say};
use npcc_lab::bench::{Cnps, LOADS, Late, Line, Plan, Reacted, Routes, latency, line, reaction};
use npcc_lab::prefixes;

/// SEND ONLY without VLAN over IPv4: Ethernet, IP, UDP, BTH, ICRC.
const LEAST: usize = 58;
/// The bench's ports carry no longer frames.
const MOST: usize = 9_100;
/// Most connections: each is a frame in the source's memory for every length.
const MOST_FLOWS: usize = 262_144;
/// Most connections of a stamping source, which holds few frames.
const MOST_STAMPED: usize = 1_000_000;

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// Frame lengths without FCS, one line each; imix is a mix
    #[arg(long, value_name = "BYTES,...", default_value = "62,1082,4154")]
    frames: String,
    /// Connections, each with its queue pair and destination
    #[arg(long, default_value_t = 64)]
    flows: usize,
    /// Route these prefixes, one a line, plain or gzipped, and send to random addresses in them
    #[arg(long, value_name = "FILE")]
    routes: Option<PathBuf>,
    /// Write addresses, port and queue pair into frames as they come in, instead of holding one of each flow: the source
    /// then costs the same with few flows and with many. One length a line
    #[arg(long)]
    stamped: bool,
    /// Time each line is measured
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    seconds: Duration,
    /// Measure all lines this often, in turns, and print each
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Measure latency too, at 10, 50 and 90 % of what each line's frames a second came to
    #[arg(long, conflicts_with = "reaction")]
    latency: bool,
    /// Measure how soon CNPs answer a queue that crosses a threshold instead: `hard` and `shallow`, each alone and with a client that
    /// asks for the state all the time
    #[arg(long, conflicts_with_all = ["frames", "flows", "routes", "seconds"])]
    reaction: bool,
    /// Crossings of each line of --reaction, one every 1.1 ms
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        requires = "reaction"
    )]
    crossings: u64,
    /// Core of the control thread
    #[arg(long, default_value_t = 0)]
    control_core: usize,
    /// Core of the worker
    #[arg(long, default_value_t = 1)]
    worker_core: usize,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let plan = plan(args)?;
    if args.reaction {
        return reactions(args);
    }
    if !args.json {
        say(&format!(
            "{:>6}  {:>7}  {:>9}  {:>7}  {:>8}  {:>6}  {:>7}  drops\n",
            "frame", "flows", "routes", "Mpps", "ns/frame", "busy", "sampled"
        ))?;
    }
    for _ in 0..args.rounds {
        for (name, sizes) in &plan.sizes {
            let line = line(&plan, name, sizes)?;
            say(&shown(&line, args.json)?)?;
            for load in LOADS.into_iter().filter(|_| args.latency) {
                let late = latency(&plan, &line, sizes, load)?;
                say(&shown_late(&late, args.json)?)?;
            }
        }
    }
    Ok(())
}

fn reactions(args: &BenchArgs) -> Result<(), Failure> {
    for _ in 0..args.rounds {
        for (crossed, requested) in Cnps::ALL
            .into_iter()
            .flat_map(|crossed| [(crossed, false), (crossed, true)])
        {
            let cores = (args.control_core, args.worker_core);
            let reacted = reaction(crossed, args.crossings, requested, cores)?;
            say(&shown_reacted(&reacted, args.json)?)?;
        }
    }
    Ok(())
}

fn json(figures: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(figures).context("cannot encode the figures")?;
    Ok(text + "\n")
}

fn shown_late(late: &Late, as_json: bool) -> Result<String, Failure> {
    if as_json {
        return json(late);
    }
    let times = late.latency_us;
    Ok(format!(
        "{:>6}  at {:>2} % of it, {:.2} Mpps: latency p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us of {}; drops {}\n",
        late.frame,
        late.load,
        late.mpps,
        times.p50,
        times.p99,
        times.p999,
        times.max,
        times.count,
        reasons(&late.drops)
    ))
}

fn shown_reacted(reacted: &Reacted, as_json: bool) -> Result<String, Failure> {
    if as_json {
        return json(reacted);
    }
    let times = reacted.reaction_us;
    Ok(format!(
        "{:>7}{}: p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us of {} answered in {} volleys; {} of {} ticks late\n",
        reacted.crossed,
        if reacted.questions > 0 {
            format!(", asked {} times", reacted.questions)
        } else {
            String::new()
        },
        times.p50,
        times.p99,
        times.p999,
        times.max,
        times.count,
        reacted.volleys,
        reacted.ticks_late,
        reacted.ticks
    ))
}

fn reasons(drops: &std::collections::BTreeMap<String, u64>) -> String {
    let all: Vec<String> = drops
        .iter()
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.join(", ")
    }
}

fn shown(line: &Line, as_json: bool) -> Result<String, Failure> {
    if as_json {
        return json(line);
    }
    Ok(format!(
        "{:>6}  {:>7}  {:>9}  {:>7.2}  {:>8.1}  {:>5.1}%  {:>6.1}%  {}\n",
        line.frame,
        line.flows,
        line.routes,
        line.mpps,
        line.ns_per_frame,
        line.busy,
        line.sampled,
        reasons(&line.drops)
    ))
}

/// Refuses what cannot be measured before anything starts.
fn plan(args: &BenchArgs) -> Result<Plan, Failure> {
    let wrong = |text: String| Failure::Config(format!("error: {text}"));
    let most = if args.stamped {
        MOST_STAMPED
    } else {
        MOST_FLOWS
    };
    if !(1..=most).contains(&args.flows) {
        let more = if args.stamped {
            ""
        } else {
            "; with --stamped to 1000000"
        };
        return Err(wrong(format!(
            "--flows {}: write 1 to {most}{more}",
            args.flows
        )));
    }
    if !(1..=1000).contains(&args.rounds) {
        return Err(wrong(format!("--rounds {}: write 1 to 1000", args.rounds)));
    }
    if !(1..=1_000_000).contains(&args.crossings) {
        return Err(wrong(format!(
            "--crossings {}: write 1 to 1000000",
            args.crossings
        )));
    }
    if args.seconds > Duration::from_secs(3600) {
        return Err(wrong("--seconds: at most 1 h a line".to_owned()));
    }
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    for core in [args.control_core, args.worker_core] {
        if !cores.iter().any(|id| id.id == core) {
            return Err(wrong(format!(
                "core {core} is not among those this process may use"
            )));
        }
    }
    if args.control_core == args.worker_core {
        return Err(wrong(
            "the worker needs a core of its own: --worker-core".to_owned(),
        ));
    }
    let mut lines = Vec::new();
    for part in args.frames.split(',') {
        let lengths = sizes(part).map_err(Failure::Config)?;
        let bad =
            |size: &&usize| !(LEAST..=MOST).contains(*size) || !(**size - LEAST).is_multiple_of(4);
        if let Some(size) = lengths.iter().find(bad) {
            return Err(wrong(format!(
                "--frames {size}: write {LEAST} to {MOST}, in steps of 4"
            )));
        }
        if args.stamped && lengths.len() > 1 {
            return Err(wrong(format!(
                "--frames {part}: --stamped frames have one length"
            )));
        }
        lines.push((part.to_owned(), lengths));
    }
    let routes = args.routes.as_ref().map(|file| {
        let prefixes = prefixes::read(file).map_err(|error| wrong(error.to_string()))?;
        let v4: Vec<&IpNet> = prefixes.iter().filter(|one| one.addr().is_ipv4()).collect();
        if v4.is_empty() {
            return Err(wrong(format!("{} holds no IPv4 prefix", file.display())));
        }
        Ok(Routes {
            file: file.clone(),
            destinations: destinations(&v4, args.flows),
            counts: [v4.len(), prefixes.len() - v4.len()],
        })
    });
    Ok(Plan {
        sizes: lines,
        flows: args.flows,
        stamped: args.stamped,
        routes: routes.transpose()?,
        time: args.seconds,
        cores: (args.control_core, args.worker_core),
    })
}

/// Addresses within prefixes, far apart and always the same: every prefix is as likely as any other.
fn destinations(prefixes: &[&IpNet], count: usize) -> Vec<IpAddr> {
    let mut state = 1u64;
    let mut random = || {
        // Knuth's MMIX; the high half is the good one.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let [.., a, b, c, d] = state.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    };
    let one = |_| {
        let place = random() as usize % prefixes.len().max(1);
        let host = random();
        let prefix = prefixes.get(place)?;
        let IpAddr::V4(network) = prefix.addr() else {
            return None;
        };
        let mask = u32::MAX
            .checked_shr(u32::from(prefix.prefix_len()))
            .unwrap_or(0);
        Some(IpAddr::V4(Ipv4Addr::from(u32::from(network) | host & mask)))
    };
    (0..count).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_lie_in_the_prefixes_and_differ() {
        let nets: Vec<IpNet> = ["10.0.0.0/8", "192.0.2.7/32", "0.0.0.0/0"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let only: Vec<&IpNet> = nets[..2].iter().collect();
        let found = destinations(&only, 1000);
        assert_eq!(found.len(), 1000);
        assert!(
            found
                .iter()
                .all(|one| only.iter().any(|net| net.contains(one)))
        );
        let different: std::collections::BTreeSet<_> = found.iter().collect();
        assert!(different.len() > 400, "{}", different.len());
        assert_eq!(found, destinations(&only, 1000));
    }
}
