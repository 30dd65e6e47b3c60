//! Priority flow control by the device (IEEE 802.1Qbb): its MAC honours the peer's pauses, with one transmit queue for each priority.
//!
//! Law: an operation that the driver lacks returns a [`PortError`] that [`is_unsupported`](PortError::is_unsupported), and the port
//! is unchanged. DPDK has two calls. The older one sets a priority of the port and requires DCB classes; the newer one (22.03,
//! experimental) sets a traffic class of one transmit queue. Sending pause is left to the caller: a device sends it when its
//! own FIFO fills, which is long after a buffer in memory requires it, and too late for long cables.

use super::Port;
use super::error::{Operation, PortError};
use super::shared::PortCore;
use super::state::Phase;
use crate::errno::Errno;

/// Number of 802.1Q priorities.
const PRIORITIES: usize = 8;

/// Capability of a device for pause by queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcQueues {
    /// Number of traffic classes that it distinguishes, 1 to 8.
    pub classes: u8,
    /// True if it honours the peer's pauses.
    pub obeys: bool,
    /// True if it sends pause to the peer.
    pub sends: bool,
}

impl Port {
    /// Reads the device's capability for pause by queue (`rte_eth_dev_priority_flow_ctrl_queue_info_get`).
    ///
    /// # Errors
    /// When the port is not configured, or the driver has no such call, as is the case for most.
    pub fn pfc_queues(&self) -> Result<PfcQueues, PortError> {
        let state = self.core.lock();
        configured(&self.core, state.phase)?;
        let mut info = dpdk_sys::rte_eth_pfc_queue_info::default();
        // SAFETY: an existing, configured port; the structure is ours to write.
        let rc = unsafe {
            dpdk_sys::rte_eth_dev_priority_flow_ctrl_queue_info_get(self.core.id, &raw mut info)
        };
        Errno::check(rc).map_err(self.core.failed(Operation::ReadPfc))?;
        let full = info.mode_capa == dpdk_sys::RTE_ETH_FC_FULL;
        Ok(PfcQueues {
            classes: info.tc_max,
            obeys: full || info.mode_capa == dpdk_sys::RTE_ETH_FC_RX_PAUSE,
            sends: full || info.mode_capa == dpdk_sys::RTE_ETH_FC_TX_PAUSE,
        })
    }

    /// Makes the device hold transmit queue `queue` while the peer pauses `priority`
    /// (`rte_eth_dev_priority_flow_ctrl_queue_configure`).
    ///
    /// # Errors
    /// When the port is not configured, or the driver refuses or has no such call.
    pub fn honor_pfc_on_queue(&mut self, priority: u8, queue: u16) -> Result<(), PortError> {
        let state = self.core.lock();
        configured(&self.core, state.phase)?;
        let mut conf = dpdk_sys::rte_eth_pfc_queue_conf {
            mode: dpdk_sys::RTE_ETH_FC_RX_PAUSE,
            ..Default::default()
        };
        conf.rx_pause.tx_qid = queue;
        conf.rx_pause.tc = priority;
        // SAFETY: an existing, configured port; the structure lives through the call.
        let rc = unsafe {
            dpdk_sys::rte_eth_dev_priority_flow_ctrl_queue_configure(self.core.id, &raw mut conf)
        };
        Errno::check(rc).map_err(self.core.failed(Operation::SetPfc))
    }

