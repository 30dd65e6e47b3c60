//! Command line of `never_worse`.

use std::path::PathBuf;

use npcc_sim::matrix::Half;
use npcc_sim::scenario::Scheme;

/// Options of a run, as given on the command line.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) half: Option<Half>,
    pub(super) seeds: u64,
    pub(super) from: Option<u64>,
    pub(super) only: Vec<Vec<String>>,
    pub(super) every: u64,
    pub(super) schemes: Vec<Scheme>,
    pub(super) results: Option<PathBuf>,
    pub(super) law: Option<String>,
    pub(super) ecn_law: Option<String>,
    pub(super) jobs: usize,
    pub(super) short: bool,
    pub(super) calibrate: bool,
    pub(super) fixture: Option<PathBuf>,
    pub(super) all: bool,
    pub(super) figures: bool,
    pub(super) list: bool,
    pub(super) print: bool,
}

/// Reads the command line.
pub(super) fn request() -> Result<Request, String> {
    let mut request = Request {
        half: None,
        seeds: 8,
        from: None,
        only: Vec::new(),
        every: 1,
        schemes: schemes("npcc,model")?,
        results: None,
        law: None,
        ecn_law: None,
        jobs: std::thread::available_parallelism().map_or(1, Into::into),
        short: false,
        calibrate: false,
        fixture: None,
        all: false,
        figures: false,
        list: false,
        print: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--half" => {
                request.half = Some(match value()?.as_str() {
                    "odd" => Half::Odd,
                    "even" => Half::Even,
                    other => return Err(format!("--half {other}: write odd or even")),
                });
            }
            "--seeds" => request.seeds = number(&value()?)?,
            "--from" => request.from = Some(number(&value()?)?),
            "--only" => {
                let value = value()?;
                let split = |cell: &str| cell.split_whitespace().map(str::to_owned).collect();
                request.only = value.split(',').map(split).collect();
            }
            "--every" => request.every = number(&value()?)?,
            "--schemes" => request.schemes = schemes(&value()?)?,
            "--results" => request.results = Some(value()?.into()),
            "--law" => request.law = Some(label(value()?)?),
            "--ecn-law" => request.ecn_law = Some(label(value()?)?),
            "--jobs" => request.jobs = number(&value()?)?,
            "--short" => request.short = true,
            "--calibrate" => request.calibrate = true,
            "--fixture" => request.fixture = Some(value()?.into()),
            "--all" => request.all = true,
            "--figures" => request.figures = true,
            "--list" => request.list = true,
            "--print" => request.print = true,
            other => {
                return Err(format!(
                    "`{other}` is no option; see the top of sim/examples/never_worse/main.rs"
                ));
            }
        }
    }
    Ok(request)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn label(text: String) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(format!("`{text}`: a label is one word"));
    }
    Ok(text)
}

fn schemes(names: &str) -> Result<Vec<Scheme>, String> {
    names.split(',').map(str::parse).collect()
}
