//! Ends that peers and hosts' agents report: each rule of evidence `foreign`.

use super::*;
use crate::pair::foreign::{HOLDS, PeerId, RefusedEnd, ReportedEnd};
use proptest::prelude::*;

const PEER: PeerId = PeerId(3);
const OTHER: PeerId = PeerId(4);

/// Key of answers to a queue pair of A.
fn back(sender: u32) -> FlowKey {
    FlowKey::new(B.parse().unwrap(), A.parse().unwrap(), Qpn::new(sender))
}

fn end(sender: u32, udp_port: u16) -> ReportedEnd {
    ReportedEnd {
        key: back(sender),
        udp_port,
        partner: None,
        holds: HOLDS,
    }
}

/// Report of A's agent: its queue pair `sender` has `receiver` at B as its partner.
fn lease(sender: u32, receiver: u32) -> ReportedEnd {
    ReportedEnd {
        partner: Some(Qpn::new(receiver)),
        ..end(sender, hash(sender, receiver))
    }
}

fn take(book: &mut Book, end: &ReportedEnd, now: Nanos) {
    assert!(book.0.take_end(PEER, end, now).is_ok());
}

#[test]
fn a_reported_end_pairs_at_the_first_packet_that_fits_the_hash() {
    let mut book = Book::new();
    take(&mut book, &end(0x18, hash(0x18, 0x11)), ms(1));
    let data = book.data(0x11, hash(0x18, 0x11), ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Foreign));
    // Or the other way round.
    let mut book = Book::new();
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    assert_eq!(book.0.pairing(data, ms(1)), Pairing::Cold);
    take(&mut book, &end(0x18, hash(0x18, 0x11)), ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Foreign));
}

#[test]
fn a_report_alone_pairs_nobody() {
    let port = hash(0x18, 0x11);
    let wrong = [
        end(0x18, port ^ 1),
        end(0x19, port),
        end(0x19, hash(0x19, 0x11)),
    ];
    for reported in wrong {
        let mut book = Book::new();
        take(&mut book, &reported, ms(1));
        let data = book.data(0x11, port, ms(2));
        assert_eq!(
            book.0.pairing(data, ms(2)).evidence(),
            Evidence::None,
            "{reported:?}"
        );
    }
}

