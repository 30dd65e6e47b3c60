use super::*;
use crate::traffic_tests::rig::{DC, Packet, QUEUE, WAN};
use npcc_pipeline::frame::{FlowSlot, FrameBuf, HeapFrame, Meta, wire_len};
use npcc_pipeline::parse::parse;
use npcc_pipeline::tap::{FlowTap, Sighting};
use npcc_pipeline::units::{PortId, Priority};
use npcc_roce::sample::PacketSample;

#[path = "run_tests.rs"]
mod run_tests;

const DATA: Packet = Packet {
    src: [10, 0, 1, 3],
    dst: [10, 0, 2, 2],
    port: 49560,
    opcode: 0x0a,
    qpn: 0x11,
    psn: 7,
    payload: 1024,
};

fn show(
    cache: &mut FlowCache,
    packet: &Packet,
    ingress: PortId,
    egress: PortId,
    now: Nanos,
) -> FlowSlot {
    show_frame(cache, &packet.frame(), ingress, egress, now)
}

fn show_frame(
    cache: &mut FlowCache,
    frame: &HeapFrame,
    ingress: PortId,
    egress: PortId,
    now: Nanos,
) -> FlowSlot {
    let parsed = parse(frame.data()).unwrap();
    let roce = parsed.roce.unwrap();
    let meta = Meta::of(frame.data().len(), ingress, egress, QUEUE);
    cache.see(&Sighting {
        data: frame.data(),
        addresses: parsed.addresses_v4,
        parsed: &parsed,
        roce,
        meta: &meta,
        now,
    })
}

fn small(slots: usize, ring: usize) -> (FlowCache, CacheReader) {
    FlowCache::new(slots, WAN.bit(), ring, 3)
}

fn drain(reader: &mut CacheReader) -> Vec<PacketSample> {
    std::iter::from_fn(|| reader.pop()).collect()
}

#[test]
fn a_record_says_what_the_packet_said() {
    let (mut cache, mut reader) = small(64, 64);
    let slot = show(&mut cache, &DATA, DC, WAN, Nanos(5_000));
    let record = reader.pop().unwrap();
    assert_eq!(record.key.to_string(), "10.0.1.3 > 10.0.2.2 qp 0x11");
    assert_eq!(
        (record.psn, record.udp_port, record.opcode),
        (7, 49560, 0x0a)
    );
    assert_eq!(
        (record.ingress, record.egress, record.priority),
        (DC, WAN, QUEUE)
    );
    assert!(record.flags.has(npcc_roce::sample::SampleFlags::ACK_REQ));
    assert_eq!(
        (record.slot.slot, record.packets, record.syndrome),
        (slot, 1, None)
    );
    let ack = Packet {
        src: DATA.dst,
        dst: DATA.src,
        opcode: 0x11,
        qpn: 0x18,
        payload: 0,
        ..DATA
    };
    show(&mut cache, &ack, WAN, DC, Nanos(80_000));
    assert_eq!(reader.pop().unwrap().syndrome, Some(0));
}

#[test]
fn only_what_reveals_or_contributes_is_watched() {
    for (opcode, ingress, egress, watched) in [
        (0x0a, DC, WAN, true),
        (0x0a, WAN, DC, true),
        (0x0a, DC, PortId(2), false),
        (0x11, WAN, DC, true),
        (0x11, DC, WAN, true),
        (0x0c, WAN, DC, true),
        (0x0c, DC, WAN, false),
        (0x81, WAN, DC, true),
        (0x64, WAN, DC, true),
        (0x64, DC, WAN, true),
        (0x64, DC, PortId(2), false),
        (0xa4, DC, WAN, false),
    ] {
        let (mut cache, _reader) = small(64, 64);
        let payload = if opcode == 0x64 { 64 } else { 0 };
        let slot = show(
            &mut cache,
            &Packet {
                opcode,
                payload,
                ..DATA
            },
            ingress,
            egress,
            Nanos(1),
        );
        assert_eq!(
            slot != FlowSlot::NONE,
            watched,
            "{opcode:#x} {ingress:?} to {egress:?}"
        );
    }
}

