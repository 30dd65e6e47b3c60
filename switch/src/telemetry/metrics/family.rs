//! Family of metrics, and the samples that are read for it.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::scrape::{Scrape, Spread};

/// Type of a family's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A counter, which only grows while the switch runs; the text adds `_total` to the name.
    Counter,
    /// A gauge, which goes up and down.
    Gauge,
    /// A histogram.
    Histogram,
    /// An info: its labels carry the information; the text adds `_info` to the name.
    Info,
}

/// Name, help text and type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Name of the family, without the suffix that the text adds for its type.
    pub(super) name: &'static str,
    /// Help text: what the family counts, as a sentence.
    pub(super) help: &'static str,
    /// Type of the family's samples.
    pub(super) kind: Kind,
}

/// Family whose samples are computed rather than read from a counter.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) head: Head,
    /// Reads the family's samples.
    pub(super) samples: fn(&Scrape, &mut Samples<'_>) -> fmt::Result,
}

/// Label of a sample: name and value.
pub(super) type Label<'a> = (&'static str, &'a str);

/// Writer of the samples of one family.
pub(super) struct Samples<'a> {
    metric: MetricEncoder<'a>,
}

impl<'a> Samples<'a> {
    /// Writes the head of a family; its samples follow.
    pub(super) fn of(
        head: &Head,
        encoder: &'a mut DescriptorEncoder<'_>,
    ) -> Result<Samples<'a>, fmt::Error> {
        let kind = match head.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
            Kind::Info => MetricType::Info,
        };
        let metric = encoder.encode_descriptor(head.name, head.help, None, kind)?;
        Ok(Samples { metric })
    }

    /// Writes a sample; braces around no labels are left out.
    fn put(
        &mut self,
        labels: &[Label<'_>],
        sample: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        if labels.is_empty() {
            return sample(&mut self.metric);
        }
        sample(&mut self.metric.encode_family(&labels)?)
    }

    /// Writes a counter's sample.
    pub(super) fn count(&mut self, labels: &[Label<'_>], value: u64) -> fmt::Result {
        self.put(labels, |metric| {
            metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
        })
    }

    /// Writes a counter's sample that is a time in seconds.
    pub(super) fn count_seconds(&mut self, labels: &[Label<'_>], seconds: f64) -> fmt::Result {
        self.put(labels, |metric| {
            metric.encode_counter::<NoLabelSet, f64, u64>(&seconds, None)
        })
    }

    /// Writes a gauge's sample.
    pub(super) fn gauge(&mut self, labels: &[Label<'_>], value: u64) -> fmt::Result {
        self.put(labels, |metric| metric.encode_gauge(&value))
    }

    /// Writes a gauge's sample that is 1 if `holds`, and 0 otherwise.
    pub(super) fn holds(&mut self, labels: &[Label<'_>], holds: bool) -> fmt::Result {
        self.gauge(labels, u64::from(holds))
    }

    /// Writes a gauge's sample that is no whole number.
    pub(super) fn real(&mut self, labels: &[Label<'_>], value: f64) -> fmt::Result {
        self.put(labels, |metric| metric.encode_gauge(&value))
    }

    /// Writes a histogram.
    pub(super) fn spread(&mut self, labels: &[Label<'_>], spread: &Spread) -> fmt::Result {
        let count = spread.bins.iter().map(|(_, times)| times).sum();
        self.put(labels, |metric| {
            metric.encode_histogram::<NoLabelSet>(spread.seconds, count, &spread.bins, None)
        })
    }

    /// Writes an info's labels.
    pub(super) fn info(&mut self, labels: &[Label<'_>]) -> fmt::Result {
        self.metric.encode_info(&labels)
    }
}

/// Declares the families of a file: name, kind, help, how samples are read.
macro_rules! families {
    ($($name:literal $kind:ident $help:literal $samples:expr;)*) => {
        /// Metric families of this file.
        pub(super) static FAMILIES: &[$crate::telemetry::metrics::family::Family] = &[$(
            $crate::telemetry::metrics::family::Family {
                head: $crate::telemetry::metrics::family::Head {
                    name: $name,
                    help: $help,
                    kind: $crate::telemetry::metrics::family::Kind::$kind,
                },
                samples: $samples,
            },
        )*];
    };
}
pub(super) use families;
