//! Configuration of a port: queues, descriptors, MTU and promiscuous mode.
//!
//! Law: every frame of the MTU, with two VLAN tags, fits one buffer. No offload that changes a frame
//! is enabled: checksums, tags and marks are the pipeline's, and vdevs have none. Thresholds of the
//! rings are the driver's own (`default_rxconf` and `default_txconf`, which a null configuration
//! means). Nothing beyond the limits that the driver reports is requested of it.

use super::attach;
use super::error::{Operation, PortError};
use super::fast_free::FastFree;
use super::shared::PortCore;
use super::state::{Direction, Sending};
use crate::errno::Errno;
use crate::mempool::Mempool;

/// Number of descriptors of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptors {
    /// Exactly this number; a receive ring of another size is an error.
    Exactly(u16),
    /// The number that the device prefers, within these limits; the least where it has no preference,
    /// as with virtual devices.
    Preferred {
        /// Minimum number.
        least: u16,
        /// Maximum number: as many as the pool has buffers for.
        most: u16,
    },
}

impl Descriptors {
    /// Returns the number to request, where the device prefers `preferred` (0: any).
    fn wanted(self, preferred: u16) -> u16 {
        match self {
            Self::Exactly(count) => count,
            Self::Preferred { least, most } => preferred.min(most).max(least),
        }
    }
}

/// Configuration of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Number of receive queues. With more than one, frames are spread by IP addresses and UDP ports where
    /// the device supports it.
    pub rx_queues: u16,
    /// Number of transmit queues.
    pub tx_queues: u16,
    /// True to request eight traffic classes on transmission (DCB with priority flow control), one for each
    /// priority: drivers require it before [`Port::honor_pfc`](super::Port::honor_pfc).
    pub dcb: bool,
    /// Number of descriptors of each receive queue; a preferred number is adjusted to the device's limits.
    pub rx_descriptors: Descriptors,
    /// Number of descriptors of each transmit queue; adjusted to the device's limits.
    pub tx_descriptors: Descriptors,
    /// True if every frame the port will send is one buffer of the pool it is configured with. A
    /// device that supports it then returns sent buffers without reading them. Frames that break the promise
    /// are freed instead of sent ([`TxQueue::refused`](super::TxQueue::refused)).
    pub one_pool: bool,
    /// IP MTU in bytes.
    pub mtu: u16,
    /// True to receive frames for other MAC addresses too.
    pub promiscuous: bool,
    /// True to enable interrupts of the receive queues ([`RxQueue::interrupt`](super::RxQueue::interrupt)), where the device has any.
    pub interrupts: bool,
}

impl Default for PortConfig {
    /// Returns one queue each way, 1,024 descriptors, several pools, MTU 1,500, promiscuous.
    fn default() -> Self {
        Self {
            rx_queues: 1,
            tx_queues: 1,
            dcb: false,
            rx_descriptors: Descriptors::Exactly(1024),
            tx_descriptors: Descriptors::Exactly(1024),
            one_pool: false,
            mtu: 1500,
            promiscuous: true,
            interrupts: false,
        }
    }
}

/// Bytes of the Ethernet header and two VLAN tags; the FCS is not stored.
const L2_BYTES: u32 = 14 + 2 * 4;
/// Bytes that DPDK adds to the MTU where the driver reports nothing else.
const L2_AND_FCS: u32 = 14 + 4;

/// Applies the configuration to a port that is stopped; returns how its queues receive and send.
pub(super) fn apply(
    port: &PortCore,
    config: &PortConfig,
    pool: &Mempool,
) -> Result<Sending, PortError> {
    let info = attach::info(port.id).map_err(port.failed(Operation::ReadInfo))?;
    check(&port.name, config, &info, pool.frame_room())?;
    let conf = device_conf(&port.driver, config, &info);
    // SAFETY: an existing port that does not run (callers hold its lock); the structure lives
    // through the call.
    let rc = unsafe {
        dpdk_sys::rte_eth_dev_configure(
            port.id,
            config.rx_queues,
            config.tx_queues,
            &raw const conf,
        )
    };
    Errno::check(rc).map_err(port.failed(Operation::Configure))?;
    if !port.vdev {
        set_mtu(port, config.mtu, info.if_index)?;
    }
    let (rx_descriptors, descriptors) = set_up_queues(port, config, &info, pool)?;
    promiscuous(port, config.promiscuous)?;
    let fast_free = conf.txmode.offloads & dpdk_sys::NPCC_TX_FAST_FREE != 0;
    Ok(Sending {
        rx_descriptors,
        descriptors,
        fast_free: fast_free.then(|| FastFree::of(pool)),
    })
}

