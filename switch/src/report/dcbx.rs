//! Queue settings for hosts, as TLVs of DCBX: `lldpd` announces them, by the commands that `show dcbx` prints.
//!
//! IEEE 802.1Q-2018, D.2.10 (priorities that are paused) and D.2.11 (priority of each application). The switch is not willing: it
//! accepts nothing from the host's TLVs.

use std::fmt::Write;

use npcc_api::dcbx::{Application, Dcbx};
use npcc_api::model::Snapshot;
use npcc_api::qos::Qos;

/// Subtype of the PFC configuration TLV.
const PFC: u8 = 0x0b;
/// Subtype of the application priority TLV.
const APPLICATION: u8 = 0x0c;
/// Selector of an application by its UDP port (table D-9).
const UDP: u8 = 3;
/// Selector of an application by its DSCP (table D-9).
const DSCP: u8 = 5;
/// The UDP port of RoCEv2 (IBTA, annex A17).
const ROCEV2: u16 = 4791;

fn octets(of: &Application) -> [u8; 3] {
    let selector = if of.selector == "dscp" { DSCP } else { UDP };
    let [high, low] = of.value.to_be_bytes();
    [of.priority << 5 | selector, high, low]
}

/// Derives the TLVs from `qos`: RoCEv2 gets the first lossless priority that a frame can have, and every DSCP the priority that its
/// frames get, where DSCPs are trusted.
#[must_use]
pub fn of(qos: &Qos, ports: Vec<String>) -> Dcbx {
    let lossless = || qos.priorities.iter().filter(|queue| queue.lossless);
    let (trust, default) = (qos.trust.as_str(), qos.default_priority);
    let reached = |priority: u8| match trust {
        "port" => priority == default,
        "pcp" => *qos.pcp_to_priority.get(&priority).unwrap_or(&default) == priority,
        _ => priority == default || qos.dscp_to_priority.values().any(|to| *to == priority),
    };
    let roce = lossless()
        .find(|queue| reached(queue.priority))
        .map(|queue| Application {
            selector: "udp-port".to_owned(),
            value: ROCEV2,
            priority: queue.priority,
        });
    let by_dscp = qos
        .dscp_to_priority
        .iter()
        .filter(|_| matches!(trust, "dscp" | "both"));
    let by_dscp = by_dscp.map(|(dscp, priority)| Application {
        selector: "dscp".to_owned(),
        value: u16::from(*dscp),
        priority: *priority,
    });
    Dcbx {
        ports,
        pfc: lossless().fold(0, |all, queue| {
            all | 1u8.checked_shl(queue.priority.into()).unwrap_or(0)
        }),
        applications: roce.into_iter().chain(by_dscp).collect(),
    }
}

/// Returns the TLVs to announce: their subtypes and the octets after them, under the OUI 00-80-C2.
fn tlvs(of: &Dcbx) -> [(u8, Vec<u8>); 2] {
    // Not willing, eight classes.
    let pfc = vec![8, of.pfc];
    let applications = of.applications.iter().flat_map(octets);
    [
        (PFC, pfc),
        (
            APPLICATION,
            std::iter::once(0).chain(applications).collect(),
        ),
    ]
}

/// Returns commands for `lldpcli -c FILE`.
#[must_use]
pub fn text(of: &Dcbx) -> String {
    let mut out = String::new();
    for port in &of.ports {
        for (subtype, octets) in tlvs(of) {
            let octets: Vec<String> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
            let octets = octets.join(",");
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "configure ports {port} lldp custom-tlv replace oui 00,80,c2 subtype {subtype} oui-info {octets}"
            );
        }
    }
    out
}

/// Derives the TLVs from the snapshot of a running switch.
#[must_use]
pub fn of_snapshot(all: &Snapshot) -> Dcbx {
    let ports = all.ports.iter().map(|port| port.name.clone()).collect();
    self::of(&all.qos, ports)
}

/// Renders `show dcbx`.
#[must_use]
pub fn shown(snapshot: &Snapshot) -> String {
    text(&of_snapshot(snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_api::qos::QosPriority;

    fn lossless_three(trust: &str) -> Qos {
        Qos {
            trust: trust.to_owned(),
            dscp_to_priority: [(26, 3), (48, 6)].into(),
            pcp_to_priority: [(3, 3), (6, 6)].into(),
            priorities: vec![QosPriority {
                priority: 3,
                lossless: true,
                ..QosPriority::default()
            }],
            ..Qos::default()
        }
    }

    fn applications(qos: &Qos) -> Vec<(String, u16, u8)> {
        let announced = of(qos, Vec::new()).applications.into_iter();
        announced
            .map(|one| (one.selector, one.value, one.priority))
            .collect()
    }

    #[test]
    fn dcbx_announces_what_each_trust_makes_of_a_frame() {
        let roce = |to| ("udp-port".to_owned(), ROCEV2, to);
        let dscp = |dscp, to| ("dscp".to_owned(), dscp, to);
        let by_dscp = [roce(3), dscp(26, 3), dscp(48, 6)];
        assert_eq!(applications(&lossless_three("dscp")), by_dscp);
        assert_eq!(applications(&lossless_three("both")), by_dscp);
        assert_eq!(applications(&lossless_three("pcp")), [roce(3)]);
        assert_eq!(applications(&lossless_three("port")), []);
        let all_in_three = Qos {
            default_priority: 3,
            ..lossless_three("port")
        };
        assert_eq!(applications(&all_in_three), [roce(3)]);
        let elsewhere = Qos {
            pcp_to_priority: [(6, 6)].into(),
            ..lossless_three("pcp")
        };
        assert_eq!(applications(&elsewhere), [], "no tag leads there");
        let unmapped = Qos {
            dscp_to_priority: [(48, 6)].into(),
            ..lossless_three("both")
        };
        assert_eq!(applications(&unmapped), [dscp(48, 6)]);
    }

    #[test]
    fn dcbx_announces_the_lossless_priority_to_roce() {
        let qos = lossless_three("dscp");
        let reported = of(&qos, vec!["dc0".to_owned()]);
        assert_eq!(
            text(&reported),
            "configure ports dc0 lldp custom-tlv replace oui 00,80,c2 subtype 11 oui-info 08,08\n\
             configure ports dc0 lldp custom-tlv replace oui 00,80,c2 subtype 12 oui-info 00,63,12,b7,65,00,1a,c5,00,30\n"
        );
    }
}
