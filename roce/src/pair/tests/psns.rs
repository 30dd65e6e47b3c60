//! Evidence `psn`: connections whose ports say nothing, known by the sequence numbers of requests and replies.

use super::*;

/// Connections whose ports prove nothing, as all have one.
struct PsnRig {
    connections: ConnectionTable,
    now: Nanos,
    port: u16,
}

impl PsnRig {
    fn new() -> PsnRig {
        PsnRig {
            connections: ConnectionTable::new(4_096, 5),
            now: ms(1),
            port: 50_000,
        }
    }

    /// Rig with another connection and one of 0x18 to 0x11 that PSNs have paired; returns the endpoint of its data.
    fn paired() -> (PsnRig, EndpointId) {
        let mut rig = PsnRig::new();
        rig.exchange(0x300, 0x200, 1 << 20);
        rig.exchange(0x18, 0x11, 0);
        rig.exchange(0x18, 0x11, 1);
        let endpoint = rig.exchange(0x18, 0x11, 2);
        assert_eq!(rig.pairing(endpoint), paired(0x18, Evidence::Psn));
        (rig, endpoint)
    }

    fn packet(&mut self, src: &str, dst: &str, qpn: u32, opcode: u8, psn: u32) -> EndpointId {
        let syndrome = (opcode == 0x11).then_some(0x1f);
        self.packet_with(syndrome, (src, dst, qpn), opcode, psn)
    }

    /// Passes a packet with this syndrome, if it has one.
    fn packet_with(
        &mut self,
        syndrome: Option<u8>,
        (src, dst, qpn): (&str, &str, u32),
        opcode: u8,
        psn: u32,
    ) -> EndpointId {
        self.now += Nanos(1_000);
        let record = PacketSample {
            psn: psn.wrapping_add(BASE) & 0xff_ffff,
            syndrome,
            ..record(src, dst, qpn, opcode, self.port, self.now)
        };
        self.connections.observe(&record, 0).unwrap()
    }

    /// Passes data of A to `b`, acknowledged to `a`.
    fn exchange(&mut self, a: u32, b: u32, psn: u32) -> EndpointId {
        let endpoint = self.packet(A, B, b, 0x0a, psn);
        self.packet(B, A, a, 0x11, psn);
        endpoint
    }

    fn pairing(&self, endpoint: EndpointId) -> Pairing {
        self.connections.pairing(endpoint, self.now)
    }
}

#[test]
fn three_psns_that_fit_pair_and_two_do_not() {
    let mut rig = PsnRig::new();
    for other in 0..20 {
        rig.exchange(0x300 + other, 0x200 + other, (other + 1) << 18);
    }
    let wrap = 0x100_0000 - BASE;
    let endpoint = rig.exchange(0x18, 0x11, wrap - 2);
    rig.exchange(0x18, 0x11, wrap - 1);
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
    rig.exchange(0x18, 0x11, wrap);
    assert_eq!(rig.pairing(endpoint), paired(0x18, Evidence::Psn));
    let back = rig.packet(B, A, 0x18, 0x11, wrap);
    assert_eq!(rig.pairing(back), paired(0x11, Evidence::Psn));
}

/// FLUSH and ATOMIC WRITE are answered by a READ RESPONSE ONLY with their number.
#[test]
fn flush_and_atomic_write_pair_by_their_psns() {
    for opcode in [0x1c, 0x1d] {
        let mut rig = PsnRig::new();
        rig.exchange(0x300, 0x200, 1 << 20);
        for psn in 0..3 {
            let endpoint = rig.packet(A, B, 0x11, opcode, psn);
            assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None, "{psn}");
            rig.packet_with(Some(0x1f), (B, A, 0x18), 0x10, psn);
        }
        let endpoint = rig.packet(A, B, 0x11, opcode, 3);
        assert_eq!(
            rig.pairing(endpoint),
            paired(0x18, Evidence::Psn),
            "{opcode:#04x}"
        );
    }
}

