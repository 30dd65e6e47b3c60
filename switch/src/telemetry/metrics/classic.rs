//! Conversion of OpenMetrics text to Prometheus' classic text, which `promtool check metrics` reads.
//!
//! The samples are the same. In the classic text a counter's metadata bears the name of its samples, an info is a gauge, and neither
//! units nor an end are marked.

/// Converts an OpenMetrics text of counters, gauges, histograms and infos to the classic format.
pub(super) fn of_open_metrics(text: &str) -> String {
    let mut classic = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, what) = (words.next(), words.next());
        match (mark, what, words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(_), reported) => help = reported,
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let (suffix, kind) = match kind {
                    "counter" => ("_total", kind),
                    "info" => ("_info", "gauge"),
                    _ => ("", kind),
                };
                let help = help.take().unwrap_or_default();
                classic += &format!("# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n");
            }
            (Some("#"), ..) => {}
            _ => {
                classic += line;
                classic.push('\n');
            }
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metadata_are_those_of_the_samples() {
        let open = "# HELP a_bytes Bytes.\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\na_bytes_total{port=\"# x\"} 1\n\
                    # HELP b Who.\n# TYPE b info\nb_info{version=\"1\"} 1\n# HELP c Depth.\n# TYPE c gauge\nc 2\n# EOF\n";
        let classic = "# HELP a_bytes_total Bytes.\n# TYPE a_bytes_total counter\na_bytes_total{port=\"# x\"} 1\n\
                       # HELP b_info Who.\n# TYPE b_info gauge\nb_info{version=\"1\"} 1\n# HELP c Depth.\n# TYPE c gauge\nc 2\n";
        assert_eq!(of_open_metrics(open), classic);
    }
}
