//! Pairs that the operator gives, or a list suggests.

use super::*;
use crate::cm::message::{Message, Service};

fn to_receiver() -> FlowKey {
    FlowKey::new(A.parse().unwrap(), B.parse().unwrap(), Qpn::new(0x11))
}

fn suggested(sender: u32) -> Book {
    let mut book = Book::new();
    assert!(book.0.suggest_pair(&to_receiver(), Qpn::new(sender), ms(1)));
    book
}

/// Sets up, by the connection manager, a connection of `sender` to queue pair 0x11, with a flow label.
fn connect(book: &mut Book, sender: u32, service: Service, now: Nanos) {
    let path = to_receiver().with_qp(Qpn::new(1));
    let req = Message::Req {
        local: 7,
        qpn: Qpn::new(sender),
        psn: 0,
        service,
        flow_label: 5,
    };
    let rep = Message::Rep {
        local: 9,
        remote: 7,
        qpn: Qpn::new(0x11),
        psn: 0,
    };
    book.0.observe_message((&path, PortId(0)), &req, now);
    let back = path.reversed(Qpn::new(1));
    book.0.observe_message((&back, PortId(1)), &rep, now);
}

/// Both directions of the suggested connection are seen, at a port of its own.
#[test]
fn a_suggestion_counts_once_packets_say_the_same() {
    let mut book = suggested(0x18);
    let data = book.data(0x11, 50_000, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
    book.ack(0x19, 50_001, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    let back = book.ack(0x18, 50_000, ms(4));
    assert_eq!(book.0.pairing(data, ms(4)), paired(0x18, Evidence::Cm));
    assert_eq!(book.0.pairing(back, ms(4)), paired(0x11, Evidence::Cm));
    // Another endpoint has the port too: it may be this one's.
    book.ack(0x19, 50_000, ms(5));
    assert_eq!(book.0.pairing(data, ms(5)).evidence(), Evidence::None);
}

/// The port is the hash of both, and the answers take another path.
#[test]
fn a_suggestion_is_confirmed_by_the_hash_alone() {
    let mut book = suggested(0x18);
    let data = book.data(0x11, hash(0x18, 0x11), ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Cm));
}

/// The list has a host's queue pairs without their peers: 0x999 has another peer, where 0x11 is a number too.
#[test]
fn a_suggestion_that_mixes_peers_is_never_signalled() {
    let mut book = suggested(0x999);
    let data = book.data(0x11, hash(0x18, 0x11), ms(2));
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
    book.ack(0x18, hash(0x18, 0x11), ms(3));
    assert_eq!(
        book.0.pairing(data, ms(3)),
        paired(0x18, Evidence::PortHash)
    );
}

#[test]
fn the_connection_manager_overrides_a_suggestion() {
    for suggest_first in [true, false] {
        let mut book = Book::new();
        let suggest_pair =
            |book: &mut Book| book.0.suggest_pair(&to_receiver(), Qpn::new(0x55), ms(1));
        assert!(!suggest_first || suggest_pair(&mut book));
        connect(&mut book, 0x18, Service::Rc, ms(1));
        assert!(suggest_first || suggest_pair(&mut book));
        let data = book.data(0x11, hash(0x55, 0x11), ms(2));
        assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Cm));
    }
}

/// Law: a pair given by the operator is believed at once, until packets show another.
#[test]
fn the_operators_pair_is_doubted_when_packets_contradict() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let data = book.data(0x11, port, ms(1));
    assert!(book.0.add_pair(&to_receiver(), Qpn::new(0x55), ms(1)));
    assert_eq!(book.0.pairing(data, ms(1)), paired(0x55, Evidence::Cm));
    book.ack(0x18, port, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), Pairing::Unpaired);
}

#[test]
fn the_operators_pair_is_doubted_when_the_port_contradicts() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11) ^ 1;
    let data = book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    assert!(book.0.add_pair(&to_receiver(), Qpn::new(0x55), ms(1)));
    assert_eq!(book.0.pairing(data, ms(1)), paired(0x55, Evidence::Cm));
    book.data(0x11, port, ms(60));
    book.ack(0x18, port, ms(60));
    assert_eq!(book.0.pairing(data, ms(60)), Pairing::Unpaired);
}

/// A connection that rdma_cm set up has a label; the next on its number has none, and no message says that it began.
#[test]
fn a_flow_label_goes_with_its_connection() {
    let mut book = Book::new();
    connect(&mut book, 0x18, Service::Rc, ms(1));
    let data = book.data(0x11, 50_000, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Cm));
    let port = hash(0x55, 0x11);
    book.data(0x11, port, ms(9_000));
    book.ack(0x55, port, ms(9_000));
    let signalled = book.0.pairing(data, ms(9_000));
    assert_eq!(signalled, paired(0x55, Evidence::PortHash));
}

/// Law: a name that the connection manager gave for a queue pair of one transport does not apply to another that took its number.
#[test]
fn a_binding_of_one_transport_does_not_count_for_another() {
    for (opcode, known) in [(0x2a, true), (0x0a, false)] {
        let mut book = Book::new();
        connect(&mut book, 0x55, Service::Uc, ms(1));
        let data = record(A, B, 0x11, opcode, 50_000, ms(9_000));
        let endpoint = book.0.observe(&data, 0).unwrap();
        let signalled = book.0.pairing(endpoint, ms(9_000));
        assert_eq!(
            signalled == paired(0x55, Evidence::Cm),
            known,
            "{opcode:#x}"
        );
    }
}
