//! The scenarios of the never-worse matrix: none that a law was tuned on, made here by rule so that none is chosen by outcome.
//!
//! Every fleet at every overload, rate and length, all starting at once; every other pattern with every fleet where the
//! queue is overloaded by a little and by a lot. [`Cell::text`] is a scenario file for `npcc-switch sim`.

use std::fmt::Write;

use npcc_cnp::policy::PolicyName;

use crate::scenario::{Scenario, ScenarioError};

/// A place where ECN alone and NPCC's policies are compared.
#[derive(Debug, Clone)]
pub struct Cell {
    /// `PATTERN SENDERS RATE xOVERLOAD LENGTH`, single words.
    pub name: String,
    /// The scenario file.
    pub text: String,
    /// Whether harm here counts: not with a fleet that no known card is like, whose cells are reported apart.
    pub judged: bool,
}

/// Which cards the sending hosts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fleet {
    name: &'static str,
    /// One host in two has the second, or one in four where there is an enemy of the others among them.
    senders: [&'static str; 2],
    second_in: u32,
    /// Shortest time between two CNPs of the receivers of the second, where it is not that of their cards.
    second_cnp_interval: Option<&'static str>,
    judged: bool,
}

const fn all(name: &'static str) -> Fleet {
    Fleet {
        name,
        senders: [name, name],
        second_in: 0,
        second_cnp_interval: None,
        judged: true,
    }
}

const fn mix(name: &'static str, first: &'static str, second: &'static str, in_: u32) -> Fleet {
    Fleet {
        name,
        senders: [first, second],
        second_in: in_,
        ..all(name)
    }
}

const FLEETS: [Fleet; 11] = [
    all("hpcc-vendor"),
    all("hpcc-reset"),
    all("paper"),
    all("mlx"),
    all("mlx-reset"),
    mix("mixed", "hpcc-vendor", "mlx", 2),
    mix("some-deaf", "hpcc-vendor", "deaf", 4),
    mix("some-rtt", "hpcc-reset", "swift", 4),
    mix("half-rtt", "hpcc-reset", "swift", 2),
    // Receivers of both kinds: 4 us, and 50 us as the DCQCN paper has it.
    Fleet {
        second_cnp_interval: Some("50us"),
        ..mix("half-50us", "hpcc-reset", "hpcc-reset", 2)
    },
    // The byte counter of 32,767 read as bytes: no scheme holds such a card, and DCQCN itself would not work with it.
    Fleet {
        judged: false,
        ..all("mlx-bytes")
    },
];

/// Gb/s of the link.
const RATES: [u32; 3] = [25, 100, 400];
/// Hundredths of the link's rate that the hosts offer together, and by how many hosts.
const OVERLOADS: [(u32, u32); 5] = [(105, 3), (125, 5), (200, 4), (400, 4), (1_600, 16)];
const LENGTHS: [&str; 2] = ["1km", "100km"];

/// What happens in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// All start at once.
    Steady,
    /// One after the other, over a third of the time.
    Joiners,
    /// Each sends a burst every ms, half of what the link carries.
    Bursts,
    /// Eight connections a host that nobody has seen before, over a third of the time.
    Cold,
    /// A pool of 64 MB, and pauses.
    Pfc,
    /// The far side pauses the link for 300 us every 2 ms.
    Paused,
    /// Late ticks, one CNP in twenty lost, depths published once in 32 frames.
    Imperfect,
}

const OTHERS: [Pattern; 6] = [
    Pattern::Joiners,
    Pattern::Bursts,
    Pattern::Cold,
    Pattern::Pfc,
    Pattern::Paused,
    Pattern::Imperfect,
];

impl Pattern {
    const fn name(self) -> &'static str {
        match self {
            Pattern::Steady => "steady",
            Pattern::Joiners => "joiners",
            Pattern::Bursts => "bursts",
            Pattern::Cold => "cold",
            Pattern::Pfc => "pfc",
            Pattern::Paused => "paused",
            Pattern::Imperfect => "imperfect",
        }
    }
}

/// What stands for the matrix in scripts/test: cells that ECN alone did better in before somebody looked, one of each kind.
pub const SHORT: [&str; 18] = [
    "steady hpcc-vendor 400G x1.25 1km",
    "steady hpcc-reset 100G x1.05 1km",
    "steady paper 25G x1.25 1km",
    "steady paper 400G x1.25 1km",
    "steady mlx 25G x4.00 1km",
    "steady mlx 100G x2.00 1km",
    "steady mlx 100G x4.00 100km",
    "steady mlx-reset 100G x4.00 1km",
    "steady mixed 25G x4.00 1km",
    "steady some-deaf 400G x1.25 1km",
    "steady some-rtt 100G x4.00 1km",
    "joiners hpcc-vendor 100G x4.00 1km",
    "bursts some-rtt 100G x4.00 1km",
    "cold hpcc-vendor 100G x4.00 100km",
    "pfc mlx-reset 100G x4.00 1km",
    "paused hpcc-vendor 100G x4.00 1km",
    "imperfect hpcc-vendor 100G x1.25 1km",
    "imperfect mlx-reset 100G x1.25 1km",
];

/// Every cell, in an order in which those that run long are not all at the end.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for length in LENGTHS {
        for fleet in FLEETS {
            for rate in RATES {
                for overload in OVERLOADS {
                    cells.push(cell(Pattern::Steady, fleet, rate, overload, length));
                }
            }
            for pattern in OTHERS {
                for overload in [(125, 5), (400, 4)] {
                    cells.push(cell(pattern, fleet, 100, overload, length));
                }
                cells.push(cell(pattern, fleet, 400, (125, 5), length));
            }
        }
    }
    cells
}

