//! Tests of shares, rates and marks at full width: sonic-mgmt's DWRR (sai_qos_tests.py) and docs/testplan/ecn (ECN_ACCURACY,
//! EGRESS_ECN).

use crate::rig::{GIG, Rig, Setup, prio, wire};
use npcc_pipeline::egress::ecn::{CERTAIN, Red};
use npcc_pipeline::egress::port::EgressQueueConfig;
use npcc_pipeline::egress::scheduler::Discipline;
use npcc_pipeline::frame::FrameBuf;
use npcc_pipeline::units::{BitRate, Nanos, PortId};

fn queues(of: impl Fn(u8) -> EgressQueueConfig) -> [EgressQueueConfig; 8] {
    std::array::from_fn(|n| of(n as u8))
}

/// Keeps the queues of `classes` backlogged for `time` and returns the wire bytes each sent.
fn serve(rig: &mut Rig, classes: u8, len: impl Fn(u8) -> usize, from: u64, time: u64) -> [u64; 8] {
    let mut sent = [0; 8];
    let mut now = from;
    while now < from + time {
        for n in (0..8).filter(|n| classes & 1 << n != 0) {
            if rig.depth(1, n) < 40_000 {
                rig.push(0, 1, n, len(n), 32, now);
            }
        }
        for frame in rig.pull(1, now) {
            sent[frame.meta.priority.index()] += u64::from(frame.meta.wire_len());
        }
        now += 500;
    }
    sent
}

fn weighted(weights: [u8; 8]) -> Setup {
    Setup {
        rate: Some(BitRate(10 * GIG)),
        pool: 1 << 22,
        queues: queues(|n| EgressQueueConfig {
            discipline: Discipline::Dwrr(weights[usize::from(n)]),
            ..EgressQueueConfig::default()
        }),
        ..Setup::default()
    }
}

/// Asserts |bytes - share| <= max(1 %, one MTU + one quantum), at 10G, with frames of different lengths.
fn assert_shares(sent: [u64; 8], weights: [u8; 8], classes: u8) {
    let of = |n: &usize| classes & 1 << n != 0;
    let total: u64 = (0..8).filter(of).map(|n| sent[n]).sum();
    let sum: u64 = (0..8).filter(of).map(|n| u64::from(weights[n])).sum();
    for n in (0..8).filter(of) {
        let share = total * u64::from(weights[n]) / sum;
        let slack = (share / 100).max(9_222 + 256 * u64::from(weights[n]));
        assert!(
            sent[n].abs_diff(share) <= slack,
            "queue {n}: {} of {share}",
            sent[n]
        );
    }
}

/// DWRR with SONiC's default weights, 14 lossy and 15 lossless.
#[test]
fn dwrr_shares() {
    let weights = [14, 14, 14, 15, 15, 14, 14, 14];
    let mut rig = weighted(weights).build();
    let sent = serve(
        &mut rig,
        0xff,
        |n| 300 + 400 * usize::from(n),
        0,
        20_000_000,
    );
    assert_shares(sent, weights, 0xff);
    let due = BitRate(10 * GIG).bytes_in(Nanos(20_000_000));
    assert!(
        sent.iter().sum::<u64>().abs_diff(due) < 60_000,
        "and the port is full"
    );
}

/// A weight changed at run time takes effect at once.
#[test]
fn dwrr_weight_change_at_run_time() {
    let mut rig = weighted([50; 8]).build();
    let even = serve(&mut rig, 0b1001, |_| 1000, 0, 10_000_000);
    assert_shares(even, [50; 8], 0b1001);
    let served_by = |rig: &mut Rig, discipline| {
        let config = EgressQueueConfig {
            discipline,
            ..EgressQueueConfig::default()
        };
        rig.path.reconfigure_queue(PortId(1), prio(3), &config);
    };
    served_by(&mut rig, Discipline::Dwrr(10));
    let uneven = serve(&mut rig, 0b1001, |_| 1000, 10_000_000, 10_000_000);
    assert_shares(uneven, [50, 0, 0, 10, 0, 0, 0, 0], 0b1001);
    served_by(&mut rig, Discipline::Strict);
    let strict = serve(&mut rig, 0b1001, |_| 1000, 20_000_000, 10_000_000);
    assert!(strict[0] < 50_000, "strict takes it all: {strict:?}");
}

/// A paused queue's share goes to the others; afterwards it has no claim to it.
#[test]
fn a_paused_queue_saves_nothing_up() {
    let mut rig = weighted([50; 8]).build();
    rig.hear(1, 1 << 3, 0xffff, 0);
    let paused = serve(&mut rig, 0b1001, |_| 1000, 0, 3_000_000);
    assert_eq!(paused[3], 0);
    rig.hear(1, 1 << 3, 0, 3_000_000);
    let after = serve(&mut rig, 0b1001, |_| 1000, 3_000_000, 10_000_000);
    assert_shares(after, [50; 8], 0b1001);
}