#[test]
fn own_evidence_replaces_it_and_own_packets_refute_it() {
    let port = hash(0x18, 0x11);
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let data = book.data(0x11, port, ms(2));
    book.ack(0x18, port, ms(3));
    assert_eq!(
        book.0.pairing(data, ms(3)),
        paired(0x18, Evidence::PortHash)
    );
    // Packets here show the queue pair at another port: it is another connection's.
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let data = book.data(0x11, port, ms(2));
    book.ack(0x18, port ^ 1, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
}

#[test]
fn no_report_holds_longer_than_a_minute() {
    let port = hash(0x18, 0x11);
    let reported = ReportedEnd {
        holds: ms(3_600_000),
        ..end(0x18, port)
    };
    let mut book = Book::new();
    take(&mut book, &reported, ms(1));
    for (at, evidence) in [(60_000, Evidence::Foreign), (60_002, Evidence::None)] {
        let data = book.data(0x11, port, ms(at));
        assert_eq!(book.0.pairing(data, ms(at)).evidence(), evidence);
    }
}

#[test]
fn a_name_that_says_otherwise_is_not_overruled() {
    let port = hash(0x18, 0x11);
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let flow = FlowKey::new(A.parse().unwrap(), B.parse().unwrap(), Qpn::new(0x11));
    assert!(book.0.suggest_pair(&flow, Qpn::new(0x20), ms(1)));
    let data = book.data(0x11, port, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
}

#[test]
fn two_that_fit_pair_nobody_nor_does_one_that_fits_two() {
    let port = hash(0x18, 0x11);
    let twin = |of: u32, other: u32| {
        let mut all = 2..1 << 20;
        all.find(|one| *one != other && hash(*one, of) == port)
            .unwrap()
    };
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let data = book.data(0x11, port, ms(2));
    take(&mut book, &end(twin(0x11, 0x18), port), ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let data = book.data(0x11, port, ms(2));
    book.data(twin(0x18, 0x11), port, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
}

/// Three connections share ports by another rule, and one fits by chance.
#[test]
fn it_is_not_believed_where_the_hash_often_fails() {
    let mut book = Book::new();
    let others = [
        (0x20, 0x30, 50_001),
        (0x21, 0x31, 50_002),
        (0x22, 0x32, 50_003),
    ];
    for (a, b, port) in others {
        book.data(b, port, ms(1));
        take(&mut book, &end(a, port), ms(1));
    }
    let data = book.data(0x11, hash(0x18, 0x11), ms(1));
    take(&mut book, &end(0x18, hash(0x18, 0x11)), ms(1));
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
    // The others are gone: their ends no longer speak against the hash.
    for (a, _, port) in others {
        book.0.forget_end(PEER, (&back(a), port), ms(3));
    }
    assert_eq!(book.0.pairing(data, ms(3)), paired(0x18, Evidence::Foreign));
}

/// Two connections share a port and only one of their ends was reported: enough where the hash holds, not where it is only usual.
#[test]
fn most_is_enough_only_for_two_alone_on_their_port() {
    let mut book = Book(ConnectionTable::new(1_024, 5));
    let port = hash(0x18, 0x11);
    take(&mut book, &end(0x18, port), ms(1));
    let data = book.data(0x11, port, ms(1));
    book.data(0x12, port, ms(1));
    assert_eq!(
        book.0.pairing(data, ms(2)).evidence(),
        Evidence::None,
        "one of two"
    );
    for b in 0x200..0x210 {
        take(&mut book, &end(b + 1, hash(b + 1, b)), ms(2));
        book.data(b, hash(b + 1, b), ms(2));
    }
    assert_eq!(
        book.0.pairing(data, ms(3)).evidence(),
        Evidence::None,
        "most, not alone"
    );
    let alone = book.data(0x200, hash(0x201, 0x200), ms(3));
    assert_eq!(
        book.0.pairing(alone, ms(3)),
        paired(0x201, Evidence::Foreign)
    );
    for b in 0x1000..0x1080 {
        take(&mut book, &end(b + 1, hash(b + 1, b)), ms(2));
        book.data(b, hash(b + 1, b), ms(2));
    }
    assert_eq!(
        book.0.pairing(data, ms(4)),
        paired(0x18, Evidence::Foreign),
        "nearly all"
    );
}

#[test]
fn an_end_is_gone_when_its_own_peer_says_so_or_is_silent_or_distrusted() {
    let port = hash(0x18, 0x11);
    let still = |change: fn(&mut Book) -> Nanos| {
        let mut book = Book::new();
        take(&mut book, &end(0x18, port), ms(1));
        let now = change(&mut book);
        let data = book.data(0x11, port, now);
        book.0.pairing(data, now).evidence() == Evidence::Foreign
    };
    assert!(still(|_| ms(60_000)));
    assert!(!still(|_| ms(60_001)), "not reported again");
    assert!(still(|book| {
        book.0
            .forget_end(OTHER, (&back(0x18), hash(0x18, 0x11)), ms(2));
        ms(3)
    }));
    assert!(still(|book| {
        book.0.forget_end(PEER, (&back(0x18), 1), ms(2));
        ms(3)
    }));
    assert!(!still(|book| {
        book.0
            .forget_end(PEER, (&back(0x18), hash(0x18, 0x11)), ms(2));
        ms(3)
    }));
    assert!(!still(|book| {
        book.0.distrust(PEER, true);
        ms(3)
    }));
    assert!(still(|book| {
        book.0.distrust(OTHER, true);
        ms(3)
    }));
}

#[test]
fn what_a_distrusted_or_silent_peer_said_is_forgotten() {
    for distrusted in [true, false] {
        let mut book = Book::new();
        for sender in 0x100..0x110 {
            take(&mut book, &end(sender, 50_000), ms(1));
        }
        assert_eq!(book.0.held_by(PEER), 16);
        book.0.distrust(PEER, distrusted);
        let now = if distrusted { ms(2) } else { ms(61_000) };
        (0..64).for_each(|_| book.0.age(now));
        assert_eq!(book.0.held_by(PEER), 0);
    }
}

/// `pair trust` soon after `pair distrust` once brought back what was not forgotten yet.
#[test]
fn what_a_peer_said_before_distrust_never_counts_again() {
    let port = hash(0x18, 0x11);
    let mut book = Book(ConnectionTable::new(1_024, 5));
    for sender in 0x100..0x200 {
        take(&mut book, &end(sender, 50_000), ms(1));
    }
    // The newest is forgotten last.
    take(&mut book, &end(0x18, port), ms(1));
    let data = book.data(0x11, port, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Foreign));
    book.0.distrust(PEER, true);
    book.0.distrust(PEER, false);
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
    // A report that comes while the old ones are forgotten could not be told from them.
    while book.0.held_by(PEER) > 0 {
        assert_eq!(book.0.refuses(PEER, ms(3)), Some(RefusedEnd::Distrusted));
        book.0.age(ms(3));
        assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    }
    assert_eq!(book.0.refuses(PEER, ms(4)), None);
    take(&mut book, &end(0x18, port), ms(4));
    assert_eq!(book.0.pairing(data, ms(4)), paired(0x18, Evidence::Foreign));
}

#[test]
fn what_one_peer_reported_another_cannot_change() {
    let port = hash(0x18, 0x11);
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let other = book.0.take_end(OTHER, &end(0x18, port ^ 1), ms(2));
    assert_eq!(other, Err(RefusedEnd::Disputed));
    assert_eq!(
        book.0.take_end(OTHER, &end(0x18, port), ms(2)),
        Ok(0),
        "the same"
    );
    let data = book.data(0x11, port, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)), paired(0x18, Evidence::Foreign));
    // Its own peer may: the queue pair has another connection.
    take(&mut book, &end(0x18, port ^ 1), ms(4));
    assert_eq!(book.0.pairing(data, ms(4)).evidence(), Evidence::None);
}

#[test]
fn a_peer_that_floods_displaces_its_own() {
    // A table of 32 foreign ends.
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    assert!(book.0.take_end(OTHER, &end(0x18, port), ms(1)).is_ok());
    let flood = 0x1000..0x1100;
    let displaced: u64 = flood
        .map(|sender| book.0.take_end(PEER, &end(sender, 50_000), ms(2)).unwrap())
        .sum();
    assert_eq!((book.0.held_by(PEER), displaced), (16, 256 - 16));
    let data = book.data(0x11, port, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)), paired(0x18, Evidence::Foreign));
    // With many peers the one that holds most gives.
    for peer in 5..40 {
        let sender = 0x2000 + u32::from(peer);
        assert!(
            book.0
                .take_end(PeerId(peer), &end(sender, 50_001), ms(4))
                .is_ok()
        );
    }
    assert_eq!(book.0.held_by(OTHER), 1);
    assert!(book.0.held_by(PEER) <= 1);
}

