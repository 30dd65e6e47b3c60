//! Two kinds of pictures as SVG text: curves over time, and bars in groups on a logarithmic scale.

use std::fmt::Write;

pub(super) const WIDTH: f64 = 560.0;
pub(super) const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 26.0;
const RIGHT: f64 = 20.0;

/// Colours that are distinct on white, also in grey and for most colour-blind eyes (Okabe and Ito).
const COLOURS: [&str; 8] = [
    "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999",
];

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
    let y_most = points().map(|(_, y)| *y).fold(most.max(1e-9), f64::max) * 1.05;
    let x = |value: f64| LEFT + value / x_most * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / y_most * (HEIGHT - BOTTOM - TOP);
    let mut text = open(title);
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        let (at_y, at_x) = (y(y_most * share), x(x_most * share));
        let _ = write!(
            text,
            "<line x1=\"{LEFT}\" x2=\"{:.0}\" y1=\"{at_y:.1}\" y2=\"{at_y:.1}\" class=\"g\"/><text x=\"{:.0}\" y=\"{:.1}\" class=\"y\">{}</text><text x=\"{at_x:.1}\" y=\"{:.0}\" class=\"x\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 5.0,
            at_y + 4.0,
            number(y_most * share),
            HEIGHT - BOTTOM + 15.0,
            number(x_most * share),
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
