//! What one scrape sees.

use npcc_pipeline::num::real;

use crate::manage::view::View;
use crate::report::model::{Flow, Snapshot};
use crate::report::routes::Linux;
use crate::worker::timings::What;

/// Flows that a scrape tells of: the heaviest.
pub const HEAVIEST: usize = 20;

/// Upper bounds of the bins of reaction times, in us.
const BOUNDS_US: [u64; 18] = [
    5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 100_000,
];

/// A distribution of times.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// The sum of all, in seconds.
    pub(super) seconds: f64,
    /// Upper bounds in seconds, and how many lie between each and the one before.
    pub(super) bins: Vec<(f64, u64)>,
}

impl Spread {
    fn of(view: &View, what: What) -> Spread {
        let bounds = BOUNDS_US.map(|us| us * 1_000);
        let (bins, sum) = view.spread(what, &bounds);
        let bounds = bounds.map(seconds);
        let bounds = bounds.into_iter().chain([f64::INFINITY]);
        Spread {
            seconds: seconds(sum),
            bins: bounds.zip(bins).collect(),
        }
    }
}

/// Everything that metrics are read from, at one moment.
#[derive(Debug, Default)]
pub struct Scrape {
    /// As counted since the start, whatever an operator cleared.
    pub(super) snapshot: Snapshot,
    /// The heaviest flows.
    pub(super) flows: Vec<Flow>,
    /// How the kernel's routes are followed.
    pub(super) linux: Linux,
    /// From `shallow` to the CNP.
    pub(super) shallow: Spread,
    /// From `hard` to the CNP.
    pub(super) hard: Spread,
}

impl Scrape {
    /// Looks now.
    #[must_use]
    pub fn of(view: &View) -> Scrape {
        Scrape {
            snapshot: view.snapshot(),
            flows: view.heaviest(HEAVIEST),
            linux: view.linux(),
            shallow: Spread::of(view, What::Shallow),
            hard: Spread::of(view, What::Hard),
        }
    }
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    real(ns) / 1e9
}
