//! The pair book as a state machine: any history of hosts, connections and a forger, and nobody is told who did not send.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../cnp/tests/world/mod.rs"]
mod world;

use world::{Dice, World};

/// Chance is what the fuzzer says.
struct Octets<'a>(&'a [u8]);

impl Dice for Octets<'_> {
    fn word(&mut self) -> Option<u32> {
        // Small numbers from one octet, large ones from three more.
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        if *first < 0xf0 {
            return Some(u32::from(*first));
        }
        let (more, rest) = rest.split_first_chunk::<3>()?;
        self.0 = rest;
        let [a, b, c] = *more;
        Some(u32::from_le_bytes([a, b, c, *first]))
    }
}

fuzz_target!(|octets: &[u8]| {
    let Some(mut world) = World::new(Octets(octets)) else {
        return;
    };
    if let Err(wrong) = world.run(512) {
        panic!("{wrong}");
    }
});
