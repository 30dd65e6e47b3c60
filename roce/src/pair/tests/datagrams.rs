//! Datagrams, which name their senders.

use super::*;

/// Datagram from one queue pair to another.
fn datagram(src: &str, dst: &str, from: u32, to: u32, now: Nanos) -> PacketSample {
    PacketSample {
        source_qp: Some(Qpn::new(from)),
        ..record(src, dst, to, 0x64, 0xd000, now)
    }
}

#[test]
fn a_datagram_names_its_sender_once_datagrams_were_sent_to_that_queue_pair() {
    let mut book = ConnectionTable::new(64, 5);
    let there = book.observe(&datagram(A, B, 0x18, 0x11, ms(1)), 0).unwrap();
    assert_eq!(book.pairing(there, ms(1)), Pairing::Cold);
    book.observe(&datagram(B, A, 0x21, 0x28, ms(2)), 0).unwrap();
    assert_eq!(book.pairing(there, ms(2)), Pairing::Cold, "another's");
    let back = book.observe(&datagram(B, A, 0x11, 0x18, ms(2)), 0).unwrap();
    assert_eq!(book.pairing(there, ms(2)), paired(0x18, Evidence::Deth));
    assert_eq!(book.pairing(back, ms(2)), paired(0x11, Evidence::Deth));
}

/// Two queue pairs of datagrams exchanged some, and the attacker's datagrams between them name a living connection's queue pair.
#[test]
fn a_datagram_with_a_connections_source_qp_pairs_nobody() {
    let mut book = Book::new();
    let (port, bystander) = (hash(0x999, 0x888), 0x999);
    for now in 1..20 {
        book.0.observe(&datagram(A, B, 0x51, 0x61, ms(now)), 0);
        book.0.observe(&datagram(B, A, 0x61, 0x51, ms(now)), 0);
    }
    // Later than the doubt about two senders lasts.
    for now in 20..4_000 {
        book.data(0x888, port, ms(now));
        book.ack(bystander, port, ms(now));
        // Nor by datagrams to it, from an attacker on the other side too.
        if now % 1_000 == 0 {
            book.0.observe(&datagram(B, A, 0x61, bystander, ms(now)), 0);
        }
        let forged = datagram(A, B, bystander, 0x61, ms(now));
        let there = book.0.observe(&forged, 0).unwrap();
        let signalled = book.0.pairing(there, ms(now));
        assert_eq!(signalled.evidence(), Evidence::None, "{now}");
    }
}

#[test]
fn two_senders_of_datagrams_to_one_qp_pair_nobody_until_one_is_left() {
    let mut book = ConnectionTable::new(64, 5);
    for sender in [0x18, 0x19] {
        book.observe(&datagram(B, A, 0x11, sender, ms(1)), 0);
    }
    for now in 1..10 {
        let from = 0x18 + u32::try_from(now % 2).unwrap();
        let there = book
            .observe(&datagram(A, B, from, 0x11, ms(now)), 0)
            .unwrap();
        let doubted = book.pairing(there, ms(now)) == Pairing::Unpaired;
        assert_eq!(doubted, now > 1, "at {now} ms");
    }
    let there = book
        .observe(&datagram(A, B, 0x19, 0x11, ms(20)), 0)
        .unwrap();
    assert_eq!(book.pairing(there, ms(1_008)), Pairing::Unpaired);
    assert_eq!(book.pairing(there, ms(1_009)), paired(0x19, Evidence::Deth));
}

#[test]
fn datagrams_and_connections_prove_nothing_about_each_other() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let there = book.data(0x11, port, ms(1));
    // Datagrams that come back are no answer, whatever their port and numbers.
    let mut back = datagram(B, A, 0x11, 0x18, ms(2));
    back.udp_port = port;
    let endpoint = book.0.observe(&back, 0).unwrap();
    assert_eq!(book.0.pairing(there, ms(2)), Pairing::Cold);
    assert_eq!(
        book.0.pairing(endpoint, ms(2)),
        Pairing::Unpaired,
        "names a connection's"
    );
}

