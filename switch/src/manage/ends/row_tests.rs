use npcc_pipeline::units::Nanos;

use super::*;

fn calendar() -> Calendar {
    Calendar {
        scale: 1.0,
        now: Nanos(5_000_000_000),
        epoch_us: 1_800_000_000_000_000,
    }
}

fn read(text: &str) -> EndRow {
    serde_json::from_str(text).unwrap()
}

static BOX: PeerName = PeerName::Peer(String::new());
static HOST: PeerName = PeerName::Host(String::new());

/// Lines of every kind of row.
const ROWS: &str = include_str!("../../../../tests/protocol/rows.jsonl");

/// Key of frames to the sender of a flow.
fn back(last: u8, queue_pair: u32) -> FlowKey {
    let (from, to) = match last {
        4 => ([10, 0, 2, 2].into(), [10, 0, 1, 2].into()),
        _ => ("fd00::2".parse().unwrap(), "fd00::1".parse().unwrap()),
    };
    FlowKey::new(from, to, Qpn::new(queue_pair))
}

fn end() -> SeenEnd {
    SeenEnd {
        key: back(4, 4_711),
        udp_port: 49_152,
        transport: pair::Transport::Rc,
        first_seen: Nanos(3_000_000_000),
        last_seen: Nanos(4_000_000_000),
        packets: 12,
        acked_psn: Some(77),
    }
}

#[test]
fn records_become_rows() {
    let datagrams = SeenEnd {
        key: back(6, 4_712),
        udp_port: 49_153,
        transport: pair::Transport::Ud,
        acked_psn: None,
        ..end()
    };
    let there = back(4, 0).reversed(Qpn::new(7));
    let at = Nanos(5_000_000_000);
    let of = |row: Row| super::of(&row, &calendar()).unwrap();
    let rows = [
        EndRow::Begin,
        of(Row::End(end())),
        of(Row::End(datagrams)),
        EndRow::Complete { count: 2 },
        of(Row::Cm(export::CmKind::Req, there, [1, 0], at)),
        of(Row::Cm(
            export::CmKind::Dreq,
            there.with_qp(Qpn::new(8)),
            [1, 2],
            at,
        )),
        of(Row::Gone(end().key, 49_152)),
        EndRow::Lost { count: 9 },
    ];
    let lines = rows.map(|row| serde_json::to_string(&row).unwrap() + "\n");
    assert_eq!(lines.concat(), ROWS);
    assert_eq!(super::of(&Row::Walked(1), &calendar()), None);
}

#[test]
fn an_end_is_read_back_as_a_report() {
    let reported = |row: Row| {
        let row = super::of(&row, &calendar()).unwrap();
        report(&row, &BOX, &calendar())
    };
    let expected = ReportedEnd {
        key: end().key,
        udp_port: 49_152,
        partner: None,
        holds: HOLDS,
    };
    assert_eq!(reported(Row::End(end())), Ok(Report::Seen(expected)));
    let gone = Report::Gone(end().key, 49_152);
    assert_eq!(reported(Row::Gone(end().key, 49_152)), Ok(gone));
}

const END: &str = r#"{"kind":"end","from":"10.0.2.2","to":"10.0.1.2","queue_pair":4711,"udp_port":49152,"transport":"rc","first_seen":1,"last_seen":2,"packets":12,"later":"unknown"}"#;

#[test]
fn a_row_that_no_such_speaker_may_say_is_refused() {
    let refused = |text: &str, speaker| report(&read(text), speaker, &calendar()).unwrap_err();
    assert!(report(&read(END), &BOX, &calendar()).is_ok());
    assert_eq!(refused(END, &HOST), RefusedEnd::Unsupported);
    let uc = END.replace("\"rc\"", "\"uc\"");
    assert_eq!(refused(&uc, &BOX), RefusedEnd::Unsupported);
    for (from, to) in [
        ("10.0.2.2", "224.0.0.9"),
        ("10.0.2.2", "2001:db8::2"),
        ("10.0.1.2", "0.0.0.0"),
        ("4711", "1"),
        ("4711", "16777216"),
    ] {
        assert_eq!(
            refused(&END.replace(from, to), &BOX),
            RefusedEnd::Malformed,
            "{to}"
        );
    }
}

#[test]
fn a_lease_ends_when_it_says_and_its_port_is_the_hash_unless_named() {
    let lease = r#"{"kind":"lease","to":"10.0.1.2","queue_pair":24,"remote_queue_pair":17,"expires":1800000002000000}"#;
    let Ok(Report::Seen(end)) = report(&read(lease), &HOST, &calendar()) else {
        panic!("it was refused");
    };
    assert_eq!(end.key.to_string(), "0.0.0.0 > 10.0.1.2 qp 0x18");
    assert_eq!((end.udp_port, end.partner), (49_560, Some(Qpn::new(17))));
    assert_eq!(end.holds, Nanos::from_millis(2_000));
    let over = lease.replace("1800000002", "1800000000");
    assert_eq!(
        report(&read(&over), &HOST, &calendar()),
        Err(RefusedEnd::Expired)
    );
    let named = lease.replace("\"to\"", "\"from\":\"10.0.2.2\",\"udp_port\":53248,\"to\"");
    let Ok(Report::Seen(end)) = report(&read(&named), &HOST, &calendar()) else {
        panic!("it was refused");
    };
    assert_eq!(
        (end.key.src(), end.udp_port),
        ([10, 0, 2, 2].into(), 53_248)
    );
    assert_eq!(
        report(&read(lease), &BOX, &calendar()),
        Err(RefusedEnd::Unsupported)
    );
}
