//! Packet memory in hugepages is kept out of core dumps, that which EAL maps later too. Skips where no hugepages are free.

mod common;

use npcc_testkit::skip::skipped;
use std::fs;

use npcc_dpdk::{Eal, Mempool, MempoolConfig};

#[test]
fn no_hugepage_is_dumped_whenever_it_was_mapped() {
    if npcc_dpdk::hugepages_available() < 128 << 20 {
        skipped(
            "hugepages",
            "128 MiB of free huge pages (echo 64 > /proc/sys/vm/nr_hugepages)",
        );
        return;
    }
    let args = ["--in-memory", "--no-pci", "--no-telemetry", "-l", "0"];
    let eal = Eal::init(&args.map(str::to_owned)).unwrap();
    eal.keep_out_of_cores().unwrap();
    let config = MempoolConfig {
        name: "later".to_owned(),
        mbufs: 8191,
        cache: 0,
        frame_room: 2048,
        socket: None,
    };
    let pool = Mempool::new(&eal, &config).unwrap();
    let mbuf = common::mbuf(&pool, &common::frame(1, 64));
    let address = mbuf.data().as_ptr().addr();
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    let mut found = false;
    for line in smaps.lines() {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16);
        if let Some((Ok(start), Ok(end))) = range.map(|(a, b)| (number(a), number(b))) {
            inside = (start..end).contains(&address);
        }
        if let Some(flags) = line.strip_prefix("VmFlags: ") {
            let has = |flag| flags.split_whitespace().any(|one| one == flag);
            assert!(!has("ht") || has("dd"), "a hugepage is dumped: {flags}");
            found |= inside && has("ht");
        }
    }
    assert!(found, "the buffer is in no hugepage");
}