#[test]
fn bytes_of_data_count_and_bytes_of_acks_do_not() {
    let (mut cache, mut reader) = small(64, 64);
    for n in 1..=10u64 {
        show(&mut cache, &DATA, WAN, DC, Nanos(n));
        show(
            &mut cache,
            &Packet {
                opcode: 0x11,
                payload: 0,
                ..DATA
            },
            WAN,
            DC,
            Nanos(n),
        );
    }
    let slot = reader.pop().unwrap().slot;
    let bytes = 10 * u64::from(wire_len(DATA.frame().data().len()));
    assert_eq!(
        reader.read(slot),
        Some(SlotReading {
            bytes,
            packets: 20,
            request: Some(DATA.psn),
            last_seen: Nanos(10)
        })
    );
}

#[test]
fn sixteen_details_then_at_most_five_in_ten_milliseconds() {
    let (mut cache, mut reader) = small(64, 1024);
    for n in 0..100u64 {
        show(&mut cache, &DATA, DC, WAN, Nanos(n));
    }
    assert_eq!(drain(&mut reader).len(), 16);
    for ms in 0..100u64 {
        show(&mut cache, &DATA, DC, WAN, Nanos::from_millis(ms));
    }
    let later = drain(&mut reader).len();
    assert!((9..=50).contains(&later), "{later} records in 100 ms");
}

#[test]
fn many_flows_are_shown_again_less_often_each() {
    const FLOWS: u32 = 40_000;
    let (mut cache, mut reader) = small(2 * FLOWS as usize, 1 << 20);
    let one = |cache: &mut FlowCache, qpn, now| show(cache, &Packet { qpn, ..DATA }, DC, WAN, now);
    for qpn in 1..=FLOWS {
        one(&mut cache, qpn, Nanos::ZERO);
    }
    let first = reader.pop().unwrap();
    reader.set_control(first.slot, SlotControl::paired(true));
    drain(&mut reader);
    let mut again = |ms| {
        one(&mut cache, 1, Nanos::from_millis(ms));
        reader.pop().is_some()
    };
    assert!(!again(300), "one of few would be shown");
    assert!(again(500), "after 328 ms, and half as long for one chosen");
}

#[test]
fn plain_packets_leave_room_for_those_that_tell_more() {
    let (mut cache, mut reader) = small(64, 1024);
    let plain = Packet {
        opcode: 0x0e,
        ..DATA
    };
    // The generator sets AckReq everywhere; a middle READ RESPONSE without it is plain.
    let plain_show = |cache: &mut FlowCache, n| {
        let frame = plain.changed(|frame| frame[50] = 0);
        let parsed = parse(frame.data()).unwrap();
        let meta = Meta::of(76, DC, WAN, QUEUE);
        cache.see(&Sighting {
            data: frame.data(),
            addresses: parsed.addresses_v4,
            parsed: &parsed,
            roce: parsed.roce.unwrap(),
            meta: &meta,
            now: Nanos(n),
        });
    };
    (0..100).for_each(|n| plain_show(&mut cache, n));
    assert_eq!(drain(&mut reader).len(), 8);
    (0..100).for_each(|n| {
        show(&mut cache, &DATA, DC, WAN, Nanos(n));
    });
    assert_eq!(drain(&mut reader).len(), 8);
}

#[test]
fn a_paired_flow_sends_no_details() {
    let (mut cache, mut reader) = small(64, 64);
    show(&mut cache, &DATA, DC, WAN, Nanos(0));
    let slot = reader.pop().unwrap().slot;
    reader.set_control(slot, SlotControl::paired(true));
    (1..100).for_each(|n| {
        show(&mut cache, &DATA, DC, WAN, Nanos(n));
    });
    assert!(reader.pop().is_none());
    show(&mut cache, &DATA, DC, WAN, Nanos::from_millis(11));
    assert!(reader.pop().is_some(), "the refresh goes on");
}

