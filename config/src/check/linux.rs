//! Checks of the Linux integration: the namespace, the receive buffer and the interfaces' names.

use super::Check;
use crate::model::Linux;
use crate::resolved::linux_link;
use crate::tree::Path;
use crate::units::Bytes;

/// Range of the netlink receive buffer, in bytes.
const BUFFER: std::ops::RangeInclusive<u64> = (64 << 10)..=(1 << 30);
/// Maximum length of a namespace's name, which is a file name.
const LONGEST_NAME: usize = 255;

/// Maximum length of an interface name in Linux, in bytes.
const LONGEST_LINK: usize = 15;

/// Requires a unique Linux interface name for each port and VLAN.
fn links(check: &mut Check<'_>) {
    let ports = check.file.ports.clone();
    let untagged: Vec<&String> = ports.iter().map(|port| &port.name).collect();
    for (i, port) in ports.iter().enumerate() {
        let at = Path::root("ports").index(i);
        if ["lo", "all", "default"].contains(&port.name.as_str()) {
            let message = format!("Linux has something else by the name `{}`", port.name);
            check.error(&at.key("name"), message, "take another, such as dc0");
        }
        for (j, vlan) in port.vlans.iter().enumerate() {
            let link = linux_link(&port.name, Some(vlan.id.short()));
            let path = at.key("vlans").index(j).key("id");
            if link.len() > LONGEST_LINK {
                let message = format!("its link in Linux would be `{link}`, which is too long");
                let hint = format!(
                    "give the port a shorter name: {LONGEST_LINK} octets with the VLAN behind a dot"
                );
                check.error(&path, message, hint);
            } else if untagged.contains(&&link) {
                let message = format!("its link in Linux would be `{link}`, as a port is called");
                check.error(&path, message, "give that port another name");
            }
        }
    }
}

pub(super) fn check(check: &mut Check<'_>) {
    let linux = check.file.linux.clone();
    let path = |key: &str| Path::root("linux").key(key);
    let name = linux.netns.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain);
    if !is_name || name.starts_with('.') {
        let hint = "write a name of letters, digits, - and _, such as npcc, or none for the namespace the switch is started in";
        let message = format!("`{name}` is no name of a network namespace");
        check.error(&path("netns"), message, hint);
    }
    if linux.integrate {
        links(check);
    }
    if !BUFFER.contains(&linux.receive_buffer.0) {
        let (least, most) = (Bytes(*BUFFER.start()), Bytes(*BUFFER.end()));
        let message = format!(
            "a receive buffer of {} is out of range",
            linux.receive_buffer
        );
        let usual = Linux::default().receive_buffer;
        let hint = format!("write {least} to {most}; {usual} is usual");
        check.error(&path("receive_buffer"), message, hint);
    }
}
