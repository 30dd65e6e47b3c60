//! Tables of the measure: rows by which a law is accepted, and cells by which it is judged.
//!
//!     cargo run --release -p npcc-sim --example measure -- acceptance [OPTION VALUE...]
//!
//! | command | what it does |
//! |---|---|
//! | `acceptance` | runs the rows of `npcc_sim::acceptance` and prints wanted, got, baseline |
//! | `judge`, `tune` | compares the policies with every baseline in the judging or the tuning half of `npcc_sim::covering` |
//! | `figures` | runs the cells that `--only` names, with every scheme, and prints their figures |
//! | `before` | runs what the rules that compare with an earlier law need of this one, into the file of `--results`, under the label `before` |
//! | `list`, `print` | names the cells of all, or prints their scenario files |
//!
//! | option | default | |
//! |---|---|---|
//! | `--seeds` | 8 | runs of each scheme |
//! | `--only` | | comma-separated: rows or cells whose name contains one of these |
//! | `--results` | | file of results: a run that is in it is not run again |
//! | `--law` | hash of the program | label of the law and simulator in that file |
//! | `--before` | | file with results of an earlier law, which rules compare with |
//! | `--before-law` | `before` | its label |
//! | `--jobs` | all cores | threads |
//!
//! Exit code 1 when a target is missed, or the default policy is worse than a baseline in a cell that counts.
#![allow(clippy::print_stdout, reason = "what it finds is what it is for")]

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use npcc_sim::acceptance::{self, Row};
use npcc_sim::covering;
use npcc_sim::matrix::run::{self, Series};
use npcc_sim::matrix::{Cell, Half};
use npcc_sim::measure::{self, Verdict};
use npcc_sim::results::{self, Results};

/// Options of a run; the top of this file explains them.
#[derive(Debug, Parser)]
struct Request {
    command: Command,
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    #[arg(long)]
    results: Option<String>,
    #[arg(long)]
    law: Option<String>,
    #[arg(long)]
    before: Option<String>,
    #[arg(long, default_value = "before")]
    before_law: String,
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, Into::into))]
    jobs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Command {
    Acceptance,
    Judge,
    Tune,
    Figures,
    Before,
    List,
    Print,
}

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

/// Returns the rows with the cells that were chosen.
fn chosen(request: &Request) -> Vec<Row> {
    let mut rows = acceptance::rows();
    for row in &mut rows {
        if !is_named(request, row.name) {
            row.cases.retain(|(cell, _)| is_named(request, &cell.name));
        }
    }
    rows.retain(|row| !row.cases.is_empty());
    rows
}

fn open(path: Option<&String>) -> Result<Results, String> {
    path.map_or_else(
        || Ok(Results::in_memory()),
        |path| {
            Results::open(path.as_ref())
                .map_err(|error| format!("cannot read the results in {path}: {error}"))
        },
    )
}

fn work(request: &Request) -> Result<bool, String> {
    let rows = chosen(request);
    match request.command {
        Command::List | Command::Print => {
            let rows = rows.into_iter().flat_map(|row| row.cases);
            let points = covering::points().into_iter().map(|point| point.cell());
            let points = points.filter(|cell| is_named(request, &cell.name));
            for cell in rows.map(|(cell, _)| cell).chain(points) {
                let is_list = request.command == Command::List;
                println!("{}", if is_list { &cell.name } else { &cell.text });
            }
            Ok(true)
        }
        Command::Before => before(request, rows),
        Command::Figures => figures(request),
        Command::Acceptance if rows.is_empty() => {
            Err("no cell is left; `list` names them".to_owned())
        }
        Command::Acceptance => accept(request, &rows),
        Command::Judge => judge(request, Half::Even),
        Command::Tune => judge(request, Half::Odd),
    }
}

/// Returns the label of the law: that of the request, or the hash of this program.
fn law(request: &Request) -> Result<String, String> {
    results::law(request.law.as_deref()).map_err(|error| error.to_string())
}

