//! The snapshot as tables for people.

use std::collections::BTreeMap;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::model::{Port, Snapshot};

pub(super) fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header.to_vec());
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

pub(super) fn finish(table: &Table) -> String {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// `1 234 567` as `1,234,567`.
pub(super) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate in the unit people say.
pub(super) fn rate(bits: Option<u64>) -> String {
    match bits {
        None => "unlimited".to_owned(),
        Some(bits) if bits >= 1_000_000_000 => format!("{}G", decimal(bits, 1_000_000_000)),
        Some(bits) => format!("{}M", decimal(bits, 1_000_000)),
    }
}

fn decimal(value: u64, unit: u64) -> String {
    let tenths = value * 10 / unit;
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}

pub(super) fn list(counts: &BTreeMap<String, u64>) -> String {
    let some: Vec<String> = counts
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(name, n)| format!("{name} {}", thousands(*n)))
        .collect();
    if some.is_empty() {
        "-".to_owned()
    } else {
        some.join(", ")
    }
}

/// `show ports`
#[must_use]
pub fn ports(snapshot: &Snapshot) -> String {
    let mut table = table(
        &[
            "PORT",
            "OPER",
            "ADMIN",
            "SPEED",
            "FLAPS",
            "LAST CHANGE",
            "DRIVER",
            "RATE",
            "CORES",
            "RX PKTS",
            "RX BYTES",
            "TX PKTS",
            "TX BYTES",
            "CNP IN",
            "CNP OUT",
            "NAK IN",
            "RNR IN",
            "CE IN",
            "DROPS",
        ],
        9,
    );
    for port in &snapshot.ports {
        let mut drops = port.drops.clone();
        let device = port.device_drops;
        for (name, count) in [
            ("rx_missed", device.rx_missed),
            ("rx_nombuf", device.rx_nombuf),
            ("rx_errors", device.rx_errors),
            ("tx_errors", device.tx_errors),
        ] {
            drops.insert(name.to_owned(), count);
        }
        table.add_row(vec![
            port.name.clone(),
            oper(port),
            port.admin.clone(),
            rate(Some(port.link_speed)),
            thousands(port.flaps),
            port.last_change.clone(),
            port.driver.clone(),
            rate(port.rate),
            cores(&port.workers),
            thousands(port.rx.packets),
            thousands(port.rx.bytes),
            thousands(port.tx.packets),
            thousands(port.tx.bytes),
            thousands(port.roce.cnp),
            thousands(port.roce.cnp_out),
            thousands(port.roce.nak),
            thousands(port.roce.rnr),
            thousands(port.roce.ce),
            list(&drops),
        ]);
    }
    finish(&table)
}

/// SONiC's oper status, and why it is down.
fn oper(port: &Port) -> String {
    match port.up {
        true => "up".to_owned(),
        false => format!("down ({})", port.down_reason),
    }
}

fn cores(cores: &[usize]) -> String {
    let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
    cores.join(",")
}

/// `show queues`
#[must_use]
pub fn queues(snapshot: &Snapshot) -> String {
    let mut table = table(
        &[
            "PORT",
            "PRIO",
            "DEPTH",
            "PEAK",
            "EVER",
            "PACKETS",
            "BYTES",
            "DROPPED",
            "WRED",
            "ECN MARKED",
        ],
        1,
    );
    for port in &snapshot.ports {
        for queue in &port.queues {
            table.add_row(vec![
                port.name.clone(),
                queue.priority.to_string(),
                thousands(queue.depth),
                thousands(queue.peak),
                thousands(queue.peak_ever),
                thousands(queue.enqueued),
                thousands(queue.enqueued_bytes),
                thousands(queue.dropped),
                thousands(queue.wred_dropped),
                thousands(queue.ecn_marked),
            ]);
        }
    }
    finish(&table)
}

/// What `run` prints when it ends.
#[must_use]
pub fn totals(snapshot: &Snapshot) -> String {
    let account = &snapshot.conservation;
    let holds = if account.holds() {
        "every frame accounted for"
    } else {
        "FRAMES UNACCOUNTED FOR"
    };
    format!(
        "{}\n{}\n{}\nran {:.1} s: {holds}\n",
        ports(snapshot),
        busy_queues(snapshot),
        super::npcc_table::npcc(snapshot),
        snapshot.seconds
    )
}

/// Queues that ever held anything.
fn busy_queues(snapshot: &Snapshot) -> String {
    let mut busy = snapshot.clone();
    for port in &mut busy.ports {
        port.queues
            .retain(|queue| queue.enqueued > 0 || queue.dropped > 0);
    }
    queues(&busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::{Port, Queue};

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(rate(None), "unlimited");
        assert_eq!(rate(Some(10_000_000)), "10M");
        assert_eq!(rate(Some(99_900_000_000)), "99.9G");
    }

    #[test]
    fn only_busy_queues_appear_in_the_totals() {
        let queue = |priority, enqueued| Queue {
            priority,
            enqueued,
            ..Queue::default()
        };
        let port = Port {
            name: "wan0".to_owned(),
            queues: vec![queue(0, 0), queue(3, 7)],
            ..Port::default()
        };
        let text = busy_queues(&Snapshot {
            ports: vec![port],
            ..Snapshot::default()
        });
        assert_eq!(text.lines().count(), 2, "{text}");
    }
}
