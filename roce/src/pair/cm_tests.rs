use super::*;
use crate::cm::message::Service;

const NOW: Nanos = Nanos::from_millis(1);

impl CmTable {
    /// Processes a message while no packets are seen.
    fn hear(&mut self, path: &FlowKey, message: &Message, now: Nanos) -> Change {
        self.observe((path, PortId(0)), message, now, &|_| Activity::Silent)
    }
}

fn path(from: &str, to: &str) -> FlowKey {
    FlowKey::new(from.parse().unwrap(), to.parse().unwrap(), Qpn::new(1))
}

fn there() -> FlowKey {
    path("10.0.1.3", "10.0.2.2")
}

fn back() -> FlowKey {
    path("10.0.2.2", "10.0.1.3")
}

fn req(local: u32, qpn: u32) -> Message {
    Message::Req {
        local,
        qpn: Qpn::new(qpn),
        psn: 0,
        service: Service::Rc,
        flow_label: 0x12345,
    }
}

fn rep(local: u32, remote: u32, qpn: u32) -> Message {
    Message::Rep {
        local,
        remote,
        qpn: Qpn::new(qpn),
        psn: 0,
    }
}

fn sender(table: &CmTable, path: &FlowKey, qpn: u32) -> Option<u32> {
    let binding = table.binding(&path.with_qp(Qpn::new(qpn)), Nanos::from_millis(60_000));
    binding.map(|binding| binding.sender.get())
}

/// Table after a set-up: A connects from 0x18 as 7; B grants 0x11 as 9.
fn connected() -> CmTable {
    let mut table = CmTable::new(64, 3);
    assert_eq!(table.hear(&there(), &req(7, 0x18), NOW), Change::Nothing);
    assert_eq!(sender(&table, &there(), 0x11), None, "asked is not granted");
    assert!(matches!(
        table.hear(&back(), &rep(9, 7, 0x11), NOW),
        Change::Paired(..)
    ));
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
    assert_eq!(sender(&table, &back(), 0x18), Some(0x11));
    table
}

fn is_forgotten(table: &CmTable) -> bool {
    sender(table, &there(), 0x11).is_none() && sender(table, &back(), 0x18).is_none()
}

#[test]
fn a_request_and_its_grant_pair_both_ways_without_rtu_and_on_ipv6() {
    connected();
    let (there, back) = (
        path("2001:db8::1", "2001:db8::2"),
        path("2001:db8::2", "2001:db8::1"),
    );
    let mut table = CmTable::new(64, 3);
    table.hear(&there, &req(7, 0x18), NOW);
    table.hear(&back, &rep(9, 7, 0x11), NOW);
    assert_eq!(sender(&table, &there, 0x11), Some(0x18));
    assert_eq!(sender(&table, &back, 0x18), Some(0x11));
}

/// Alternate path: from 10.8.0.1 to 10.8.0.2.
fn other() -> FlowKey {
    path("10.8.0.1", "10.8.0.2")
}

/// LAP of the requesting side, or of the granting side.
fn lap(by_active: bool) -> (FlowKey, Message) {
    let path = other().with_qp(Qpn::default());
    let (from, local, remote, path) = if by_active {
        (there(), 7, 9, path)
    } else {
        (back(), 9, 7, path.reversed(Qpn::default()))
    };
    (
        from,
        Message::Lap {
            local,
            remote,
            path,
            flow_label: 0,
        },
    )
}

fn apr(by_active: bool, accepted: bool) -> (FlowKey, Message) {
    let (from, local, remote) = if by_active {
        (there(), 7, 9)
    } else {
        (back(), 9, 7)
    };
    (
        from,
        Message::Apr {
            local,
            remote,
            accepted,
        },
    )
}

fn other_named(table: &CmTable) -> [Option<u32>; 2] {
    let back = other().reversed(Qpn::default());
    [sender(table, &other(), 0x11), sender(table, &back, 0x18)]
}

