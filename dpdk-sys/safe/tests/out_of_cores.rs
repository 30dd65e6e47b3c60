//! Packet memory in ordinary pages is kept out of core dumps, as the kernel says of each mapping.
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, which helpers lack"
)]

mod common;

use std::fs;

/// Returns the flags of the mapping that holds this address, from `/proc/self/smaps`.
fn flags_at(address: usize) -> Vec<String> {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut inside = false;
    for line in smaps.lines() {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        if let Some((start, end)) = range {
            let number = |text| usize::from_str_radix(text, 16);
            if let (Ok(start), Ok(end)) = (number(start), number(end)) {
                inside = (start..end).contains(&address);
            }
        }
        if let Some(flags) = line.strip_prefix("VmFlags: ").filter(|_| inside) {
            return flags.split_whitespace().map(str::to_owned).collect();
        }
    }
    Vec::new()
}

#[test]
fn no_buffer_is_in_a_mapping_that_is_dumped() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let mbuf = common::mbuf(&pool, &common::frame(1, 64));
    let address = mbuf.data().as_ptr().addr();
    let before = flags_at(address);
    assert!(
        !before.is_empty() && !before.contains(&"dd".to_owned()),
        "{before:?}"
    );
    eal.keep_out_of_cores().unwrap();
    eal.keep_out_of_cores().unwrap();
    let after = flags_at(address);
    assert!(after.contains(&"dd".to_owned()), "{after:?}");
    assert_eq!(mbuf.data(), common::frame(1, 64));
}
