//! Laws of every world, whatever happened in it.

use npcc_cnp::control::settings::Settings;
use npcc_cnp::log::Outcome;
use npcc_pipeline::counters::PortCounters;
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::{PortId, Priority};

use super::World;

/// Sum of a count over all ports of all workers.
fn sum(world: &World, count: impl Fn(&PortCounters) -> u64) -> u64 {
    let workers = world.workers.iter();
    workers
        .flat_map(|worker| {
            worker
                .path
                .counters()
                .ports()
                .map(&count)
                .collect::<Vec<_>>()
        })
        .sum()
}

impl World {
    /// Frames dropped for a reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        sum(self, |port| port.drops[reason.index()].get())
    }

    /// Frames dropped, for whatever reason.
    pub fn drops(&self) -> u64 {
        DropReason::ALL
            .iter()
            .map(|reason| self.dropped(*reason))
            .sum()
    }

    /// Frames of lossless priorities that had no room.
    pub fn lossless_lost(&self) -> u64 {
        sum(self, |port| port.lossless_lost.get())
    }

    /// Frames that the cards could not receive.
    pub fn missed(&self) -> u64 {
        self.cards.iter().map(|card| card.borrow().missed).sum()
    }

    /// Wire bytes that wait in a queue.
    pub fn depth(&self, port: u8, priority: u8) -> u64 {
        let depth = |worker: &npcc_engine::worker::Worker<(), super::devices::Memory>| {
            worker.path.depth(PortId(port), Priority::new(priority))
        };
        self.workers.iter().map(depth).sum()
    }

    /// Frames that the switch holds.
    pub fn held(&self) -> u64 {
        let held = self
            .workers
            .iter()
            .map(|worker| worker.path.counters().held.packets.get());
        held.fold(0, u64::wrapping_add)
    }

    /// Buffers in the rings of the cards.
    pub fn in_rings(&self) -> usize {
        let in_rings = |card: &super::Shared| {
            let mut card = card.borrow_mut();
            card.clean();
            card.waiting() + card.unsent()
        };
        self.cards.iter().map(in_rings).sum()
    }

    /// Ports whose peers are asked to pause a priority.
    pub fn pausing(&self) -> u64 {
        sum(self, |port| u64::from(port.flow.asserted.get() != 0))
    }

    /// Priorities that obey a pause, or a watchdog's.
    pub fn paused(&self) -> u64 {
        sum(self, |port| {
            u64::from(port.flow.paused.get() | port.flow.storm.get() != 0)
        })
    }

    /// Returns true if nothing is on its way, and nothing is paused.
    pub fn is_at_rest(&mut self) -> bool {
        let quiet = self
            .events
            .values()
            .all(|event| matches!(event, super::Event::Worker(_) | super::Event::Control));
        self.in_rings() == 0
            && quiet
            && self.held() == 0
            && self.pausing() == 0
            && self.paused() == 0
    }

    /// A line of what still moves.
    pub fn state(&self) -> String {
        let rings: Vec<_> = self
            .cards
            .iter()
            .map(|card| (card.borrow().waiting(), card.borrow().unsent()))
            .collect();
        format!(
            "{} frames held, rings (rx, tx) {rings:?}, {} ports pause their peers, {} are paused, {} events",
            self.held(),
            self.pausing(),
            self.paused(),
            self.events.len()
        )
    }
}

/// Every frame that came is sent, dropped for a declared reason, consumed or held; and every buffer is somewhere.
pub fn conservation(world: &mut World) {
    let came = sum(world, |port| {
        port.rx.packets.get() + port.originated.packets.get()
    });
    let left = sum(world, |port| {
        port.tx.packets.get() + port.consumed.packets.get() + port.punted.packets.get()
    });
    let held = world.held();
    assert_eq!(
        came,
        left + world.drops() + held,
        "frames received and originated = sent + consumed + dropped + held ({left} + {} + {held})\n{}",
        world.drops(),
        world.replay()
    );
    let rings = world.in_rings();
    let expected = world.spare + rings + usize::try_from(held).unwrap_or(usize::MAX);
    let in_use = world.pool.in_use();
    // A spare buffer may be missing while the pool is empty.
    assert!(
        (expected - world.spare..=expected).contains(&in_use),
        "{in_use} buffers are in use: {rings} in rings, {held} held, {} spare\n{}",
        world.spare,
        world.replay()
    );
}

/// No frame of a lossless priority was lost for want of room.
pub fn lossless(world: &World) {
    assert_eq!(
        world.lossless_lost(),
        0,
        "lossless frames lost\n{}",
        world.replay()
    );
    assert_eq!(
        world.missed(),
        0,
        "frames that a card had no room for\n{}",
        world.replay()
    );
}

/// No queue pair was sent two CNPs within the shortest interval, by the times of the decisions.
pub fn cnp_intervals(world: &mut World) {
    let least = Settings::default().cnp_interval.0;
    let status = world.control.core.status();
    let new = status.log.noted() - world.decided;
    world.decided += new;
    for entry in status.log.last(usize::try_from(new).unwrap_or(usize::MAX)) {
        if entry.outcome != Outcome::Sent {
            continue;
        }
        let place = (entry.flow.key.src(), entry.sender_qpn.get());
        let before = world.signalled.insert(place, entry.time.0);
        assert!(
            before.is_none_or(|before| entry.time.0 - before >= least),
            "CNPs to queue pair {:#x} of {} at {before:?} and {}\n{}",
            place.1,
            place.0,
            entry.time.0,
            world.replay()
        );
    }
}

/// All laws that hold in spite of faults.
pub fn always(world: &mut World) {
    conservation(world);
    cnp_intervals(world);
}

/// All laws of a world without faults.
pub fn all(world: &mut World) {
    always(world);
    lossless(world);
}