#[test]
fn lap_and_apr_pair_the_alternate_path_until_the_connection_closes() {
    for by_active in [true, false] {
        let mut table = connected();
        let (from, message) = lap(by_active);
        assert_eq!(table.hear(&from, &message, NOW), Change::Nothing);
        assert_eq!(other_named(&table), [None; 2], "proposed is not accepted");
        // Its own side cannot accept it.
        let (from, message) = apr(by_active, true);
        assert_eq!(table.hear(&from, &message, NOW), Change::Nothing);
        let (from, message) = apr(!by_active, true);
        assert!(matches!(
            table.hear(&from, &message, NOW),
            Change::Paired(..)
        ));
        assert_eq!(other_named(&table), [Some(0x18), Some(0x11)]);
        assert_eq!(
            sender(&table, &there(), 0x11),
            Some(0x18),
            "the first path stays"
        );
        assert_eq!(
            table.hear(&from, &message, NOW),
            Change::Nothing,
            "sent again"
        );
        table.hear(
            &there(),
            &Message::Drep {
                local: 7,
                remote: 9,
            },
            NOW,
        );
        assert!(is_forgotten(&table));
        assert_eq!(other_named(&table), [None; 2]);
    }
}

#[test]
fn a_lap_refused_or_of_nobody_names_nothing() {
    let mut table = connected();
    let (from, message) = lap(true);
    table.hear(&from, &message, NOW);
    let (from, message) = apr(false, false);
    table.hear(&from, &message, NOW);
    let (from, message) = apr(false, true);
    assert_eq!(
        table.hear(&from, &message, NOW),
        Change::Nothing,
        "refused is refused"
    );
    let stranger = path("10.0.9.9", "10.0.2.2");
    let (_, message) = lap(true);
    table.hear(&stranger, &message, NOW);
    assert_eq!(other_named(&table), [None; 2]);
}

#[test]
fn a_lap_takes_no_queue_pair_from_another() {
    let mut table = connected();
    // Another connection between those addresses has the granting side's number.
    let theirs = other().with_qp(Qpn::new(1));
    table.hear(&theirs, &req(3, 0x55), NOW);
    table.hear(&theirs.reversed(Qpn::new(1)), &rep(4, 3, 0x11), NOW);
    let (from, message) = lap(true);
    table.hear(&from, &message, NOW);
    let (from, message) = apr(false, true);
    table.hear(&from, &message, NOW);
    assert_eq!(other_named(&table), [Some(0x55), None]);
    assert_eq!(table.contradicted, 1);
    // Nor does its end take theirs along.
    table.hear(
        &there(),
        &Message::Drep {
            local: 7,
            remote: 9,
        },
        NOW,
    );
    assert_eq!(other_named(&table), [Some(0x55), None]);
}

#[test]
fn a_disputed_grant_takes_the_other_path_along() {
    let mut table = connected();
    for (from, message) in [lap(true), apr(false, true)] {
        table.hear(&from, &message, NOW);
    }
    table.hear(&back(), &rep(9, 7, 0x666), NOW);
    assert!(is_forgotten(&table));
    assert_eq!(other_named(&table), [None; 2]);
}

/// The granting side asks for time; the RTU never comes.
#[test]
fn an_mra_and_a_lost_rtu_change_nothing() {
    let mut table = CmTable::new(64, 3);
    table.hear(&there(), &req(7, 0x18), NOW);
    table.hear(&back(), &Message::Other, NOW);
    table.hear(&there(), &req(7, 0x18), NOW);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
    assert_eq!((table.contradicted, table.refused), (0, 0));
}

#[test]
fn messages_sent_again_change_nothing() {
    let mut table = connected();
    table.hear(&there(), &req(7, 0x18), NOW);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    table.hear(&there(), &Message::Other, NOW);
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
    assert_eq!(table.contradicted, 0);
}

#[test]
fn refusal_and_farewell_end_the_pair_from_either_side() {
    for (from, message) in [
        (
            there(),
            Message::Rej {
                local: 7,
                remote: 9,
            },
        ),
        (
            back(),
            Message::Rej {
                local: 9,
                remote: 7,
            },
        ),
        (
            there(),
            Message::Drep {
                local: 7,
                remote: 9,
            },
        ),
        (
            there(),
            Message::Dreq {
                local: 7,
                remote: 9,
                remote_qpn: Qpn::new(0x11),
            },
        ),
        (
            back(),
            Message::Dreq {
                local: 9,
                remote: 7,
                remote_qpn: Qpn::new(0x18),
            },
        ),
    ] {
        let mut table = connected();
        table.hear(&from, &message, NOW);
        assert!(is_forgotten(&table), "{message:?}");
    }
    // Of other connections.
    let mut table = connected();
    table.hear(
        &there(),
        &Message::Rej {
            local: 8,
            remote: 9,
        },
        NOW,
    );
    table.hear(
        &back(),
        &Message::Drep {
            local: 8,
            remote: 7,
        },
        NOW,
    );
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
}

