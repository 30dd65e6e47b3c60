//! Counters and link state of a port, as its driver keeps them.
//!
//! Frames lost inside the device (`rx_missed`, `rx_no_mbuf`, errors) are counted nowhere else, and
//! belong to the account of conservation.

use crate::errno::Errno;

/// Counters of a port since it was started or reset. Bytes are as the driver counts them, usually
/// without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames the device dropped because a ring was full: the worker polled too seldom.
    pub rx_missed: u64,
    /// Frames received in error.
    pub rx_errors: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
    /// Number of times a receive queue found its pool empty.
    pub rx_no_mbuf: u64,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// True if the link is up.
    pub up: bool,
    /// Speed in Mb/s; `None` when it is not known. Software drivers invent one.
    pub speed_mbps: Option<u32>,
}

/// Reads the counters. `by_queue`: frames that a full ring dropped are among the queues' errors, and nowhere else.
pub(super) fn read(port: u16, by_queue: bool) -> Result<PortStats, Errno> {
    let mut stats: dpdk_sys::rte_eth_stats = Default::default();
    // SAFETY: an existing port; the structure is ours to write.
    Errno::check(unsafe { dpdk_sys::rte_eth_stats_get(port, &raw mut stats) })?;
    Ok(counted(&stats, by_queue))
}

fn counted(stats: &dpdk_sys::rte_eth_stats, by_queue: bool) -> PortStats {
    let of_queues = if by_queue {
        stats.q_errors.iter().sum()
    } else {
        0
    };
    PortStats {
        rx_packets: stats.ipackets,
        rx_bytes: stats.ibytes,
        tx_packets: stats.opackets,
        tx_bytes: stats.obytes,
        rx_missed: stats.imissed + of_queues,
        rx_errors: stats.ierrors,
        tx_errors: stats.oerrors,
        rx_no_mbuf: stats.rx_nombuf,
    }
}

pub(super) fn reset(port: u16) -> Result<(), Errno> {
    // SAFETY: an existing port.
    Errno::check(unsafe { dpdk_sys::rte_eth_stats_reset(port) })
}

pub(super) fn link(port: u16) -> Result<Link, Errno> {
    let (mut speed, mut up) = (0, false);
    // SAFETY: an existing port; both values are ours to write.
    Errno::check(unsafe { dpdk_sys::npcc_eth_link(port, &raw mut speed, &raw mut up) })?;
    Ok(Link {
        up,
        speed_mbps: known(speed),
    })
}

fn known(speed: u32) -> Option<u32> {
    let unknown = [
        dpdk_sys::RTE_ETH_SPEED_NUM_NONE,
        dpdk_sys::RTE_ETH_SPEED_NUM_UNKNOWN,
    ];
    (!unknown.contains(&speed)).then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ixgbe counts what a full queue drops as an error of the queue and nowhere else (ixgbe_ethdev.c, `ixgbe_dev_stats_get`).
    #[test]
    fn frames_that_a_full_queue_drops_are_missed() {
        let mut stats = dpdk_sys::rte_eth_stats {
            imissed: 5,
            ..Default::default()
        };
        (stats.q_errors[0], stats.q_errors[3]) = (2, 1);
        assert_eq!(counted(&stats, true).rx_missed, 8);
        assert_eq!(counted(&stats, false).rx_missed, 5);
    }

    #[test]
    fn an_unknown_speed_is_none() {
        assert_eq!(known(0), None);
        assert_eq!(known(u32::MAX), None);
        assert_eq!(known(100_000), Some(100_000));
    }
}
