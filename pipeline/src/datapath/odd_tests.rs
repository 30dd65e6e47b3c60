//! Who keeps odd frames sees those that are dropped for an odd reason, as they came, and no others.

use std::sync::{Arc, Mutex};

use super::punted_rig::linux;
use super::*;
use crate::odd::OddFrames;

type Seen = Arc<Mutex<Vec<(PortId, DropReason, Vec<u8>, Nanos)>>>;

#[derive(Debug)]
struct Keeper(Seen);

impl OddFrames for Keeper {
    fn saw(&mut self, port: PortId, reason: DropReason, frame: &[u8], now: Nanos) {
        let mut seen = self.0.lock().unwrap();
        seen.push((port, reason, frame.to_vec(), now));
    }
}

/// A frame in order, one with a damaged header, one too short, one without a route and one whose source is forged.
fn shown(mut path: Path) -> Vec<(PortId, DropReason, Vec<u8>, Nanos)> {
    let seen = Seen::default();
    path.show_odd(Box::new(Keeper(Arc::clone(&seen))));
    let good = data("10.0.2.2").frame();
    let mut damaged = good.clone();
    damaged[24] ^= 0xff;
    let runt = good[..13].to_vec();
    let nowhere = data("192.0.2.1").frame();
    let forged = Craft {
        dst_mac: mac(0),
        ..Craft::roce(v4("127.0.0.1"), v4("10.0.2.2"), 0x0a, 0x11, 64)
    }
    .frame();
    for (now, frame) in (0..).zip([&good, &damaged, &runt, &nowhere, &forged]) {
        push(&mut path, DC, frame, now);
    }
    let odd = [
        (DC, DropReason::IpChecksum, damaged, Nanos(1)),
        (DC, DropReason::Runt, runt, Nanos(2)),
        (DC, DropReason::Martian, forged, Nanos(4)),
    ];
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen, odd);
    path.publish_held();
    assert_conserved(&path);
    seen
}

#[test]
fn odd_frames_are_shown_as_they_came_and_others_are_not() {
    shown(path(AMPLE));
}

#[test]
fn with_linux_too() {
    let (path, _host) = linux();
    shown(path);
}
