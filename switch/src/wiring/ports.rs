//! Opening of the configured ports: the wait for their links, the choice of their pause back end, and their queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arrayvec::ArrayVec;
use npcc_config::cards::Card;
use npcc_config::sizing::Link;
use npcc_config::{Config, resolved};
use npcc_dpdk::{Eal, Errno, LinkPause, Port, PortError, RxInterrupt, RxQueue};
use npcc_linux::netlink::interface::{Interface, State};
use npcc_pipeline::units::{BitRate, Mac, PRIORITIES};

use super::backend::{self, Ability, BackendChoice, SelfTest};
use super::pools::Pools;
use super::port_start::{Started, StartedPort, request, start_one};
use super::self_test;
use super::speeds::{self, Speeds};
use npcc_engine::worker::transmit::{PerPriorityQueues, Transmit, TransmitQueue};

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
    /// The kernel's interface under its packet sockets cannot be followed.
    #[error("port {name}: the kernel's interface under it cannot be followed")]
    Interface {
        /// Name of the port.
        name: String,
        /// The kernel's reason.
        #[source]
        source: std::io::Error,
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
    #[error("{}", npcc_config::cards::without_pause(name, why))]
    Lossless {
        /// Name of the port.
        name: String,
        /// Reason, for the operator.
        why: String,
    },
}

impl OpenError {
    fn device(resolved: &resolved::Port, source: PortError) -> OpenError {
        OpenError::Device {
            name: resolved.name.clone(),
            source,
        }
    }
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
    /// Kernel's interface under its packet sockets; `None` for a device whose driver reports the link.
    pub interface: Option<Interface>,
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
    /// Most wire bytes in its transmit ring while the link sends; `None` for a virtual device.
    pub outstanding: Option<u64>,
    /// True if the driver has a call that may say what the transmit ring holds.
    pub tx_answers: bool,
    /// True if its driver reports the fill of the receive ring.
    pub tells_fill: bool,
    /// 802.3x pause of the whole link, as the device has it; `None` if its driver does not report it.
    pub link_pause: Option<LinkPause>,
    /// The driver's reason for which that could not be disabled.
    pub link_pause_error: Option<String>,
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
    let start = |resolved| {
        let started = start_one(eal, config, resolved, pools);
        let started = started.map_err(|source| OpenError::device(resolved, source))?;
        let interface = interface(resolved, &started.port)?;
        Ok((started, interface))
    };
    let mut started: Vec<_> = config.ports.iter().map(start).collect::<Result<_, _>>()?;
    wait_for_links(config, &mut started, stop, waits);
    let finish = |(resolved, port)| finish_one(config, resolved, port, pools);
    config.ports.iter().zip(started).map(finish).collect()
}

/// Follows the kernel's interface under a port's packet sockets, if it has any.
fn interface(resolved: &resolved::Port, port: &Port) -> Result<Option<Interface>, OpenError> {
    let followed = port.interface_under().map(Interface::follow).transpose();
    followed.map_err(|source| OpenError::Interface {
        name: resolved.name.clone(),
        source,
    })
}

/// Returns true if a port's link is up.
fn is_up(port: &Port, interface: Option<&mut Interface>) -> bool {
    port.link().is_ok_and(|link| link.up)
        && interface.is_none_or(|interface| interface.state() == State::Up)
}

/// Interval at which links are polled while the start waits.
const POLL: Duration = Duration::from_millis(10);

fn wait_for_links(
    config: &Config,
    ports: &mut [(StartedPort, Option<Interface>)],
    stop: &AtomicBool,
    mut waits: impl FnMut(&[&str]),
) {
    let begin = Instant::now();
    let most = Duration::from_nanos(config.dpdk.link_wait.0);
    let mut reported = false;
    loop {
        let ports = config.ports.iter().zip(&mut *ports);
        let down = ports.filter_map(|(resolved, (started, interface))| {
            let up = is_up(&started.port, interface.as_mut());
            (!up).then_some(resolved.name.as_str())
        });
        let down: Vec<&str> = down.collect();
        if down.is_empty() || stop.load(Ordering::Relaxed) || begin.elapsed() >= most {
            return;
        }
        if !reported && begin.elapsed() >= Duration::from_secs(1) {
            reported = true;
            waits(&down);
        }
        std::thread::sleep(POLL);
    }
}

