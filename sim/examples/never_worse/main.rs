//! Never-worse matrix: compares every policy of NPCC with ECN alone, over the scenarios of `npcc_sim::matrix`, as judged by `npcc_sim::harm`.
//!
//!     never_worse [--half odd|even] [--seeds N] [--from SEED] [--only WORDS] [--every N] [--schemes NAMES] [--results FILE]
//!                 [--law LABEL] [--ecn-law LABEL] [--jobs N] [--short] [--calibrate [--fixture FILE]] [--all] [--figures] [--list] [--print]
//!
//! Constants are chosen with `--half odd` (seeds 1 to 8) and judged with `--half even` (seeds 21 to 28); without it all cells are run with
//! seeds 1 to 8. WORDS: a cell is selected when its name has all words, separated by spaces ("mlx 400G"); several such lists are separated by
//! commas. `--every N` takes one in N cells, by their hashes: a sample. `--short` takes the cells of scripts/test.
//!
//! With `--results FILE` each run is appended at once, and one that is there is not repeated: an interrupted matrix resumes.
//! A run is identified by its cell, seed, scheme, and law: `--law` names that of the schemes and `--ecn-law` that of ECN alone, which a change
//! of the control law does not affect; each is the hash of this program unless named.
//!
//! `--calibrate` compares ECN with ECN at seeds 100 later, and with harm planted, and prints how much of each the measure finds;
//! `--fixture FILE` writes the figures, rounded, for sim/tests/measure.rs.
//! `--figures` prints the figures of each scheme in each cell, the median of the seeds and the worst, and judges nothing.
//! `--all` also shows the cells that hold, `--list` the names, `--print` the scenario files. Exit code 1 when something is worse.
#![allow(clippy::print_stdout, reason = "what it finds is what it is for")]

mod request;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::process::ExitCode;

use npcc_sim::figures::Figures;
use npcc_sim::harm::{self, Calibration, Figure, Harm, Planted};
use npcc_sim::matrix::run::{self, Series};
use npcc_sim::matrix::{self, Cell, Half};
use npcc_sim::results::{self, Results};
use npcc_sim::scenario::Scheme;

use clap::Parser;

use self::request::Request;

/// Offset of the seeds of the second ECN series, which ECN is compared with in `--calibrate`.
const OTHERS: u64 = 100;

