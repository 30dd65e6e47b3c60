//! Tables of ports and their queues, for people.

use super::model::{Port, Queue, Snapshot};
use super::table::{Cell, count, counts, list, rate, table, word};

/// Renders `show ports`.
#[must_use]
pub fn ports(snapshot: &Snapshot) -> String {
    table(9, &&Port::default(), &snapshot.ports, |port| {
        let state = vec![
            word("PORT", &port.name),
            word("OPER", oper(port)),
            word("ADMIN", &port.admin),
            word("SPEED", rate(Some(port.link_speed))),
            count("FLAPS", port.flaps),
            word("LAST CHANGE", &port.last_change),
            word("DRIVER", &port.driver),
            word("RATE", rate(port.rate)),
            word("CORES", cores(&port.workers)),
            count("RX PKTS", port.rx.packets),
            count("RX BYTES", port.rx.bytes),
            count("TX PKTS", port.tx.packets),
            count("TX BYTES", port.tx.bytes),
        ];
        let drops = port.drops.each_named().map(|(name, count)| (name, *count));
        let drops = list(drops.chain(port.device_drops.columns()));
        [state, counts(port.counts.columns()), vec![("DROPS", drops)]].concat()
    })
}

/// Returns SONiC's oper status of a port, with the reason if it is down.
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

/// Renders `show queues`.
#[must_use]
pub fn queues(snapshot: &Snapshot) -> String {
    queues_if(snapshot, |_| true)
}

/// Renders the queues for which `shown` returns true.
fn queues_if(snapshot: &Snapshot, shown: impl Fn(&Queue) -> bool) -> String {
    let all = snapshot
        .ports
        .iter()
        .flat_map(|port| port.queues.iter().map(move |queue| (port, queue)));
    let shown = all.filter(|(_, queue)| shown(queue));
    table(
        1,
        &(&Port::default(), &Queue::default()),
        shown,
        |(port, queue)| {
            let held: Vec<Cell> = vec![
                word("PORT", &port.name),
                word("PRIO", queue.priority),
                count("DEPTH", queue.level.depth),
                count("PEAK", queue.peak),
                count("EVER", queue.peak_ever),
                count("PACKETS", queue.enqueued),
                count("BYTES", queue.enqueued_bytes),
            ];
            [held, counts(queue.counts.columns())].concat()
        },
    )
}

/// Renders the report that `run` prints when it ends, with only those queues that ever held a frame or dropped one.
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
        queues_if(snapshot, |queue| queue.enqueued > 0 || queue.dropped > 0),
        super::npcc_table::npcc(snapshot),
        snapshot.seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_busy_queues_appear_in_the_totals() {
        let queue = |priority, enqueued| Queue {
            priority,
            enqueued,
            ..Queue::default()
        };
        let port = Port {
            name: "wan0".to_owned(),
            queues: vec![queue(0, 0), queue(5, 7)],
            ..Port::default()
        };
        let text = totals(&Snapshot {
            ports: vec![port],
            ..Snapshot::default()
        });
        let of_port = |line: &&str| line.starts_with("wan0");
        let rows: Vec<_> = text.lines().filter(of_port).collect();
        assert!(rows.len() == 2 && rows[1].contains(" 5 "), "{text}");
    }
}