#[test]
fn a_second_and_different_grant_is_a_dispute_and_pairs_nobody() {
    let mut table = connected();
    table.hear(&back(), &rep(9, 7, 0x666), NOW);
    assert!(is_forgotten(&table));
    assert_eq!(sender(&table, &there(), 0x666), None);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    assert!(is_forgotten(&table), "until the next REQ");
    assert_eq!(table.contradicted, 1);
}

#[test]
fn an_id_used_again_is_another_connection() {
    let mut table = connected();
    table.hear(&there(), &req(7, 0x30), NOW);
    assert!(is_forgotten(&table));
    table.hear(&back(), &rep(10, 7, 0x21), NOW);
    assert_eq!(sender(&table, &there(), 0x21), Some(0x30));
}

#[test]
fn a_queue_pair_used_again_ends_what_it_was_part_of() {
    // By its own host, with another peer.
    let mut table = connected();
    table.hear(&path("10.0.1.3", "10.0.9.9"), &req(8, 0x18), NOW);
    assert!(is_forgotten(&table));
    // Granted to another peer.
    let mut table = connected();
    table.hear(&path("10.0.9.9", "10.0.2.2"), &req(5, 0x40), NOW);
    table.hear(&path("10.0.2.2", "10.0.9.9"), &rep(11, 5, 0x11), NOW);
    assert!(is_forgotten(&table));
    assert_eq!(
        sender(&table, &path("10.0.9.9", "10.0.2.2"), 0x11),
        Some(0x40)
    );
}

/// Shows packets of the connection to B's 0x11, on a port with this number of a request.
fn sees(table: &mut CmTable, port: u16, number: u32, now: Nanos) -> bool {
    let key = there().with_qp(Qpn::new(0x11));
    table.check(&key, port, Some((number, 0)), now);
    table.binding(&key, now).is_some()
}

#[test]
fn a_binding_is_suspended_at_another_port_and_recovers() {
    let ms = Nanos::from_millis;
    let mut table = connected();
    assert!(sees(&mut table, 50_000, 7, ms(2)) && sees(&mut table, 50_000, 8, ms(3)));
    assert!(!sees(&mut table, 50_001, 9, ms(4)), "at once");
    assert!(!sees(&mut table, 50_000, 9, ms(3_003)), "for 3 s");
    assert!(sees(&mut table, 50_000, 9, ms(3_005)));
    assert_eq!(table.contradicted, 1);
    // Another connection has taken the number: the old port does not come back, or not alone.
    for now in (4_000..20_000).step_by(1_000) {
        assert!(!sees(&mut table, 50_001, 9, ms(now)), "{now}");
        assert!(!sees(&mut table, 50_000, 9, ms(now + 500)), "{now}");
    }
}

#[test]
fn a_binding_is_suspended_where_psns_jump_until_they_continue() {
    let ms = Nanos::from_millis;
    let mut table = connected();
    assert!(sees(&mut table, 50_000, 7, ms(2)));
    assert!(!sees(&mut table, 50_000, 0x80_0000, ms(3)));
    for now in 4..10_000 {
        let number = 0x80_0000 + u32::try_from(now).unwrap();
        assert!(!sees(&mut table, 50_000, number, ms(now)), "{now}");
    }
    assert!(!sees(&mut table, 50_000, 8, ms(10_001)));
    assert!(sees(&mut table, 50_000, 9, ms(13_001)));
}

/// Processes a message with `activity` for the endpoints of the connection from 0x18 to 0x11.
fn granted_over(
    activity: Activity,
    table: &mut CmTable,
    message: &Message,
    back_too: bool,
) -> Change {
    let (there, back) = (there(), back());
    let living = [there.with_qp(Qpn::new(0x11)), back.with_qp(Qpn::new(0x18))];
    let activity = |key: &FlowKey| {
        if living.contains(key) {
            activity
        } else {
            Activity::Silent
        }
    };
    table.observe(
        (if back_too { &back } else { &there }, PortId(0)),
        message,
        NOW,
        &activity,
    )
}

