//! Ethernet port: opened, configured, started; its queues handed out; stopped and closed when
//! the last user is gone.
//!
//! Law: a port lives as long as its `Port` or any of its queues; it is closed once, and never under
//! a queue. Control calls of one port are serialised by its lock, as DPDK requires; the packet path
//! takes no lock.
//!
//! ```text
//! open_by_device -> configure -> start -> rx_queue(i), tx_queue(i)
//!                        ^-- stop <-- (drop the queues) <--'
//! ```

mod attach;
mod cards;
mod chains;
mod config;
mod device;
mod error;
mod fast_free;
mod fast_path;
mod pfc;
mod rx;
mod shared;
mod state;
mod stats;
mod tx;

use std::sync::{Arc, Mutex};

pub use attach::Plugin;
pub use config::{Descriptors, PortConfig};
pub use device::{Device, DeviceError};
pub use error::{Operation, PortError};
pub use pfc::{LinkPause, PfcQueues};
pub use rx::RxQueue;
pub use state::{Direction, Phase};
pub use stats::{Link, PortStats};
pub use tx::TxQueue;

use self::attach::Attached;
use self::shared::PortCore;
pub(crate) use self::shared::Wire;
use self::state::State;
use crate::eal::Eal;
use crate::errno::Errno;
use crate::mempool::Mempool;
use crate::one_by_one::OneByOne;
use crate::removal;

/// Capability of a device to spread received frames over queues (RSS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Maximum number of receive queues.
    pub rx_queues: u16,
    /// True if it hashes IP addresses and UDP ports, which keeps a RoCEv2 flow in one queue.
    pub by_hash: bool,
}

/// MAC address in network byte order.
pub type MacAddr = [u8; 6];

/// Open port. Its queues are handed out by [`rx_queue`](Self::rx_queue) and
/// [`tx_queue`](Self::tx_queue).
#[derive(derive_more::Debug)]
#[debug("Port {{ id: {}, device: {:?}, driver: {:?}, .. }}", core.id, core.name, core.driver)]
pub struct Port {
    core: Arc<PortCore>,
    one_by_one: Option<OneByOne>,
}

impl Port {
    /// Opens a device by its name: a PCI address or a virtual device with its
    /// arguments, see [`Device`]. It is attached unless EAL has it already.
    ///
    /// # Errors
    /// When there is no such device, driver or file, when the driver refuses it, or when it is
    /// open already.
    pub fn open_by_device(eal: &Eal, device: &str) -> Result<Self, PortError> {
        let parsed: Device = device.parse().map_err(|reason| PortError::BadDevice {
            device: device.to_owned(),
            reason,
        })?;
        let found = attach::attach(&parsed)?;
        if !parsed.is_vdev() {
            removal::watch(parsed.name());
        }
        Self::adopt(eal, found, device, parsed.is_vdev(), Vec::new())
    }

    /// Opens a port that a driver made of rings.
    pub(crate) fn from_rings(eal: &Eal, device: &str, wires: Vec<Wire>) -> Result<Self, PortError> {
        let found = attach::find(device).ok_or_else(|| PortError::NotEthernet {
            device: device.to_owned(),
        })?;
        Self::adopt(eal, found, device, true, wires)
    }

    fn adopt(
        eal: &Eal,
        found: Attached,
        name: &str,
        vdev: bool,
        wires: Vec<Wire>,
    ) -> Result<Self, PortError> {
        if !eal.core().claim_port(found.port) {
            return Err(PortError::AlreadyOpen {
                device: name.to_owned(),
            });
        }
        // SAFETY: reads the table entry of an existing port; negative means any node.
        let socket = u32::try_from(unsafe { dpdk_sys::rte_eth_dev_socket_id(found.port) }).ok();
        Ok(Self {
            core: Arc::new(PortCore {
                id: found.port,
                name: name.to_owned(),
                driver: found.driver,
                vdev,
                socket,
                device: found.device,
                state: Mutex::new(State::new()),
                _wires: wires,
                eal: Arc::clone(eal.core()),
            }),
            one_by_one: None,
        })
    }

    /// Configures queues, descriptors, MTU and promiscuous mode. Receive queues fill their buffers from
    /// `pool`.
    ///
    /// # Errors
    /// When the port is started, or the device cannot do what is requested; it must then be configured
    /// anew before it can start.
    pub fn configure(&mut self, config: &PortConfig, pool: &Mempool) -> Result<(), PortError> {
        let mut state = self.core.lock();
        if state.phase == Phase::Started {
            return Err(self.core.wrong_phase(state.phase, Phase::Configured));
        }
        state.configuring(pool.clone());
        let sending = config::apply(&self.core, config, pool)?;
        state.configured(config.rx_queues, config.tx_queues, sending);
        Ok(())
    }

