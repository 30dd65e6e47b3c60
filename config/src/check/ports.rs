//! Checks of ports: names, devices, MAC addresses, VLANs, speeds.

use std::collections::HashMap;

use super::{Check, port_path};
use crate::model::Port;
use crate::resolved::{Device, RING_HEADER};
use crate::sizing::LINK_HEADERS;
use crate::tree::Path;
use crate::units::{BitRate, Mac, Threshold};

pub(super) fn check(check: &mut Check<'_>) {
    names(check);
    devices(check);
    interfaces(check);
    one_mac_each(check);
    let file = check.file;
    for (i, port) in file.ports.iter().enumerate() {
        mac(check, i, port);
        ring_frame(check, i, port);
        outstanding(check, i, port);
        vlans(check, i, port);
        link_speed(check, i, port);
        if port.speed.is_some_and(|s| s.0 == 0) {
            let hint = "write a rate such as 10G; leave it out to take the link's";
            check.error(
                &port_path(i).key("speed"),
                "a port cannot have speed 0",
                hint,
            );
        }
        plausible(check, &port_path(i).key("speed"), port.speed);
        plausible(
            check,
            &port_path(i).key("link_speed"),
            port.link_speed.written(),
        );
    }
}

/// Slowest and fastest rate that a port or a queue can have: below the first a full frame takes longer than any timer of its protocols, and
/// the second is that of the fastest Ethernet (IEEE 802.3dj).
const RATES: [BitRate; 2] = [BitRate(1_000_000), BitRate(1_600_000_000_000)];

/// Refuses a rate that no link has, which is a unit that was left out or mistyped; 0 has a message of its own.
pub(super) fn plausible(check: &mut Check<'_>, path: &Path, rate: Option<BitRate>) {
    let [slowest, fastest] = RATES;
    let Some(rate) = rate.filter(|rate| rate.0 > 0 && !(slowest..=fastest).contains(rate)) else {
        return;
    };
    let message = format!("{rate} is no rate of a link");
    let hint = format!("write {slowest} to {fastest}, with its unit, such as 100G");
    check.error(path, message, hint);
}

fn names(check: &mut Check<'_>) {
    let file = check.file;
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (i, port) in file.ports.iter().enumerate() {
        let path = port_path(i).key("name");
        if !check.certain(&path) {
            continue;
        }
        let name = port.name.as_str();
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        if !(1..=15).contains(&name.len()) || !name.bytes().all(plain) {
            let hint = "1 to 15 characters of a-z, 0-9, _ and -, such as wan0";
            check.error(&path, format!("`{name}` cannot be a port's name"), hint);
        }
        if let Some(&other) = first.get(name) {
            let line = check.line(&port_path(other).key("name"));
            let hint = format!("the port on line {line} has it already; choose another");
            check.error(&path, format!("there are two ports `{name}`"), hint);
        } else {
            first.insert(name, i);
        }
    }
}

fn devices(check: &mut Check<'_>) {
    let file = check.file;
    let mut first: HashMap<String, usize> = HashMap::new();
    for (i, port) in file.ports.iter().enumerate() {
        let path = port_path(i).key("device");
        if !check.certain(&path) {
            continue;
        }
        let Some(device) = Device::parse(&port.device) else {
            let text = &port.device;
            let message = format!("`{text}` is neither a PCI address nor a virtual device");
            check.error(&path, message, device_hint(text));
            continue;
        };
        if let Device::Virtual { name, args } = &device
            && name.starts_with("net_af_")
            && !args
                .split(',')
                .any(|a| a.len() > 6 && a.starts_with("iface="))
        {
            let hint = format!("write \"{name},iface=eth1\" with the interface's name");
            check.error(
                &path,
                format!("`{name}` does not say which interface"),
                hint,
            );
        }
        if let Some(&other) = first.get(device.id()) {
            let line = check.line(&port_path(other).key("device"));
            let hint = match &device {
                Device::Pci { .. } => format!("the port on line {line} uses it already"),
                Device::Virtual { name, .. } => {
                    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
                    format!("line {line} uses the name; number them, such as {stem}{i}")
                }
            };
            check.error(
                &path,
                format!("device `{}` is used twice", device.id()),
                hint,
            );
        } else {
            first.insert(device.id().to_owned(), i);
        }
    }
}

/// Refuses two ports on one kernel interface, of which each would receive what the other sends and all that arrives.
fn interfaces(check: &mut Check<'_>) {
    let file = check.file;
    let mut first: HashMap<String, usize> = HashMap::new();
    for (i, port) in file.ports.iter().enumerate() {
        let path = port_path(i).key("device");
        let Some(device) = Device::parse(&port.device).filter(|_| check.certain(&path)) else {
            continue;
        };
        let Some(interface) = device.interface() else {
            continue;
        };
        if let Some(&other) = first.get(interface) {
            let line = check.line(&port_path(other).key("device"));
            let message = format!("interface `{interface}` is used twice");
            let hint = format!("the port on line {line} uses it already; choose another");
            check.error(&path, message, hint);
        } else {
            first.insert(interface.to_owned(), i);
        }
    }
}

