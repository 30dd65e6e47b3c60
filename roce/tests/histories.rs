//! Random histories of four hosts against an oracle: no CNP to a queue pair that did not send (`world/mod.rs`).
//!
//! `NPCC_HISTORIES` sets their number (scripts/test-long pair-histories), `NPCC_HISTORY` names one, which is then printed in full.

use crate::world::{Dice, World, octets};
use npcc_pipeline::bits::mix;
use npcc_roce::pair::Evidence;
use proptest::prelude::*;

const EVENTS: u32 = 120;

/// Random numbers from a seed.
struct Chance(u64);

impl Dice for Chance {
    fn word(&mut self) -> Option<u32> {
        self.0 = mix(self.0);
        u32::try_from(self.0 >> 32).ok()
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs a history again, and returns all that happened in it as text.
fn retell(seed: u64) -> String {
    let Some(mut world) = World::new(Chance(seed)) else {
        return String::new();
    };
    world.log = Some(Vec::new());
    let outcome = world.run(EVENTS);
    format!("{}\n{outcome:?}", world.log.unwrap_or_default().join("\n"))
}

#[test]
fn every_signalled_queue_pair_did_send() {
    if let Some(seed) = number("NPCC_HISTORY") {
        println!("{}", retell(seed));
    }
    let count = number("NPCC_HISTORIES").unwrap_or(3_000);
    let mut signalled = [0u64; Evidence::COUNT];
    let mut wrong = Vec::new();
    for seed in 0..count {
        let Some(mut world) = World::new(Chance(seed)) else {
            continue;
        };
        if let Err(what) = world.run(EVENTS) {
            wrong.push((seed, what));
        }
        for (sum, signalled) in signalled.iter_mut().zip(world.signalled) {
            *sum += signalled;
        }
    }
    println!("{count} histories, signalled by evidence {signalled:?}");
    for (seed, what) in wrong.iter().take(10) {
        eprintln!("NPCC_HISTORY={seed}: {what}");
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} histories tell a queue pair that did not send",
        wrong.len()
    );
    // A test that signals nobody could not fail: every evidence occurs.
    assert!(
        signalled.iter().skip(1).all(|signalled| *signalled > 100),
        "{signalled:?}"
    );
}

proptest! {
    /// The fuzzer's entry point (`tests/fuzz/fuzz_targets/pairs.rs`), with random octets of any length.
    #[test]
    fn for_any_octets_every_signalled_queue_pair_did_send(
        octets in prop::collection::vec(prop_oneof![3 => any::<u8>(), 1 => 0u8..32], 0..4_096),
    ) {
        let outcome = octets::tell(&octets);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}
