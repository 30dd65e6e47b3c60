//! HTML report: one self-contained file with the table, bars over distance, curves over time.

use std::fmt::Write;

use super::svg::{Series, bars, colour, curves, escape};
use super::table::rows;
use crate::engine::Sample;
use crate::scenario::{Case, Scenario, Scheme};
use crate::sweep::Run;

const STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222}\
table{border-collapse:collapse;font-size:12px}td,th{padding:2px 8px;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}\
td:first-child,th:first-child{text-align:left}.w{overflow-x:auto}.p{display:grid;grid-template-columns:repeat(auto-fit,minmax(480px,1fr));gap:12px}\
svg{width:100%;background:#fff}text{font:11px system-ui,sans-serif;fill:#333}.t{font-size:13px;font-weight:600}.y{text-anchor:end}.x{text-anchor:middle}\
.g{stroke:#e5e5e5}polyline{fill:none;stroke-width:1.4}.k span{display:inline-block;margin-right:1.2em}.k i{display:inline-block;width:12px;height:12px;margin-right:5px}\
summary{cursor:pointer;font-weight:600;margin:1em 0 .4em}";

/// Returns the text of the HTML file.
#[must_use]
pub fn html(scenario: &Scenario, runs: &[Run]) -> String {
    let mut text = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>npcc-switch sim: {0}</title><style>{STYLE}</style><h1>{0}</h1><p>{1}</p>",
        escape(&scenario.name),
        escape(&scenario.about)
    );
    let schemes = &scenario.vary.scheme;
    text.push_str(&legend(schemes));
    distance(scenario, runs, &mut text);
    over_time(scenario, runs, &mut text);
    text.push_str("<h2>Table</h2><div class=\"w\"><table>");
    for (index, row) in rows(scenario, runs).iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        text.push_str("<tr>");
        for cell in row {
            let _ = write!(text, "<{tag}>{}</{tag}>", escape(cell));
        }
        text.push_str("</tr>");
    }
    text.push_str("</table></div></html>\n");
    text
}

fn legend(schemes: &[Scheme]) -> String {
    let keys = schemes.iter().enumerate().map(|(index, scheme)| {
        format!(
            "<span><i style=\"background:{}\"></i>{scheme}</span>",
            colour(index)
        )
    });
    format!("<p class=\"k\">{}</p>", keys.collect::<String>())
}

/// Returns the key of the runs that share a picture: the case without its scheme, and without its length unless `with_length`.
fn kind(case: &Case, with_length: bool) -> Case {
    Case {
        scheme: Scheme::PFC,
        length: if with_length { case.length } else { None },
        ..*case
    }
}

fn kinds(runs: &[Run], with_length: bool) -> Vec<Case> {
    let mut kinds: Vec<Case> = Vec::new();
    for run in runs {
        let kind = kind(&run.case, with_length);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn title(case: &Case) -> String {
    // The scheme is what differs within a picture.
    let text = case.to_string();
    text.replacen(" pfc", "", 1)
}

fn distance(scenario: &Scenario, runs: &[Run], text: &mut String) {
    let lengths = &scenario.vary.length;
    if lengths.len() < 2 {
        return;
    }
    let schemes = &scenario.vary.scheme;
    let names: Vec<String> = schemes.iter().map(Scheme::to_string).collect();
    let groups: Vec<String> = lengths.iter().map(ToString::to_string).collect();
    text.push_str("<h2>Over distance</h2><div class=\"p\">");
    for kind in kinds(runs, false) {
        let chart = |name: &str, of: &dyn Fn(&Run) -> f64| {
            let value = |length, scheme: &Scheme| {
                let case = Case {
                    scheme: *scheme,
                    length: Some(length),
                    ..kind
                };
                runs.iter().find(|run| run.case == case).map(of)
            };
            let values: Vec<Vec<Option<f64>>> = lengths
                .iter()
                .map(|length| {
                    schemes
                        .iter()
                        .map(|scheme| value(*length, scheme))
                        .collect()
                })
                .collect();
            bars(
                &format!("{name}: {}", title(&kind)),
                &groups,
                &names,
                &values,
            )
        };
        text.push_str(&chart("peak queue, MB", &|run| {
            run.outcome.peak as f64 / 1e6
        }));
        text.push_str(&chart("capacity left unused, %", &|run| {
            ((1.0 - run.outcome.utilisation) * 100.0).max(0.01)
        }));
        if scenario.pfc {
            text.push_str(&chart("hosts paused, ms", &|run| {
                run.outcome.paused.0 as f64 / 1e6
            }));
        }
    }
    text.push_str("</div>");
}

fn over_time(scenario: &Scenario, runs: &[Run], text: &mut String) {
    text.push_str("<h2>Over time</h2>");
    for (index, kind_of) in kinds(runs, true).iter().enumerate() {
        let open = if index == 0 { " open" } else { "" };
        let _ = write!(
            text,
            "<details{open}><summary>{}</summary><div class=\"p\">",
            escape(&title(kind_of))
        );
        let chart = |name: &str, of: &dyn Fn(&Sample) -> f64| {
            // In the order of the schemes, so that colours agree with the legend.
            let series = scenario.vary.scheme.iter().map(|scheme| {
                let case = Case {
                    scheme: *scheme,
                    ..*kind_of
                };
                let run = runs.iter().find(|run| run.case == case);
                let samples = run
                    .map(|run| run.outcome.samples.as_slice())
                    .unwrap_or_default();
                Series {
                    name: scheme.to_string(),
                    points: samples
                        .iter()
                        .map(|sample| (sample.at.0 as f64 / 1e6, of(sample)))
                        .collect(),
                }
            });
            curves(name, &series.collect::<Vec<_>>())
        };
        text.push_str(&chart("queue, MB", &|sample| sample.depth as f64 / 1e6));
        text.push_str(&chart("sum of the senders' rates, Gb/s", &|sample| {
            sample.offered
        }));
        text.push_str(&chart("through the queue, Gb/s", &|sample| sample.through));
        text.push_str(&chart("CNPs received", &|sample| sample.cnps as f64));
        if scenario.pfc {
            text.push_str(&chart("hosts paused, ms in all", &|sample| {
                sample.paused.0 as f64 / 1e6
            }));
        }
        text.push_str("</div></details>");
    }
}
