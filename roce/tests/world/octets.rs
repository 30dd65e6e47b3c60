//! Histories that octets choose: a fuzzer's, or random ones.

use super::{Dice, World};

/// Maximum number of events of a history.
const EVENTS: u32 = 512;

/// Randomness from octets; where they end the history ends.
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

/// Shows the connection table the history that these octets choose; an error if a queue pair was signalled that did not send.
pub(crate) fn tell(octets: &[u8]) -> Result<(), String> {
    match World::new(Octets(octets)) {
        Some(mut world) => world.run(EVENTS),
        None => Ok(()),
    }
}
