//! The headroom that the configuration computes, in the packet path: incast over long cables into a worker that is away now and
//! then, with the device's receive ring between cable and worker.

#[allow(dead_code, reason = "the pipeline's tests use the rest")]
#[path = "../../pipeline/tests/rig/mod.rs"]
mod rig;

use npcc_config::model::PeerResponse;
use npcc_config::sizing::Link;
use npcc_config::units::Length;
use npcc_pipeline::buffer::GroupConfig;
use npcc_pipeline::pause::PauseConfig;
use npcc_pipeline::units::{BURST, BitRate, Nanos, PortId};
use rig::sender::Sender;
use rig::{GIG, LOSSLESS, Rig, Setup, wire};

/// Duration in ns of a normal worker iteration, and of one in which the worker is away.
const TURN: u64 = 1_000;
const AWAY: u64 = 50_000;

#[derive(Clone, Copy)]
struct Incast {
    senders: u8,
    km: u64,
    len: usize,
    /// Speed from which pause quanta are computed, and that of the shapers.
    quanta: u64,
    shaper: u64,
    /// Share of the computed headroom, in percent.
    headroom: u64,
    /// Descriptors of each receive ring.
    ring: usize,
}

fn link(incast: &Incast) -> Link {
    Link {
        cable: Length::from_metres(incast.km * 1_000),
        speed: BitRate(100 * GIG),
        response: PeerResponse::Ieee,
        mtu: (incast.len - 14) as u16,
        outstanding: None,
        batch: 0,
        turn: Nanos::from_micros(AWAY / 1_000),
        receivers: 1,
        lossless: 1,
    }
}

/// Runs the incast; returns the frames lost in rings, and the switch.
fn run(incast: Incast) -> (u64, Rig) {
    let Incast { senders, len, .. } = incast;
    let needed = link(&incast).headroom() * incast.headroom / 100;
    let pool = 2 * u64::from(senders + 1) * needed + (8 << 20);
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
            rate: BitRate(incast.quanta),
            pressure: 0,
            watchdog: None,
        },
        rate: Some(BitRate(incast.shaper)),
        ..Setup::default()
    };
    let mut rig = setup.build();
    let rate = BitRate(100 * GIG);
    let sender = |port| Sender::new(port, rate, len, incast.km);
    let mut all: Vec<Sender> = (0..senders).map(sender).collect();
    let mut rings = vec![0; usize::from(senders)];
    let (mut now, mut missed) = (0, 0);
    let stop = 6 * all[0].delay + 3_000_000;
    loop {
        let sending = now < stop;
        for (sender, ring) in all.iter_mut().zip(&mut rings) {
            *ring += sender.turn(now, TURN, sending);
            missed += ring.saturating_sub(incast.ring) as u64;
            *ring = incast.ring.min(*ring);
        }
        // Away half of the time.
        if now % (2 * AWAY) >= AWAY {
            for (port, ring) in (0..senders).zip(&mut rings) {
                let burst = BURST.min(*ring);
                *ring -= burst;
                rig.push(port, senders, 3, len, burst, now);
                if burst == BURST {
                    rig.path.ring(PortId(port), *ring > incast.ring / 2);
                }
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
        }
        let quiet =
            all.iter().all(|sender| sender.cable.is_empty()) && rings.iter().all(|ring| *ring == 0);
        if !sending && quiet && rig.depth(senders, 3) == 0 {
            rig.assert_conserved();
            return (missed, rig);
        }
        now += TURN;
        assert!(now < 200 * stop, "the queue drains");
    }
}

const USUAL: Incast = Incast {
    senders: 4,
    km: 100,
    len: 1_024,
    quanta: 100 * GIG,
    shaper: 100 * GIG,
    headroom: 100,
    ring: 2_048,
};

/// Headroom by the formula that the switch uses, with a ring and iterations of `loop_time`, and not a formula of the test's own.
#[test]
fn headroom_of_the_link_loses_nothing_over_turns_of_the_loop() {
    for (senders, km, len) in [
        (2, 1, 1_024),
        (4, 100, 1_024),
        (4, 10, 4_200),
        (3, 100, 9_014),
    ] {
        let incast = Incast {
            senders,
            km,
            len,
            ..USUAL
        };
        let (missed, rig) = run(incast);
        assert_eq!(
            (missed, rig.lost()),
            (0, 0),
            "{senders} senders, {km} km, {len} B"
        );
        assert!((0..senders).all(|port| rig.counters(port).groups[3].headroom_peak.get() > 0));
    }
    let (_, half) = run(Incast {
        headroom: 50,
        ..USUAL
    });
    assert!(half.lost() > 0, "it can fail");
}

/// A ring of 512 does not hold what comes at 100 Gb/s while the worker is away for 50 us.
#[test]
fn a_ring_too_small_loses_what_headroom_promises() {
    let (missed, _) = run(Incast { ring: 512, ..USUAL });
    assert!(missed > 0);
}

/// A port of 100G that is shaped to 40G. The peer counts quanta in bit times of the link.
#[test]
fn a_shaper_below_the_link_loses_nothing() {
    let shaped = Incast {
        shaper: 40 * GIG,
        km: 1,
        ..USUAL
    };
    let (missed, rig) = run(shaped);
    assert_eq!((missed, rig.lost()), (0, 0));
    assert!((0..4).all(|port| rig.counters(port).flow.late.get() == 0));
    let (_, by_shaper) = run(Incast {
        quanta: 40 * GIG,
        ..shaped
    });
    assert!(by_shaper.lost() > 0, "as it was at 0b8b087");
}
