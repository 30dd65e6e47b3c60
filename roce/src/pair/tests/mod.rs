use super::connections::{ConnectionTable, EndpointId};
use super::endpoints::LIVE;
use super::port_hash::port_of;
use super::*;
use crate::key::FlowKey;
use crate::sample::{PacketSample, SampleFlags, SlotRef};
use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_pipeline::wire::bth::RoceClass;

mod datagrams;
mod foreign;
mod given;
mod ports;
mod psns;

const A: &str = "10.0.1.3";
const B: &str = "10.0.2.2";

fn record(src: &str, dst: &str, qpn: u32, opcode: u8, port: u16, now: Nanos) -> PacketSample {
    PacketSample {
        key: FlowKey::new(src.parse().unwrap(), dst.parse().unwrap(), Qpn::new(qpn)),
        time: now,
        slot: SlotRef {
            slot: FlowSlot(qpn),
            generation: 2,
        },
        packets: u32::try_from(now.0 / 1_000).unwrap(),
        psn: 0,
        source_qp: None,
        udp_port: port,
        wire_len: 1_100,
        opcode,
        class: RoceClass::of(opcode, qpn),
        flags: SampleFlags::default(),
        syndrome: None,
        ingress: PortId(0),
        egress: PortId(1),
        priority: Priority::new(3),
    }
}

struct Book(ConnectionTable);

impl Book {
    fn new() -> Book {
        Book(ConnectionTable::new(64, 5))
    }

    /// Observes data of A to this queue pair of B.
    fn data(&mut self, qpn: u32, port: u16, now: Nanos) -> EndpointId {
        self.0
            .observe(&record(A, B, qpn, 0x0a, port, now), 0)
            .unwrap()
    }

    /// Observes an ACK of B to this queue pair of A.
    fn ack(&mut self, qpn: u32, port: u16, now: Nanos) -> EndpointId {
        self.0
            .observe(&record(B, A, qpn, 0x11, port, now), 0)
            .unwrap()
    }
}

fn hash(a: u32, b: u32) -> u16 {
    port_of(Qpn::new(a), Qpn::new(b))
}

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

fn paired(qpn: u32, evidence: Evidence) -> Pairing {
    Pairing::Paired(Qpn::new(qpn), evidence)
}

#[test]
fn evidence_ranks_as_documented() {
    use Evidence::{Cm, None, Port, PortHash, Psn};
    assert!(Cm > PortHash && PortHash > Psn && Psn > Port && Port > None);
    assert!(
        Evidence::ALL
            .into_iter()
            .enumerate()
            .all(|(at, one)| one.index() == at && Evidence::from_index(at) == Some(one))
    );
}

#[test]
fn cold_until_something_comes_back() {
    let mut book = Book::new();
    let endpoint = book.data(0x11, 50_000, ms(1));
    assert_eq!(book.0.pairing(endpoint, ms(1)), Pairing::Cold);
    book.ack(0x18, 60_000, ms(2));
    assert_eq!(book.0.pairing(endpoint, ms(2)), Pairing::Unpaired);
}

#[test]
fn the_hash_pairs_at_the_first_packet_back_both_ways() {
    let mut book = Book::new();
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    let ack = book.ack(0x18, hash(0x18, 0x11), ms(1));
    assert_eq!(
        book.0.pairing(data, ms(1)),
        paired(0x18, Evidence::PortHash)
    );
    assert_eq!(book.0.pairing(ack, ms(1)), paired(0x11, Evidence::PortHash));
}

#[test]
fn a_second_that_fits_the_hash_demotes_both() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let data = book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    let twin = (2..1 << 20)
        .find(|a| *a != 0x18 && hash(*a, 0x11) == port)
        .unwrap();
    book.ack(twin, port, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), Pairing::Unpaired);
}

#[test]
fn the_hash_is_not_believed_where_it_often_fails() {
    let mut book = Book::new();
    // Three connections that share ports by another rule, one that fits by chance.
    for (a, b, port) in [
        (0x20, 0x30, 50_001),
        (0x21, 0x31, 50_002),
        (0x22, 0x32, 50_003),
    ] {
        book.data(b, port, ms(1));
        book.ack(a, port, ms(1));
    }
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    book.ack(0x18, hash(0x18, 0x11), ms(1));
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
}

