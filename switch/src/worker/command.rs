//! Orders to a worker, over a ring it looks at once a turn: what only the owner of the queues may do.

use std::sync::Mutex;

use npcc_pipeline::classify::Classifier;
use npcc_pipeline::egress::port::{EcnMode, QueueConfig};
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::units::{PortId, Priority};
use rtrb::{Consumer, Producer, RingBuffer};

/// Orders on the way at a time: an operator's pace.
const RING: usize = 64;

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Start the user watermarks anew.
    ClearWatermarks,
    /// Serve a queue otherwise.
    Discipline {
        /// Its port.
        port: PortId,
        /// The queue.
        priority: Priority,
        /// How.
        discipline: Discipline,
    },
    /// Give a queue other settings; whether it is lossless stays.
    Queue {
        /// Its port.
        port: PortId,
        /// The queue.
        priority: Priority,
        /// Its settings.
        config: QueueConfig,
    },
    /// Classify what comes in otherwise.
    Classifier {
        /// The port.
        port: PortId,
        /// Its maps.
        classifier: Classifier,
    },
    /// Mark otherwise.
    Ecn {
        /// The port.
        port: PortId,
        /// When.
        mode: EcnMode,
    },
}

/// The management thread's end. Locked by nobody on the packet path.
#[derive(Debug)]
pub struct Orders(Mutex<Producer<Command>>);

impl Orders {
    /// Gives an order; `false` when the ring is full, as when the worker stands still.
    pub fn give(&self, command: Command) -> bool {
        let ring = self.0.lock();
        ring.is_ok_and(|mut ring| ring.push(command).is_ok())
    }
}

/// Both ends.
#[must_use]
pub fn ring() -> (Orders, Consumer<Command>) {
    let (give, take) = RingBuffer::new(RING);
    (Orders(Mutex::new(give)), take)
}
