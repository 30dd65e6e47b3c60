//! Ends that were learned before the switch began anew.

use super::*;
use crate::pair::loose_end::LooseEnd;

/// All loose ends, a few places at a time.
fn loose(book: &Book, now: Nanos) -> Vec<LooseEnd> {
    let mut all = Vec::new();
    let mut at = 0;
    loop {
        at = book.0.loose_ends(at, 3, now, |end| all.push(end));
        if at == 0 {
            return all;
        }
    }
}

/// A book that begins anew with what the one before had not paired.
fn again(before: &Book, now: Nanos) -> Book {
    let mut book = Book::new();
    for end in loose(before, now) {
        assert!(book.0.recall(&end, now));
        assert!(!book.0.recall(&end, now), "it is known");
    }
    book
}

#[test]
fn an_end_from_before_the_start_pairs_with_the_first_packet_of_the_other_direction() {
    let port = hash(0x18, 0x11);
    // The answers were seen, and data come; or the other way.
    let mut before = Book::new();
    before.ack(0x18, port, ms(1));
    let mut book = again(&before, ms(2));
    let data = book.data(0x11, port, ms(3));
    assert_eq!(
        book.0.resolve(data, ms(3)),
        paired(0x18, Evidence::PortHash)
    );
    let mut before = Book::new();
    let data = before.data(0x11, port, ms(1));
    assert_eq!(before.0.resolve(data, ms(1)), Pairing::Cold);
    let mut book = again(&before, ms(2));
    let key = FlowKey::new(A.parse().unwrap(), B.parse().unwrap(), Qpn::new(0x11));
    let data = book.0.find(&key).unwrap();
    assert_eq!(book.0.resolve(data, ms(2)), Pairing::Cold);
    book.ack(0x18, port, ms(3));
    assert_eq!(
        book.0.resolve(data, ms(3)),
        paired(0x18, Evidence::PortHash)
    );
}

#[test]
fn an_end_from_before_the_start_proves_nothing_that_wants_packets_of_both() {
    // One port for both directions that is not their hash.
    let port = hash(0x18, 0x11) ^ 1;
    let mut before = Book::new();
    before.ack(0x18, port, ms(1));
    let mut book = again(&before, ms(2));
    for n in 3..5_000 {
        let data = book.data(0x11, port, ms(n));
        let resolved = book.0.resolve(data, ms(n));
        assert_eq!(resolved.evidence(), Evidence::None, "{n} ms: {resolved:?}");
        book.0.settle(data, ms(n));
        book.0.age(ms(n));
    }
    // It was there all the time; once it is seen it counts.
    let mut book = again(&before, ms(2));
    for n in 3..1_200 {
        book.data(0x11, port, ms(n));
        book.ack(0x18, port, ms(n));
    }
    let data = book.data(0x11, port, ms(1_200));
    assert_eq!(
        book.0.resolve(data, ms(1_200)),
        paired(0x18, Evidence::Port)
    );
}

#[test]
fn an_end_from_before_the_start_that_stays_silent_is_forgotten() {
    let port = hash(0x18, 0x11);
    let mut before = Book::new();
    before.ack(0x18, port, ms(1));
    let mut book = again(&before, ms(2));
    let late = Nanos(ms(2).0 + FORGET.0);
    book.0.age(late);
    assert!(book.0.is_empty());
    let data = book.data(0x11, port, late);
    assert_eq!(book.0.resolve(data, late), Pairing::Cold);
    assert_eq!(loose(&before, Nanos(ms(1).0 + FORGET.0)), []);
}

#[test]
fn loose_is_what_is_not_paired_and_had_one_port() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let data = book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    book.0.settle(data, ms(1));
    for n in 0..10u16 {
        book.ack(0x20 + u32::from(n), 60_000 + n, ms(1));
    }
    // One whose port changed, and a queue pair of datagrams.
    book.ack(0x40, 60_100, ms(1));
    book.ack(0x40, 60_101, ms(2));
    let datagram = Record {
        class: RoceClass::Datagram,
        source_qp: Some(Qpn::new(0x77)),
        ..record(B, A, 0x50, 0x64, 60_200, ms(1))
    };
    book.0.observe(&datagram, 0).unwrap();
    let mut all: Vec<(u32, u16)> = loose(&book, ms(2))
        .iter()
        .map(|end| (end.key.dest_qp().get(), end.port))
        .collect();
    all.sort_unstable();
    let expected: Vec<(u32, u16)> = (0..10u16)
        .map(|n| (0x20 + u32::from(n), 60_000 + n))
        .collect();
    assert_eq!(all, expected);
}
