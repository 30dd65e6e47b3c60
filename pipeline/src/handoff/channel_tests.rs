//! A channel between two threads: real ones, and under loom (`RUSTFLAGS="--cfg loom" cargo test --release -p npcc-pipeline --lib loom`).

use super::*;
use crate::units::PortId;

/// Makes a run of the frames with these numbers; the length of a frame follows from its number.
fn run(numbers: std::ops::Range<u32>) -> Run<u32> {
    let mut run = Run::default();
    for number in numbers {
        run.push(number, &record(number));
    }
    run
}

fn record(number: u32) -> Record {
    Record {
        len: 64 + (number % 1_000) as u16,
        qp: number,
        ..Record::EMPTY
    }
}

/// Asserts that a run has the frames from `first` on, that it describes them, and that there are as many as its head announces; returns the number of
/// the frame after it.
fn follows(run: &mut Run<u32>, first: u32) -> u32 {
    let mut next = first;
    let mut head = RunHead::new(PortId(0), run.head.priority, run.head.group);
    for (frame, known) in run.frames.iter().zip(run.known()) {
        assert_eq!((*frame, *known), (next, record(next)));
        head.add(known.len);
        next += 1;
    }
    assert_eq!(run.head, head);
    run.frames.clear();
    next
}

/// Takes the next run, if there is one; returns the number of the frame after it.
fn take(inward: &mut Inward<u32>, next: u32) -> u32 {
    let Some(frames) = inward.next() else {
        return next;
    };
    let mut run = Run::default();
    inward.take(&mut run);
    assert_eq!(run.frames.len(), frames);
    follows(&mut run, next)
}

/// Regression: a sender found the channel full, read the free slots again, found more than its run had frames, and panicked.
#[cfg(not(loom))]
#[test]
fn runs_into_a_full_channel_arrive_in_order_and_once() {
    // Two threads on one core change turns once a channel: a run costs a time slice. `test-long histories` sends more.
    let runs = crate::cases::cases(2_000).cases;
    let (mut outward, mut inward) = channel(64);
    let sender = std::thread::spawn(move || {
        let mut next = 0;
        let mut in_parts = 0u32;
        for n in 0..runs {
            // Every length from 1 to 64, in an order without pattern.
            let length = n.wrapping_mul(0x9e37_79b9) >> 26;
            let mut run = run(next..next + length + 1);
            next += length + 1;
            in_parts += u32::from(outward.send(&mut run) <= length as usize);
            while !run.frames.is_empty() {
                std::thread::yield_now();
                outward.send(&mut run);
            }
        }
        (next, in_parts)
    });
    let mut next = 0;
    while !sender.is_finished() {
        let before = next;
        next = take(&mut inward, next);
        if next == before {
            std::thread::yield_now();
        }
    }
    let (sent, in_parts) = sender.join().unwrap();
    while inward.next().is_some() {
        next = take(&mut inward, next);
    }
    assert_eq!(next, sent);
    assert!(in_parts > 0, "the channel was never full");
}

#[cfg(loom)]
mod loom_tests {
    use super::*;
    use std::collections::VecDeque;

    /// Law: whatever the reader takes meanwhile, a run crosses whole or its front does, and nothing is lost, doubled or reordered.
    #[test]
    fn a_run_crosses_while_the_reader_makes_room() {
        // Channel of two frames: filled by one run or by two, then a run of two, or of one as long as two free slots may be.
        for runs in [&[2, 2][..], &[2, 1], &[1, 1, 2], &[1, 1, 1], &[1, 2, 1]] {
            loom::model(move || {
                let (mut outward, mut inward) = channel(2);
                let reader = loom::thread::spawn(move || {
                    let next = take(&mut inward, 0);
                    (take(&mut inward, next), inward)
                });
                let mut waiting = VecDeque::new();
                let mut count = 0;
                for length in runs {
                    waiting.push_back(run(count..count + length));
                    count += length;
                }
                let mut send = || {
                    while let Some(run) = waiting.front_mut() {
                        outward.send(run);
                        if !run.frames.is_empty() {
                            return false;
                        }
                        waiting.pop_front();
                    }
                    true
                };
                // The second attempt is that of the next turn.
                let _ = send() || send();
                let (mut next, mut inward) = reader.join().unwrap();
                while !send() || inward.next().is_some() {
                    next = take(&mut inward, next);
                }
                assert_eq!(next, count);
            });
        }
    }
}