#[test]
fn another_port_is_shown_at_once_though_paired() {
    let (mut cache, mut reader) = small(64, 1024);
    show(&mut cache, &DATA, DC, WAN, Nanos(0));
    let slot = reader.pop().unwrap().slot;
    reader.set_control(slot, SlotControl::paired(true));
    for n in 1..100u16 {
        let moved = Packet {
            port: DATA.port + n,
            ..DATA
        };
        show(&mut cache, &moved, DC, WAN, Nanos(u64::from(n)));
        show(&mut cache, &moved, DC, WAN, Nanos(u64::from(n)));
    }
    let ports: Vec<_> = drain(&mut reader)
        .iter()
        .map(|record| record.udp_port)
        .collect();
    assert_eq!(
        ports,
        [1, 2, 3, 4].map(|n| DATA.port + n),
        "and not without end"
    );
}

/// Another connection takes a queue pair's number while a flood fills the ring.
#[test]
fn another_port_is_shown_when_the_ring_has_room_again() {
    let (mut cache, mut reader) = small(64, 1);
    show(&mut cache, &DATA, DC, WAN, Nanos(0));
    let slot = reader.pop().unwrap().slot;
    reader.set_control(slot, SlotControl::paired(true));
    let other = Packet { qpn: 0x99, ..DATA };
    show(&mut cache, &other, DC, WAN, Nanos(1));
    let moved = Packet {
        port: DATA.port + 1,
        ..DATA
    };
    let us = Nanos::from_micros;
    for n in 1..100 {
        show(&mut cache, &moved, DC, WAN, us(n));
    }
    assert_eq!(reader.pop().unwrap().key.dest_qp().get(), 0x99);
    show(&mut cache, &moved, DC, WAN, us(200));
    let shown = reader.pop().unwrap();
    assert_eq!(
        (shown.key.dest_qp().get(), shown.udp_port),
        (DATA.qpn, moved.port)
    );
    show(&mut cache, &moved, DC, WAN, us(300));
    assert!(reader.pop().is_none(), "once");
}

#[test]
fn a_negative_answer_too_soon_to_be_shown_loses_no_port() {
    let (mut cache, mut reader) = small(64, 64);
    let nak = Packet {
        opcode: 0x11,
        ..DATA
    };
    let negative = |cache: &mut FlowCache, port, now| {
        let bth = 14 + 20 + 8;
        let frame = Packet { port, ..nak }.changed(|frame| frame[bth + 12] = 0x60);
        show_frame(cache, &frame, DC, WAN, now)
    };
    negative(&mut cache, DATA.port, Nanos(0));
    let slot = drain(&mut reader)[0].slot;
    reader.set_control(slot, SlotControl::paired(true));
    negative(&mut cache, DATA.port + 1, Nanos(1_000));
    assert!(reader.pop().is_none(), "within 4 us");
    let moved = Packet {
        port: DATA.port + 1,
        ..nak
    };
    show(&mut cache, &moved, DC, WAN, Nanos(2_000));
    assert_eq!(reader.pop().unwrap().udp_port, DATA.port + 1);
}

#[test]
fn a_full_ring_loses_samples_and_counts_them() {
    let (mut cache, mut reader) = small(64, 2);
    (0..10).for_each(|n| {
        show(&mut cache, &DATA, DC, WAN, Nanos(n));
    });
    assert_eq!(
        (
            reader.counters().samples.get(),
            reader.counters().sample_drops.get()
        ),
        (2, 8)
    );
    let slot = reader.pop().unwrap().slot;
    assert_eq!(reader.read(slot).unwrap().packets, 10);
}

#[test]
fn live_flows_are_not_displaced_and_idle_ones_are() {
    let (mut cache, mut reader) = small(8, 1024);
    let flow = |qpn| Packet { qpn, ..DATA };
    for time in [0, 1] {
        for qpn in 0..8 {
            let now = Nanos::from_micros(u64::from(8 * time + qpn));
            let slot = show(&mut cache, &flow(qpn), DC, WAN, now);
            assert_ne!(slot, FlowSlot::NONE);
        }
    }
    let first = reader.pop().unwrap().slot;
    assert_eq!(
        show(&mut cache, &flow(100), DC, WAN, Nanos::from_millis(5)),
        FlowSlot::NONE
    );
    assert_eq!(reader.counters().cache_full.get(), 1);
    let newcomer = show(&mut cache, &flow(100), DC, WAN, Nanos::from_millis(20));
    assert_eq!(newcomer, first.slot, "the longest unseen goes");
    assert_eq!(reader.counters().replaced.get(), 1);
    assert_eq!(reader.read(first), None, "its slot is another flow's");
    let now = drain(&mut reader).last().unwrap().slot;
    assert_eq!(reader.read(now).unwrap().packets, 1);
}

