//! Forged traffic through the real process: whatever is forged, no CNP may go to a queue pair that did not send.
//!
//! Needs root. Touches only namespaces and links of its own.

use crate::common::forge::{A, B, BYSTANDER, Packet, RECEIVER, SENDER, Script, connect, lab, net};
use crate::common::switch::Switch;
use crate::common::{Lab, alone};

/// Core layouts: one worker, and a worker for each port on cores that they share with the control core.
const CORES: [(&str, &str); 2] = [
    ("", "npcc: { "),
    (
        "cores: { control: 0, workers: [1, 0] }\n",
        "npcc: { tick: 2ms, recovery: 4ms, ",
    ),
];

fn with_cores(lab: &Lab, (cores, npcc): (&str, &str)) {
    let path = lab.path("switch.yaml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("npcc: { shallow", &format!("{npcc}shallow"));
    std::fs::write(path, text + cores).unwrap();
}

#[test]
fn a_forged_connection_over_a_living_one_moves_no_cnp() {
    let _alone = alone();
    let net = net();
    for cores in CORES {
        let lab = lab(&net, "earned: 0B");
        with_cores(&lab, cores);
        let mut switch = Switch::start(lab.clone());
        let mut script = Script::default();
        for packet in connect(7, SENDER, RECEIVER) {
            script.packet(&packet);
        }
        script.wait(50);
        script.congest((SENDER, RECEIVER));
        assert_eq!(script.play(&net), [SENDER].into(), "as it is: {cores:?}");
        let mut script = Script::default();
        for id in [8, 9, 10] {
            for packet in connect(id, BYSTANDER, RECEIVER) {
                script.packet(&packet);
            }
            script.wait(20);
        }
        script.congest((SENDER, RECEIVER));
        let signalled = script.play(&net);
        // Nor does the forgery silence the sender.
        assert_eq!(signalled, [SENDER].into(), "{cores:?}: {signalled:x?}");
        switch.stop();
    }
}

/// Guards against connection-manager messages forged from the far side only.
#[test]
fn a_forged_connection_from_the_far_side_is_ignored() {
    let _alone = alone();
    let net = net();
    let lab = lab(&net, "earned: 0B");
    let mut switch = Switch::start(lab.clone());
    let mut script = Script::default();
    // A connection without flow label, known by its ports.
    script.congest((SENDER, RECEIVER));
    for packet in connect(8, BYSTANDER, RECEIVER) {
        script.packet_by("far", &packet);
    }
    // A connection that does not exist yet.
    for packet in connect(9, BYSTANDER, RECEIVER + 1) {
        script.packet_by("far", &packet);
    }
    script.wait(50);
    script.congest((SENDER, RECEIVER));
    script.congest((SENDER + 1, RECEIVER + 1));
    assert_eq!(script.play(&net), [SENDER, SENDER + 1].into());
    let snapshot = switch.stop();
    assert!(snapshot.npcc.wrong_port >= 2, "{:?}", snapshot.npcc);
}

#[test]
fn datagrams_before_a_connection_begins_move_no_cnp() {
    let _alone = alone();
    let net = net();
    let lab = lab(&net, "earned: 0B");
    let mut switch = Switch::start(lab.clone());
    let mut script = Script::default();
    for _ in 0..40 {
        script.packet(&Packet::datagram(A, B, RECEIVER, BYSTANDER));
        script.packet(&Packet::datagram(B, A, BYSTANDER, RECEIVER));
        script.wait(2);
    }
    script.congest((SENDER, RECEIVER));
    let signalled = script.play(&net);
    // A number that two kinds of queue pairs used at once is trusted for neither for some seconds, but not for ever.
    assert_eq!(signalled, [].into(), "{signalled:x?}");
    let mut script = Script::default();
    script.wait(3_500);
    script.congest((SENDER, RECEIVER));
    let signalled = script.play(&net);
    let snapshot = switch.stop();
    assert_eq!(
        signalled,
        [SENDER].into(),
        "{signalled:x?} {:?}",
        snapshot.npcc
    );
}

/// Guards against pairing strangers by their sequence numbers: of two connections in lock step, one's data and the other's answers pass
/// here, and the numbers began long before the switch did, which is stopped once and killed once.
#[test]
fn numbers_that_fit_after_a_restart_pair_no_strangers() {
    const OTHER: (u32, u32) = (0x31, 0x44);
    const START: u32 = 0x40_0000;
    let _alone = alone();
    let net = net();
    let lab = lab(&net, "earned: 0B");
    for life in 0..3 {
        let mut switch = Switch::start(lab.clone());
        let mut script = Script::default();
        for psn in 0..200 {
            let psn = START + life * 10_000 + psn;
            let data = Packet::data((SENDER, RECEIVER), psn);
            script.packet(&data);
            script.wait(2);
            script.packet(&Packet::data(OTHER, psn).answer(OTHER.0));
            script.wait(3);
        }
        for psn in 0..400 {
            let psn = START + life * 10_000 + 200 + psn;
            script.packet(&Packet::data((SENDER, RECEIVER), psn));
            script.packet(&Packet::data(OTHER, psn).answer(OTHER.0));
            if psn % 10 == 9 {
                script.wait(3);
            }
        }
        script.wait(300);
        let signalled = script.play(&net);
        assert_eq!(signalled, [].into(), "{signalled:x?}");
        if life == 1 {
            switch.kill();
            continue;
        }
        let snapshot = switch.stop();
        let cold = snapshot.npcc.cnps_suppressed.named("cold").copied();
        let unpaired = snapshot.npcc.cnps_suppressed.named("unpaired").copied();
        let requested = cold.unwrap_or(0) + unpaired.unwrap_or(0);
        assert!(requested > 0, "the queue was deep: {:?}", snapshot.npcc);
    }
}

/// Guards against forged frames that earn CNPs: small frames to a bystander's peer, as any process at the bystander's host can send them
/// while an honest flow fills the queue, each cost the bystander up to 5.7 CNPs. With a wrong ICRC the peer's card drops them unseen.
#[test]
fn forged_frames_in_the_name_of_a_bystander_earn_one_cnp_in_16_kib_at_most() {
    const PEER: u32 = 0x777;
    const READ_RESPONSE_MIDDLE: u8 = 0x0e;
    const EARNED: usize = 16 << 10;
    /// Bytes of preamble, frame check sequence and gap per frame.
    const AROUND: usize = 24;
    let _alone = alone();
    let net = net();
    for is_icrc_right in [true, false] {
        let lab = lab(&net, "earned: 16KiB");
        let mut switch = Switch::start(lab.clone());
        let mut script = Script::default();
        let mut bytes = 0;
        for psn in 0..80 {
            let data = Packet {
                payload: vec![0; 16 + 64],
                ..Packet::data((BYSTANDER, PEER), psn)
            };
            bytes += data.frame(true).len() + AROUND;
            script.packet(&data);
            script.packet(&data.answer(BYSTANDER));
            script.wait(3);
        }
        for psn in 0..1_200 {
            let data = Packet::data((SENDER, RECEIVER), psn);
            script.packet(&data);
            let forged = Packet {
                opcode: READ_RESPONSE_MIDDLE,
                payload: vec![0; 8],
                ..Packet::data((BYSTANDER, PEER), 0x90_0000 + psn)
            };
            let mut frame = forged.frame(true);
            bytes += frame.len() + AROUND;
            if !is_icrc_right {
                *frame.last_mut().unwrap() ^= 1;
            }
            script.frame_by("near", &frame);
            if psn % 10 == 9 {
                script.packet(&data.answer(SENDER));
                script.wait(3);
            }
        }
        script.wait(700);
        let counts = script.count(&net);
        let count = |qpn| counts.get(&qpn).copied().unwrap_or(0);
        switch.stop();
        assert!(count(SENDER) > 5, "{counts:x?}");
        let most = (bytes / EARNED) as u64 + 1;
        assert!(count(BYSTANDER) <= most, "{most} at most: {counts:x?}");
    }
}

/// A forgery: its name, and the frames that make it against a connection.
type Forgery = (&'static str, fn((u32, u32)) -> Vec<Packet>);

/// Five of the eleven forgeries of `cnp/src/pair/tests/doubt.rs`.
const FORGERIES: [Forgery; 5] = [
    ("data by four other ports", |pair| {
        let data = Packet::data(pair, 0x70_0000);
        let by = |n| Packet {
            port: data.port ^ n,
            ..data.clone()
        };
        (1..=4).map(by).collect()
    }),
    ("answers by four other ports", |pair| {
        let answer = Packet::data(pair, 0x70_0000).answer(pair.0);
        let by = |n| Packet {
            port: answer.port ^ n,
            ..answer.clone()
        };
        (1..=4).map(by).collect()
    }),
    ("an answer to another queue pair", |pair| {
        vec![Packet::data(pair, 0x70_0000).answer(BYSTANDER)]
    }),
    ("a datagram to the sender", |(sender, _)| {
        vec![Packet::datagram(B, A, sender, BYSTANDER)]
    }),
    ("data to another queue pair", |pair| {
        let data = Packet::data(pair, 0x70_0000);
        vec![Packet {
            qpn: BYSTANDER,
            ..data
        }]
    }),
];

/// Guards against a lasting denial of service: four forged frames ended NPCC for a connection that did not pause, for good.
#[test]
fn a_connection_is_signalled_again_four_seconds_after_the_last_forged_frame() {
    let _alone = alone();
    let net = net();
    for is_icrc_right in [true, false] {
        // The scripted sender does not slow down, so its subnet counts as responsive.
        let lab = lab(&net, "earned: 0B }, hosts: { answering: [10.0.1.0/24]");
        let mut switch = Switch::start(lab.clone());
        let pair = |n: u32| (SENDER + 0x10 * n, RECEIVER + 0x10 * n);
        let pairs: Vec<_> = (0..5).map(pair).collect();
        let senders = pairs.iter().map(|pair| pair.0).collect();
        let congest = |script: &mut Script, from: u32| {
            for psn in from..from + 150 {
                for pair in &pairs {
                    let data = Packet::data(*pair, psn);
                    script.packet(&data);
                    script.packet(&data.answer(pair.0));
                }
                script.wait(1);
            }
            script.wait(700);
        };
        let mut script = Script::default();
        congest(&mut script, 0);
        assert_eq!(script.play(&net), senders, "as it is");
        let mut script = Script::default();
        for (pair, (_, forgery)) in pairs.iter().zip(FORGERIES) {
            for packet in forgery(*pair) {
                let mut frame = packet.frame(packet.from == A);
                if !is_icrc_right {
                    *frame.last_mut().unwrap() ^= 1;
                }
                script.frame_by(if packet.from == A { "near" } else { "far" }, &frame);
            }
        }
        if !is_icrc_right {
            congest(&mut script, 150);
            assert_eq!(script.play(&net), senders, "no card takes them");
            switch.stop();
            continue;
        }
        congest(&mut script, 150);
        let signalled = script.play(&net);
        // Some are in doubt now; their own fate is what comes four seconds later.
        assert!(signalled.is_subset(&senders), "{signalled:x?}");
        let mut script = Script::default();
        for psn in 300..330 {
            for pair in &pairs {
                let data = Packet::data(*pair, psn);
                script.packet(&data);
                script.packet(&data.answer(pair.0));
            }
            script.wait(100);
        }
        congest(&mut script, 330);
        let signalled = script.play(&net);
        let snapshot = switch.stop();
        let names = FORGERIES.map(|(name, _)| name);
        assert_eq!(signalled, senders, "{names:?} {:?}", snapshot.npcc);
    }
}
