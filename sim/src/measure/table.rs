//! Table of all figures of a cell, scheme by scheme.

use super::{Values, short};
use crate::figures::{Application, Figures};

/// Reader of an application's figure.
type OfApplication = fn(&Application) -> f64;

/// A column: its head, if more is better, and the figure of a run; `None` where the run has none.
type Column<'a> = (String, bool, Box<dyn Fn(&Figures) -> Option<f64> + 'a>);

fn columns() -> Vec<Column<'static>> {
    let mut columns: Vec<Column<'static>> = Vec::new();
    let mut add = |name: &str, is_gain: bool, of: fn(&Figures) -> Option<f64>| {
        columns.push((name.to_owned(), is_gain, Box::new(of)));
    };
    add("goodput", true, |run| Some(run.goodput));
    add("worst class", true, |run| run.worst);
    add("Jain", true, |run| Some(run.jain));
    add("to fair share ms", false, |run| run.converged);
    add("slowdown p50", false, |run| {
        run.slowdown.map(|[p50, _]| p50)
    });
    add("slowdown p99", false, |run| {
        run.slowdown.map(|[_, p99]| p99)
    });
    add("drops", false, |run| Some(run.dropped as f64));
    add("pauses", false, |run| Some(run.pauses as f64));
    add("paused ms", false, |run| Some(run.paused));
    add("delay mean us", false, |run| Some(run.delay[0]));
    add("delay p99 us", false, |run| Some(run.delay[1]));
    add("above kmin", false, |run| Some(run.above));
    add("peak MB", false, |run| Some(run.peak as f64 / 1e6));
    add("CNPs of the switch", false, |run| Some(run.cnps as f64));
    columns
}

/// Figures of an application, and if more is better.
const OF_APPLICATION: [(&str, bool, OfApplication); 6] = [
    ("step ms", false, |one| one.mean),
    ("step p50 ms", false, |one| one.quantiles[0]),
    ("step p99 ms", false, |one| one.quantiles[1]),
    ("JCT ratio", false, |one| one.jct),
    ("busbw GB/s", true, |one| one.busbw),
    ("interference", false, |one| one.interference),
];

/// Returns a table: a line for each figure that a run has, a column for each scheme, with medians and the worst runs in brackets.
#[must_use]
pub fn table(schemes: &[(String, Vec<Figures>)]) -> String {
    let first = schemes.iter().find_map(|(_, runs)| runs.first());
    let mut columns = columns();
    let applications = first.map_or(&[][..], |run| run.applications.as_slice());
    for (at, application) in applications.iter().enumerate() {
        for (name, is_gain, of) in OF_APPLICATION {
            let name = format!("{} {name}", application.name);
            let figure = move |run: &Figures| run.applications.get(at).map(of);
            columns.push((name, is_gain, Box::new(figure)));
        }
    }
    let mut text = format!("{:<26}", "");
    for (scheme, _) in schemes {
        text.push_str(&format!(" {scheme:>16}"));
    }
    text.push('\n');
    for (name, is_gain, of) in columns {
        if first.and_then(&of).is_none() {
            continue;
        }
        text.push_str(&format!("{name:<26}"));
        for (_, runs) in schemes {
            let missing = if is_gain { 0.0 } else { f64::INFINITY };
            let values = Values::of(runs, is_gain, |run| of(run).unwrap_or(missing));
            let both = format!("{} ({})", short(values.median), short(values.worst));
            text.push_str(&format!(" {both:>16}"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_median_and_the_worst_of_each_scheme() {
        let run = |goodput: f64, mean: f64| Figures {
            goodput,
            applications: vec![Application {
                name: "ring".to_owned(),
                mean,
                ..Application::default()
            }],
            ..Figures::default()
        };
        let ecn = vec![run(0.8, 3.0), run(0.9, 5.0), run(0.7, 4.0)];
        let model = vec![run(1.0, 2.0); 3];
        let text = table(&[("ecn".to_owned(), ecn), ("model".to_owned(), model)]);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(line("goodput"), "goodput 0.800 (0.700) 1.000 (1.000)");
        assert_eq!(line("ring step ms"), "ring step ms 4.00 (5.00) 2.00 (2.00)");
        assert!(!text.contains("slowdown"), "no run has short flows");
    }
}