/// Regression: a flood of names with a packet each filled the sets, and new flows went uncounted.
#[test]
fn a_flow_of_a_single_packet_makes_room_and_one_of_two_does_not() {
    let (mut cache, reader) = small(8, 1024);
    let mut see = |qpn, now| show(&mut cache, &Packet { qpn, ..DATA }, DC, WAN, Nanos(now));
    let known: Vec<_> = (0..7).map(|qpn| [see(qpn, 1), see(qpn, 2)]).collect();
    for qpn in 100..200 {
        assert_ne!(see(qpn, 3), FlowSlot::NONE);
    }
    let still: Vec<_> = (0..7).map(|qpn| [see(qpn, 4); 2]).collect();
    assert_eq!(known, still);
    assert_eq!(reader.counters().cache_full.get(), 0);
    assert_eq!(reader.counters().replaced.get(), 99);
}

/// Regression: under a flood of new flows the worker did nothing but choose slots by the ages of eight, 733 cycles a packet.
#[test]
fn a_source_that_floods_gets_no_more_slots_than_its_part_and_another_gets_its_own() {
    let (mut cache, reader) = small(1 << 20, 64);
    let (now, queue) = (
        Nanos::from_millis(20),
        npcc_roce::key::queue_bits(WAN, QUEUE),
    );
    let admitted = (0..2u64 << 18).filter(|qpn| {
        let key = CacheKey {
            pair: [*qpn | queue, 0x0a00_0103_0a00_0202],
            addresses: [0; 32],
        };
        let (home, tag) = cache.home(key.pair);
        cache.elsewhere((home, tag), &key, DC, now).is_some()
    });
    assert_eq!(
        admitted.count(),
        (1 << 18) + 256,
        "the reserve, and its own part"
    );
    assert_eq!(reader.counters().cache_full.get(), (1 << 18) - 256);
    let other = Packet {
        src: [10, 0, 1, 9],
        ..DATA
    };
    assert_ne!(show(&mut cache, &other, DC, WAN, now), FlowSlot::NONE);
    let later = now + Nanos::from_millis(1);
    let again = (0..10_000).filter(|qpn| {
        let packet = Packet {
            qpn: (1 << 22) + qpn,
            ..DATA
        };
        show(&mut cache, &packet, DC, WAN, later) != FlowSlot::NONE
    });
    assert!((200..=1_000).contains(&again.count()), "a million a second");
}

/// Law: a strike is owed while the control word says so, from the byte it names on, and is not charged to the next flow in the slot.
#[test]
fn a_strike_is_owed_by_the_word_and_its_successor_owes_nothing() {
    let (mut cache, mut reader) = small(8, 1024);
    let slot = show(&mut cache, &DATA, DC, WAN, Nanos(0));
    let reference = reader.pop().unwrap().slot;
    let meta = Meta {
        slot,
        ..Meta::of(64, DC, WAN, Priority::new(3))
    };
    assert!(!cache.owe(&meta) && !cache.may_owe(), "no word yet");
    let word = |owes_from| SlotControl {
        owes: true,
        owes_from,
        ..SlotControl::default()
    };
    reader.set_control(reference, word(0));
    assert!(cache.owe(&meta) && cache.owe(&meta));
    let bytes = reader.read(reference).unwrap().bytes;
    reader.set_control(reference, word(bytes + 64));
    assert!(!cache.owe(&meta), "not earned");
    let strike = OwedStrike {
        slot: reference,
        egress: WAN,
        priority: Priority::new(3),
    };
    assert_eq!([reader.pop_owed(), reader.pop_owed()], [Some(strike); 2]);
    assert_eq!(reader.pop_owed(), None);
    assert!(!cache.owe(&Meta::of(64, DC, WAN, Priority::new(3))));
    // A ring that is full owes no more: the frame is marked.
    reader.set_control(reference, word(0));
    reader.set_control(reference, word(0));
    assert!(cache.may_owe());
    reader.set_control(reference, SlotControl::default());
    assert!(!cache.may_owe());
    reader.set_control(reference, word(0));
    let owed = (0..10_000).filter(|_| cache.owe(&meta)).count();
    assert_eq!(owed, 4_096);
    (0..owed).for_each(|_| assert_eq!(reader.pop_owed(), Some(strike)));
    (1..=8).for_each(|qpn| {
        let other = Packet {
            qpn: 0x100 + qpn,
            ..DATA
        };
        show(&mut cache, &other, DC, WAN, Nanos::from_millis(20));
    });
    assert!(!cache.owe(&meta));
}