#[test]
fn a_port_pairs_after_fifty_milliseconds_and_sixty_four_packets() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11) ^ 1;
    let data = book.data(0x11, port, Nanos(1_000));
    book.ack(0x18, port, Nanos(2_000));
    assert_eq!(
        book.0.pairing(data, ms(60)).evidence(),
        Evidence::None,
        "too few packets"
    );
    book.data(0x11, port, Nanos(100_000));
    book.ack(0x18, port, Nanos(101_000));
    assert_eq!(
        book.0.pairing(data, ms(51)).evidence(),
        Evidence::None,
        "what is in flight was not known yet"
    );
    book.ack(0x18, port, ms(30));
    assert_eq!(
        book.0.pairing(data, ms(49)).evidence(),
        Evidence::None,
        "too early"
    );
    assert_eq!(book.0.pairing(data, ms(51)), paired(0x18, Evidence::Port));
}

#[test]
fn another_arrival_on_the_port_demotes_at_once() {
    for second_is_data in [true, false] {
        let mut book = Book::new();
        let port = hash(0x18, 0x11) ^ 1;
        let data = book.data(0x11, port, ms(1));
        book.ack(0x18, port, ms(1));
        book.data(0x11, port, ms(60));
        assert_eq!(
            book.0.pairing(data, ms(60)).evidence(),
            Evidence::None,
            "not seen since"
        );
        book.ack(0x18, port, ms(60));
        assert_eq!(book.0.pairing(data, ms(60)), paired(0x18, Evidence::Port));
        if second_is_data {
            book.data(0x12, port, ms(60));
        } else {
            book.ack(0x19, port, ms(60));
        }
        assert_eq!(book.0.pairing(data, ms(61)).evidence(), Evidence::None);
    }
}

/// Network cards take the port from their own queue pair: of the ports of three connections, one of A's and
/// one of B's are equal by chance.
#[test]
fn one_equal_port_among_many_unequal_is_chance() {
    let mut book = Book::new();
    for now in [ms(1), ms(60)] {
        for (a, b, forth, back) in [
            (0x20, 0x30, 50_001, 60_001),
            (0x21, 0x31, 50_002, 50_001),
            (0x22, 0x32, 50_003, 60_003),
        ] {
            book.data(b, forth, now);
            book.ack(a, back, now);
        }
    }
    let victim = book.data(0x30, 50_001, ms(70));
    assert_eq!(book.0.pairing(victim, ms(70)).evidence(), Evidence::None);
}

/// Cards take the port from their own queue pair, and this switch has half of their paths: of one connection it sees the data, of
/// another the answers, on one port and with numbers that are near each other. An answer that goes before its request is none, nor is
/// one so old that it came long ago (histories 706044 and 716496 of `tests/histories.rs`).
#[test]
fn a_near_number_that_no_request_of_late_had_refutes_the_port() {
    for (from_request, evidence) in [
        (0, Evidence::Port),
        (-90, Evidence::Port),
        (60, Evidence::None),
        (-440, Evidence::None),
    ] {
        let mut book = Book::new();
        let mut last = Evidence::None;
        for now in 1..100 {
            let number = 10_000 + 5 * u32::try_from(now).unwrap();
            let read_psn = |_: usize, _: SlotRef| Some(number);
            let request = PacketSample {
                psn: number,
                ..record(A, B, 0x11, 0x0a, 50_000, ms(now))
            };
            let answer = PacketSample {
                psn: number.saturating_add_signed(from_request),
                syndrome: Some(0x1f),
                ..record(B, A, 0x18, 0x11, 50_000, ms(now))
            };
            let data = book.0.observe_with(&request, 0, read_psn).unwrap();
            book.0.observe_with(&answer, 0, read_psn).unwrap();
            last = book.0.pairing(data, ms(now)).evidence();
        }
        assert_eq!(last, evidence, "{from_request}");
    }
}

/// Equal ports, with numbers that occur on both sides: every port has one of each, all of them wrong.
#[test]
fn equal_ports_of_equal_qp_numbers_are_no_evidence() {
    let mut book = Book::new();
    let own = |qpn: u32| u16::try_from(50_000 + qpn).unwrap();
    for now in [ms(1), ms(60)] {
        for (a, b) in [(0x20, 0x21), (0x21, 0x22), (0x22, 0x20)] {
            book.data(b, own(a), now);
            book.ack(a, own(b), now);
        }
    }
    let victim = book.data(0x21, own(0x20), ms(70));
    assert_eq!(book.0.pairing(victim, ms(70)).evidence(), Evidence::None);
}

/// A number that both hosts have disables the evidence `port` for as long as both have it.
#[test]
fn a_number_is_common_until_one_of_its_ends_is_forgotten() {
    let mut book = Book::new();
    book.ack(0x30, 51_000, ms(1));
    let signalled = |book: &mut Book, now| {
        for (a, b, port) in [(0x20, 0x30, 50_001), (0x21, 0x31, 50_002)] {
            book.data(b, port, now);
            book.ack(a, port, now);
        }
        book.0.age(now);
        let endpoint = book.data(0x31, 50_002, now);
        book.0.pairing(endpoint, now)
    };
    for now in 1..6 {
        assert_eq!(
            signalled(&mut book, ms(500 * now)).evidence(),
            Evidence::None
        );
    }
    signalled(&mut book, ms(1) + LIVE);
    let later = ms(100) + LIVE;
    assert_eq!(signalled(&mut book, later), paired(0x21, Evidence::Port));
}

