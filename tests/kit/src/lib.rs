//! What the tests, benches and the demo share: captures in and out, what a CNP in them says, and a packet path on heap frames.
#![forbid(unsafe_code)]

pub mod bench_path;
pub mod capture;
pub mod cnps;
pub mod mix;
pub mod mixed_path;
pub mod two_ports;
