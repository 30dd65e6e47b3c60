//! Checks of the cards of lossless ports against what is known of their pause support (`npcc_config::cards`).

use npcc_config::Config;
use npcc_config::cards::{Card, without_pause};
use npcc_config::model::PfcBackend;
use npcc_config::resolved::{Device, Port};

use crate::finding::{Check, Finding, Mend, Severity};
use crate::host::{DEVICES, Host};
use crate::interfaces::needs_pause;

/// Port with a lossless priority, and the row of its card.
struct Paused<'a> {
    port: &'a Port,
    address: &'a str,
    card: &'static Card,
}

/// Returns the ports that are to have pause and whose card this host shows. A virtual function is one whatever its identity.
fn paused<'a>(host: &Host, config: &'a Config) -> Vec<Paused<'a>> {
    let known = |port: &'a Port| {
        let Device::Pci { address, .. } = &port.device else {
            return None;
        };
        let (vendor, device) = host.card(address)?;
        let is_vf = host.exists(format!("{DEVICES}/{address}/physfn"));
        let card = Card::of_pci(vendor, device, is_vf)?;
        Some(Paused {
            port,
            address,
            card,
        })
    };
    let ports = config.ports.iter().filter(|port| needs_pause(port));
    let on = config.pfc.backend != PfcBackend::None;
    ports.filter(|_| on).filter_map(known).collect()
}

/// Returns the messages for ports that would not start on this host, because their cards are known not to have pause.
#[must_use]
pub fn rejected_ports(host: &Host, config: &Config) -> Vec<String> {
    let refused = |one: &Paused<'_>| {
        let why = one.card.reject_reason(config.pfc.backend, one.port.pfc)?;
        Some(without_pause(&one.port.name, why))
    };
    paused(host, config).iter().filter_map(refused).collect()
}

pub(crate) fn examine(host: &Host, config: &Config, found: &mut Vec<Finding>) {
    for one in paused(host, config) {
        let (card, port) = (one.card, one.port);
        let Some(why) = card.reason() else { continue };
        let refused = card.reject_reason(config.pfc.backend, port.pfc).is_some();
        found.push(Finding {
            check: Check::NicPause,
            severity: if refused {
                Severity::Error
            } else {
                Severity::Warning
            },
            place: format!("port {} ({})", port.name, one.address),
            what: format!("{}: {why}", card.name),
            mend: Mend::ByHand(
                "npcc-switch show pfc   # or qos.profile: roce-semi-lossless, or pfc: off on the port"
                    .to_owned(),
            ),
        });
    }
}