/// Refuses two ports with one MAC address: on a common segment neither would get its frames.
fn one_mac_each(check: &mut Check<'_>) {
    let file = check.file;
    for (i, port) in file.ports.iter().enumerate() {
        let (Some(mac), path) = (port.mac, port_path(i).key("mac")) else {
            continue;
        };
        let same = |other: &Port| other.mac == Some(mac);
        if mac == Mac::default() || mac.is_group() {
            continue;
        }
        let Some(other) = file.ports[..i].iter().position(same) else {
            continue;
        };
        let line = check.line(&port_path(other).key("mac"));
        let hint =
            format!("the port on line {line} has it already; leave mac out for the device's");
        check.error(&path, format!("`{mac}` is given twice"), hint);
    }
}

/// Checks that frames fit the device's packet ring: longer ones are silently dropped.
fn ring_frame(check: &mut Check<'_>, i: usize, port: &Port) {
    let Some(frame) = Device::parse(&port.device).and_then(|device| device.ring_frame()) else {
        return;
    };
    if !check.certain(&port_path(i).key("mtu")) {
        return;
    }
    let mtu = u64::from(port.mtu.get());
    if mtu + LINK_HEADERS + RING_HEADER > frame {
        let message = format!(
            "packets of {mtu} bytes do not fit net_af_packet's frames of {frame} bytes: they would vanish"
        );
        let room = frame.saturating_sub(LINK_HEADERS + RING_HEADER);
        let hint = format!(
            "add `,blocksz=73728,framesz=9216,framecnt=512` to the device, or set `mtu: {room}` or less"
        );
        check.error(&port_path(i).key("device"), message, hint);
    }
}

/// Returns the hint for an unknown device: a kernel interface's name is the usual mistake.
fn device_hint(text: &str) -> String {
    let name = !text.is_empty()
        && text.len() < 16
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if name {
        format!("for a kernel interface write \"net_af_packet0,iface={text}\"")
    } else {
        "write 0000:3b:00.0 for PCI (see lspci -D), or a net_... device".to_owned()
    }
}

fn mac(check: &mut Check<'_>, i: usize, port: &Port) {
    let Some(mac) = port.mac else { return };
    let path = port_path(i).key("mac");
    let hint = "use a unicast address, such as 02:00:00:00:01:01";
    if mac.is_group() {
        check.error(&path, format!("`{mac}` is a multicast address"), hint);
    } else if mac == Mac::default() {
        check.error(&path, "the address is all zero", hint);
    }
}

/// Requires a link speed not below the egress rate.
fn link_speed(check: &mut Check<'_>, i: usize, port: &Port) {
    let Some(link) = port.link_speed.written() else {
        return;
    };
    let path = port_path(i).key("link_speed");
    if link.0 == 0 {
        let hint = "write the link's speed, such as 100G, or auto";
        check.error(&path, "a link cannot have speed 0", hint);
    } else if let Some(speed) = port.speed.filter(|speed| *speed > link)
        && check.certain(&port_path(i).key("speed"))
    {
        let message = format!("link_speed {link} is less than the speed of {speed}");
        let hint = "speed shapes what leaves by the link: write at most link_speed";
        check.error(&path, message, hint);
    }
}

/// Refuses a transmit ring limit below one frame, which sends nothing.
fn outstanding(check: &mut Check<'_>, i: usize, port: &Port) {
    let frame = u64::from(port.mtu.get()) + LINK_HEADERS;
    let path = port_path(i).key("tx_outstanding");
    let bytes = match (port.tx_outstanding, port.speed) {
        (Some(Threshold::Bytes(bytes)), _) => bytes.0,
        (Some(depth), Some(speed)) => depth.bytes(speed),
        _ => return,
    };
    if bytes < frame && check.certain(&port_path(i).key("mtu")) {
        let message = format!("{bytes} bytes outstanding are less than a frame of {frame}");
        let hint = "leave it out for two frames or 2us of the link, whichever is more";
        check.error(&path, message, hint);
    }
}

fn vlans(check: &mut Check<'_>, i: usize, port: &Port) {
    for (v, vlan) in port.vlans.iter().enumerate() {
        let path = |v: usize| port_path(i).key("vlans").index(v).key("id");
        let earlier = port.vlans[..v].iter().position(|o| o.id == vlan.id);
        if let Some(other) = earlier.filter(|o| check.certain(&path(*o))) {
            let line = check.line(&path(other));
            let hint = format!("it is already on line {line}; put all its addresses there");
            let message = format!("VLAN {} is listed twice on `{}`", vlan.id, port.name);
            check.error(&path(v), message, hint);
        }
    }
}
