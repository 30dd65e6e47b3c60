//! Test kit shared by tests, benches and the demo: captures in and out, parsing of the CNPs in them, waiting, the tests' Python, a relay, and a packet path on heap frames.
#![forbid(unsafe_code)]

pub mod bench_path;
pub mod capture;
pub mod cnps;
pub mod http;
pub mod mix;
pub mod mixed_path;
pub mod npcc;
pub mod python;
pub mod relay;
pub mod ring_rig;
pub mod room_frame;
pub mod skip;
pub mod two_ports;
pub mod wait;
