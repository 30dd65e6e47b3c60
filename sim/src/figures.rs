//! Figures that a run is judged by: the few that [`crate::harm`] compares, small enough to be kept for thousands of runs.

use crate::engine::{GroupOutcome, Outcome};

/// The figures of one run. Goodputs are shares of the reported link, over the later part of the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Peak depth of the reported queue, in wire bytes.
    pub peak: u64,
    /// Pauses that switches began.
    pub pauses: u64,
    /// Goodput of all connections through the reported queue together.
    pub goodput: f64,
    /// Goodput of each connection through the reported queue.
    pub flows: Vec<f64>,
    /// Median and 99th percentile of the slowdown of short flows, of the slowest group: completion time over that on empty links.
    pub slowdown: Option<[f64; 2]>,
    /// Classes of traffic: the named flow groups.
    pub classes: Vec<Class>,
    /// Frames that left the reported queue marked.
    pub marked: u64,
}

/// A named flow group.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Name of the flow group.
    pub name: String,
    /// Goodput of the class, as a share of the reported link.
    pub goodput: f64,
    /// Fair share of the class in an equal division, as a share of the reported link.
    pub fair: f64,
}

impl Figures {
    /// Computes the figures of a run whose reported link has a rate of `gbps` Gb/s.
    #[must_use]
    pub fn of(outcome: &Outcome, gbps: f64) -> Figures {
        let slowdown = |group: &GroupOutcome| Some([group.slowdown(500)?, group.slowdown(990)?]);
        let slowest = |a: [f64; 2], b: [f64; 2]| [a[0].max(b[0]), a[1].max(b[1])];
        let classes = outcome.groups.iter().filter(|group| group.is_class);
        Figures {
            peak: outcome.peak,
            pauses: outcome.pauses,
            goodput: outcome.goodput,
            flows: outcome.flows.clone(),
            slowdown: outcome.groups.iter().filter_map(slowdown).reduce(slowest),
            classes: classes
                .map(|group| Class {
                    name: group.name.clone(),
                    goodput: group.goodput / gbps,
                    fair: group.fair / gbps,
                })
                .collect(),
            marked: outcome.marked,
        }
    }

    /// Returns these figures rounded to five significant digits.
    #[must_use]
    pub fn rounded(&self) -> Figures {
        let round = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
        let class = |class: &Class| Class {
            name: class.name.clone(),
            goodput: round(class.goodput),
            fair: round(class.fair),
        };
        Figures {
            goodput: round(self.goodput),
            flows: self.flows.iter().copied().map(round).collect(),
            slowdown: self.slowdown.map(|both| both.map(round)),
            classes: self.classes.iter().map(class).collect(),
            ..self.clone()
        }
    }

    /// Formats the figures as one line of text: fields separated by tabs, elements by commas.
    #[must_use]
    pub fn to_line(&self) -> String {
        let flows: Vec<String> = self.flows.iter().map(f64::to_string).collect();
        let slowdown = self.slowdown.map(|[half, most]| format!("{half},{most}"));
        let class = |class: &Class| format!("{}={}={}", class.name, class.goodput, class.fair);
        let classes: Vec<String> = self.classes.iter().map(class).collect();
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.peak,
            self.pauses,
            self.goodput,
            flows.join(","),
            slowdown.unwrap_or_default(),
            classes.join(","),
            self.marked
        )
    }

    /// Parses a line of [`Figures::to_line`]; `None` for anything else, such as a truncated line.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Figures> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [peak, pauses, goodput, flows, slowdown, classes, marked] = fields.as_slice() else {
            return None;
        };
        let list = |text: &str| -> Option<Vec<f64>> {
            elements(text).map(|one| one.parse().ok()).collect()
        };
        let class = |text: &str| -> Option<Class> {
            let mut parts = text.split('=');
            Some(Class {
                name: parts.next()?.to_owned(),
                goodput: parts.next()?.parse().ok()?,
                fair: parts.next()?.parse().ok()?,
            })
        };
        Some(Figures {
            peak: peak.parse().ok()?,
            pauses: pauses.parse().ok()?,
            goodput: goodput.parse().ok()?,
            flows: list(flows)?,
            slowdown: match list(slowdown)?.as_slice() {
                [] => None,
                [half, most] => Some([*half, *most]),
                _ => return None,
            },
            classes: elements(classes).map(class).collect::<Option<_>>()?,
            marked: marked.parse().ok()?,
        })
    }
}

fn elements(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|element| !element.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_figures_reads_back_and_no_part_of_one_does() {
        let figures = Figures {
            peak: 7_000_001,
            pauses: 3,
            goodput: 0.1 + 0.2,
            flows: vec![1.0 / 3.0, 0.0],
            slowdown: Some([1.5, 1e9 / 7.0]),
            classes: vec![
                Class {
                    name: "inter".to_owned(),
                    goodput: 0.25,
                    fair: 0.5,
                },
                Class {
                    name: "local".to_owned(),
                    goodput: 0.75,
                    fair: 1.5,
                },
            ],
            marked: 12,
        };
        let line = figures.to_line();
        assert_eq!(
            figures.rounded().to_line(),
            "7000001\t3\t0.3\t0.33333,0\t1.5,142860000\tinter=0.25=0.5,local=0.75=1.5\t12"
        );
        assert_eq!(Figures::from_line(&line), Some(figures));
        assert_eq!(
            Figures::from_line(&Figures::default().to_line()),
            Some(Figures::default())
        );
        let last = line.rfind('\t').unwrap();
        for end in 0..=last {
            assert_eq!(Figures::from_line(&line[..end]), None, "{end}");
        }
    }
}
