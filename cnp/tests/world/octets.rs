//! Histories that octets choose: a fuzzer's, or random ones.

use super::{Dice, World};

/// Events of a history at most.
const EVENTS: u32 = 512;

/// Chance is what the octets say; where they end the history ends.
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

/// Tells the pair book the history that these octets choose; who was told did send, or what went wrong.
pub(crate) fn tell(octets: &[u8]) -> Result<(), String> {
    match World::new(Octets(octets)) {
        Some(mut world) => world.run(EVENTS),
        None => Ok(()),
    }
}
