//! Incast over long links: no loss while headroom covers the cable, whatever the frame length; and no victim on other ports.

use crate::rig::sender::{LIGHT, RESPONSE, Sender};
use crate::rig::{GIG, LOSSLESS, Rig, Setup, wire};
use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::pause::PauseConfig;
use npcc_pipeline::units::{BURST, BitRate, Nanos};

/// Duration of an iteration of the worker's loop in ns.
const TURN: u64 = 1_000;

/// Returns SONiC's formula, one burst of MTUs, and the bytes that arrive during two iterations of the loop (in one the
/// threshold is crossed, in the next the frame goes out).
fn headroom(km: u64, rate: BitRate, len: usize) -> u64 {
    let cable = 2 * km * 1_000 * (rate.0 / 8) / LIGHT;
    let turns = rate.bytes_in(Nanos(2 * TURN));
    cable + u64::from(RESPONSE) * 64 + 2 * wire(len) + BURST as u64 * wire(len) + turns
}

fn incast(senders: u8, km: u64, len: usize, share_of_headroom: (u64, u64)) -> (Rig, Vec<Sender>) {
    let rate = BitRate(100 * GIG);
    let needed = headroom(km, rate, len) * share_of_headroom.0 / share_of_headroom.1;
    let groups = 2 * u64::from(senders + 1);
    let pool = groups * needed + (8 << 20);
    let setup = Setup {
        ports: senders + 1,
        pool,
        frames: pool.div_ceil(wire(len)),
        min_frame: wire(len) as u16,
        group: GroupConfig {
            lossless: true,
            reserved: 2 * wire(len),
            headroom: needed,
            xon: 0,
            xon_offset: 2 * wire(len),
        },
        pause: PauseConfig {
            send: LOSSLESS,
            honour: LOSSLESS,
            rate,
            pressure: 0,
            watchdog: None,
        },
        rate: Some(rate),
        ..Setup::default()
    };
    let mut rig = setup.build();
    let mut all: Vec<Sender> = (0..senders)
        .map(|port| Sender::new(port, rate, len, km))
        .collect();
    let mut now = 0;
    let stop = 3 * 2 * all[0].delay + 1_000_000;
    loop {
        let sending = now < stop;
        let mut quiet = !sending;
        for sender in &mut all {
            let arrived = sender.turn(now, TURN, sending);
            // The worker takes one burst after the other; pause is evaluated after each.
            rig.push(sender.port, senders, 3, len, arrived, now);
            quiet &= sender.cable.is_empty();
        }
        for port in 0..=senders {
            rig.control(port, now);
        }
        for (port, at, xoff, xon) in std::mem::take(&mut rig.sent) {
            if (xoff | xon) & 1 << 3 != 0 {
                all[usize::from(port)].hear(xoff & 1 << 3 != 0, at);
            }
        }
        while !rig.pull(senders, now).is_empty() {}
        if quiet && rig.depth(senders, 3) == 0 {
            break;
        }
        now += TURN;
        assert!(now < 200 * stop, "the queue drains");
    }
    for port in 0..=senders {
        rig.control(port, now + 1);
    }
    (rig, all)
}

/// N:1 incast at 100 km and 100G: zero loss for 64 B to 9 KB frames (on the wire without FCS: 60 to 9014).
#[test]
fn incast_at_100_km_loses_nothing() {
    for (senders, len) in [(2, 60), (4, 1_024), (8, 4_200), (4, 9_014)] {
        let (rig, all) = incast(senders, 100, len, (1, 1));
        assert_eq!(
            (rig.all_drops(), rig.lost()),
            (0, 0),
            "{senders} senders, {len} B"
        );
        let sent: u64 = all.iter().map(|sender| sender.sent).sum();
        let port = rig.counters(senders);
        assert_eq!(port.tx.packets.get(), sent);
        let pauses = |port: u8| &rig.counters(port).flow.priorities[3];
        let began: u64 = (0..senders).map(|port| pauses(port).tx_pauses.get()).sum();
        assert!(began >= u64::from(senders), "{len} B: {began} pauses");
        for port in 0..senders {
            assert_eq!(rig.counters(port).flow.asserted.get(), 0, "the pause ended");
            assert_eq!(rig.counters(port).flow.late.get(), 0, "and never ran out");
            assert!(rig.counters(port).groups[3].headroom_peak.get() > 0);
        }
        rig.assert_conserved();
    }
}

/// Half the headroom drops frames, so the test above can fail (docs/testplan/pfc, RESPONSE_HEADROOM).
#[test]
fn half_the_headroom_is_not_enough() {
    let (rig, _) = incast(4, 100, 1_024, (1, 2));
    assert!(rig.lost() > 0);
    rig.assert_conserved();
}

/// RFC 8239 section 7, 2-to-2: ports 0 and 1 each send half to port 2 and half to port 3; port 3's peer pauses. Until the
/// senders themselves are paused, no frame to port 2 is lost or late.
#[test]
fn head_of_line_blocking_two_to_two() {
    let mut setup = Setup {
        ports: 4,
        rate: Some(BitRate(10 * GIG)),
        ..Setup::default()
    };
    setup.pool = 4 << 20;
    let mut rig = setup.build();
    let mut delivered = 0;
    let turns = 400;
    rig.hear(3, 1 << 3, 0xffff, 0);
    for turn in 0..turns {
        let now = turn * 1_000;
        for from in 0..2 {
            rig.push(from, 2, 3, 500, 1, now);
            rig.push(from, 3, 3, 500, 1, now);
        }
        delivered += rig.pull(2, now).len();
        assert!(rig.pull(3, now).is_empty());
    }
    assert!(rig.sent.is_empty(), "no sender was paused");
    assert_eq!(delivered as u64, 2 * turns);
    assert_eq!(rig.depth(3, 3), 2 * turns * wire(500));
    assert_eq!(rig.all_drops(), 0);
}
