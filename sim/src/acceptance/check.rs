//! A figure beside its bound.

use crate::figures::Figures;
use crate::measure::{Figure, Values, Verdict, short};

/// A figure beside its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Name of the figure.
    pub what: String,
    /// Bound, as text.
    pub wanted: String,
    /// Median and worst of the scheme.
    pub got: Values,
    /// Figures of what it was compared with.
    pub baseline: String,
    /// Result; `None` where there is nothing to compare with.
    pub met: Option<bool>,
}

impl Check {
    /// Returns a lower bound on the median, and one on the worst run.
    pub(super) fn at_least(
        what: &str,
        got: Values,
        (median, worst): (f64, f64),
        baseline: String,
    ) -> Check {
        let bracket = if worst > 0.0 {
            format!(" ({})", short(worst))
        } else {
            String::new()
        };
        Check {
            what: what.to_owned(),
            wanted: format!(">= {}{bracket}", short(median)),
            got,
            baseline,
            met: Some(got.median >= median - 1e-9 && got.worst >= worst - 1e-9),
        }
    }

    /// Returns an upper bound on the median, and possibly one on the worst run.
    pub(super) fn at_most(
        what: &str,
        got: Values,
        (median, worst): (f64, Option<f64>),
        baseline: String,
    ) -> Check {
        let bracket = worst.map_or_else(String::new, |worst| format!(" ({})", short(worst)));
        let is_worst_met = worst.is_none_or(|worst| got.worst <= worst + 1e-9);
        Check {
            what: what.to_owned(),
            wanted: format!("<= {}{bracket}", short(median)),
            got,
            baseline,
            met: Some(got.median <= median + 1e-9 && is_worst_met),
        }
    }

    /// Compares a figure with that of an earlier law, which must not be better by the measure.
    pub(super) fn not_worse(
        before: Option<&[Figures]>,
        with: &[Figures],
        figure: &Figure,
    ) -> Check {
        let before = before.filter(|runs| !runs.is_empty());
        let then = |runs: &[Figures]| format!("before {}", figure.values(runs));
        Check {
            what: figure.to_string(),
            wanted: "not worse".to_owned(),
            got: figure.values(with),
            baseline: before.map_or_else(|| "-".to_owned(), then),
            met: before.map(|runs| figure.compare(runs, with) != Verdict::Worse),
        }
    }

    /// Returns true if the figure is none, as it must be.
    pub(super) fn is_nothing(&self) -> bool {
        self.met == Some(true) && self.got.worst <= 0.0
    }
}
