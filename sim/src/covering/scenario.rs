//! Scenario files of the cells.

use std::fmt::Write;

use super::{Distance, Load, Point};
use crate::acceptance::{Text, unkind, window};
use crate::matrix::Cell;

/// Rate of the shared link in Gb/s; the links between it and farther sites have four times that.
const RATE: u32 = 100;

/// A set of hosts with one kind of card, at one distance: senders and as many receivers, and the class that their flows are.
#[derive(Debug, Clone, Copy)]
struct Part {
    name: &'static str,
    /// Switch of the senders, and of the receivers.
    at: [&'static str; 2],
    /// Place of the card in [`super::Cards::senders`].
    card: usize,
}

impl Point {
    /// Returns the name of the cell: its values as words.
    #[must_use]
    pub fn name(&self) -> String {
        format!(
            "{} {} {} {} {}qp",
            self.load.name(),
            self.cards.name,
            self.distance.name(),
            self.buffer.name(),
            self.queue_pairs
        )
    }

    /// Returns the cell: name and scenario file.
    #[must_use]
    pub fn cell(&self) -> Cell {
        let name = self.name();
        let times = self.micros();
        let window = window(
            RATE.into(),
            u64::from(self.distance.longest()) * 10,
            self.queue_pairs.into(),
        );
        let mut text = format!(
            "version: 1\nname: {name}\nduration: {times}us\nutilisation_over: {times}us\ngoodput_from: {}us\nstart_jitter: 10us\n",
            times / 3
        );
        if let Some(megabytes) = self.buffer.megabytes {
            let _ = writeln!(text, "pool: {megabytes}MB\npfc: {}", self.buffer.pfc);
        }
        self.topology(&mut text);
        self.traffic(&mut text);
        text.push_str("watch: dci\nvary: { scheme: [ecn] }\n");
        Cell {
            text: unkind(Text::of(&text), &name, window).text(),
            name,
        }
    }

    /// Returns the duration in us: tens of round trips, and several steps of an application.
    const fn micros(&self) -> u32 {
        match (self.load.is_application(), self.distance.longest()) {
            (true, 500) => 240_000,
            (false, 500) => 100_000,
            (true, 100..) => 60_000,
            (false, 100..) => 40_000,
            (_, _) => 20_000,
        }
    }

    fn parts(&self) -> Vec<Part> {
        let arms: &[(&str, [&str; 2])] = match (self.load, self.distance) {
            (Load::Incast, _) => &[("one", ["leaf-a", "far"]), ("two", ["leaf-b", "far"])],
            (_, Distance::Km(_)) => &[("all", ["edge", "far"])],
            (_, Distance::Receivers) => &[("near", ["edge", "mid"]), ("far", ["edge", "far"])],
            (_, Distance::Senders) => &[("near", ["edge", "far"]), ("far", ["before", "far"])],
        };
        let names = |name: &str| match name {
            "all" => ["all1", "all2"],
            "one" => ["one1", "one2"],
            "two" => ["two1", "two2"],
            "near" => ["near1", "near2"],
            _ => ["far1", "far2"],
        };
        let parts = arms.iter().flat_map(|(name, at)| {
            let of = move |(card, name)| Part {
                name,
                // A leaf has 31 ports for hosts.
                at: match name {
                    "two2" => ["edge", "far"],
                    _ => *at,
                },
                card,
            };
            names(name).into_iter().enumerate().map(of)
        });
        parts.collect()
    }

    /// Returns the hosts of each part: four senders in all, eight where there is one distance for applications, 63 for an incast.
    fn counts(&self) -> Vec<u32> {
        match (self.load, self.distance) {
            (Load::Incast, _) => vec![16, 15, 16, 16],
            (_, Distance::Km(_)) => vec![2, 2],
            _ => vec![1, 1, 1, 1],
        }
    }

