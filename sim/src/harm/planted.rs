//! Plants harm of a known kind in a run that has none, to see whether the measure finds it.

use super::{Figure, Harm};
use crate::figures::Figures;

/// A kind of harm to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Every connection delivers 3 % less.
    Goodput,
    /// The queue is 1.3 times as deep, plus the allowance.
    Queue,
    /// The slowest connection keeps half of its goodput, and the fastest gets the other half.
    Flow,
}

impl Planted {
    /// Every kind.
    pub const ALL: [Planted; 3] = [Planted::Goodput, Planted::Queue, Planted::Flow];

    /// Returns a copy of the run with this harm planted.
    #[must_use]
    pub fn plant(self, run: &Figures, allowance: u64) -> Figures {
        let mut run = run.clone();
        match self {
            Planted::Goodput => {
                run.goodput *= 0.97;
                run.flows.iter_mut().for_each(|flow| *flow *= 0.97);
            }
            Planted::Queue => run.peak = run.peak * 13 / 10 + allowance,
            Planted::Flow => {
                run.flows.sort_by(f64::total_cmp);
                if let [slowest, .., fastest] = run.flows.as_mut_slice() {
                    *slowest /= 2.0;
                    *fastest += *slowest;
                }
            }
        }
        run
    }

    /// Returns true if it is harm by the measure's own bounds: halving a connection is not, where ECN's slowest has less than a fifth of the
    /// mean, as less than a tenth of the mean is taken then, and each may lose a twentieth.
    #[must_use]
    pub fn is_harm_in(self, ecn: &[Figures]) -> bool {
        let slowest = super::median(ecn.iter().map(|run| Figure::Fairness.value(run)));
        self != Planted::Flow || slowest.is_some_and(|slowest| slowest >= 0.2)
    }

    /// Returns true if `harm` is the finding that this kind must cause.
    #[must_use]
    pub fn is(self, harm: &Harm) -> bool {
        match self {
            Planted::Goodput => harm.figure == Figure::Goodput,
            Planted::Queue => harm.figure == Figure::Peak,
            Planted::Flow => harm.figure == Figure::Fairness,
        }
    }
}

/// Calibration of the measure: its findings in runs of ECN alone against others of ECN alone, and in these with harm planted.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// Number of cells added.
    pub cells: usize,
    /// Cells in which harm was reported although none was planted.
    pub false_alarms: usize,
    /// Number of cells where the harm was found, and of cells where it was planted, by kind in the order of [`Planted::ALL`].
    pub planted: [(usize, usize); Planted::ALL.len()],
}

impl Calibration {
    /// Adds a cell: two sets of runs with different seeds. Returns a line for each wrong finding.
    pub fn add(&mut self, ecn: &[Figures], others: &[Figures], allowance: u64) -> Vec<String> {
        let alarms = super::of(ecn, others, allowance);
        self.cells += 1;
        self.false_alarms += usize::from(!alarms.is_empty());
        let alarms = alarms
            .iter()
            .map(|harm| format!("false alarm: {}", harm.figure));
        let mut wrong: Vec<String> = alarms.collect();
        for (planted, (found, of)) in Planted::ALL.iter().zip(&mut self.planted) {
            if !planted.is_harm_in(ecn) {
                continue;
            }
            let with = others.iter().map(|run| planted.plant(run, allowance));
            let harms = super::of(ecn, &with.collect::<Vec<_>>(), allowance);
            let is_found = harms.iter().any(|harm| planted.is(harm));
            *of += 1;
            *found += usize::from(is_found);
            if !is_found {
                wrong.push(format!("not found: {planted:?}"));
            }
        }
        wrong
    }

    /// Returns the numbers of harms found and planted, over all kinds.
    #[must_use]
    pub fn all_planted(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), one: &(usize, usize)| (sum.0 + one.0, sum.1 + one.1);
        self.planted.iter().fold((0, 0), add)
    }

    /// Returns true if at most one cell in a hundred is a false alarm, and at least 95 of 100 planted harms are found.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (found, of) = self.all_planted();
        self.false_alarms * 100 <= self.cells && found * 100 >= of * 95
    }
}
