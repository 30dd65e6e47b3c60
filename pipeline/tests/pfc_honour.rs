//! Tests of pauses that the peer requests, against 802.1Qbb, sonic-mgmt (tests/qos/test_pfc_pause.py, test_pfc_counters.py,
//! pfcwd/test_xon_not_counted.py, docs/testplan/pfc) and verilog-ethernet's mac_pause_ctrl contract.

use crate::rig::{GIG, Rig, Setup, mac};
use npcc_pipeline::counters::{TrafficCount, sum};
use npcc_pipeline::drop::DropReason;
use npcc_pipeline::units::{BitRate, PortId};
use npcc_pipeline::wire::mac_control::{self, time_of};

const LEN: usize = 1000;

fn time(quanta: u16) -> u64 {
    time_of(quanta, BitRate(10 * GIG)).0
}

/// Returns a rig with one frame of each priority waiting on port 1.
fn one_of_each() -> Rig {
    let mut rig = Setup::default().build();
    for priority in 0..8 {
        rig.push(0, 1, priority, LEN, 1, 0);
    }
    rig
}

fn priorities(rig: &mut Rig, now: u64) -> Vec<u8> {
    let mut out: Vec<u8> = rig
        .pull(1, now)
        .iter()
        .map(|frame| frame.meta.priority.get())
        .collect();
    out.sort_unstable();
    out
}

/// test_pfc_pause.py: PFC on one lossless priority must not affect the others; it delivers nothing itself.
#[test]
fn pfc_on_one_priority_leaves_the_others_alone() {
    let mut rig = one_of_each();
    rig.hear(1, 1 << 3, 100, 0);
    assert_eq!(priorities(&mut rig, 0), [0, 1, 2, 4, 5, 6, 7]);
    assert!(rig.pull(1, time(100) - 1).is_empty());
    assert_eq!(priorities(&mut rig, time(100)), [3]);
    assert_eq!(rig.all_drops(), 0);
    rig.assert_conserved();
}

/// Priority 3, paused on port 1, continues to leave by port 2.
#[test]
fn pfc_on_one_port_leaves_the_others_alone() {
    let mut rig = one_of_each();
    rig.push(0, 2, 3, LEN, 1, 0);
    rig.hear(1, 1 << 3, 100, 0);
    assert_eq!(rig.pull(2, 0).len(), 1);
}

/// docs/testplan/pfc, PAUSE_LOSSY: PFC for a lossy priority has no effect, but is counted.
#[test]
fn pfc_for_a_lossy_priority_has_no_effect() {
    let mut rig = one_of_each();
    rig.hear(1, 0b1110_0111, 0xffff, 0);
    assert_eq!(priorities(&mut rig, 0), [0, 1, 2, 3, 4, 5, 6, 7]);
    let counts: Vec<u64> = rig
        .counters(1)
        .pfc
        .rx
        .iter()
        .map(|count| count.get())
        .collect();
    assert_eq!(counts, [1, 1, 1, 0, 0, 1, 1, 1]);
    assert_eq!(rig.counters(1).flow.priorities[5].rx_pauses.get(), 0);
}

/// docs/testplan/pfc, GLOBAL_PAUSE: a port with PFC ignores 802.3x pause.
#[test]
fn global_pause_is_ignored() {
    let mut rig = one_of_each();
    let mut pause = mac_control::build(mac(99), 0, [0; 8]);
    pause[14..18].copy_from_slice(&[0, 1, 0xff, 0xff]);
    rig.take(1, &pause, 0);
    assert_eq!(rig.pull(1, 0).len(), 8);
    assert_eq!(rig.counters(1).flow.global_pause.get(), 1);
    assert!(rig.counters(1).pfc.rx.iter().all(|count| count.get() == 0));
}

