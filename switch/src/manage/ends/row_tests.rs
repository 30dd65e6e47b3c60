use super::*;
use npcc_pipeline::units::Nanos;
use npcc_roce::pair::Transport;

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

/// Lines that the feed reads too.
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
        transport: Transport::Rc,
        first_seen: Nanos(3_000_000_000),
        last_seen: Nanos(4_000_000_000),
        packets: 12,
        acked_psn: Some(77),
    }
}

#[test]
fn rows_are_written_as_a_feed_reads_them() {
    let datagrams = SeenEnd {
        key: back(6, 4_712),
        udp_port: 49_153,
        transport: Transport::Ud,
        acked_psn: None,
        ..end()
    };
    let there = back(4, 0).reversed(Qpn::new(7));
    let at = Nanos(5_000_000_000);
    let of = |row: Row| EndRow::of(&row, &calendar()).unwrap();
    let rows = [
        EndRow::Begin,
        of(Row::End(end())),
        of(Row::End(datagrams)),
        EndRow::Complete { count: 2 },
        of(Row::Cm(CmKind::Req, there, [1, 0], at)),
        of(Row::Cm(
            CmKind::Dreq,
            there.with_qp(Qpn::new(8)),
            [1, 2],
            at,
        )),
        of(Row::Gone(end().key, 49_152)),
        EndRow::Lost { count: 9 },
    ];
    let lines = rows.map(|row| serde_json::to_string(&row).unwrap() + "\n");
    assert_eq!(lines.concat(), ROWS);
    assert_eq!(EndRow::of(&Row::Walked(1), &calendar()), None);
}

#[test]
fn an_end_is_read_back_as_a_report() {
    let report = |row: Row| {
        let row = EndRow::of(&row, &calendar()).unwrap();
        row.report(Speaker::Box, &calendar())
    };
    let expected = ReportedEnd {
        key: end().key,
        udp_port: 49_152,
        partner: None,
        holds: HOLDS,
    };
    assert_eq!(report(Row::End(end())), Ok(Report::Seen(expected)));
    let gone = Report::Gone(end().key, 49_152);
    assert_eq!(report(Row::Gone(end().key, 49_152)), Ok(gone));
}

const END: &str = r#"{"kind":"end","from":"10.0.2.2","to":"10.0.1.2","queue_pair":4711,"udp_port":49152,"transport":"rc","first_seen":1,"last_seen":2,"packets":12,"later":"unknown"}"#;

#[test]
fn a_row_that_no_such_speaker_may_say_is_refused() {
    let refused = |text: &str, speaker| read(text).report(speaker, &calendar()).unwrap_err();
    assert!(read(END).report(Speaker::Box, &calendar()).is_ok());
    assert_eq!(refused(END, Speaker::Host), RefusedEnd::Unsupported);
    let uc = END.replace("\"rc\"", "\"uc\"");
    assert_eq!(refused(&uc, Speaker::Box), RefusedEnd::Unsupported);
    for (from, to) in [
        ("10.0.2.2", "224.0.0.9"),
        ("10.0.2.2", "2001:db8::2"),
        ("10.0.1.2", "0.0.0.0"),
        ("4711", "1"),
        ("4711", "16777216"),
    ] {
        assert_eq!(
            refused(&END.replace(from, to), Speaker::Box),
            RefusedEnd::Malformed,
            "{to}"
        );
    }
}

#[test]
fn a_lease_ends_when_it_says_and_its_port_is_the_hash_unless_named() {
    let lease = r#"{"kind":"lease","to":"10.0.1.2","queue_pair":24,"remote_queue_pair":17,"expires":1800000002000000}"#;
    let Ok(Report::Seen(end)) = read(lease).report(Speaker::Host, &calendar()) else {
        panic!("it was refused");
    };
    assert_eq!(end.key.to_string(), "0.0.0.0 > 10.0.1.2 qp 0x18");
    assert_eq!((end.udp_port, end.partner), (49_560, Some(Qpn::new(17))));
    assert_eq!(end.holds, Nanos::from_millis(2_000));
    let over = lease.replace("1800000002", "1800000000");
    assert_eq!(
        read(&over).report(Speaker::Host, &calendar()),
        Err(RefusedEnd::Expired)
    );
    let named = lease.replace("\"to\"", "\"from\":\"10.0.2.2\",\"udp_port\":53248,\"to\"");
    let Ok(Report::Seen(end)) = read(&named).report(Speaker::Host, &calendar()) else {
        panic!("it was refused");
    };
    assert_eq!(
        (end.key.src(), end.udp_port),
        ([10, 0, 2, 2].into(), 53_248)
    );
    assert_eq!(
        read(lease).report(Speaker::Box, &calendar()),
        Err(RefusedEnd::Unsupported)
    );
}
