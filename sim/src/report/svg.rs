//! Two kinds of pictures as SVG text: curves over time, and bars in groups on a logarithmic scale.

use std::fmt::Write;

pub(super) const WIDTH: f64 = 560.0;
pub(super) const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 26.0;
const RIGHT: f64 = 20.0;

/// Colours that are distinct on white: first those of Okabe and Ito, which most colour-blind eyes tell apart.
const COLOURS: [&str; 12] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999",
    "#882255", "#332288", "#7a7a00", "#7fd17f",
];
/// Largest number of intervals of an axis.
const INTERVALS: f64 = 6.0;

/// Returns the colour of the n-th series.
pub(super) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// A named series of a picture.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Escapes `<`, `>`, `&` and double quotes for SVG and HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Returns the interval between the ticks of an axis that reaches `most`: 1, 2 or 5 times a power of ten.
fn interval(most: f64) -> f64 {
    let least = most / INTERVALS;
    let decade = 10f64.powf(least.log10().floor());
    let round = [1.0, 2.0, 5.0].map(|step| step * decade);
    // A quotient that is rounded up needs no wider interval.
    let wide = |step: &f64| *step * (1.0 + 1e-9) >= least;
    round.into_iter().find(wide).unwrap_or(10.0 * decade)
}

/// Returns the ticks of an axis from 0 to `most`, each with its text.
fn ticks(interval: f64, most: f64) -> impl Iterator<Item = (f64, String)> {
    // As many as the interval's first digit needs.
    let tenfold = std::iter::successors(Some(interval), |value| Some(value * 10.0));
    let decimals = tenfold.take_while(|value| *value < 1.0 - 1e-9).count();
    (0..)
        .map(move |n| f64::from(n) * interval)
        .take_while(move |tick| *tick <= most + interval * 1e-6)
        .map(move |tick| (tick, format!("{tick:.decimals$}")))
}

fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

fn open(title: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{0}\"><text x=\"{LEFT}\" y=\"14\" class=\"t\">{0}</text>",
        escape(title)
    )
}

/// Draws curves over time in ms.
pub(super) fn curves(title: &str, series: &[Series]) -> String {
    curves_to(title, series, 0.0)
}

/// Draws curves on a scale that reaches at least `most`.
pub(super) fn curves_to(title: &str, series: &[Series], most: f64) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let x_most = points().map(|(x, _)| *x).fold(1e-9, f64::max);
    let y_most = points().map(|(_, y)| *y).fold(most.max(1e-9), f64::max);
    let (x_step, y_step) = (interval(x_most), interval(y_most));
    // The scale ends at a tick.
    let y_most = (y_most / y_step - 1e-9).ceil() * y_step;
    let x = |value: f64| LEFT + value / x_most * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_most * (HEIGHT - BOTTOM - TOP);
    let mut text = open(title);
    for (value, tick) in ticks(y_step, y_most) {
        let at = y(value);
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"g\"/><text x=\"{:.0}\" y=\"{:.1}\" class=\"y\">{tick}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            at + 4.0,
        );
    }
    for (value, tick) in ticks(x_step, x_most) {
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.0}\" class=\"x\">{tick}</text>",
            x(value),
            HEIGHT - BOTTOM + 15.0,
        );
    }
    let _ = write!(
        text,
        "<text x=\"{:.0}\" y=\"{:.0}\" class=\"x\">ms</text>",
        WIDTH / 2.0,
        HEIGHT - 4.0
    );
    for (index, series) in series.iter().enumerate() {
        let mut line = String::new();
        for (at, value) in &series.points {
            let _ = write!(line, "{:.1},{:.1} ", x(*at), y(*value));
        }
        let _ = write!(
            text,
            "<polyline points=\"{}\" stroke=\"{}\"><title>{}</title></polyline>",
            line.trim_end(),
            colour(index),
            escape(&series.name)
        );
    }
    text.push_str("</svg>");
    text
}

/// Draws bars on a logarithmic scale: for each group one value per name.
pub(super) fn bars(
    title: &str,
    groups: &[String],
    names: &[String],
    values: &[Vec<Option<f64>>],
) -> String {
    let all = || {
        values
            .iter()
            .flatten()
            .flatten()
            .copied()
            .filter(|value| *value > 0.0)
    };
    let low = all()
        .fold(f64::INFINITY, f64::min)
        .min(1e12)
        .log10()
        .floor();
    let high = all()
        .fold(0.0, f64::max)
        .max(1e-9)
        .log10()
        .ceil()
        .max(low + 1.0);
    let floor = HEIGHT - BOTTOM;
    let y = |value: f64| floor - (value.max(1e-12).log10() - low) / (high - low) * (floor - TOP);
    let slot = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar = slot * 0.8 / names.len().max(1) as f64;
    let mut text = open(title);
    let mut decade = low;
    while decade <= high {
        let at = y(10f64.powf(decade));
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"g\"/><text x=\"{:.0}\" y=\"{:.1}\" class=\"y\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            at + 4.0,
            number(10f64.powf(decade)),
        );
        decade += 1.0;
    }
    for (place, (group, row)) in groups.iter().zip(values).enumerate() {
        let from = LEFT + slot * place as f64 + slot * 0.1;
        for (index, value) in row.iter().enumerate() {
            let Some(value) = value.filter(|value| *value > 0.0) else {
                continue;
            };
            let top = y(value);
            let _ = write!(
                text,
                "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>{}: {}</title></rect>",
                from + bar * index as f64,
                bar * 0.92,
                (floor - top).max(0.5),
                colour(index),
                escape(&names[index]),
                number(value),
            );
        }
        let _ = write!(
            text,
            "<text x=\"{:.1}\" y=\"{:.0}\" class=\"x\">{}</text>",
            from + slot * 0.4,
            floor + 15.0,
            escape(group)
        );
    }
    text.push_str("</svg>");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn text_of(most: f64) -> Vec<String> {
        let step = interval(most);
        let end = (most / step - 1e-9).ceil() * step;
        ticks(step, end).map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_reach_the_highest_value() {
        assert_eq!(text_of(100.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(text_of(100.2), ["0", "20", "40", "60", "80", "100", "120"]);
        assert_eq!(text_of(43.4), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(text_of(0.63), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(text_of(11_592.0)[4..], ["8000", "10000", "12000"]);
        for (most, name) in [(1e-9, "least"), (1e12, "most"), (7.0, "some")] {
            let ticks = text_of(most);
            assert!((2..=7).contains(&ticks.len()), "{name}: {ticks:?}");
        }
    }

    #[test]
    fn every_scheme_of_a_scenario_has_a_colour_that_differs_from_the_others() {
        let rgb = |colour: &str| {
            let part = |at| i32::from_str_radix(&colour[at..at + 2], 16).unwrap();
            [part(1), part(3), part(5)]
        };
        for (index, one) in COLOURS.iter().enumerate() {
            for other in &COLOURS[..index] {
                let difference: i32 = rgb(one)
                    .iter()
                    .zip(rgb(other))
                    .map(|(a, b)| (a - b).abs())
                    .sum();
                assert!(difference > 80, "{one} and {other} differ by {difference}");
            }
        }
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/scenarios");
        let mut most = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|end| end == "yaml") {
                most = most.max(Scenario::load(&path).unwrap().vary.scheme.len());
            }
        }
        assert!((9..=COLOURS.len()).contains(&most), "{most} schemes");
    }
}
