//! Tables of ports and their queues, for people.

use npcc_api::model::{NpccQueue, Port, Queue, Snapshot};
use npcc_pipeline::units::BitRate;

use super::table::{count, counts, joined, rate, table, thousands, time, word};

/// Renders `show ports`: link, traffic, RoCE's signals and drops.
#[must_use]
pub fn ports(snapshot: &Snapshot) -> String {
    let all = &snapshot.ports;
    let links = table(9, &&Port::default(), all, |port| {
        vec![
            word("PORT", &port.name),
            word("OPER", oper(port)),
            word("ADMIN", &port.admin),
            word("SPEED b/s", rate(Some(port.link_speed))),
            word("SHAPED b/s", rate(port.rate)),
            word("DRIVER", &port.driver),
            word("CORES", joined(&port.workers, ",")),
            word("FLAPS", port.flaps),
            word("LAST CHANGE", &port.last_change),
        ]
    });
    let traffic = table(1, &&Port::default(), all, |port| {
        vec![
            word("PORT", &port.name),
            count("RX FRAMES", port.rx.packets),
            count("RX BYTES", port.rx.bytes),
            count("TX FRAMES", port.tx.packets),
            count("TX BYTES", port.tx.bytes),
        ]
    });
    let roce = table(1, &&Port::default(), all, |port| {
        [
            vec![word("PORT", &port.name)],
            counts(port.counts.columns()),
        ]
        .concat()
    });
    format!("{links}\n{traffic}\n{roce}{}", drops(all))
}

/// Renders the drops of all ports, a row for each reason that has any.
fn drops(ports: &[Port]) -> String {
    let of = |port: &Port| -> Vec<(String, &'static str, u64)> {
        let counted = port.drops.each_named().map(|(name, count)| (name, *count));
        let all = counted.chain(port.device_drops.columns());
        let some = all.filter(|(_, count)| *count > 0);
        some.map(|(name, count)| (port.name.clone(), name, count))
            .collect()
    };
    let rows: Vec<_> = ports.iter().flat_map(of).collect();
    if rows.is_empty() {
        return "\nnothing was dropped\n".to_owned();
    }
    let none = (String::new(), "", 0);
    let text = table(2, &none, rows, |(port, reason, frames)| {
        vec![
            word("PORT", port),
            word("DROPPED FOR", reason),
            count("FRAMES", *frames),
        ]
    });
    format!("\n{text}")
}

/// Returns SONiC's oper status of a port, with the reason if it is down.
fn oper(port: &Port) -> String {
    match port.up {
        true => "up".to_owned(),
        false => format!("down ({})", port.down_reason),
    }
}

/// Renders `show queues`: queues that ever held a frame or dropped one, and those that NPCC watches.
#[must_use]
pub fn queues(snapshot: &Snapshot) -> String {
    let shown: Vec<Row<'_>> = rows(snapshot).collect();
    if shown.is_empty() {
        return "no queue has held a frame, and NPCC watches none\n".to_owned();
    }
    let none = (&Port::default(), &Queue::default(), None);
    let ecn = |priority: u8, port: &str| {
        let mut all = snapshot.qos.priorities.iter();
        let queue = all.find(|queue| queue.priority == priority)?;
        queue.ecn.get(port).map(|curve| bytes(curve))
    };
    let held = table(4, &none, shown.iter().copied(), |(port, queue, watched)| {
        let zones = watched.map(|one| bytes(&[one.shallow, one.deep, one.hard]));
        vec![
            word("PORT", &port.name),
            word("PRIO", queue.priority),
            ("ZONE", joined(watched.map(|one| &one.zone), "")),
            word("PAUSED", paused(port, queue)),
            count("DEPTH B", queue.level.depth),
            ("DELAY", delay(port, queue.level.depth)),
            count("PEAK B", queue.peak),
            ("PEAK DELAY", time(queue.peak_delay_ns)),
            count("EVER B", queue.peak_ever),
            ("ZONES FROM B", joined(zones, "")),
            (
                "ECN KMIN/KMAX B",
                joined(ecn(queue.priority, &port.name), ""),
            ),
        ]
    });
    let frames = table(2, &none, shown, |(port, queue, _)| {
        let taken = vec![
            word("PORT", &port.name),
            word("PRIO", queue.priority),
            count("FRAMES", queue.enqueued),
            count("BYTES", queue.enqueued_bytes),
        ];
        [taken, counts(queue.counts.columns())].concat()
    });
    let since = match snapshot.watermarks_since.as_str() {
        "" => String::new(),
        time => format!("peaks since {time}, EVER since the start\n"),
    };
    format!("{held}{since}\n{frames}")
}

/// Queue of a port, with NPCC's row of it where it is watched.
type Row<'a> = (&'a Port, &'a Queue, Option<&'a NpccQueue>);

/// Yields the queues that are shown.
fn rows(snapshot: &Snapshot) -> impl Iterator<Item = Row<'_>> {
    let watched = |port: &Port, queue: &Queue| {
        let mut all = snapshot.npcc.queues.iter();
        all.find(|one| one.port == port.name && one.priority == queue.priority)
    };
    let all = snapshot
        .ports
        .iter()
        .flat_map(|port| port.queues.iter().map(move |queue| (port, queue)));
    all.map(move |(port, queue)| (port, queue, watched(port, queue)))
        .filter(|(_, queue, watched)| {
            watched.is_some() || queue.enqueued > 0 || queue.dropped > 0 || queue.peak_ever > 0
        })
}

