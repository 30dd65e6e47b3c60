//! Settings for punt and inject: rates, the ports' interfaces and addresses, the queues for frames from Linux.

use std::net::IpAddr;

use npcc_config::{Config, resolved};
use npcc_pipeline::punt::{PuntClass, PuntConfig, PuntInterface, PuntPort, PuntRates};
use npcc_pipeline::units::{Mac, Priority};

/// Returns each worker's punt settings; `None` if Linux is not integrated. `macs` are the ports' addresses.
#[must_use]
pub fn config(config: &Config, macs: &[Mac]) -> Option<PuntConfig> {
    let ports = config.ports.iter().zip(macs);
    config.linux.integrate.then(|| PuntConfig {
        rates: rates(config),
        ports: ports.map(|(resolved, mac)| port(resolved, *mac)).collect(),
        control: control(config),
        ordinary: ordinary(config),
    })
}

/// Returns the punt rate of each class, in frames per second.
#[must_use]
pub fn rates(config: &Config) -> PuntRates {
    let punt = &config.linux.punt;
    PuntRates {
        classes: PuntClass::ALL.map(|class| punt.of(class).get()),
        asks: punt.unresolved.get(),
        icmp_errors: punt.icmp_errors.get(),
    }
}

/// Returns a port's interfaces, each with its first address of either family.
fn port(resolved: &resolved::Port, mac: Mac) -> PuntPort {
    let interfaces = resolved.interfaces().map(|own| {
        let addresses: Vec<IpAddr> = own.addresses.iter().map(|net| net.addr()).collect();
        interface(own.vlan.unwrap_or(0), mac, &addresses)
    });
    PuntPort {
        interfaces: interfaces.collect(),
        macs: vec![],
    }
}

/// Returns an interface with these addresses, of which the first of either family is the source of ICMP errors, and with the link-local
/// address that Linux derives from the MAC address.
#[must_use]
pub fn interface(vlan: u16, mac: Mac, addresses: &[IpAddr]) -> PuntInterface {
    let mut interface = PuntInterface::new(vlan, mac);
    for address in addresses {
        match address {
            IpAddr::V4(v4) => interface.v4 = interface.v4.or(Some(*v4)),
            IpAddr::V6(v6) if !v6.is_unicast_link_local() => {
                interface.v6 = interface.v6.or(Some(*v6));
            }
            IpAddr::V6(v6) if !interface.link_locals.contains(v6) => {
                interface.link_locals.push(*v6)
            }
            IpAddr::V6(_) => {}
        }
    }
    interface
}

/// Returns the queue of BFD and routing protocols: the highest strict one that is not lossless, under its cap; else that of CNPs.
fn control(config: &Config) -> Priority {
    let control = |priority: &Priority| {
        let resolved = |port: &resolved::Port| port.qos.priorities[priority.index()].is_control();
        config.ports.iter().all(resolved)
    };
    let strict = Priority::all().rev().find(control);
    let cnp = Priority::new(config.npcc.cnp.priority.byte());
    strict.unwrap_or_else(|| unless_lossless(config, cnp))
}

/// Returns the queue of ICMP errors, and of frames from Linux whose own queue is lossless.
fn ordinary(config: &Config) -> Priority {
    unless_lossless(
        config,
        Priority::new(config.common_qos().map_or(0, |qos| qos.default_priority)),
    )
}

/// Returns this priority, or the lowest that is not lossless.
fn unless_lossless(config: &Config, wanted: Priority) -> Priority {
    let lossless = config.lossless_mask();
    let lossy = |priority: &Priority| lossless & priority.bit() == 0;
    let mut candidates = std::iter::once(wanted).chain(Priority::all());
    candidates.find(lossy).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version: 1
ports:
  - { name: dc0, device: net_null0, addresses: [10.0.1.1/24, 10.0.9.1/24, '2001:db8:1::1/64'], vlans: [{ id: 100, addresses: [10.0.100.1/24] }] }
  - { name: wan0, device: net_null1 }
linux: { integrate: true, punt: { bfd: 7 } }
";

    #[test]
    fn interfaces_have_the_first_address_of_each_family() {
        let parsed = npcc_config::parse("t.yaml", TEXT).unwrap().config;
        let macs = [Mac([2, 0, 0, 0, 1, 1]), Mac([2, 0, 0, 0, 1, 2])];
        let made = config(&parsed, &macs).unwrap();
        assert_eq!(made.rates.classes[0], 7);
        let of = |port: usize, vlan| made.ports[port].of(vlan).unwrap();
        let text = |interface: &PuntInterface| {
            (
                interface.v4.map(|v4| v4.to_string()),
                interface.v6.map(|v6| v6.to_string()),
            )
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(text(of(0, 0)), (some("10.0.1.1"), some("2001:db8:1::1")));
        assert_eq!(text(of(0, 100)), (some("10.0.100.1"), None));
        assert_eq!(text(of(1, 0)), (None, None));
        assert_eq!(of(1, 0).link_locals[0].to_string(), "fe80::ff:fe00:102");
        // Priority 3 is lossless, 6 is strict.
        assert_eq!((made.control.get(), made.ordinary.get()), (6, 0));
        let off = TEXT.replace("true", "false");
        let parsed = npcc_config::parse("t.yaml", &off).unwrap().config;
        assert!(config(&parsed, &macs).is_none());
    }

    #[test]
    fn what_linux_sends_enters_no_lossless_queue() {
        let text = TEXT.to_owned()
            + "qos: { default_priority: 3, priorities: { 6: { scheduler: dwrr, weight: 10, lossless: true } } }\nnpcc: { cnp: { priority: 7 } }\n";
        let parsed = npcc_config::parse("t.yaml", &text).unwrap();
        let made = config(&parsed.config, &[]).unwrap();
        assert_eq!((made.control.get(), made.ordinary.get()), (7, 0));
    }
}
