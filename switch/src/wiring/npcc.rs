//! Conversion of the configuration to NPCC's settings.

use npcc_cnp::action::{Action, HostSet};
use npcc_cnp::control::config::{ControlConfig, Settings, WatchedQueueConfig};
use npcc_cnp::detector::DetectorConfig;
use npcc_cnp::host_rules::{HostRules, Unresponsive};
use npcc_cnp::policy::{PolicyInputs, PolicyKind};
use npcc_config::resolved::ResolvedPortNpcc;
use npcc_config::units::{Percent, Prefix};
use npcc_config::{Config, model};
use npcc_pipeline::units::{BitRate, Nanos, PortId, Priority};
use npcc_roce::build::CnpHeader;
use npcc_roce::source_check::Sides;

/// Capacity of each ingress port's ring of records from a worker to the control core: as many as the core takes in eight ticks, or the new
/// queue pairs of one port during 64.
pub const RING: usize = 4_096;
/// Rate assumed for an unlimited port when its CNP cap is computed.
const UNLIMITED: BitRate = BitRate(100_000_000_000);
/// Bytes per full frame beside the MTU: Ethernet, two tags and the wire overhead.
const FRAME: u64 = 22 + 24;

/// Returns the set of ports NPCC watches.
#[must_use]
pub fn ports(config: &Config) -> u32 {
    watched(config).fold(0, |set, (id, _, _)| set | id.bit())
}

/// Returns the format of CNPs, and the queue they enter.
#[must_use]
pub fn cnp_header(config: &Config) -> (CnpHeader, Priority) {
    let cnp = &config.npcc.cnp;
    let header = CnpHeader::with_dscp(cnp.dscp.byte());
    (header, Priority::new(cnp.priority.byte()))
}

/// Returns the set-up of the control core, with these initial settings.
#[must_use]
pub fn control_config(config: &Config, settings: Settings, hash_seed: u64) -> ControlConfig {
    let flows = config.npcc.flows.size();
    ControlConfig {
        settings,
        tick: config.npcc.tick,
        flows,
        ends: flows.saturating_mul(2),
        hash_seed,
        ..ControlConfig::default()
    }
}

/// Returns the settings that may change at run time (`apply::in_force` says for each key whether it may); `rates` are the shaper rates of the
/// ports' egress sides.
#[must_use]
pub fn settings(config: &Config, rates: &[Option<BitRate>]) -> Settings {
    let npcc = &config.npcc;
    let queues = watched(config).flat_map(|(id, port, port_npcc)| {
        // Known for every watched port: a virtual device must have `speed` there, and a physical one is always shaped.
        let rate = rates.get(id.index()).copied().flatten();
        port_npcc
            .priorities()
            .map(move |priority| queue(config, (id, port, port_npcc), priority, rate))
    });
    Settings {
        queues: queues.collect(),
        action: npcc.action,
        hosts: host_rules(&npcc.hosts),
        port_rates: rates.iter().map(|rate| rate.unwrap_or(UNLIMITED)).collect(),
        cap: thousandths(npcc.cnp.cap),
        cap_per_second: u64::from(npcc.cnp.per_second.get()),
        evidence: npcc.evidence,
        ecn: npcc.ecn,
        earned: npcc.cnp.earned.0,
        cnp_interval: npcc.cnp.interval,
        gate: npcc.gate,
        feedback: npcc.feedback,
        min_cnp_interval: npcc.min_cnp_interval,
        trusted_ports: trusted(config),
        source_sides: sides(npcc.source_check, ports(config)),
    }
}

/// Returns the settings of a watched queue on a port whose egress side is shaped to `rate`.
fn queue(
    config: &Config,
    (id, port, port_npcc): (PortId, &npcc_config::resolved::Port, &ResolvedPortNpcc),
    priority: u8,
    rate: Option<BitRate>,
) -> WatchedQueueConfig {
    let drain = drain(port, priority, rate);
    let at = usize::from(priority);
    WatchedQueueConfig {
        action: port_npcc.actions.get(at).copied().unwrap_or_default(),
        ..WatchedQueueConfig::new(
            (id, Priority::new(priority)),
            detector(config, port_npcc, port.mtu, drain),
            policy(config, port_npcc, port.mtu, (priority, drain)),
        )
    }
}

