//! One SVG file: schemes side by side, each a column of curves on common scales.

use std::fmt::Write;

use super::svg::{HEIGHT, Series, WIDTH, curves_to, escape};
use crate::engine::Sample;

const STYLE: &str = "text{font:11px system-ui,sans-serif;fill:#333}.t{font-size:13px;font-weight:600}.h{font-size:18px;font-weight:600}\
.c{font-size:15px;font-weight:600}.y{text-anchor:end}.x{text-anchor:middle}.g{stroke:#e5e5e5}polyline{fill:none;stroke-width:1.6}";
const HEAD: f64 = 64.0;
const LINE: f64 = 16.0;

/// One column of the picture: a scheme.
#[derive(Debug, Clone)]
pub struct Column {
    /// Name of the scheme.
    pub name: String,
    /// Results of the scheme, a line each.
    pub notes: Vec<String>,
    /// Points of the curves, in order of time.
    pub samples: Vec<Sample>,
}

/// Name of a row of pictures, and the value it plots for a sample.
type Row = (&'static str, fn(&Sample) -> f64);

/// Rows drawn in each column, from top to bottom.
const ROWS: [Row; 3] = [
    ("queue, MB", |sample| sample.depth as f64 / 1e6),
    ("through the link, Gb/s", |sample| sample.through),
    ("CNPs that reached senders", |sample| sample.cnps as f64),
];

/// Returns the text of the SVG file; `title` and `about` stand above all columns.
#[must_use]
pub fn picture(title: &str, about: &str, columns: &[Column]) -> String {
    let most_notes = columns.iter().map(|column| column.notes.len()).max();
    let top = HEAD + LINE * (2 + most_notes.unwrap_or(0)) as f64;
    let width = WIDTH * columns.len().max(1) as f64;
    let height = top + HEIGHT * ROWS.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\
         <style>{STYLE}</style><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
         <text x=\"20\" y=\"28\" class=\"h\">{}</text><text x=\"20\" y=\"48\">{}</text>",
        escape(title),
        escape(about)
    );
    for (place, column) in columns.iter().enumerate() {
        let left = WIDTH * place as f64;
        let _ = write!(
            text,
            "<text x=\"{:.0}\" y=\"{HEAD:.0}\" class=\"c\" dy=\"14\">{}</text>",
            left + 20.0,
            escape(&column.name)
        );
        for (number, note) in column.notes.iter().enumerate() {
            let _ = write!(
                text,
                "<text x=\"{:.0}\" y=\"{:.0}\">{}</text>",
                left + 20.0,
                HEAD + LINE * (number + 2) as f64,
                escape(note)
            );
        }
    }
    for (row, (name, of)) in ROWS.iter().enumerate() {
        let all = columns.iter().flat_map(|column| &column.samples);
        let most = all.map(of).fold(0.0, f64::max);
        for (place, column) in columns.iter().enumerate() {
            let points = column.samples.iter();
            let points = points.map(|sample| (sample.at.0 as f64 / 1e6, of(sample)));
            let series = Series {
                name: column.name.clone(),
                points: points.collect(),
            };
            let chart = curves_to(name, &[series], most);
            let placed = format!(
                "<svg x=\"{:.0}\" y=\"{:.0}\" width=\"{WIDTH:.0}\" height=\"{HEIGHT:.0}\" ",
                WIDTH * place as f64,
                top + HEIGHT * row as f64
            );
            text.push_str(&chart.replacen("<svg ", &placed, 1));
        }
    }
    text.push_str("</svg>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use npcc_pipeline::units::Nanos;

    #[test]
    fn columns_share_their_scales() {
        let column = |name: &str, depth| Column {
            name: name.to_owned(),
            notes: vec!["peak <1>".to_owned()],
            samples: (0..3u64)
                .map(|at| Sample {
                    at: Nanos(at * 1_000_000),
                    depth: depth * at,
                    ..Sample::default()
                })
                .collect(),
        };
        let text = picture(
            "a & b",
            "",
            &[column("off", 1_000_000), column("on", 10_000)],
        );
        // The highest tick of both queue pictures; both time axes end at 2 ms, too.
        assert_eq!(text.matches("class=\"y\">2.0</text>").count(), 2, "{text}");
        assert!(text.contains("a &amp; b") && text.contains("peak &lt;1&gt;"));
        assert_eq!(text.matches("<svg").count(), 7);
        assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    }
}
