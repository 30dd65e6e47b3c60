//! Configuration and start of one port's device.

use npcc_config::cards::Card;
use npcc_config::model::Idle;
use npcc_config::sizing::{RING, ring};
use npcc_config::{Config, resolved};
use npcc_dpdk::{
    Descriptors, Eal, Errno, Mempool, PacketSockets, Port, PortConfig, PortError, Spread,
};
use npcc_pipeline::units::{Mac, PRIORITIES};

use super::backend::{self, Answer, PfcRequest};
use super::device_pause;
use super::pools::Pools;

/// Started port, before its link state is known.
pub(super) struct StartedPort {
    pub(super) port: Port,
    /// Configuration with one transmit queue.
    pub(super) plain: PortConfig,
    pub(super) started: Started,
    /// Packet sockets of the process before the port was opened; `None` if workers do not sleep.
    pub(super) sockets: Option<PacketSockets>,
    pub(super) large_frames: Option<Errno>,
    /// Row of its card.
    pub(super) card: &'static Card,
    /// The driver's reason for which pause of the whole link (802.3x) could not be disabled.
    pub(super) link_pause_error: Option<String>,
}

/// Opens and starts one port, configured by its device's abilities and the resolved.
pub(super) fn start_one(
    eal: &Eal,
    config: &Config,
    resolved: &resolved::Port,
    pools: &Pools,
) -> Result<StartedPort, PortError> {
    let sleeps = config.cores.idle == Idle::Adaptive;
    let sockets = sleeps.then(PacketSockets::now);
    let mut port = Port::open_by_device(eal, &resolved.device.to_string())?;
    let large_frames = port.receive_one_by_one().err();
    let pool = pools.near(port.socket());
    let classes = resolved.qos.lossless_mask();
    let plain = PortConfig {
        one_pool: pools.is_one(),
        ..planned(config, resolved, &port)?
    };
    let card = backend::card(port.driver_name(), &backend::sysfs(&resolved.device));
    let requested = backend::asks(request(config, resolved), card) && classes != 0;
    let started = start(
        &mut port,
        resolved,
        &plain,
        pool,
        requested.then_some(classes),
    )?;
    // Link pause (802.3x) would stop every class. The device's resulting setting is shown.
    let link_pause = match started.by_priority {
        None => port.no_link_pause(),
        Some(_) => Ok(()),
    };
    let link_pause = link_pause.err().filter(|error| !error.is_unsupported());
    Ok(StartedPort {
        card,
        link_pause_error: link_pause.map(|error| error.to_string()),
        port,
        plain,
        started,
        sockets,
        large_frames,
    })
}

/// Returns what the configuration wants of a port's pause frames.
pub(super) const fn request(config: &Config, resolved: &resolved::Port) -> PfcRequest {
    PfcRequest {
        backend: config.pfc.backend,
        port: resolved.pfc,
    }
}

/// Returns the configuration of a port with one transmit queue, from what its device reports.
fn planned(
    config: &Config,
    resolved: &resolved::Port,
    port: &Port,
) -> Result<PortConfig, PortError> {
    let sleeps = config.cores.idle == Idle::Adaptive;
    let workers = u16::try_from(config.cores.workers.len()).unwrap_or(1);
    let ring = ring(config, resolved);
    let rx_descriptors = match resolved.rx_descriptors {
        Some(written) => Descriptors::Exactly(written),
        None => Descriptors::Preferred {
            least: ring.max(RING),
            most: ring.max(RING),
        },
    };
    let tx_descriptors = Descriptors::Preferred {
        least: RING,
        most: ring.max(RING),
    };
    Ok(PortConfig {
        mtu: resolved.mtu,
        rx_descriptors,
        tx_descriptors,
        rx_queues: rx_queues(port.spread()?, port.is_vdev(), workers),
        interrupts: sleeps && (!port.is_vdev() || port.driver_name() == TAP),
        ..PortConfig::default()
    })
}

/// Result of starting a port.
pub(super) struct Started {
    /// Answer of the device to the request to obey pause.
    pub(super) answer: Answer,
    /// Transmit queue of each priority; `None` with one queue for all.
    pub(super) by_priority: Option<[u16; PRIORITIES]>,
    pub(super) mac: Mac,
}

/// Starts a port with a transmit queue per priority if its device obeys pause of the classes in `requested`, else with one queue.
fn start(
    port: &mut Port,
    resolved: &resolved::Port,
    plain: &PortConfig,
    pool: &Mempool,
    requested: Option<u8>,
) -> Result<Started, PortError> {
    port.configure(plain, pool)?;
    let answer = match requested {
        None => Answer::NotRequested,
        Some(classes) => match device_pause::start(port, plain, pool, classes)? {
            Err(why) => Answer::Refused(why),
            Ok(queues) => {
                return Ok(Started {
                    answer: Answer::Obeys,
                    by_priority: Some(queues),
                    mac: address(port, resolved)?,
                });
            }
        },
    };
    let mac = address(port, resolved)?;
    port.start()?;
    Ok(Started {
        answer,
        by_priority: None,
        mac,
    })
}

/// Driver name of the one virtual device whose driver offers its descriptors as DPDK's receive interrupts.
const TAP: &str = "net_tap";

fn address(port: &mut Port, config: &resolved::Port) -> Result<Mac, PortError> {
    let Some(mac) = config.mac else {
        return port.mac().map(Mac);
    };
    // A virtual device may refuse an address; the pipeline compares with ours all the same.
    match port.set_mac(mac.0) {
        Err(error) if !error.is_unsupported() => Err(error),
        _ => Ok(mac),
    }
}

/// Returns the number of receive queues of a port: one for each worker if a NIC spreads flows by their addresses and UDP ports (RoCEv2's
/// source port distinguishes queue pairs), and as many as a virtual device was given. Else one, its owner's.
fn rx_queues(spread: Spread, vdev: bool, workers: u16) -> u16 {
    if vdev {
        // net_af_packet's qpairs, net_af_xdp's queue_count, several captures of net_pcap. A larger number is what the driver could have,
        // not what it has.
        if (2..=workers).contains(&spread.rx_queues) {
            spread.rx_queues
        } else {
            1
        }
    } else if spread.by_hash {
        spread.rx_queues.min(workers).max(1)
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_a_queue_a_worker_only_where_it_spreads_flows() {
        let spread = |rx_queues, by_hash| Spread { rx_queues, by_hash };
        assert_eq!(rx_queues(spread(64, true), false, 3), 3, "a NIC with RSS");
        assert_eq!(rx_queues(spread(2, true), false, 3), 2);
        assert_eq!(rx_queues(spread(64, false), false, 3), 1, "a NIC without");
        assert_eq!(
            rx_queues(spread(2, false), true, 2),
            2,
            "net_af_packet with qpairs=2"
        );
        assert_eq!(
            rx_queues(spread(1024, true), true, 2),
            1,
            "net_null can have any number"
        );
        assert_eq!(rx_queues(spread(64, true), false, 1), 1);
    }
}