/// A minimum rate is served before strict queues and shares; a maximum rate limits.
#[test]
fn minimum_and_highest_rates() {
    let mut setup = weighted([50; 8]);
    setup.queues[0].min_rate = Some(BitRate(GIG));
    setup.queues[2].max_rate = Some(BitRate(2 * GIG));
    setup.queues[6].discipline = Discipline::Strict;
    let mut rig = setup.build();
    let time = 20_000_000;
    // Strict traffic alone would take the whole port.
    let sent = serve(&mut rig, 0b0100_0101, |_| 1000, 0, time);
    let at = |rate| BitRate(rate).bytes_in(Nanos(time));
    assert!(
        sent[0].abs_diff(at(GIG)) <= at(GIG) / 100 + 20_000,
        "{sent:?}"
    );
    assert!(sent[2] < 50_000, "{sent:?}");
    assert!(
        sent[6].abs_diff(at(9 * GIG)) <= at(9 * GIG) / 100 + 60_000,
        "{sent:?}"
    );
    // Without the strict queue the minimum rate is no maximum, and the maximum rate holds.
    let sent = serve(&mut rig, 0b0000_0101, |_| 1000, time, time);
    assert!(
        sent[2].abs_diff(at(2 * GIG)) <= at(2 * GIG) / 100 + 20_000,
        "{sent:?}"
    );
    assert!(sent[0] > at(7 * GIG), "{sent:?}");
    // Of what it got beyond its minimum rate nothing is held against it.
    let sent = serve(&mut rig, 0b0100_0101, |_| 1000, 2 * time, time);
    assert!(
        sent[0].abs_diff(at(GIG)) <= at(GIG) / 100 + 60_000,
        "{sent:?}"
    );
}

const LEN: usize = 1024;

/// ECN_ACCURACY: 200 rounds of a queue filled past kmax and released; in each bucket of depth
/// |marks - expected| <= 4 sqrt(expected) + 1, everything above kmax and nothing below kmin.
#[test]
fn ecn_accuracy_over_200_rounds() {
    let cell = wire(LEN);
    let red = Red {
        kmin: 40 * cell,
        kmax: 160 * cell,
        pmax: CERTAIN / 20,
    };
    let frames = 170;
    let mut setup = Setup {
        pool: 1 << 22,
        ..Setup::default()
    };
    setup.queues[3].ecn = Some(red);
    let mut rig = setup.build();
    let rounds = 200;
    let mut marks = vec![0u64; frames];
    for round in 0..rounds {
        let now = round * 10_000_000;
        rig.hear(1, 1 << 3, 0xffff, now);
        rig.push(0, 1, 3, LEN, frames, now);
        assert!(rig.pull(1, now).is_empty());
        rig.hear(1, 1 << 3, 0, now + 1);
        let mut left = frames;
        while left > 0 {
            for frame in rig.pull(1, now + 2) {
                left -= 1;
                // The depth left behind, in frames, selects the bucket.
                marks[left] += u64::from(frame.buf.data()[15] & 3 == 3);
            }
        }
    }
    let bucket = 20;
    for start in (0..frames).step_by(bucket) {
        let of = start..(start + bucket).min(frames);
        let got: u64 = of.clone().map(|depth| marks[depth]).sum();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let expected: f64 = of
            .map(|depth| red.probability(depth as u64 * cell) as f64 / CERTAIN as f64)
            .sum::<f64>()
            * rounds as f64;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let off = (got as f64 - expected).abs();
        assert!(
            off <= 4.0 * expected.sqrt() + 1.0,
            "depth {start}: {got} of {expected}"
        );
    }
    assert!(marks[..=40].iter().all(|marks| *marks == 0));
    assert!(marks[161..].iter().all(|marks| *marks == rounds));
    assert_eq!(
        rig.counters(1).queues[3].ecn_marked.get(),
        marks.iter().sum::<u64>()
    );
}

/// EGRESS_ECN: kmin = kmax = N KB, 2 N frames of 1 KB held back by PFC and released: all arrive, the first one marked, the
/// last one not.
#[test]
fn the_first_after_release_is_marked_and_the_last_is_not() {
    let n = 64;
    let mut setup = Setup::default();
    setup.queues[3].ecn = Some(Red {
        kmin: n * wire(LEN),
        kmax: n * wire(LEN),
        pmax: CERTAIN,
    });
    let mut rig = setup.build();
    rig.hear(1, 1 << 3, 0xffff, 0);
    rig.push(0, 1, 3, LEN, 2 * n as usize, 0);
    assert!(rig.pull(1, 1).is_empty());
    rig.hear(1, 1 << 3, 0, 2);
    let mut ce = Vec::new();
    while ce.len() < 2 * n as usize {
        ce.extend(
            rig.pull(1, 3)
                .iter()
                .map(|frame| frame.buf.data()[15] & 3 == 3),
        );
    }
    assert!(ce[0] && !ce[2 * n as usize - 1]);
    assert_eq!(ce.iter().filter(|ce| **ce).count() as u64, n - 1);
}

/// WRED drops Not-ECT frames of a lossy queue at enqueue; ECT frames go on.
#[test]
fn wred_drops_not_ect_only() {
    let mut setup = Setup::default();
    setup.queues[0].wred = Some(Red {
        kmin: 0,
        kmax: 10 * wire(LEN),
        pmax: CERTAIN,
    });
    let mut rig = setup.build();
    rig.push(0, 1, 0, LEN, 20, 0);
    assert_eq!(rig.all_drops(), 0, "ECT");
    let mut not_ect = crate::rig::frame(0, 1, 0, LEN);
    not_ect[15] = 0;
    let sum = u32::from(u16::from_be_bytes([not_ect[24], not_ect[25]])) + 2;
    not_ect[24..26].copy_from_slice(&((sum & 0xffff) as u16).to_be_bytes());
    for _ in 0..5 {
        rig.take(0, &not_ect, 0);
    }
    assert_eq!(rig.counters(1).queues[0].wred_dropped.get(), 5);
    assert_eq!(rig.counters(1).queues[0].dropped.get(), 5);
}
