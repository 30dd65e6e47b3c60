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
    let pause = || {
        std::thread::sleep(Duration::from_millis(1));
        Instant::now() < deadline
    };
    let counts = || {
        let now = port.stats()?;
        let grew = |now: u64, before: u64| now > before;
        Ok((
            grew(now.tx_packets, before.tx_packets),
            grew(now.tx_errors, before.tx_errors),
        ))
    };
    judge(|| tx.tx(&mut burst) == 1, counts, pause)
}

/// Judges a device by one frame. `send` returns true once the device takes it; `counts` returns true twice if it counted a frame as sent, and an
/// error; `pause` waits a while, and returns false once patience is over.
fn judge<E>(
    mut send: impl FnMut() -> bool,
    mut counts: impl FnMut() -> Result<(bool, bool), E>,
    mut pause: impl FnMut() -> bool,
) -> Result<SelfTest, E> {
    while !send() {
        if !pause() {
            return Ok(SelfTest::Refused);
        }
    }
    loop {
        match counts()? {
            (true, _) => return Ok(SelfTest::Sent),
            (_, true) => return Ok(SelfTest::Refused),
            _ if !pause() => return Ok(SelfTest::Uncounted),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Steps of patience.
    const STEPS: u32 = 100;

    /// Result for a device that takes the frame at one step, counts it at another, and an error at a third.
    fn of(takes: u32, sent: u32, error: u32) -> SelfTest {
        let step = Cell::new(0);
        let pause = || {
            step.set(step.get() + 1);
            step.get() < STEPS
        };
        let counts = || Ok::<_, ()>((step.get() >= sent, step.get() >= error));
        judge(|| step.get() >= takes, counts, pause).unwrap()
    }

    #[test]
    fn a_device_is_judged_by_what_it_does_with_the_frame() {
        const NEVER: u32 = STEPS + 1;
        for (takes, sent, error, result) in [
            (0, 0, NEVER, SelfTest::Sent),
            (STEPS - 2, STEPS - 1, NEVER, SelfTest::Sent),
            (NEVER, NEVER, NEVER, SelfTest::Refused),
            (0, NEVER, 5, SelfTest::Refused),
            (0, NEVER, NEVER, SelfTest::Uncounted),
            (0, NEVER - 1, NEVER, SelfTest::Uncounted),
        ] {
            assert_eq!(of(takes, sent, error), result, "{takes} {sent} {error}");
        }
    }

    #[test]
    fn a_device_that_does_not_report_its_counters_fails_the_start() {
        assert_eq!(
            judge(|| true, || Err("no counters"), || true),
            Err("no counters")
        );
    }
}
