//! Phase of a port, and its queues in use.
//!
//! Law: a queue has at most one user, and only while the port runs; the port does not stop
//! while any is in use.

use super::fast_free::FastFree;
use crate::mempool::Mempool;

/// Side of a port: receive or transmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
pub enum Direction {
    /// Receive side.
    #[display("rx")]
    Rx,
    /// Transmit side.
    #[display("tx")]
    Tx,
}

/// Phase of a port's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, derive_more::Display)]
pub enum Phase {
    /// Opened, not configured.
    #[display("open")]
    Open,
    /// Queues and MTU are configured, but no frames are received or sent.
    #[display("configured")]
    Configured,
    /// Frames are received and sent.
    #[display("started")]
    Started,
}

/// Properties of the queues, as configured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sending {
    /// Number of descriptors of each receive ring, as the driver has them.
    pub(super) rx_descriptors: u16,
    /// Number of descriptors of each transmit ring, as the driver has them.
    pub(super) descriptors: u16,
    /// Filter of frames to send, where the driver returns buffers unread.
    pub(super) fast_free: Option<FastFree>,
}

/// Reason why a queue cannot be handed out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    Phase(Phase),
    NoSuch(u16),
    Taken,
}

/// Mutable part of a port, under its lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Pools that receive queues may refill themselves from; the last is the one in use.
    pools: Vec<Mempool>,
    /// Properties of the queues.
    pub(super) sending: Sending,
    rx: Vec<bool>,
    tx: Vec<bool>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Open,
            pools: Vec::new(),
            sending: Sending::default(),
            rx: Vec::new(),
            tx: Vec::new(),
        }
    }

    /// Records a pool before the driver is given it. Until the driver has set up every queue anew it may use
    /// this pool and those before.
    pub(super) fn configuring(&mut self, pool: Mempool) {
        self.phase = Phase::Open;
        self.pools.push(pool);
    }

    /// Records the configuration after the driver has set up every queue.
    pub(super) fn configured(&mut self, rx: u16, tx: u16, sending: Sending) {
        self.sending = sending;
        self.phase = Phase::Configured;
        let old = self.pools.len().saturating_sub(1);
        self.pools.drain(..old);
        self.rx = vec![false; usize::from(rx)];
        self.tx = vec![false; usize::from(tx)];
    }

    fn side(&mut self, direction: Direction) -> &mut Vec<bool> {
        match direction {
            Direction::Rx => &mut self.rx,
            Direction::Tx => &mut self.tx,
        }
    }

    pub(super) fn take(&mut self, direction: Direction, index: u16) -> Result<(), Rejection> {
        if self.phase != Phase::Started {
            return Err(Rejection::Phase(self.phase));
        }
        let side = self.side(direction);
        let count = u16::try_from(side.len()).unwrap_or(u16::MAX);
        match side.get_mut(usize::from(index)) {
            None => Err(Rejection::NoSuch(count)),
            Some(true) => Err(Rejection::Taken),
            Some(taken) => {
                *taken = true;
                Ok(())
            }
        }
    }

    pub(super) fn give_back(&mut self, direction: Direction, index: u16) {
        if let Some(taken) = self.side(direction).get_mut(usize::from(index)) {
            *taken = false;
        }
    }

    /// Number of queues in use: receive, transmit.
    pub(super) fn out(&self) -> (usize, usize) {
        let count = |side: &[bool]| side.iter().filter(|&&taken| taken).count();
        (count(&self.rx), count(&self.tx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(rx: usize, tx: usize) -> State {
        State {
            phase: Phase::Started,
            pools: Vec::new(),
            sending: Sending::default(),
            rx: vec![false; rx],
            tx: vec![false; tx],
        }
    }

    #[test]
    fn a_queue_is_out_once_and_comes_back() {
        let mut state = started(1, 2);
        assert_eq!(state.take(Direction::Tx, 1), Ok(()));
        assert_eq!(state.take(Direction::Tx, 1), Err(Rejection::Taken));
        assert_eq!(state.take(Direction::Rx, 1), Err(Rejection::NoSuch(1)));
        assert_eq!(state.out(), (0, 1));
        state.give_back(Direction::Tx, 1);
        assert_eq!(state.take(Direction::Tx, 1), Ok(()));
    }

    #[test]
    fn no_queue_is_out_of_a_port_that_is_not_started() {
        let mut state = started(1, 1);
        state.phase = Phase::Configured;
        assert_eq!(
            state.take(Direction::Rx, 0),
            Err(Rejection::Phase(Phase::Configured))
        );
    }
}
