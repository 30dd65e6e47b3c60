//! Pauses of the peer, as a MAC that honors them keeps them.

use crate::card::Picos;

/// Bit times of one quantum of pause (IEEE 802.3, annex 31B).
const QUANTUM_BITS: u64 = 512;

/// Offset of the opcode in a MAC control frame, behind addresses and EtherType.
const OPCODE: usize = 14;

/// Pauses that are in force, and those that the MAC honors.
#[derive(Debug, Clone)]
pub struct Pauses {
    /// Bit/s of the link.
    rate: u64,
    /// True if the MAC honors pause of the whole link.
    link: bool,
    /// Priorities whose pause the MAC honors, by bit.
    priorities: u8,
    /// Time at which the pause of each priority ends.
    until: [Picos; 8],
}

impl Pauses {
    /// Returns no pauses, on a link of `rate` bit/s whose MAC honors none.
    #[must_use]
    pub fn new(rate: u64) -> Pauses {
        Pauses {
            rate,
            link: false,
            priorities: 0,
            until: [0; 8],
        }
    }

    /// Sets what the MAC honors from now on.
    pub fn honor(&mut self, link: bool, priorities: u8) {
        self.link = link;
        self.priorities = priorities;
    }

    /// Takes note of a MAC control frame.
    pub fn hear(&mut self, frame: &[u8], now: Picos) {
        let word = |at: usize| {
            let bytes = frame.get(at..at + 2)?;
            Some(u64::from(bytes[0]) << 8 | u64::from(bytes[1]))
        };
        match word(OPCODE) {
            Some(0x0001) if self.link => {
                let end = now + self.time(word(OPCODE + 2).unwrap_or(0));
                self.until = [end; 8];
            }
            Some(0x0101) => {
                let named = word(OPCODE + 2).unwrap_or(0);
                for priority in 0..8 {
                    if named & 1 << priority != 0 && self.priorities & 1 << priority != 0 {
                        let quanta = word(OPCODE + 4 + 2 * priority).unwrap_or(0);
                        self.until[priority] = now + self.time(quanta);
                    }
                }
            }
            _ => {}
        }
    }

    fn time(&self, quanta: u64) -> Picos {
        // In nanoseconds first, as picoseconds of the longest pause are more than 64 bits hold.
        quanta * QUANTUM_BITS * 1_000_000_000 / self.rate * 1_000
    }

    /// Returns the queues that are held at `now`: of a card with one queue, all; else a queue a priority.
    #[must_use]
    pub fn held(&self, now: Picos, rings: u16) -> u64 {
        let paused = |priority: &usize| self.until[*priority] > now;
        if rings == 8 {
            return (0..8).filter(paused).map(|priority| 1 << priority).sum();
        }
        if (0..8).any(|priority| paused(&priority)) {
            u64::MAX
        } else {
            0
        }
    }

    /// Returns the next time after `now` at which a pause ends.
    #[must_use]
    pub fn next_end(&self, now: Picos) -> Option<Picos> {
        self.until.iter().copied().filter(|end| *end > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Picoseconds of a microsecond.
    const US: Picos = 1_000_000;

    /// Returns a MAC control frame with this opcode and these words behind it.
    fn frame(opcode: u16, words: &[u16]) -> Vec<u8> {
        let words = [&[0x8808, opcode], words].concat();
        let bytes = words.iter().flat_map(|word| word.to_be_bytes());
        [0; 12].into_iter().chain(bytes).collect()
    }

    #[test]
    fn a_pause_of_a_priority_holds_its_queue_for_its_quanta() {
        let mut pauses = Pauses::new(100_000_000_000);
        pauses.honor(false, 1 << 3);
        // 1,000 quanta of 512 bits at 100 Gb/s are 5.12 us; priority 4 is not honored.
        pauses.hear(&frame(0x0101, &[0x18, 0, 0, 0, 1_000, 1_000]), 2 * US);
        assert_eq!(pauses.held(2 * US, 8), 1 << 3);
        assert_eq!(pauses.held(2 * US, 1), u64::MAX, "one queue has all");
        let end = pauses.next_end(2 * US).unwrap();
        assert_eq!(end, 7_120_000);
        assert_eq!((pauses.held(end, 8), pauses.next_end(end)), (0, None));
    }

    #[test]
    fn a_time_of_zero_ends_a_pause_and_the_longest_fits() {
        let mut pauses = Pauses::new(1_000_000_000);
        pauses.honor(true, 0);
        pauses.hear(&frame(0x0001, &[u16::MAX]), 0);
        assert_eq!(pauses.next_end(0), Some(33_553_920 * 1_000));
        pauses.hear(&frame(0x0001, &[0]), US);
        assert_eq!(pauses.held(US, 8), 0);
    }

    #[test]
    fn what_the_mac_does_not_honor_and_frames_that_are_cut_hold_nothing() {
        let mut pauses = Pauses::new(1_000_000_000);
        pauses.hear(&frame(0x0001, &[9]), 0);
        pauses.hear(&frame(0x0101, &[0xff, 9, 9, 9, 9, 9, 9, 9, 9]), 0);
        pauses.honor(true, 0xff);
        pauses.hear(&frame(0x0101, &[]), 0);
        pauses.hear(&frame(0x0101, &[0xff]), 0);
        pauses.hear(&[0; 15], 0);
        assert_eq!((pauses.held(0, 8), pauses.next_end(0)), (0, None));
    }
}
