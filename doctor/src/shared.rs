//! Checks of cards that stay with their kernel driver while DPDK uses them too: mlx5, mlx4, mana. The kernel's interface of such a card is
//! the port's link.

use npcc_config::Config;
use npcc_config::resolved::Port;
use serde_json::Value;

use crate::access;
use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::{DEVICES, Host};
use crate::interfaces;

pub(crate) fn examine(
    host: &Host,
    (config, port): (&Config, &Port),
    address: &str,
    found: &mut Vec<Finding>,
) {
    let place = format!("port {} ({address})", port.name);
    roce(host, (address, &place), found);
    let mut names = host.list(format!("{DEVICES}/{address}/net"));
    names.retain(|name| !is_representor(host, name));
    let here = interfaces::all(host, None);
    // Without iproute2 nothing is known.
    let is_here = |name: &String| here.is_empty() || here.iter().any(|one| one.name == *name);
    if !names.iter().any(is_here) {
        found.push(Finding {
            check: Check::InterfaceNamespace,
            severity: Severity::Error,
            place,
            what: "the card's interface is not in this network namespace, or it has none (InfiniBand): DPDK's driver finds no port".to_owned(),
            mend: Mend::ByHand(
                "ip -n NAMESPACE link set dev INTERFACE netns 1   # ip netns lists the namespaces".to_owned(),
            ),
        });
        return;
    }
    for name in names.iter().filter(|name| is_here(name)) {
        interface(host, (config, port), name, found);
    }
}

/// Returns true for the interface of a virtual function's port, which lies beside that of the card itself.
fn is_representor(host: &Host, name: &str) -> bool {
    host.read(format!("/sys/class/net/{name}/phys_port_name"))
        .is_some_and(|port| port.starts_with("pf"))
}

fn interface(host: &Host, (config, port): (&Config, &Port), name: &str, found: &mut Vec<Finding>) {
    let place = format!("port {} ({name})", port.name);
    interfaces::down(host, (name, &place), found);
    let folder = format!("/sys/class/net/{name}");
    let least = u64::from(port.mtu);
    if let Some(mtu) = host
        .number(format!("{folder}/mtu"))
        .filter(|mtu| *mtu < least)
    {
        let runs = access::listens(host, &config.telemetry.socket) == Some(true);
        let (severity, then) = if runs {
            (Severity::Error, "the card drops larger frames")
        } else {
            (
                Severity::Note,
                "the switch raises it as it starts, where the driver can",
            )
        };
        found.push(Finding {
            check: Check::InterfaceMtu,
            severity,
            place: place.clone(),
            what: format!("the interface has an MTU of {mtu}, the port one of {least}: {then}"),
            mend: Mend::Now(format!("ip link set dev {name} mtu {least}")),
        });
    }
    interfaces::answers(host, port, (name, &place), true, found);
    interfaces::queues(host, config, (name, &place), found);
    if !interfaces::needs_pause(port) {
        return;
    }
    interfaces::link_pause(host, (name, &place), found);
    let on = interfaces::priorities(host, name);
    if !on.is_empty() {
        found.push(Finding {
            check: Check::DcbPfc,
            severity: Severity::Note,
            place,
            what: format!("the kernel has PFC on for the priorities {on:?}: that is of the kernel's queues, and makes no priority of the switch lossless"),
            mend: Mend::ByHand(format!("dcb pfc show dev {name}")),
        });
    }
}

/// Reports that the card's RDMA device is on: it takes RoCE packets for addresses of its own, before DPDK sees them.
fn roce(host: &Host, (address, place): (&str, &str), found: &mut Vec<Finding>) {
    let device = format!("pci/{address}");
    let text = host.ask(&[
        "devlink",
        "-j",
        "dev",
        "param",
        "show",
        &device,
        "name",
        "enable_roce",
    ]);
    let read: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    let values = read["param"][&device][0]["values"].as_array();
    let is_on = |one: &Value| one["value"] == true || one["value"] == "true";
    if values.is_some_and(|values| values.iter().any(is_on)) {
        found.push(Finding {
            check: Check::NicRoce,
            severity: Severity::Warning,
            place: place.to_owned(),
            what: "the card's own RoCE is on (enable_roce): it may take UDP 4791 to the port's MAC address away from the switch (suspected; \
                   /usr/share/npcc-switch/card-test shows it)"
                .to_owned(),
            mend: Mend::ByHand(format!(
                "devlink dev param set {device} name enable_roce value false cmode driverinit && devlink dev reload {device}   # its link goes down meanwhile"
            )),
        });
    }
}
