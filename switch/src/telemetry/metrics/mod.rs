//! Metrics: families of samples, made at each scrape from the snapshot that `show` prints, since the start.
//!
//! A counter's family is declared with the counter ([`declared`]); the families of this folder are of computed values. The text is
//! in OpenMetrics, or in Prometheus' classic format ([`classic`]). Every label has few values: a flow's queue pairs are no labels.

mod classic;
mod declared;
mod family;
mod flows;
mod linux;
mod npcc;
mod peers;
mod ports;
mod queues;
mod scrape;
mod switch;

use std::fmt;
use std::sync::Mutex;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, text};
use prometheus_client::registry::Registry;

use self::declared::Declared;
#[cfg(test)]
use self::family::Head;
use self::family::{Family, Samples};
pub use self::scrape::{HEAVIEST, Scrape};

/// Format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Classic,
}

impl Format {
    /// Returns the format that an `Accept` header asks for.
    #[must_use]
    pub fn accepted(accept: Option<&str>) -> Format {
        let requested = accept.unwrap_or_default();
        // Prometheus names OpenMetrics first where it accepts it at all.
        if requested.contains("application/openmetrics-text") {
            Format::OpenMetrics
        } else {
            Format::Classic
        }
    }

    /// Returns the format's `Content-Type`.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Yields families whose samples are computed, in the order of the text; those that counters declare follow.
fn computed() -> impl Iterator<Item = &'static Family> {
    let all = [
        switch::FAMILIES,
        ports::FAMILIES,
        queues::FAMILIES,
        npcc::FAMILIES,
        peers::FAMILIES,
        flows::FAMILIES,
        linux::FAMILIES,
    ];
    all.into_iter().flatten()
}

/// Yields names and help texts of all families.
#[cfg(test)]
fn heads() -> impl Iterator<Item = Head> {
    let declared = Declared::of(&Default::default());
    let declared: Vec<_> = declared.heads().collect();
    computed().map(|family| family.head).chain(declared)
}

/// Returns the text of a scrape.
///
/// # Errors
/// Errors of the formatter, which a string as its target never causes.
pub fn text(scrape: Scrape, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    // The registry wants to share ownership of its collectors.
    registry.register_collector(Box::new(Once(Mutex::new(scrape))));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(match format {
        Format::OpenMetrics => text,
        Format::Classic => classic::of_open_metrics(&text),
    })
}

/// Collector of one scrape.
#[derive(Debug)]
struct Once(Mutex<Scrape>);

impl Collector for Once {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let scrape = self.0.lock().map_err(|_| fmt::Error)?;
        for Family { head, samples } in computed() {
            samples(&scrape, &mut Samples::of(head, &mut encoder)?)?;
        }
        Declared::of(&scrape.snapshot).encode(&mut encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_family_has_a_name_of_its_own_in_the_words_of_prometheus() {
        let mut names = BTreeSet::new();
        for Head { name, help, kind } in heads() {
            assert!(names.insert(name), "{name}");
            assert!(name.starts_with("npcc_"), "{name}");
            let plain = |letter: char| letter.is_ascii_lowercase() || letter == '_';
            assert!(name.chars().all(plain), "{name}");
            assert!(help.ends_with('.') && help.is_ascii(), "{name}: {help}");
            let total = name.ends_with("_total") || name.ends_with("_info");
            assert!(!total, "{name}: the encoder adds it");
            assert!(
                kind != family::Kind::Histogram || name.ends_with("_seconds"),
                "{name}"
            );
        }
    }

    #[test]
    fn the_document_lists_every_metric_and_no_other() {
        let manual = include_str!("../../../../docs/metrics.md");
        let tables = manual.split("| metric | labels | what it means |").skip(1);
        let rows =
            tables.flat_map(|table| table.lines().skip(2).take_while(|row| row.starts_with('|')));
        let listed: BTreeSet<String> = rows
            .filter_map(|row| Some(row.split('`').nth(1)?.to_owned()))
            .collect();
        let suffixed = |head: Head| match head.kind {
            family::Kind::Counter => format!("{}_total", head.name),
            family::Kind::Info => format!("{}_info", head.name),
            _ => head.name.to_owned(),
        };
        assert_eq!(listed, heads().map(suffixed).collect());
    }

    #[test]
    fn a_scraper_gets_the_form_it_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(Some(prometheus)), Format::OpenMetrics);
        assert_eq!(Format::accepted(Some("text/plain")), Format::Classic);
        assert_eq!(Format::accepted(None), Format::Classic);
    }

    #[test]
    fn open_metrics_ends_with_its_mark_and_the_classic_text_without() {
        let open = text(Scrape::default(), Format::OpenMetrics).unwrap();
        assert!(open.ends_with("# EOF\n"), "{open}");
        assert!(
            open.contains("# TYPE npcc_ticks counter\nnpcc_ticks_total 0\n"),
            "{open}"
        );
        let classic = text(Scrape::default(), Format::Classic).unwrap();
        assert!(!classic.contains("# EOF"), "{classic}");
        assert!(
            classic.contains("# TYPE npcc_ticks_total counter\nnpcc_ticks_total 0\n"),
            "{classic}"
        );
    }
}
