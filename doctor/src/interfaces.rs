//! Checks of kernel interfaces under ports of `net_af_packet` and `net_af_xdp`.

use std::net::IpAddr;

use npcc_config::Config;
use npcc_config::model::PortPfc;
use npcc_config::resolved::Port;
use serde::Deserialize;

use crate::access;
use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::Host;

/// IP address of an interface.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) ip: IpAddr,
    /// True if its scope is wider than link-local.
    pub(crate) routed: bool,
}

/// Interface as iproute2 prints it.
#[derive(Debug, Deserialize)]
struct Printed {
    ifname: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    addr_info: Vec<PrintedAddress>,
}

#[derive(Debug, Deserialize)]
struct PrintedAddress {
    local: Option<IpAddr>,
    #[serde(default)]
    scope: String,
}

/// Kernel interface.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) mac: String,
    pub(crate) addresses: Vec<Address>,
}

/// Returns the kernel's interfaces in a network namespace or in this one; empty if the command fails.
pub(crate) fn all(host: &Host, namespace: Option<&str>) -> Vec<Interface> {
    let text = match namespace {
        Some(name) => host.ask(&["ip", "-n", name, "-j", "addr", "show"]),
        None => host.ask(&["ip", "-j", "addr", "show"]),
    };
    let printed: Vec<Printed> = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    let address = |one: PrintedAddress| {
        Some(Address {
            ip: one.local?,
            routed: one.scope != "link" && one.scope != "host",
        })
    };
    let interface = |one: Printed| Interface {
        name: one.ifname,
        mac: one.address.to_lowercase(),
        addresses: one.addr_info.into_iter().filter_map(address).collect(),
    };
    printed.into_iter().map(interface).collect()
}

/// Returns the addresses of one interface.
pub(crate) fn addresses(host: &Host, namespace: Option<&str>, name: &str) -> Vec<Address> {
    let found = all(host, namespace)
        .into_iter()
        .find(|one| one.name == name);
    found.map(|one| one.addresses).unwrap_or_default()
}

/// Returns the lossless priorities of a port, for which it sends or honours pause.
fn lossless(port: &Port) -> Vec<u8> {
    let all = (0u8..).zip(&port.qos.priorities);
    all.filter(|(_, priority)| priority.lossless)
        .map(|(n, _)| n)
        .collect()
}

/// Returns true if pause must work on a port.
pub(crate) fn needs_pause(port: &Port) -> bool {
    port.pfc != PortPfc::Off && !lossless(port).is_empty()
}

pub(crate) fn examine(host: &Host, config: &Config, found: &mut Vec<Finding>) {
    for port in &config.ports {
        let Some(name) = port.device.kernel_interface() else {
            continue;
        };
        let place = format!("port {} ({name})", port.name);
        let folder = format!("/sys/class/net/{name}");
        if !host.exists(&folder) {
            found.push(Finding {
                check: Check::InterfaceMissing,
                severity: Severity::Error,
                place,
                what: "there is no such interface".to_owned(),
                mend: Mend::ByHand("ip -br link".to_owned()),
            });
            continue;
        }
        down(host, (name, &place), found);
        let tag = if port.vlans.is_empty() { 0 } else { 4 };
        let needed = u64::from(port.mtu) + tag;
        if host
            .number(format!("{folder}/mtu"))
            .is_some_and(|mtu| mtu < needed)
        {
            found.push(Finding {
                check: Check::InterfaceMtu,
                severity: Severity::Error,
                place: place.clone(),
                what: format!("the interface takes smaller packets than the port's MTU of {}: larger frames are lost without a word", port.mtu),
                mend: Mend::Now(format!("ip link set dev {name} mtu {needed}")),
            });
        }
        // The switch disables IPv6 there itself, while it runs.
        let runs = access::listens(host, &config.telemetry.socket) == Some(true);
        answers(host, port, (name, &place), runs, found);
        merging(host, (name, &place), found);
        if port.device.to_string().starts_with("net_af_packet") {
            segments(host, (name, &place), found);
        }
        queues(host, config, (name, &place), found);
        if needs_pause(port) {
            link_pause(host, (name, &place), found);
            let on = priorities(host, name);
            if !on.is_empty() {
                found.push(Finding {
                    check: Check::DcbPfc,
                    severity: Severity::Warning,
                    place,
                    what: format!("the kernel has the card do priority pause itself on {on:?}, so the switch does not see the peer's pause frames"),
                    mend: Mend::Now(format!("dcb pfc set dev {name} prio-pfc all:off")),
                });
            }
        }
    }
}

/// Checks that an interface is administratively up.
pub(crate) fn down(host: &Host, (name, place): (&str, &str), found: &mut Vec<Finding>) {
    let flags = host.read(format!("/sys/class/net/{name}/flags"));
    let flags = u32::from_str_radix(flags.unwrap_or_default().trim_start_matches("0x"), 16);
    if flags.is_ok_and(|flags| flags & 1 == 0) {
        found.push(Finding {
            check: Check::InterfaceDown,
            severity: Severity::Error,
            place: place.to_owned(),
            what: "the interface is switched off: no frame passes".to_owned(),
            mend: Mend::Now(format!("ip link set dev {name} up")),
        });
    }
}

