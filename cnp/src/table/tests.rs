use super::*;
use crate::admission::Suppressed;
use crate::response::Response;
use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::units::Priority;
use npcc_roce::key::Qpn;
use npcc_roce::pair::Evidence;

pub(super) fn key(qpn: u32) -> QueueFlow {
    QueueFlow {
        key: FlowKey::new(
            "10.0.1.3".parse().unwrap(),
            "10.0.2.2".parse().unwrap(),
            Qpn::new(qpn),
        ),
        egress: PortId(1),
        priority: Priority::new(3),
    }
}

pub(super) fn flow(now: Nanos) -> Flow {
    Flow::new(
        0,
        SlotRef {
            slot: FlowSlot(0),
            generation: 2,
        },
        PortId(0),
        now,
    )
}

#[test]
fn readers_see_what_was_published_and_not_what_was_removed() {
    let mut table = FlowTable::new(4, 1);
    let view = table.view();
    let index = table.insert(key(0x11), flow(Nanos(5))).unwrap();
    assert_eq!(view.flows().count(), 0);
    let entry = table.get_mut(index).unwrap();
    (entry.sender, entry.evidence, entry.bytes, entry.cnps) =
        (Qpn::new(0x18), Evidence::PortHash, 1_000, 2);
    (entry.last_cnp, entry.last_seen) = (Nanos(7), Nanos(8));
    (entry.near, entry.far, entry.gated) = (Nanos(9), Some(Nanos(10)), true);
    entry.dry_run.cnps = 6;
    entry.refused = Some((Suppressed::NoNeighbor, Nanos(4)));
    table.publish(index);
    let expected = FlowSnapshot {
        flow: key(0x11),
        sender_qpn: Qpn::new(0x18),
        evidence: Evidence::PortHash,
        response: Response::Unknown,
        ingress: PortId(0),
        bytes: 1_000,
        cnps: 2,
        would_send: 6,
        cold: true,
        refused: Some(Suppressed::NoNeighbor),
        last_cnp: Nanos(7),
        first_seen: Nanos(5),
        last_seen: Nanos(8),
        near: Nanos(9),
        far: Some(Nanos(10)),
        gated: true,
    };
    assert_eq!(view.flows().collect::<Vec<_>>(), [expected]);
    table.remove(index);
    assert_eq!(view.flows().count(), 0);
}