/// Each returned strike is written on one frame.
#[test]
fn returned_strikes_are_redeemed_once_each() {
    let (mut cache, mut reader) = small(8, 1024);
    let slot = show(&mut cache, &DATA, DC, WAN, Nanos(0));
    let reference = reader.pop().unwrap().slot;
    assert!(!cache.redeem(slot) && !cache.has_returned(Nanos(0)));
    for returned in (1..=600u32).map(|n| u8::try_from(n % 256).unwrap()) {
        let word = SlotControl {
            returned,
            ..SlotControl::default()
        };
        reader.set_control(reference, word);
        reader.expect_returned(Nanos(7));
        assert!(cache.has_returned(Nanos(6)) && !cache.has_returned(Nanos(7)));
        assert!(cache.redeem(slot) && !cache.redeem(slot));
    }
    assert!(!cache.redeem(FlowSlot::NONE));
}

/// Law, with both halves at work at once: a reading of the control core is of one flow, whatever the worker replaces meanwhile.
#[test]
fn both_halves_work_on_their_own_threads() {
    const PACKETS: u32 = if cfg!(miri) { 60 } else { 20_000 };
    let (mut cache, mut reader) = small(8, 16);
    let worker = std::thread::spawn(move || {
        for n in 0..PACKETS {
            // Each flow is idle for long enough that its slot goes to the next.
            let packet = Packet {
                qpn: 1 + n / 2,
                ..DATA
            };
            show(
                &mut cache,
                &packet,
                DC,
                WAN,
                Nanos(u64::from(n) * 80_000_000),
            );
        }
        cache
    });
    let mut seen = 0;
    let mut look = || {
        while let Some(record) = reader.pop() {
            seen += 1;
            reader.set_control(record.slot, SlotControl::paired(true));
            if let Some(reading) = reader.read(record.slot) {
                // Two packets a flow, of as many bytes each.
                let whole = u64::from(record.wire_len) * u64::from(reading.packets);
                assert!(
                    reading.packets <= 2 && reading.bytes <= whole + u64::from(record.wire_len)
                );
            }
        }
    };
    while !worker.is_finished() {
        look();
        std::thread::yield_now();
    }
    look();
    let cache = worker.join().unwrap();
    let counters = &cache.shared.counters;
    assert_eq!(seen, counters.samples.get());
    assert!(seen > 0);
}

/// The flow's refresh is due only after seconds, and by then its sequence numbers would have left their bucket.
#[test]
fn a_fast_flow_among_many_is_shown_by_its_packets() {
    let (mut cache, mut reader) = small(1 << 17, 1 << 20);
    for qpn in 1..=40_000 {
        show(&mut cache, &Packet { qpn, ..DATA }, DC, WAN, Nanos::ZERO);
    }
    let first = reader.pop().unwrap();
    reader.set_control(first.slot, SlotControl::paired(true));
    drain(&mut reader);
    for n in 0..200_000 {
        show(
            &mut cache,
            &Packet { qpn: 1, ..DATA },
            DC,
            WAN,
            Nanos(n * 1_000),
        );
    }
    let shown: Vec<_> = drain(&mut reader)
        .iter()
        .map(|record| record.packets)
        .collect();
    assert_eq!(shown, [65_536, 131_072, 196_608]);
}

#[test]
fn the_first_cnp_is_shown_at_once_and_the_next_after_a_gap() {
    let cnp = Packet {
        opcode: 0x81,
        ..DATA
    };
    for start in [0, 1, u64::from(u32::MAX) << AGE_SHIFT] {
        let (mut cache, mut reader) = small(64, 64);
        let mut is_shown = |after| {
            show(&mut cache, &cnp, WAN, DC, Nanos(start + after));
            reader.pop().is_some()
        };
        assert_eq!(
            [0, 1_000, 5_000, 6_000].map(&mut is_shown),
            [true, false, true, false]
        );
    }
}

