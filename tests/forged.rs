//! Forged traffic through the real process and its report. The laws of forged traffic are on the world: `switch/tests/world_forged.rs`.
//!
//! Needs root. Touches only namespaces and links of its own.

use crate::common::alone;
use crate::common::forge::{BYSTANDER, RECEIVER, SENDER, Script, connect, lab, net};
use crate::common::switch::Switch;

/// Guards against connection-manager messages forged from the far side only, and against a report that does not count them.
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
