//! Datagrams, which name their senders.

use super::*;

/// A datagram of a queue pair to another.
fn datagram(src: &str, dst: &str, from: u32, to: u32, now: Nanos) -> Record {
    Record {
        source_qp: Some(Qpn::new(from)),
        ..record(src, dst, to, 0x64, 0xd000, now)
    }
}

#[test]
fn a_datagram_names_its_sender_once_both_directions_were_seen() {
    let mut book = ConnectionTable::new(64, 5);
    let there = book.observe(&datagram(A, B, 0x18, 0x11, ms(1)), 0).unwrap();
    assert_eq!(book.resolve(there, ms(1)), Pairing::Cold);
    let back = book.observe(&datagram(B, A, 0x21, 0x28, ms(2)), 0).unwrap();
    assert_eq!(book.resolve(there, ms(2)), paired(0x18, Evidence::Deth));
    assert_eq!(book.resolve(back, ms(2)), paired(0x21, Evidence::Deth));
}

#[test]
fn two_that_send_datagrams_to_one_are_doubted_until_one_is_alone() {
    let mut book = ConnectionTable::new(64, 5);
    book.observe(&datagram(B, A, 0x21, 0x28, ms(1)), 0).unwrap();
    for now in 1..10 {
        let from = 0x18 + u32::try_from(now % 2).unwrap();
        let there = book
            .observe(&datagram(A, B, from, 0x11, ms(now)), 0)
            .unwrap();
        let doubted = book.resolve(there, ms(now)) == Pairing::Unpaired;
        assert_eq!(doubted, now > 1, "at {now} ms");
    }
    let there = book
        .observe(&datagram(A, B, 0x19, 0x11, ms(20)), 0)
        .unwrap();
    assert_eq!(book.resolve(there, ms(1_008)), Pairing::Unpaired);
    assert_eq!(book.resolve(there, ms(1_009)), paired(0x19, Evidence::Deth));
}

#[test]
fn datagrams_and_connections_tell_nothing_of_each_other() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let there = book.data(0x11, port, ms(1));
    // Datagrams that come back are no answer, whatever their port and numbers.
    let mut back = datagram(B, A, 0x11, 0x18, ms(2));
    back.udp_port = port;
    let end = book.0.observe(&back, 0).unwrap();
    assert_eq!(book.0.resolve(there, ms(2)), Pairing::Cold);
    assert_eq!(book.0.resolve(end, ms(2)), Pairing::Cold);
    // Nor does a datagram, made up or not, that names a connection's queue pair.
    book.ack(0x19, hash(0x19, 0x12), ms(3));
    book.data(0x12, hash(0x19, 0x12), ms(3));
    let known = book
        .0
        .find(&record(A, B, 0x12, 0x0a, 0, ms(3)).key)
        .unwrap();
    assert_eq!(
        book.0.resolve(known, ms(3)),
        paired(0x19, Evidence::PortHash)
    );
    book.0
        .observe(&datagram(A, B, 0x66, 0x12, ms(4)), 0)
        .unwrap();
    assert_eq!(
        book.0.resolve(known, ms(4)),
        paired(0x19, Evidence::PortHash)
    );
}
