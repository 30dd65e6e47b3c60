//! Table of punt and inject.

use std::fmt::Write;

use npcc_api::model::Snapshot;
use npcc_api::punt::{Class, Punt};

use super::table::{count, table, thousands, word};

/// Renders `show punt`.
#[must_use]
pub fn of_snapshot(snapshot: &Snapshot) -> String {
    shown(&snapshot.punt)
}

fn shown(punt: &Punt) -> String {
    if !punt.integrated {
        return "Linux is not integrated: linux.integrate is false\n".to_owned();
    }
    let mut out = table(1, &&Class::default(), &punt.classes, |class| {
        vec![
            word("CLASS", &class.name),
            count("RATE frames/s", class.rate.into()),
            count("PUNTED", class.punted),
            count("OVER RATE", class.over_rate),
            count("QUEUE FULL", class.full),
            count("DELIVERED", class.delivered),
            count("REFUSED", class.refused),
            count("WAITING B", class.waiting),
            count("QUEUE B", class.queue),
        ]
    });
    let (workers, host) = (&punt.workers, &punt.host);
    let lines = [
        (
            "icmp errors",
            vec![
                ("time exceeded", workers.time_exceeded),
                ("unreachable", workers.unreachable),
                ("too big", workers.too_big),
                ("not to be told", workers.icmp_unfit),
            ],
        ),
        (
            "from linux",
            vec![
                ("control", workers.injected_control.packets),
                ("other", workers.injected.packets),
                ("lost", workers.inject_lost + host.sent_full),
                ("odd", host.sent_odd),
                ("read errors", host.host_errors),
            ],
        ),
        (
            "to linux",
            vec![
                ("no interface", host.no_interface),
                ("asked lately", workers.asked_lately),
            ],
        ),
    ];
    for (what, counts) in lines {
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{name} {}", thousands(count)))
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{what}: {}", counts.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use npcc_pipeline::counters::PuntCount;
    use npcc_pipeline::punt::{PuntClass, PuntRates};

    use super::*;
    use npcc_pipeline::counters::LinuxCount;

    #[test]
    fn each_class_has_its_row_and_nothing_is_left_out() {
        let rates = PuntRates {
            classes: PuntClass::ALL.map(|class| if class == PuntClass::ArpNd { 4 } else { 1 }),
            asks: 6,
            icmp_errors: 7,
        };
        let mut workers = PuntCount::default();
        workers.classes[PuntClass::ArpNd.index()].over_rate = 1_234;
        workers.classes[PuntClass::ArpNd.index()].punted.packets = 99;
        workers.time_exceeded = 55;
        workers.inject_lost = 2;
        let mut host = LinuxCount::default();
        host.classes[PuntClass::ArpNd.index()].delivered = 98;
        host.sent_full = 3;
        let punt = Punt::of(Some(&rates), workers, host);
        let text = shown(&punt);
        let row = text
            .lines()
            .find(|line| line.starts_with("arp_nd"))
            .unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..6], ["arp_nd", "4", "99", "1,234", "0", "98"]);
        assert!(
            text.contains("time exceeded 55") && text.contains("lost 5"),
            "{text}"
        );
        assert!(text.contains("unresolved"), "{text}");
        let off = Punt::of(None, PuntCount::default(), LinuxCount::default());
        assert!(shown(&off).contains("linux.integrate"));
    }
}
