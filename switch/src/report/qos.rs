//! Effective queues and maps, derived from a configuration.

use npcc_api::qos::{Qos, QosPriority};
use npcc_config::Config;
use npcc_config::model::Scheduler;
use npcc_pipeline::datapath::PortConfig;
use npcc_pipeline::egress::ecn::Red;

/// Returns the effective settings of a configuration; `ports` are the ports' settings derived from it.
#[must_use]
pub fn effective(config: &Config, ports: &[PortConfig]) -> Qos {
    let Some(qos) = config.common_qos() else {
        return Qos::default();
    };
    let others = |map: &[u8]| {
        (0u8..)
            .zip(map)
            .filter(|(_, to)| **to != qos.default_priority)
            .map(|(from, to)| (from, *to))
            .collect()
    };
    let curves =
        |n: usize, of: fn(&npcc_pipeline::egress::port::EgressQueueConfig) -> Option<Red>| {
            config
                .ports
                .iter()
                .zip(ports)
                .filter_map(|(resolved, port)| {
                    let red = of(port.egress.queues.get(n)?)?;
                    Some((resolved.name.clone(), [red.kmin, red.kmax]))
                })
                .collect()
        };
    let priority = |(n, resolved): (u8, &npcc_config::resolved::ResolvedPriority)| QosPriority {
        priority: n,
        lossless: resolved.lossless,
        scheduler: resolved.scheduler.name().to_owned(),
        weight: (resolved.scheduler == Scheduler::Dwrr).then_some(resolved.weight),
        min_rate: resolved.min_rate.map(|rate| rate.0),
        max_rate: resolved.max_rate.map(|rate| rate.0),
        ecn: curves(usize::from(n), |queue| queue.ecn),
        wred: curves(usize::from(n), |queue| queue.wred),
    };
    Qos {
        profile: qos.profile.name().to_owned(),
        trust: qos.trust.name().to_owned(),
        default_priority: qos.default_priority,
        dscp_to_priority: others(&qos.dscp),
        pcp_to_priority: others(&qos.pcp),
        priorities: (0u8..).zip(&qos.priorities).map(priority).collect(),
    }
}