/// Returns the rules for hosts that are treated specially.
#[must_use]
pub fn host_rules(hosts: &model::Hosts) -> HostRules {
    let model::Hosts {
        allow,
        deny,
        observe,
        answering,
        cnp_intervals,
        unresponsive: _,
    } = hosts;
    // The longest prefix comes first: the first that contains a receiver counts.
    let mut intervals: Vec<_> = cnp_intervals.iter().collect();
    intervals.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.0.prefix_len()));
    let interval = |(prefix, time): (&Prefix, &Nanos)| (set(std::slice::from_ref(prefix)), *time);
    HostRules {
        allow: set(allow),
        deny: set(deny),
        observe: set(observe),
        answering: set(answering),
        cnp_intervals: intervals.into_iter().map(interval).collect(),
        unresponsive: moved_priority(hosts).map_or(Unresponsive::Mark, Unresponsive::Queue),
    }
}

/// Returns the priority of hosts that do not respond, if they are moved.
#[must_use]
pub fn moved_priority(hosts: &model::Hosts) -> Option<Priority> {
    let queue = hosts.unresponsive.queue();
    queue.map(|queue| Priority::new(queue.byte()))
}

/// Returns the action for decisions about a port's queue: the weakest of those configured for the switch, the port and the queue.
#[must_use]
pub fn action(config: &Config, port_npcc: &ResolvedPortNpcc, priority: Priority) -> Action {
    let own = port_npcc.actions.get(priority.index()).copied();
    own.unwrap_or_default().min(config.npcc.action)
}

/// Returns the set of trusted ports: all, if none is named.
fn trusted(config: &Config) -> u32 {
    let named = config
        .trusted_ports
        .iter()
        .filter_map(|index| u8::try_from(*index).ok());
    match named.fold(0, |set, index| set | PortId(index).bit()) {
        0 => u32::MAX,
        set => set,
    }
}

/// Returns the hosts of these prefixes.
fn set(prefixes: &[Prefix]) -> HostSet {
    let nets = prefixes.iter().map(|prefix| prefix.0);
    HostSet::new(nets.map(|net| (net.addr(), net.prefix_len())))
}

/// Returns, by ingress port, the set of ports behind which sources must lie; `watched` are the ports NPCC watches.
fn sides(check: model::SourceCheck, watched: u32) -> Sides {
    std::array::from_fn(|port| {
        let own = 1 << port;
        match check {
            model::SourceCheck::Off => u32::MAX,
            model::SourceCheck::Port => own,
            model::SourceCheck::Side if watched & own != 0 => watched,
            model::SourceCheck::Side => !watched,
        }
    })
}

/// Iterates over the ports with NPCC, with their ids.
fn watched(
    config: &Config,
) -> impl Iterator<Item = (PortId, &npcc_config::resolved::Port, &ResolvedPortNpcc)> {
    let ports = config.ports.iter().zip(0u8..);
    ports.filter_map(|(port, id)| {
        port.npcc
            .as_ref()
            .map(|port_npcc| (PortId(id), port, port_npcc))
    })
}

/// Returns the drain rate of a watched queue.
fn drain(port: &npcc_config::resolved::Port, priority: u8, rate: Option<BitRate>) -> BitRate {
    let resolved = port.qos.priorities.get(usize::from(priority));
    resolved
        .map_or(rate, |resolved| resolved.drain(rate))
        .unwrap_or(UNLIMITED)
}

fn detector(
    config: &Config,
    port_npcc: &ResolvedPortNpcc,
    mtu: u16,
    drain: BitRate,
) -> DetectorConfig {
    let [shallow, deep, hard] = port_npcc.thresholds.bytes(drain, mtu);
    DetectorConfig {
        shallow,
        deep,
        hard,
        filter: config.npcc.filter.get(),
        tick: config.npcc.tick,
        drain,
        mtu: u64::from(mtu) + FRAME,
    }
}

/// Returns the policy of a watched queue, with the parameters configured for it.
fn policy(
    config: &Config,
    port_npcc: &ResolvedPortNpcc,
    mtu: u16,
    (priority, drain): (u8, BitRate),
) -> PolicyKind {
    let [shallow, _, _] = port_npcc.thresholds.bytes(drain, mtu);
    let at = usize::from(priority);
    let which = port_npcc.policies.get(at).copied().unwrap_or_default();
    let mut kind = which.new_policy(&PolicyInputs {
        shallow,
        drain,
        pool: Some(config.buffer.pool.0),
        ..config.npcc.queue()
    });
    for (name, value) in port_npcc.parameters.get(at).into_iter().flatten() {
        // The configuration has checked the value.
        let _ = kind.set(name, *value);
    }
    kind
}