/// 802.1Qbb: a refresh restarts the timer, so a pause holds longer than 65535 quanta.
#[test]
fn refresh_holds_longer_than_65535_quanta() {
    let mut rig = one_of_each();
    let half = time(0xffff) / 2;
    for refresh in 0..10 {
        rig.hear(1, 1 << 3, 0xffff, refresh * half);
        assert_eq!(
            rig.pull(1, refresh * half)
                .iter()
                .filter(|f| f.meta.priority.get() == 3)
                .count(),
            0
        );
    }
    let end = 9 * half + time(0xffff);
    assert!(rig.pull(1, end - 1).is_empty());
    assert_eq!(rig.pull(1, end).len(), 1);
    let pause = &rig.counters(1).flow.priorities[3];
    assert_eq!(
        (pause.rx_pauses.get(), pause.rx_paused_ns.get()),
        (1, end),
        "one pause, however often refreshed"
    );
}

/// 802.1Qbb: a time above 0 restarts the timer, also where it ends sooner than the pause in force.
#[test]
fn a_shorter_pause_ends_a_longer_one_sooner() {
    let mut rig = one_of_each();
    rig.hear(1, 1 << 3, 0xffff, 0);
    assert_eq!(rig.pull(1, 0).len(), 7);
    rig.hear(1, 1 << 3, 100, 1_000);
    let end = 1_000 + time(100);
    assert!(end < time(0xffff));
    assert!(rig.pull(1, end - 1).is_empty());
    assert_eq!(priorities(&mut rig, end), [3]);
    let pause = &rig.counters(1).flow.priorities[3];
    assert_eq!((pause.rx_pauses.get(), pause.rx_paused_ns.get()), (1, end));
}

/// mac_pause_ctrl: a value of 0 releases at once.
#[test]
fn zero_releases_at_once() {
    let mut rig = one_of_each();
    rig.hear(1, 0b1_1000, 0xffff, 0);
    assert_eq!(rig.pull(1, 0).len(), 6);
    rig.hear(1, 1 << 4, 0, 77);
    assert_eq!(priorities(&mut rig, 77), [4]);
    assert_eq!(rig.counters(1).flow.priorities[4].rx_last_ns.get(), 77);
    assert_eq!(rig.counters(1).flow.paused.get(), 1 << 3);
}

/// SONiC's PFC history (doc/pfc_historical_stats): transitions, total, longest and last pause, and when the last began.
#[test]
fn pauses_leave_a_history() {
    let mut rig = Setup::default().build();
    for (from, to) in [(1_000, 51_000), (100_000, 400_000), (500_000, 520_000)] {
        rig.hear(1, 1 << 3, 0xffff, from);
        rig.hear(1, 1 << 3, 0, to);
    }
    let history = &rig.counters(1).flow.priorities[3];
    assert_eq!(history.rx_pauses.get(), 3);
    assert_eq!(history.rx_paused_ns.get(), 50_000 + 300_000 + 20_000);
    assert_eq!(history.rx_longest_ns.get(), 300_000);
    assert_eq!(history.rx_last_ns.get(), 20_000);
    assert_eq!(history.rx_began.get(), 500_000);
    let other = &rig.counters(1).flow.priorities[4];
    assert_eq!((other.rx_pauses.get(), other.rx_began.get()), (0, 0));
}

/// A device that obeys pauses by itself stops accepting frames of a priority: only that one is not scheduled.
#[test]
fn a_priority_the_device_holds_back_holds_back_no_other() {
    let mut rig = one_of_each();
    rig.path.set_tx_blocked(PortId(1), 1 << 3);
    assert_eq!(priorities(&mut rig, 0), [0, 1, 2, 4, 5, 6, 7]);
    rig.hear(1, 1 << 5, 100, 10);
    assert!(priorities(&mut rig, 20).is_empty());
    rig.path.set_tx_blocked(PortId(1), 0);
    assert_eq!(priorities(&mut rig, 30), [3]);
}

/// mac_pause_ctrl: one frame with a time for each class releases each class at its own time.
#[test]
fn each_class_ends_at_its_own_time() {
    let mut setup = Setup::default();
    setup.pause.honour = 0xff;
    let mut rig = setup.build();
    for priority in 0..8 {
        rig.push(0, 1, priority, LEN, 1, 0);
    }
    let quanta = std::array::from_fn(|n| 10 + 10 * n as u16);
    rig.take(1, &mac_control::build(mac(99), 0xff, quanta), 0);
    assert!(rig.pull(1, time(10) - 1).is_empty());
    for (priority, quanta) in (0..8).zip(quanta) {
        assert_eq!(priorities(&mut rig, time(quanta)), [priority]);
    }
}

