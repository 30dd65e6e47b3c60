//! Table of a scenario that was run with several seeds: one line per case, with the best, the median and the worst of each figure.

use super::table::align;
use super::{Columns, baseline};
use crate::engine::Outcome;
use crate::scenario::Scenario;
use crate::sweep::Run;

/// Returns the table as text; `seeds[n]` are the runs of the n-th seed, in the same order.
#[must_use]
pub fn seeds_table(scenario: &Scenario, seeds: &[Vec<Run>]) -> String {
    let Some(first) = seeds.first() else {
        return String::new();
    };
    let columns = Columns::of(scenario, first);
    let mut head = columns.names_of_case();
    head.extend(["peak MB", "ecn/x", "util", "goodput", "Jain"].map(str::to_owned));
    if columns.pfc {
        head.push("pauses".to_owned());
    }
    let applications = &first
        .first()
        .map_or(&[][..], |run| &run.outcome.applications);
    for one in *applications {
        head.push(format!("{} step ms", one.name));
        head.push(format!("{} JCT ratio", one.name));
    }
    let mut rows = vec![head];
    for (at, run) in first.iter().enumerate() {
        let mut row = columns.values_of_case(&run.case);
        let of = |figure: &dyn Fn(&[Run], &Run) -> Option<f64>| -> Vec<f64> {
            let runs = seeds.iter().filter_map(|runs| Some((runs, runs.get(at)?)));
            runs.filter_map(|(runs, run)| figure(runs, run)).collect()
        };
        let peak = |outcome: &Outcome| outcome.peak as f64 / 1e6;
        let times = |runs: &[Run], run: &Run| {
            Some(peak(&baseline(runs, run)?.outcome) / peak(&run.outcome).max(1e-6))
        };
        row.push(low(of(&|_, run| Some(peak(&run.outcome))), 3));
        row.push(high(of(&times), 1));
        row.push(high(of(&|_, run| Some(run.outcome.utilisation)), 3));
        row.push(high(of(&|_, run| Some(run.outcome.goodput)), 3));
        row.push(high(of(&|_, run| Some(run.outcome.jain)), 3));
        if columns.pfc {
            row.push(low(of(&|_, run| Some(run.outcome.pauses as f64)), 0));
        }
        for place in 0..applications.len() {
            let step = |_: &[Run], run: &Run| {
                let median = run.outcome.applications.get(place)?.quantile(500)?;
                Some(median.0 as f64 / 1e6)
            };
            row.push(low(of(&step), 3));
            let ratio = |_: &[Run], run: &Run| run.outcome.applications.get(place)?.jct_ratio();
            row.push(low(of(&ratio), 3));
        }
        rows.push(row);
    }
    format!(
        "{} seeds from {} on; best/median/worst of each figure\n{}",
        seeds.len(),
        scenario.seed,
        align(&rows)
    )
}

/// Formats best, median and worst where low is good. With an even number of values the median is the worse one in the middle.
fn low(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    three(&values, digits)
}

/// Formats best, median and worst where high is good.
fn high(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(|a, b| b.total_cmp(a));
    three(&values, digits)
}

fn three(sorted: &[f64], digits: usize) -> String {
    let (Some(best), Some(median), Some(worst)) =
        (sorted.first(), sorted.get(sorted.len() / 2), sorted.last())
    else {
        return "-".to_owned();
    };
    format!("{best:.digits$}/{median:.digits$}/{worst:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_last_whichever_way_is_worse() {
        assert_eq!(low(vec![3.0, 1.0, 2.0, 4.0], 0), "1/3/4");
        assert_eq!(high(vec![0.9, 1.0, 0.5], 1), "1.0/0.9/0.5");
        assert_eq!(high(Vec::new(), 1), "-");
    }
}