#[test]
fn an_acknowledgement_sent_again_counts_once() {
    let mut rig = PsnRig::new();
    rig.exchange(0x300, 0x200, 1 << 20);
    let endpoint = rig.exchange(0x18, 0x11, 7);
    for _ in 0..5 {
        rig.packet(B, A, 0x18, 0x11, 7);
    }
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
}

#[test]
fn psns_in_lock_step_prove_nothing() {
    let mut rig = PsnRig::new();
    for psn in 0..16 {
        for n in 0..8 {
            rig.packet(A, B, 0x200 + n, 0x0a, psn);
        }
        for n in 0..8 {
            rig.packet(B, A, 0x300 + n, 0x11, psn);
        }
    }
    // One of them runs ahead, and samples of the others are lost.
    for psn in 16..40 {
        let endpoint = rig.exchange(0x300, 0x200, psn);
        assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
    }
}

/// All begin at 0, drift apart, and are seen from 0x20_0000 on: 40 of them within the range that 64 could be in by chance.
#[test]
fn psns_that_began_together_prove_nothing_when_they_have_drifted() {
    let mut rig = PsnRig::new();
    for step in 0..60 {
        for n in 0..40 {
            rig.exchange(0x300 + n, 0x200 + n, n * 300 + step);
        }
        rig.now += ms(1);
    }
    for n in 0..40 {
        let endpoint = rig.packet(A, B, 0x200 + n, 0x0a, n * 300 + 60);
        assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None, "{n}");
    }
}

/// Only the data of one connection are seen, and only the answers of another, both counting from 0.
#[test]
fn psns_from_zero_on_pair_nobody() {
    let mut rig = PsnRig::new();
    for psn in 0..100u32 {
        let endpoint = rig.exchange(0x18, 0x11, psn.wrapping_sub(BASE));
        assert_ne!(rig.pairing(endpoint).evidence(), Evidence::Psn);
        rig.now += ms(1);
    }
}

#[test]
fn a_thousand_random_psns_are_distinguished_once_their_pace_is_known() {
    let mut rig = PsnRig::new();
    let start = |n: u32| n.wrapping_mul(0x9e37_79b1) >> 8;
    let mut endpoints = Vec::new();
    for step in 0..60 {
        endpoints = (0..1_000)
            .map(|n| rig.exchange(0x30_0000 + n, 0x20_0000 + n, start(n) + step))
            .collect();
        rig.now += ms(1);
    }
    let pairs: Vec<_> = endpoints
        .iter()
        .map(|endpoint| rig.pairing(*endpoint))
        .collect();
    let right = (0..1_000)
        .zip(&pairs)
        .filter(|(n, pair)| **pair == paired(0x30_0000 + n, Evidence::Psn))
        .count();
    let unpaired = pairs
        .iter()
        .filter(|pair| pair.evidence() == Evidence::None)
        .count();
    assert_eq!(right + unpaired, 1_000, "none wrong");
    assert!(right >= 950, "{right}");
}

/// Answers whose data take another path may fit others' numbers by chance; where there are many, none is believed.
#[test]
fn many_replies_without_a_sender_take_psn_evidence_away() {
    let mut rig = PsnRig::new();
    let mut endpoint = None;
    for psn in 0..4 {
        endpoint = Some(rig.exchange(0x18, 0x11, psn));
    }
    let endpoint = endpoint.unwrap();
    assert_eq!(rig.pairing(endpoint), paired(0x18, Evidence::Psn));
    for n in 0..40 {
        rig.packet(B, A, 0x300 + n, 0x11, (n + 1) << 18);
    }
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
    // Their data appear after all.
    for n in 0..40 {
        rig.exchange(0x300 + n, 0x200 + n, (n + 1) << 18);
    }
    assert_eq!(rig.pairing(endpoint), paired(0x18, Evidence::Psn));
}