/// test_pfc_counters.py: XOFF and XON of a class both count on it; PFC frames are not rx_ok. test_xon_not_counted.py: they are
/// no drops either.
#[test]
fn pfc_frames_are_no_traffic_and_no_drops() {
    let mut rig = Setup::default().build();
    rig.hear(1, 1 << 3, 0xffff, 0);
    rig.hear(1, 1 << 3, 0, 1);
    rig.hear(1, 0, 0, 2);
    let counters = rig.counters(1);
    assert_eq!(counters.pfc.rx[3].get(), 2);
    assert_eq!(sum([counters]).rx_ok(), TrafficCount::default());
    assert_eq!(
        (counters.rx.packets.get(), counters.consumed.packets.get()),
        (3, 3)
    );
    assert_eq!(rig.all_drops(), 0);
    assert!(
        (0..3).all(|port| rig.pull(port, 3).is_empty()),
        "never forwarded"
    );
    rig.assert_conserved();
}

#[test]
fn malformed_control_frames_are_counted_and_ignored() {
    let mut rig = one_of_each();
    let good = mac_control::build(mac(99), 1 << 3, [0xffff; 8]);
    let mut opcode = good;
    opcode[15] = 0x02;
    let mut address = good;
    address[5] = 0x0e;
    for bad in [&opcode[..], &address[..], &good[..30], &good[..14]] {
        rig.take(1, bad, 0);
    }
    assert_eq!(rig.pull(1, 0).len(), 8);
    assert_eq!(rig.counters(1).flow.invalid.get(), 4);
    assert_eq!(rig.all_drops(), 0);
    rig.assert_conserved();
}

/// A tagged MAC control frame is none (802.1Qbb: never tagged): dropped, and without effect.
#[test]
fn a_tagged_pfc_frame_has_no_effect() {
    let mut rig = one_of_each();
    let good = mac_control::build(mac(99), 1 << 3, [0xffff; 8]);
    let mut tagged = good[..12].to_vec();
    tagged.extend([0x81, 0, 0, 100]);
    tagged.extend(&good[12..56]);
    rig.take(1, &tagged, 0);
    assert_eq!(rig.pull(1, 0).len(), 8);
    assert_eq!(rig.dropped(DropReason::NotIp), 1);
}

/// With `pfc: off` and `pfc: send` no pause is obeyed.
#[test]
fn a_port_that_does_not_honour_sends_on() {
    let mut setup = Setup::default();
    setup.pause.honour = 0;
    let mut rig = setup.build();
    rig.push(0, 1, 3, LEN, 1, 0);
    rig.hear(1, 1 << 3, 0xffff, 0);
    assert_eq!(rig.pull(1, 0).len(), 1);
    assert_eq!(rig.counters(1).pfc.rx[3].get(), 1);
}

/// docs/testplan/pfc, PAUSE_LOSSLESS: with one priority under a storm, the others lose nothing and the paused one delivers
/// nothing and holds back its sender before the buffer ends.
#[test]
fn a_paused_queue_pushes_back_and_does_not_starve_others() {
    let mut rig = Setup::default().build();
    let mut paused = false;
    for step in 0..4_000u64 {
        let now = step * 1_000;
        if step % 1_000 == 0 {
            rig.hear(1, 1 << 3, 0xffff, now);
        }
        rig.push(0, 1, 0, LEN, 1, now);
        rig.push(2, 1, 4, LEN, 1, now);
        if !paused {
            rig.push(0, 1, 3, LEN, 1, now);
        }
        paused |= rig.sent.iter().any(|sent| sent.0 == 0 && sent.2 == 1 << 3);
        rig.pull(1, now);
    }
    assert!(paused);
    assert_eq!(rig.all_drops(), 0);
    assert_eq!(
        rig.counters(1).queues[3].level.depth.get(),
        rig.held(0, 3).0
    );
    assert_eq!(
        rig.counters(1).tx.packets.get(),
        8_000,
        "the others got everything through"
    );
}
