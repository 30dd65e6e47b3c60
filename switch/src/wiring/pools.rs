//! Packet memory: one pool, or one on each NUMA node that has ports, so that a NIC writes to memory of its own node.

use anyhow::Context;
use npcc_config::resolved::Device;
use npcc_config::{Config, Sizing};
use npcc_dpdk::{Eal, HEADROOM, Mempool, MempoolConfig};

/// Packet pools of a switch. Each holds the largest possible number of frames, as all of them may have come in on its node.
#[derive(Debug)]
pub struct Pools {
    first: Mempool,
    others: Vec<(Option<u32>, Mempool)>,
}

/// Returns the NUMA nodes of the configured devices, each once; a virtual device has none.
#[must_use]
pub fn nodes(config: &Config) -> Vec<u32> {
    let nodes = config.ports.iter().filter_map(|port| node(&port.device));
    let mut nodes: Vec<u32> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns the NUMA node that the kernel reports for a PCI device; `None` on a machine with one node.
fn node(device: &Device) -> Option<u32> {
    let Device::Pci { address, .. } = device else {
        return None;
    };
    let path = format!("/sys/bus/pci/devices/{address}/numa_node");
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Pools {
    /// Makes the pools.
    ///
    /// # Errors
    /// Fails if memory is short or a limit is too low.
    pub fn new(eal: &Eal, config: &Config, sizing: &Sizing) -> anyhow::Result<Pools> {
        let mut nodes = nodes(config).into_iter();
        let first = pool(eal, sizing, "frames".to_owned(), nodes.next())?;
        let others = nodes.map(|node| {
            let name = format!("frames-{node}");
            Ok((Some(node), pool(eal, sizing, name, Some(node))?))
        });
        Ok(Pools {
            first,
            others: others.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Returns true if there is a single pool, so that frames of two never meet in a transmit queue.
    #[must_use]
    pub fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    /// Returns the pool of a node, or the first if the node has none of its own.
    #[must_use]
    pub fn near(&self, socket: Option<u32>) -> &Mempool {
        let own = self.others.iter().find(|(node, _)| *node == socket);
        own.map_or(&self.first, |(_, pool)| pool)
    }
}

fn pool(eal: &Eal, sizing: &Sizing, name: String, socket: Option<u32>) -> anyhow::Result<Mempool> {
    let room = sizing.mbuf_data_room.saturating_sub(u64::from(HEADROOM));
    Ok(Mempool::new(
        eal,
        &MempoolConfig {
            name,
            mbufs: u32::try_from(sizing.mbufs)
                .context("buffer.pool needs more buffers than DPDK can count")?,
            cache: 256,
            frame_room: u16::try_from(room)
                .context("buffer.mbuf is larger than DPDK can describe")?,
            socket,
        },
    )?)
}