#[test]
fn read_responses_and_atomics_fit_their_requests() {
    for (request, reply) in [(0x0c, 0x10), (0x0c, 0x0d), (0x13, 0x12)] {
        let mut rig = PsnRig::new();
        rig.exchange(0x300, 0x200, 1 << 20);
        let mut data = None;
        for psn in [5u32, 90, 300] {
            rig.packet(B, A, 0x18, request, psn);
            data = Some(rig.packet(A, B, 0x11, reply, psn));
        }
        assert_eq!(
            rig.pairing(data.unwrap()),
            paired(0x18, Evidence::Psn),
            "{request:#x} {reply:#x}"
        );
    }
}

/// Law: an acknowledgement supports a match whatever its credits; an RNR NAK and a NAK do not, as their number is of a packet not received.
#[test]
fn a_nak_supports_nothing() {
    for (syndrome, evidence) in [
        (0x00, Evidence::Psn),
        (0x1f, Evidence::Psn),
        (0x20, Evidence::None),
        (0x60, Evidence::None),
        (0x64, Evidence::None),
    ] {
        let mut rig = PsnRig::new();
        rig.exchange(0x300, 0x200, 1 << 20);
        let mut data = None;
        for psn in 0..5 {
            data = Some(rig.packet(A, B, 0x11, 0x0a, psn));
            rig.packet_with(Some(syndrome), (B, A, 0x18), 0x11, psn);
        }
        let found = rig.pairing(data.unwrap()).evidence();
        assert_eq!(found, evidence, "{syndrome:#x}");
    }
}

#[test]
fn an_acknowledgement_far_off_parts_and_a_nak_far_off_does_not() {
    let (mut rig, endpoint) = PsnRig::paired();
    rig.packet_with(Some(0x60), (B, A, 0x18), 0x11, 0x40_0000);
    assert_eq!(rig.pairing(endpoint), paired(0x18, Evidence::Psn));
    rig.packet(B, A, 0x18, 0x11, 0x40_0000);
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
}

/// Law: requests sent again are the same connection's, up to 2^18 numbers back.
#[test]
fn requests_that_are_sent_again_do_not_part() {
    let (mut rig, endpoint) = PsnRig::paired();
    for step in 1..=9 {
        rig.packet(A, B, 0x11, 0x0a, 0x8000 * step);
    }
    rig.packet(A, B, 0x11, 0x0a, 0x8000);
    assert_eq!(rig.pairing(endpoint), paired(0x18, Evidence::Psn));
    rig.packet(A, B, 0x11, 0x0a, 0x8000_u32.wrapping_sub(0x4_0001));
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
}

#[test]
fn two_that_claim_one_are_both_doubted() {
    let mut rig = PsnRig::new();
    rig.exchange(0x300, 0x200, 1 << 20);
    let mut endpoint = None;
    for psn in 0..3 {
        endpoint = Some(rig.exchange(0x18, 0x11, psn));
        rig.packet(B, A, 0x19, 0x11, psn);
    }
    assert_eq!(rig.pairing(endpoint.unwrap()).evidence(), Evidence::None);
}

#[test]
fn a_reply_whose_number_does_not_fit_refutes_the_port() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11) ^ 1;
    let data = book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    book.data(0x11, port, ms(60));
    book.ack(0x18, port, ms(60));
    assert_eq!(book.0.pairing(data, ms(60)), paired(0x18, Evidence::Port));
    let far = PacketSample {
        psn: 0x40_0000,
        syndrome: Some(0),
        ..record(B, A, 0x18, 0x11, port, ms(61))
    };
    book.0.observe(&far, 0);
    assert_eq!(book.0.pairing(data, ms(61)).evidence(), Evidence::None);
}

