use super::*;
use npcc_cnp::pair::Transport;

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

#[test]
fn an_end_is_written_as_agreed_and_read_back_as_a_report() {
    let key = FlowKey::new([10, 0, 2, 2].into(), [10, 0, 1, 2].into(), Qpn::new(4_711));
    let end = SeenEnd {
        key,
        udp_port: 49_152,
        transport: Transport::Rc,
        first_seen: Nanos(3_000_000_000),
        last_seen: Nanos(4_000_000_000),
        packets: 12,
        acked_psn: Some(77),
    };
    let row = EndRow::of(&Row::End(end), &calendar()).unwrap();
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(
        text,
        r#"{"kind":"end","from":"10.0.2.2","to":"10.0.1.2","queue_pair":4711,"udp_port":49152,"transport":"rc","first_seen":1799999998000000,"last_seen":1799999999000000,"packets":12,"acked_psn":77,"acked_at":1799999999000000}"#
    );
    let report = read(&text).report(Speaker::Box, &calendar()).unwrap();
    let expected = ReportedEnd {
        key,
        udp_port: 49_152,
        partner: None,
        holds: HOLDS,
    };
    assert_eq!(report, Report::Seen(expected));
    let gone = EndRow::of(&Row::Gone(key, 49_152), &calendar()).unwrap();
    assert_eq!(
        gone.report(Speaker::Box, &calendar()),
        Ok(Report::Gone(key))
    );
}

#[test]
fn marks_and_messages_are_written_as_agreed() {
    let line = |row: &EndRow| serde_json::to_string(row).unwrap();
    assert_eq!(line(&EndRow::Begin), r#"{"kind":"begin"}"#);
    assert_eq!(
        line(&EndRow::Complete { count: 3 }),
        r#"{"kind":"complete","count":3}"#
    );
    assert_eq!(
        line(&EndRow::Lost { count: 9 }),
        r#"{"kind":"lost","count":9}"#
    );
    let key = FlowKey::new([10, 0, 1, 2].into(), [10, 0, 2, 2].into(), Qpn::new(7));
    let req = Row::Cm(CmKind::Req, key, [1, 0], Nanos(5_000_000_000));
    assert_eq!(
        line(&EndRow::of(&req, &calendar()).unwrap()),
        r#"{"kind":"cm","message":"req","from":"10.0.1.2","to":"10.0.2.2","local_comm_id":1,"remote_comm_id":0,"queue_pair":7,"at":1800000000000000}"#
    );
    assert_eq!(EndRow::of(&Row::Walked(1), &calendar()), None);
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
