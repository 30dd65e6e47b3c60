//! Opening of the configured ports, and detection of their pause support.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use npcc_config::model::Idle;
use npcc_config::sizing::{Link, RING, ring};
use npcc_config::{Config, plan};
use npcc_dpdk::{
    Descriptors, Eal, Errno, LinkPause, Mempool, PacketSockets, Port, PortConfig, PortError,
    RxInterrupt, RxQueue, Spread,
};
use npcc_pipeline::units::{BitRate, Mac, PRIORITIES};

use super::backend::{self, Ability, Answer, BackendChoice, PfcRequest, SelfTest};
use super::pools::Pools;
use super::self_test;
use super::speeds::{self, Speeds};
use crate::worker::transmit::{Eight, Lane, Transmit};

/// Reason why a port could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its device failed.
    #[error("port {name}")]
    Device {
        /// Name of the port.
        name: String,
        /// Error of the device.
        #[source]
        source: PortError,
    },
    /// The device cannot obey pause, which `pfc.backend: hardware` requires.
    #[error(
        "port {name}: pfc.backend is hardware, and the device does not honour pause: {why}; write backend: auto or software, or \
         pfc: off on this port"
    )]
    Pfc {
        /// Name of the port.
        name: String,
        /// Reason, for the operator.
        why: String,
    },
    /// A priority is to be lossless, and the device neither sends nor obeys pause.
    #[error(
        "port {name}: a priority is lossless, but pause does not work on this port: {why}; write pfc: off on the port, or \
         pfc.backend: none, if losses may be"
    )]
    Lossless {
        /// Name of the port.
        name: String,
        /// Reason, for the operator.
        why: String,
    },
}

/// Running port.
#[derive(Debug)]
pub struct OpenPort {
    /// Device, for statistics.
    pub port: Arc<Port>,
    /// First receive queue, which its owner polls.
    pub rx: RxQueue,
    /// Receive queues of the workers after its owner, in turn, where the device spreads what it receives.
    pub more_rx: Vec<RxQueue>,
    /// Transmit side.
    pub tx: Transmit,
    /// MAC address.
    pub mac: Mac,
    /// True if the link is up.
    pub up: bool,
    /// Speeds of link and shaper.
    pub speeds: Speeds,
    /// Number of workers that receive from it.
    pub receivers: u64,
    /// Back end of its pause frames, and the reason.
    pub pause: BackendChoice,
    /// Result of the self-test at start.
    pub self_test: SelfTest,
    /// Most wire bytes in its transmit ring; `None` if the driver does not report what it holds.
    pub outstanding: Option<u64>,
    /// True if its driver reports the fill of the receive ring.
    pub tells_fill: bool,
    /// 802.3x pause of the whole link, as the device has it; `None` if its driver does not report it.
    pub link_pause: Option<LinkPause>,
    /// Error for which the kernel may hand over frames larger than the MTU, on a port over a veth.
    pub large_frames: Option<Errno>,
    /// Receive interrupts of its queues; empty if its device has none, or workers do not sleep.
    pub interrupts: Vec<Arc<RxInterrupt>>,
}

/// Opens, configures and starts all ports, in the order of the configuration, and waits for their links, at most `dpdk.link_wait` and until
/// `stop`. Ports whose links stay down are opened all the same; after a second `waits` is called once with their names.
///
/// # Errors
/// Fails with the first port that cannot be opened, and says how to fix it.
pub fn open(
    eal: &Eal,
    config: &Config,
    pools: &Pools,
    (stop, waits): (&AtomicBool, impl FnMut(&[&str])),
) -> Result<Vec<OpenPort>, OpenError> {
    let start = |port| start_one(eal, config, port, pools);
    let started: Vec<StartedPort> = config.ports.iter().map(start).collect::<Result<_, _>>()?;
    wait_for_links(config, &started, stop, waits);
    let finish = |(plan, port)| finish_one(config, plan, port, pools);
    config.ports.iter().zip(started).map(finish).collect()
}

/// Interval at which links are polled while the start waits.
const LOOK: Duration = Duration::from_millis(10);

fn wait_for_links(
    config: &Config,
    ports: &[StartedPort],
    stop: &AtomicBool,
    mut waits: impl FnMut(&[&str]),
) {
    let begin = Instant::now();
    let most = Duration::from_nanos(config.dpdk.link_wait.0);
    let mut reported = false;
    loop {
        let ports = config.ports.iter().zip(ports);
        let down = ports.filter(|(_, started)| !started.port.link().is_ok_and(|link| link.up));
        let down: Vec<&str> = down.map(|(plan, _)| plan.name.as_str()).collect();
        if down.is_empty() || stop.load(Ordering::Relaxed) || begin.elapsed() >= most {
            return;
        }
        if !reported && begin.elapsed() >= Duration::from_secs(1) {
            reported = true;
            waits(&down);
        }
        std::thread::sleep(LOOK);
    }
}