/// Two connections in lock step began at 0 long before the switch did; each takes a path of its own by its UDP source port,
/// and only the data of one pass here, only the answers of the other.
#[test]
fn psns_on_different_ports_pair_nobody() {
    let mut rig = PsnRig::new();
    for psn in 0..100 {
        rig.port = 50_001;
        let endpoint = rig.packet(A, B, 0x11, 0x0a, psn);
        rig.port = 50_002;
        rig.packet(B, A, 0x19, 0x11, psn);
        assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
        rig.now += ms(1);
    }
}

/// Another connection takes a queue pair over without a message, on the same port.
#[test]
fn a_request_far_from_the_last_is_another_connections() {
    let (mut rig, endpoint) = PsnRig::paired();
    rig.packet(A, B, 0x11, 0x0a, 0x40_0000);
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
    for psn in 0..3 {
        rig.exchange(0x55, 0x11, 0x40_0001 + psn);
    }
    assert_eq!(rig.pairing(endpoint), paired(0x55, Evidence::Psn));
}

/// A jump of numbers where the port is the evidence.
#[test]
fn a_port_is_compared_anew_when_psns_jump() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11) ^ 1;
    let data = book.data(0x11, port, ms(1));
    book.ack(0x18, port, ms(1));
    book.data(0x11, port, ms(60));
    book.ack(0x18, port, ms(60));
    assert_eq!(book.0.pairing(data, ms(60)), paired(0x18, Evidence::Port));
    let far = PacketSample {
        psn: 0x40_0000,
        ..record(A, B, 0x11, 0x0a, port, ms(61))
    };
    book.0.observe(&far, 0);
    assert_eq!(book.0.pairing(data, ms(61)).evidence(), Evidence::None);
}

/// Law: an endpoint that is forgotten leaves no support to the one that takes its place in the table.
#[test]
fn support_for_an_end_that_is_gone_is_none_for_another() {
    let mut rig = PsnRig::new();
    rig.exchange(0x300, 0x200, 1 << 20);
    rig.exchange(0x18, 0x11, 0);
    rig.exchange(0x18, 0x11, 1);
    for _ in 0..8 {
        rig.now += ms(1_000);
        rig.packet(B, A, 0x18, 0x0a, 1);
        rig.exchange(0x300, 0x200, 1 << 20);
        rig.connections.age(rig.now);
    }
    assert_eq!(rig.connections.len(), 3, "0x11 is forgotten");
    let endpoint = rig.exchange(0x18, 0x12, 2);
    assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
}

/// Law: one packet with a far number does not make a count from 0 a random one.
#[test]
fn a_forged_psn_does_not_hide_that_psns_were_small() {
    let mut rig = PsnRig::new();
    let small = |psn: u32| psn.wrapping_sub(BASE);
    for psn in (1..0x30_0000).step_by(50_000) {
        rig.exchange(0x18, 0x11, small(psn));
    }
    rig.packet(A, B, 0x11, 0x0a, 0x80_0000);
    for psn in 0x30_0000..0x30_0014 {
        let endpoint = rig.exchange(0x18, 0x11, small(psn));
        assert_eq!(rig.pairing(endpoint).evidence(), Evidence::None);
    }
}

/// The wrong name is an operator's slip, or a connection made up before the first packet.
#[test]
fn a_binding_is_suspended_when_psns_show_another_partner() {
    let mut rig = PsnRig::new();
    rig.exchange(0x300, 0x200, 1 << 20);
    let endpoint = rig.exchange(0x18, 0x11, 0);
    let (to_receiver, now) = (record(A, B, 0x11, 0x0a, 0, ms(1)).key, rig.now);
    assert!(rig.connections.add_pair(&to_receiver, Qpn::new(0x55), now));
    rig.exchange(0x18, 0x11, 1);
    assert_eq!(rig.pairing(endpoint), paired(0x55, Evidence::Cm));
    rig.exchange(0x18, 0x11, 2);
    assert_eq!(rig.pairing(endpoint), Pairing::Unpaired);
}

