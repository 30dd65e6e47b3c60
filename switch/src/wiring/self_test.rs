//! Pause self-test at start: sends one frame, and checks that the device takes it and counts it as sent.
//!
//! The frame has a pause time of 0, which ends pauses that were never requested, so it disturbs no peer. A success shows that the driver
//! hands such frames to the device and that the device reports them as sent. It does not show that the peer receives or obeys them, nor
//! that the device passes the peer's pause frames on to us. Those show in the peer's counters and in RX PFC of `show pfc`.

use std::time::{Duration, Instant};

use npcc_dpdk::{Burst, Mempool, Port, PortError};
use npcc_pipeline::units::Mac;
use npcc_pipeline::wire::mac_control;

use super::backend::SelfTest;

/// Longest time for the device to take the frame and count it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Sends a frame on a started port, by its first transmit queue, and compares the device's counters.
///
/// # Errors
/// Fails if the port has no such queue or does not report its link or counters.
pub(super) fn run(
    port: &Port,
    pool: &Mempool,
    mac: Mac,
    classes: u8,
) -> Result<SelfTest, PortError> {
    if !port.link()?.up {
        return Ok(SelfTest::LinkDown);
    }
    let mut tx = port.tx_queue(0)?;
    let before = port.stats()?;
    let mut burst = Burst::<1>::new();
    if pool.alloc_bulk(&mut burst, 1).is_err() {
        return Ok(SelfTest::NotRun);
    }
    let filled = burst.iter_mut().all(|mbuf| {
        let frame = mac_control::build(mac, classes, [0; 8]);
        mbuf.fill(&frame).is_ok()
    });
    if !filled {
        return Ok(SelfTest::NotRun);
    }
    let deadline = Instant::now() + PATIENCE;
    while tx.tx(&mut burst) == 0 {
        if Instant::now() >= deadline {
            return Ok(SelfTest::Refused);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    loop {
        let now = port.stats()?;
        if now.tx_packets > before.tx_packets {
            return Ok(SelfTest::Sent);
        }
        if now.tx_errors > before.tx_errors {
            return Ok(SelfTest::Refused);
        }
        if Instant::now() >= deadline {
            return Ok(SelfTest::Uncounted);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