impl Cell {
    /// The scenario.
    ///
    /// # Errors
    /// None, unless this module's rules and the file format have parted.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.name, &self.text)
    }
}

/// Microseconds of a run: as many frames at every rate, and several round trips of a long link.
const fn duration(rate: u32, length: &str) -> u32 {
    // "1km" and "100km" differ in their number of letters.
    let far = length.len() > 3;
    match (rate, far) {
        (25, false) => 15_000,
        (25, true) => 25_000,
        (100, false) => 8_000,
        (100, true) => 16_000,
        (_, false) => 4_000,
        (_, true) => 10_000,
    }
}

/// Microseconds until a queue that has grown over a round trip of 100 km has left again: what ECN alone lets pile up leaves at the
/// link's rate however slow its senders are by then, and is no goodput of theirs.
const fn backlog(hundredths: u32, length: &str) -> u32 {
    let far = length.len() > 3;
    if far {
        (hundredths - 100) / 100 * 1_100
    } else {
        0
    }
}

fn cell(pattern: Pattern, fleet: Fleet, rate: u32, overload: (u32, u32), length: &str) -> Cell {
    let (hundredths, hosts) = overload;
    let name = format!(
        "{} {} {rate}G x{}.{:02} {length}",
        pattern.name(),
        fleet.name,
        hundredths / 100,
        hundredths % 100
    );
    // In Mb/s.
    let offered = rate * hundredths * 10;
    let line = offered / hosts;
    let (duration, backlog) = (duration(rate, length), backlog(hundredths, length));
    let whole = duration + backlog;
    let second = hosts.checked_div(fleet.second_in);
    let second = second.map_or(0, |hosts| hosts.max(1));
    // Who is deaf to everything leaves half of the link to the others, or nobody could do anything but pause.
    let second_line = if fleet.senders[1] == "deaf" {
        line.min(rate * 500 / second.max(1))
    } else {
        line
    };
    let mut text = format!(
        "version: 1\nname: {name}\nduration: {whole}us\nutilisation_over: {whole}us\ngoodput_from: {}us\n\
         start_jitter: 10us\nswitches: [edge, far]\nhosts:\n",
        // All have begun, and there is as much time again.
        backlog + duration / 2
    );
    let interval = fleet.second_cnp_interval;
    let interval = interval.map_or_else(String::new, |time| format!(", cnp_interval: {time}"));
    for (group, count, line, sender, interval) in [
        ("a", hosts - second, line, fleet.senders[0], ""),
        (
            "b",
            second,
            second_line,
            fleet.senders[1],
            interval.as_str(),
        ),
    ] {
        if count > 0 {
            let _ = writeln!(
                text,
                "  - {{ name: {group}, count: {count}, switch: edge, rate: {line}M, sender: {sender} }}\n  \
                 - {{ name: to-{group}, count: {count}, switch: far, rate: {}M{interval} }}",
                line.max(rate * 1_000)
            );
        }
    }
    let _ = write!(
        text,
        "links: [{{ name: dci, from: edge, to: far, rate: {rate}G, length: {length} }}]\nwatch: dci\nflows:\n"
    );
    let how = flows(pattern, duration, rate, hosts);
    text.push_str(&format!("  - {{ from: a, to: to-a{how} }}\n"));
    if second > 0 {
        text.push_str(&format!("  - {{ from: b, to: to-b{how} }}\n"));
    }
    text.push_str(around(pattern));
    let policies = PolicyName::ALL.map(PolicyName::name).join(", ");
    let _ = write!(text, "vary: {{ scheme: [ecn, {policies}]");
    if pattern == Pattern::Cold {
        text.push_str(", warm: [false]");
    }
    text.push_str(" }\n");
    Cell {
        name,
        text,
        judged: fleet.judged,
    }
}

fn flows(pattern: Pattern, duration: u32, rate: u32, hosts: u32) -> String {
    match pattern {
        Pattern::Joiners => format!(", qps: 2, spread: {}us", duration / 3),
        // Gb/s times 1 ms are 125 KB; half of it, shared.
        Pattern::Bursts => format!(", burst: {}KB, every: 1ms", rate * 125 / 2 / hosts),
        Pattern::Cold => format!(", qps: 8, spread: {}us", duration / 3),
        _ => String::new(),
    }
}

const fn around(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Pfc => "pool: 64MB\npfc: true\n",
        Pattern::Paused => "imperfections: { pauses: [{ link: dci, time: 300us, every: 2ms }] }\n",
        Pattern::Imperfect => {
            "imperfections: { tick_jitter: 10us, tick_late: 2%, tick_late_by: 500us, cnp_loss: 5%, depth_every: 32 }\n"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_is_a_scenario_with_a_name_of_its_own() {
        let cells = cells();
        let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names.len(), cells.len());
        assert!(SHORT.iter().all(|name| names.contains(name)));
        for cell in &cells {
            let scenario = cell.scenario().unwrap();
            assert_eq!(scenario.cases().len(), 4, "{}", cell.name);
            assert_eq!(cell.judged, !cell.name.contains("mlx-bytes"));
            let sending = |name: &str| name == "a" || name == "b";
            let hosts = scenario.hosts.iter().filter(|group| sending(&group.name));
            let offered: u64 = hosts
                .map(|group| group.rate.0 * u64::from(group.count))
                .sum();
            let link = scenario.links[0].rate.0;
            assert!(offered * 100 >= link * 105, "{}: no overload", cell.name);
        }
    }
}
