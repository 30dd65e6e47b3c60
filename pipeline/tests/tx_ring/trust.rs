//! Meaning of answers: learned, disproved, learned again; and what happens with any answers at all.

use std::cell::Cell;
use std::rc::Rc;

use npcc_card::{Profile, Status};
use npcc_pipeline::frame::FrameVec;
use npcc_pipeline::tx_ring::{Device, Style, TxRing};
use npcc_pipeline::units::{BURST, BitRate, Nanos};
use proptest::prelude::*;

use super::sim::{Port, profiles};

const RATE: BitRate = BitRate(10_000_000_000);

/// Returns the style that the product learns from answers of this kind.
fn style(status: Status) -> Style {
    match status {
        Status::Exact => Style::Exact,
        Status::FromOldest | Status::FromFreed => Style::FromOldest,
        Status::Rounded => Style::Rounded,
        Status::Absent => Style::Absent,
    }
}

/// No name reaches the product: the style is that of the answers.
#[test]
fn the_style_is_learned_from_answers_alone() {
    for (name, profile) in profiles() {
        let style = style(profile.status);
        for (descriptors, length) in [
            (128, 60),
            (512, 1_500),
            (1_024, 60),
            (1_024, 9_096),
            (4_096, 256),
        ] {
            let mut port = Port::new(profile, descriptors, 10, length);
            port.turn_of(Nanos::from_micros(1), 16);
            assert_eq!(
                port.ring.style(),
                style,
                "{name}, {descriptors} descriptors"
            );
            for _ in 0..5_000 {
                port.turn(Nanos::from_micros(5));
            }
            assert_eq!(port.ring.style(), style, "{name} after several rings");
        }
    }
}

/// Intel's drivers with `tx_rs_thresh` 1 answer exactly.
#[test]
fn a_report_for_each_frame_makes_rounded_answers_exact() {
    let profile = Profile::named("ice").unwrap().tx();
    let each = npcc_card::TxProfile {
        reports: npcc_card::Reports::ByIndex(1),
        ..profile
    };
    let mut port = Port::new(each, 1_024, 10, 1_500);
    port.turn(Nanos::from_micros(1));
    assert_eq!(port.ring.style(), Style::Exact);
}

/// Device whose answers and whose appetite a test sets.
struct Scripted {
    full: Box<dyn Fn(u16) -> Option<bool>>,
    takes: Cell<usize>,
    given: usize,
    offered: usize,
}

impl Scripted {
    fn new(full: impl Fn(u16) -> Option<bool> + 'static, takes: usize) -> Scripted {
        Scripted {
            full: Box::new(full),
            takes: Cell::new(takes),
            given: 0,
            offered: 0,
        }
    }
}

impl Device<u16> for Scripted {
    fn descriptors(&self) -> u16 {
        256
    }

    fn is_full(&self, offset: u16) -> Option<bool> {
        (self.full)(offset)
    }

    fn send(&mut self, frames: &mut FrameVec<u16>, most: usize) -> usize {
        self.offered += 1;
        let taken = frames.len().min(most).min(self.takes.get());
        frames.drain(..taken);
        self.given += taken;
        taken
    }

    fn length(&self, frame: &u16) -> usize {
        (*frame).into()
    }
}

/// Runs a turn with as many frames as the ring admits; returns the number that the device took.
fn turn(ring: &mut TxRing, device: &mut Scripted, unsent: &mut FrameVec<u16>, now: Nanos) -> usize {
    ring.poll(device, now);
    while unsent.len() < BURST && ring.byte_budget() > 0 {
        unsent.push(1_500);
        ring.put(std::iter::once(1_500), 1_524);
    }
    if unsent.is_empty() {
        return 0;
    }
    ring.send(device, unsent, now)
}

/// A driver that answers exactly at first, and then calls every descriptor full for ever: earlier, such a port sent one ring of frames and
/// stopped for good. It sends on, and is believed again when its answers are right again.
#[test]
fn a_driver_that_is_disproved_is_believed_again_once_it_answers_well() {
    let mut device = Scripted::new(|offset| Some(offset == 255), usize::MAX);
    let mut ring = TxRing::new(&device, 20_000, RATE);
    let mut unsent = FrameVec::default();
    turn(&mut ring, &mut device, &mut unsent, Nanos(1_000));
    assert_eq!(ring.style(), Style::Exact);
    device.full = Box::new(|_| Some(true));
    let mut now = 1_000;
    for _ in 0..20_000 {
        now += 1_000;
        turn(&mut ring, &mut device, &mut unsent, Nanos(now));
    }
    assert_ne!(ring.style(), Style::Exact);
    // From then on by time: 10 Gb/s are 0.82 frames of 1,524 bytes in a microsecond.
    let before = device.given;
    for _ in 0..1_000 {
        now += 1_000;
        turn(&mut ring, &mut device, &mut unsent, Nanos(now));
    }
    assert!(
        (780..=850).contains(&(device.given - before)),
        "{}",
        device.given - before
    );
    // After a second, and a time without frames.
    now += 1_100_000_000;
    ring.poll(&device, Nanos(now));
    device.full = Box::new(|offset| Some(offset >= 246));
    now += 1_000;
    turn(&mut ring, &mut device, &mut unsent, Nanos(now));
    assert_eq!(ring.style(), Style::Exact);
}

