//! Checks of ports: names, devices, MAC addresses, VLANs, speeds.

use super::{Check, port_path};
use crate::model::Port;
use crate::resolved::{Device, RING_HEADER};
use crate::sizing::LINK_HEADERS;
use crate::tree::Path;
use crate::units::{BitRate, Mac, Threshold};

pub(super) fn check(check: &mut Check<'_>) {
    names(check);
    devices(check);
    duplicates(check);
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
    for (i, port) in file.ports.iter().enumerate() {
        let path = port_path(i).key("name");
        let name = port.name.as_str();
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
        if !(1..=15).contains(&name.len()) || !name.bytes().all(plain) {
            let hint = "1 to 15 characters of a-z, 0-9, _ and -, such as wan0";
            check.error(&path, format!("`{name}` cannot be a port's name"), hint);
        }
    }
}

fn devices(check: &mut Check<'_>) {
    let file = check.file;
    for (i, port) in file.ports.iter().enumerate() {
        let path = port_path(i).key("device");
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
    }
}

/// Refuses names, devices, kernel interfaces and MAC addresses of an earlier port. Of two ports on one interface each would receive what the other
/// sends and all that arrives; with one MAC address on a common segment neither would get its frames.
fn duplicates(check: &mut Check<'_>) {
    let name = |port: &Port| Some(port.name.clone());
    unique(check, "name", name, |name, line, _| {
        let hint = format!("the port on line {line} has it already; choose another");
        (format!("there are two ports `{name}`"), hint)
    });
    let device = |port: &Port| Some(Device::parse(&port.device)?.id().to_owned());
    unique(check, "device", device, |id, line, i| {
        let stem = id.trim_end_matches(|c: char| c.is_ascii_digit());
        let hint = if id.starts_with("net_") {
            format!("line {line} uses the name; number them, such as {stem}{i}")
        } else {
            format!("the port on line {line} uses it already")
        };
        (format!("device `{id}` is used twice"), hint)
    });
    let interface = |port: &Port| Some(Device::parse(&port.device)?.interface()?.to_owned());
    unique(check, "device", interface, |interface, line, _| {
        let hint = format!("the port on line {line} uses it already; choose another");
        (format!("interface `{interface}` is used twice"), hint)
    });
    let is_an_address = |mac: &Mac| *mac != Mac::default() && !mac.is_group();
    let mac = |port: &Port| port.mac.filter(is_an_address);
    unique(check, "mac", mac, |mac, line, _| {
        let hint =
            format!("the port on line {line} has it already; leave mac out for the device's");
        (format!("`{mac}` is given twice"), hint)
    });
}

/// Refuses a port's value under `key` that an earlier port has; `wrong` gives message and hint from the value, the other's line and the port's index.
fn unique<T: PartialEq>(
    check: &mut Check<'_>,
    key: &str,
    value_of: impl Fn(&Port) -> Option<T>,
    wrong: impl Fn(&T, usize, usize) -> (String, String),
) {
    let ports = &check.file.ports;
    for (i, port) in ports.iter().enumerate() {
        let Some(value) = value_of(port) else {
            continue;
        };
        let path = |port: usize| port_path(port).key(key);
        let earlier = (0..i).zip(ports).find(|(other, port)| {
            check.certain(&path(*other)) && value_of(port).as_ref() == Some(&value)
        });
        if let Some((other, _)) = earlier {
            let (message, hint) = wrong(&value, check.line(&path(other)), i);
            check.error(&path(i), message, hint);
        }
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