#[test]
fn a_port_proves_nothing_for_uc() {
    let mut book = Book::new();
    let data = book
        .0
        .observe(&record(A, B, 0x11, 0x2a, 50_000, ms(1)), 0)
        .unwrap();
    book.0
        .observe(&record(B, A, 0x18, 0x2a, 50_000, ms(1)), 0)
        .unwrap();
    book.0
        .observe(&record(A, B, 0x11, 0x2a, 50_000, ms(100)), 0)
        .unwrap();
    assert_eq!(book.0.pairing(data, ms(200)).evidence(), Evidence::None);
}

/// Regression: evidence `only` (one queue pair in each direction between two addresses for a second) paired these. Nothing needed it, and a
/// second connection whose first packet was still to come made it wrong.
#[test]
fn two_alone_between_two_addresses_prove_nothing() {
    let mut book = Book::new();
    let data = book.data(0x11, 50_000, ms(1));
    book.ack(0x18, 60_000, ms(1));
    for now in [1_000, 1_002, 5_000] {
        assert_eq!(book.0.pairing(data, ms(now)).evidence(), Evidence::None);
    }
}

#[test]
fn a_queue_pair_used_again_with_another_peer_is_another_pair() {
    let mut book = Book::new();
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    book.ack(0x18, hash(0x18, 0x11), ms(1));
    book.data(0x11, hash(0x40, 0x11), ms(2));
    assert_eq!(
        book.0.pairing(data, ms(2)).evidence(),
        Evidence::None,
        "nobody on the new port yet"
    );
    book.ack(0x40, hash(0x40, 0x11), ms(3));
    assert_eq!(
        book.0.pairing(data, ms(3)),
        paired(0x40, Evidence::PortHash)
    );
}

#[test]
fn ports_that_change_with_every_packet_say_nothing() {
    let mut book = Book::new();
    let data = book.data(0x11, 50_000, ms(1));
    for port in 50_001..50_010 {
        book.data(0x11, port, ms(2));
    }
    book.ack(0x18, 50_009, ms(2));
    book.data(0x11, 50_009, ms(100));
    assert_ne!(book.0.pairing(data, ms(100)).evidence(), Evidence::Port);
}

#[test]
fn pairs_outlive_their_traffic_and_unpaired_endpoints_do_not() {
    let mut book = Book::new();
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    book.ack(0x18, hash(0x18, 0x11), ms(1));
    book.0.update_partner(data, ms(1));
    book.data(0x33, 50_000, ms(1));
    (0..10).for_each(|_| book.0.age(ms(2) + LIVE));
    assert_eq!(book.0.len(), 2);
    assert_eq!(
        book.0.pairing(data, ms(2) + LIVE),
        paired(0x18, Evidence::PortHash)
    );
}

#[test]
fn a_flood_does_not_displace_ends_in_use() {
    let mut book = Book::new();
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    book.ack(0x18, hash(0x18, 0x11), ms(1));
    book.0.update_partner(data, ms(1));
    for qpn in 0x1000..0x1100 {
        book.0
            .observe(&record("10.9.9.9", B, qpn, 0x0a, 50_000, ms(2)), 0);
    }
    assert_eq!(book.0.len(), 64);
    assert_eq!(book.0.refused(), 256 - 62);
    // Once the flood is idle it goes before the pair, though the pair is older.
    let late = ms(3) + LIVE;
    assert!(
        book.0
            .observe(&record(A, B, 0x77, 0x0a, 50_000, late), 0)
            .is_some()
    );
    assert_eq!(book.0.displaced(), 1);
    assert_eq!(book.0.pairing(data, late), paired(0x18, Evidence::PortHash));
}

