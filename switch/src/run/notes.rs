//! Notes at the start: facts a user should know, none serious enough to stop the switch.

use npcc_config::Config;
use npcc_config::resolved::Port;
use npcc_config::sizing::SpeedFrom;

use super::service;
use crate::wiring::speeds::LinkFrom;
use crate::wiring::{self, ports::OpenPort};
use npcc_engine::log::note;
use npcc_engine::store::Store;

/// Notes the ports whose links are waited for.
pub(super) fn waiting(config: &Config, down: &[&str]) {
    let text = format!(
        "waiting for the link of {}, {} at most (dpdk.link_wait)",
        down.join(", "),
        config.dpdk.link_wait
    );
    note(&text);
    service::starting(&text);
}

/// Notes the cost of ordinary pages.
pub(super) fn pages(ordinary: bool) {
    if ordinary {
        note(
            "note: packet memory is in ordinary pages, which costs speed: reserve hugepages for production",
        );
    }
}

/// Closes descriptors that the previous process left and no part of this one took, and notes them.
pub(super) fn close_rest(store: &Store) {
    let rest = store.close_rest();
    if !rest.is_empty() {
        note(&format!(
            "note: the service manager kept what nobody uses, which is closed: {}",
            rest.join(", ")
        ));
    }
}

/// Notes faults of ports at the start.
pub(super) fn ports(config: &Config, ports: &[OpenPort]) {
    for (resolved, port) in config.ports.iter().zip(ports) {
        link(resolved, port);
        if let Some(why) = port.large_frames {
            note(&format!(
                "note: hosts behind port {} may send frames larger than the MTU, which are dropped as oversize, for the kernel does not cut them: {why}; \
                 on each host: ethtool -K INTERFACE tso off gso off",
                resolved.name
            ));
        }
    }
    for name in wiring::workers::without_interrupt(config, ports) {
        note(&format!(
            "note: port {name} cannot wake a worker that sleeps: it is looked at every half millisecond (cores.idle)"
        ));
    }
}

/// Notes faults of a link at the start.
fn link(resolved: &Port, port: &OpenPort) {
    let name = &resolved.name;
    if !port.up {
        note(&format!(
            "note: the link of port {name} is down: it forwards as soon as the link is up"
        ));
    } else if port.speeds.from == LinkFrom::Configured(SpeedFrom::Assumed)
        && !resolved.device.is_virtual()
    {
        note(&format!(
            "note: the device of port {name} does not tell the speed of its link: {} is assumed; write link_speed",
            port.speeds.link
        ));
    }
}
