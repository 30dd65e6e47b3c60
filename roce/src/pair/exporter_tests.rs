use super::*;
use crate::cm::message::Service;
use crate::key::Qpn;
use crate::pair::Transport;
use crate::pair::export::{EndReader, KEPT};
use crate::sample::{SampleFlags, SlotRef};
use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::units::{PortId, Priority};
use npcc_pipeline::wire::bth::RoceClass;

const PORT: u16 = 0xc123;

/// Record of an ACK to this queue pair.
fn ack(qpn: u32, udp_port: u16, now: Nanos) -> PacketSample {
    let key = FlowKey::new([10, 0, 2, 2].into(), [10, 0, 1, 3].into(), Qpn::new(qpn));
    PacketSample {
        key,
        time: now,
        slot: SlotRef {
            slot: FlowSlot(qpn),
            generation: 2,
        },
        packets: 1,
        psn: 77,
        source_qp: None,
        udp_port,
        wire_len: 98,
        opcode: 0x11,
        class: RoceClass::Ack,
        flags: SampleFlags::default(),
        syndrome: Some(0x1f),
        ingress: PortId(1),
        egress: PortId(0),
        priority: Priority::new(3),
    }
}

fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

struct Rig {
    book: ConnectionTable,
    reader: EndReader,
}

impl Rig {
    fn new() -> Rig {
        let mut book = ConnectionTable::new(64, 5);
        let reader = book.feed().read();
        book.export(ms(1));
        Rig { book, reader }
    }

    fn see(&mut self, qpn: u32, port: u16, now: Nanos) {
        self.book.observe(&ack(qpn, port, now), 0).unwrap();
    }

    fn rows(&mut self) -> Vec<Row> {
        std::iter::from_fn(|| self.reader.take()).collect()
    }

    /// Queue pairs of the ends among the rows.
    fn ends(&mut self) -> Vec<u32> {
        let number = |row: &Row| match row {
            Row::End(end) => Some(end.key.dest_qp().get()),
            _ => None,
        };
        self.rows().iter().filter_map(number).collect()
    }
}

#[test]
fn an_end_comes_at_once_and_again_once_a_second_while_its_packets_move() {
    let mut rig = Rig::new();
    rig.see(7, PORT, ms(10));
    let rows = rig.rows();
    let [Row::End(end)] = rows[..] else {
        panic!("{rows:?}");
    };
    assert_eq!(end.key, ack(7, PORT, ms(10)).key);
    let shown = (end.udp_port, end.transport, end.acked_psn, end.packets);
    assert_eq!(shown, (PORT, Transport::Rc, Some(77), 1));
    assert_eq!((end.first_seen, end.last_seen), (ms(10), ms(10)));
    rig.see(7, PORT, ms(1_009));
    assert!(rig.rows().is_empty(), "too soon");
    rig.see(7, PORT, ms(1_010));
    assert_eq!(rig.ends(), [7]);
    rig.see(7, PORT + 1, ms(1_011));
    let rows = rig.rows();
    assert_eq!(rows[0], Row::Gone(end.key, PORT), "its port changed");
    assert!(
        matches!(rows[1..], [Row::End(end)] if end.udp_port == PORT + 1),
        "{rows:?}"
    );
}

#[test]
fn without_a_reader_nothing_is_written() {
    let mut rig = Rig::new();
    rig.reader = EndFeed::read(&Arc::default());
    rig.book.export(ms(2));
    rig.see(7, PORT, ms(10));
    assert_eq!(rig.book.feed().ring.written(), 0);
}

#[test]
fn a_walk_brings_what_there_is_and_says_when_that_is_all() {
    let mut rig = Rig::new();
    (0..60).for_each(|n| rig.see(100 + n, PORT, ms(10)));
    rig.rows();
    let end = rig.reader.walk();
    rig.book.export(ms(11));
    let rows = rig.rows();
    assert_eq!((rows.len(), rows.last()), (61, Some(&end)));
    rig.book.export(ms(12));
    assert!(rig.rows().is_empty(), "one walk");
}

#[test]
fn an_end_that_is_forgotten_or_closed_is_gone_and_its_last_packets_do_not_bring_it_back() {
    let mut rig = Rig::new();
    rig.see(7, PORT, ms(10));
    rig.rows();
    (0..8).for_each(|_| rig.book.age(ms(5_000)));
    assert_eq!(rig.rows(), [Row::Gone(ack(7, PORT, ms(10)).key, PORT)]);
    // Set up and closed by the connection manager.
    let back = ack(1, 0, ms(0)).key;
    let there = back.reversed(Qpn::new(1));
    let said = |book: &mut ConnectionTable, way: &FlowKey, message: Message, now: Nanos| {
        book.observe_message((way, PortId(0)), &message, now);
    };
    let (local, remote, psn) = (1, 2, 0);
    let req = Message::Req {
        local,
        qpn: Qpn::new(7),
        psn,
        service: Service::Rc,
        flow_label: 0,
    };
    said(&mut rig.book, &there, req, ms(6_000));
    let rep = Message::Rep {
        local: remote,
        remote: local,
        qpn: Qpn::new(9),
        psn,
    };
    said(&mut rig.book, &back, rep, ms(6_001));
    rig.see(7, PORT, ms(6_002));
    let cm =
        |kind, way: &FlowKey, qpn, ids, at| Row::Cm(kind, way.with_qp(Qpn::new(qpn)), ids, ms(at));
    let rows = rig.rows();
    assert_eq!(rows[0], cm(CmKind::Req, &there, 7, [1, 0], 6_000));
    assert_eq!(rows[1], cm(CmKind::Rep, &back, 9, [2, 1], 6_001));
    assert!(matches!(rows[2..], [Row::End(_)]), "{rows:?}");
    let dreq = Message::Dreq {
        local,
        remote,
        remote_qpn: Qpn::new(9),
    };
    said(&mut rig.book, &there, dreq, ms(7_000));
    rig.see(7, PORT, ms(7_001));
    let closed = [
        cm(CmKind::Dreq, &there, 9, [1, 2], 7_000),
        Row::Gone(back.with_qp(Qpn::new(7)), PORT),
    ];
    assert_eq!(rig.rows(), closed);
    rig.see(7, PORT, ms(7_200));
    assert_eq!(rig.ends(), [7], "another connection");
}

#[test]
fn a_reader_that_is_too_slow_loses_the_oldest_and_knows_how_many() {
    let mut rig = Rig::new();
    let kept = KEPT as u64;
    (0..kept + 100).for_each(|n| rig.book.endpoints.export.write(Row::Walked(n)));
    let first = rig.reader.take();
    let lost = kept / 8 + 100;
    assert_eq!((first, rig.reader.lost), (Some(Row::Walked(lost)), lost));
    assert_eq!(rig.rows().len() as u64, kept / 8 * 7 - 1);
}
