//! The same seed gives the same world: two processes are compared frame by frame.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at what it did not expect"
)]

use std::path::Path;
use std::process::Command;

use crate::world::seeds;
use crate::world_swarm;

/// Name of the variable by which a child knows its seed, and of the one with its file.
const SEED: &str = "NPCC_SEED";
const FILE: &str = "NPCC_WORLD_TRACE";

/// Runs a seed in a process of its own; returns every frame out, and the counters at the end.
fn trace(seed: u64, file: &Path) -> String {
    let test =
        "world_determinism::one_seed_gives_the_same_bytes_at_the_same_times_in_two_processes";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]);
    let done = child
        .env(SEED, seed.to_string())
        .env(FILE, file)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn one_seed_gives_the_same_bytes_at_the_same_times_in_two_processes() {
    if let Some(file) = std::env::var_os(FILE) {
        let seed = seeds::first(1)[0];
        let world = world_swarm::run(seed, true);
        let counters = world
            .workers
            .iter()
            .map(|worker| format!("{:?}\n", worker.path.counters()));
        let all: String = std::iter::once(world.trace.text().to_owned())
            .chain(counters)
            .collect();
        return std::fs::write(file, all).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let of = |seed, name: &str| trace(seed, &dir.path().join(name));
    for seed in [1, 6] {
        let (first, second) = (of(seed, "first"), of(seed, "second"));
        assert!(
            first.lines().count() > 1_000,
            "{} frames",
            first.lines().count()
        );
        if first != second {
            let differs = first.lines().zip(second.lines()).position(|(a, b)| a != b);
            panic!("seed {seed}: the traces differ from line {differs:?} on");
        }
    }
    assert_ne!(
        of(1, "first"),
        of(2, "second"),
        "another seed, another world"
    );
}