    /// Makes the kernel deliver the frames of a veth under this port one by one while the port is open, see [`OneByOne`]. Does nothing for
    /// other devices.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn receive_one_by_one(&mut self) -> Result<(), Errno> {
        let device = self.core.name.parse::<Device>().ok();
        let interface = device
            .as_ref()
            .and_then(|device| device.values("iface").next());
        if let Some(interface) = interface.filter(|_| self.core.driver == "net_af_packet") {
            self.one_by_one = OneByOne::at(interface)?;
        }
        Ok(())
    }

    /// Starts the port: frames are received and sent.
    ///
    /// # Errors
    /// When the port is not configured, or the driver fails.
    pub fn start(&mut self) -> Result<(), PortError> {
        let mut state = self.core.lock();
        if state.phase != Phase::Configured {
            return Err(self.core.wrong_phase(state.phase, Phase::Configured));
        }
        // SAFETY: an existing port whose queues are set up.
        let rc = unsafe { dpdk_sys::rte_eth_dev_start(self.core.id) };
        Errno::check(rc).map_err(self.core.failed(Operation::Start))?;
        state.phase = Phase::Started;
        Ok(())
    }

    /// Stops the port; the configuration stays.
    ///
    /// # Errors
    /// When it is not started, or while any of its queues is in use.
    pub fn stop(&mut self) -> Result<(), PortError> {
        let mut state = self.core.lock();
        if state.phase != Phase::Started {
            return Err(self.core.wrong_phase(state.phase, Phase::Started));
        }
        let (rx, tx) = state.out();
        if rx + tx > 0 {
            return Err(PortError::QueuesOut {
                device: self.core.name.clone(),
                rx,
                tx,
            });
        }
        // SAFETY: an existing, started port; no queue object is left that could poll it.
        let rc = unsafe { dpdk_sys::rte_eth_dev_stop(self.core.id) };
        Errno::check(rc).map_err(self.core.failed(Operation::Stop))?;
        state.phase = Phase::Configured;
        Ok(())
    }

    /// Takes receive queue `index`, from 0. Dropping it returns it to the port.
    ///
    /// # Errors
    /// When the port is not started, or the queue does not exist or is taken.
    pub fn rx_queue(&self, index: u16) -> Result<RxQueue, PortError> {
        self.core.take(Direction::Rx, index)?;
        let descriptors = self.core.lock().sending.rx_descriptors;
        Ok(RxQueue::new(Arc::clone(&self.core), index, descriptors))
    }

    /// Takes transmit queue `index`, from 0. Dropping it returns it to the port.
    ///
    /// # Errors
    /// When the port is not started, or the queue does not exist or is taken.
    pub fn tx_queue(&self, index: u16) -> Result<TxQueue, PortError> {
        self.core.take(Direction::Tx, index)?;
        let sending = self.core.lock().sending;
        Ok(TxQueue::new(Arc::clone(&self.core), index, sending))
    }

    /// Returns the device's MAC address.
    ///
    /// # Errors
    /// When the driver does not know it.
    pub fn mac(&self) -> Result<MacAddr, PortError> {
        let mut mac = dpdk_sys::rte_ether_addr::default();
        // SAFETY: an existing port; the address is ours to write.
        let rc = unsafe { dpdk_sys::rte_eth_macaddr_get(self.core.id, &raw mut mac) };
        Errno::check(rc).map_err(self.core.failed(Operation::ReadMac))?;
        Ok(mac.addr_bytes)
    }

    /// Sets the device's MAC address.
    ///
    /// # Errors
    /// When the driver refuses. Where it has no such operation ([`PortError::is_unsupported`]), as
    /// net_pcap and net_ring, a promiscuous port still receives for any address, and the caller can
    /// filter by its own.
    pub fn set_mac(&mut self, mac: MacAddr) -> Result<(), PortError> {
        let _state = self.core.lock();
        let mut mac = dpdk_sys::rte_ether_addr { addr_bytes: mac };
        // SAFETY: an existing port; the address is read during the call.
        let rc = unsafe { dpdk_sys::rte_eth_dev_default_mac_addr_set(self.core.id, &raw mut mac) };
        Errno::check(rc).map_err(self.core.failed(Operation::SetMac))
    }

    /// Returns the counters since the start, or since [`reset_stats`](Self::reset_stats). Takes hundreds of
    /// nanoseconds to milliseconds, depending on the driver.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn stats(&self) -> Result<PortStats, PortError> {
        let _state = self.core.lock();
        stats::read(self.core.id, config::drops_by_queue(&self.core.driver))
            .map_err(self.core.failed(Operation::ReadStats))
    }

    /// Zeroes the counters.
    ///
    /// # Errors
    /// When the driver cannot.
    pub fn reset_stats(&self) -> Result<(), PortError> {
        let _state = self.core.lock();
        stats::reset(self.core.id).map_err(self.core.failed(Operation::ClearStats))
    }

    /// Returns the link's state now, without waiting for it to settle.
    ///
    /// # Errors
    /// When the driver fails.
    pub fn link(&self) -> Result<Link, PortError> {
        let _state = self.core.lock();
        stats::link(self.core.id).map_err(self.core.failed(Operation::ReadLink))
    }

    /// Returns true if the system has asked to release the device: its card is being unplugged.
    #[must_use]
    pub fn is_wanted_back(&self) -> bool {
        let address = self.core.name.split(',').next().unwrap_or_default();
        !self.core.vdev
            && (removal::is_wanted(address) || removal::is_wanted(&format!("0000:{address}")))
    }

    /// Sets the link up or down (`rte_eth_dev_set_link_up`, `_down`), visibly for the peer.
    ///
    /// # Errors
    /// When the port is not started, or the driver refuses or has no such call.
    pub fn set_link(&self, up: bool) -> Result<(), PortError> {
        let state = self.core.lock();
        if state.phase != Phase::Started {
            return Err(self.core.wrong_phase(state.phase, Phase::Started));
        }
        // SAFETY: an existing, started port.
        let rc = unsafe {
            if up {
                dpdk_sys::rte_eth_dev_set_link_up(self.core.id)
            } else {
                dpdk_sys::rte_eth_dev_set_link_down(self.core.id)
            }
        };
        Errno::check(rc).map_err(self.core.failed(Operation::SetLink))
    }

    /// Returns the index of the kernel's interface of the same card, where the two share it (mlx5, mlx4); `None` for a card that DPDK has
    /// alone, and for a virtual device.
    #[must_use]
    pub fn interface(&self) -> Option<u32> {
        let info = attach::info(self.core.id).ok()?;
        (!self.core.vdev && info.if_index != 0).then_some(info.if_index)
    }

    /// Returns the index of the kernel's interface under the packet sockets of a virtual device (`net_af_packet`, `net_af_xdp`), whose driver
    /// reports a link whatever that interface does.
    #[must_use]
    pub fn interface_under(&self) -> Option<u32> {
        let info = attach::info(self.core.id).ok()?;
        let by_sockets = matches!(self.core.driver.as_str(), "net_af_packet" | "net_af_xdp");
        (by_sockets && info.if_index != 0).then_some(info.if_index)
    }

    /// Returns whether the device can spread flows by hash, and over how many receive queues.
    ///
    /// # Errors
    /// When the driver does not report it.
    pub fn spread(&self) -> Result<Spread, PortError> {
        let info = attach::info(self.core.id).map_err(self.core.failed(Operation::ReadInfo))?;
        Ok(Spread {
            rx_queues: info.max_rx_queues,
            by_hash: info.flow_type_rss_offloads & dpdk_sys::NPCC_RSS_IP_UDP != 0,
        })
    }

    /// Returns EAL's number of the port, which [`Mbuf::port`](crate::Mbuf::port) carries.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.core.id
    }

    /// Returns the device as it was named.
    #[must_use]
    pub fn device(&self) -> &str {
        &self.core.name
    }

    /// Returns the name of the driver, for example `net_pcap`.
    #[must_use]
    pub fn driver_name(&self) -> &str {
        &self.core.driver
    }

    /// Returns true for a virtual device, whose reported speed means nothing.
    #[must_use]
    pub fn is_vdev(&self) -> bool {
        self.core.vdev
    }

    /// Returns the NUMA node of the device; `None` when any is as good.
    #[must_use]
    pub fn socket(&self) -> Option<u32> {
        self.core.socket
    }

    /// Returns the port's phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.core.lock().phase
    }
}