/// Traffic of 400G in packets of half a kilobyte, 6 ms to the far end and back: 600,000 are on their way at a time.
#[test]
fn replies_to_requests_sent_milliseconds_ago_undo_no_match() {
    let mut book = Book::new();
    let port = hash(0x18, 0x11) ^ 1;
    // It begins slowly.
    let number = |n: u32| n.min(25) * 1_000 + n.saturating_sub(25) * 100_000;
    for n in 1..150 {
        let packet = |src, dst, qpn, opcode, number| PacketSample {
            psn: number,
            packets: number,
            syndrome: (opcode == 0x11).then_some(0x1f),
            ..record(src, dst, qpn, opcode, port, ms(n.into()))
        };
        book.0.observe(&packet(A, B, 0x11, 0x0a, number(n)), 0);
        let answered = number(n.saturating_sub(6));
        book.0.observe(&packet(B, A, 0x18, 0x11, answered), 0);
    }
    let endpoint = book.0.find(&record(A, B, 0x11, 0x0a, 0, ms(1)).key);
    let signalled = book.0.pairing(endpoint.unwrap(), ms(150));
    assert_eq!(signalled, paired(0x18, Evidence::Port));
}

/// Regression: four packets were made up over a connection; the number was later another's, with a port of its own, which was never looked at.
#[test]
fn psns_that_jump_often_take_port_evidence_away() {
    let mut book = Book::new();
    let (old, new) = (hash(0x18, 0x11), hash(0x55, 0x11));
    for n in 0..4 {
        book.data(0x11, old, ms(1 + 2 * n));
        let far = PacketSample {
            psn: 0x40_0000,
            ..record(A, B, 0x11, 0x0a, old, ms(2 + 2 * n))
        };
        book.0.observe(&far, 0);
    }
    book.ack(0x18, old, ms(20));
    let data = book.data(0x11, new, ms(100));
    assert_eq!(book.0.pairing(data, ms(100)).evidence(), Evidence::None);
    // Once it has been silent for a while its port is evidence again.
    book.data(0x11, new, ms(5_000));
    book.ack(0x55, new, ms(5_000));
    let signalled = book.0.pairing(data, ms(5_000));
    assert_eq!(signalled, paired(0x55, Evidence::PortHash));
}

/// Law: a READ RESPONSE is matched with the requests of its connection's other direction, where those pass here.
#[test]
fn a_read_response_without_a_possible_request_is_unrequested() {
    const START: u32 = 0x60_0000;
    let mut book = Book::new();
    let port = hash(0x18, 0x11);
    let response = |psn, now| PacketSample {
        psn,
        ..record(A, B, 0x11, 0x0e, port, now)
    };
    let unasked = |book: &Book, psn, now| {
        let response = response(psn, now);
        let endpoint = book.0.find(&response.key).unwrap();
        book.0.is_unrequested(endpoint, &response, &|_, _| None)
    };
    book.0.observe(&response(START, ms(1)), 0);
    assert!(
        !unasked(&book, START, ms(1)),
        "its requests may pass elsewhere"
    );
    book.ack(0x18, port, ms(1));
    assert!(
        unasked(&book, START, ms(1)),
        "they pass here, and there is none"
    );
    for now in 1..100 {
        let psn = START + 64 * u32::try_from(now).unwrap();
        let request = PacketSample {
            psn,
            ..record(B, A, 0x18, 0x0c, port, ms(now))
        };
        book.0.observe(&request, 0);
        for of_it in [psn, psn + 63, psn - 64] {
            assert!(!unasked(&book, of_it, ms(now)), "{of_it:#x} at {now}");
        }
        for other in [0, START - 0x2_0000, START + 0x4_0000, 0xff_ffff] {
            assert!(unasked(&book, other, ms(now)), "{other:#x} at {now}");
        }
    }
    assert!(!unasked(&book, 0, ms(99) + LIVE), "nothing passes any more");
}
