//! A worker's egress side: what frames are admitted to, wait in and leave from.

use super::PortConfig;
use crate::buffer::{Buffer, BufferConfig, InFlight};
use crate::burst::RunPool;
use crate::egress::bypass::Bypass;
use crate::egress::fifo::FifoStore;
use crate::egress::port::{EcnConfig, EgressConfig, EgressPort};
use crate::frame::{FrameBuf, Meta};
use crate::per::{PerPort, PerPriority};
use crate::stage::admit::Room;
use crate::units::{BURST, Nanos, PRIORITIES, PortId};

/// The egress side of all ports, of which some are this worker's.
#[derive(Debug)]
pub(super) struct EgressSide<B> {
    /// All ports.
    pub(super) ports: PerPort<EgressPort>,
    /// By port: runs that may not have to queue.
    pub(super) bypass: PerPort<Bypass<B>>,
    /// By port, then by transmit queue: what was handed out and not yet taken by the device.
    pub(super) in_flight: PerPort<PerPriority<InFlight>>,
    /// ECN settings by port.
    pub(super) ecn: PerPort<EcnConfig>,
    /// Those whose egress side is this worker's, as a set.
    pub(super) owned: u32,
    /// The cells of all queues.
    pub(super) store: FifoStore<B, Meta>,
    /// Runs not in use.
    pub(super) pool: RunPool<B>,
    /// The shared buffer.
    pub(super) buffer: Buffer,
}

impl<B: FrameBuf> EgressSide<B> {
    /// All of `ports`, empty.
    pub(super) fn new(ports: &[PortConfig], config: &BufferConfig, seed: u64) -> EgressSide<B> {
        let frames = usize::try_from(config.pool.frames).unwrap_or(usize::MAX >> 8);
        let egress = ports
            .iter()
            .zip(seed..)
            .map(|(port, seed)| EgressPort::new(&port.egress, seed));
        let lanes = ports.iter().map(|_| PerPriority::default());
        // Past the queues of all ports, as many again behind full channels, and a burst in hand.
        let runs = 2 * ports.len() * PRIORITIES + BURST;
        EgressSide {
            ports: PerPort::new(egress, || EgressPort::new(&EgressConfig::nothing(), seed)),
            bypass: PerPort::new(ports.iter().map(|_| Bypass::default()), Bypass::default),
            in_flight: PerPort::new(lanes, || {
                PerPriority(std::array::from_fn(|_| InFlight::unused()))
            }),
            ecn: PerPort::new(ports.iter().map(|port| port.ecn), || EcnConfig::OFF),
            owned: u32::MAX,
            store: FifoStore::new(frames, ports.len() * PRIORITIES, Meta::NOTHING),
            pool: RunPool::new(runs),
            buffer: Buffer::new(config),
        }
    }

    /// Whether `port`'s is this worker's.
    #[inline]
    pub(super) const fn owns(&self, port: PortId) -> bool {
        self.owned & port.bit() != 0
    }

    /// Where frames ask for room. `charged`: they came over from other workers, who have charged them.
    #[inline]
    pub(super) fn room(&mut self, now: Nanos, charged: bool) -> Room<'_> {
        Room {
            ports: &mut self.ports,
            buffer: &mut self.buffer,
            now,
            owned: self.owned,
            charged,
        }
    }
}
