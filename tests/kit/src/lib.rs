//! What the tests, benches and the demo share: captures in and out, and what a CNP in them says.
#![forbid(unsafe_code)]

pub mod bench_path;
pub mod capture;
pub mod cnps;
