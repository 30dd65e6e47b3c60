//! Every example in `examples/` is a complete configuration that runs as it stands.

use std::path::{Path, PathBuf};

use npcc_config::{Config, Sizing, load};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    all.sort();
    all
}

fn example(name: &str) -> Config {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    load(&path)
        .unwrap_or_else(|report| panic!("{report}"))
        .config
}

#[test]
fn all_load_and_can_be_sized() {
    let all = examples();
    assert!(all.len() >= 3, "examples went missing: {all:?}");
    for path in all {
        let loaded = load(&path).unwrap_or_else(|report| panic!("{report}"));
        let sizing = Sizing::of(&loaded.config);
        assert!(sizing.mbufs > 0 && sizing.total_bytes() > sizing.mempool_bytes);
    }
}

/// The batch that drivers confirm late is in the headroom of PCI ports, and `check` says how much it is. A pool of 16 MB, as
/// `scripts/pci-guest` has it, has room for that of two.
#[test]
fn a_small_pool_has_room_for_the_unconfirmed_frames_of_two_cards() {
    for (mtu, pool) in [(9_100, 64), (9_100, 16)] {
        let text = format!(
            "version: 1\nports:\n  - {{ name: a, device: '0000:3b:00.0', mtu: {mtu} }}\n  - {{ name: b, device: '0000:3b:00.1', mtu: {mtu} }}\n\
             buffer: {{ pool: {pool}MB }}\n"
        );
        let loaded =
            npcc_config::parse("t.yaml", &text).unwrap_or_else(|report| panic!("{report}"));
        let sizing = Sizing::of(&loaded.config);
        let batch = 64 * (mtu + 46);
        assert!(sizing.headroom.iter().all(|row| row.batch == batch));
        let said = format!("up to {batch} bytes of it for frames in the transmit ring");
        assert!(sizing.to_string().contains(&said), "{sizing}");
    }
}

#[test]
fn both_readers_agree() {
    for path in examples() {
        let text = std::fs::read_to_string(&path).unwrap();
        let file: npcc_config::model::ConfigFile = serde_yaml::from_str(&text).unwrap();
        // A configuration that is written out must be read back unchanged.
        let again = serde_yaml::to_string(&file).unwrap();
        let ours = npcc_config::parse("first", &text).unwrap().config;
        let theirs = npcc_config::parse("again", &again).unwrap_or_else(|r| panic!("{r}\n{again}"));
        assert_eq!(ours, theirs.config, "{}", path.display());
    }
}

#[test]
fn the_edge_is_as_designed() {
    let config = example("dci-edge.yaml");
    let (wan, port) = config.port("wan0").unwrap();
    assert_eq!(port.speed.unwrap().0, 10_000_000_000);
    assert_eq!(
        port.npcc.as_ref().unwrap().priorities().collect::<Vec<_>>(),
        [3]
    );
    assert_eq!(config.routes[0].via[0].port, wan);
    assert_eq!(config.ports[0].vlans[0].id, 100);
    assert_eq!(config.lossless_mask(), 0b1000);
    assert_eq!(config.max_mtu(), 9100);
}

#[test]
fn only_the_lossless_example_and_the_deep_queue_of_the_capture_warn() {
    for path in examples() {
        let warnings = load(&path).unwrap().warnings;
        let warns = path.ends_with("dci-edge.yaml") || path.ends_with("pcap-lab.yaml");
        assert_eq!(
            warnings.len(),
            usize::from(warns),
            "{}: {warnings:?}",
            path.display()
        );
    }
}

#[test]
fn the_lab_splits_one_subnet_over_two_ports() {
    let config = example("pcap-lab.yaml");
    let ports: Vec<usize> = config.routes.iter().map(|r| r.via[0].port).collect();
    assert_eq!(ports, [0, 1]);
    assert_eq!(config.ports[0].qos.dscp[0], 3);
}
