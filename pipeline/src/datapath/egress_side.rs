//! A worker's egress side: the queues, stores and buffer to which frames are admitted and from which they leave.

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

/// Egress side of all ports, of which this worker owns some.
#[derive(Debug)]
pub(super) struct EgressSide<B> {
    /// Queues, scheduler and shapers of each port.
    pub(super) ports: PerPort<EgressPort>,
    /// Runs of each port that bypass their queues.
    pub(super) bypass: PerPort<Bypass<B>>,
    /// Charges of frames handed out and not yet taken by the device, by port, then by transmit queue.
    pub(super) in_flight: PerPort<PerPriority<InFlight>>,
    /// ECN configuration of each port.
    pub(super) ecn: PerPort<EcnConfig>,
    /// Set of the ports whose egress side this worker owns.
    pub(super) owned: u32,
    /// Cells of all queues.
    pub(super) store: FifoStore<B, Meta>,
    /// Pool of unused runs.
    pub(super) spare_runs: RunPool<B>,
    /// Shared buffer.
    pub(super) buffer: Buffer,
}

impl<B: FrameBuf> EgressSide<B> {
    /// Returns the empty egress side of `ports`.
    pub(super) fn new(ports: &[PortConfig], config: &BufferConfig, seed: u64) -> EgressSide<B> {
        let frames = usize::try_from(config.pool.frames).unwrap_or(usize::MAX >> 8);
        let egress = ports
            .iter()
            .zip(seed..)
            .map(|(port, seed)| EgressPort::new(&port.egress, seed));
        let accounts = ports.iter().map(|_| PerPriority::default());
        // Runs that can be in use at once: one in each port's bypass slot of each priority, as many that wait for room in
        // channels, and those of the burst in progress.
        let runs = 2 * ports.len() * PRIORITIES + BURST;
        EgressSide {
            ports: PerPort::new(egress, || EgressPort::new(&EgressConfig::nothing(), seed)),
            bypass: PerPort::new(ports.iter().map(|_| Bypass::default()), Bypass::default),
            in_flight: PerPort::new(accounts, || {
                PerPriority(std::array::from_fn(|_| InFlight::unused()))
            }),
            ecn: PerPort::new(ports.iter().map(|port| port.ecn), || EcnConfig::OFF),
            owned: u32::MAX,
            store: FifoStore::new(frames, ports.len() * PRIORITIES, Meta::NOTHING),
            spare_runs: RunPool::new(runs),
            buffer: Buffer::new(config),
        }
    }

    /// Returns true if this worker owns the egress side of `port`.
    #[inline]
    pub(super) const fn owns(&self, port: PortId) -> bool {
        self.owned & port.bit() != 0
    }

    /// Returns the ports and buffer to which frames are admitted. If `charged`, they came over from other workers, which have
    /// charged them.
    #[inline]
    pub(super) fn admission(&mut self, now: Nanos, charged: bool) -> Room<'_> {
        Room {
            ports: &mut self.ports,
            buffer: &mut self.buffer,
            now,
            owned: self.owned,
            charged,
        }
    }
}
