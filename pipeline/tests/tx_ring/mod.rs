//! A transmit ring as a queue: what a card holds, and what it sends, for every style in which drivers answer.
//!
//! `cargo nextest run -p npcc-pipeline --test laws tx_ring:: --no-capture` prints the tables of docs/measurements.md.
#![forbid(unsafe_code)]

mod sim;
mod trust;

use npcc_card::{Profile, Reports, TxProfile};
use npcc_pipeline::tx_ring::{BATCH, SENDS, Style};
use npcc_pipeline::units::{BURST, Nanos};
use sim::{Port, profiles};

const SPEEDS: [u64; 4] = [10, 25, 100, 400];
/// Lengths without FCS: of 64 to 9,100 bytes with it.
const LENGTHS: [u16; 7] = [60, 256, 512, 1_020, 1_500, 4_178, 9_096];

/// Returns the most frames that are sent and whose descriptors the driver cannot fill again for want of a report.
fn unconfirmed(profile: TxProfile) -> u64 {
    match profile.reports {
        Reports::Each => 0,
        Reports::ByIndex(every) | Reports::ByCount(every) | Reports::ByBurst(every) => {
            u64::from(every) - 1
        }
    }
}

/// Law: 0.99 of the smaller of the shaper's rate and of what the ring's usable descriptors, or a turn's bursts, make.
#[test]
fn the_link_is_filled_in_every_style() {
    let mut short = Vec::new();
    println!(
        "style     Gb/s turn  {}",
        LENGTHS.map(|len| format!("{:>11} B", len + 4)).join("")
    );
    for (name, profile) in profiles() {
        for gbps in SPEEDS {
            for us in [1, 2, 3, 5, 10] {
                let mut cells = String::new();
                for length in LENGTHS {
                    let mut port = Port::new(profile, 1_024, gbps, length);
                    let turns = 4_000 / us;
                    // The first turns fill the ring and learn the style.
                    for _ in 0..turns / 4 {
                        port.turn(Nanos::from_micros(us));
                    }
                    let before = port.queue.card.ring(0).sent();
                    for _ in 0..turns {
                        port.turn(Nanos::from_micros(us));
                    }
                    let sent = port.queue.card.ring(0).sent() - before;
                    let rate = (sent * port.wire() * 8) as f64 / (turns * us * 1_000) as f64;
                    // Descriptors of frames that are sent and not confirmed take none.
                    let usable = (1_024 - u64::from(profile.unused) - unconfirmed(profile))
                        .min((SENDS * BURST) as u64);
                    let ring = (usable * port.wire() * 8) as f64 / (us * 1_000) as f64;
                    let ceiling = ring.min(gbps as f64 * 0.999);
                    cells += &format!("{rate:>7.2}/{ceiling:<5.1}");
                    if rate < 0.99 * ceiling {
                        short.push(format!(
                            "{name} {gbps} Gb/s, {us} us, {} B: {rate:.2} of {ceiling:.2}",
                            length + 4
                        ));
                    }
                }
                println!("{name:<9} {gbps:>4} {us:>2} us {cells}");
            }
        }
    }
    assert!(
        short.is_empty(),
        "{} cells:\n{}",
        short.len(),
        short.join("\n")
    );
}

/// Law: while the link sends, no more than the bound, what it sends in the longest absence, the frame that passes the limit,
/// and the one on the wire.
#[test]
fn a_card_holds_no_more_than_the_bound_and_an_absence() {
    for (name, profile) in profiles() {
        for gbps in SPEEDS {
            for length in LENGTHS {
                let mut port = Port::new(profile, 1_024, gbps, length);
                let mut seed = 7u64;
                for _ in 0..4_000 {
                    seed = npcc_pipeline::bits::mix(seed);
                    port.turn(Nanos(1_000 + seed % 9_000));
                }
                let most =
                    port.bound + port.rate.bytes_in(Nanos::from_micros(10)) + 2 * port.wire();
                assert!(
                    port.most <= most,
                    "{name} {gbps} Gb/s {length}: {} of {most}",
                    port.most
                );
                for us in [100, 1_000] {
                    port.turn(Nanos::from_micros(us));
                }
                let most =
                    port.bound + port.rate.bytes_in(Nanos::from_micros(100)) + 2 * port.wire();
                assert!(
                    port.most <= most,
                    "{name} {gbps} Gb/s {length}: {} of {most}",
                    port.most
                );
            }
        }
    }
}