/// Sets the MTU of a PCI device: the configuration alone does not reach the card with mlx5 and ena. A virtual device is not asked, because
/// net_af_packet and net_tap would change the kernel's interface. `interface` is the index of the kernel's interface of the same card; 0
/// where there is none.
fn set_mtu(port: &PortCore, mtu: u16, interface: u32) -> Result<(), PortError> {
    // SAFETY: an existing port that is configured and does not run.
    let rc = unsafe { dpdk_sys::rte_eth_dev_set_mtu(port.id, mtu) };
    match Errno::check(rc) {
        Err(errno) if !errno.is_unsupported() => return Err(port.failed(Operation::SetMtu)(errno)),
        _ => {}
    }
    if interface == 0 {
        return Ok(());
    }
    // SAFETY: takes a number, and opens and closes its own socket.
    let found = unsafe { dpdk_sys::npcc_interface_mtu(interface) };
    check_interface(&port.name, mtu, (interface, found))
}

/// Compares the MTU of the kernel's interface `index` with the port's. A negative `found` is an interface that cannot be read, as one in
/// another network namespace: the driver's answer stands.
fn check_interface(device: &str, wanted: u16, (index, found): (u32, i32)) -> Result<(), PortError> {
    if found < 0 || found >= i32::from(wanted) {
        return Ok(());
    }
    Err(PortError::InterfaceMtu {
        device: device.to_owned(),
        index,
        found,
        wanted,
    })
}

/// Builds DPDK's configuration of the device as a whole.
fn device_conf(
    driver: &str,
    config: &PortConfig,
    info: &dpdk_sys::rte_eth_dev_info,
) -> dpdk_sys::rte_eth_conf {
    let mut conf = dpdk_sys::rte_eth_conf::default();
    conf.rxmode.mtu = device_mtu(driver, info.max_rx_pktlen, config.mtu);
    let spread = info.flow_type_rss_offloads & dpdk_sys::NPCC_RSS_IP_UDP;
    if config.rx_queues > 1 && spread != 0 {
        conf.rxmode.mq_mode = dpdk_sys::RTE_ETH_MQ_RX_RSS;
        // No hash key is set: the driver's own is used.
        conf.rx_adv_conf.rss_conf.rss_hf = spread;
    }
    conf.intr_conf.set_rxq(u32::from(config.interrupts));
    if config.dcb {
        conf.txmode.mq_mode = dpdk_sys::RTE_ETH_MQ_TX_DCB;
        conf.tx_adv_conf.dcb_tx_conf = dpdk_sys::rte_eth_dcb_tx_conf {
            nb_tcs: dpdk_sys::RTE_ETH_8_TCS,
            dcb_tc: [0, 1, 2, 3, 4, 5, 6, 7],
        };
        conf.dcb_capability_en = dpdk_sys::NPCC_DCB_PFC;
    }
    if config.one_pool {
        conf.txmode.offloads = info.tx_offload_capa & dpdk_sys::NPCC_TX_FAST_FREE;
    }
    conf
}

/// Sets up every queue of a configured port; returns the number of descriptors of each receive and each transmit queue.
fn set_up_queues(
    port: &PortCore,
    config: &PortConfig,
    info: &dpdk_sys::rte_eth_dev_info,
    pool: &Mempool,
) -> Result<(u16, u16), PortError> {
    let mut rx_descriptors = config
        .rx_descriptors
        .wanted(info.default_rxportconf.ring_size);
    let mut tx_descriptors = config
        .tx_descriptors
        .wanted(info.default_txportconf.ring_size);
    // SAFETY: an existing port; both numbers are ours to change.
    let rc = unsafe {
        dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(
            port.id,
            &raw mut rx_descriptors,
            &raw mut tx_descriptors,
        )
    };
    Errno::check(rc).map_err(port.failed(Operation::SizeQueues))?;
    check_ring(&port.name, config.rx_descriptors, rx_descriptors, info)?;

    let socket = port.socket.unwrap_or(u32::MAX);
    let rx_conf = rx_conf(&port.driver, config, info);
    let rx_conf = rx_conf
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    for queue in 0..config.rx_queues {
        // SAFETY: the port was configured with this many queues; a null configuration means the
        // driver's default, and another one lives through the call; the pool is kept alive by the
        // port's state until the port is closed.
        let rc = unsafe {
            dpdk_sys::rte_eth_rx_queue_setup(
                port.id,
                queue,
                rx_descriptors,
                socket,
                rx_conf,
                pool.as_ptr(),
            )
        };
        Errno::check(rc).map_err(port.failed(Operation::SetUpRx))?;
    }
    for queue in 0..config.tx_queues {
        // SAFETY: as for the receive queues.
        let rc = unsafe {
            dpdk_sys::rte_eth_tx_queue_setup(
                port.id,
                queue,
                tx_descriptors,
                socket,
                std::ptr::null(),
            )
        };
        Errno::check(rc).map_err(port.failed(Operation::SetUpTx))?;
    }
    Ok((rx_descriptors, tx_descriptors))
}

