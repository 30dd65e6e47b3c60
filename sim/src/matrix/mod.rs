//! The scenarios of the never-worse matrix: none that a law was tuned on, made here by rule so that none is chosen by outcome.
//!
//! Every fleet at every overload, rate and length, all starting at once; every other pattern with every fleet where the
//! queue is overloaded by a little and by a lot; and the places of [`place`], where the congestion is elsewhere or two classes meet.
//! [`Cell::text`] is a scenario file for `npcc-switch sim`.
//!
//! Constants of a law are chosen on one half of the cells and judged on the other ([`Half`]), with other seeds.

mod fleet;
mod place;
pub mod run;

use std::fmt::Write;

use npcc_cnp::policy::PolicyName;

use crate::hash::fnv;
use crate::scenario::{Scenario, ScenarioError};
use fleet::Fleet;

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

/// Gb/s of the link.
const RATES: [u32; 3] = [25, 100, 400];
/// Hundredths of the link's rate that the hosts offer together, and by how many hosts.
const OVERLOADS: [(u32, u32); 5] = [(105, 3), (125, 5), (200, 4), (400, 4), (1_600, 16)];
const LENGTHS: [&str; 2] = ["1km", "100km"];

/// Half of the cells. The hash of its name says which one a cell is in: no pattern, fleet or rate lies in one half alone, and a new cell
/// moves no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Where constants are chosen, with the seeds 1 to 8.
    Odd,
    /// Where the outcome is judged, with the seeds 21 to 28.
    Even,
}

impl Half {
    /// The first of its eight seeds, as an offset from a scenario's own, which is 1.
    #[must_use]
    pub const fn first_seed(self) -> u64 {
        match self {
            Half::Odd => 0,
            Half::Even => 20,
        }
    }
}

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
    /// The far side pauses the link for 300 us every 2 ms, the first time while the start's overload is there. When it does is a part of
    /// the cell, as its load is, and no chance.
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

    /// Whether what counts takes longer than a steady load: connections that have to settle after the last has joined, and pauses
    /// of which a short window has two or three by chance.
    const fn is_slow(self) -> bool {
        matches!(self, Pattern::Joiners | Pattern::Cold | Pattern::Paused)
    }
}

/// The cells of scripts/test: some that ECN alone did better in before somebody looked, one of each kind, and one of each place.
pub const SHORT: [&str; 23] = [
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
    "near-leaf hpcc-vendor 100G x4.00 1km",
    "dci hpcc-vendor 100G x1.25 1km",
    "far-host hpcc-vendor 100G x4.00 1km",
    "mice hpcc-vendor 100G x4.00 1km",
    "deaf-host hpcc-vendor 100G x4.00 1km",
];

/// Every cell, in an order in which those that run long are not all at the end.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for length in LENGTHS {
        for fleet in fleet::ALL {
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
        cells.extend(place::cells(length));
    }
    cells
}

impl Cell {
    /// Whether it is in a sample of one in `every` cells. Its hash says so, as every n-th in order may be all of one kind.
    #[must_use]
    pub const fn is_in_sample(&self, every: u64) -> bool {
        every <= 1 || (fnv(self.name.as_bytes()) >> 8).is_multiple_of(every)
    }

    /// The half of the matrix that it is in.
    #[must_use]
    pub const fn half(&self) -> Half {
        if fnv(self.name.as_bytes()) % 2 == 1 {
            Half::Odd
        } else {
            Half::Even
        }
    }

    /// The scenario.
    ///
    /// # Errors
    /// None, unless this module's rules and the file format have parted.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&self.name, &self.text)
    }
}

/// Microseconds of a run.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// Over a third of which those that join one after the other do.
    base: u32,
    /// All of it.
    whole: u32,
    /// From when on goodput and fairness count.
    from: u32,
}

impl Times {
    /// As many frames at every rate, and several round trips of a long link. Goodput and fairness count from the middle on, after the
    /// backlog: what ECN alone lets pile up over a round trip of 100 km leaves at the link's rate however slow its senders are by then,
    /// and is no goodput of theirs. What is `slow` has five times as long.
    const fn of(rate: u32, hundredths: u32, length: &str, slow: bool) -> Times {
        // "1km" and "100km" differ in their number of letters.
        let far = length.len() > 3;
        let base = match (rate, far) {
            (25, false) => 15_000,
            (25, true) => 25_000,
            (100, false) => 8_000,
            (100, true) => 16_000,
            (_, false) => 4_000,
            (_, true) => 10_000,
        };
        let long = if slow { 5 * base } else { base };
        let backlog = if far {
            (hundredths - 100) / 100 * 1_100
        } else {
            0
        };
        Times {
            base,
            whole: long + backlog,
            from: backlog + long / 2,
        }
    }

    /// The head of a scenario file.
    fn head(self, name: &str) -> String {
        let Times { whole, from, .. } = self;
        format!(
            "version: 1\nname: {name}\nduration: {whole}us\nutilisation_over: {whole}us\ngoodput_from: {from}us\nstart_jitter: 10us\n"
        )
    }
}