/// Started port, before its link state is known.
struct StartedPort {
    port: Port,
    plain: PortConfig,
    started: Started,
    sockets: Option<PacketSockets>,
    large_frames: Option<Errno>,
}

/// Opens and starts one port, configured by its device's abilities and the plan.
fn start_one(
    eal: &Eal,
    config: &Config,
    plan: &plan::Port,
    pools: &Pools,
) -> Result<StartedPort, OpenError> {
    let device = |source| OpenError::Device {
        name: plan.name.clone(),
        source,
    };
    let sleeps = config.cores.idle == Idle::Adaptive;
    let sockets = sleeps.then(PacketSockets::now);
    let mut port = Port::open_by_device(eal, &plan.device.to_string()).map_err(device)?;
    let large_frames = port.receive_one_by_one().err();
    let pool = pools.near(port.socket());
    let classes = plan.qos.lossless_mask();
    let plain = PortConfig {
        one_pool: pools.is_one(),
        ..planned(config, plan, &port).map_err(device)?
    };
    let requested = backend::asks(request(config, plan), port.driver_name()) && classes != 0;
    let started =
        start(&mut port, plan, &plain, pool, requested.then_some(classes)).map_err(device)?;
    if started.by_priority.is_none() {
        // Link pause (802.3x) would stop every class. The device's resulting setting is shown.
        let _ = port.no_link_pause();
    }
    Ok(StartedPort {
        port,
        plain,
        started,
        sockets,
        large_frames,
    })
}

const fn request(config: &Config, plan: &plan::Port) -> PfcRequest {
    PfcRequest {
        backend: config.pfc.backend,
        port: plan.pfc,
    }
}

/// Completes a started port: speeds, self-test, pause back end, queues.
fn finish_one(
    config: &Config,
    plan: &plan::Port,
    started: StartedPort,
    pools: &Pools,
) -> Result<OpenPort, OpenError> {
    let StartedPort {
        port,
        plain,
        started,
        sockets,
        large_frames,
    } = started;
    let device = |source| OpenError::Device {
        name: plan.name.clone(),
        source,
    };
    let pool = pools.near(port.socket());
    let classes = plan.qos.lossless_mask();
    let Started {
        answer,
        by_priority,
        mac,
    } = started;
    let link = port.link().map_err(device)?;
    let speeds = speeds::of(plan, link.speed_mbps.filter(|_| link.up));
    let self_test = if backend::tests(request(config, plan), port.driver_name()) && classes != 0 {
        self_test::run(&port, pool, mac, classes).map_err(device)?
    } else {
        SelfTest::NotRun
    };
    let ability = Ability {
        driver: port.driver_name().to_owned(),
        answer,
        self_test,
    };
    let failed = |why| OpenError::Pfc {
        name: plan.name.clone(),
        why,
    };
    let pause = backend::decide(request(config, plan), &ability).map_err(failed)?;
    backend::admits(request(config, plan), &pause, classes, port.is_vdev()).map_err(|why| {
        OpenError::Lossless {
            name: plan.name.clone(),
            why,
        }
    })?;
    let bound = Link::of(plan, speeds.link, config.buffer.loop_time, 1).outstanding();
    let ring = (bound, speeds.link);
    let (tx, bounded) = transmit(&port, by_priority, classes, ring).map_err(device)?;
    let rx = port.rx_queue(0).map_err(device)?;
    // Traffic classes leave no room for a hash: then there is one queue.
    let more_rx: Vec<RxQueue> = (1..plain.rx_queues)
        .map_while(|queue| port.rx_queue(queue).ok())
        .collect();
    let mut interrupts = sockets.map_or_else(Vec::new, |before| before.opened_since());
    if plain.interrupts {
        let queues = std::iter::once(&rx).chain(&more_rx);
        interrupts.extend(queues.filter_map(RxQueue::interrupt));
    }
    Ok(OpenPort {
        large_frames,
        interrupts: interrupts.into_iter().map(Arc::new).collect(),
        tells_fill: rx.holds_more_than(0).is_some(),
        link_pause: port.link_pause().ok(),
        receivers: 1 + u64::try_from(more_rx.len()).unwrap_or(0),
        rx,
        more_rx,
        tx,
        mac,
        up: link.up,
        speeds,
        pause,
        self_test,
        outstanding: bounded.then_some(bound),
        port: Arc::new(port),
    })
}

/// Returns the configuration of a port with one transmit queue, from what its device reports.
fn planned(config: &Config, plan: &plan::Port, port: &Port) -> Result<PortConfig, PortError> {
    let sleeps = config.cores.idle == Idle::Adaptive;
    let workers = u16::try_from(config.cores.workers.len()).unwrap_or(1);
    let ring = ring(config, plan);
    let rx_descriptors = match plan.rx_descriptors {
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
        mtu: plan.mtu,
        rx_descriptors,
        tx_descriptors,
        rx_queues: rx_queues(port.spread()?, port.is_vdev(), workers),
        interrupts: sleeps && (!port.is_vdev() || port.driver_name() == TAP),
        ..PortConfig::default()
    })
}