/// Converts a share to thousandths, rounded up: the smallest share is not 0.
const fn thousandths(share: Percent) -> u16 {
    share.basis_points().div_ceil(10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_roce::source_check::ANYWHERE;

    #[test]
    fn the_far_sides_addresses_are_not_believed_by_a_near_port_nor_the_other_way_round() {
        let watched = 0b1100;
        let side = sides(model::SourceCheck::Side, watched);
        assert_eq!(side[..4], [!watched, !watched, watched, watched]);
        assert_eq!(sides(model::SourceCheck::Port, watched)[..3], [1, 2, 4]);
        assert_eq!(sides(model::SourceCheck::Off, watched), ANYWHERE);
        // Where all ports are watched there is one side, and all ports are on it.
        assert_eq!(sides(model::SourceCheck::Side, u32::MAX), ANYWHERE);
    }

    /// Prefixes in the order of the file, and of any map: the /16 before the /24 in it, and a longer prefix of an earlier network.
    #[test]
    fn the_longest_prefix_of_cnp_intervals_wins() {
        let rules = |intervals: &str| {
            let hosts = serde_yaml::from_str(&format!("cnp_intervals: {{ {intervals} }}"));
            host_rules(&hosts.unwrap()).cnp_intervals
        };
        let of = |rules: &[(HostSet, Nanos)], receiver: &str| {
            let receiver = receiver.parse().unwrap();
            let mut own = rules.iter().filter(|(hosts, _)| hosts.holds(receiver));
            own.next().map(|(_, interval)| interval.0 / 1_000)
        };
        for text in [
            "10.0.0.0/16: 50us, 10.0.2.0/24: 10us, 10.0.2.7/32: 90us, '2001:db8::/32': 20us, '2001:db8:0:1::/64': 30us",
            "'2001:db8:0:1::/64': 30us, '2001:db8::/32': 20us, 10.0.2.7/32: 90us, 10.0.2.0/24: 10us, 10.0.0.0/16: 50us",
        ] {
            let rules = rules(text);
            let all = [
                "10.0.1.1",
                "10.0.2.1",
                "10.0.2.7",
                "2001:db8::1",
                "2001:db8:0:1::1",
                "192.0.2.1",
            ]
            .map(|receiver| of(&rules, receiver));
            assert_eq!(
                all,
                [Some(50), Some(10), Some(90), Some(20), Some(30), None]
            );
        }
    }

    /// 0.05 % was once rounded to 0: 32 CNPs a port, and then no more for ever.
    #[test]
    fn the_smallest_cap_is_not_none() {
        let share = |text: &str| serde_yaml::from_str(text).map(thousandths);
        assert_eq!(share("0.01%").unwrap(), 1);
        assert_eq!(share("0.05%").unwrap(), 1);
        assert_eq!(share("5%").unwrap(), 50);
    }

    #[test]
    fn the_action_of_a_queue_is_the_weakest_of_the_switchs_and_its_own() {
        let action = |npcc: &str, own: &str| {
            let text = format!(
                "version: 1\nnpcc: {{ action: {npcc} }}\nports:\n  - {{ name: p0, device: net_null0, speed: 100G, npcc: {{ action: {own} }} }}\n"
            );
            let config = npcc_config::parse("test.yaml", &text).unwrap().config;
            let port = config.ports[0].npcc.as_ref().unwrap();
            action(
                &config,
                port,
                Priority::new(port.priorities().next().unwrap()),
            )
        };
        assert_eq!(action("send", "send"), Action::Send);
        for (npcc, own) in [("observe", "send"), ("send", "observe")] {
            assert_eq!(action(npcc, own), Action::Observe, "{npcc} {own}");
        }
        assert_eq!(action("off", "observe"), Action::Off);
    }

    #[test]
    fn all_ports_are_trusted_unless_some_are_named() {
        let trusted = |npcc: &str| {
            let text = format!(
                "version: 1\nnpcc: {npcc}\nports:\n  - {{ name: p0, device: net_null0, speed: 100G, npcc: {{}} }}\n  - {{ name: p1, device: net_null1, speed: 100G }}\n"
            );
            let config = npcc_config::parse("test.yaml", &text).unwrap().config;
            settings(&config, &[None, None]).trusted_ports
        };
        assert_eq!(trusted("{}"), u32::MAX);
        assert_eq!(trusted("{ trusted_ports: [p1] }"), 0b10);
    }

    #[test]
    fn the_cnps_of_a_second_are_the_configurations_and_a_reload_changes_them() {
        let settings = |npcc: &str| {
            let text = format!(
                "version: 1\nnpcc: {npcc}\nports:\n  - {{ name: p0, device: net_null0, speed: 100G, npcc: {{}} }}\n"
            );
            let config = npcc_config::parse("test.yaml", &text).unwrap().config;
            settings(&config, &[Some(BitRate(100_000_000_000))])
        };
        let (usual, few) = (settings("{}"), settings("{ cnp: { per_second: 5000 } }"));
        assert_eq!(usual.cap_per_second, Settings::default().cap_per_second);
        assert_eq!(few.cap_per_second, 5_000);
        assert_ne!(usual, few);
    }

    #[test]
    fn a_parameter_of_the_file_reaches_the_policy_of_its_queue_and_no_other() {
        let text = "version: 1\nports:\n  - { name: p0, device: net_null0, speed: 100G, npcc: { queues: [3, 4], policy: npcc,\n\
            \x20     parameters: { 3: { few: 7% } } } }\n";
        let config = npcc_config::parse("test.yaml", text).unwrap().config;
        let rates = [Some(BitRate(100_000_000_000))];
        let value = |kind: &PolicyKind| {
            let all = kind.slot().parameters();
            all.iter().find(|one| one.name == "few").unwrap().value
        };
        let queues = settings(&config, &rates).queues;
        assert_eq!(value(&queues[0].policy), 70);
        assert_eq!(value(&queues[1].policy), 50);
    }

    /// A queue limited to 10G of a 100G port was once watched as if it had all of it: shallow above the depth at which ECN begins.
    #[test]
    fn thresholds_of_npcc_and_of_ecn_are_times_of_what_the_queue_may_have() {
        let text = "version: 1\nqos: { priorities: { 3: { max_rate: 10G } } }\nnpcc: {}\nbuffer: { pool: 64MB }\n\
            ports:\n  - { name: p0, device: net_null0, speed: 100G, npcc: {}, addresses: [10.0.1.1/24] }\n";
        let config = npcc_config::parse("test.yaml", text).unwrap().config;
        let rate = Some(BitRate(100_000_000_000));
        let settings = settings(&config, &[rate]);
        let detector = &settings.queues[0].detector;
        assert_eq!(detector.drain, BitRate(10_000_000_000));
        let mac = npcc_pipeline::units::Mac([2, 0, 0, 0, 0, 1]);
        let port = super::super::path::port(&config, &config.ports[0], mac, rate);
        let queue = &port.egress.queues[3];
        assert_eq!(queue.watched_depths, [detector.shallow, detector.hard]);
        assert!(
            queue
                .ecn
                .is_some_and(|red| detector.shallow <= red.kmin && detector.deep <= red.kmax)
        );
    }

    /// Without marks nothing would be known any more of a host that was moved.
    #[test]
    fn the_queue_of_moved_hosts_has_the_marks_of_the_watched_queue_unless_it_has_its_own() {
        let marks = |treatment: &str, qos: &str| {
            let text = format!(
                "version: 1\nqos: {{ profile: lossy, priorities: {{ 2: {{ ecn: {{ kmin: 10us, kmax: 20us }} }} {qos} }} }}\n\
                npcc: {{ hosts: {{ unresponsive: {treatment} }} }}\nports:\n  - {{ name: p0, device: net_null0, speed: 100G, npcc: {{}} }}\n"
            );
            let config = npcc_config::parse("test.yaml", &text).unwrap().config;
            let rate = Some(BitRate(100_000_000_000));
            let moved = settings(&config, &[rate]).hosts.unresponsive.priority();
            let mac = npcc_pipeline::units::Mac([2, 0, 0, 0, 0, 1]);
            let queues = super::super::path::port(&config, &config.ports[0], mac, rate)
                .egress
                .queues;
            assert!(!queues[5].is_watched() && queues[3].is_watched());
            (
                moved,
                queues[3].ecn.is_some(),
                [2, 5].map(|queue: usize| queues[queue].ecn == queues[3].ecn),
            )
        };
        let none = (None, true, [false, false]);
        assert_eq!(marks("mark", ""), none);
        let five = Some(Priority::new(5));
        assert_eq!(marks("{ queue: 5 }", ""), (five, true, [false, true]));
        let two = Some(Priority::new(2));
        assert_eq!(marks("{ queue: 2 }", ""), (two, true, [false, false]));
        // Where nothing is marked, nothing is marked there either.
        assert_eq!(
            marks("{ queue: 5 }", ", 3: { ecn: off }"),
            (five, false, [false, true])
        );
    }
}
