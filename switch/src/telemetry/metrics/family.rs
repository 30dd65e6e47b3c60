//! A family of metrics, and the samples that are read for it.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::scrape::{Scrape, Spread};

/// What kind of samples a family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows while the switch runs; the text adds `_total` to the name.
    Counter,
    /// It goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
    /// Labels that say something; the text adds `_info` to the name.
    Info,
}

/// Name and meaning of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Its name, without what the text adds for its kind.
    pub(super) name: &'static str,
    /// What it counts, as a sentence.
    pub(super) help: &'static str,
    /// Its kind.
    pub(super) kind: Kind,
}

/// A family whose samples are computed, as no counter has them.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) head: Head,
    /// Reads its samples.
    pub(super) samples: fn(&Scrape, &mut Samples<'_>) -> fmt::Result,
}

/// Labels of a sample: name and value.
pub(super) type Label<'a> = (&'static str, &'a str);

/// Takes the samples of one family.
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

    /// A counter's sample.
    pub(super) fn count(&mut self, labels: &[Label<'_>], value: u64) -> fmt::Result {
        self.put(labels, |metric| {
            metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
        })
    }

    /// A counter's sample that is a time in seconds.
    pub(super) fn count_seconds(&mut self, labels: &[Label<'_>], seconds: f64) -> fmt::Result {
        self.put(labels, |metric| {
            metric.encode_counter::<NoLabelSet, f64, u64>(&seconds, None)
        })
    }

    /// A gauge's sample.
    pub(super) fn gauge(&mut self, labels: &[Label<'_>], value: u64) -> fmt::Result {
        self.put(labels, |metric| metric.encode_gauge(&value))
    }

    /// A gauge's sample that is 1 where it holds, and 0.
    pub(super) fn holds(&mut self, labels: &[Label<'_>], holds: bool) -> fmt::Result {
        self.gauge(labels, u64::from(holds))
    }

    /// A gauge's sample that is no whole number.
    pub(super) fn real(&mut self, labels: &[Label<'_>], value: f64) -> fmt::Result {
        self.put(labels, |metric| metric.encode_gauge(&value))
    }

    /// A distribution.
    pub(super) fn spread(&mut self, labels: &[Label<'_>], spread: &Spread) -> fmt::Result {
        let count = spread.bins.iter().map(|(_, times)| times).sum();
        self.put(labels, |metric| {
            metric.encode_histogram::<NoLabelSet>(spread.seconds, count, &spread.bins, None)
        })
    }

    /// An info's labels.
    pub(super) fn info(&mut self, labels: &[Label<'_>]) -> fmt::Result {
        self.metric.encode_info(&labels)
    }
}

/// Declares the families of a file: name, kind, help, how samples are read.
macro_rules! families {
    ($($name:literal $kind:ident $help:literal $samples:expr;)*) => {
        /// The families of this file.
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