/// What every cell compares.
fn vary(warm: bool) -> String {
    let policies = PolicyName::ALL.map(PolicyName::name).join(", ");
    let cold = if warm { "" } else { ", warm: [false]" };
    format!("vary: {{ scheme: [ecn, {policies}]{cold} }}\n")
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
    // A little too much fills a queue slowly, and over 100 km ECN swings about it for many round trips: what is lost there is little, and takes
    // long to stand out from chance.
    let little = if length == "100km" { 125 } else { 105 };
    let slow = pattern.is_slow() || fleet.is_slow() || hundredths <= little;
    let times = Times::of(rate, hundredths, length, slow);
    let second = hosts.checked_div(fleet.second_in);
    let second = second.map_or(0, |hosts| hosts.max(1));
    // Who is deaf to everything leaves half of the link to the others, or nobody could do anything but pause.
    let second_line = if fleet.senders[1] == "deaf" {
        line.min(rate * 500 / second.max(1))
    } else {
        line
    };
    let mut text = times.head(&name);
    text.push_str("switches: [edge, far]\nhosts:\n");
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
    let how = flows(pattern, times.base, rate, hosts);
    text.push_str(&format!("  - {{ from: a, to: to-a{how} }}\n"));
    if second > 0 {
        text.push_str(&format!("  - {{ from: b, to: to-b{how} }}\n"));
    }
    text.push_str(around(pattern));
    text.push_str(&vary(pattern != Pattern::Cold));
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
        Pattern::Paused => {
            "imperfections: { pauses: [{ link: dci, time: 300us, every: 2ms, first: 500us }] }\n"
        }
        Pattern::Imperfect => {
            "imperfections: { tick_jitter: 10us, tick_late: 2%, tick_late_by: 500us, cnp_loss: 5%, depth_every: 32 }\n"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine;
    use crate::figures::Figures;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_cell_is_a_scenario_with_a_name_of_its_own() {
        let cells = cells();
        let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names.len(), cells.len());
        assert!(SHORT.iter().all(|name| names.contains(name)));
        for cell in &cells {
            let scenario = cell.scenario().unwrap();
            assert_eq!(
                scenario.cases().len(),
                1 + PolicyName::COUNT,
                "{}",
                cell.name
            );
            assert_eq!(cell.judged, !cell.name.contains("mlx-bytes"));
            // Who sends to the reported queue; a host with two flows gives half of its link to each.
            let flows = |group: &str| {
                scenario
                    .flows
                    .iter()
                    .filter(|flow| flow.from == group)
                    .count() as u64
            };
            let hosts = scenario.hosts.iter().filter(|group| flows(&group.name) > 0);
            let offered: u64 = hosts
                .map(|group| group.rate.0 * u64::from(group.count) / flows(&group.name))
                .sum();
            let rate = scenario.watched_rate().0;
            assert!(offered * 100 >= rate * 105, "{}: no overload", cell.name);
        }
    }

    #[test]
    fn both_halves_have_every_word() {
        let mut halves: BTreeMap<String, [u32; 2]> = BTreeMap::new();
        for cell in cells() {
            for word in cell.name.split(' ') {
                let count = halves.entry(word.to_owned()).or_default();
                count[usize::from(cell.half() == Half::Even)] += 1;
            }
        }
        let of_three = cells().into_iter().filter(|cell| cell.is_in_sample(3));
        let share = of_three.count() as f64 / cells().len() as f64;
        assert!((0.28..0.39).contains(&share), "{share}");
        for (word, [odd, even]) in halves {
            assert!(odd.min(even) * 4 >= odd + even, "{word}: {odd} and {even}");
        }
    }

    /// Congestion is where the name says, and both classes are there: at 1 km with ECN alone, 8 ms each.
    #[test]
    fn every_place_has_congestion_and_its_classes() {
        let places = [
            ("near-leaf", ["inter", "local"].as_slice()),
            ("dci", &["inter", "local"]),
            ("far-host", &["inter", "local"]),
            ("mice", &["elephants", "mice"]),
            ("deaf-host", &["listening"]),
        ];
        for (place, classes) in places {
            let name = format!("{place} hpcc-vendor 100G x4.00 1km");
            let cell = cells().into_iter().find(|cell| cell.name == name).unwrap();
            let scenario = cell.scenario().unwrap();
            let case = scenario.cases()[0];
            let outcome = engine::run(&scenario, &case).unwrap();
            assert!(outcome.marked > 100, "{name}: {}", outcome.marked);
            let figures = Figures::of(&outcome, 100.0);
            let names = figures.classes.iter().map(|class| class.name.as_str());
            assert_eq!(names.collect::<Vec<_>>(), classes, "{name}");
            assert!(
                figures.classes.iter().all(|class| class.goodput > 0.001),
                "{name}: {figures:?}"
            );
            assert_eq!(figures.slowdown.is_some(), place == "mice", "{name}");
            // Somebody else's leaf marks, and NPCC sees the marks pass.
            assert_eq!(
                scenario.npcc_queues().any(|queue| *queue == scenario.watch),
                place != "near-leaf"
            );
        }
    }
}
