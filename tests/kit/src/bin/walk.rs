//! Walks bursts of RoCEv2 through the whole packet path, NPCC's flow cache included, and nothing else, to count instructions.
//!
//! - `walk BURSTS [FLOWS] [PAYLOAD] [WORKERS] [ASKING]`: WORKERS is 1 or 2; ASKING is 1 if each frame requests an ACK, else 0.
//! - `walk mix NAME BURSTS [linux]`: a traffic mix, with or without Linux integrated; `walk mixes` prints the names.
//! - `walk mix NAME BURSTS control|ends`: a traffic mix beside a control core; with `ends` it exports the ends it sees to a reader.
//! - `walk mix NAME BURSTS mbuf`: a traffic mix in frames that are laid out as mbufs are, instead of heap frames.
//! - `walk mix NAME BURSTS capture FILTER`: a traffic mix while frames are captured.
//! - `walk ring STYLE BURST BURSTS`: bursts of BURST frames to a device's ring whose driver answers in this style; `walk rings` prints them.
//!
//! `scripts/count-instructions` runs it under callgrind.
#![forbid(unsafe_code)]

use std::net::IpAddr;
use std::process::ExitCode;

use npcc_pipeline::frame::FrameBuf;
use npcc_testkit::bench_path;
use npcc_testkit::mix::{Mix, NAMES};
use npcc_testkit::mixed_path::MixedPath;
use npcc_testkit::ring_rig::{self, RingRig};
use npcc_testkit::room_frame::RoomFrame;

/// Runs `mix NAME BURSTS [linux | mbuf | control | ends | capture FILTER]`.
fn mix(name: &str, bursts: usize, more: &[&str]) -> ExitCode {
    let Some(mix) = Mix::named(name) else {
        eprintln!("no mix {name}: {}", NAMES.join(", "));
        return ExitCode::from(2);
    };
    match more {
        [] => walk(MixedPath::new(&mix), bursts),
        ["mbuf"] => walk(MixedPath::of(&mix, RoomFrame::new), bursts),
        ["control"] => walk(MixedPath::new(&mix).with_control(false), bursts),
        ["ends"] => walk(MixedPath::new(&mix).with_control(true), bursts),
        ["linux"] => walk(MixedPath::new(&mix).with_linux(), bursts),
        ["capture", filter] => walk(MixedPath::new(&mix).with_capture(filter), bursts),
        _ => {
            eprintln!(
                "usage: walk mix NAME BURSTS [linux | mbuf | control | ends | capture FILTER]"
            );
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn walk<B: FrameBuf>(mut path: MixedPath<B>, bursts: usize) {
    for _ in 0..bursts {
        path.walk();
    }
    eprintln!("{} frames forwarded", path.forwarded());
    if path.exported() > 0 {
        eprintln!("{} rows exported", path.exported());
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mixes"] => {
            for name in NAMES {
                eprintln!("{name}");
            }
            return ExitCode::SUCCESS;
        }
        ["rings"] => {
            for (name, _) in ring_rig::STYLES {
                eprintln!("{name}");
            }
            return ExitCode::SUCCESS;
        }
        ["ring", style, burst, bursts] => {
            let rig = burst
                .parse()
                .ok()
                .and_then(|burst| RingRig::new(style, burst));
            let (Some(mut rig), Ok(bursts)) = (rig, bursts.parse::<usize>()) else {
                eprintln!("usage: walk ring STYLE BURST BURSTS");
                return ExitCode::from(2);
            };
            for _ in 0..bursts {
                rig.walk();
            }
            eprintln!("{} frames sent", rig.sent());
            return ExitCode::SUCCESS;
        }
        ["mix", name, bursts, ref more @ ..] => {
            return mix(name, bursts.parse().unwrap_or(1000), more);
        }
        _ => {}
    }
    let numbers: Option<Vec<usize>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some((bursts, flows, payload, workers, asking)) = numbers.map(|n| {
        (
            n.first().copied().unwrap_or(1000),
            n.get(1).copied().unwrap_or(64),
            n.get(2).copied().unwrap_or(4),
            n.get(3).map_or(1, |workers| u8::from(*workers > 1) + 1),
            n.get(4).is_some_and(|asking| *asking > 0),
        )
    }) else {
        eprintln!("usage: walk BURSTS [FLOWS] [PAYLOAD] [WORKERS] [ASKING]");
        return ExitCode::from(2);
    };
    let destination = |flow: usize| {
        let [.., high, low] = flow.to_be_bytes();
        IpAddr::from([10, 0, 2 + high, low])
    };
    let mut rig = bench_path::Rig::with_workers(workers, flows, payload, destination);
    if asking {
        rig = rig.asking();
    }
    for _ in 0..bursts {
        rig.walk();
    }
    eprintln!("{} frames forwarded", rig.forwarded());
    ExitCode::SUCCESS
}
