//! The buffer of a pause frame is there when the pool is empty, which is when peers are paused. Earlier defect: it was asked for only then,
//! and a refusal was silent.
#![allow(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use npcc_dpdk::{Burst, Eal, Mempool, MempoolConfig};
use npcc_engine::worker::frame::Frame;
use npcc_engine::worker::ports::Spare;

#[test]
fn a_pause_frame_has_its_buffer_when_the_pool_is_empty() {
    let prefix = format!("--file-prefix=npcc-test-{}", std::process::id());
    let args = [
        "--no-huge",
        "-m",
        "64",
        "--no-shconf",
        "--no-pci",
        "-l",
        "0",
        &prefix,
    ];
    let eal = Eal::init(&args.map(str::to_owned)).unwrap();
    let config = MempoolConfig {
        name: "test".to_owned(),
        mbufs: 63,
        cache: 0,
        frame_room: 2048,
        socket: None,
    };
    let pool = Mempool::new(&eal, &config).unwrap();
    let mut spare = Spare::<Frame>::default();
    spare.keep(&pool);
    assert_eq!(pool.in_use(), 1);
    spare.keep(&pool);
    assert_eq!(pool.in_use(), 1, "one is enough");
    let mut all = Burst::<64>::new();
    while pool.alloc_bulk(&mut all, 1).is_ok() {}
    assert_eq!(pool.available(), 0);
    let frame = spare.filled(&pool, &[7; 60]).unwrap();
    let sent = frame.pop().unwrap();
    assert_eq!(sent.0.data(), [7; 60]);
    assert!(spare.filled(&pool, &[8; 60]).is_none(), "there is no other");
    all.free_all();
    assert!(spare.filled(&pool, &[9; 60]).is_some(), "asked again");
}