/// Checks that the kernel, which keeps its stack on the interface, does not answer there beside the switch: with IPv6 it has the link-local
/// address of the port's MAC address. `ipv6` if it is a fault that IPv6 is on.
pub(crate) fn answers(
    host: &Host,
    port: &Port,
    (name, place): (&str, &str),
    ipv6: bool,
    found: &mut Vec<Finding>,
) {
    let interface = all(host, None).into_iter().find(|one| one.name == name);
    let own = |mac: &str| port.mac.is_none_or(|own| own.to_string() == mac);
    let Some(interface) = interface.filter(|one| own(&one.mac)) else {
        return;
    };
    let mut report = |what: String, mend| {
        found.push(Finding {
            check: Check::InterfaceAnswers,
            severity: Severity::Warning,
            place: place.to_owned(),
            what,
            mend,
        });
    };
    let off = format!("net/ipv6/conf/{name}/disable_ipv6");
    if ipv6 && host.number(format!("/proc/sys/{off}")) == Some(0) {
        report(
            "the kernel has IPv6 on the interface, with the link-local address of the port's MAC address: it answers beside the switch, pings twice, and refuses BGP's connections".to_owned(),
            Mend::Now(format!("sysctl -w {off}=1")),
        );
    }
    let addresses = interface.addresses.iter();
    let kept: Vec<String> = addresses
        .filter(|one| one.ip.is_ipv4() || one.routed)
        .map(|one| one.ip.to_string())
        .collect();
    if !kept.is_empty() {
        let kept = kept.join(", ");
        report(
            format!(
                "the interface has {kept} of its own: the kernel answers for it with the port's MAC address, and what hosts send there comes to the switch too"
            ),
            Mend::ByHand(format!(
                "ip address show dev {name}   # then: ip address flush dev {name}"
            )),
        );
    }
}

/// Returns true if ethtool's output says `on` for a key.
fn is_on(text: &str, key: &str) -> bool {
    let mut lines = text.lines().filter_map(|line| line.trim().split_once(':'));
    lines.any(|(name, value)| name == key && value.trim().starts_with("on"))
}

pub(crate) fn link_pause(host: &Host, (name, place): (&str, &str), found: &mut Vec<Finding>) {
    let text = host.ask(&["ethtool", "-a", name]).unwrap_or_default();
    if is_on(&text, "RX") || is_on(&text, "TX") {
        found.push(Finding {
            check: Check::LinkPause,
            severity: Severity::Warning,
            place: place.to_owned(),
            what: "802.3x pause stops the whole link, CNPs and other priorities with it; priority pause and it exclude each other".to_owned(),
            mend: Mend::Now(format!("ethtool -A {name} autoneg off rx off tx off")),
        });
    }
}

fn merging(host: &Host, (name, place): (&str, &str), found: &mut Vec<Finding>) {
    let text = host.ask(&["ethtool", "-k", name]).unwrap_or_default();
    if is_on(&text, "generic-receive-offload") || is_on(&text, "large-receive-offload") {
        found.push(Finding {
            check: Check::InterfaceMerges,
            severity: Severity::Warning,
            place: place.to_owned(),
            what: "the kernel merges frames of a connection before the switch has them (GRO, LRO): they are larger than the MTU and dropped as oversize".to_owned(),
            mend: Mend::Now(format!("ethtool -K {name} gro off lro off")),
        });
    }
}

/// Name of the XDP program that a running switch attaches (dpdk-sys/csrc/one_by_one.c).
const OWN_PROGRAM: &str = "npcc_pass";

/// Reports an interface that passes on TSO segments: local senders leave segmentation to a card, and a packet socket sees the whole.
/// The switch ends that at a veth, by an XDP program.
fn segments(host: &Host, (name, place): (&str, &str), found: &mut Vec<Finding>) {
    let text = host.ask(&["ip", "-d", "-j", "link", "show", "dev", name]);
    let links: serde_json::Value =
        serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    let Some(link) = links.get(0) else { return };
    let kind = link["linkinfo"]["info_kind"].as_str().unwrap_or_default();
    let program = &link["xdp"]["prog"];
    let why = match kind {
        // A physical interface, whose frames come from a wire.
        "" => return,
        "veth" if program.is_null() || program["name"] == OWN_PROGRAM => return,
        "veth" => "another XDP program is attached to the veth".to_owned(),
        kind => format!("an interface of kind {kind} has no such switch at this end"),
    };
    found.push(Finding {
        check: Check::InterfaceSegments,
        severity: Severity::Warning,
        place: place.to_owned(),
        what: format!("hosts of this machine may send segments larger than the MTU by it (TSO), which are dropped as oversize: {why}"),
        mend: Mend::ByHand("ethtool -K INTERFACE tso off gso off   # on each host behind it".to_owned()),
    });
}

pub(crate) fn queues(
    host: &Host,
    config: &Config,
    (name, place): (&str, &str),
    found: &mut Vec<Finding>,
) {
    let workers = config.cores.workers.len();
    let text = host.ask(&["ethtool", "-l", name]).unwrap_or_default();
    let maximum = text.split("Current").next().unwrap_or_default();
    let most = |key: &str| {
        let mut lines = maximum.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(name, value)| (name == key).then(|| value.trim().parse().ok())?)
    };
    let most: Option<usize> = most("Combined").max(most("RX"));
    if let Some(most) = most.filter(|most| *most < workers) {
        found.push(Finding {
            check: Check::NicQueues,
            severity: Severity::Note,
            place: place.to_owned(),
            what: format!("the card receives by {most} queues at most, and there are {workers} workers: only so many of them take frames in"),
            mend: Mend::ByHand(format!("ethtool -l {name}   # and fewer cores.workers, or ports[].worker")),
        });
    }
}

/// Returns the priorities for which the kernel has PFC enabled on the card; empty if the command fails.
pub(crate) fn priorities(host: &Host, name: &str) -> Vec<u8> {
    let text = host.ask(&["dcb", "-j", "pfc", "show", "dev", name]);
    let read: serde_json::Value =
        serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    let on = read.get("prio_pfc").and_then(serde_json::Value::as_array);
    let priority = |one: &serde_json::Value| u8::try_from(one.as_u64()?).ok();
    on.into_iter().flatten().filter_map(priority).collect()
}
