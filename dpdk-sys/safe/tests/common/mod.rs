//! Shared code of tests with a real EAL. EAL starts once in a process, so each of these files holds
//! one such test.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "clippy knows tests by their attribute, which helpers lack"
)]

use npcc_dpdk::{Burst, Eal, Mbuf, Mempool, MempoolConfig};

/// Returns arguments for an EAL that needs no hugepages, no hardware and no privilege of its own.
pub(crate) fn eal_args(extra: &[&str]) -> Vec<String> {
    let prefix = format!("--file-prefix=npcc-test-{}", std::process::id());
    [
        "--no-huge",
        "-m",
        "64",
        "--no-shconf",
        "--no-pci",
        "--no-telemetry",
        "--log-level=warning",
        &prefix,
    ]
    .iter()
    .chain(extra)
    .map(|&arg| arg.to_owned())
    .collect()
}

/// Starts an EAL with one lcore.
pub(crate) fn eal() -> Eal {
    Eal::init(&eal_args(&["-l", "0"])).unwrap()
}

/// Creates a pool of 255 buffers for frames of up to `frame_room` bytes.
pub(crate) fn pool(eal: &Eal, frame_room: u16) -> Mempool {
    let config = MempoolConfig {
        name: "test".to_owned(),
        mbufs: 255,
        cache: 0,
        frame_room,
        socket: None,
    };
    Mempool::new(eal, &config).unwrap()
}

/// Builds a frame of `len` bytes that carries `tag` and whose every byte depends on it.
pub(crate) fn frame(tag: u16, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0_u16..)
        .map(|i| i.wrapping_mul(31).wrapping_add(tag).to_be_bytes()[1])
        .take(len)
        .collect();
    bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    bytes[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
    bytes[14..16].copy_from_slice(&tag.to_be_bytes());
    bytes
}

/// Allocates a buffer filled with a frame.
pub(crate) fn mbuf(pool: &Mempool, frame: &[u8]) -> Mbuf {
    let mut mbuf = pool.alloc().unwrap();
    mbuf.fill(frame).unwrap();
    mbuf
}

/// Allocates a burst of frames of 64 bytes, tagged from `first` on.
pub(crate) fn burst<const N: usize>(pool: &Mempool, first: u16, count: u16) -> Burst<N> {
    let mut burst = Burst::new();
    for tag in first..first + count {
        burst.push(mbuf(pool, &frame(tag, 64))).unwrap();
    }
    burst
}

/// Returns the tags of the frames in a burst, checking every byte on the way.
pub(crate) fn tags<const N: usize>(burst: &Burst<N>) -> Vec<u16> {
    burst
        .iter()
        .map(|mbuf| {
            let tag = u16::from_be_bytes([mbuf.data()[14], mbuf.data()[15]]);
            assert_eq!(
                mbuf.data(),
                frame(tag, mbuf.data().len()),
                "frame {tag} was damaged"
            );
            tag
        })
        .collect()
}
