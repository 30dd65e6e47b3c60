//! The never-worse matrix: every policy of NPCC beside ECN alone, paired by seed, over the scenarios of `npcc_sim::matrix`.
//!
//!     never_worse [SEEDS] [--only WORDS] [--policies NAMES] [--jobs N] [--short] [--all] [--list] [--print]
//!
//! WORDS: a cell counts when its name has all words, each between spaces ("mlx 400G"); several such, separated by commas.
//! `--short` takes the cells of scripts/test, `--all` shows cells that hold too, `--list` the names, `--print` the scenario files. Exit code 1 when a cell fails.
#![allow(clippy::print_stdout, reason = "what it finds is what it is for")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use npcc_sim::harm::{self, Harm, Pair};
use npcc_sim::matrix::{self, Cell};
use npcc_sim::scenario::{Case, Scenario, Scheme};
use npcc_sim::sweep;

#[derive(Debug)]
struct Asked {
    seeds: u64,
    only: Vec<Vec<String>>,
    policies: Vec<Scheme>,
    jobs: usize,
    short: bool,
    all: bool,
    list: bool,
    print: bool,
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        seeds: 8,
        only: Vec::new(),
        policies: schemes("npcc,model,pi")?,
        jobs: std::thread::available_parallelism().map_or(1, Into::into),
        short: false,
        all: false,
        list: false,
        print: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--only" => {
                let value = value()?;
                let split = |cell: &str| cell.split_whitespace().map(str::to_owned).collect();
                asked.only = value.split(',').map(split).collect();
            }
            "--policies" => asked.policies = schemes(&value()?)?,
            "--jobs" => asked.jobs = number(&value()?)?,
            "--short" => asked.short = true,
            "--all" => asked.all = true,
            "--list" => asked.list = true,
            "--print" => asked.print = true,
            seeds => asked.seeds = number(seeds)?,
        }
    }
    Ok(asked)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| {
        format!(
            "`{text}` is neither a number nor an option; see the top of sim/examples/never_worse.rs"
        )
    })
}

fn schemes(names: &str) -> Result<Vec<Scheme>, String> {
    names.split(',').map(str::parse).collect()
}

fn main() -> ExitCode {
    match asked().and_then(|asked| work(&asked)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn is_chosen(asked: &Asked, cell: &Cell) -> bool {
    let has = |word: &String| cell.name.split(' ').any(|part| part == word);
    if asked.short && !matrix::SHORT.contains(&cell.name.as_str()) {
        return false;
    }
    asked.only.is_empty() || asked.only.iter().any(|words| words.iter().all(has))
}

/// Whether nothing was worse.
fn work(asked: &Asked) -> Result<bool, String> {
    let cells = matrix::cells().into_iter();
    let cells: Vec<Cell> = cells.filter(|cell| is_chosen(asked, cell)).collect();
    if asked.list || asked.print {
        for cell in &cells {
            println!("{}", if asked.print { &cell.text } else { &cell.name });
        }
        return Ok(true);
    }
    if cells.is_empty() || asked.seeds == 0 {
        return Err("no cell is left; --list names them".to_owned());
    }
    let schemes = asked
        .policies
        .iter()
        .filter(|scheme| **scheme != Scheme::ECN);
    let schemes: Vec<Scheme> = [Scheme::ECN].iter().chain(schemes).copied().collect();
    let shown = AtomicUsize::new(0);
    let mut tally = Tally::default();
    // A few cells at a time, so that failures show early and curves do not fill the memory.
    for cells in cells.chunks(asked.jobs.max(4)) {
        let mut scenarios = Vec::new();
        for cell in cells {
            let scenario = cell.scenario().map_err(|error| error.to_string())?;
            scenarios.extend((0..asked.seeds).map(|seed| scenario.with_seed(seed)));
        }
        let items: Vec<(&Scenario, Case)> = scenarios
            .iter()
            .flat_map(|scenario| {
                let case = scenario.cases()[0];
                let case = move |scheme: &Scheme| {
                    (
                        scenario,
                        Case {
                            scheme: *scheme,
                            ..case
                        },
                    )
                };
                schemes.iter().map(case)
            })
            .collect();
        let outcomes =
            sweep::run(&items, asked.jobs, &|_, _| {}).map_err(|error| error.to_string())?;
        let seeds = usize::try_from(asked.seeds).unwrap_or(usize::MAX);
        let per_cell = outcomes.chunks(seeds * schemes.len());
        for ((cell, outcomes), scenario) in cells.iter().zip(per_cell).zip(scenarios.chunks(seeds))
        {
            let allowance = harm::allowance(&scenario[0]);
            for (scheme, at) in schemes.iter().zip(0..).skip(1) {
                let runs = outcomes.chunks(schemes.len());
                let pairs = runs.map(|runs| Pair {
                    ecn: &runs[0],
                    with: &runs[at],
                });
                let harms = harm::of(&pairs.collect::<Vec<_>>(), allowance);
                show(asked, cell, *scheme, &harms, &shown);
                tally.count(cell, *scheme, &harms);
            }
        }
    }
    tally.show();
    Ok(tally.failed == 0)
}

fn show(asked: &Asked, cell: &Cell, scheme: Scheme, harms: &[Harm], shown: &AtomicUsize) {
    if shown.fetch_add(1, Ordering::Relaxed) == 0 {
        println!(
            "{:<38} {:<6} {:<12} {:>10} {:>10} {:>8}  may be",
            "scenario", "policy", "figure", "ECN's", "policy's", "by"
        );
    }
    if harms.is_empty() && asked.all {
        println!("{:<38} {scheme:<6} holds", cell.name);
    }
    for harm in harms {
        let value = |value: f64| match harm.figure {
            "peak" | "peak, worst" => format!("{:.3} MB", value / 1e6),
            "pauses" => format!("{value:.0}"),
            _ => format!("{value:.3}"),
        };
        let (ecn, with) = (value(harm.ecn), value(harm.with));
        println!(
            "{:<38} {scheme:<6} {:<12} {ecn:>10} {with:>10} {:>8.2}  {}",
            cell.name, harm.figure, harm.by, harm.limit
        );
    }
}

/// Failed of tried, by pattern or fleet and policy.
#[derive(Debug, Default)]
struct Tally {
    by: BTreeMap<(usize, String), BTreeMap<String, (u32, u32)>>,
    tried: u32,
    failed: u32,
    /// Failed and tried in cells that do not count.
    adversary: (u32, u32),
}

impl Tally {
    fn count(&mut self, cell: &Cell, scheme: Scheme, harms: &[Harm]) {
        let failed = u32::from(!harms.is_empty());
        if !cell.judged {
            self.adversary.0 += failed;
            self.adversary.1 += 1;
            return;
        }
        self.tried += 1;
        self.failed += failed;
        for (place, word) in cell.name.split(' ').enumerate() {
            let of = self.by.entry((place, word.to_owned())).or_default();
            let (all, bad) = of.entry(scheme.to_string()).or_default();
            *all += 1;
            *bad += failed;
        }
    }

    fn show(&self) {
        println!("\nworse, of so many:");
        for ((_, word), policies) in &self.by {
            let policies = policies
                .iter()
                .map(|(policy, (all, bad))| format!("{policy} {bad}/{all}"));
            println!("{word:<14} {}", policies.collect::<Vec<_>>().join("  "));
        }
        println!("{} of {} are worse than ECN alone", self.failed, self.tried);
        let (failed, tried) = self.adversary;
        if tried > 0 {
            println!("beside them, of the adversary's: {failed} of {tried}");
        }
    }
}