/// The first 10 ms without a frame may be a link that went down and is not noticed yet.
#[test]
fn a_device_that_takes_none_for_ten_milliseconds_has_stalled() {
    let mut device = Scripted::new(|_| None, usize::MAX);
    let mut ring = TxRing::new(&device, 20_000, RATE);
    let mut unsent = FrameVec::default();
    let mut run = |device: &mut Scripted, from: u64, ms: u64| {
        for us in from * 1_000..(from + ms) * 1_000 {
            turn(&mut ring, device, &mut unsent, Nanos(us * 1_000));
        }
        ring.counted().stalled
    };
    assert_eq!(run(&mut device, 0, 5), 0);
    device.takes.set(0);
    assert_eq!(run(&mut device, 5, 19), 0);
    assert_eq!(run(&mut device, 24, 3), 1);
    assert_eq!(run(&mut device, 27, 30), 4);
    device.takes.set(1);
    assert_eq!(
        run(&mut device, 57, 100),
        4,
        "a slow device is none that stalled"
    );
}

#[test]
fn a_link_of_unknown_speed_is_not_waited_for() {
    let mut device = Scripted::new(|_| None, usize::MAX);
    let mut ring = TxRing::new(&device, 20_000, BitRate(0));
    let mut unsent = FrameVec::default();
    for us in 1..1_000 {
        turn(&mut ring, &mut device, &mut unsent, Nanos(us * 1_000));
    }
    assert_eq!(device.given, 999 * BURST);
}

#[test]
fn the_time_in_which_a_link_holds_is_counted() {
    let exact = Profile::named("hns3").unwrap().tx();
    let mut port = Port::new(exact, 1_024, 25, 1_020);
    for _ in 0..1_000 {
        port.turn(Nanos::from_micros(2));
    }
    assert_eq!(port.ring.counted().held, 0);
    port.hold(true);
    for _ in 0..5_000 {
        port.turn(Nanos::from_micros(2));
    }
    let held = port.ring.counted().held;
    assert!((8..=10).contains(&held), "{held} of 10 ms");
}

proptest! {
    /// Whatever a driver answers and a device takes, a port is offered a burst within two milliseconds, unless frames leave its ring meanwhile.
    #[test]
    fn no_answer_locks_a_port(
        seed in any::<u64>(),
        silent in any::<bool>(),
        takes in prop::collection::vec(0usize..=BURST, 1..20),
        turns in prop::collection::vec(1_000u64..500_000, 100..400),
    ) {
        let moment = Rc::new(Cell::new(seed));
        let answers = Rc::clone(&moment);
        let mut device = Scripted::new(
            move |offset| (!silent).then(|| !npcc_pipeline::bits::mix(answers.get() ^ u64::from(offset / 16)).is_multiple_of(3)),
            0,
        );
        let mut ring = TxRing::new(&device, 20_000, RATE);
        let mut unsent = FrameVec::default();
        let (mut now, mut offered_at, mut bytes) = (0, 0, 0);
        for (n, away) in turns.into_iter().enumerate() {
            now += away;
            moment.set(npcc_pipeline::bits::mix(moment.get()));
            device.takes.set(takes[n % takes.len()]);
            let before = device.offered;
            turn(&mut ring, &mut device, &mut unsent, Nanos(now));
            if device.offered > before || ring.bytes() < bytes {
                offered_at = now;
            }
            bytes = ring.bytes();
            prop_assert!(now - offered_at < 2_000_000, "nothing was offered since {offered_at}");
        }
    }

    /// Rounded answers are never understood as others, wherever the ring stands.
    #[test]
    fn rounded_answers_are_never_believed(
        bursts in prop::collection::vec((1usize..=64, 1u64..3_000), 1..300),
        descriptors in prop::sample::select(vec![64u16, 128, 512, 1_024]),
    ) {
        for name in ["ice", "e1000e"] {
            let profile = Profile::named(name).unwrap().tx();
            let mut port = Port::new(profile, descriptors, 10, 60);
            for (most, us) in &bursts {
                port.turn_of(Nanos::from_micros(*us), *most);
                prop_assert!(!matches!(port.ring.style(), Style::Exact | Style::FromOldest));
            }
        }
    }
}
