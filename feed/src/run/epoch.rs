//! Random number of a start.

use std::fs::File;
use std::io::{self, Read};

/// Returns a random number from the kernel.
pub(super) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