#[test]
fn a_lease_pairs_at_the_first_packet_with_its_queue_pair_and_port() {
    for sourceless in [false, true] {
        let mut book = Book::new();
        let mut reported = lease(0x18, 0x11);
        // An application's port, which is no hash; the partner's address is known then.
        let port = if sourceless { hash(0x18, 0x11) } else { 0xd000 };
        reported.udp_port = port;
        if sourceless {
            reported.key = reported.key.sourceless();
        }
        take(&mut book, &reported, ms(1));
        let other = book.data(0x12, port, ms(2));
        assert_eq!(book.0.pairing(other, ms(2)).evidence(), Evidence::None);
        let data = book.data(0x11, port, ms(2));
        assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Foreign));
        let moved = book.data(0x11, port ^ 1, ms(3));
        assert_eq!(book.0.pairing(moved, ms(3)).evidence(), Evidence::None);
    }
}

/// Connections whose data and answers all have one UDP port, as NVSHMEM's, with numbers from 0: own evidence ends in none.
#[test]
fn leases_pair_connections_of_one_port_for_all_whose_answers_pass_here() {
    let port = 0xc000;
    for names_port in [false, true] {
        let leased = |sender: u32, receiver: u32| {
            let by_hash = lease(sender, receiver);
            ReportedEnd {
                udp_port: if names_port { port } else { by_hash.udp_port },
                key: back(sender).sourceless(),
                ..by_hash
            }
        };
        let mut book = Book::new();
        let pairs = [(0x18, 0x11), (0x19, 0x12), (0x1a, 0x13), (0x1b, 0x14)];
        let data = pairs.map(|(_, receiver)| book.data(receiver, port, ms(1)));
        for (sender, receiver) in pairs {
            take(&mut book, &leased(sender, receiver), ms(2));
        }
        for data in data {
            // The partner's address is not known: the number may be that of another host's queue pair.
            assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
        }
        // Queue pairs of the same host with partners of this number, at other hosts.
        for sender in [0x28, 0x38] {
            take(&mut book, &leased(sender, 0x11), ms(2));
        }
        for (sender, _) in pairs {
            book.ack(sender, port, ms(3));
        }
        for (data, (sender, _)) in data.into_iter().zip(pairs) {
            let pairing = book.0.pairing(data, ms(3));
            assert_eq!(pairing, paired(sender, Evidence::Foreign), "{names_port}");
        }
    }
}