/// Law: while the link holds, a driver that tells is given a batch more, and 64 frames a millisecond.
#[test]
fn a_link_that_holds_is_given_a_batch_and_a_burst_a_millisecond() {
    println!("style     Gb/s frame   bound+absence     batch   held after 5 ms   by law");
    let mut over = Vec::new();
    for (name, profile) in profiles() {
        for gbps in SPEEDS {
            for length in LENGTHS {
                let mut port = Port::new(profile, 1_024, gbps, length);
                let (away, held_ms) = (Nanos::from_micros(2), 5);
                for _ in 0..2_003 {
                    port.turn(away);
                }
                port.hold(true);
                for _ in 0..held_ms * 500 {
                    port.turn(away);
                }
                let batch = match port.ring.style() {
                    Style::Exact => 1,
                    Style::FromOldest => BATCH as u64 + 1,
                    // The driver confirms nothing but that its ring is full.
                    _ => 1_024,
                };
                let queue = port.bound + port.rate.bytes_in(away);
                let law = queue + (batch + 64 * held_ms) * port.wire();
                println!(
                    "{name:<9} {gbps:>4} {:>5} {queue:>15} {:>9} {:>17} {law:>8}",
                    length + 4,
                    batch * port.wire(),
                    port.held()
                );
                if port.held() > law {
                    over.push(format!("{name} {gbps} {length}: {} of {law}", port.held()));
                }
                // Never locked: the link resumes.
                let before = port.queue.card.ring(0).sent();
                port.hold(false);
                for _ in 0..1_000 {
                    port.turn(away);
                }
                let sent = (port.queue.card.ring(0).sent() - before) * port.wire();
                let least = port.rate.bytes_in(Nanos::from_millis(2)) / 2;
                let ring = 1_000 * 1_023 * port.wire();
                assert!(
                    sent >= least.min(ring / 2),
                    "{name} {gbps} {length}: {sent} of {least}"
                );
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

/// Ways to bound a ring whose driver does not tell: what a ring of fewer descriptors costs, and what it holds when the link does; and the
/// same driver with a report for each frame (`tx_rs_thresh` 1), whose answers are exact.
#[test]
fn smaller_rings_hold_less_and_carry_fewer_small_frames() {
    println!(
        "100 Gb/s, turns of 10 us, a driver that rounds; Gb/s, and bytes held after the link held for 5 ms"
    );
    println!(
        "ring         {}",
        [64, 1_024, 9_100]
            .map(|len| format!("{len:>22} B"))
            .join("")
    );
    let rounded = Profile::named("ice").unwrap().tx();
    let each = TxProfile {
        reports: Reports::ByIndex(1),
        ..rounded
    };
    let mut held_before = 0;
    for (name, profile, descriptors) in [
        ("128", rounded, 128),
        ("256", rounded, 256),
        ("512", rounded, 512),
        ("1,024", rounded, 1_024),
        ("1,024, RS 1", each, 1_024),
    ] {
        let mut cells = String::new();
        let mut held = 0;
        for length in [60, 1_020, 9_096] {
            let mut port = Port::new(profile, descriptors, 100, length);
            let away = Nanos::from_micros(10);
            let sent: usize = (0..1_000).map(|_| port.turn(away)).sum();
            let rate = (sent as u64 * port.wire() * 8) as f64 / 10_000_000.0;
            port.hold(true);
            for _ in 0..500 {
                port.turn(away);
            }
            held = port.held();
            cells += &format!("{rate:>10.2} {held:>13}");
        }
        println!("{name:<13}{cells}");
        if descriptors != 1_024 {
            assert!(held > held_before);
            held_before = held;
        }
    }
}