/// Newcomers from many made-up sources, as long as all they have pushed out are live: paired endpoints that pause stay.
#[test]
fn a_flood_does_not_displace_pairs_that_pause() {
    let mut book = Book(ConnectionTable::new(256, 5));
    let pairs: Vec<_> = (0..20u32).map(|n| (0x200 + 2 * n, 0x401 + 3 * n)).collect();
    for (a, b) in &pairs {
        let data = book.data(*b, hash(*a, *b), ms(1));
        book.ack(*a, hash(*a, *b), ms(1));
        book.0.update_partner(data, ms(1));
    }
    for now in 4_000..24_000u64 {
        let source = format!("10.9.{}.{}", now / 200 % 200, now % 200);
        let qpn = u32::try_from(now).unwrap();
        book.0
            .observe(&record(&source, B, qpn, 0x0a, 50_000, ms(now)), 0);
    }
    assert!(book.0.refused() > 0);
    for (a, b) in &pairs {
        let key = record(A, B, *b, 0x0a, 0, ms(1)).key;
        let endpoint = book.0.find(&key).unwrap();
        assert_eq!(
            book.0.pairing(endpoint, ms(24_000)),
            paired(*a, Evidence::PortHash)
        );
    }
}

/// Connections by the hash, beside some between the same hosts of an application that sets ports of its own (NVSHMEM), or made up.
#[test]
fn connections_by_the_hash_are_known_beside_others() {
    let mut book = Book::new();
    for n in 0..8 {
        let (a, b) = (0x200 + 2 * n, 0x401 + 3 * n);
        book.data(b, hash(a, b), ms(1));
        book.ack(a, hash(a, b), ms(1));
    }
    for (a, b, port) in [(0x22, 0x32, 50_003), (0x23, 0x33, 50_004)] {
        book.data(b, port, ms(1));
        book.ack(a, port, ms(1));
    }
    let endpoint = book.data(0x401, hash(0x200, 0x401), ms(2));
    assert_eq!(
        book.0.pairing(endpoint, ms(2)),
        paired(0x200, Evidence::PortHash)
    );
    // An endpoint that is not alone on its port needs more evidence.
    book.ack(0x300, hash(0x200, 0x401), ms(3));
    assert_eq!(book.0.pairing(endpoint, ms(3)).evidence(), Evidence::None);
}

/// More endpoints than this on one port are put there by an attacker: each arrival would compare all of them with each other.
#[test]
fn more_than_eight_ends_on_a_port_are_not_compared() {
    let port = hash(0x18, 0x11);
    let fits = |a: u32| (0x8000..0x10_0000).find(|b| hash(a, *b) == port);
    let pairs: Vec<_> = (0x1000..)
        .filter_map(|a| Some((a, fits(a)?)))
        .take(9)
        .collect();
    for (count, compared) in [(8, true), (9, false)] {
        let mut book = Book::new();
        for (a, b) in &pairs[..count] {
            book.data(*b, port, ms(1));
            book.ack(*a, port, ms(1));
        }
        let (a, b) = pairs[0];
        let endpoint = book.data(b, port, ms(2));
        let signalled = book.0.pairing(endpoint, ms(2));
        assert_eq!(
            signalled == paired(a, Evidence::PortHash),
            compared,
            "{count}"
        );
    }
}

/// An attacker makes up answers on ports that others have.
#[test]
fn forged_replies_on_other_ports_do_not_take_psn_evidence_away() {
    let mut book = Book::new();
    let packet = |src, dst, qpn, opcode, port, psn, now| PacketSample {
        psn,
        syndrome: (opcode == 0x11).then_some(0x1f),
        ..record(src, dst, qpn, opcode, port, now)
    };
    for psn in 0..4 {
        for n in 0..8 {
            let number = ((n + 1) << 20) + psn;
            let now = ms(u64::from(psn) + 1);
            for (src, dst, qpn, opcode) in [(A, B, 0x200 + n, 0x0a), (B, A, 0x300 + n, 0x11)] {
                book.0
                    .observe(&packet(src, dst, qpn, opcode, 50_000, number, now), 0);
            }
        }
    }
    for n in 0..40 {
        book.0
            .observe(&packet(B, A, 0x900 + n, 0x11, 51_000, 77, ms(6)), 0);
    }
    let endpoint = book.0.find(&record(A, B, 0x201, 0x0a, 0, ms(1)).key);
    assert_eq!(
        book.0.pairing(endpoint.unwrap(), ms(6)),
        paired(0x301, Evidence::Psn)
    );
}

#[test]
fn emptying_the_book_leaves_no_score_behind() {
    let mut book = Book::new();
    for a in 0x20..0x30 {
        book.data(a + 0x100, 50_000, ms(1));
        book.ack(a, 50_000, ms(1));
    }
    (0..20).for_each(|_| book.0.age(ms(2) + LIVE));
    assert!(book.0.is_empty());
    let later = ms(10_000);
    let data = book.data(0x11, hash(0x18, 0x11), later);
    book.ack(0x18, hash(0x18, 0x11), later);
    assert_eq!(
        book.0.pairing(data, later),
        paired(0x18, Evidence::PortHash)
    );
}

/// First sequence number: numbers from 0 on would prove nothing.
const BASE: u32 = 0x20_0000;