/// Result of starting a port.
struct Started {
    /// Answer of the device to the request to obey pause.
    answer: Answer,
    /// Transmit queue of each priority; `None` with one queue for all.
    by_priority: Option<[u16; PRIORITIES]>,
    mac: Mac,
}

/// Starts a port with a transmit queue per priority if its device obeys pause of the classes in `requested`, else with one queue.
fn start(
    port: &mut Port,
    plan: &plan::Port,
    plain: &PortConfig,
    pool: &Mempool,
    requested: Option<u8>,
) -> Result<Started, PortError> {
    let answer = match requested.map(|classes| by_priority(port, plain, pool, classes)) {
        Some(Ok(queues)) => {
            return Ok(Started {
                answer: Answer::Obeys,
                by_priority: Some(queues),
                mac: address(port, plan)?,
            });
        }
        Some(Err(why)) => Answer::Refused(why),
        None => Answer::NotRequested,
    };
    stopped(port)?;
    port.configure(plain, pool)?;
    let mac = address(port, plan)?;
    port.start()?;
    Ok(Started {
        answer,
        by_priority: None,
        mac,
    })
}

/// Returns a port's transmit side, and true if its driver reports what the ring holds. `bound` is the limit in wire bytes, with the speed
/// of the link.
fn transmit(
    port: &Port,
    by_priority: Option<[u16; PRIORITIES]>,
    paused: u8,
    bound: (u64, BitRate),
) -> Result<(Transmit, bool), PortError> {
    let lane = |queue| port.tx_queue(queue).map(|tx| Lane::new(tx, bound));
    let Some(queues) = by_priority else {
        let lane = lane(0)?;
        let bounded = lane.is_bounded();
        return Ok((Transmit::One(lane), bounded));
    };
    let lanes: Result<ArrayVec<Lane, PRIORITIES>, _> = queues.into_iter().map(lane).collect();
    let eight = Eight::new(lanes?, paused);
    Ok((Transmit::Eight(Box::new(eight)), true))
}

/// Driver name of the one virtual device whose driver offers its descriptors as DPDK's receive interrupts.
const TAP: &str = "net_tap";

/// Descriptors of each of eight transmit rings: together as many as the one ring of other ports has.
const EACH: u16 = 128;

/// Configures and starts a port that obeys pause of `classes` by itself; returns the transmit queue of each priority.
///
/// # Errors
/// Says why the device does not obey, for the operator. The port may be left in any phase.
fn by_priority(
    port: &mut Port,
    plain: &PortConfig,
    pool: &Mempool,
    classes: u8,
) -> Result<[u16; PRIORITIES], String> {
    let said = |error: PortError| error.to_string();
    let lossless = || (0u8..8).filter(|priority| classes & 1 << priority != 0);
    if port.is_vdev() {
        // Asked without queues for it, only to get the driver's own error message.
        port.configure(plain, pool).map_err(said)?;
        port.pfc_queues()
            .map(|_| ())
            .or_else(|_| lossless().try_for_each(|priority| port.honor_pfc(priority)))
            .map_err(said)?;
        return Err("a virtual device has no MAC that could hold a queue".to_owned());
    }
    let eight = PortConfig {
        tx_queues: 8,
        tx_descriptors: Descriptors::Exactly(EACH),
        ..*plain
    };
    port.configure(&eight, pool).map_err(said)?;
    let queues = match port.pfc_queues() {
        Ok(able) if able.obeys && able.classes >= 8 => {
            for priority in lossless() {
                port.honor_pfc_on_queue(priority, u16::from(priority))
                    .map_err(said)?;
            }
            port.start().map_err(said)?;
            [0, 1, 2, 3, 4, 5, 6, 7]
        }
        _ => {
            port.configure(
                &PortConfig {
                    dcb: true,
                    rx_queues: 1,
                    ..eight
                },
                pool,
            )
            .map_err(said)?;
            port.start().map_err(said)?;
            for priority in lossless() {
                port.honor_pfc(priority).map_err(said)?;
            }
            port.class_queues().map_err(said)?
        }
    };
    let apart = (0u16..).zip(&queues).all(|(n, queue)| {
        *queue < 8
            && !queues
                .iter()
                .skip(usize::from(n) + 1)
                .any(|other| other == queue)
    });
    if !apart {
        return Err(format!(
            "its traffic classes have the transmit queues {queues:?}, not one each"
        ));
    }
    let tells = port.tx_queue(0).map_err(said)?.holds_at_least(1).is_some();
    if !tells {
        return Err("its driver does not tell what its transmit rings hold".to_owned());
    }
    Ok(queues)
}

fn stopped(port: &mut Port) -> Result<(), PortError> {
    if port.phase() == npcc_dpdk::Phase::Started {
        port.stop()?;
    }
    Ok(())
}

fn address(port: &mut Port, config: &plan::Port) -> Result<Mac, PortError> {
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