    /// Makes the device hold the traffic class of `priority` while the peer pauses it, or no longer
    /// (`rte_eth_dev_priority_flow_ctrl_set`). MAC control frames must be passed to receive queues all the same, where
    /// the driver supports it: the watchdog and the counters need them.
    ///
    /// # Errors
    /// When the port is not configured, or the driver refuses or has no such call.
    pub fn honor_pfc(&mut self, priority: u8, on: bool) -> Result<(), PortError> {
        let state = self.core.lock();
        configured(&self.core, state.phase)?;
        let mut conf = dpdk_sys::rte_eth_pfc_conf {
            priority,
            ..Default::default()
        };
        // The driver's own watermarks, where it reports them: they matter to pause it sends, and some always check them.
        // SAFETY: an existing port; the structure is ours to write.
        let rc = unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_get(self.core.id, &raw mut conf.fc) };
        if Errno::check(rc).is_err() {
            conf.fc = dpdk_sys::rte_eth_fc_conf::default();
        }
        conf.fc.mode = if on {
            dpdk_sys::RTE_ETH_FC_RX_PAUSE
        } else {
            dpdk_sys::RTE_ETH_FC_NONE
        };
        let fc = conf.fc;
        let set = |form: &dpdk_sys::rte_eth_fc_conf| {
            conf.fc = *form;
            // SAFETY: an existing, configured port; the structure lives through the call.
            Errno::check(unsafe {
                dpdk_sys::rte_eth_dev_priority_flow_ctrl_set(self.core.id, &raw mut conf)
            })
        };
        in_either_form(fc, dpdk_sys::rte_eth_fc_conf { autoneg: 0, ..fc }, set)
            .map_err(self.core.failed(Operation::SetPfc))
    }

    /// Disables 802.3x pause of the whole link in both directions (`rte_eth_dev_flow_ctrl_set`): it would stop every priority. MAC
    /// control frames must be passed to receive queues, where the driver supports it.
    ///
    /// # Errors
    /// When the port is not configured, or the driver refuses or has no such call.
    pub fn no_link_pause(&mut self) -> Result<(), PortError> {
        let state = self.core.lock();
        configured(&self.core, state.phase)?;
        let mut conf = dpdk_sys::rte_eth_fc_conf::default();
        // The driver's own watermarks: some check them whatever the mode.
        // SAFETY: an existing, configured port; the structure is ours to write.
        let rc = unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_get(self.core.id, &raw mut conf) };
        Errno::check(rc).map_err(self.core.failed(Operation::ReadPfc))?;
        conf.mode = dpdk_sys::RTE_ETH_FC_NONE;
        let set = |conf: &dpdk_sys::rte_eth_fc_conf| {
            let mut conf = *conf;
            // SAFETY: an existing, configured port; the structure lives through the call.
            Errno::check(unsafe {
                dpdk_sys::rte_eth_dev_flow_ctrl_set(self.core.id, &raw mut conf)
            })
        };
        in_either_form(conf, conf, set).map_err(self.core.failed(Operation::SetLinkPause))
    }

    /// Returns the directions in which 802.3x pause of the whole link is enabled (`rte_eth_dev_flow_ctrl_get`).
    ///
    /// # Errors
    /// When the port is not configured, or the driver does not report it.
    pub fn link_pause(&self) -> Result<LinkPause, PortError> {
        let state = self.core.lock();
        configured(&self.core, state.phase)?;
        let mut conf = dpdk_sys::rte_eth_fc_conf::default();
        // SAFETY: an existing, configured port; the structure is ours to write.
        let rc = unsafe { dpdk_sys::rte_eth_dev_flow_ctrl_get(self.core.id, &raw mut conf) };
        Errno::check(rc).map_err(self.core.failed(Operation::ReadPfc))?;
        Ok(match conf.mode {
            dpdk_sys::RTE_ETH_FC_NONE => LinkPause::Off,
            dpdk_sys::RTE_ETH_FC_RX_PAUSE => LinkPause::Obeyed,
            dpdk_sys::RTE_ETH_FC_TX_PAUSE => LinkPause::Sent,
            _ => LinkPause::Both,
        })
    }

    /// Returns the first transmit queue of each priority's traffic class (`rte_eth_dev_get_dcb_info`), lowest priority first.
    ///
    /// # Errors
    /// When the port is not configured, or not with DCB, or the driver does not report it.
    pub fn class_queues(&self) -> Result<[u16; PRIORITIES], PortError> {
        let state = self.core.lock();
        configured(&self.core, state.phase)?;
        let mut info = dpdk_sys::rte_eth_dcb_info::default();
        // SAFETY: an existing, configured port; the structure is ours to write.
        let rc = unsafe { dpdk_sys::rte_eth_dev_get_dcb_info(self.core.id, &raw mut info) };
        Errno::check(rc).map_err(self.core.failed(Operation::ReadClasses))?;
        Ok(info.prio_tc.map(|class| {
            let pool = info.tc_queue.tc_txq.first();
            let queues = pool.and_then(|pool| pool.get(usize::from(class)));
            queues.map_or(0, |queues| queues.base)
        }))
    }
}

