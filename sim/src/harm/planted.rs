//! Harm of a known kind in a run that has none, to see whether the measure finds it.

use super::{Figure, Harm};
use crate::figures::Figures;

/// A kind of harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// Every connection delivers three hundredths less.
    Goodput,
    /// The queue is 1.3 times as deep, and by the allowance.
    Queue,
    /// The slowest connection has half of what it had, and the fastest the other half.
    Flow,
}

impl Planted {
    /// Each.
    pub const ALL: [Planted; 3] = [Planted::Goodput, Planted::Queue, Planted::Flow];

    /// A run with it.
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

    /// Whether it is harm by the measure's own bounds: half of a connection is none where ECN's slowest has less than a fifth of the mean, as
    /// a tenth of the mean is what is taken then, and each may lose a twentieth.
    #[must_use]
    pub fn is_harm_in(self, ecn: &[Figures]) -> bool {
        let slowest = super::median(ecn.iter().map(|run| Figure::Fairness.value(run)));
        self != Planted::Flow || slowest.is_some_and(|slowest| slowest >= 0.2)
    }

    /// Whether this is what was found.
    #[must_use]
    pub fn is(self, harm: &Harm) -> bool {
        match self {
            Planted::Goodput => harm.figure == Figure::Goodput,
            Planted::Queue => harm.figure == Figure::Peak,
            Planted::Flow => harm.figure == Figure::Fairness,
        }
    }
}

/// What the measure finds in runs of ECN alone held against others of ECN alone, and in these with harm planted.
#[derive(Debug, Clone, Default)]
pub struct Calibration {
    /// Cells.
    pub cells: usize,
    /// Of these, in which something is called harm where none was planted.
    pub false_alarms: usize,
    /// By kind, in the order of [`Planted::ALL`]: found, and of how many cells.
    pub planted: [(usize, usize); Planted::ALL.len()],
}

impl Calibration {
    /// Adds a cell: two sets of runs with other seeds. Returns what is wrong with it, a line each.
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

    /// Found and planted, all kinds together.
    #[must_use]
    pub fn all_planted(&self) -> (usize, usize) {
        let add = |sum: (usize, usize), one: &(usize, usize)| (sum.0 + one.0, sum.1 + one.1);
        self.planted.iter().fold((0, 0), add)
    }

    /// At most one cell in a hundred is a false alarm, and at least 95 of 100 planted harms are found.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let (found, of) = self.all_planted();
        self.false_alarms * 100 <= self.cells && found * 100 >= of * 95
    }
}