/// Returns the configuration of the receive queues; `None` for the driver's own. With ixgbe a full ring stops the rings of all other queues
/// behind it, unless its frames are dropped (`rx_drop_en`): a worker that is away would stop the whole port.
fn rx_conf(
    driver: &str,
    config: &PortConfig,
    info: &dpdk_sys::rte_eth_dev_info,
) -> Option<dpdk_sys::rte_eth_rxconf> {
    let shared = config.rx_queues > 1 && drops_by_queue(driver);
    shared.then_some(dpdk_sys::rte_eth_rxconf {
        rx_drop_en: 1,
        ..info.default_rxconf
    })
}

/// Returns true for a driver whose queues may drop frames of their own, which it does not count as missed.
pub(super) fn drops_by_queue(driver: &str) -> bool {
    driver == "net_ixgbe"
}

/// Checks that a receive ring for which a number was written has that size: `adjusted` is the nearest that the device can have.
fn check_ring(
    device: &str,
    wanted: Descriptors,
    adjusted: u16,
    info: &dpdk_sys::rte_eth_dev_info,
) -> Result<(), PortError> {
    let limits = &info.rx_desc_lim;
    match wanted {
        Descriptors::Exactly(wanted) if wanted != adjusted => Err(PortError::BadDescriptors {
            device: device.to_owned(),
            wanted,
            min: limits.nb_min,
            max: limits.nb_max,
            step: limits.nb_align,
            nearest: adjusted,
        }),
        _ => Ok(()),
    }
}

/// Sets promiscuous mode. Software ports receive every frame even if their driver has no such call.
fn promiscuous(port: &PortCore, on: bool) -> Result<(), PortError> {
    // SAFETY: an existing port.
    let rc = unsafe {
        if on {
            dpdk_sys::rte_eth_promiscuous_enable(port.id)
        } else {
            dpdk_sys::rte_eth_promiscuous_disable(port.id)
        }
    };
    match Errno::check(rc) {
        Err(errno) if port.vdev && errno.is_unsupported() => Ok(()),
        other => other.map_err(port.failed(Operation::SetPromiscuous)),
    }
}

/// Returns the MTU that the device is configured with.
///
/// `net_af_packet` claims that it takes no frame above 1,518 bytes, whatever its `framesz` holds; it ignores the value it is
/// given, so it is given the largest it accepts. Every other driver is given the true one.
fn device_mtu(driver: &str, max_frame: u32, mtu: u16) -> u32 {
    let mtu = u32::from(mtu);
    if driver == "net_af_packet" {
        mtu.min(max_frame.saturating_sub(L2_AND_FCS))
    } else {
        mtu
    }
}

/// Checks what can be checked before the driver is called.
fn check(
    device: &str,
    config: &PortConfig,
    info: &dpdk_sys::rte_eth_dev_info,
    room: u16,
) -> Result<(), PortError> {
    for (direction, wanted, max) in [
        (Direction::Rx, config.rx_queues, info.max_rx_queues),
        (Direction::Tx, config.tx_queues, info.max_tx_queues),
    ] {
        if wanted > max {
            return Err(PortError::TooManyQueues {
                device: device.to_owned(),
                direction,
                wanted,
                max,
            });
        }
    }
    let (min, max) = (info.min_mtu, info.max_mtu);
    if !(min..=max).contains(&config.mtu) {
        return Err(PortError::BadMtu {
            device: device.to_owned(),
            wanted: config.mtu,
            min,
            max,
        });
    }
    let needed = u32::from(config.mtu) + L2_BYTES;
    if needed > u32::from(room) {
        return Err(PortError::BufferTooSmall {
            device: device.to_owned(),
            mtu: config.mtu,
            needed,
            room,
        });
    }
    Ok(())
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