fn judge(request: &Request, half: Half) -> Result<bool, String> {
    let law = law(request)?;
    let mut results = open(request.results.as_ref())?;
    let began = Instant::now();
    let is_terminal = std::io::stderr().is_terminal();
    let done = |done: usize, all: usize| {
        if is_terminal {
            eprint!("\r{done} of {all} runs");
        }
    };
    let judged = covering::judge(
        half,
        &|name| is_named(request, name),
        (request.seeds, &law),
        &mut results,
        request.jobs,
        &done,
    );
    let judged = judged.map_err(|error| error.to_string())?;
    print!("{}", covering::table(&judged));
    eprintln!("{} s", began.elapsed().as_secs());
    let default = acceptance::policies().first().map(ToString::to_string);
    let is_worse = |one: &covering::ComparedCell| {
        let hardest = one.hardest().map(|finding| finding.verdict);
        one.counts && Some(&one.scheme) == default.as_ref() && hardest == Some(Verdict::Worse)
    };
    Ok(!judged.iter().any(is_worse))
}

/// Runs the policies in the cells whose rules compare with an earlier law.
fn before(request: &Request, rows: Vec<Row>) -> Result<bool, String> {
    let path = request.results.as_ref();
    let mut results = open(Some(path.ok_or("before needs --results FILE")?))?;
    let cases = rows.into_iter().flat_map(|row| row.cases);
    let cells = cases.filter(|(_, rule)| rule.needs_before());
    let cells: Vec<Cell> = cells.map(|(cell, _)| cell).collect();
    let series = Series::of(&acceptance::policies(), &(0..request.seeds), "before");
    run::run(&cells, &series, &mut results, request.jobs, &|_, _| {})
        .map_err(|error| error.to_string())?;
    Ok(true)
}

fn figures(request: &Request) -> Result<bool, String> {
    if request.only.is_empty() {
        return Err("figures needs --only NAME; `list` has the cells".to_owned());
    }
    let rows = acceptance::rows().into_iter().flat_map(|row| row.cases);
    let points = covering::points().into_iter().map(|point| point.cell());
    let cells = rows.map(|(cell, _)| cell).chain(points);
    let cells: Vec<Cell> = cells.filter(|cell| is_named(request, &cell.name)).collect();
    let mut schemes = covering::baselines();
    schemes.extend(acceptance::policies());
    let series = Series::of(&schemes, &(0..request.seeds), &law(request)?);
    let mut results = open(request.results.as_ref())?;
    let figures = run::run(&cells, &series, &mut results, request.jobs, &|_, _| {})
        .map_err(|error| error.to_string())?;
    for (cell, of_cell) in cells.iter().zip(figures) {
        let names = series.iter().map(|series| series.scheme.to_string());
        let of_cell: Vec<_> = names.zip(of_cell).collect();
        println!("\n{}\n{}", cell.name, measure::table(&of_cell));
    }
    Ok(true)
}

/// Returns true if a name has one of the parts that were chosen.
fn is_named(request: &Request, name: &str) -> bool {
    let mut only = request.only.iter();
    request.only.is_empty() || only.any(|part| name.contains(part.as_str()))
}

fn accept(request: &Request, rows: &[Row]) -> Result<bool, String> {
    let law = law(request)?;
    let mut results = open(request.results.as_ref())?;
    let read = |path: &String| {
        Results::read(path.as_ref()).map_err(|error| format!("cannot read {path}: {error}"))
    };
    let before = request.before.as_ref().map(read).transpose()?;
    let is_terminal = std::io::stderr().is_terminal();
    let (mut all_met, mut summaries) = (true, Vec::new());
    for row in rows {
        let began = Instant::now();
        let done = |done: usize, all: usize| {
            if is_terminal {
                eprint!("\r{}: {done} of {all} runs", row.name);
            }
        };
        let before = before
            .as_ref()
            .map(|results| (results, request.before_law.as_str()));
        let judged = acceptance::judge(
            row,
            (request.seeds, &law),
            &mut results,
            before,
            request.jobs,
            &done,
        );
        let judged = judged.map_err(|error| error.to_string())?;
        all_met &= judged.iter().all(|one| !one.decides || one.is_met());
        print!("{}", acceptance::table(row, &judged));
        summaries.push(acceptance::summary(row, &judged));
        eprintln!("{}: {} s", row.name, began.elapsed().as_secs());
    }
    println!("\nall rows:\n{}", summaries.join("\n"));
    Ok(all_met)
}
