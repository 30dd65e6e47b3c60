//! Who owns which port, and the rings between all workers.

use std::sync::Arc;

use super::road::{Inward, Outward, road};
use crate::buffer::Board;
use crate::units::{PortId, WorkerId};

/// Frames on the way from one worker to another at a time, and as many more in trains: as many as a receive ring of 1,024
/// holds.
pub const CROSSING_RING: usize = 1024;

/// The plan of a switch's workers.
#[derive(Debug, Clone)]
pub struct Seating {
    /// Number of workers.
    pub workers: u8,
    /// By port: the worker that owns its egress side and its pause.
    pub owners: Vec<WorkerId>,
    /// By port: from how many workers' receive queues its frames come.
    pub receivers: Vec<u8>,
    /// Room of each way in frames, and in frames of trains.
    pub ring: usize,
}

impl Seating {
    /// One worker that owns all of `ports` ports.
    #[must_use]
    pub fn alone(ports: usize) -> Seating {
        Seating {
            workers: 1,
            owners: vec![WorkerId::FIRST; ports],
            receivers: vec![1; ports],
            ring: CROSSING_RING,
        }
    }
}

/// One worker's place: what it owns, and its ends of the rings.
#[derive(Debug)]
pub struct Seat<B> {
    pub(crate) me: WorkerId,
    pub(crate) board: Arc<Board>,
    pub(crate) seating: Arc<Seating>,
    /// By worker; none to itself.
    pub(super) out: Vec<Option<Outward<B>>>,
    /// From every other worker.
    pub(super) inward: Vec<Inward<B>>,
}

impl<B> Seat<B> {
    /// Whose it is.
    #[must_use]
    pub const fn worker(&self) -> WorkerId {
        self.me
    }

    /// The set of ports this worker owns.
    #[must_use]
    pub fn owned(&self) -> u32 {
        let owners = self.seating.owners.iter().zip(0u8..);
        let mine = owners.filter(|(owner, _)| **owner == self.me);
        mine.fold(0, |set, (_, port)| set | PortId(port).bit())
    }
}

/// The seats of all workers, in their order.
#[must_use]
pub fn seats<B>(seating: Seating) -> Vec<Seat<B>> {
    let workers = usize::from(seating.workers.max(1));
    let board = Arc::new(Board::new(workers, seating.owners.len()));
    let seating = Arc::new(seating);
    let mut seats: Vec<Seat<B>> = (0..seating.workers.max(1))
        .map(|me| Seat {
            me: WorkerId(me),
            board: Arc::clone(&board),
            seating: Arc::clone(&seating),
            out: Vec::new(),
            inward: Vec::new(),
        })
        .collect();
    for from in 0..workers {
        for to in 0..workers {
            let (give, take) = (from != to).then(|| road(seating.ring)).unzip();
            if let Some(seat) = seats.get_mut(from) {
                seat.out.push(give);
            }
            if let Some(seat) = seats.get_mut(to) {
                seat.inward.extend(take);
            }
        }
    }
    seats
}