/// A made-up datagram names a living connection's queue pair: nobody is signalled until only the connection was seen for a while.
#[test]
fn a_datagram_to_an_active_connection_pairs_nobody_and_evidence_recovers() {
    let mut book = Book::new();
    let (port, other) = (hash(0x18, 0x11), hash(0x19, 0x12));
    book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    let there = book.data(0x11, port, ms(2));
    assert_eq!(book.0.pairing(there, ms(2)).evidence(), Evidence::PortHash);
    book.data(0x12, other, ms(2));
    book.0.observe(&datagram(B, A, 0x40, 0x41, ms(3)), 0);
    let forged = book
        .0
        .observe(&datagram(A, B, 0x66, 0x11, ms(3)), 0)
        .unwrap();
    for now in 3..3_000 {
        assert_eq!(book.0.pairing(forged, ms(now)), Pairing::Unpaired, "{now}");
        let endpoint = book.data(0x11, port, ms(now));
        assert_eq!(
            book.0.pairing(endpoint, ms(now)),
            Pairing::Unpaired,
            "{now}"
        );
    }
    let endpoint = book.data(0x11, port, ms(6_100));
    assert_eq!(
        book.0.pairing(endpoint, ms(6_100)),
        paired(0x18, Evidence::PortHash)
    );
}

/// Covers a datagram before the first packet of a connection, and a queue pair of datagrams whose number a connection takes.
#[test]
fn a_connection_on_a_number_datagrams_had_is_a_connection() {
    let mut book = Book::new();
    book.0.observe(&datagram(B, A, 0x11, 0x66, ms(1)), 0);
    for now in 1..200 {
        let endpoint = book.0.observe(&datagram(A, B, 0x66, 0x11, ms(now)), 0);
        assert_eq!(
            book.0.pairing(endpoint.unwrap(), ms(now)),
            paired(0x66, Evidence::Deth)
        );
    }
    let port = hash(0x18, 0x11);
    for now in 200..3_190 {
        let endpoint = book.data(0x11, port, ms(now));
        book.ack(0x18, port, ms(now));
        let signalled = book.0.pairing(endpoint, ms(now));
        assert!(
            signalled.evidence() == Evidence::None,
            "{signalled:?} at {now}"
        );
    }
    let endpoint = book.data(0x11, port, ms(4_000));
    assert_eq!(
        book.0.pairing(endpoint, ms(4_000)),
        paired(0x18, Evidence::PortHash)
    );
}

#[test]
fn datagrams_on_a_number_a_connection_had_are_datagrams() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let there = book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    book.0.update_partner(there, ms(1));
    let later = ms(3_600_000);
    book.0.observe(&datagram(B, A, 0x11, 0x77, later), 0);
    let there = book.0.observe(&datagram(A, B, 0x77, 0x11, later), 0);
    let there = there.unwrap();
    assert_eq!(book.0.pairing(there, later), paired(0x77, Evidence::Deth));
}

#[test]
fn what_a_number_was_as_uc_does_not_stick() {
    let uc = |now| record(A, B, 0x11, 0x2a, 50_000, now);
    let mut book = Book::new();
    book.0.observe(&uc(ms(1)), 0);
    let endpoint = book.data(0x11, 50_000, ms(4_000));
    book.ack(0x18, 50_000, ms(4_000));
    book.data(0x11, 50_000, ms(4_100));
    book.ack(0x18, 50_000, ms(4_100));
    assert_eq!(
        book.0.pairing(endpoint, ms(4_100)),
        paired(0x18, Evidence::Port)
    );
    // And the other way round.
    let endpoint = book.0.observe(&uc(ms(8_000)), 0).unwrap();
    for now in 8_000..12_000 {
        book.0.observe(&uc(ms(now)), 0).unwrap();
        book.ack(0x18, 50_000, ms(now));
        assert_eq!(book.0.pairing(endpoint, ms(now)).evidence(), Evidence::None);
    }
}

/// Regression: a datagrams' queue pair disabled the evidence `port` of the same addresses for ever.
#[test]
fn qp_numbers_of_datagrams_are_not_common_with_connections() {
    let mut book = Book::new();
    for now in [ms(1), ms(60)] {
        book.0.observe(&datagram(A, B, 0x20, 0x21, now), 0);
        for (a, b, port) in [(0x20, 0x30, 50_001), (0x21, 0x31, 50_002)] {
            book.data(b, port, now);
            book.ack(a, port, now);
        }
    }
    let endpoint = book.data(0x30, 50_001, ms(120));
    assert_eq!(
        book.0.pairing(endpoint, ms(120)),
        paired(0x20, Evidence::Port)
    );
}