/// An attacker makes up a connection over one in use, with a queue pair of its choice.
#[test]
fn a_grant_over_a_queue_pair_in_use_pairs_nobody() {
    for (activity, paired) in [
        (Activity::Active, false),
        (Activity::New, false),
        (Activity::Silent, true),
    ] {
        let mut table = connected();
        table.hear(&there(), &req(8, 0x999), NOW);
        let change = granted_over(activity, &mut table, &rep(5, 8, 0x11), true);
        assert_eq!(matches!(change, Change::Paired(..)), paired, "{activity:?}");
        assert_eq!(sender(&table, &there(), 0x11), paired.then_some(0x999));
        assert_eq!(sender(&table, &back(), 0x18), None);
        assert_eq!(table.contradicted, 2 * u64::from(!paired), "both");
        // Its maker ends it, and makes it up again.
        let dreq = Message::Dreq {
            local: 8,
            remote: 5,
            remote_qpn: Qpn::new(0x11),
        };
        let over = granted_over(activity, &mut table, &dreq, false);
        assert_eq!(matches!(over, Change::Closed(..)), paired, "{activity:?}");
    }
}

/// Covers packets of a connection that was set up before the switch began, or past it.
#[test]
fn a_grant_over_packets_seen_before_it_pairs_nobody() {
    for (activity, paired) in [(Activity::Active, false), (Activity::New, true)] {
        let mut table = CmTable::new(64, 3);
        table.hear(&there(), &req(8, 0x999), NOW);
        let change = granted_over(activity, &mut table, &rep(5, 8, 0x11), true);
        assert_eq!(matches!(change, Change::Paired(..)), paired, "{activity:?}");
    }
}

#[test]
fn requests_without_end_push_out_no_connection_in_use() {
    let mut table = CmTable::new(256, 3);
    table.hear(&there(), &req(7, 0x18), NOW);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    // 100 others granted that are not in use, so that there is no room.
    for id in 100..300 {
        let message = req(id, 0x1000 + id);
        granted_over(Activity::Active, &mut table, &message, false);
        let message = rep(id, id, 0x2000 + id);
        granted_over(Activity::Active, &mut table, &message, true);
    }
    for id in 1_000..2_000 {
        let message = req(id, 0x1000 + id);
        granted_over(Activity::Active, &mut table, &message, false);
    }
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
    assert_eq!(table.refused, 0);
    let left = (100..300).filter(|id| sender(&table, &there(), 0x2000 + id).is_some());
    assert!(left.count() >= 100, "requests push out requests");
}

#[test]
fn connections_push_out_no_pair_of_the_operator() {
    let mut table = CmTable::new(64, 3);
    let given = there().with_qp(Qpn::new(0x11));
    let silent = |_: &FlowKey| Activity::Silent;
    assert!(table.add_pair(
        &given,
        Qpn::new(0x18),
        BindingSource::Operator,
        NOW,
        &silent
    ));
    for id in 100..300 {
        table.hear(&there(), &req(id, 0x1000 + id), NOW);
        table.hear(&back(), &rep(id, id, 0x2000 + id), NOW);
    }
    assert!(table.displaced > 0);
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
}

#[test]
fn ids_that_collide_between_hosts_stay_apart() {
    let mut table = CmTable::new(64, 3);
    let other = path("10.0.1.4", "10.0.2.2");
    let other_back = path("10.0.2.2", "10.0.1.4");
    table.hear(&there(), &req(7, 0x18), NOW);
    table.hear(&other, &req(7, 0x28), NOW);
    table.hear(&other_back, &rep(9, 7, 0x12), NOW);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
    assert_eq!(sender(&table, &other, 0x12), Some(0x28));
}

#[test]
fn a_rep_without_a_req_pairs_nobody() {
    let mut table = CmTable::new(64, 3);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    table.hear(&there(), &req(7, 0x18), NOW);
    assert!(is_forgotten(&table));
}

#[test]
fn requests_without_end_push_out_the_unanswered_first() {
    let mut table = CmTable::new(8, 3);
    table.hear(&there(), &req(7, 0x18), NOW);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    for id in 100..200 {
        let late = Nanos(NOW.0 + u64::from(id) * 10_000_000_000);
        table.hear(&there(), &req(id, 0x1000 + id), late);
    }
    assert_eq!(sender(&table, &there(), 0x11), Some(0x18));
    assert_eq!(table.refused, 0);
}

#[test]
fn xrc_is_not_paired() {
    let mut table = CmTable::new(8, 3);
    let xrc = Message::Req {
        local: 7,
        qpn: Qpn::new(0x18),
        psn: 0,
        service: Service::Other,
        flow_label: 0,
    };
    table.hear(&there(), &xrc, NOW);
    table.hear(&back(), &rep(9, 7, 0x11), NOW);
    assert!(is_forgotten(&table));
}
