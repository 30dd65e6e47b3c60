//! Data of one scrape.

use npcc_api::model::{Flow, Snapshot};
use npcc_api::peers::PeerRow;
use npcc_api::routes::Linux;
use npcc_pipeline::num::real;

use crate::manage::ends::peers;
use crate::manage::view::View;
use npcc_engine::worker::timings::TimingKind;

/// Number of flows in a scrape: the heaviest ones.
pub const HEAVIEST: usize = 20;

/// Upper bounds of the bins of reaction times, in us.
const BOUNDS_US: [u64; 18] = [
    5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 100_000,
];

/// Histogram of times.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// Sum of all times, in seconds.
    pub(super) seconds: f64,
    /// Bins: the upper bound in seconds, and the number of times between it and the bound before.
    pub(super) bins: Vec<(f64, u64)>,
}

impl Spread {
    fn of(view: &View, what: TimingKind) -> Spread {
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

/// State from which all metrics are read, at one moment.
#[derive(Debug, Default)]
pub struct Scrape {
    /// Snapshot of the counts since the start, regardless of `clear`.
    pub(super) snapshot: Snapshot,
    /// Heaviest flows, at most [`HEAVIEST`].
    pub(super) flows: Vec<Flow>,
    /// Peers that reported ends.
    pub(super) peers: Vec<PeerRow>,
    /// State of following the kernel's routes.
    pub(super) linux: Linux,
    /// Reaction times from the crossing of `shallow` to the CNP.
    pub(super) shallow: Spread,
    /// Reaction times from the crossing of `hard` to the CNP.
    pub(super) hard: Spread,
}

impl Scrape {
    /// Collects the data of a scrape now.
    #[must_use]
    pub fn of(view: &View) -> Scrape {
        Scrape {
            snapshot: view.snapshot(),
            flows: view.heaviest(HEAVIEST),
            peers: peers::shown(view).peers,
            linux: view.linux(),
            shallow: Spread::of(view, TimingKind::Shallow),
            hard: Spread::of(view, TimingKind::Hard),
        }
    }
}

/// Converts nanoseconds to seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    real(ns) / 1e9
}
