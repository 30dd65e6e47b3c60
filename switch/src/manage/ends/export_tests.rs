use super::*;
use npcc_pipeline::frame::FlowSlot;
use npcc_pipeline::units::{Nanos, PortId, Priority};
use npcc_pipeline::wire::bth::RoceClass;
use npcc_roce::key::{FlowKey, Qpn};
use npcc_roce::pair::connections::ConnectionTable;
use npcc_roce::sample::{PacketSample, SampleFlags, SlotRef};

/// Table of a control core, which sees ACKs, and a reader of its export.
struct Rig {
    table: ConnectionTable,
    rows: Rows,
    now: Nanos,
}

impl Rig {
    fn new() -> Rig {
        let table = ConnectionTable::new(64, 5);
        let rows = Rows::new(&table.feed());
        Rig {
            table,
            rows,
            now: Nanos(1),
        }
    }

    fn export(&mut self) {
        self.now += Nanos::from_millis(2);
        self.table.export(self.now);
    }

    fn see(&mut self, qpn: u32, port: u16) {
        self.now += Nanos(1);
        let record = PacketSample {
            key: FlowKey::new([10, 0, 2, 2].into(), [10, 0, 1, 3].into(), Qpn::new(qpn)),
            time: self.now,
            slot: SlotRef {
                slot: FlowSlot(qpn),
                generation: 2,
            },
            packets: 1,
            psn: 77,
            source_qp: None,
            udp_port: port,
            wire_len: 98,
            opcode: 0x11,
            class: RoceClass::Ack,
            flags: SampleFlags::default(),
            syndrome: Some(0x1f),
            ingress: PortId(1),
            egress: PortId(0),
            priority: Priority::new(3),
        };
        self.table.observe(&record, 0);
    }

    /// Rows that are there: the name of each, and the queue pair or the count in it.
    fn read(&mut self) -> Vec<(&'static str, u64)> {
        let (mut all, calendar) = (Vec::new(), Calendar::default());
        loop {
            let given = self.rows.each(&calendar, |row| {
                all.push(match row {
                    EndRow::Begin => ("begin", 0),
                    EndRow::End(end) => ("end", u64::from(end.queue_pair)),
                    EndRow::Complete { count } => ("complete", count),
                    EndRow::Lost { count } => ("lost", count),
                    _ => ("other", 0),
                });
                Ok(())
            });
            if given.unwrap() < BATCH {
                return all;
            }
        }
    }
}

#[test]
fn a_snapshot_has_what_there_is_and_then_comes_what_changes() {
    let mut rig = Rig::new();
    rig.see(7, 50_000);
    rig.see(8, 50_000);
    assert_eq!(
        rig.read(),
        [("begin", 0)],
        "the control core has not looked yet"
    );
    rig.export();
    assert_eq!(rig.read(), [("end", 7), ("end", 8), ("complete", 2)]);
    assert!(rig.rows.is_complete());
    rig.see(9, 50_000);
    assert_eq!(rig.read(), [("end", 9)]);
}

#[test]
fn a_reader_that_lost_rows_gets_a_new_snapshot() {
    let mut rig = Rig::new();
    rig.export();
    rig.read();
    // Endpoints come and are forgotten: 120 rows each time.
    for _ in 0..200 {
        (2..62).for_each(|qpn| rig.see(qpn, 50_000));
        rig.now += Nanos::from_millis(4_000);
        (0..64).for_each(|_| rig.table.age(rig.now));
    }
    let rows = rig.read();
    assert!(
        matches!(rows[..2], [("lost", 1..), ("begin", 0)]),
        "{:?}",
        &rows[..2]
    );
    assert!(!rig.rows.is_complete());
    rig.export();
    let rows = rig.read();
    assert_eq!(
        rows.last().map(|(name, _)| *name),
        Some("complete"),
        "{rows:?}"
    );
}
