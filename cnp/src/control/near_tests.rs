//! Feedback delay of a flow, learned from passing packets: the near side is a delay line of known length.

use super::*;
use crate::control::tests::{back, data};
use crate::traffic_tests::rig::{DC, Packet, Rig, WAN, config, with};
use npcc_roce::pair::Evidence;

const TICK: Nanos = Nanos::from_micros(20);
const A: u32 = 0x1_0018;
const B: u32 = 0x11;

/// Requests of the far side to the near side's queue pair.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asks {
    Read,
    Write,
    /// No request: only the near side sends.
    Nothing,
}

/// Passes `n` requests, a millisecond apart, each answered after `near`.
fn exchanges(rig: &mut Rig, asks: Asks, from: u32, n: u32, near: Nanos) {
    for psn in from..from + n {
        let (request, payload, reply) = match asks {
            Asks::Read => (0x0c, 0, 0x10),
            Asks::Write | Asks::Nothing => (0x0a, 1_024, 0x11),
        };
        let request = Packet {
            psn,
            payload,
            ..back(A, B, request)
        };
        let payload = if reply == 0x10 { 1_024 } else { 0 };
        let reply = Packet {
            psn,
            opcode: reply,
            payload,
            ..data(A, B)
        };
        rig.now += Nanos::from_millis(1);
        if asks != Asks::Nothing {
            rig.back(&request);
        }
        rig.now += near;
        if asks != Asks::Nothing {
            rig.out(&reply);
        }
        let psn = 0x80_0000 + psn;
        rig.out(&Packet { psn, ..data(A, B) });
        rig.back(&Packet {
            psn,
            ..back(A, B, 0x11)
        });
        rig.core.run_call(rig.now, |_, _| 0, &mut |_| Ok(()));
    }
}

fn feedback(rig: &Rig) -> Nanos {
    let flow = rig.core.flows().flows().next().unwrap();
    assert_eq!(flow.evidence, Evidence::PortHash);
    rig.core.tracker.feedback(0)
}

#[test]
fn the_length_of_the_near_side_is_learned_from_replies_to_the_nanosecond() {
    for asks in [Asks::Read, Asks::Write] {
        for us in [21, 37, 190] {
            let near = Nanos(us * 1_000 + 123);
            let mut rig = Rig::new(&config(TICK));
            exchanges(&mut rig, asks, 100, 100, near);
            assert_eq!(feedback(&rig), near, "{asks:?}");
        }
    }
}

#[test]
fn a_sender_rtt_never_measured_keeps_the_default() {
    let mut rig = Rig::new(&config(TICK));
    exchanges(&mut rig, Asks::Nothing, 100, 20, Nanos::from_micros(90));
    assert_eq!(
        feedback(&rig),
        Nanos::from_micros(20),
        "the far side's ACKs do not count"
    );
}

#[test]
fn replies_queued_behind_others_do_not_lengthen_it() {
    let mut rig = Rig::new(&config(TICK));
    for n in 0..200 {
        let queued = Nanos(u64::from(n * 5 % 8) * 11_000);
        exchanges(
            &mut rig,
            Asks::Read,
            100 + n,
            1,
            Nanos::from_micros(30) + queued,
        );
    }
    // Of eight delays of 30 to 107 us the second shortest: 41 us, or less when one was shown twice.
    let delay = feedback(&rig).0;
    assert!((30_000..=52_000).contains(&delay), "{delay}");
}

#[test]
fn a_new_connection_of_a_known_host_begins_with_what_is_known() {
    let mut rig = Rig::new(&config(TICK));
    exchanges(&mut rig, Asks::Read, 100, 50, Nanos::from_micros(70));
    rig.out(&data(0x1_0044, 0x44));
    rig.back(&back(0x1_0044, 0x44, 0x11));
    rig.tick(TICK, 0);
    assert_eq!(rig.core.flows().flows().count(), 2);
    assert_eq!(rig.core.tracker.feedback(1), Nanos::from_micros(70));
}

/// Covers replies in the near host's name, of the right connection and number.
#[test]
fn forged_replies_of_the_far_side_teach_nothing() {
    let mut rig = Rig::new(&config(TICK));
    exchanges(&mut rig, Asks::Write, 100, 100, Nanos::from_micros(30));
    for psn in 1_000..1_200 {
        let request = Packet {
            psn,
            payload: 1_024,
            ..back(A, B, 0x0a)
        };
        let forged = Packet {
            psn,
            opcode: 0x11,
            payload: 0,
            ..data(A, B)
        };
        rig.now += Nanos::from_millis(11);
        rig.back(&request);
        rig.now += Nanos::from_micros(3);
        rig.pass(&forged, WAN, DC);
        rig.tick(TICK, 0);
    }
    assert_eq!(feedback(&rig), Nanos::from_micros(30));
}

/// Covers replies made up on the near side, which nobody can tell from the host's own: they move the delay within its bounds.
#[test]
fn forged_replies_of_the_near_side_stay_within_bounds() {
    for (us, learned) in [(0, 20_000), (1, 20_000), (4_000, 200_000), (20_000, 30_000)] {
        let mut rig = Rig::new(&config(TICK));
        exchanges(&mut rig, Asks::Write, 100, 100, Nanos::from_micros(30));
        exchanges(&mut rig, Asks::Write, 200, 400, Nanos(us * 1_000 + 1));
        let delay = feedback(&rig).0;
        assert!(delay.abs_diff(learned) < 10, "{us} us: {delay}");
    }
}

#[test]
fn a_port_that_is_not_trusted_teaches_no_delay() {
    let mut rig = Rig::new(&with(TICK, |settings| settings.trusted_ports = WAN.bit()));
    exchanges(&mut rig, Asks::Read, 100, 50, Nanos::from_micros(70));
    assert_eq!(rig.core.tracker.feedback(0), Nanos::from_micros(20));
}
