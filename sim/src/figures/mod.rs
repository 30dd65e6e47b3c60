//! Figures that a run is judged by: the few that [`crate::measure`] and [`crate::harm`] compare, small enough to be kept for thousands of runs.

mod application;

use crate::engine::{GroupOutcome, Outcome};
pub use application::Application;

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
    /// Frames that switches dropped.
    pub dropped: u64,
    /// Time that hosts were paused, summed over them, in ms.
    pub paused: f64,
    /// Mean depth of the reported queue over time, and the depth that it did not exceed for 99 % of the time, as times of its rate, in us.
    pub delay: [f64; 2],
    /// Share of the time in which the reported queue was deeper than the scenario's `kmin`.
    pub above: f64,
    /// Goodput of the worst class of endless flows, as a share of its fair one; `None` without such a class.
    pub worst: Option<f64>,
    /// Jain's index of the connections through the reported port.
    pub jain: f64,
    /// Time from the start of the last of M + M flows until all are within 10 % of their fair share, in ms.
    pub converged: Option<f64>,
    /// CNPs that switches sent.
    pub cnps: u64,
    /// Applications, in the order of the scenario.
    pub applications: Vec<Application>,
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
        let classes = || outcome.groups.iter().filter(|group| group.is_class);
        // A burst's rate is what is offered, whatever the scheme.
        let endless = classes().filter(|group| group.ideal.is_none() && group.fair > 0.0);
        let shares = endless.map(|group| group.goodput / group.fair);
        let micros = |depth: u64| depth as f64 * 8.0 / gbps / 1e3;
        Figures {
            peak: outcome.peak,
            pauses: outcome.pauses,
            goodput: outcome.goodput,
            flows: outcome.flows.clone(),
            slowdown: outcome.groups.iter().filter_map(slowdown).reduce(slowest),
            classes: classes()
                .map(|group| Class {
                    name: group.name.clone(),
                    goodput: group.goodput / gbps,
                    fair: group.fair / gbps,
                })
                .collect(),
            marked: outcome.marked,
            dropped: outcome.dropped,
            paused: outcome.paused.0 as f64 / 1e6,
            delay: [outcome.mean, outcome.p99].map(micros),
            above: outcome.above,
            worst: shares.reduce(f64::min),
            jain: outcome.jain,
            converged: outcome.converged.map(|time| time.0 as f64 / 1e6),
            cnps: outcome.cnps_switch,
            applications: outcome.applications.iter().map(Application::of).collect(),
        }
    }

    /// Sets the interference factors from the runs of each application alone, in the same order.
    #[must_use]
    pub fn beside(mut self, alone: &[Figures]) -> Figures {
        for (at, (contended, alone)) in self.applications.iter_mut().zip(alone).enumerate() {
            debug_assert_eq!(alone.applications.len(), 1, "application {at}");
            let one = alone.applications.first();
            let [median, _] = one.map_or([f64::INFINITY; 2], |one| one.quantiles);
            contended.interference = contended.quantiles[0] / median.max(f64::MIN_POSITIVE);
        }
        self
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
        let application = |one: &Application| Application {
            mean: round(one.mean),
            quantiles: one.quantiles.map(round),
            jct: round(one.jct),
            busbw: round(one.busbw),
            interference: round(one.interference),
            ..one.clone()
        };
        Figures {
            goodput: round(self.goodput),
            flows: self.flows.iter().copied().map(round).collect(),
            slowdown: self.slowdown.map(|both| both.map(round)),
            classes: self.classes.iter().map(class).collect(),
            paused: round(self.paused),
            delay: self.delay.map(round),
            above: round(self.above),
            worst: self.worst.map(round),
            jain: round(self.jain),
            converged: self.converged.map(round),
            applications: self.applications.iter().map(application).collect(),
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
        let applications: Vec<String> =
            self.applications.iter().map(Application::to_text).collect();
        let [mean, p99] = self.delay;
        let or_none = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        [
            self.peak.to_string(),
            self.pauses.to_string(),
            self.goodput.to_string(),
            flows.join(","),
            slowdown.unwrap_or_default(),
            classes.join(","),
            self.marked.to_string(),
            self.dropped.to_string(),
            self.paused.to_string(),
            format!("{mean},{p99}"),
            self.above.to_string(),
            or_none(self.worst),
            self.jain.to_string(),
            or_none(self.converged),
            applications.join(","),
            self.cnps.to_string(),
        ]
        .join("\t")
    }

    /// Parses a line of [`Figures::to_line`]; `None` for anything else, such as a truncated line.
    #[must_use]
    pub fn from_line(line: &str) -> Option<Figures> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [first @ .., applications, cnps] = fields.as_slice() else {
            return None;
        };
        let [
            peak,
            pauses,
            goodput,
            flows,
            slowdown,
            classes,
            marked,
            dropped,
            paused,
            delay,
            above,
            worst,
            jain,
            converged,
        ] = first
        else {
            return None;
        };
        let or_none = |text: &str| match text {
            "" => Some(None),
            text => text.parse().ok().map(Some),
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
            dropped: dropped.parse().ok()?,
            paused: paused.parse().ok()?,
            delay: list(delay)?.try_into().ok()?,
            above: above.parse().ok()?,
            worst: or_none(worst)?,
            jain: jain.parse().ok()?,
            converged: or_none(converged)?,
            cnps: cnps.parse().ok()?,
            applications: elements(applications)
                .map(Application::from_text)
                .collect::<Option<_>>()?,
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
            dropped: 5,
            paused: 1.25,
            delay: [3.5, 40.0],
            above: 0.25,
            worst: Some(0.5),
            jain: 0.9,
            converged: Some(4.0),
            cnps: 17,
            applications: vec![Application {
                name: "ring".to_owned(),
                steps: 4,
                mean: 2.0,
                quantiles: [1.5, f64::INFINITY],
                jct: 1.0 / 3.0,
                busbw: 11.0,
                interference: 0.0,
            }],
        };
        let line = figures.to_line();
        assert_eq!(
            figures.rounded().to_line(),
            "7000001\t3\t0.3\t0.33333,0\t1.5,142860000\tinter=0.25=0.5,local=0.75=1.5\t12\t\
             5\t1.25\t3.5,40\t0.25\t0.5\t0.9\t4\tring=4=2=1.5=inf=0.33333=11=0\t17"
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