    fn topology(&self, text: &mut String) {
        let wide = 4 * RATE;
        let (switches, links) = match (self.load, self.distance) {
            (Load::Incast, distance) => (
                "leaf-a, leaf-b, edge, far",
                format!(
                    "  - {{ name: up-a, from: leaf-a, to: edge, rate: 3200G, length: 20m }}\n  - {{ name: up-b, from: leaf-b, to: edge, rate: 3200G, length: 20m }}\n  - {{ name: dci, from: edge, to: far, rate: {RATE}G, length: {}km }}\n",
                    distance.longest()
                ),
            ),
            (Load::Failover, distance) => (
                "edge, far",
                format!(
                    "  - {{ name: wide, from: edge, to: far, rate: {wide}G, length: {0}km }}\n  - {{ name: dci, from: edge, to: far, rate: {RATE}G, length: {0}km, backup: true }}\n",
                    distance.longest()
                ),
            ),
            (_, Distance::Km(km)) => (
                "edge, far",
                format!(
                    "  - {{ name: dci, from: edge, to: far, rate: {RATE}G, length: {km}km }}\n"
                ),
            ),
            (_, Distance::Receivers) => (
                "edge, mid, far",
                format!(
                    "  - {{ name: dci, from: edge, to: mid, rate: {RATE}G, length: 1km }}\n  - {{ name: haul, from: mid, to: far, rate: {wide}G, length: 100km }}\n"
                ),
            ),
            (_, Distance::Senders) => (
                "before, edge, far",
                format!(
                    "  - {{ name: haul, from: before, to: edge, rate: {wide}G, length: 100km }}\n  - {{ name: dci, from: edge, to: far, rate: {RATE}G, length: 100km }}\n"
                ),
            ),
        };
        let _ = write!(text, "switches: [{switches}]\nlinks:\n{links}hosts:\n");
        for (part, count) in self.parts().iter().zip(self.counts()) {
            let Part { name, at, card } = *part;
            let sender = self.cards.senders[card];
            let interval = self.cards.second_interval.filter(|_| card == 1);
            let interval =
                interval.map_or_else(String::new, |time| format!(", cnp_interval: {time}"));
            let [from, to] = at;
            // Half of what the link that fails carries, and twice the backup's.
            let rate = if self.load == Load::Failover {
                RATE / 2
            } else {
                RATE
            };
            let _ = writeln!(
                text,
                "  - {{ name: tx-{name}, count: {count}, switch: {from}, rate: {rate}G, sender: {sender}{interval} }}"
            );
            if self.load != Load::Incast {
                let _ = writeln!(
                    text,
                    "  - {{ name: rx-{name}, count: {count}, switch: {to}, rate: {rate}G, sender: {sender}{interval} }}"
                );
            }
            if self.load == Load::Mice {
                let _ = writeln!(
                    text,
                    "  - {{ name: mice-{name}, count: 1, switch: {from}, rate: {RATE}G, sender: {sender} }}\n  - {{ name: to-mice-{name}, count: 1, switch: {to}, rate: {RATE}G }}"
                );
            }
        }
        if self.load == Load::Incast {
            let _ = writeln!(
                text,
                "  - {{ name: rx, count: 1, switch: far, rate: {RATE}G }}"
            );
        }
    }

    fn traffic(&self, text: &mut String) {
        let parts = self.parts();
        let names = |prefix: &str| {
            let names = parts.iter().map(|part| format!("{prefix}-{}", part.name));
            names.collect::<Vec<_>>().join(", ")
        };
        let (tx, rx) = (names("tx"), names("rx"));
        let qps = self.queue_pairs;
        let application = match self.load {
            Load::Ring => Some(format!(
                "kind: ring-allreduce, ranks: [{tx}, {rx}], interleaved: true, size: 4MB, gap: 100us"
            )),
            Load::Halving => Some(format!(
                "kind: halving-doubling, ranks: [{tx}, {rx}], size: 16MB, gap: 100us"
            )),
            Load::AllToAll => Some(format!(
                "kind: all-to-all, ranks: [{tx}, {rx}], size: 8MB, gap: 100us"
            )),
            Load::Checkpoint => Some(format!(
                "kind: checkpoint, ranks: [{tx}], to: [{rx}], size: 16MB, chunk: 4MB, in_flight: 4, gap: 100us, barrier: true"
            )),
            Load::Requests => Some(format!(
                "kind: request-response, ranks: [{rx}], to: [{tx}], size: 1MB, in_flight: 8"
            )),
            _ => None,
        };
        if let Some(application) = application {
            let _ = writeln!(
                text,
                "applications: [{{ name: {}, queue_pairs: {qps}, {application} }}]",
                self.load.name()
            );
            return;
        }
        let how = match self.load {
            Load::Joiners => format!(", spread: {}us", self.micros() / 3),
            // 100 Gb/s for 1 ms are 12.5 MB; half of it, shared by the connections of four hosts.
            Load::Bursts => format!(", burst: {}KB, every: 1ms", (RATE * 125 / 8).div_ceil(qps)),
            Load::Read => ", verb: read, message: 128KB".to_owned(),
            _ => String::new(),
        };
        text.push_str("flows:\n");
        for Part { name, .. } in &parts {
            let to = if self.load == Load::Incast {
                "rx".to_owned()
            } else {
                format!("rx-{name}")
            };
            let _ = writeln!(
                text,
                "  - {{ name: {name}, from: tx-{name}, to: {to}, qps: {qps}{how} }}"
            );
            if self.load == Load::Mice {
                let _ = writeln!(
                    text,
                    "  - {{ name: mice-{name}, from: mice-{name}, to: to-mice-{name}, qps: 2, burst: 64KB, every: 800us, spread: 800us }}"
                );
            }
        }
        match self.load {
            Load::Failover => {
                let at = self.micros() / 4;
                let _ = writeln!(
                    text,
                    "failures: [{{ link: wide, at: {at}us, rerouted_after: 50us }}]"
                );
            }
            Load::CnpLoss => text.push_str("imperfections: { cnp_loss: 50% }\n"),
            _ => {}
        }
    }
}
