//! Linux side of the ports: a TAP for each port and VLAN, and the kernel's desired state from the configuration.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::Context;
use npcc_config::Config;
use npcc_config::resolved::{self, NextHop};
use npcc_linux::netlink::ahead::Ahead;
use npcc_linux::netlink::wants::{StaticNeighbor, StaticRoute, Wanted};
use npcc_linux::tap::{Tap, TapPort};
use npcc_linux::{Integration, Left, Settings};
use npcc_pipeline::punt::Place;
use npcc_pipeline::units::{Mac, PortId};

use super::ports::OpenPort;
use crate::saved::SavedState;
use crate::saved::facts::Named;
use npcc_engine::linux_io::{HostInterface, HostPort};
use npcc_engine::log::note;

/// Prefix of the names of TAPs in the descriptor store.
const TAP: &str = "tap.";

/// TAP as a port towards Linux.
struct TapHost(Tap);

impl HostPort for TapHost {
    fn recv(&self, frame: &mut [u8]) -> io::Result<usize> {
        self.0.recv(frame)
    }

    fn send(&self, frame: &[u8]) -> io::Result<usize> {
        self.0.send(frame)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens an interface in Linux for each port and VLAN, those that the previous process left where it left any, and the kernel's routes,
/// which are not followed yet.
///
/// # Errors
/// Says what could not be made, and how to fix it.
pub fn open(
    config: &Config,
    ports: &[OpenPort],
    saved: &SavedState,
    ahead: Option<Ahead>,
) -> anyhow::Result<(Vec<HostInterface>, Integration)> {
    let macs: Vec<Mac> = ports.iter().map(|port| port.mac).collect();
    let settings = Settings {
        namespace: config.linux.namespace().map(str::to_owned),
        receive_buffer: receive_buffer(config),
        ports: taps(config, &macs),
        wanted: wanted(config),
        ..Settings::default()
    };
    let left = Left {
        taps: saved.store().take_all(TAP),
        wanted: saved.facts().wanted.map(|wanted| wanted.wanted()),
        ahead,
    };
    let named: Vec<String> = left.taps.keys().cloned().collect();
    let integration = Integration::after(left, settings);
    let mut integration = integration.context(
        "linux.integrate: start as root, or with CAP_NET_ADMIN, CAP_SYS_ADMIN and /dev/net/tun, or write linux: { integrate: false }",
    )?;
    for refused in integration.refused() {
        note(&format!("note: {refused}: another was made"));
    }
    let taps = integration.take_taps();
    let own = |name: &String| taps.iter().any(|tap| tap.settings().name == *name);
    for gone in named.iter().filter(|name| !own(name)) {
        note(&format!(
            "note: TAP {gone} is of no port any more: it is closed"
        ));
        // A service manager that is gone keeps no descriptors anyway.
        let _ = saved.store().forget(&format!("{TAP}{gone}"));
    }
    for tap in taps.iter().filter(|tap| tap.is_new()) {
        let name = &tap.settings().name;
        let kept = saved.store().save(&format!("{TAP}{name}"), tap.as_fd());
        if let Err(error) = kept {
            note(&format!(
                "note: the service manager does not take TAP {name}, which goes at the next restart: {error}"
            ));
        }
    }
    saved.change(|facts| facts.wanted = Some(Named::of(&wanted(config))));
    let interface = |tap: Tap| {
        let settings = tap.settings();
        HostInterface {
            place: Place {
                port: settings.port,
                vlan: settings.vlan,
            },
            host: Box::new(TapHost(tap)),
        }
    };
    let interfaces = taps.into_iter().map(interface);
    Ok((interfaces.collect(), integration))
}

/// Begins to read the kernel's state if the previous process left interfaces, and so routes: the dump runs while packet memory and ports
/// are opened. `None` if that is not possible: the state is read later.
#[must_use]
pub fn read_ahead(config: &Config, saved: &SavedState) -> Option<Ahead> {
    if !config.linux.integrate || !saved.store().has(TAP) {
        return None;
    }
    let namespace = config.linux.namespace().map(str::to_owned);
    Ahead::begin(namespace, receive_buffer(config)).ok()
}

fn receive_buffer(config: &Config) -> usize {
    usize::try_from(config.linux.receive_buffer.0).unwrap_or(usize::MAX)
}

fn taps(config: &Config, macs: &[Mac]) -> Vec<TapPort> {
    let ports = (0..).map(PortId).zip(config.ports.iter().zip(macs));
    let each = ports.flat_map(|(id, (port, mac))| {
        port.interfaces().map(move |interface| TapPort {
            name: link(port, interface.vlan),
            port: id,
            vlan: interface.vlan.unwrap_or(0),
            mac: *mac,
            mtu: u32::from(port.mtu),
        })
    });
    each.collect()
}

/// Returns the name in Linux of a port's interface.
fn link(port: &resolved::Port, vlan: Option<u16>) -> String {
    npcc_config::resolved::linux_link(&port.name, vlan)
}

/// Returns the kernel's desired state for a configuration.
#[must_use]
pub fn wanted(config: &Config) -> Wanted {
    let name = |port: usize, vlan| config.ports.get(port).map(|port| link(port, vlan));
    let interfaces = config.ports.iter().flat_map(|port| {
        let interfaces = port.interfaces();
        interfaces.map(|interface| (link(port, interface.vlan), interface.addresses.to_vec()))
    });
    let neighbor = |one: &resolved::Neighbor| {
        Some(StaticNeighbor {
            link: name(one.port, one.vlan)?,
            address: one.address,
            mac: one.mac,
        })
    };
    let hop = |hop: &NextHop| -> Option<(String, Option<IpAddr>)> {
        Some((name(hop.port, hop.vlan)?, Some(hop.address)))
    };
    let route = |route: &resolved::Route| StaticRoute {
        prefix: route.prefix,
        via: route.via.iter().filter_map(hop).collect(),
        metric: 0,
    };
    Wanted {
        addresses: interfaces.collect::<BTreeMap<_, _>>(),
        neighbors: config.neighbors.iter().filter_map(neighbor).collect(),
        routes: config.routes.iter().map(route).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_to_have_all_of_the_configuration() {
        let text = "version: 1
ports:
  - { name: dc0, device: net_null0, mtu: 4200, addresses: [10.0.1.1/24], vlans: [{ id: 100, addresses: [10.0.100.1/24] }] }
  - { name: wan0, device: net_null1, addresses: ['2001:db8:2::1/64'] }
routes:
  - { prefix: 10.0.3.0/24, via: [10.0.100.7, 10.0.1.9] }
neighbors:
  - { address: 10.0.100.7, port: dc0, mac: '02:00:00:00:07:07' }
linux: { integrate: true }
";
        let config = npcc_config::parse("t.yaml", text).unwrap().config;
        let macs = [Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
        let names: Vec<_> = taps(&config, &macs)
            .into_iter()
            .map(|tap| (tap.name, tap.port.0, tap.vlan, tap.mtu))
            .collect();
        let expected = [
            ("dc0", 0, 0, 4200),
            ("dc0.100", 0, 100, 4200),
            ("wan0", 1, 0, 9000),
        ];
        let expected = expected.map(|(name, port, vlan, mtu)| (name.to_owned(), port, vlan, mtu));
        assert_eq!(names[..2], expected[..2]);
        assert_eq!(names[2].0, "wan0");
        let wanted = wanted(&config);
        assert_eq!(
            wanted.addresses["dc0.100"],
            ["10.0.100.1/24".parse().unwrap()]
        );
        let [neighbor] = &wanted.neighbors[..] else {
            panic!()
        };
        assert_eq!((neighbor.link.as_str(), neighbor.mac.0[4]), ("dc0.100", 7));
        let via = &wanted.routes[0].via;
        assert_eq!((via[0].0.as_str(), via[1].0.as_str()), ("dc0.100", "dc0"));
    }
}
