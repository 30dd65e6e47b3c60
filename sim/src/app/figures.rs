//! Figures of an application, by the names of the IETF's benchmark for training fabrics (draft-calabria-bmwg-ai-fabric-training-bench).

use npcc_config::units::Nanos;

/// Outcome of one application.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApplicationOutcome {
    /// Name of the application.
    pub name: String,
    /// Times of the finished steps, sorted: from a rank's begin, its computing included, to the end of its operations, of the slowest rank.
    pub steps: Vec<Nanos>,
    /// Ages of the steps that were not finished at the end.
    pub unfinished: Vec<Nanos>,
    /// Shortest possible time of a step on links that carry nothing else.
    pub roofline: Nanos,
    /// Computing before each step.
    pub gap: Nanos,
    /// Bytes that the bus bandwidth of a step counts.
    pub bus: f64,
}

impl ApplicationOutcome {
    /// Returns the step times that count, sorted: those of finished steps, and the ages of the others once they are longer than the
    /// median of these.
    #[must_use]
    pub fn counted(&self) -> Vec<Nanos> {
        let median = self.steps.get(self.steps.len() / 2);
        let late = self.unfinished.iter().copied();
        let late = late.filter(|age| median.is_none_or(|median| age > median));
        let mut times: Vec<Nanos> = self.steps.iter().copied().chain(late).collect();
        times.sort_unstable();
        times
    }

    /// Returns the step time that this share (in thousandths) of the counted steps did not exceed.
    #[must_use]
    pub fn quantile(&self, thousandths: usize) -> Option<Nanos> {
        let times = self.counted();
        let last = times.len().checked_sub(1)?;
        times.get((last * thousandths).div_ceil(1_000)).copied()
    }

    /// Returns the mean time of the counted steps.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        let times = self.counted();
        let sum: u64 = times.iter().map(|time| time.0).sum();
        Some(Nanos(sum.checked_div(times.len() as u64)?))
    }

    /// Returns the JCT ratio: the mean time of a step over the roofline.
    #[must_use]
    pub fn jct_ratio(&self) -> Option<f64> {
        Some(self.mean()?.0 as f64 / self.roofline.0.max(1) as f64)
    }

    /// Returns the bus bandwidth in GB/s, as nccl-tests defines it, from the median step without its gap.
    #[must_use]
    pub fn busbw(&self) -> Option<f64> {
        let time = self.quantile(500)?.since(self.gap);
        Some(self.bus / time.0.max(1) as f64)
    }
}

/// Returns the interference factor: an application's median step beside other traffic over that of the same application alone
/// ([`Scenario::alone`](crate::scenario::Scenario::alone)).
#[must_use]
pub fn interference(contended: &ApplicationOutcome, alone: &ApplicationOutcome) -> Option<f64> {
    Some(contended.quantile(500)?.0 as f64 / alone.quantile(500)?.0.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(steps: &[u64], unfinished: &[u64]) -> ApplicationOutcome {
        ApplicationOutcome {
            steps: steps.iter().copied().map(Nanos).collect(),
            unfinished: unfinished.iter().copied().map(Nanos).collect(),
            roofline: Nanos(10),
            gap: Nanos(4),
            bus: 160.0,
            ..ApplicationOutcome::default()
        }
    }

    #[test]
    fn an_unfinished_step_counts_once_it_is_slow() {
        assert_eq!(outcome(&[20, 20, 20], &[5]).jct_ratio(), Some(2.0));
        let late = outcome(&[20, 20, 20], &[60]);
        assert_eq!(late.jct_ratio(), Some(3.0));
        assert_eq!(late.quantile(990), Some(Nanos(60)));
        assert_eq!(outcome(&[], &[60]).jct_ratio(), Some(6.0));
        assert_eq!(outcome(&[], &[]).jct_ratio(), None);
    }

    #[test]
    fn bus_bandwidth_leaves_the_gap_out() {
        assert_eq!(outcome(&[20, 20, 90], &[]).busbw(), Some(10.0));
        let (with, alone) = (outcome(&[30], &[]), outcome(&[20], &[]));
        assert_eq!(interference(&with, &alone), Some(1.5));
    }
}