#[test]
fn packets_that_contradict_a_lease_win() {
    let leased = |port: u16| ReportedEnd {
        udp_port: port,
        ..lease(0x18, 0x11)
    };
    // The answers have another port.
    let mut book = Book::new();
    take(&mut book, &leased(0xc000), ms(1));
    let data = book.data(0x11, 0xc000, ms(2));
    book.ack(0x18, 0xc001, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    // The lease names another port than both have.
    let mut book = Book::new();
    take(&mut book, &leased(0xc001), ms(1));
    let data = book.data(0x11, 0xc000, ms(2));
    book.ack(0x18, 0xc000, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    // The answers are of an unreliable connection.
    let mut book = Book::new();
    take(&mut book, &leased(0xc000), ms(1));
    let data = book.data(0x11, 0xc000, ms(2));
    let unreliable = record(B, A, 0x18, 0x2a, 0xc000, ms(3));
    book.0.observe(&unreliable, 0).unwrap();
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    // The sender's queue pair has a partner of its own by the hash.
    let port = hash(0x18, 0x12);
    let mut book = Book::new();
    take(&mut book, &leased(port), ms(1));
    book.data(0x12, port, ms(2));
    let answers = book.ack(0x18, port, ms(2));
    assert_eq!(
        book.0.pairing(answers, ms(2)),
        paired(0x12, Evidence::PortHash)
    );
    let data = book.data(0x11, port, ms(3));
    assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
}

#[test]
fn two_leases_of_one_partner_pair_nobody_nor_does_one_against_the_hash() {
    let port = hash(0x18, 0x11);
    for other in [
        ReportedEnd {
            udp_port: port,
            ..lease(0x19, 0x11)
        },
        ReportedEnd {
            key: back(0x19).sourceless(),
            udp_port: port,
            ..lease(0x19, 0x11)
        },
    ] {
        let mut book = Book::new();
        take(&mut book, &lease(0x18, 0x11), ms(1));
        let data = book.data(0x11, port, ms(2));
        assert_eq!(book.0.pairing(data, ms(2)), paired(0x18, Evidence::Foreign));
        take(&mut book, &other, ms(3));
        assert_eq!(book.0.pairing(data, ms(3)).evidence(), Evidence::None);
    }
    let mut book = Book::new();
    take(&mut book, &end(0x18, port), ms(1));
    let other = ReportedEnd {
        udp_port: port,
        ..lease(0x19, 0x11)
    };
    take(&mut book, &other, ms(1));
    let data = book.data(0x11, port, ms(2));
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
}

#[test]
fn unreliable_connections_are_not_paired_by_reports() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    take(&mut book, &end(0x18, port), ms(1));
    take(&mut book, &lease(0x18, 0x11), ms(1));
    let data = book
        .0
        .observe(&record(A, B, 0x11, 0x2a, port, ms(2)), 0)
        .unwrap();
    assert_eq!(book.0.pairing(data, ms(2)).evidence(), Evidence::None);
}

proptest! {
    /// Whatever is reported, taken back and shown in whatever order, the scores are those of the table as it stands.
    #[test]
    fn the_score_does_not_depend_on_the_order(
        steps in prop::collection::vec((0u8..5, 0u32..6, 0u32..6), 1..80),
    ) {
        let mut book = Book::new();
        // Two ports, so that they are shared, and numbers of which some fit.
        let port = |n: u32| if n & 1 == 0 { hash(0x18, 0x11) } else { hash(0x19, 0x12) };
        for (at, (what, a, b)) in steps.into_iter().enumerate() {
            let now = ms(1 + at as u64);
            match what {
                0 => { book.data(0x10 + b, port(a), now); }
                1 => { book.ack(0x18 + a, port(b), now); }
                2 => book.0.forget_end(PEER, (&back(0x18 + a), port(b)), now),
                _ => { let _ = book.0.take_end(PEER, &end(0x18 + a, port(b)), now); }
            }
        }
        let now = ms(100);
        let ends: Vec<_> = (0x10..0x16).filter_map(|b| {
            book.0.find(&FlowKey::new(A.parse().unwrap(), B.parse().unwrap(), Qpn::new(b)))
        }).collect();
        let before: Vec<_> = ends.iter().map(|end| book.0.pairing(*end, now)).collect();
        for end in &ends {
            book.0.endpoints.update_shared(end.0, now);
        }
        let after: Vec<_> = ends.iter().map(|end| book.0.pairing(*end, now)).collect();
        prop_assert_eq!(before, after);
    }
}
