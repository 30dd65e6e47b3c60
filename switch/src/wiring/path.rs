//! Conversion of the configuration to the pipeline's settings.

use npcc_config::model::{Action, Scheduler};
use npcc_config::resolved::{ResolvedPriority, ResolvedQos};
use npcc_config::sizing::ControlSizing;
use npcc_config::units::Threshold;
use npcc_config::{Config, resolved};
use npcc_pipeline::classify::Classifier;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::egress::ecn::{CERTAIN, Red};
use npcc_pipeline::egress::port::{EcnConfig, EcnMode, EgressConfig, EgressQueueConfig};
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::stage::admit::PoolConfig;
use npcc_pipeline::stage::parse::IngressConfig;
use npcc_pipeline::units::{BitRate, Mac, Nanos, Priority};

/// Bytes of the Ethernet header and two tags.
const L2: u16 = 22;

/// Longest time for which a shaper saves up credit, which it may then send in one burst: a long turn of the loop.
const LONGEST_AWAY: Nanos = Nanos::from_millis(1);

/// Returns one port's pipeline settings; `rate` is the shaper rate of its egress side.
#[must_use]
pub fn port(config: &Config, port: &resolved::Port, mac: Mac, rate: Option<BitRate>) -> PortConfig {
    let qos = &port.qos;
    let mut queues = std::array::from_fn(|_| EgressQueueConfig::default());
    for (queue, resolved) in queues.iter_mut().zip(&qos.priorities) {
        *queue = self::queue(resolved, rate, port.mtu);
    }
    let control = ControlSizing::of(
        config.buffer.pool.0,
        config.ports.len(),
        config.linux.integrate,
    );
    let mask = control_priorities(config, qos);
    for (_, queue) in Priority::all()
        .zip(&mut queues)
        .filter(|(priority, _)| mask & priority.bit() != 0)
    {
        queue.reserve = control.bytes(config.ports.len());
    }
    let watched = port.npcc.as_ref().map_or(0, |npcc| npcc.queues);
    for ((priority, queue), resolved) in Priority::all()
        .zip(&mut queues)
        .zip(&qos.priorities)
        .filter(|((priority, _), _)| watched & priority.bit() != 0)
    {
        let action = port
            .npcc
            .as_ref()
            .map(|npcc| super::npcc::action(config, npcc, priority));
        // Where CNPs are not sent, marks are the senders' only signal.
        if config.npcc.ecn == EcnMode::Off && action == Some(Action::Send) {
            queue.ecn = None;
        }
        if let (Some(npcc), Some(drain)) = (&port.npcc, resolved.drain(rate)) {
            let [shallow, _, hard] = npcc.thresholds.bytes(drain, port.mtu);
            queue.watched_depths = [shallow, hard];
        }
    }
    if let Some(moved) = super::npcc::moved_priority(&config.npcc.hosts) {
        give_marks(&mut queues, watched, moved);
    }
    PortConfig {
        intake: IngressConfig {
            mac,
            mtu: port.mtu,
            vlans: port.vlans.iter().map(|vlan| vlan.id).collect(),
            classifier: classifier(qos),
        },
        egress: EgressConfig {
            rate,
            max_frame: port.mtu + L2,
            max_absence: config.buffer.loop_time.min(LONGEST_AWAY),
            queues,
        },
        // Without a watched queue no sender is signalled, and curves that `off` takes away are gone already.
        ecn: match &port.npcc {
            Some(npcc) if watched != 0 && config.npcc.ecn == EcnMode::Divert => EcnConfig {
                mode: EcnMode::Divert,
                upstream_ce: npcc.upstream_ce,
            },
            _ => EcnConfig::MARK,
        },
    }
}

/// Gives the queue of moved hosts the marks of the first watched queue, unless it has its own: by its CNPs a host can show that it responds after
/// all.
fn give_marks(queues: &mut [EgressQueueConfig], watched: u8, moved: Priority) {
    let mut others = Priority::all_of(watched).filter_map(|queue| queues.get(queue.index())?.ecn);
    let marks = others.next();
    drop(others);
    if let Some(queue) = queues.get_mut(moved.index()) {
        queue.ecn = queue.ecn.or(marks);
    }
}

/// Returns the priorities of a port's control frames: the CNPs', and those of strict queues that are not lossless, as a mask.
#[must_use]
pub fn control_priorities(config: &Config, qos: &ResolvedQos) -> u8 {
    let qos = Priority::all().zip(&qos.priorities);
    let cnp = Priority::new(config.npcc.cnp.priority.byte());
    let own = qos.filter(|(priority, resolved)| {
        resolved.is_control() || *priority == cnp && !resolved.lossless
    });
    own.fold(0, |mask, (priority, _)| mask | priority.bit())
}

fn queue(resolved: &ResolvedPriority, rate: Option<BitRate>, mtu: u16) -> EgressQueueConfig {
    // Without a rate no queue forms, and a time at the drain rate has no meaning; byte thresholds are kept.
    let drain = resolved.drain(rate);
    let bytes = |threshold: Threshold| match (threshold, drain) {
        (_, Some(drain)) => Some(threshold.bytes_floored(drain, mtu)),
        (Threshold::Bytes(bytes), None) => Some(bytes.0),
        (_, None) => None,
    };
    let red = |low: Threshold, high: Threshold, share: npcc_config::units::Percent| {
        Some(Red {
            kmin: bytes(low)?,
            kmax: bytes(high)?,
            pmax: share.of(CERTAIN),
        })
    };
    EgressQueueConfig {
        discipline: match resolved.scheduler {
            Scheduler::Strict => Discipline::Strict,
            Scheduler::Dwrr => Discipline::Dwrr(resolved.weight),
        },
        max_rate: resolved.limit(rate),
        min_rate: resolved.min_rate,
        ecn: resolved
            .ecn
            .and_then(|ecn| red(ecn.kmin, ecn.kmax, ecn.pmax)),
        wred: resolved
            .wred
            .and_then(|wred| red(wred.min, wred.max, wred.prob)),
        lossless: resolved.lossless,
        reserve: 0,
        watched_depths: [u64::MAX; 2],
    }
}

fn classifier(qos: &ResolvedQos) -> Classifier {
    Classifier {
        trust: qos.trust,
        default: Priority::new(qos.default_priority),
        dscp: qos.dscp.map(Priority::new),
        pcp: qos.pcp.map(Priority::new),
    }
}

/// Returns the shared buffer's size in bytes, and in buffers that hold them at the smallest mean frame.
#[must_use]
pub fn pool(config: &Config) -> PoolConfig {
    let bytes = config.buffer.pool.0;
    let frame = u64::from(config.buffer.lossless_min_frame.get()).max(1);
    let alpha_256 = config.buffer.alpha_256();
    let control = ControlSizing::of(bytes, config.ports.len(), config.linux.integrate);
    PoolConfig {
        bytes,
        frames: bytes.div_ceil(frame) + control.buffers(config.ports.len()),
        alpha_256,
    }
}
