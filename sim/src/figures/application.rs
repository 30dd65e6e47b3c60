//! Figures of an application.

use npcc_pipeline::units::Nanos;

use crate::app::ApplicationOutcome;

/// Figures of an application, with times in ms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Application {
    /// Name of the application.
    pub name: String,
    /// Number of finished steps.
    pub steps: u64,
    /// Mean step time; infinite if no step counts.
    pub mean: f64,
    /// Median step time and 99th percentile.
    pub quantiles: [f64; 2],
    /// Mean step time over the roofline.
    pub jct: f64,
    /// Bus bandwidth of the median step, in GB/s.
    pub busbw: f64,
    /// Median step time over that of the application alone; 0 where that was not run.
    pub interference: f64,
}

impl Application {
    pub(super) fn of(outcome: &ApplicationOutcome) -> Application {
        let millis = |time: Option<Nanos>| time.map_or(f64::INFINITY, |time| time.0 as f64 / 1e6);
        Application {
            name: outcome.name.clone(),
            steps: outcome.steps.len() as u64,
            mean: millis(outcome.mean()),
            quantiles: [500, 990].map(|share| millis(outcome.quantile(share))),
            jct: outcome.jct_ratio().unwrap_or(f64::INFINITY),
            busbw: outcome.busbw().unwrap_or(0.0),
            interference: 0.0,
        }
    }

    pub(super) fn to_text(&self) -> String {
        let [half, most] = self.quantiles;
        let Application {
            name,
            steps,
            mean,
            jct,
            busbw,
            interference,
            ..
        } = self;
        format!("{name}={steps}={mean}={half}={most}={jct}={busbw}={interference}")
    }

    pub(super) fn from_text(text: &str) -> Option<Application> {
        let parts: Vec<&str> = text.split('=').collect();
        let [name, steps, numbers @ ..] = parts.as_slice() else {
            return None;
        };
        let numbers: Option<Vec<f64>> = numbers.iter().map(|one| one.parse().ok()).collect();
        let [mean, half, most, jct, busbw, interference] = numbers?.try_into().ok()?;
        Some(Application {
            name: (*name).to_owned(),
            steps: steps.parse().ok()?,
            mean,
            quantiles: [half, most],
            jct,
            busbw,
            interference,
        })
    }
}