/// Completes a started port: speeds, self-test, pause back end, queues.
fn finish_one(
    config: &Config,
    resolved: &resolved::Port,
    (started, mut interface): (StartedPort, Option<Interface>),
    pools: &Pools,
) -> Result<OpenPort, OpenError> {
    let device = |source| OpenError::device(resolved, source);
    let StartedPort {
        port,
        plain,
        started,
        sockets,
        large_frames,
        card,
        link_pause_error,
    } = started;
    let classes = resolved.qos.lossless_mask();
    let link = port.link().map_err(device)?;
    let up = is_up(&port, interface.as_mut());
    let speeds = speeds::of(resolved, link.speed_mbps.filter(|_| up));
    let by_priority = started.by_priority;
    let (pause, self_test) = pause((config, resolved), &port, card, &started, pools)?;
    let bound = Link::of(resolved, speeds.link, config.buffer.loop_time, 1).outstanding();
    let bound = (!port.is_vdev()).then_some(bound);
    let ring = bound.map(|bound| (bound, speeds.link));
    let (tx, answers) = transmit(&port, by_priority, classes, ring).map_err(device)?;
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
        link_pause_error,
        receivers: 1 + u64::try_from(more_rx.len()).unwrap_or(0),
        rx,
        more_rx,
        tx,
        mac: started.mac,
        interface,
        up,
        speeds,
        pause,
        self_test,
        outstanding: bound,
        tx_answers: answers,
        port: Arc::new(port),
    })
}

/// Runs the self-test of pause where it is needed, and chooses the back end of the port's pause frames.
fn pause(
    (config, resolved): (&Config, &resolved::Port),
    port: &Port,
    card: &'static Card,
    started: &Started,
    pools: &Pools,
) -> Result<(BackendChoice, SelfTest), OpenError> {
    let (request, classes) = (request(config, resolved), resolved.qos.lossless_mask());
    let self_test = if backend::tests(request, card) && classes != 0 {
        let pool = pools.near(port.socket());
        self_test::run(port, pool, started.mac, classes)
            .map_err(|source| OpenError::device(resolved, source))?
    } else {
        SelfTest::NotRun
    };
    let ability = Ability {
        card,
        answer: started.answer.clone(),
        self_test,
    };
    let name = || resolved.name.clone();
    let choice =
        backend::decide(request, &ability).map_err(|why| OpenError::Pfc { name: name(), why })?;
    backend::admits(request, &choice, classes, port.is_vdev())
        .map_err(|why| OpenError::Lossless { name: name(), why })?;
    Ok((choice, self_test))
}

/// Returns a port's transmit side, and true if its driver has a call that may say what the ring holds. `bound` is the limit in wire bytes,
/// with the speed of the link.
fn transmit(
    port: &Port,
    by_priority: Option<[u16; PRIORITIES]>,
    paused: u8,
    bound: Option<(u64, BitRate)>,
) -> Result<(Transmit, bool), PortError> {
    let queue = |queue| port.tx_queue(queue).map(|tx| TransmitQueue::new(tx, bound));
    let Some(queues) = by_priority else {
        let queue = queue(0)?;
        let answers = queue.may_answer();
        return Ok((Transmit::Single(queue), answers));
    };
    let queues: Result<ArrayVec<TransmitQueue, PRIORITIES>, _> =
        queues.into_iter().map(queue).collect();
    let queues = PerPriorityQueues::new(queues?, paused);
    Ok((Transmit::PerPriority(Box::new(queues)), true))
}
