//! Flapping pauses through the real process: a peer that pauses a lossless class nearly always, and releases it for a moment before the
//! watchdog's time is over, is a storm.
//!
//! Needs root. Touches only namespaces and links of its own.

use crate::common::alone;
use crate::common::forge::{self, Packet, RECEIVER, SENDER, Script};
use crate::common::switch::Switch;

/// Returns a frame that pauses priority 3 for `quanta` quanta (802.1Q, 36.1.3).
fn pause(quanta: u16) -> Vec<u8> {
    let mut frame = vec![
        1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 1, 3, 0x88, 0x08, 1, 1, 0, 8,
    ];
    frame.extend([0; 6]);
    frame.extend(quanta.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Guards storm detection against flapping: with 150 ms of XOFF and a moment of XON, repeated, the watchdog, which required 200 ms without
/// a break, never fired, and bystanders were blocked for as long as that went on.
#[test]
fn pauses_released_for_a_moment_only_are_a_storm() {
    let _alone = alone();
    let net = forge::net();
    for (flaps, expected) in [(true, true), (false, false)] {
        let lab = forge::lab(&net, "");
        let path = lab.path("switch.yaml");
        let text = std::fs::read_to_string(&path).unwrap();
        // The longest pause lasts for 335 ms there: one of the next hundred comes in time, however busy the machine is.
        let own = "addresses: [10.0.1.1/24]";
        let slow = text.replace(own, &format!("{own}, link_speed: 100M, speed: 100M"));
        assert_ne!(slow, text);
        let lossless = slow.replace("roce-semi-lossless", "roce-lossless");
        std::fs::write(&path, lossless).unwrap();
        let mut switch = Switch::start(lab.clone());
        let mut script = Script::default();
        for step in 0..600 {
            let data = Packet::data((SENDER, RECEIVER), step);
            // Toward the port that is paused.
            script.packet(&data.answer(SENDER));
            if flaps {
                script.frame_by("near", &pause(if step % 50 == 49 { 0 } else { 0xffff }));
            } else if step % 50 == 0 {
                // For 3 ms.
                script.frame_by("near", &pause(655));
            }
            script.wait(3);
        }
        script.play(&net);
        let pfc = lab.show("pfc");
        let storms = pfc[0]["flow"]["priorities"][3]["storms"].as_u64().unwrap();
        switch.stop();
        assert_eq!(
            storms > 0,
            expected,
            "flaps {flaps}: {:#}",
            pfc[0]["flow"]["priorities"][3]
        );
    }
}