fn main() -> ExitCode {
    match work(&Request::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn is_chosen(request: &Request, cell: &Cell) -> bool {
    let has = |word: &str| cell.name.split(' ').any(|part| part == word);
    let is_short = matrix::SHORT.contains(&cell.name.as_str());
    (is_short || !request.short)
        && request.half().is_none_or(|half| cell.half() == half)
        && cell.is_in_sample(request.every)
        && (request.only.is_empty()
            || request
                .only
                .iter()
                .any(|words| words.split_whitespace().all(has)))
}

/// Runs the request; returns true if nothing was worse.
fn work(request: &Request) -> Result<bool, String> {
    let cells = matrix::cells().into_iter();
    let cells: Vec<Cell> = cells.filter(|cell| is_chosen(request, cell)).collect();
    if request.list || request.print {
        for cell in &cells {
            println!(
                "{}",
                if request.print {
                    &cell.text
                } else {
                    &cell.name
                }
            );
        }
        return Ok(true);
    }
    if cells.is_empty() {
        return Err("no cell is left; --list names them".to_owned());
    }
    let series = series(request)?;
    let mut results = match &request.results {
        None => Results::in_memory(),
        Some(path) => Results::open(path)
            .map_err(|error| format!("cannot read the results in {}: {error}", path.display()))?,
    };
    let is_terminal = std::io::stderr().is_terminal();
    let done = |done: usize, all: usize| {
        if is_terminal {
            eprint!("\r{done} of {all} runs");
        }
    };
    let figures = run::run(&cells, &series, &mut results, request.jobs, &done)
        .map_err(|error| error.to_string())?;
    if request.calibrate {
        if let Some(path) = &request.fixture {
            std::fs::write(path, fixture(&cells, &series, &figures))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        return calibrate(&cells, &figures);
    }
    if request.figures {
        show_figures(&cells, &series, &figures);
        return Ok(true);
    }
    println!(
        "{:<42} {:<6} {:<18} {:>10} {:>10} {:>7}",
        "scenario", "scheme", "figure", "ECN's", "scheme's", "lost"
    );
    let mut tally = Tally::default();
    for (cell, series_of_cell) in cells.iter().zip(&figures) {
        let allowance = allowance(cell)?;
        let Some((ecn, others)) = series_of_cell.split_first() else {
            continue;
        };
        for (with, series) in others.iter().zip(series.iter().skip(1)) {
            let harms = harm::of(ecn, with, allowance);
            show(request, cell, series.scheme, &harms);
            tally.count(cell, series.scheme, &harms);
        }
    }
    tally.show();
    Ok(tally.failed == 0)
}

/// Prints the median and the worst of the seeds, cell by cell.
fn show_figures(cells: &[Cell], series: &[Series], figures: &[Vec<Vec<Figures>>]) {
    println!(
        "{:<42} {:<10} {:>9} {:>9} {:>8} {:>7} {:>7} {:>7}",
        "scenario", "scheme", "peak MB", "worst", "goodput", "worst", "slowest", "Jain"
    );
    for (cell, figures) in cells.iter().zip(figures) {
        for (series, figures) in series.iter().zip(figures) {
            let sorted = |of: fn(&Figures) -> f64| {
                let mut all: Vec<f64> = figures.iter().map(of).collect();
                all.sort_by(f64::total_cmp);
                all
            };
            let median = |all: &[f64]| all.get(all.len() / 2).copied().unwrap_or(f64::NAN);
            let peaks = sorted(|figures| figures.peak as f64 / 1e6);
            let goodputs = sorted(|figures| figures.goodput);
            let slowest = sorted(|figures| figures.flows.iter().copied().fold(f64::MAX, f64::min));
            let fairness = sorted(|figures| jain(&figures.flows));
            println!(
                "{:<42} {:<10} {:>9.3} {:>9.3} {:>8.3} {:>7.3} {:>7.4} {:>7.3}",
                cell.name,
                series.scheme,
                median(&peaks),
                peaks.last().copied().unwrap_or(f64::NAN),
                median(&goodputs),
                goodputs.first().copied().unwrap_or(f64::NAN),
                median(&slowest),
                median(&fairness),
            );
        }
    }
}

/// Returns Jain's fairness index.
fn jain(flows: &[f64]) -> f64 {
    let (sum, squares) = flows.iter().fold((0.0, 0.0), |(sum, squares), flow| {
        (sum + flow, squares + flow * flow)
    });
    sum * sum / (flows.len() as f64 * squares).max(f64::MIN_POSITIVE)
}

fn allowance(cell: &Cell) -> Result<u64, String> {
    let scenario = cell.scenario().map_err(|error| error.to_string())?;
    Ok(harm::allowance(&scenario))
}

/// Returns the series to run: ECN, and the schemes it is compared with.
fn series(request: &Request) -> Result<Vec<Series>, String> {
    let label =
        |given: &Option<String>| results::law(given.as_deref()).map_err(|error| error.to_string());
    let (law, ecn_law) = (label(&request.law)?, label(&request.ecn_law)?);
    let default = request.half().map_or(0, Half::first_seed);
    // Seeds are offsets from the scenarios' own, which is 1.
    let from = request.from.map_or(default, |seed| seed.saturating_sub(1));
    let of = |scheme: Scheme, from: u64, law: &String| Series {
        scheme,
        seeds: from..from + request.seeds,
        law: law.clone(),
    };
    let mut series = vec![of(Scheme::ECN, from, &ecn_law)];
    if request.calibrate {
        series.push(of(Scheme::ECN, from + OTHERS, &ecn_law));
    } else {
        let schemes = request.schemes.iter();
        let schemes = schemes.filter(|scheme| **scheme != Scheme::ECN);
        series.extend(schemes.map(|scheme| of(*scheme, from, &law)));
    }
    Ok(series)
}

/// Formats every run as a line: cell, seed offset, and figures to five digits.
fn fixture(cells: &[Cell], series: &[Series], figures: &[Vec<Vec<Figures>>]) -> String {
    let mut text = String::new();
    for (cell, figures) in cells.iter().zip(figures) {
        for (series, figures) in series.iter().zip(figures) {
            for (seed, figures) in series.seeds.clone().zip(figures) {
                let line = figures.rounded().to_line();
                text.push_str(&format!("{}\t{seed}\t{line}\n", cell.name));
            }
        }
    }
    text
}

/// Prints what the measure finds without harm, and with harm that is planted.
fn calibrate(cells: &[Cell], figures: &[Vec<Vec<Figures>>]) -> Result<bool, String> {
    let mut calibration = Calibration::default();
    for (cell, series) in cells.iter().zip(figures) {
        let [ecn, others] = series.as_slice() else {
            continue;
        };
        for line in calibration.add(ecn, others, allowance(cell)?) {
            println!("{:<42} {line}", cell.name);
        }
    }
    println!(
        "\n{:<10} {:>5} {:>5} {:>6}",
        "planted", "cells", "found", "%"
    );
    let row = |name: &str, (found, of): (usize, usize)| {
        let share = 100.0 * found as f64 / of.max(1) as f64;
        println!("{name:<10} {of:>5} {found:>5} {share:>6.1}");
    };
    row("nothing", (calibration.false_alarms, calibration.cells));
    for (planted, counts) in Planted::ALL.iter().zip(calibration.planted) {
        row(&format!("{planted:?}").to_lowercase(), counts);
    }
    row("all three", calibration.all_planted());
    Ok(calibration.is_good())
}

fn show(request: &Request, cell: &Cell, scheme: Scheme, harms: &[Harm]) {
    if harms.is_empty() && request.all {
        println!("{:<42} {scheme:<6} holds", cell.name);
    }
    for harm in harms {
        let value = |value: f64| match harm.figure {
            Figure::Peak => format!("{:.3} MB", value / 1e6),
            Figure::Pauses => format!("{value:.0}"),
            _ => format!("{value:.3}"),
        };
        println!(
            "{:<42} {scheme:<6} {:<18} {:>10} {:>10} {:>7.3}",
            cell.name,
            harm.figure,
            value(harm.ecn),
            value(harm.with),
            harm.loss
        );
    }
}

/// Numbers of cells that failed and that were tried.
type Count = (u32, u32);

/// Failures by word of a cell's name or by figure, and scheme.
#[derive(Debug, Default)]
struct Tally {
    words: BTreeMap<(usize, String), BTreeMap<String, Count>>,
    figures: BTreeMap<String, BTreeMap<String, u32>>,
    tried: u32,
    failed: u32,
}

impl Tally {
    fn count(&mut self, cell: &Cell, scheme: Scheme, harms: &[Harm]) {
        let failed = u32::from(!harms.is_empty());
        self.tried += 1;
        self.failed += failed;
        for (place, word) in cell.name.split(' ').enumerate() {
            let of = self.words.entry((place, word.to_owned())).or_default();
            let (bad, all) = of.entry(scheme.to_string()).or_default();
            *all += 1;
            *bad += failed;
        }
        for harm in harms {
            let of = self.figures.entry(harm.figure.to_string()).or_default();
            *of.entry(scheme.to_string()).or_default() += 1;
        }
    }

    fn show(&self) {
        println!("\nworse, of so many:");
        for ((_, word), schemes) in &self.words {
            let schemes = schemes
                .iter()
                .map(|(scheme, (bad, all))| format!("{scheme} {bad}/{all}"));
            println!("{word:<14} {}", schemes.collect::<Vec<_>>().join("  "));
        }
        println!("\nby figure:");
        for (figure, schemes) in &self.figures {
            let schemes = schemes
                .iter()
                .map(|(scheme, bad)| format!("{scheme} {bad}"));
            println!("{figure:<18} {}", schemes.collect::<Vec<_>>().join("  "));
        }
        println!("{} of {} are worse than ECN alone", self.failed, self.tried);
    }
}