/// Returns the pause of a queue by the port's peer.
fn paused(port: &Port, queue: &Queue) -> &'static str {
    if port.flow.paused >> queue.priority & 1 != 0 {
        "by peer"
    } else {
        "-"
    }
}

/// Returns the time that wire bytes take to leave by a port alone.
fn delay(port: &Port, bytes: u64) -> String {
    match BitRate(port.rate.unwrap_or(port.link_speed)) {
        BitRate(0) => "-".to_owned(),
        rate => time(rate.time_of(bytes).0),
    }
}

fn bytes(thresholds: &[u64]) -> String {
    let all: Vec<String> = thresholds.iter().map(|one| thousands(*one)).collect();
    all.join("/")
}

/// Renders the report that `run` prints when it ends.
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
        queues(snapshot),
        super::npcc_table::npcc(snapshot),
        snapshot.seconds
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_api::qos::QosPriority;
    use npcc_pipeline::drop::DropReason;

    /// Returns a snapshot of a port of 10 Gb/s with 8 queues.
    fn snapshot() -> Snapshot {
        let queue = |priority| Queue {
            priority,
            ..Queue::default()
        };
        let port = Port {
            name: "wan0".to_owned(),
            link_speed: 100_000_000_000,
            rate: Some(10_000_000_000),
            queues: (0..8).map(queue).collect(),
            ..Port::default()
        };
        Snapshot {
            ports: vec![port],
            ..Snapshot::default()
        }
    }

    fn fields(text: &str) -> Vec<Vec<String>> {
        let of_port = |line: &&str| line.starts_with("wan0");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().filter(of_port).map(words).collect()
    }

    #[test]
    fn queues_that_never_held_a_frame_are_left_out_unless_they_are_watched() {
        let mut snapshot = snapshot();
        assert!(queues(&snapshot).starts_with("no queue"));
        snapshot.ports[0].queues[5].enqueued = 7;
        snapshot.npcc.queues.push(NpccQueue {
            port: "wan0".to_owned(),
            priority: 3,
            zone: "idle".to_owned(),
            ..NpccQueue::default()
        });
        let rows = fields(&queues(&snapshot));
        let priorities: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(priorities, ["3", "5", "3", "5"], "in both tables");
        assert!(totals(&snapshot).contains(&queues(&snapshot)));
        let since = Snapshot {
            watermarks_since: "2026-11-25T21:17:19.123Z".to_owned(),
            ..snapshot.clone()
        };
        assert!(queues(&since).contains("\npeaks since 2026-11-25T21:17:19.123Z, EVER"));
    }

    #[test]
    fn a_queue_has_its_delay_its_thresholds_and_its_pause() {
        let mut snapshot = snapshot();
        let queue = &mut snapshot.ports[0].queues[3];
        (queue.level.depth, queue.peak, queue.peak_ever) = (125_000, 7_100_000, 7_200_000);
        queue.peak_delay_ns = 5_680_000;
        snapshot.ports[0].flow.paused = 1 << 3;
        let mut watched = NpccQueue {
            port: "wan0".to_owned(),
            priority: 3,
            zone: "deep".to_owned(),
            ..NpccQueue::default()
        };
        (watched.shallow, watched.deep, watched.hard) = (37_500, 75_000, 600_000);
        snapshot.npcc.queues.push(watched);
        snapshot.qos.priorities = vec![QosPriority {
            priority: 3,
            ecn: [("wan0".to_owned(), [600_000, 2_400_000])].into(),
            ..QosPriority::default()
        }];
        let text = queues(&snapshot);
        let row = fields(&text).swap_remove(0).join(" ");
        let expected = "wan0 3 deep by peer 125,000 100 us 7,100,000 5.6 ms 7,200,000 \
                        37,500/75,000/600,000 600,000/2,400,000";
        assert_eq!(row, expected);
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }

    #[test]
    fn tables_of_ports_are_no_wider_than_120_columns_and_list_what_was_dropped() {
        let mut snapshot = snapshot();
        assert!(ports(&snapshot).ends_with("\nnothing was dropped\n"));
        let port = &mut snapshot.ports[0];
        port.driver = "net_af_packet".to_owned();
        port.down_reason = "device".to_owned();
        port.last_change = "2026-11-25T21:17:19.123Z".to_owned();
        port.counts.rx.packets = 123_456_789_012;
        port.counts.rx.bytes = 123_456_789_012_345;
        port.counts.roce.cnp = 123_456_789;
        port.counts.drops[DropReason::QueueFull.index()] = 3_295;
        port.device_drops.rx_missed = 17;
        let text = ports(&snapshot);
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
        let dropped: Vec<String> = fields(&text)[3..].iter().map(|row| row.join(" ")).collect();
        assert_eq!(dropped, ["wan0 queue_full 3,295", "wan0 rx_missed 17"]);
    }
}