/// Directions of 802.3x pause of a whole link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPause {
    /// Pause is neither sent nor honoured.
    Off,
    /// The device honours the peer's pauses.
    Obeyed,
    /// The device sends pause to the peer.
    Sent,
    /// The device sends and honours pause.
    Both,
}

/// Longest pause time, in quanta: a driver may refuse 0, although it sends no pause.
const LONGEST_PAUSE: u16 = u16::MAX;

/// Sets flow control with MAC control frames passed on, the first form; if the driver calls that invalid, in the `second`, bare one: hns3 has
/// no such bit and no watermarks, and its pause time must not be 0.
fn in_either_form(
    first: dpdk_sys::rte_eth_fc_conf,
    second: dpdk_sys::rte_eth_fc_conf,
    mut set: impl FnMut(&dpdk_sys::rte_eth_fc_conf) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let refused = set(&dpdk_sys::rte_eth_fc_conf {
        mac_ctrl_frame_fwd: 1,
        ..first
    });
    match refused {
        Err(errno) if errno.raw() == dpdk_sys::EINVAL => set(&dpdk_sys::rte_eth_fc_conf {
            mac_ctrl_frame_fwd: 0,
            high_water: 0,
            low_water: 0,
            send_xon: 0,
            pause_time: match second.pause_time {
                0 => LONGEST_PAUSE,
                time => time,
            },
            ..second
        }),
        other => other,
    }
}

/// Requires a configured port, as drivers use the state that `configure` left.
fn configured(core: &PortCore, phase: Phase) -> Result<(), PortError> {
    if phase == Phase::Open {
        return Err(core.wrong_phase(phase, Phase::Configured));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Conf = dpdk_sys::rte_eth_fc_conf;

    /// Checks of hns3 (hns3_ethdev.c, `hns3_flow_ctrl_set`); `pfc`: those of `hns3_priority_flow_ctrl_set`.
    fn hns3(conf: &Conf, autoneg: u8, pfc: bool) -> Result<(), Errno> {
        let zero = [conf.high_water, conf.low_water];
        let bare = zero == [0, 0] && conf.send_xon == 0 && conf.mac_ctrl_frame_fwd == 0;
        if !bare || conf.pause_time == 0 || (pfc && conf.autoneg != 0) {
            return Err(Errno::new(-dpdk_sys::EINVAL));
        }
        if !pfc && conf.autoneg != autoneg {
            return Err(Errno::new(-dpdk_sys::ENOTSUP));
        }
        Ok(())
    }

    /// Earlier defect: hns3 refused every call, and 802.3x pause stayed on without a word.
    #[test]
    fn a_driver_that_forwards_no_control_frames_is_set_in_its_own_form() {
        for (autoneg, pause_time) in [(0, 0), (1, 0), (1, 0x200)] {
            let read = Conf {
                autoneg,
                pause_time,
                high_water: 80,
                low_water: 40,
                ..Conf::default()
            };
            let mut calls = 0;
            let link = in_either_form(read, read, |conf| {
                calls += 1;
                hns3(conf, autoneg, false)
            });
            assert_eq!((link, calls), (Ok(()), 2));
            let forced = Conf { autoneg: 0, ..read };
            let mut set = None;
            let pfc = in_either_form(read, forced, |conf| {
                set = Some(*conf);
                hns3(conf, autoneg, true)
            });
            assert_eq!(pfc, Ok(()));
            let expected = if pause_time == 0 {
                LONGEST_PAUSE
            } else {
                pause_time
            };
            assert_eq!(set.map(|conf| conf.pause_time), Some(expected));
        }
    }

    #[test]
    fn other_drivers_are_called_once() {
        let read = Conf {
            high_water: 80,
            ..Conf::default()
        };
        for answer in [0, -dpdk_sys::ENOTSUP, -dpdk_sys::ENOSYS, -dpdk_sys::EAGAIN] {
            let mut calls = Vec::new();
            let result = in_either_form(read, read, |conf| {
                calls.push((conf.mac_ctrl_frame_fwd, conf.high_water));
                Errno::check(answer)
            });
            assert_eq!(result, Errno::check(answer));
            assert_eq!(calls, [(1, 80)]);
        }
    }
}
