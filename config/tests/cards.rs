//! The table of cards in the guide is the one that the start and `check` use, and the settings that a refusal names are accepted.

use npcc_config::Config;
use npcc_config::cards::{CARDS, Card, rows, without_pause};
use npcc_config::model::{PfcBackend, PortPfc};

/// Returns the rows of the table in docs/lossless.md, cell by cell.
fn documented() -> Vec<Vec<String>> {
    let guide = include_str!("../../docs/lossless.md");
    let header =
        "| card | DPDK driver | receives 0x8808 | sends it | hardware PFC | with `auto` | source |";
    let rows = guide.lines().skip_while(|line| *line != header).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn the_guide_has_the_table_of_cards() {
    let of_card = |card: &'static Card| {
        let drivers = match card.drivers {
            [] => "any other".to_owned(),
            all => all.join(", "),
        };
        [
            card.name.to_owned(),
            drivers,
            card.receives.to_string(),
            card.sends.to_string(),
            card.hardware.to_string(),
            card.decision().to_owned(),
            card.source.to_owned(),
        ]
        .to_vec()
    };
    let expected: Vec<Vec<String>> = rows().map(of_card).collect();
    let lines = |rows: &[Vec<String>]| {
        let line = |row: &Vec<String>| format!("| {} |\n", row.join(" | "));
        rows.iter().map(line).collect::<String>()
    };
    assert_eq!(lines(&documented()), lines(&expected));
}

#[test]
fn a_card_is_the_same_by_its_identity_and_by_its_driver() {
    for (driver, vendor, device) in [
        ("mlx5_pci", 0x15b3, 0x1021),
        ("net_i40e", 0x8086, 0x158b),
        ("net_bnxt", 0x14e4, 0x1751),
        ("net_ena", 0x1d0f, 0xec20),
        ("net_ice", 0x8086, 0x1592),
        ("net_hns3", 0x19e5, 0xa222),
        ("net_iavf", 0x8086, 0x1889),
        ("net_virtio", 0x1af4, 0x1041),
        ("net_vmxnet3", 0x15ad, 0x07b0),
    ] {
        let by_pci = Card::of_pci(vendor, device, false).unwrap();
        assert_eq!(by_pci.name, Card::of_driver(driver, false).name);
        let function = Card::of_pci(vendor, device, true).unwrap();
        assert_eq!(function.name, Card::of_driver(driver, true).name);
    }
    assert!(Card::of_pci(0x8086, 0x10fb, false).is_none(), "an 82599");
    // Virtual functions in a guest, whose sysfs has no `physfn`: of an 82599, an X550, an 82576 and an HNS3.
    for (vendor, device) in [
        (0x8086, 0x10ed),
        (0x8086, 0x1565),
        (0x8086, 0x10ca),
        (0x19e5, 0xa22f),
    ] {
        let card = Card::of_pci(vendor, device, false).unwrap();
        assert!(card.reason().is_some(), "{vendor:04x}:{device:04x}");
    }
}

/// Two ports of one card, as the default configuration has them.
const FILE: &str = "version: 1
ports:
  - { name: dc0, device: \"0000:3b:00.0\", pfc: auto, addresses: [10.0.1.1/24] }
  - { name: wan0, device: \"0000:3b:00.1\", pfc: auto, addresses: [10.0.2.1/24], npcc: { enable: true, queues: [3] } }
qos: { profile: roce-lossless }
";

/// Returns the settings that a message names, in order.
fn remedies(message: &str) -> Vec<(String, String)> {
    let quoted = message.split('`').skip(1).step_by(2);
    let setting = |text: &str| {
        let (key, value) = text.split_once(": ").unwrap();
        (key.to_owned(), value.to_owned())
    };
    quoted.map(setting).collect()
}

/// Writes a setting into the file, at the port if it is a port's.
fn written(text: &str, port: &str, (key, value): &(String, String)) -> String {
    let lines = text.lines().map(|line| match key.as_str() {
        "qos.profile" if line.starts_with("qos:") => format!("qos: {{ profile: {value} }}\n"),
        "pfc" if line.contains(&format!("name: {port},")) => {
            line.replace("pfc: auto", &format!("pfc: {value}")) + "\n"
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// Returns the message for the first port that does not start, all being ports of this card.
fn refused(config: &Config, card: &Card) -> Option<(String, String)> {
    config.ports.iter().find_map(|port| {
        let lossless = port.qos.lossless_mask() != 0 && port.pfc != PortPfc::Off;
        let why = card.reject_reason(config.pfc.backend, port.pfc)?;
        lossless.then(|| (port.name.clone(), without_pause(&port.name, why)))
    })
}

/// Earlier defect: `pfc.backend: none` and `pfc: off` on every port were advised, and the file was then refused.
#[test]
fn what_a_refusal_names_is_accepted_by_check_and_by_the_start() {
    let parse =
        |text: &str| npcc_config::parse("t.yaml", text).unwrap_or_else(|report| panic!("{report}"));
    let mut refusing = 0;
    for card in CARDS {
        let Some((_, message)) = refused(&parse(FILE).config, card) else {
            continue;
        };
        refusing += 1;
        let remedies = remedies(&message);
        let keys: Vec<&str> = remedies.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["qos.profile", "pfc"], "{message}");
        for (remedy, steps) in remedies.iter().zip([1, 2]) {
            let mut text = FILE.to_owned();
            for step in 0.. {
                let Some((port, _)) = refused(&parse(&text).config, card) else {
                    assert_eq!(step, steps, "{}: {remedy:?}", card.name);
                    break;
                };
                let changed = written(&text, &port, remedy);
                assert_ne!(changed, text, "{remedy:?} changes nothing");
                text = changed;
            }
        }
    }
    assert_eq!(refusing, 6);
    assert!(
        Card::of_driver("net_ice", false)
            .reject_reason(PfcBackend::Auto, PortPfc::Auto)
            .is_none()
    );
}
