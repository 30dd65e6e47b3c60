//! Card: rings that share one wire, and the pauses of the peer.

use crate::ring::{TxProfile, TxRing};

/// Time in picoseconds: a short frame at 400 Gb/s takes less than two nanoseconds.
pub type Picos = u64;

/// Card with one or more transmit rings and one wire.
#[derive(Debug)]
pub struct Card {
    rings: Vec<TxRing>,
    /// Bit/s of the wire.
    rate: u64,
    /// Time at which the wire has sent its last frame so far.
    free_at: Picos,
    /// Time up to which everything has been sent that could be.
    now: Picos,
    /// Queues that may not send, by bit: the link is down or paused, or the peer pauses the queue's class.
    held: u64,
    /// Ring whose turn it is.
    turn: usize,
}

impl Card {
    /// Creates a card with empty rings.
    #[must_use]
    pub fn new(profile: TxProfile, rings: u16, descriptors: u16, rate: u64) -> Card {
        Card {
            rings: (0..rings)
                .map(|_| TxRing::new(profile, descriptors))
                .collect(),
            rate,
            free_at: 0,
            now: 0,
            held: 0,
            turn: 0,
        }
    }

    /// Ring of a queue.
    ///
    /// # Panics
    /// There is no such queue.
    #[must_use]
    pub fn ring(&self, queue: u16) -> &TxRing {
        &self.rings[usize::from(queue)]
    }

    /// Holds the queues in `mask` from `now` on, and no others. A frame whose transmission has begun is sent to its end.
    pub fn hold(&mut self, mask: u64, now: Picos, sent: impl FnMut(u16, u64)) {
        self.advance(now, sent);
        self.held = mask;
        self.free_at = self.free_at.max(now);
    }

    /// Sends a burst of frames with these wire lengths on a queue; returns the number that the driver takes.
    pub fn burst(
        &mut self,
        queue: u16,
        lengths: impl ExactSizeIterator<Item = u32>,
        now: Picos,
    ) -> usize {
        self.advance(now, |_, _| {});
        let ring = &mut self.rings[usize::from(queue)];
        let taken = ring.begin_burst().min(lengths.len());
        for length in lengths.take(taken) {
            ring.give(length, now);
        }
        ring.end_burst();
        taken
    }

    /// Advances the wire to `now`; calls `sent` with queue and number of each frame that has left.
    pub fn advance(&mut self, now: Picos, mut sent: impl FnMut(u16, u64)) {
        self.now = self.now.max(now);
        while let Some((queue, length, given)) = self.next() {
            let begin = self.free_at.max(given);
            let end = begin + u64::from(length) * 8 * 1_000_000_000_000 / self.rate;
            if end > self.now {
                break;
            }
            self.free_at = end;
            self.turn = queue + 1;
            if let Some(number) = self.rings[queue].send() {
                sent(u16::try_from(queue).unwrap_or(0), number);
            }
        }
    }

    /// Queue that sends next, with length and time of its oldest frame: round robin over queues that are not held.
    fn next(&self) -> Option<(usize, u32, Picos)> {
        let rings = self.rings.len();
        let order = (0..rings).map(|n| (self.turn + n) % rings);
        let ready = order.filter(|queue| self.held & 1 << queue == 0);
        let mut heads = ready.filter_map(|queue| {
            let (length, given) = self.rings[queue].oldest()?;
            Some((queue, length, given))
        });
        let first = heads.next()?;
        // A frame that was given before the wire is free goes ahead of one that was given later.
        Some(heads.fold(first, |best, head| {
            if best.2 > self.free_at && head.2 < best.2 {
                head
            } else {
                best
            }
        }))
    }
}
