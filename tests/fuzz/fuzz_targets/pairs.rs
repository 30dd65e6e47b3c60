//! Fuzz target of the pair book as a state machine: for any history of hosts, connections and a forger, nobody who did not send is signalled.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../roce/tests/world/mod.rs"]
mod world;

fuzz_target!(|octets: &[u8]| {
    if let Err(wrong) = world::octets::tell(octets) {
        panic!("{wrong}");
    }
});
