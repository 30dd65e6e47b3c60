//! The pair book as a state machine: any history of hosts, connections and a forger, and nobody is told who did not send.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../cnp/tests/world/mod.rs"]
mod world;

fuzz_target!(|octets: &[u8]| {
    if let Err(wrong) = world::octets::tell(octets) {
        panic!("{wrong}");
    }
});
