//! Fuzz target of GOAL schedules: any text is a graph or an error with a line, and a graph connects every message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npcc_sim::app::{Work, read_goal};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(graph) = read_goal(&text) else { return };
    let (mut sent, mut received) = (0u128, 0u128);
    for operation in graph.ranks().iter().flatten() {
        match operation.work {
            Work::Send { bytes, .. } => sent += u128::from(bytes),
            Work::Receive { bytes, .. } => received += u128::from(bytes),
            Work::Calc { .. } => {}
        }
    }
    assert_eq!(sent, received);
});
