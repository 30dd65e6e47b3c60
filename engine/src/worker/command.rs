//! Commands to the workers, over rings polled once a turn: changes that only the owner of the queues may make.
//!
//! Law: a command is given to every worker or to none, and each carries it out in its next turn. So workers that receive from the same port, or
//! send frames to the same queue, treat them differently for about a turn at most.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use npcc_pipeline::buffer::BufferConfig;
use npcc_pipeline::capture::CaptureOrder;
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::egress::port::{EcnConfig, EgressQueueConfig};
use npcc_pipeline::punt::PuntPort;
use npcc_pipeline::units::{BitRate, PortId, Priority};
use rtrb::{Consumer, Producer, RingBuffer};

/// Capacity of a worker's ring: more than the largest change has, which is twelve commands for each of 32 ports (eight queues, classifier, ECN,
/// administrative state, link).
const RING: usize = 512;
/// Longest wait for a worker whose ring is full.
const PATIENCE: Duration = Duration::from_secs(1);

/// Command to the workers.
#[derive(Debug, Clone)]
pub enum WorkerCommand {
    /// Restart the user watermarks.
    ClearWatermarks,
    /// Change the settings of a queue; it stays lossless or lossy.
    Queue {
        /// Port of the queue.
        port: PortId,
        /// Priority of the queue.
        priority: Priority,
        /// New settings.
        config: EgressQueueConfig,
    },
    /// Change the maps that classify received frames.
    Classifier {
        /// Port that receives.
        port: PortId,
        /// New maps.
        classifier: Classifier,
    },
    /// Change the ECN settings of a port.
    Ecn {
        /// Port to change.
        port: PortId,
        /// New settings.
        ecn: EcnConfig,
    },
    /// Change the addresses that Linux has on a port.
    PuntPort {
        /// Port to change.
        port: PortId,
        /// New interfaces.
        interfaces: Box<PuntPort>,
    },
    /// Capture frames by this order from now on; `None` ends the capture.
    Capture(Option<Box<CaptureOrder>>),
    /// Drop what a port receives, as it is administratively down, or accept it again.
    PortAdmin {
        /// Port that receives.
        port: PortId,
        /// True if it is administratively up.
        up: bool,
    },
    /// Report that a port's link is down.
    LinkDown {
        /// Port of the link.
        port: PortId,
    },
    /// Accept frames of a port whose link is up, with the settings of its present speed: sent when the link comes up, and when a speed changes.
    ConfigurePort {
        /// Port to change.
        port: PortId,
        /// Settings that follow from the speeds of its link and shaper.
        settings: Box<PortSettings>,
    },
}

/// Settings that follow from the speeds of a port's link and shaper.
#[derive(Debug, Clone)]
pub struct PortSettings {
    /// The port's shaper, queues and marking.
    pub port: PortConfig,
    /// Speed of the link, from which quanta are computed.
    pub link: BitRate,
    /// Most wire bytes in the device's transmit ring.
    pub outstanding: u64,
    /// The buffer, with headroom for all links as they are now.
    pub buffer: BufferConfig,
}

/// Error: a worker took no commands for a second, so it is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a worker does not listen")]
pub struct Unresponsive;

/// Producers of all workers' command rings. The packet path never takes the lock.
#[derive(Debug)]
pub struct WorkerCommands(Mutex<Vec<Producer<WorkerCommand>>>);

impl WorkerCommands {
    /// Wraps the rings to the workers.
    #[must_use]
    pub const fn new(rings: Vec<Producer<WorkerCommand>>) -> WorkerCommands {
        WorkerCommands(Mutex::new(rings))
    }

    /// Gives commands to every worker, once all of them have room; a second is long enough for one that runs.
    ///
    /// # Errors
    /// Fails with [`Unresponsive`]: no worker was given anything.
    pub fn enqueue(&self, commands: &[WorkerCommand]) -> Result<(), Unresponsive> {
        self.enqueue_within(commands, PATIENCE)
    }

    fn enqueue_within(
        &self,
        commands: &[WorkerCommand],
        patience: Duration,
    ) -> Result<(), Unresponsive> {
        let mut rings = self.0.lock().map_err(|_| Unresponsive)?;
        let deadline = Instant::now() + patience;
        while !rings.iter().all(|ring| ring.slots() >= commands.len()) {
            if Instant::now() >= deadline {
                return Err(Unresponsive);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for ring in &mut *rings {
            for command in commands {
                // This is the only producer: the room is still there.
                ring.push(command.clone()).map_err(|_| Unresponsive)?;
            }
        }
        Ok(())
    }
}

/// Makes one worker's ring.
#[must_use]
pub fn ring() -> (Producer<WorkerCommand>, Consumer<WorkerCommand>) {
    RingBuffer::new(RING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(port: u8) -> WorkerCommand {
        WorkerCommand::LinkDown { port: PortId(port) }
    }

    #[test]
    fn a_command_reaches_every_worker_or_none() {
        for stuck in 0..3 {
            let (rings, mut workers): (Vec<_>, Vec<_>) = (0..3).map(|_| ring()).unzip();
            let commands = WorkerCommands::new(rings);
            let now = Duration::ZERO;
            let all = |count: u8| (0..count).map(down).collect::<Vec<_>>();
            // One worker is stuck; the others take their commands at once.
            let mut idle = workers.remove(stuck);
            for _ in 0..RING / 128 {
                assert_eq!(commands.enqueue_within(&all(128), now), Ok(()));
                for worker in &mut workers {
                    assert_eq!(std::iter::from_fn(|| worker.pop().ok()).count(), 128);
                }
            }
            assert_eq!(commands.enqueue_within(&all(1), now), Err(Unresponsive));
            assert!(workers.iter().all(Consumer::is_empty), "worker {stuck}");
            // The worker resumes: no command is lost, and the next is given at once.
            assert_eq!(std::iter::from_fn(|| idle.pop().ok()).count(), RING);
            assert_eq!(commands.enqueue_within(&[down(7)], now), Ok(()));
            workers.push(idle);
            assert!(workers.iter_mut().all(|worker| matches!(
                worker.pop(),
                Ok(WorkerCommand::LinkDown { port: PortId(7) })
            )));
        }
    }
}
