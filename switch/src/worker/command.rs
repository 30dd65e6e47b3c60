//! Orders to the workers, over rings they look at once a turn: what only the owner of the queues may do.
//!
//! Law: an order is given to every worker or to none, so no two workers ever serve the same queue differently for longer than a turn.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use npcc_pipeline::buffer::BufferConfig;
use npcc_pipeline::capture::CaptureOrder;
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::egress::port::{EcnConfig, QueueConfig};
use npcc_pipeline::punt::PuntPort;
use npcc_pipeline::units::{BitRate, PortId, Priority};
use rtrb::{Consumer, Producer, RingBuffer};

/// Orders on the way to a worker at a time: all that one reload can come to, ten for each of 32 ports.
const RING: usize = 512;
/// How long a worker whose ring is full is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// An order.
#[derive(Debug, Clone)]
pub enum Command {
    /// Start the user watermarks anew.
    ClearWatermarks,
    /// Give a queue other settings; whether it is lossless stays.
    Queue {
        /// Its port.
        port: PortId,
        /// The queue.
        priority: Priority,
        /// Its settings.
        config: QueueConfig,
    },
    /// Classify what comes in by other maps.
    Classifier {
        /// The port.
        port: PortId,
        /// Its maps.
        classifier: Classifier,
    },
    /// Change the ECN settings of a port.
    Ecn {
        /// The port.
        port: PortId,
        /// Its settings.
        ecn: EcnConfig,
    },
    /// Linux has other addresses on a port.
    PuntPort {
        /// The port.
        port: PortId,
        /// Its interfaces.
        interfaces: Box<PuntPort>,
    },
    /// Capture frames by this order from now on, or none.
    Capture(Option<Box<CaptureOrder>>),
    /// A port's link is down.
    LinkDown {
        /// The port.
        port: PortId,
    },
    /// A port's link is up.
    LinkUp {
        /// The port.
        port: PortId,
        /// What follows from its speed.
        settings: Box<LinkSettings>,
    },
}

/// What follows from the speed of a port's link.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// The port's shaper, queues and marking.
    pub port: PortConfig,
    /// Speed of the link, by which quanta are reckoned.
    pub link: BitRate,
    /// Wire bytes the device's transmit ring may hold.
    pub outstanding: u64,
    /// The buffer, with headroom for all links as they are now.
    pub buffer: BufferConfig,
}

/// A worker took no orders for a second: it stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a worker does not listen")]
pub struct Deaf;

/// The management thread's ends of all workers' rings. Locked by nobody on the packet path.
#[derive(Debug)]
pub struct WorkerOrders(Mutex<Vec<Producer<Command>>>);

impl WorkerOrders {
    /// Orders for the workers at the other ends.
    #[must_use]
    pub const fn new(rings: Vec<Producer<Command>>) -> WorkerOrders {
        WorkerOrders(Mutex::new(rings))
    }

    /// Gives orders to every worker, once all of them have room; a second is long enough for one that runs.
    ///
    /// # Errors
    /// [`Deaf`]: no worker was given anything.
    pub fn give(&self, commands: &[Command]) -> Result<(), Deaf> {
        self.give_within(commands, PATIENCE)
    }

    fn give_within(&self, commands: &[Command], patience: Duration) -> Result<(), Deaf> {
        let mut rings = self.0.lock().map_err(|_| Deaf)?;
        let deadline = Instant::now() + patience;
        while !rings.iter().all(|ring| ring.slots() >= commands.len()) {
            if Instant::now() >= deadline {
                return Err(Deaf);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for ring in &mut *rings {
            for command in commands {
                // Nobody else puts anything in: the room is still there.
                ring.push(command.clone()).map_err(|_| Deaf)?;
            }
        }
        Ok(())
    }
}

/// Both ends of one worker's ring.
#[must_use]
pub fn ring() -> (Producer<Command>, Consumer<Command>) {
    RingBuffer::new(RING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(port: u8) -> Command {
        Command::LinkDown { port: PortId(port) }
    }

    #[test]
    fn an_order_reaches_every_worker_or_none() {
        let (rings, mut workers): (Vec<_>, Vec<_>) = (0..3).map(|_| ring()).unzip();
        let orders = WorkerOrders::new(rings);
        let now = Duration::ZERO;
        let all = |count: u8| (0..count).map(down).collect::<Vec<_>>();
        // The first worker stands still; the others obey at once.
        for _ in 0..RING / 128 {
            assert_eq!(orders.give_within(&all(128), now), Ok(()));
            for worker in &mut workers[1..] {
                assert_eq!(std::iter::from_fn(|| worker.pop().ok()).count(), 128);
            }
        }
        assert_eq!(orders.give_within(&all(1), now), Err(Deaf));
        assert!(workers[1..].iter().all(|worker| worker.is_empty()));
        // It wakes up: nothing is lost, and nothing waits.
        assert_eq!(std::iter::from_fn(|| workers[0].pop().ok()).count(), RING);
        assert_eq!(orders.give_within(&[down(7)], now), Ok(()));
        assert!(
            workers
                .iter_mut()
                .all(|worker| matches!(worker.pop(), Ok(Command::LinkDown { port: PortId(7) })))
        );
    }
}