/// Makes the packet's frame with a wrong ICRC, which no card accepts.
fn wrong(packet: &Packet) -> HeapFrame {
    let mut frame = packet.frame();
    *frame.data_mut().last_mut().unwrap() ^= 1;
    frame
}

/// Regression: a packet with a wrong ICRC, which no card accepts, was shown and believed: anybody who can open a UDP socket can write one.
#[test]
fn a_packet_with_a_wrong_icrc_is_counted_and_not_shown() {
    let (mut cache, mut reader) = small(64, 64);
    let turn = Nanos(16 << AGE_SHIFT);
    let moved = Packet {
        port: DATA.port + 1,
        ..DATA
    };
    let slot = show(&mut cache, &DATA, DC, WAN, Nanos(0));
    assert!(reader.pop().is_some());
    for n in 1..100 {
        let counted = show_frame(&mut cache, &wrong(&moved), DC, WAN, Nanos(n * turn.0));
        assert_eq!(counted, slot);
    }
    assert!(reader.pop().is_none());
    let shared = reader.shared();
    assert!(shared.damaged_by(DC) >= 15 && shared.damaged_by(WAN) == 0);
    // It is no longer new, so it has its turn after 10 ms; its port is as it was.
    show(&mut cache, &DATA, DC, WAN, Nanos::from_millis(20));
    let record = reader.pop().unwrap();
    assert_eq!((record.packets, record.udp_port), (101, DATA.port));
    assert_eq!(reader.counters().sample_drops.get(), 0);
}

/// A jumbo frame of a new flow.
fn jumbo(qpn: u32) -> Packet {
    Packet {
        qpn,
        payload: 8_192,
        ..DATA
    }
}

/// Number of jumbo frames of a source that are checked at once while nobody else needs the reserve.
fn burst() -> u64 {
    let each = jumbo(1).frame().data().len() as u64;
    (1 << 18) / each + (1 << 28) / each
}

/// Regression: at line rate each wrong packet would cost an ICRC, and other packets by that port were not shown either.
#[test]
fn packets_of_one_source_with_a_wrong_icrc_take_nothing_from_others() {
    let (mut cache, mut reader) = small(1 << 18, 64);
    for n in 0..40_000 {
        show_frame(&mut cache, &wrong(&jumbo(n)), DC, WAN, Nanos(0));
    }
    let counters = reader.counters();
    let checked = reader.shared().damaged_by(DC);
    assert_eq!(checked, burst());
    let uncounted = counters.cache_full.get();
    assert_eq!(counters.sample_drops.get() + uncounted, 40_000 - checked);
    let neighbour = Packet {
        src: [10, 0, 1, 77],
        ..DATA
    };
    let now = Nanos::from_micros(10);
    show(&mut cache, &neighbour, DC, WAN, now);
    assert!(reader.pop().is_some(), "its neighbour's are shown");
    show(&mut cache, &DATA, WAN, DC, now);
    assert!(reader.pop().is_some(), "and another port's");
    show(&mut cache, &DATA, DC, WAN, now + now);
    assert!(reader.pop().is_some(), "and its own in the next turn");
}

/// A known flow is limited by the pace instead: other flows that its source begins are not held against it.
#[test]
fn a_known_flow_is_refreshed_whatever_its_source_begins() {
    let (mut cache, mut reader) = small(1 << 18, 1 << 16);
    show(&mut cache, &DATA, DC, WAN, Nanos(0));
    let first = reader.pop().unwrap();
    reader.set_control(first.slot, SlotControl::paired(true));
    let later = Nanos::from_millis(30);
    // Fewer flows than slow the pace down.
    for n in (100..9_100).cycle().take(40_000) {
        show(&mut cache, &jumbo(n), DC, WAN, later);
    }
    assert_eq!(drain(&mut reader).len() as u64, burst());
    show(&mut cache, &DATA, DC, WAN, later);
    assert_eq!(reader.pop().map(|record| record.packets), Some(2));
}
