//! Command line of `never_worse`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use npcc_sim::matrix::Half;
use npcc_sim::scenario::Scheme;

/// Half of the matrix.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OneHalf {
    Odd,
    Even,
}

/// Options of a run; the top of main.rs explains them.
#[derive(Debug, Parser)]
pub(super) struct Request {
    #[arg(long)]
    half: Option<OneHalf>,
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) seeds: u64,
    #[arg(long)]
    pub(super) from: Option<u64>,
    /// Lists of words; a cell's name must have all words of one
    #[arg(long, value_delimiter = ',')]
    pub(super) only: Vec<String>,
    #[arg(long, default_value_t = 1)]
    pub(super) every: u64,
    #[arg(long, value_delimiter = ',', default_value = "npcc,model")]
    pub(super) schemes: Vec<Scheme>,
    #[arg(long)]
    pub(super) results: Option<PathBuf>,
    #[arg(long, value_parser = label)]
    pub(super) law: Option<String>,
    #[arg(long, value_parser = label)]
    pub(super) ecn_law: Option<String>,
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, Into::into))]
    pub(super) jobs: usize,
    #[arg(long)]
    pub(super) short: bool,
    #[arg(long)]
    pub(super) calibrate: bool,
    #[arg(long)]
    pub(super) fixture: Option<PathBuf>,
    #[arg(long)]
    pub(super) all: bool,
    #[arg(long)]
    pub(super) figures: bool,
    #[arg(long)]
    pub(super) list: bool,
    #[arg(long)]
    pub(super) print: bool,
}

impl Request {
    /// Returns the half of the matrix to which the run is limited.
    pub(super) fn half(&self) -> Option<Half> {
        self.half.map(|half| match half {
            OneHalf::Odd => Half::Odd,
            OneHalf::Even => Half::Even,
        })
    }
}

fn label(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err("a label is one word".to_owned());
    }
    Ok(text.to_owned())
}
